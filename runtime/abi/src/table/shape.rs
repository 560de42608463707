//! What the code of an open table depends on: the parts of its key, how they are matched, and how wide its arguments are.
//! Entries are data and come and go; the shape stays.

/// Words of arguments that an entry has at the most.
pub const MAX_ARGS: usize = 16;

/// How a part of a key is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MatchKind {
    /// The value.
    Exact = 0,
    /// A prefix; the longest wins.
    Lpm = 1,
    /// A value under a mask.
    Ternary = 2,
    /// From a value to a value.
    Range = 3,
    /// A value, or any.
    Optional = 4,
}

impl MatchKind {
    /// All kinds with their names in sources.
    pub const NAMES: [(&'static str, MatchKind); 5] = [
        ("exact", MatchKind::Exact),
        ("lpm", MatchKind::Lpm),
        ("ternary", MatchKind::Ternary),
        ("range", MatchKind::Range),
        ("optional", MatchKind::Optional),
    ];

    /// The name in sources.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<MatchKind> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, kind)| *kind)
    }

    /// Whether entries with such a part may overlap without one being inside the other, so that they may have priorities.
    pub fn has_priority(self) -> bool {
        !matches!(self, MatchKind::Exact | MatchKind::Lpm)
    }
}

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its bits, 1 to 128.
    pub width: u8,
    /// How it is matched.
    pub kind: MatchKind,
}

/// What an entry wants of a part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// `key & mask == value`; `value & !mask == 0`.
    Masked {
        /// The value.
        value: u128,
        /// The bits that matter.
        mask: u128,
    },
    /// `low <= key <= high`.
    Range {
        /// The least.
        low: u128,
        /// The greatest.
        high: u128,
    },
}

impl KeyMatch {
    /// Whether a value is wanted.
    pub fn holds(self, key: u128) -> bool {
        match self {
            KeyMatch::Masked { value, mask } => key & mask == value,
            KeyMatch::Range { low, high } => (low..=high).contains(&key),
        }
    }
}

/// All ones of a width.
pub fn ones(width: u8) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Where a part lies in the words of a key: its lowest bits from `shift` of `word` on; bits from 64 on in the word behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The word.
    pub word: usize,
    /// The first bit.
    pub shift: u32,
}

/// The shape of an open table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The parts of the key.
    pub parts: Vec<Part>,
    /// Words of arguments of its widest action.
    pub args: u8,
    /// Entries it holds at the most.
    pub size: u32,
    /// Entries not used for so long are gone; 0: never.
    pub idle_ns: u64,
    /// Entries are gone after so long; 0: never.
    pub hard_ns: u64,
    /// Some entry of the program's has times of its own.
    pub timed_entries: bool,
    /// Packets make its entries.
    pub learned: bool,
}

impl Shape {
    /// Where each part lies: wide ones first, each in as few words as it needs.
    pub fn slots(&self) -> Vec<Slot> {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|&part| core::cmp::Reverse(self.parts[part].width));
        let mut used: Vec<u32> = Vec::new(); // bits taken of each word
        let mut slots = vec![Slot { word: 0, shift: 0 }; self.parts.len()];
        for part in order {
            let width = u32::from(self.parts[part].width);
            let word = used.iter().position(|used| used + width <= 64).unwrap_or_else(|| {
                used.extend(core::iter::repeat_n(0, if width > 64 { 2 } else { 1 }));
                used.len() - if width > 64 { 2 } else { 1 }
            });
            slots[part] = Slot { word, shift: used[word] };
            used[word] += width.min(64);
            if width > 64 {
                used[word + 1] = 64;
            }
        }
        slots
    }

    /// Words of a key.
    pub fn words(&self) -> usize {
        self.words_of(&self.slots())
    }

    /// Words of a key whose parts lie there.
    pub(super) fn words_of(&self, slots: &[Slot]) -> usize {
        let ends = slots.iter().zip(&self.parts).map(|(s, p)| s.word + if p.width > 64 { 2 } else { 1 });
        ends.max().unwrap_or(1)
    }

    /// A key as words.
    pub fn pack(&self, key: &[u128]) -> Vec<u64> {
        let mut words = vec![0; self.words()];
        for ((slot, part), value) in self.slots().into_iter().zip(&self.parts).zip(key) {
            words[slot.word] |= (*value as u64) << slot.shift;
            if part.width > 64 {
                words[slot.word + 1] |= (*value >> 64) as u64;
            }
        }
        words
    }

    /// The parts of a key from its words.
    pub fn unpack(&self, words: &[u64]) -> Vec<u128> {
        let part = |(slot, part): (Slot, &Part)| {
            let low = u128::from(words[slot.word] >> slot.shift);
            let high = if part.width > 64 { u128::from(words[slot.word + 1]) << 64 } else { 0 };
            (high | low) & ones(part.width)
        };
        self.slots().into_iter().zip(&self.parts).map(part).collect()
    }

    /// Whether time ends entries, or packets make them: look-ups are in the order of packets then.
    pub fn ordered(&self) -> bool {
        self.learned || self.timed_entries || self.idle_ns > 0 || self.hard_ns > 0
    }
}
