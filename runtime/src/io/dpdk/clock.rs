//! The processor's time-stamp counter, and time made from it.

/// The counter now.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: reads the generic timer; no memory is touched.
    return unsafe { dpdk_sys::shim_cycles() };
}

/// Turns cycles into nanoseconds since the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: u64,
    hz: u64,
    /// Nanoseconds a cycle, times 2^32.
    scale: u64,
}

impl Clock {
    /// A clock that starts now. The EAL has started, which measures the counter's rate.
    pub fn start(_eal: &super::Eal) -> Clock {
        // SAFETY: the EAL has started.
        let hz = unsafe { dpdk_sys::rte_get_tsc_hz() }.max(1);
        Clock { start: cycles(), hz, scale: ((1_000_000_000u128 << 32) / u128::from(hz)) as u64 }
    }

    /// Nanoseconds from the start to a reading of [`cycles`].
    #[inline(always)]
    pub fn ns(&self, cycles: u64) -> u64 {
        ((u128::from(cycles.wrapping_sub(self.start)) * u128::from(self.scale)) >> 32) as u64
    }

    /// Cycles a second.
    pub fn hz(&self) -> u64 {
        self.hz
    }
}
