//! Attributes with mistakes, in the program or in themselves.

use pipec_macros::pipeline;

#[pipeline(source = r#"
pipeline office {
    port lan, wan;
    table classify {
        ip => output(wna);
    }
}
"#)]
pub struct Office;

#[pipeline(file = "no/such.pipe")]
pub struct Missing;

#[pipeline(path = "a.pipe")]
pub struct Unknown;

#[pipeline(source = "pipeline p { port a; table t { else => drop; } }")]
pub struct Fields {
    a: u8,
}

fn main() {}
