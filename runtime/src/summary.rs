//! What a run counted, as tables for people. In: [`Stats`]. Out: text. Never prints.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};
use pipec_abi::Counter;
use pipec_abi::meta::Meta;

use crate::stats::Stats;

/// Ports, what passed, and what was dropped and why.
pub fn summary(stats: &Stats) -> String {
    let mut text = ports(stats).trim_fmt() + "\n";
    let ledger = &stats.ledger;
    text += &format!("received {}: forwarded {}", ledger.received, ledger.forwarded);
    if ledger.consumed > 0 {
        text += &format!(", consumed {}", ledger.consumed);
    }
    text += &format!(", dropped {}", ledger.dropped);
    if ledger.copies_made > 0 {
        text += &format!("; copies made {}, sent {}", ledger.copies_made, ledger.copies_sent);
    }
    if stats.punted > 0 {
        text += &format!("; to the controller {}", stats.punted);
    }
    text += &format!("; {:.3} s\n", stats.seconds);
    if stats.drops.total() > 0 {
        text += &format!("\n{}\n", drops(stats).trim_fmt());
    }
    if !stats.counters.is_empty() {
        text += &format!("\n{}\n", counters(stats).trim_fmt());
    }
    if !stats.workers.is_empty() {
        text += &format!("\n{}\n", workers(stats).trim_fmt());
    }
    text
}

/// Packets and bytes of each rule, table by table.
pub fn rules(meta: &Meta, counters: &[Counter]) -> String {
    let mut table = plain(&["table", "priority ", "rule", "packets ", "bytes "]);
    for (of_table, sums) in meta.tables.iter().zip(meta.by_rule(counters)) {
        let rules = of_table.rules.iter().map(|rule| (rule.priority.to_string(), rule.text.trim_end_matches(';')));
        let rules = rules.chain([(String::new(), "(no rule matched)")]);
        for ((priority, text), sum) in rules.zip(sums) {
            if priority.is_empty() && sum.packets == 0 {
                continue;
            }
            let name = Cell::new(&of_table.name);
            table.add_row([name, number(priority), Cell::new(text), number(sum.packets), number(sum.bytes)]);
        }
    }
    table.trim_fmt() + "\n"
}

fn ports(stats: &Stats) -> Table {
    let mut table = plain(&["port", "received ", "bytes ", "sent ", "bytes ", "dropped "]);
    for port in &stats.ports {
        let name = match port.number.to_string() == port.name {
            true => port.name.clone(),
            false => format!("{} ({})", port.name, port.number),
        };
        let counts = [port.rx_packets, port.rx_bytes, port.tx_packets, port.tx_bytes, port.drops.total()];
        table.add_row(std::iter::once(Cell::new(name)).chain(counts.map(number)));
    }
    table
}

fn drops(stats: &Stats) -> Table {
    let mut table = plain(&["dropped", "at port", "packets ", "why"]);
    for (reason, _) in stats.drops.iter() {
        for port in stats.ports.iter().filter(|port| port.drops.get(reason) > 0) {
            let cells = [Cell::new(reason.name()), Cell::new(&port.name), number(port.drops.get(reason))];
            table.add_row(cells.into_iter().chain([Cell::new(reason.describe())]));
        }
    }
    table
}

fn counters(stats: &Stats) -> Table {
    let mut table = plain(&["counted", "packets ", "bytes "]);
    for counter in &stats.counters {
        table.add_row([Cell::new(&counter.name), number(counter.packets), number(counter.bytes)]);
    }
    table
}

fn workers(stats: &Stats) -> Table {
    let mut table = plain(&["processor ", "packets ", "busy ", "cycles/packet ", "polls "]);
    for worker in &stats.workers {
        let cycles = worker.busy_cycles + worker.idle_cycles;
        let busy = worker.busy_cycles as f64 * 100.0 / cycles.max(1) as f64;
        let each = worker.busy_cycles as f64 / worker.packets.max(1) as f64;
        table.add_row([
            number(worker.cpu),
            number(worker.packets),
            number(format!("{busy:.1} %")),
            number(format!("{each:.0}")),
            number(worker.polls),
        ]);
    }
    table
}

/// An empty table; a head that ends with a space belongs to a column of numbers and stands on the right.
fn plain(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─')));
    table.set_header(heads.iter().map(|head| match head.strip_suffix(' ') {
        Some(head) => number(head),
        None => Cell::new(head),
    }));
    table
}

fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use pipec_abi::DropReason;
    use pipec_abi::meta::{CounterMeta, RuleMeta, TableMeta};

    use super::*;
    use crate::stats::{Ledger, NamedCounter, PortStats, WorkerStats};

    #[test]
    fn the_summary_says_what_passed_and_why_packets_were_dropped() {
        let mut stats = Stats { seconds: 2.0, ..Stats::default() };
        stats.ports =
            vec![PortStats { name: "lan".into(), number: 1, rx_packets: 5, rx_bytes: 300, ..PortStats::default() }];
        stats.ports[0].drops.add(DropReason::Ttl, 2);
        stats.drops = stats.ports[0].drops;
        stats.ledger = Ledger { received: 5, forwarded: 3, dropped: 2, ..Ledger::default() };
        let text = summary(&stats);
        for part in ["lan (1)", "300", "received 5: forwarded 3, dropped 2; 2.000 s", "ttl", "dec_ttl met"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("processor") && !text.contains("counted") && !text.contains("controller"));
        stats.counters = vec![NamedCounter { name: "denied".into(), packets: 2, bytes: 4711 }];
        stats.punted = 17;
        for part in ["denied", "4711", "to the controller 17;"] {
            assert!(summary(&stats).contains(part), "{part}");
        }
        stats.workers =
            vec![WorkerStats { cpu: 7, busy_cycles: 30, idle_cycles: 10, packets: 3, ..WorkerStats::default() }];
        assert!(summary(&stats).contains("75.0 %"));
    }

    #[test]
    fn rules_show_what_they_matched() {
        let rule = |text: &str| RuleMeta { priority: 9, text: text.into() };
        let tables =
            vec![TableMeta { name: "t".into(), rules: vec![rule("arp => drop"), rule("ip => normal")], keyed: None }];
        let counters =
            vec![CounterMeta { rules: vec![(0, 1)], name: None }, CounterMeta { rules: vec![(0, 2)], name: None }];
        let meta = Meta { name: "p".into(), tables, counters, vlan_limit: 1, ..Meta::default() };
        let text = rules(&meta, &[Counter { packets: 41, bytes: 4100 }, Counter::default()]);
        assert!(text.contains("arp => drop") && text.contains("4100"), "{text}");
        assert!(!text.contains("no rule matched"), "{text}");
        let text = rules(&meta, &[Counter::default(), Counter { packets: 17, bytes: 1 }]);
        assert!(text.contains("no rule matched") && text.contains("17"), "{text}");
    }
}
