//! The line that a long run shows: what each port receives, sends and drops a second. In: counts. Out: text on the terminal,
//! or nothing where standard error is none.

use crate::stats::Stats;

/// Rates per port, on one line of the terminal. Nothing where standard error is no terminal.
pub struct LiveLine {
    bar: indicatif::ProgressBar,
    before: Stats,
}

impl LiveLine {
    /// A line, or with `quiet` nothing.
    pub fn new(quiet: bool) -> LiveLine {
        let bar = match quiet {
            true => indicatif::ProgressBar::hidden(),
            false => indicatif::ProgressBar::new_spinner(),
        };
        if let Ok(style) = indicatif::ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        LiveLine { bar, before: Stats::default() }
    }

    /// Shows the rates since the line changed last, at most once a second.
    pub fn update(&mut self, stats: &Stats) {
        let since = stats.seconds - self.before.seconds;
        if (0.0..0.95).contains(&since) {
            return;
        }
        self.bar.set_message(rates(&self.before, stats));
        self.before = stats.clone();
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What each port received, sent and dropped a second between two counts.
fn rates(before: &Stats, now: &Stats) -> String {
    let seconds = if now.seconds > before.seconds { now.seconds - before.seconds } else { now.seconds.max(1e-9) };
    let mut line = format!("{:.0} s, packets/s", now.seconds);
    for (i, port) in now.ports.iter().enumerate() {
        let old = before.ports.get(i).cloned().unwrap_or_default();
        let rate = |now: u64, old: u64| human((now.saturating_sub(old)) as f64 / seconds);
        let rx = rate(port.rx_packets, old.rx_packets);
        let tx = rate(port.tx_packets, old.tx_packets);
        line += &format!(" | {} rx {rx} tx {tx}", port.name);
        let drops = port.drops.total().saturating_sub(old.drops.total());
        if drops > 0 {
            line += &format!(" drop {}", human(drops as f64 / seconds));
        }
    }
    line
}

/// A rate in three or four digits.
fn human(rate: f64) -> String {
    match rate {
        r if r >= 1e6 => format!("{:.2}M", r / 1e6),
        r if r >= 1e3 => format!("{:.1}k", r / 1e3),
        r => format!("{r:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::PortStats;

    fn stats(seconds: f64, rx: u64) -> Stats {
        let port = PortStats { name: "lan".into(), rx_packets: rx, ..PortStats::default() };
        Stats { seconds, ports: vec![port], ..Stats::default() }
    }

    #[test]
    fn rates_are_of_the_time_between() {
        assert_eq!(rates(&Stats::default(), &stats(2.0, 5_000)), "2 s, packets/s | lan rx 2.5k tx 0");
        assert_eq!(rates(&stats(2.0, 5_000), &stats(3.0, 3_005_000)), "3 s, packets/s | lan rx 3.00M tx 0");
    }
}
