//! A block with mistakes: each is at its token.

use pipec_macros::pipeline_block as pipeline;

pipeline! {
    pub pipeline office {
        port lan, wan;
        set servers = { 10.0.0.1, 10.0.0.300 };

        table classify {
            ip && !ct.trk     => ct(), goto statefull;
            ipv4.dts == 10.0.0.1 => drop;
            tcp.dst == 70_000 => drop;
            else              => output(lan), output(Wan);
        }
        table stateful {
            ct.new            => drop;
        }
    }
}

fn main() {}
