//! A decoded file: its text and the encoding that turns the text back into bytes.
//!
//! Every sequence of bytes becomes a document, and a document that is not changed encodes to
//! exactly the bytes it was decoded from. Tools can therefore read, edit and write any text file
//! without asking for its encoding, and an edit never rewrites lines that it does not touch.
//!
//! The encoding is guessed in a fixed order: a byte order mark decides first; then valid UTF-8;
//! then ISO 8859-1, if no sequence of non-ASCII bytes is valid UTF-8; and last UTF-8 with stray
//! bytes, each of which is kept as one private-use character. The byte order mark is not part of
//! the text, so an edit at the start of a file cannot move or remove it. Line endings are part of
//! the text as they are stored; [`lines`](crate::lines()) splits them off, and new text takes the
//! endings of its surroundings before it gets here.
//!
//! Text that the encoding cannot represent is refused ([`Unencodable`]) instead of being converted:
//! a change of encoding would rewrite bytes that the edit did not name.

use std::borrow::Cow;

use crate::encoding::{self, Encoding};
use crate::lines::LineFacts;

/// The text of a file and its encoding.
///
/// `Document::decode(bytes).encode()` equals `bytes` for every input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Invariant: every character can be encoded.
    text: String,
    encoding: Encoding,
}

/// A character that the encoding of a file cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is stored as {encoding}, which has no character `{}`", .character.escape_debug())]
pub struct Unencodable {
    /// The encoding of the file, which an edit never changes.
    pub encoding: Encoding,
    /// The first character without a representation.
    pub character: char,
}

impl Document {
    /// Decodes the bytes of a file. Never fails: every sequence of bytes is text in one of the
    /// encodings.
    pub fn decode(bytes: Vec<u8>) -> Self {
        let (encoding, text) = encoding::decode(bytes);
        Self { text, encoding }
    }

    /// Creates the document of a new file, encoded as UTF-8 without a byte order mark.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), encoding: Encoding::Utf8 }
    }

    /// Replaces the text and keeps the encoding, or fails at the first character that it lacks.
    pub fn with_text(&self, text: String) -> Result<Self, Unencodable> {
        let encoding = self.encoding;
        match encoding.first_unencodable(&text) {
            None => Ok(Self { text, encoding }),
            Some(character) => Err(Unencodable { encoding, character }),
        }
    }

    /// Returns the bytes to store, byte order mark included. UTF-8 is borrowed, not copied.
    pub fn encode(&self) -> Cow<'_, [u8]> {
        encoding::encode(self.encoding, &self.text)
    }

    /// Returns the text without a byte order mark and with its line endings as stored.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the encoding that [`Self::encode`] uses.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Counts the lines and their endings; scans the whole text on every call.
    pub fn line_facts(&self) -> LineFacts {
        LineFacts::of(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    fn decoded(bytes: &[u8]) -> Document {
        Document::decode(bytes.to_vec())
    }

    #[test]
    fn the_encoding_is_found_from_the_bytes() {
        let cases: [(&[u8], Encoding, &str); 10] = [
            (b"", Encoding::Utf8, ""),
            ("é".as_bytes(), Encoding::Utf8, "é"),
            (b"\xEF\xBB\xBFx", Encoding::Utf8WithMark, "x"),
            (b"\xEF\xBB\xBF", Encoding::Utf8WithMark, ""),
            (b"\xFF\xFEa\0\n\0", Encoding::Utf16Le, "a\n"),
            (b"\xFE\xFF\0a\xD8\x3D\xDE\x00", Encoding::Utf16Be, "a😀"),
            (b"caf\xE9\n", Encoding::Latin1, "café\n"),
            (b"\xFF\xFEa", Encoding::Latin1, "ÿþa"),
            ("é\u{e9}".as_bytes(), Encoding::Utf8, "éé"),
            (b"\xC3\xA9\xE9", Encoding::DamagedUtf8, "é\u{EFE9}"),
        ];
        for (bytes, encoding, text) in cases {
            let document = decoded(bytes);
            assert_eq!((document.encoding(), document.text()), (encoding, text), "{bytes:?}");
            assert_eq!(document.encode(), bytes);
        }
    }

    #[test]
    fn unpaired_surrogates_and_odd_lengths_are_no_utf16() {
        for bytes in [b"\xFF\xFE\x00\xD8".as_slice(), b"\xFE\xFF\0a\0"] {
            assert_ne!(decoded(bytes).encoding(), Encoding::Utf16Le);
            assert_ne!(decoded(bytes).encoding(), Encoding::Utf16Be);
            assert_eq!(decoded(bytes).encode(), bytes);
        }
    }

    #[test]
    fn private_use_characters_survive_among_stray_bytes() {
        let bytes = ["\u{EFE9}é".as_bytes(), b"\x80"].concat();
        assert_eq!(decoded(&bytes).encode(), bytes);
    }

    #[test]
    fn text_that_the_encoding_lacks_is_refused() {
        let document = decoded(b"caf\xE9");
        let refused = document.with_text("→".into()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the file is stored as ISO 8859-1, which has no character `→`"
        );
        assert_eq!(document.with_text("thé".into()).unwrap().encode(), &b"th\xE9"[..]);
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let mark = prop::sample::select(vec![&b""[..], b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"]);
        let piece = prop_oneof![
            any::<Vec<u8>>(),
            ".{0,8}".prop_map(String::into_bytes),
            Just("\u{EF80}\u{EFFF}".as_bytes().to_vec()),
        ];
        (mark, prop::collection::vec(piece, 0..6))
            .prop_map(|(mark, pieces)| [mark, &pieces.concat()].concat())
    }

    proptest! {
        #[test]
        fn what_is_decoded_encodes_to_the_same_bytes(bytes in bytes()) {
            let document = decoded(&bytes);
            prop_assert_eq!(&*document.encode(), &bytes[..]);
        }
    }
}
