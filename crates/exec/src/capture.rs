//! The beginning and the end of a stream, captured in fixed memory.
//!
//! A command may print gigabytes; a reply shows what matters to a reader, and that is mostly at both
//! ends: the first error and the summary. Memory is bounded by the limits, for streams
//! of any length and pieces of any size.

use std::collections::VecDeque;

use carrel_domain::ByteSize;

/// The most bytes of a stream that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Bytes kept from the beginning.
    pub head: ByteSize,
    /// Bytes kept from the end.
    pub tail: ByteSize,
}

impl CaptureLimits {
    /// The limits for stdout in a reply: 100 KiB, half from each end.
    pub const STDOUT: Self = Self { head: ByteSize::kib(50), tail: ByteSize::kib(50) };

    /// The limits for stderr in a reply: 50 KiB, half from each end.
    pub const STDERR: Self = Self { head: ByteSize::kib(25), tail: ByteSize::kib(25) };
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self::STDOUT
    }
}

/// The captured ends of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, none of which are in `head`.
    pub tail: Vec<u8>,
    /// The length of the stream.
    pub total_bytes: u64,
}

impl Captured {
    /// Returns the number of bytes between head and tail that were not kept.
    pub fn omitted(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns whether bytes between head and tail were not kept.
    pub fn truncated(&self) -> bool {
        self.omitted() > 0
    }

    /// Returns the kept bytes at the end of the stream.
    pub fn end(&self) -> &[u8] {
        if self.tail.is_empty() { &self.head } else { &self.tail }
    }

    /// Returns the output for a person: at most `limit` bytes of it, from both ends, with a line
    /// that says how much is missing between them.
    ///
    /// Bytes that are not text are replaced; a character that a cut would tear is left out.
    pub fn to_text(&self, limit: usize) -> String {
        self.to_text_trimmed(limit, |_, _| (0, 0))
    }

    /// Returns the same, and leaves out more beside the gap: `trim` is given the bytes before and after it, and
    /// returns how many at the end of the former and at the start of the latter are not shown.
    pub fn to_text_trimmed(
        &self,
        limit: usize,
        trim: impl FnOnce(&[u8], &[u8]) -> (usize, usize),
    ) -> String {
        let kept = self.head.len() + self.tail.len();
        if self.omitted() == 0 && kept <= limit {
            return String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat())
                .into_owned();
        }
        let (head, tail) = self.ends(limit);
        let (head_end, tail_start) = trim(head, tail);
        let head = &head[..head.len().saturating_sub(head_end)];
        let tail = &tail[tail_start.min(tail.len())..];
        let missing = self.total_bytes - (head.len() + tail.len()) as u64;
        let head = String::from_utf8_lossy(head);
        let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let tail = String::from_utf8_lossy(tail);
        format!("{head}{line_end}[… {missing} bytes omitted …]\n{tail}")
    }

    /// Returns at most `limit` bytes, as evenly from both ends as they have them.
    fn ends(&self, limit: usize) -> (&[u8], &[u8]) {
        // Everything may be in the head when the stream was short; then its second half is the end.
        let (first, last) = if self.tail.is_empty() {
            self.head.split_at(self.head.len() / 2)
        } else {
            (&self.head[..], &self.tail[..])
        };
        let from_last = last.len().min(limit / 2);
        let from_first = first.len().min(limit - from_last);
        (
            without_torn_end(&first[..from_first]),
            without_torn_start(&last[last.len() - from_last..]),
        )
    }
}

/// Drops the first bytes of a character whose last ones are missing.
pub(crate) fn without_torn_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Drops the last bytes of a character whose first ones are missing.
fn without_torn_start(bytes: &[u8]) -> &[u8] {
    const MAX_CONTINUATION_BYTES: usize = 3;
    let torn = bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
    if torn <= MAX_CONTINUATION_BYTES { &bytes[torn..] } else { bytes }
}

#[derive(Debug)]
pub(crate) struct Capture {
    limits: CaptureLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

impl Capture {
    pub(crate) fn new(limits: CaptureLimits) -> Self {
        Self { limits, head: Vec::new(), tail: VecDeque::new(), total_bytes: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let head_left = length(self.limits.head) - self.head.len();
        let (head, rest) = bytes.split_at(head_left.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.push_tail(rest);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let limit = length(self.limits.tail);
        let newest = &bytes[bytes.len().saturating_sub(limit)..];
        let surplus = (self.tail.len() + newest.len()).saturating_sub(limit);
        self.tail.drain(..surplus);
        self.tail.extend(newest);
    }

    pub(crate) fn finish(self) -> Captured {
        let Self { limits: _, head, tail, total_bytes } = self;
        Captured { head, tail: tail.into(), total_bytes }
    }
}

/// Converts a limit; one beyond the address space is no limit.
fn length(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn captured(head: u64, tail: u64, chunks: &[&[u8]]) -> Captured {
        let limits = CaptureLimits { head: ByteSize::bytes(head), tail: ByteSize::bytes(tail) };
        let mut capture = Capture::new(limits);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn bytes_beside_the_gap_can_be_left_out() {
        let output = captured(4, 4, &[b"abcdefghijkl"]);
        let text = output.to_text_trimmed(100, |head, tail| {
            assert_eq!((head, tail), (&b"abcd"[..], &b"ijkl"[..]));
            (1, 2)
        });
        assert_eq!(text, "abc\n[… 7 bytes omitted …]\nkl");
        let whole = captured(100, 0, &[b"abc"]).to_text_trimmed(100, |_, _| unreachable!("no gap"));
        assert_eq!(whole, "abc");
    }

    #[test]
    fn head_and_tail_are_the_same_however_the_stream_is_cut() {
        let whole: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let expected =
            Captured { head: whole[..10].to_vec(), tail: whole[993..].to_vec(), total_bytes: 1000 };
        for size in [1, 3, 7, 10, 64, 999, 1000] {
            let chunks: Vec<&[u8]> = whole.chunks(size).collect();
            assert_eq!(captured(10, 7, &chunks), expected, "chunks of {size}");
        }
        assert_eq!((expected.omitted(), expected.truncated()), (983, true));
    }

    #[test]
    fn a_stream_that_fits_is_kept_whole() {
        let all = captured(4, 4, &[b"abc", b"def"]);
        assert_eq!(
            (all.head.as_slice(), all.tail.as_slice(), all.truncated()),
            (&b"abcd"[..], &b"ef"[..], false)
        );
        assert_eq!(all.to_text(100), "abcdef");
    }

    #[test]
    fn text_shows_both_ends_and_what_is_missing() {
        assert_eq!(
            captured(4, 4, &[b"0123456789"]).to_text(100),
            "0123\n[… 2 bytes omitted …]\n6789"
        );
        assert_eq!(captured(100, 0, &[b"0123456789"]).to_text(4), "01\n[… 6 bytes omitted …]\n89");
        assert_eq!(captured(4, 0, &[b"a\nb\n"]).to_text(2), "a\n[… 2 bytes omitted …]\n\n");
        assert_eq!(captured(2, 2, &[b"xxxx"]).to_text(0), "[… 4 bytes omitted …]\n");
    }

    #[test]
    fn a_cut_never_tears_a_character() {
        let text = "ÅÅÅÅ".as_bytes();
        assert_eq!(captured(3, 3, &[text]).to_text(100), "Å\n[… 4 bytes omitted …]\nÅ");
        assert_eq!(captured(8, 0, &[text]).to_text(6), "Å\n[… 4 bytes omitted …]\nÅ");
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_in_text_only() {
        let bytes = captured(10, 10, &[b"a\xffb"]);
        assert_eq!(
            (bytes.head.as_slice(), bytes.to_text(10).as_str()),
            (&b"a\xffb"[..], "a\u{fffd}b")
        );
    }
}
