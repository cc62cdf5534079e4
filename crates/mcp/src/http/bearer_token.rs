//! The bearer token of a server that other machines can reach.

use carrel_domain::Fingerprint;

/// The shortest token that is accepted, against guessing.
const MIN_TOKEN_BYTES: usize = 16;

/// A text that cannot be a token.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Fewer than 16 characters.
    #[error("a bearer token needs at least {MIN_TOKEN_BYTES} characters")]
    TooShort,
    /// A character that cannot be sent in a header.
    #[error("a bearer token may hold only visible ASCII characters")]
    NotPrintable,
}

/// A token, held as its digest; the text is not kept.
#[derive(Clone, Debug)]
pub struct BearerToken(Fingerprint);

impl BearerToken {
    /// Accepts a token of at least 16 visible ASCII characters.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NotPrintable);
        }
        if text.len() < MIN_TOKEN_BYTES {
            return Err(TokenError::TooShort);
        }
        Ok(Self(Fingerprint::of(text.as_bytes())))
    }

    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        self.0.matches(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789abcdef";

    #[test]
    fn only_the_whole_token_matches() {
        let token = BearerToken::new(TEXT).expect("long enough");
        assert!(token.matches(TEXT.as_bytes()));
        for wrong in ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF"] {
            assert!(!token.matches(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_long_printable_and_not_printed() {
        assert_eq!(BearerToken::new("short").err(), Some(TokenError::TooShort));
        assert_eq!(BearerToken::new("0123456789 abcdef").err(), Some(TokenError::NotPrintable));
        let token = BearerToken::new(TEXT).expect("long enough");
        assert_eq!(format!("{token:?}"), "BearerToken(***)");
    }
}
