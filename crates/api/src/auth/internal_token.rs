//! The token that servers and workers of one installation share (`WORKER_INTERNAL_TOKEN`).

use carrel_domain::{Fingerprint, Secret};

use super::error::{AuthError, RejectReason};

/// The header with the internal token.
pub const INTERNAL_TOKEN_HEADER: &str = "x-internal-token";

/// The token of a worker's API. An empty one matches nothing, so that a variable that is set to an empty
/// value does not disable authentication.
#[derive(Clone, Debug)]
pub struct InternalToken(Option<Fingerprint>);

impl InternalToken {
    /// Expects this token.
    pub fn new(token: &Secret) -> Self {
        let text = token.expose().as_bytes();
        Self((!text.is_empty()).then(|| Fingerprint::of(text)))
    }

    /// Accepts a request with exactly one [`INTERNAL_TOKEN_HEADER`] that holds the token.
    pub fn check<'a, H>(&self, values: impl IntoIterator<Item = &'a H>) -> Result<(), AuthError>
    where
        H: AsRef<[u8]> + ?Sized + 'a,
    {
        let mut values = values.into_iter();
        let matches =
            |value: &H| self.0.as_ref().is_some_and(|token| token.matches(value.as_ref()));
        let reason = match (values.next(), values.next()) {
            (None, _) => RejectReason::Missing,
            (Some(_), Some(_)) => RejectReason::Malformed,
            (Some(value), None) if matches(value) => return Ok(()),
            (Some(_), None) => RejectReason::Signature,
        };
        Err(AuthError::unauthenticated(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: &str, values: &[&str]) -> Option<RejectReason> {
        let answer = InternalToken::new(&Secret::new(token)).check(values.iter().copied());
        answer.err().and_then(|error| error.reason())
    }

    #[test]
    fn one_header_with_the_whole_token_is_let_through() {
        assert_eq!(check("t0ken", &["t0ken"]), None);
        for (values, reason) in [
            (&[][..], RejectReason::Missing),
            (&["t0ken", "t0ken"], RejectReason::Malformed),
            (&["t0ke"], RejectReason::Signature),
            (&["T0KEN"], RejectReason::Signature),
            (&["t0ken "], RejectReason::Signature),
            (&[""], RejectReason::Signature),
        ] {
            assert_eq!(check("t0ken", values), Some(reason), "{values:?}");
        }
    }

    #[test]
    fn an_empty_token_matches_nothing() {
        assert_eq!(check("", &[""]), Some(RejectReason::Signature));
        assert_eq!(check("", &["x"]), Some(RejectReason::Signature));
        assert_eq!(check("", &[]), Some(RejectReason::Missing));
    }
}
