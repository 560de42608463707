//! Workloads on disk, as engines want them.
//!
//! In: a workload that is made now, or a folder with `NAME.flows`, `NAME.0.pcap` and perhaps `NAME.1.pcap`, made elsewhere.
//! Out: a folder of its own with captures named by the devices that receive them. Never: a capture left from another run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pipec_runtime::pcap::{Resolution, Writer};

use super::{Content, Size, Workload};
use crate::Error;
use crate::frames::Frame;

/// Ports that DPDK takes, as it is built here.
pub const MOST_PORTS: u32 = dpdk_sys::RTE_MAX_ETHPORTS;

/// What ports are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Through {
    /// DPDK's `net_null`, which receives without end.
    #[default]
    Null,
    /// DPDK's `net_ring`, at whose other side the traffic source sends and receives.
    Rings,
}

/// A workload on disk.
#[derive(Clone, Debug)]
pub struct Files {
    /// Which one.
    pub workload: Workload,
    /// Where captures lie, `net_nullK.pcap` for the device of that name.
    pub folder: PathBuf,
    /// The rules.
    pub rules: PathBuf,
    /// How many ports receive frames: the first, or the first two.
    pub receiving: u32,
    /// What the ports are made of.
    pub through: Through,
}

impl Files {
    /// Writes a workload into a folder of its name below `folder`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(workload: Workload, folder: &Path) -> Result<Files, Error> {
        let folder = empty(workload, folder)?;
        let rules = folder.join("rules.flows");
        let Content { rules: text, frames } = workload.make();
        fs::write(&rules, text).map_err(|error| Error::file(&rules, &error))?;
        for (port, frames) in frames.iter().enumerate() {
            write_capture(&folder, port, frames, workload.size)?;
        }
        Ok(Files { workload, folder, rules, receiving: frames.len() as u32, through: Through::Null })
    }

    /// Takes a workload that was made elsewhere as it is. What engines make on the way goes into a folder of its name below
    /// `folder`.
    ///
    /// # Errors
    /// When its rules or its first capture are not there.
    pub fn found(workload: Workload, elsewhere: &Path, folder: &Path) -> Result<Files, Error> {
        let at = |end: &str| elsewhere.join(format!("{workload}.{end}"));
        let absolute = |path: PathBuf| fs::canonicalize(&path).map_err(|error| Error::file(&path, &error));
        let rules = absolute(at("flows"))?;
        let mut captures = vec![absolute(at("0.pcap"))?];
        if at("1.pcap").exists() {
            captures.push(absolute(at("1.pcap"))?);
        }
        let folder = empty(workload, folder)?;
        for (port, path) in captures.iter().enumerate() {
            let link = capture(&folder, port);
            symlink(path, &link).map_err(|error| Error::file(&link, &error))?;
        }
        Ok(Files { workload, folder, rules, receiving: captures.len() as u32, through: Through::Null })
    }

    /// The same workload through ring ports.
    #[must_use]
    pub fn through_rings(&self) -> Files {
        Files { through: Through::Rings, ..self.clone() }
    }

    /// The DPDK devices behind ports 1 and up: those that receive frames, and those that only send; no more than
    /// DPDK takes.
    pub fn devices(&self) -> Vec<String> {
        if self.through == Through::Rings {
            return (0..self.workload.ports().min(MOST_PORTS)).map(|i| format!("net_ring{i}")).collect();
        }
        let quiet = |i| if i < self.receiving { "" } else { ",no-rx=1" };
        (0..self.workload.ports().min(MOST_PORTS)).map(|i| format!("net_null{i}{}", quiet(i))).collect()
    }
}

/// Writes what the device of this number receives.
pub(crate) fn write_capture(folder: &Path, port: usize, frames: &[Frame], size: Size) -> Result<(), Error> {
    let failed = |error| Error::Failed(format!("{error}"));
    let mut writer = Writer::create(&capture(folder, port), Resolution::Micro).map_err(failed)?;
    for (i, frame) in frames.iter().enumerate() {
        writer.write(0, &size.stretch(frame, i)).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

/// What the device of this number receives.
fn capture(folder: &Path, port: usize) -> PathBuf {
    folder.join(format!("net_null{port}.pcap"))
}

/// A folder for the workload, without captures.
fn empty(workload: Workload, folder: &Path) -> Result<PathBuf, Error> {
    let folder = folder.join(workload.to_string());
    fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, &error))?;
    for port in 0..2 {
        let path = capture(&folder, port);
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).map_err(|error| Error::file(&path, &error))?;
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_made_elsewhere_are_taken_as_they_are() {
        let folder = std::env::temp_dir().join(format!("pipec-bench-files-{}", std::process::id()));
        let workload: Workload = "acl-10".parse().unwrap();
        fs::create_dir_all(&folder).unwrap();
        let message = Files::found(workload, &folder, &folder.join("a")).unwrap_err().to_string();
        assert!(message.contains("acl-10.flows"), "{message}");
        fs::write(folder.join("acl-10.flows"), "actions=drop\n").unwrap();
        for end in ["0.pcap", "1.pcap"] {
            fs::write(folder.join(format!("acl-10.{end}")), end).unwrap();
        }
        let two = Files::found(workload, &folder, &folder.join("a")).unwrap();
        assert_eq!((two.receiving, fs::read_to_string(&two.rules).unwrap()), (2, "actions=drop\n".to_string()));
        assert_eq!(fs::read_to_string(two.folder.join("net_null1.pcap")).unwrap(), "1.pcap");
        fs::remove_file(folder.join("acl-10.1.pcap")).unwrap();
        let one = Files::found(workload, &folder, &folder.join("a")).unwrap();
        assert_eq!(one.devices(), ["net_null0", "net_null1,no-rx=1"]);
        assert_eq!((one.receiving, one.folder.join("net_null1.pcap").exists()), (1, false));
        fs::remove_dir_all(&folder).unwrap();
    }
}
