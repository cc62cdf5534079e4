//! Detection, decoding and encoding of the text encodings of files.
//!
//! Every sequence of bytes is text in one of these encodings and none of them loses information.
//! Stray bytes, which are not UTF-8 in a file that otherwise is, map to U+EF80..U+EFFF, in a
//! private-use area: the byte `0xE9` becomes U+EFE9. A file that contains both stray bytes and such
//! a character would be ambiguous; the character's own UTF-8 bytes are then treated as stray bytes
//! as well.

use std::borrow::Cow;
use std::fmt;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_LE_MARK: &[u8] = b"\xFF\xFE";
const UTF16_BE_MARK: &[u8] = b"\xFE\xFF";

/// Offset of the private-use character that represents a stray byte.
const STRAY_BASE: u32 = 0xEF00;

/// The encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// UTF-8 without a byte order mark.
    Utf8,
    /// UTF-8 after a byte order mark.
    Utf8WithMark,
    /// UTF-16, little endian, after a byte order mark.
    Utf16Le,
    /// UTF-16, big endian, after a byte order mark.
    Utf16Be,
    /// ISO 8859-1, one byte for each character: chosen if no non-ASCII sequence is valid UTF-8.
    Latin1,
    /// UTF-8 with stray bytes, each kept as a character from U+EF80 to U+EFFF.
    DamagedUtf8,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8WithMark => "UTF-8 with a byte order mark",
            Self::Utf16Le => "UTF-16 LE",
            Self::Utf16Be => "UTF-16 BE",
            Self::Latin1 => "ISO 8859-1",
            Self::DamagedUtf8 => "UTF-8 with stray bytes",
        })
    }
}

impl Encoding {
    /// Returns the first character of the text that this encoding cannot represent.
    pub(crate) fn first_unencodable(self, text: &str) -> Option<char> {
        match self {
            Self::Latin1 => text.chars().find(|&c| u8::try_from(c).is_err()),
            Self::Utf8 | Self::Utf8WithMark | Self::Utf16Le | Self::Utf16Be | Self::DamagedUtf8 => {
                None
            }
        }
    }
}

/// Detects the encoding and decodes the text without its byte order mark.
pub(crate) fn decode(bytes: Vec<u8>) -> (Encoding, String) {
    if let Some(found) = decode_marked(&bytes) {
        return found;
    }
    match String::from_utf8(bytes) {
        Ok(text) => (Encoding::Utf8, text),
        Err(error) => decode_stray(error.as_bytes()),
    }
}

fn decode_marked(bytes: &[u8]) -> Option<(Encoding, String)> {
    if let Some(rest) = bytes.strip_prefix(UTF8_MARK) {
        let text = std::str::from_utf8(rest).ok()?;
        return Some((Encoding::Utf8WithMark, text.to_owned()));
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_LE_MARK) {
        return Some((Encoding::Utf16Le, decode_utf16(rest, u16::from_le_bytes)?));
    }
    let rest = bytes.strip_prefix(UTF16_BE_MARK)?;
    Some((Encoding::Utf16Be, decode_utf16(rest, u16::from_be_bytes)?))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(pairs.iter().map(|&pair| unit(pair))).collect::<Result<_, _>>().ok()
}

fn decode_stray(bytes: &[u8]) -> (Encoding, String) {
    let is_ascii = |chunk: std::str::Utf8Chunk<'_>| chunk.valid().is_ascii();
    if bytes.utf8_chunks().all(is_ascii) {
        return (Encoding::Latin1, bytes.iter().map(|&byte| char::from(byte)).collect());
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            // This character would be encoded as a single stray byte, so its own bytes are kept
            // as stray bytes instead.
            match stray_byte(c) {
                None => text.push(c),
                Some(_) => push_stray(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_stray(&mut text, chunk.invalid());
    }
    (Encoding::DamagedUtf8, text)
}

fn push_stray(text: &mut String, bytes: &[u8]) {
    text.extend(bytes.iter().filter_map(|&byte| char::from_u32(STRAY_BASE + u32::from(byte))));
}

fn stray_byte(c: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(c).checked_sub(STRAY_BASE)?).ok()?;
    (!byte.is_ascii()).then_some(byte)
}

/// Encodes a text, byte order mark included.
///
/// Characters that the encoding lacks are dropped; callers exclude them with
/// [`Encoding::first_unencodable`] before.
pub(crate) fn encode(encoding: Encoding, text: &str) -> Cow<'_, [u8]> {
    let encoded = match encoding {
        Encoding::Utf8 => return text.as_bytes().into(),
        Encoding::Utf8WithMark => [UTF8_MARK, text.as_bytes()].concat(),
        Encoding::Utf16Le => encode_utf16(UTF16_LE_MARK, text, u16::to_le_bytes),
        Encoding::Utf16Be => encode_utf16(UTF16_BE_MARK, text, u16::to_be_bytes),
        Encoding::Latin1 => text.chars().filter_map(|c| u8::try_from(c).ok()).collect(),
        Encoding::DamagedUtf8 => encode_stray(text),
    };
    encoded.into()
}

fn encode_utf16(mark: &[u8], text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut encoded = mark.to_vec();
    encoded.extend(text.encode_utf16().flat_map(bytes));
    encoded
}

fn encode_stray(text: &str) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len());
    for c in text.chars() {
        match stray_byte(c) {
            Some(byte) => encoded.push(byte),
            None => encoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    encoded
}
