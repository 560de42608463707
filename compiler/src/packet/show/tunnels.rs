//! Labels, and tunnels behind UDP, with what is inside. In: what is left of a frame. Out: layers. Never: what programs declare.

use std::fmt::Write;

use super::{Bytes, ethernet, ipv4, ipv6, number};

/// Labels of MPLS, and the IP packet behind the last, if it looks like one.
pub fn mpls(rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    while let Some(label) = rest.take(4).map(number) {
        let last = label >> 8 & 1;
        let mut text = format!("mpls(label = {}", label >> 12);
        if label >> 9 & 7 != 0 {
            let _ = write!(text, ", tc = {}", label >> 9 & 7); // writing to a string does not fail
        }
        layers.push(format!("{text}, bos = {last}, ttl = {})", label & 0xff));
        if last == 1 {
            return ip(rest, layers);
        }
    }
}

/// What stands behind a UDP header to this port.
pub fn behind_udp(port: u64, rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    match port {
        4789 => {
            let Some(head) = rest.take(8) else { return };
            layers.push(format!("vxlan(vni = {})", number(&head[4..7])));
            ethernet(rest, layers);
        }
        2152 => {
            // Options are left as bytes.
            let Some(head) = rest.take(8) else { return };
            let (flags, kind) = (head[0], head[1]);
            let mut text = format!("gtpu(teid = {}", number(&head[4..8]));
            if kind != 255 {
                let _ = write!(text, ", type = {kind}");
            }
            layers.push(text + ")");
            if flags & 7 == 0 && kind == 255 {
                ip(rest, layers);
            }
        }
        _ => {}
    }
}

fn ip(rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    match rest.0.first().map(|byte| byte >> 4) {
        Some(4) => ipv4(rest, layers),
        Some(6) => ipv6(rest, layers),
        _ => {}
    }
}
