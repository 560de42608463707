//! Waits for ports and gives each its frames.
//!
//! In: captures by name of device. Out: receive callbacks. Never: a port whose device has no capture.

use std::ffi::CString;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::frames::{Frames, Split};
use crate::receive::{Queue, on_rx};

/// How long to wait before looking for ports again.
const PAUSE: Duration = Duration::from_micros(500);

/// The frames for one device.
pub struct Capture {
    device: CString,
    frames: Arc<Frames>,
    /// The port they are attached to.
    port: Option<u16>,
}

impl Capture {
    /// Frames for the device of this name, not attached yet.
    pub fn new(device: &str, frames: Arc<Frames>) -> Capture {
        Capture { device: CString::new(device).unwrap_or_default(), frames, port: None }
    }
}

/// Attaches captures to ports as these appear, for as long as the process lives.
pub fn watch(mut captures: Vec<Capture>, split: Split) {
    loop {
        for capture in &mut captures {
            match capture.port {
                Some(port) if !is_valid(port) => capture.port = None, // it was closed, and may come again
                Some(_) => {}
                None => {
                    capture.port = find(capture)
                        .filter(|(port, queues)| attach(capture, *port, *queues, split))
                        .map(|found| found.0)
                }
            }
        }
        thread::sleep(PAUSE);
    }
}

fn is_valid(port: u16) -> bool {
    // SAFETY: reads the table of ports, for any number.
    unsafe { dpdk_sys::rte_eth_dev_is_valid_port(port) != 0 }
}

/// The port of a capture's device and how many receive queues it has, once it has any.
fn find(capture: &Capture) -> Option<(u16, u16)> {
    let mut port = 0;
    // SAFETY: a name with its terminator, and a place for the number.
    if unsafe { dpdk_sys::rte_eth_dev_get_port_by_name(capture.device.as_ptr(), &raw mut port) } != 0 {
        return None;
    }
    // SAFETY: plain numbers and pointers, of which all zeros is a value.
    let mut info = unsafe { std::mem::zeroed() };
    // SAFETY: writes what is known of the port, which must not be valid any more.
    let result = unsafe { dpdk_sys::rte_eth_dev_info_get(port, &raw mut info) };
    (result == 0 && info.nb_rx_queues > 0).then_some((port, info.nb_rx_queues))
}

/// Adds a callback to each queue of a port; false, with nothing added, while the port does not take any.
fn attach(capture: &Capture, port: u16, queues: u16, split: Split) -> bool {
    let name = capture.device.to_string_lossy();
    for number in 0..queues {
        let frames = match queues {
            1 => capture.frames.clone(),
            _ => Arc::new(capture.frames.share(u32::from(number), u32::from(queues), split)),
        };
        let queue = Box::into_raw(Box::new(Queue::new(frames))); // the port may read it for as long as the process lives
        // SAFETY: the queue lives for good and is used by this callback alone.
        let added = unsafe { dpdk_sys::rte_eth_add_rx_callback(port, number, Some(on_rx), queue.cast()) };
        if added.is_null() {
            // SAFETY: the queue came from a box, and no callback knows of it.
            drop(unsafe { Box::from_raw(queue) });
            if number > 0 {
                crate::tell(&format!("{name}: queue {number} takes no callback; it receives blank frames"));
                continue;
            }
            return false;
        }
    }
    crate::tell(&format!("{name}: {} frames over {queues} queue(s)", capture.frames.count()));
    true
}
