//! The options of `pipec run` and of built programs. What they mean is said here; `ports` reads the ports, `host` acts.

use std::str::FromStr;
use std::time::Duration;

/// How to run a program on ports.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "host", derive(clap::Args))]
pub struct RunOptions {
    /// Attach a port (repeatable): NAME is a port of the program, KIND one of tap:IFACE, af_packet:IFACE, af_xdp:IFACE,
    /// pci:ADDRESS, vhost:PATH, virtio-user:PATH, memif:PATH, ring, null, pcap:RX[,TX] or devargs:DEVARGS
    #[cfg_attr(feature = "host", arg(long = "port", value_name = "NAME=KIND"))]
    pub ports: Vec<String>,

    /// Processors to run on, such as 1,3-5: one worker on each [default: one worker on the last processor allowed]
    #[cfg_attr(feature = "host", arg(long, value_name = "LIST"))]
    pub cpus: Option<Cpus>,

    /// An argument for DPDK's EAL, handed on as it is (repeatable)
    #[cfg_attr(feature = "host", arg(long = "eal", value_name = "ARG", allow_hyphen_values = true))]
    pub eal: Vec<String>,

    /// Stop after N seconds, counted from the end of the warm-up; without it, when a signal comes
    #[cfg_attr(feature = "host", arg(long, value_name = "N", value_parser = seconds))]
    pub secs: Option<Duration>,

    /// Discard what is counted in the first S seconds
    #[cfg_attr(feature = "host", arg(long, value_name = "S", value_parser = seconds))]
    pub warm: Option<Duration>,

    /// How to print what was counted, at the end
    #[cfg_attr(feature = "host", arg(long, value_name = "FORMAT", value_enum, default_value_t))]
    pub stats: StatsFormat,

    /// Print neither the live line nor the summary
    #[cfg_attr(feature = "host", arg(long))]
    pub quiet: bool,
}

/// How to print what was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "host", derive(clap::ValueEnum))]
pub enum StatsFormat {
    /// Tables for people
    #[default]
    Text,
    /// One line of JSON
    Json,
}

/// Processors, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        let mut cpus = Vec::new();
        for item in text.split(',') {
            let (low, high) = item.split_once('-').unwrap_or((item, item));
            let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n < 4096);
            let range = number(low).zip(number(high)).filter(|(low, high)| low <= high);
            let Some((low, high)) = range else {
                return Err(format!("expected processors such as `1` or `1,3-5`, found `{item}`"));
            };
            for cpu in low..=high {
                if cpus.contains(&cpu) {
                    return Err(format!("processor {cpu} is named twice; each takes one worker"));
                }
                cpus.push(cpu);
            }
        }
        Ok(Cpus(cpus))
    }
}

/// A number of seconds, with decimals.
#[cfg(feature = "host")]
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds, such as 10 or 0.5".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!("2".parse(), Ok(Cpus(vec![2])));
        assert_eq!("4,1-3".parse(), Ok(Cpus(vec![4, 1, 2, 3])));
        for bad in ["", "a", "1,", "3-1", "1-", "-1", "1,1", "0-2,1", "0-99999"] {
            assert!(bad.parse::<Cpus>().is_err(), "{bad}");
        }
    }
}
