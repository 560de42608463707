//! An explanation as a text for people.

use std::fmt::Write;

use super::{Cycles, Explanation, Merged, Place, Table};

impl Explanation {
    /// The whole explanation, or, with a table's name, what it says of that table.
    pub fn text(&self, table: Option<&str>) -> String {
        let mut out = String::new();
        for each in self.tables.iter().filter(|each| table.is_none_or(|name| each.table == name)) {
            each.write(&self.tables, &mut out);
        }
        let about = |name: &str| table.is_none_or(|table| name == table);
        if table.is_none() {
            self.write_order(&mut out);
        }
        let points: Vec<_> = self.points.iter().filter(|point| about(&point.table)).collect();
        if !points.is_empty() {
            out.push_str("\npackets wait for their turn\n");
        }
        for point in points {
            let prepared = match point.prepared_zone {
                Some(zone) => format!("; looked up ahead for the burst in zone {zone}"),
                None if point.waits_for == "connection tracking" => "; not looked up ahead".to_string(),
                None => String::new(),
            };
            line(
                &mut out,
                1,
                &format!("point {}, in table {}: {}{prepared}", point.point, point.table, point.waits_for),
            );
        }
        let copies: Vec<_> = self.copies.iter().filter(|copy| about(&copy.table)).collect();
        if copies.is_empty() && table.is_none() {
            out.push_str("\npackets are never copied\n");
        } else if !copies.is_empty() {
            out.push_str("\npackets are copied\n");
        }
        for copy in copies {
            line(&mut out, 1, &format!("table {}, in {}: {}", copy.table, copy.body, copy.why));
        }
        if table.is_none() {
            out.push_str("\nestimated cycles of a packet, with receiving and sending it\n");
            for path in &self.paths {
                line(&mut out, 1, &format!("{}: {}", path.through.join(", "), cycles(path.estimated_cycles)));
            }
            out.push_str(
                "estimates add up prices of steps; they know nothing of caches that miss and branches that surprise\n",
            );
        }
        out
    }

    fn write_order(&self, out: &mut String) {
        out.push_str("\nwhat runs when, and what it reads\n");
        if let Some(why) = &self.in_order {
            line(out, 1, &format!("nothing runs ahead for the burst: {why}"));
        }
        for part in &self.bodies {
            line(out, 1, &format!("{}: {}", part.body, part.runs));
            let list = |names: &[String]| if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
            let headers: Vec<String> = part.headers.iter().map(|name| (*name).to_string()).collect();
            line(out, 2, &format!("parses {}", list(&headers)));
            line(out, 2, &format!("reads {}", list(&part.reads)));
        }
    }
}

impl Table {
    /// Whether another is part of it.
    fn has(&self, other: &String) -> bool {
        self.merged.as_ref().is_some_and(|merged| merged.with.contains(other))
    }

    fn write(&self, all: &[Table], out: &mut String) {
        match &self.keyed {
            Some(keyed) => {
                line(out, 0, &format!("table {}: {}", self.table, keyed.title()));
                keyed.lines().iter().for_each(|text| line(out, 1, text));
            }
            None => line(out, 0, &format!("table {}: {}", self.table, super::count(self.rules, "rule"))),
        }
        if let Some(Merged { with, rules, cycles, apart }) = &self.merged {
            line(out, 1, &format!("one with what its rules go on to: {}", with.join(", ")));
            line(out, 2, &format!("{rules} rules together; predicted {cycles} cycles a packet, apart {apart}"));
        }
        if self.places.is_empty() {
            let part_of: Vec<&str> = all.iter().filter(|t| t.has(&self.table)).map(|t| t.table.as_str()).collect();
            match part_of[..] {
                [] => line(out, 1, "no packet reaches it: there is no code for it"),
                _ => line(out, 1, &format!("part of {}: there is no code for it alone", part_of.join(", "))),
            }
        }
        let rules = self.merged.as_ref().map_or(self.rules, |merged| merged.rules);
        for place in &self.places {
            place.write(rules, out);
        }
    }
}

impl Place {
    fn write(&self, rules: usize, out: &mut String) {
        let open = if self.open_rules == rules || self.classifier == "call" {
            String::new()
        } else {
            format!(" ({} of them may still be taken)", self.open_rules)
        };
        let times = if self.times == 1 { String::new() } else { format!(", {} times alike", self.times) };
        line(out, 1, &format!("in {}: {}{open}{times}", self.body, self.classifier));
        line(out, 2, &self.why);
        for rejected in &self.rejected {
            line(out, 2, &format!("not {}: {}", rejected.classifier, rejected.why));
        }
        if let Some(data) = &self.data {
            let (entries, masks) = (super::count(data.entries, "entry"), super::count(data.masks, "mask"));
            let entries = entries.replace("entrys", "entries");
            let words = super::count(data.key_words, "word");
            line(out, 2, &format!("{entries}, {masks}, a key of {words}, {}", bytes(data.memory)));
        }
        line(out, 2, &format!("at the most {}; estimated {} cycles", self.worst_case, cycles(self.estimated_cycles)));
    }
}

fn line(out: &mut String, level: usize, text: &str) {
    let indent = 2 * level;
    let _ = writeln!(out, "{:indent$}{text}", ""); // writing to a string does not fail
}

fn cycles(cycles: Cycles) -> String {
    match cycles.least == cycles.most {
        true => cycles.most.to_string(),
        false => format!("{} to {}", cycles.least, cycles.most),
    }
}

fn bytes(n: usize) -> String {
    match n {
        0..=9_999 => format!("{n} bytes"),
        10_000..=9_999_999 => format!("{} KiB", n.div_ceil(1024)),
        _ => format!("{} MiB", n.div_ceil(1024 * 1024)),
    }
}
