//! Bytes as hexadecimal digits, the form of hashes, tokens and signatures in names, files and headers.
//!
//! Writing uses lower case; reading accepts both cases. Neither takes the same time for all inputs, so a
//! secret is compared as bytes with a constant-time function, never as digits.

/// Returns two lower-case digits for each byte, the high half first.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// Returns the bytes that `text` spells, or `None` if its length is odd or a character is not a digit.
///
/// Signs, spaces and a `0x` prefix are not digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let pair = |[high, low]: &[u8; 2]| Some(digit(*high)? * 16 + digit(*low)?);
    if rest.is_empty() { pairs.iter().map(pair).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_spell_their_bytes() {
        assert_eq!(encode(&[0, 0x0f, 0xa5, 0xff]), "000fa5ff");
        assert_eq!(encode(&[]), "");
        assert_eq!(decode("000fA5ff"), Some(vec![0, 0x0f, 0xa5, 0xff]));
        assert_eq!(decode(""), Some(Vec::new()));
    }

    #[test]
    fn other_texts_spell_nothing() {
        for text in ["0", "000", "0g", "+1", " 1", "0x", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
