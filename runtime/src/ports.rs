//! Which port of the command line is which of the program.
//!
//! In: a program's ports and `--port NAME=KIND`s. Out: what is attached to each port of the program. Never: an open port.

use pipec_abi::meta::{Meta, PortMeta};

use crate::error::Error;
use crate::io::spec::PortSpec;

/// The spec of each port of the program, in its order. Ports that a program names by number only, as `.flows` do, need not be
/// given.
///
/// # Errors
/// When a port is given that the program does not have, or one is missing.
pub fn attach(meta: &Meta, specs: &[PortSpec]) -> Result<Vec<Option<PortSpec>>, Error> {
    let mut attached = vec![None; meta.ports.len()];
    for spec in specs {
        let port = find(meta, &spec.name)?;
        if let Some(PortSpec { name, .. }) = attached[port].replace(spec.clone()) {
            let given = &spec.name;
            return Err(Error::Usage(format!(
                "port `{name}` is given twice, also as `{given}`; each port needs one --port"
            )));
        }
    }
    if specs.is_empty() {
        return Err(Error::Usage(format!(
            "no port is given; attach {}, such as {}",
            names(meta),
            meta.ports.iter().map(form).collect::<Vec<_>>().join(" ")
        )));
    }
    for (port, spec) in meta.ports.iter().zip(&attached) {
        if spec.is_none() && !is_numbered_only(port) {
            return Err(Error::Usage(format!("port `{}` is not given; attach it, such as {}", port.name, form(port))));
        }
    }
    Ok(attached)
}

/// The program's dense number of the port with this name or number.
///
/// # Errors
/// When it has none.
pub fn find(meta: &Meta, name: &str) -> Result<usize, Error> {
    let by_name = meta.ports.iter().position(|port| port.name == name);
    let by_number = || name.parse().ok().and_then(|number: u32| meta.ports.iter().position(|p| p.number == number));
    by_name
        .or_else(by_number)
        .ok_or_else(|| Error::Usage(format!("there is no port `{name}` in {}; it has {}", meta.name, names(meta))))
}

/// Whether the program has no name for the port.
pub fn is_numbered_only(port: &PortMeta) -> bool {
    port.name == port.number.to_string()
}

/// The program's ports, for a message.
fn names(meta: &Meta) -> String {
    match &meta.ports[..] {
        [] => "no ports".to_string(),
        [port] => format!("port `{}`", port.name),
        ports => format!("ports {}", ports.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")),
    }
}

fn form(port: &PortMeta) -> String {
    format!("--port {0}=tap:{1}{0}", port.name, if is_numbered_only(port) { "tap" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::spec::parse_all;

    fn meta(names: &[&str]) -> Meta {
        let port = |(i, name): (usize, &&str)| PortMeta { name: name.to_string(), number: i as u32 + 1 };
        let ports = names.iter().enumerate().map(port).collect();
        Meta { name: "fw".into(), ports, vlan_limit: 1, ..Meta::default() }
    }

    fn error(names: &[&str], given: &[&str]) -> String {
        let error = attach(&meta(names), &parse_all(given).unwrap()).unwrap_err();
        assert_eq!(error.status(), 2);
        error.to_string()
    }

    #[test]
    fn ports_are_found_by_name_and_by_number() {
        let attached = attach(&meta(&["lan", "wan"]), &parse_all(&["2=null", "lan=ring"]).unwrap()).unwrap();
        let kinds: Vec<String> = attached.iter().flatten().map(|spec| spec.kind.to_string()).collect();
        assert_eq!(kinds, ["ring", "null"]);
    }

    #[test]
    fn numbered_ports_need_not_be_given() {
        let attached = attach(&meta(&["1", "2"]), &parse_all(&["2=null"]).unwrap()).unwrap();
        assert_eq!(attached.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn what_is_wrong_with_ports_is_said_with_the_remedy() {
        let names = &["lan", "wan"];
        assert_eq!(error(names, &["lan=null"]), "port `wan` is not given; attach it, such as --port wan=tap:wan");
        assert_eq!(error(names, &["lam=null"]), "there is no port `lam` in fw; it has ports `lan`, `wan`");
        assert_eq!(
            error(names, &["lan=null", "1=ring"]),
            "port `lan` is given twice, also as `1`; each port needs one --port"
        );
        assert_eq!(
            error(names, &[]),
            "no port is given; attach ports `lan`, `wan`, such as --port lan=tap:lan --port wan=tap:wan"
        );
        assert!(error(&["1"], &[]).contains("--port 1=tap:tap1"));
    }
}
