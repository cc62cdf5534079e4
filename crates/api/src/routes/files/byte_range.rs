//! The header `Range`: the part of a file that a client asks for.

use std::ops::Range;

/// What a request for a file of a certain size asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    Part(Range<u64>),
    /// The part begins behind the end of the file.
    Unsatisfiable,
}

impl Wanted {
    /// Reads the header. One that is malformed, in another unit or of several parts asks for the whole file, as the
    /// specification of HTTP allows for all three.
    pub(super) fn of(header: Option<&str>, size: u64) -> Self {
        header.and_then(|header| parse(header, size)).unwrap_or(Self::Whole)
    }
}

fn parse(header: &str, size: u64) -> Option<Wanted> {
    let (unit, range) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(length)) if first.is_empty() => size.saturating_sub(length)..size,
        _ => return None,
    };
    Some(if part.start < part.end { Wanted::Part(part) } else { Wanted::Unsatisfiable })
}

/// Reads digits alone: a sign is no part of the grammar. A number that is too large stands for the largest.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn parts_are_cut_at_the_end_of_the_file() {
        let part = |range| Wanted::Part(range);
        for (header, expected) in [
            ("bytes=0-0", part(0..1)),
            ("bytes=0-", part(0..10)),
            ("Bytes=3-5", part(3..6)),
            ("bytes=9-99999999999999999999999", part(9..10)),
            ("bytes=-3", part(7..10)),
            ("bytes=-99", part(0..10)),
            ("bytes=10-", Wanted::Unsatisfiable),
            ("bytes=10-12", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
        ] {
            assert_eq!(Wanted::of(Some(header), 10), expected, "{header}");
        }
        assert_eq!(Wanted::of(Some("bytes=-1"), 0), Wanted::Unsatisfiable);
        assert_eq!(Wanted::of(Some("bytes=0-"), 0), Wanted::Unsatisfiable);
    }

    #[test]
    fn other_headers_ask_for_the_whole_file() {
        assert_eq!(Wanted::of(None, 10), Wanted::Whole);
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5",
            "bytes=5-4",
            "bytes=+1-2",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes 0-1",
            "bytes=0-1-2",
        ] {
            assert_eq!(Wanted::of(Some(header), 10), Wanted::Whole, "{header:?}");
        }
    }
}
