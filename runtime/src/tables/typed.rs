//! Tables with the types of one program: what `#[pipeline]` makes a type of for each keyed table.
//!
//! A [`Typed`] table takes keys and actions as Rust values, so that what does not fit the table does not compile. Underneath
//! are the same changes as [`Tables`] has.

use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use pipec_abi::Counter;
use pipec_abi::table::KeyMatch;
use pipec_abi::table::shape::ones;

use super::{Batch, Entry, TableError, Tables};

/// A keyed table of a program: its name, and its keys and actions as types. Generated code implements it.
pub trait Keyed {
    /// The table's name.
    const NAME: &'static str;
    /// A key, or what an entry wants of one.
    type Key;
    /// What an entry does.
    type Action;
    /// A key as what is wanted of each part.
    fn key(key: &Self::Key) -> Vec<KeyMatch>;
    /// The key again.
    fn key_of(parts: &[KeyMatch]) -> Self::Key;
    /// An action's name and arguments.
    fn action(action: &Self::Action) -> (&'static str, Vec<u128>);
    /// The action again, if the table has it.
    fn action_of(name: &str, args: &[u128]) -> Option<Self::Action>;
}

/// An entry of a typed table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedEntry<K, A> {
    /// Higher is tried first.
    pub priority: u32,
    /// The key.
    pub key: K,
    /// What it does.
    pub action: A,
    /// Packets that found it, and their bytes.
    pub counter: Counter,
}

/// An entry of a table.
pub type EntryOf<T> = TypedEntry<<T as Keyed>::Key, <T as Keyed>::Action>;

/// A keyed table of a running program.
pub struct Typed<'t, T> {
    tables: &'t Tables,
    table: PhantomData<T>,
}

impl<'t, T: Keyed> Typed<'t, T> {
    /// The table among the tables of its program.
    pub fn of(tables: &'t Tables) -> Typed<'t, T> {
        Typed { tables, table: PhantomData }
    }

    /// Puts an entry of priority 0 in.
    ///
    /// # Errors
    /// When there is one with this key, or the table is full.
    pub fn insert(&self, key: impl Into<T::Key>, action: impl Into<T::Action>) -> Result<(), TableError> {
        self.tables.insert(T::NAME, entry::<T>(0, &key.into(), &action.into()))
    }

    /// Puts an entry of a priority in, in the place of the one with this key and priority, if there is one.
    ///
    /// # Errors
    /// When the table is full, or its entries have no priorities.
    pub fn set(&self, priority: u32, key: impl Into<T::Key>, action: impl Into<T::Action>) -> Result<(), TableError> {
        self.tables.set(T::NAME, entry::<T>(priority, &key.into(), &action.into()))
    }

    /// Takes the entry with this key and priority 0 out; whether there was one.
    ///
    /// # Errors
    /// When the tables are another program's.
    pub fn remove(&self, key: impl Into<T::Key>) -> Result<bool, TableError> {
        self.remove_at(0, key)
    }

    /// Takes the entry with this key and priority out; whether there was one.
    ///
    /// # Errors
    /// When the tables are another program's.
    pub fn remove_at(&self, priority: u32, key: impl Into<T::Key>) -> Result<bool, TableError> {
        self.tables.remove(T::NAME, priority, &T::key(&key.into()))
    }

    /// All entries in the order they are tried.
    ///
    /// # Errors
    /// When the tables are another program's.
    pub fn list(&self) -> Result<Vec<EntryOf<T>>, TableError> {
        let typed = self.tables.list(T::NAME)?.into_iter().filter_map(|listed| {
            let Entry { priority, key, action, args, .. } = listed.entry;
            let action = T::action_of(&action, &args)?;
            Some(TypedEntry { priority, key: T::key_of(&key), action, counter: listed.counter })
        });
        Ok(typed.collect())
    }

    /// Puts an entry in as part of a batch.
    ///
    /// # Errors
    /// As [`Typed::set`].
    pub fn set_in(
        batch: &mut Batch<'_>,
        priority: u32,
        key: impl Into<T::Key>,
        action: impl Into<T::Action>,
    ) -> Result<(), TableError> {
        batch.set(T::NAME, entry::<T>(priority, &key.into(), &action.into()))
    }
}

fn entry<T: Keyed>(priority: u32, key: &T::Key, action: &T::Action) -> Entry {
    let (name, args) = T::action(action);
    Entry::new(T::key(key), name, args).priority(priority)
}

/// Values that are bits of a packet.
pub trait Bits: Copy {
    /// The bits.
    fn bits(self) -> u128;
    /// The value again.
    fn of_bits(bits: u128) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Bits for $number {
            fn bits(self) -> u128 {
                self as u128
            }
            fn of_bits(bits: u128) -> Self {
                bits as $number
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, u128);

impl Bits for Ipv4Addr {
    fn bits(self) -> u128 {
        u32::from(self).into()
    }
    fn of_bits(bits: u128) -> Self {
        Ipv4Addr::from(bits as u32)
    }
}

impl Bits for Ipv6Addr {
    fn bits(self) -> u128 {
        self.into()
    }
    fn of_bits(bits: u128) -> Self {
        bits.into()
    }
}

impl Bits for [u8; 6] {
    fn bits(self) -> u128 {
        self.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
    }
    fn of_bits(bits: u128) -> Self {
        let [.., a, b, c, d, e, f] = bits.to_be_bytes();
        [a, b, c, d, e, f]
    }
}

/// A part of a key as a Rust value: a value, `(value, length)`, `(value, mask)`, `first..=last`, or an `Option`.
pub mod part {
    use super::{Bits, KeyMatch, RangeInclusive, ones};

    /// One value.
    pub fn exact<B: Bits>(value: B, width: u8) -> KeyMatch {
        KeyMatch::Masked { value: value.bits(), mask: ones(width) }
    }
    /// A value and the length of its prefix.
    pub fn lpm<B: Bits>((value, length): (B, u8), width: u8) -> KeyMatch {
        let mask = match width.saturating_sub(length) {
            0 => ones(width),
            _ if length == 0 => 0,
            host => ones(width) & !ones(host),
        };
        KeyMatch::Masked { value: value.bits() & mask, mask }
    }
    /// A value and its mask.
    pub fn ternary<B: Bits>((value, mask): (B, B), _width: u8) -> KeyMatch {
        KeyMatch::Masked { value: value.bits() & mask.bits(), mask: mask.bits() }
    }
    /// From a value to a value.
    pub fn range<B: Bits>(range: &RangeInclusive<B>) -> KeyMatch {
        KeyMatch::Range { low: range.start().bits(), high: range.end().bits() }
    }
    /// A value, or any.
    pub fn optional<B: Bits>(value: Option<B>, width: u8) -> KeyMatch {
        value.map_or(KeyMatch::Masked { value: 0, mask: 0 }, |value| exact(value, width))
    }

    fn masked(part: &KeyMatch) -> (u128, u128) {
        match *part {
            KeyMatch::Masked { value, mask } => (value, mask),
            KeyMatch::Range { low, .. } => (low, u128::MAX),
        }
    }
    /// The value again.
    pub fn exact_of<B: Bits>(part: &KeyMatch) -> B {
        B::of_bits(masked(part).0)
    }
    /// The prefix again.
    pub fn lpm_of<B: Bits>(part: &KeyMatch) -> (B, u8) {
        let (value, mask) = masked(part);
        (B::of_bits(value), mask.count_ones() as u8)
    }
    /// Value and mask again.
    pub fn ternary_of<B: Bits>(part: &KeyMatch) -> (B, B) {
        let (value, mask) = masked(part);
        (B::of_bits(value), B::of_bits(mask))
    }
    /// The range again.
    pub fn range_of<B: Bits>(part: &KeyMatch) -> RangeInclusive<B> {
        match *part {
            KeyMatch::Range { low, high } => B::of_bits(low)..=B::of_bits(high),
            KeyMatch::Masked { value, .. } => B::of_bits(value)..=B::of_bits(value),
        }
    }
    /// The value again, or any.
    pub fn optional_of<B: Bits>(part: &KeyMatch) -> Option<B> {
        let (value, mask) = masked(part);
        (mask != 0).then(|| B::of_bits(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let address = Ipv4Addr::new(10, 1, 2, 3);
        assert_eq!(part::lpm((address, 8), 32), KeyMatch::Masked { value: 0x0a00_0000, mask: 0xff00_0000 });
        assert_eq!(part::lpm((address, 0), 32), KeyMatch::Masked { value: 0, mask: 0 });
        assert_eq!(part::lpm((address, 32), 32), part::exact(address, 32));
        let wide = Ipv6Addr::from(u128::MAX);
        assert_eq!(part::lpm((wide, 1), 128), KeyMatch::Masked { value: 1 << 127, mask: 1 << 127 });
        assert_eq!(part::lpm_of::<Ipv6Addr>(&part::lpm((wide, 128), 128)), (wide, 128));
        let mac = [2, 0, 0, 0, 0, 9];
        assert_eq!(part::exact_of::<[u8; 6]>(&part::exact(mac, 48)), mac);
        assert_eq!(part::range_of::<u16>(&part::range(&(80..=89u16))), 80..=89);
        assert_eq!(part::optional_of::<u16>(&part::optional(None::<u16>, 16)), None);
        assert_eq!(part::ternary_of::<u16>(&part::ternary((0x1234u16, 0xf0f0), 16)), (0x1030, 0xf0f0));
    }
}
