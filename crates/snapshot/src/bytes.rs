//! Numbers, texts and times as bytes, for the formats of this crate.
//!
//! Numbers are little-endian base 128, so that the many small ones take one byte. Readers take bytes that may be
//! damaged: every function returns `None` rather than panic, and none reserves memory for a count that the
//! bytes cannot hold.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::object_id::ObjectId;

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

pub(crate) fn put_length(bytes: &mut Vec<u8>, value: usize) {
    put_number(bytes, value as u64);
}

pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put_length(bytes, text.len());
    bytes.extend_from_slice(text);
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

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
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
        self.bytes(length)
    }

    pub(crate) fn os_text(&mut self) -> Option<OsString> {
        self.text().map(|text| OsString::from_vec(text.to_vec()))
    }

    /// Reads a single name of a directory entry.
    pub(crate) fn name(&mut self) -> Option<OsString> {
        let name = OsStr::from_bytes(self.text()?);
        is_entry_name(name).then(|| name.to_owned())
    }

    pub(crate) fn string(&mut self) -> Option<String> {
        std::str::from_utf8(self.text()?).ok().map(str::to_owned)
    }

    pub(crate) fn id(&mut self) -> Option<ObjectId> {
        self.bytes(ObjectId::LENGTH)?.try_into().ok().map(ObjectId::from_bytes)
    }
}

/// Returns whether a name is a single component.
fn is_entry_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !matches!(bytes, b"" | b"." | b"..") && !bytes.iter().any(|byte| matches!(byte, 0 | b'/'))
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
}
