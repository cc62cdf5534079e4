//! Numbers and texts as bytes, for the journal.
//!
//! Numbers are little-endian base 128. The reader takes bytes that may be damaged: every function returns `None` rather
//! than panic, and none reserves memory for a count that the bytes cannot hold.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

pub(crate) fn put_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    bytes.push(low_byte(value));
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}

pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

pub(crate) fn put_os(bytes: &mut Vec<u8>, text: impl AsRef<OsStr>) {
    put_text(bytes, text.as_ref().as_bytes());
}

/// The rest of the bytes that are being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
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

    pub(crate) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Reads the number of the things that follow, each of at least one byte.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }

    pub(crate) fn os(&mut self) -> Option<OsString> {
        self.text().map(|text| OsString::from_vec(text.to_vec()))
    }

    /// Reads a path of an entry: relative, not empty, without `.` and `..`.
    pub(crate) fn path(&mut self) -> Option<PathBuf> {
        let path = PathBuf::from(self.os()?);
        is_entry_path(&path).then_some(path)
    }
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
        assert_eq!(Reader::new(&[0xff; 10]).number(), None);
        assert_eq!(Reader::new(&[0x80, 0x80]).number(), None);
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
