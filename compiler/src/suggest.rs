//! "Did you mean": the known name that is closest to one that is not known.

/// The closest of `names` to `name`, if it is close enough to be meant. The first wins among equals.
pub fn closest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > 40 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let limit = name.len().div_ceil(3);
    let mut best = None;
    for candidate in names {
        if candidate.len().abs_diff(name.len()) > limit || candidate.len() > LONGEST {
            continue;
        }
        let distance = distance(name.as_bytes(), candidate.to_ascii_lowercase().as_bytes(), limit);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The longest name that is compared.
const LONGEST: usize = 60;

/// Edits between two names: a byte changed, added or left out, or two neighbours swapped (optimal string alignment). Beyond
/// `limit` it is some number beyond it. Names are at most [`LONGEST`] long.
fn distance(a: &[u8], b: &[u8], limit: usize) -> usize {
    let mut before = [0; LONGEST + 1];
    let mut last = [0; LONGEST + 1];
    let mut row = [0; LONGEST + 1];
    (0..=b.len()).for_each(|j| last[j] = j);
    for i in 1..=a.len() {
        row[0] = i;
        let mut least = i;
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
            least = least.min(row[j]);
        }
        // A swap reaches back two rows, and costs one.
        if least > limit + 1 {
            return least;
        }
        (before, last, row) = (last, row, before);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_of_the_finger_and_nothing_far() {
        let names = ["ipv4.src", "ipv4.dst", "tcp.dst", "drop"];
        for (name, expected) in [
            ("dorp", Some("drop")),
            ("ipv4.dts", Some("ipv4.dst")),
            ("IPV4.SRC", Some("ipv4.src")),
            ("output", None),
            ("", None),
        ] {
            assert_eq!(closest(name, names), expected, "{name}");
        }
    }
}
