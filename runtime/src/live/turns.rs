//! Whose turn it is to be polled: queues that packets come from in every round, the others in every thirty-second.
//!
//! In: what each poll brought. Out: places of queues. Never: a queue that is left out for good.
//!
//! A queue is quiet once it has been empty in [`PATIENCE`] rounds on end, and busy again from its first packet on, which waits
//! for [`QUIET_TURNS`] rounds, or twice as many if others change places meanwhile: some microseconds where others are busy, and
//! less where none is.

/// Empty rounds after which a queue is quiet.
const PATIENCE: u8 = 64;
/// Rounds in which each quiet queue is polled once.
const QUIET_TURNS: usize = 32;

/// The order of one worker's queues.
#[derive(Debug)]
pub struct Turns {
    /// Places, the busy ones first; with each how often it was empty on end.
    order: Vec<(u32, u8)>,
    /// How many are busy.
    busy: usize,
    /// Which quiet one comes next, counted from the first of them.
    hand: usize,
    /// What is polled now, and up to where.
    at: usize,
    /// Quiet ones that are still to be polled in this round, and what is due of one more, in [`QUIET_TURNS`]ths.
    left: usize,
    due: usize,
}

impl Turns {
    /// Of so many queues, all of them busy.
    pub fn new(queues: usize) -> Turns {
        let order = (0..queues as u32).map(|place| (place, 0)).collect();
        Turns { order, busy: queues, hand: 0, at: 0, left: 0, due: 0 }
    }

    /// A round begins.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.at = usize::MAX;
        let quiet = self.order.len() - self.busy;
        self.due += quiet;
        self.left = self.due / QUIET_TURNS;
        self.due %= QUIET_TURNS;
        if self.busy == 0 {
            self.left = quiet.div_ceil(QUIET_TURNS); // there is nothing else to do
        }
    }

    /// The place of the queue to poll next.
    #[inline(always)]
    pub fn next(&mut self) -> Option<usize> {
        let next = self.at.wrapping_add(1);
        if next < self.busy {
            self.at = next;
        } else {
            self.at = self.next_quiet()?;
        }
        Some(self.order[self.at].0 as usize)
    }

    #[inline(always)]
    fn next_quiet(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let quiet = self.order.len() - self.busy;
        let next = self.hand.wrapping_add(1);
        self.hand = if next < quiet { next } else { 0 };
        (quiet > 0).then_some(self.busy + self.hand)
    }

    /// The queue just polled had packets.
    #[inline(always)]
    pub fn was_busy(&mut self) {
        self.order[self.at].1 = 0;
        if self.at >= self.busy {
            self.wake();
        }
    }

    /// The queue just polled was empty.
    #[inline(always)]
    pub fn was_empty(&mut self) {
        if self.at < self.busy {
            self.order[self.at].1 += 1;
            if self.order[self.at].1 >= PATIENCE {
                self.rest();
            }
        }
    }

    /// A quiet queue becomes busy; the first quiet one, which has had its turn, takes its place.
    #[cold]
    fn wake(&mut self) {
        self.order.swap(self.at, self.busy);
        self.busy += 1;
        self.hand = self.hand.wrapping_sub(1); // the quiet ones begin one place later
        self.at = self.order.len(); // past the busy ones: it has been polled
    }

    /// A busy queue becomes quiet; the last busy one takes its place, and its turn.
    #[cold]
    fn rest(&mut self) {
        self.busy -= 1;
        self.order.swap(self.at, self.busy);
        self.hand = self.hand.wrapping_add(1); // the quiet ones begin one place earlier
        self.at = self.at.wrapping_sub(1);
        self.left = 0; // it has been polled in this round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls a round; `busy` says which queues have packets. Which were polled.
    fn round(turns: &mut Turns, busy: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut polled = Vec::new();
        turns.begin();
        while let Some(place) = turns.next() {
            polled.push(place);
            if busy(place) {
                turns.was_busy()
            } else {
                turns.was_empty()
            }
            assert!(polled.len() <= 64, "a round ends");
        }
        polled
    }

    #[test]
    fn busy_queues_are_polled_in_every_round() {
        let mut turns = Turns::new(40);
        assert_eq!(round(&mut turns, |_| true), (0..40).collect::<Vec<_>>());
        for _ in 0..PATIENCE {
            round(&mut turns, |place| place % 20 == 3);
        }
        for _ in 0..100 {
            let polled = round(&mut turns, |place| place % 20 == 3);
            assert!(polled.contains(&3) && polled.contains(&23), "{polled:?}");
            assert!(polled.len() <= 2 + 3, "{polled:?}");
        }
    }

    #[test]
    fn a_quiet_queue_is_found_within_its_rounds() {
        let mut turns = Turns::new(33);
        (0..=PATIENCE).for_each(|_| drop(round(&mut turns, |place| place == 0)));
        for woken in 1..33 {
            let found = (0..=2 * QUIET_TURNS).any(|_| round(&mut turns, |place| place == woken).contains(&woken));
            assert!(found, "{woken}");
            assert!(round(&mut turns, |place| place == woken).contains(&woken), "and is polled from then on");
        }
    }

    #[test]
    fn none_is_polled_twice_in_a_round_and_none_is_lost() {
        let mut turns = Turns::new(5);
        let mut seed = 1u32;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            let bits = seed >> (seed >> 28 & 7);
            let mut polled = round(&mut turns, |place| bits >> (3 * place) & 7 == 0);
            polled.sort_unstable();
            let count = polled.len();
            polled.dedup();
            assert_eq!(polled.len(), count);
            let mut places: Vec<u32> = turns.order.iter().map(|(place, _)| *place).collect();
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4]);
        }
        let none = &mut Turns::new(0);
        assert!(round(none, |_| true).is_empty());
    }
}
