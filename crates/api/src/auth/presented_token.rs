//! The token of a request, from `Authorization` or from the session cookie.

use super::error::{AuthError, RejectReason};
use super::jwt::MAX_TOKEN_BYTES;
use super::session_cookie::SESSION_COOKIE;

/// An unverified token and its origin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PresentedToken<'a> {
    /// From `Authorization`, which a browser never adds by itself.
    Bearer(&'a str),
    /// From the session cookie, which a browser adds to requests of any page. A mutation needs
    /// [`check_cookie_request`](super::check_cookie_request) as well.
    Cookie(&'a str),
}

impl<'a> PresentedToken<'a> {
    /// Finds the token in the values of `Authorization` and `Cookie`.
    ///
    /// If there is an `Authorization`, the cookie is ignored, even if the former is invalid. Repeated headers
    /// and cookies are rejected, since two readers could pick different ones.
    pub fn find<H: AsRef<[u8]> + ?Sized + 'a>(
        authorization: impl IntoIterator<Item = &'a H>,
        cookies: impl IntoIterator<Item = &'a H>,
    ) -> Result<Self, AuthError> {
        let mut authorization = authorization.into_iter();
        let found = match (authorization.next(), authorization.next()) {
            (Some(value), None) => {
                bearer(value.as_ref()).map(Self::Bearer).ok_or(RejectReason::Malformed)
            }
            (Some(_), Some(_)) => Err(RejectReason::Malformed),
            (None, _) => session(cookies.into_iter().map(AsRef::as_ref)).map(Self::Cookie),
        };
        found.map_err(AuthError::unauthenticated)
    }

    /// Returns the unverified token.
    pub fn token(self) -> &'a str {
        match self {
            Self::Bearer(token) | Self::Cookie(token) => token,
        }
    }
}

impl std::fmt::Debug for PresentedToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(***)",
            Self::Cookie(_) => "Cookie(***)",
        })
    }
}

fn bearer(value: &[u8]) -> Option<&str> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    if scheme.eq_ignore_ascii_case(b"Bearer ") { text(token) } else { None }
}

/// Finds the session cookie. Two of them are rejected: a page on a sibling port can add one.
fn session<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<&'a str, RejectReason> {
    let pairs = values.flat_map(|value| value.split(|byte| *byte == b';'));
    let mut sessions = pairs.filter_map(|pair| {
        let (name, value) = pair.trim_ascii().split_at_checked(SESSION_COOKIE.len())?;
        (name == SESSION_COOKIE.as_bytes()).then(|| value.strip_prefix(b"="))?
    });
    match (sessions.next(), sessions.next()) {
        (None, _) => Err(RejectReason::Missing),
        (Some(value), None) => text(value).ok_or(RejectReason::Malformed),
        (Some(_), Some(_)) => Err(RejectReason::Malformed),
    }
}

/// Accepts the characters of a bearer token (RFC 6750, 2.1).
fn text(token: &[u8]) -> Option<&str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let fits = !token.is_empty() && token.len() <= MAX_TOKEN_BYTES;
    if fits && token.iter().copied().all(allowed) { str::from_utf8(token).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn find<'a>(
        authorization: &[&'a str],
        cookies: &[&'a str],
    ) -> Result<PresentedToken<'a>, RejectReason> {
        PresentedToken::find(authorization.iter().copied(), cookies.iter().copied())
            .map_err(|error| error.reason().unwrap())
    }

    #[test]
    fn the_scheme_is_read_in_any_case() {
        for value in ["Bearer a.b-c_d", "bearer a.b-c_d", "BEARER a.b-c_d"] {
            assert_eq!(find(&[value], &[]), Ok(PresentedToken::Bearer("a.b-c_d")));
        }
    }

    #[test]
    fn anything_but_one_plain_header_is_refused() {
        let huge = format!("Bearer {}", "a".repeat(MAX_TOKEN_BYTES + 1));
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer  a",
            "Bearer\ta",
            "Bearer a ",
            "Bearer a b",
            "Bearera",
            " Bearer a",
            "Basic YTpi",
            "ApiKey a",
            "Bearer a,Bearer b",
            "Bearer \"a\"",
            "Bearer ä",
            "Bearer a\0",
            "a.b.c",
            &huge,
        ] {
            assert_eq!(find(&[value], &[]), Err(RejectReason::Malformed), "{value:?}");
        }
        assert_eq!(find(&["Bearer a", "Bearer a"], &[]), Err(RejectReason::Malformed));
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        for cookies in [
            &["carrel_session=a.b"][..],
            &["x=1; carrel_session=a.b; y=2"],
            &["x=1;carrel_session=a.b"],
            &["x=1", "carrel_session=a.b"],
            &["my_carrel_session=c; carrel_session=a.b; carrel_session2=d"],
        ] {
            assert_eq!(find(&[], cookies), Ok(PresentedToken::Cookie("a.b")), "{cookies:?}");
        }
    }

    #[test]
    fn a_doubtful_session_is_refused_and_a_missing_one_named_so() {
        for cookies in [
            &["carrel_session=a; carrel_session=a"][..],
            &["carrel_session=a", "carrel_session=b"],
            &["carrel_session="],
            &["carrel_session=\"a\""],
            &["carrel_session=a b"],
        ] {
            assert_eq!(find(&[], cookies), Err(RejectReason::Malformed), "{cookies:?}");
        }
        for cookies in [&[][..], &["x=1"], &["Carrel_session=a"], &["carrel_session"]] {
            assert_eq!(find(&[], cookies), Err(RejectReason::Missing), "{cookies:?}");
        }
    }

    #[test]
    fn a_cookie_is_no_second_try_after_a_bad_header() {
        assert_eq!(find(&["Basic x"], &["carrel_session=a"]), Err(RejectReason::Malformed));
        assert_eq!(find(&["Bearer b"], &["carrel_session=a"]), Ok(PresentedToken::Bearer("b")));
        assert_eq!(format!("{:?}", PresentedToken::Bearer("b")), "Bearer(***)");
    }
}
