//! Numbers and texts as bytes, for the files of stores and journals.
//!
//! Numbers are little-endian base 128, so that the many small ones take one byte. A [`Reader`] takes bytes that may be
//! damaged: every function returns `None` rather than panic, and none reserves memory for a count that the
//! bytes cannot hold.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Appends a number.
pub fn put_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    bytes.push(low_byte(value));
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}

/// Appends a length or a count.
pub fn put_length(bytes: &mut Vec<u8>, value: usize) {
    put_number(bytes, value as u64);
}

/// Appends bytes with their length.
pub fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put_length(bytes, text.len());
    bytes.extend_from_slice(text);
}

/// Appends a name, a path or a link's target.
pub fn put_os(bytes: &mut Vec<u8>, text: impl AsRef<OsStr>) {
    put_text(bytes, text.as_ref().as_bytes());
}

/// The rest of the bytes that are being read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the beginning of some bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that were not read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads so many bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Reads a number.
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a number that fits 32 bits.
    pub fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Reads the number of the things that follow, each of at least one byte.
    pub fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    /// Reads bytes with their length.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.bytes(length)
    }

    /// Reads a name, a path or a link's target as it is.
    pub fn os(&mut self) -> Option<OsString> {
        self.text().map(|text| OsString::from_vec(text.to_vec()))
    }

    /// Reads a single name of a directory entry.
    pub fn name(&mut self) -> Option<OsString> {
        let name = OsStr::from_bytes(self.text()?);
        is_entry_name(name).then(|| name.to_owned())
    }

    /// Reads text in UTF-8.
    pub fn string(&mut self) -> Option<String> {
        std::str::from_utf8(self.text()?).ok().map(str::to_owned)
    }

    /// Reads so many bytes as an array.
    pub fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        self.bytes(LENGTH)?.try_into().ok()
    }

    /// Reads a path of an entry: relative, not empty, without `.` and `..`.
    pub fn path(&mut self) -> Option<PathBuf> {
        let path = PathBuf::from(self.os()?);
        is_entry_path(&path).then_some(path)
    }
}

/// Returns whether a name is a single component.
fn is_entry_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !matches!(bytes, b"" | b"." | b"..") && !bytes.iter().any(|byte| matches!(byte, 0 | b'/'))
}

fn is_entry_path(path: &Path) -> bool {
    let is_name = |component| matches!(component, Component::Normal(_));
    !path.as_os_str().is_empty() && path.components().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!((reader.number(), reader.is_empty()), (Some(value), true));
        }
    }

    #[test]
    fn a_number_that_is_too_large_or_cut_off_is_none() {
        assert_eq!(Reader::new(&[0xff; 10]).number(), None);
        assert_eq!(Reader::new(&[0x80, 0x80]).number(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).small(), None);
    }

    #[test]
    fn only_paths_of_entries_are_read() {
        let read = |text: &str| {
            let mut bytes = Vec::new();
            put_os(&mut bytes, text);
            Reader::new(&bytes).path()
        };
        assert_eq!(read("a/b"), Some(PathBuf::from("a/b")));
        for text in ["", "/a", "../a", "a/../b", "./a"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
