//! Outputs to ports, known or computed: which are left out, and why.

use pipec_abi::{DropReason, Emit, Env};

use super::event::Event;
use super::machine::Machine;
use crate::hir::{PortId, Value};

impl<E: Env + ?Sized> Machine<'_, E> {
    /// Sends the packet, or what `max_len` leaves of it, unless it came in by this port.
    pub(super) fn output(&mut self, port: PortId, max_len: Option<u16>) {
        if port.0 == self.burst.in_port(self.i) {
            self.tell(Event::LeftOut(port));
            self.reason(DropReason::InPort);
            return;
        }
        match max_len {
            None => {
                self.tell(Event::Output(port));
                self.env.emit(self.ctx, self.burst, self.i, port.0, Emit::Copy);
            }
            Some(max_len) => {
                self.tell(Event::Part(port, max_len));
                self.env.emit_part(self.ctx, self.burst, self.i, port.0, max_len);
            }
        }
    }

    /// The same, with the port's OpenFlow number.
    pub(super) fn output_to(&mut self, number: &Value, max_len: Option<u16>) {
        let number = self.value(number);
        match self.program.port_numbered(number) {
            Some(port) => self.output(port, max_len),
            None => {
                self.tell(Event::NoPort(number as u64));
                self.reason(DropReason::NoPort);
            }
        }
    }

    /// The OpenFlow number of a port.
    pub(super) fn number_of(&self, port: u16) -> u16 {
        self.program.ports.get(usize::from(port)).map_or(0, |port| port.number as u16)
    }
}
