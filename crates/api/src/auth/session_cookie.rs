//! The session cookie of the console page, and protection against cross-site request forgery.
//!
//! The cookie is `HttpOnly` and `SameSite=Strict`. That is not enough for a server on loopback: to a browser
//! every port of the host is the same site. A mutation must therefore come with a header that a foreign page
//! cannot send, or with an `Origin` that is the server's own.

use std::time::Duration;

use carrel_domain::Secret;

use super::error::AuthError;

/// The name of the session cookie.
pub const SESSION_COOKIE: &str = "carrel_session";

/// Lifetime of a session.
pub const SESSION_LIFETIME: Duration = Duration::from_hours(12);

/// The header that the page adds to its requests. A page of another origin needs a CORS preflight for it,
/// which the server does not grant.
pub const CONSOLE_HEADER: &str = "x-carrel-console";

const CONSOLE_VALUE: &str = "1";

/// The connection between browser and server, which decides the attribute `Secure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Loopback, unencrypted.
    Loopback,
    /// A network; the browser sends the cookie over TLS only.
    Network,
}

impl Transport {
    const fn attribute(self) -> &'static str {
        match self {
            Self::Loopback => "",
            Self::Network => "; Secure",
        }
    }
}

/// Returns the `Set-Cookie` value that starts a session.
pub fn begin_session(token: &Secret, transport: Transport) -> Secret {
    Secret::new(cookie(token.expose(), SESSION_LIFETIME, transport))
}

/// Returns the `Set-Cookie` value that ends a session.
pub fn end_session(transport: Transport) -> String {
    cookie("", Duration::ZERO, transport)
}

fn cookie(value: &str, lifetime: Duration, transport: Transport) -> String {
    let (seconds, secure) = (lifetime.as_secs(), transport.attribute());
    format!(
        "{SESSION_COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    )
}

/// The page that sent a request, as its `Origin` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPage {
    /// The request has no `Origin`.
    Unknown,
    /// A page of the server itself.
    Own,
    /// A page of another origin.
    Foreign,
}

/// Checks that a request may use the session cookie.
///
/// Reads may. A mutation needs [`CONSOLE_HEADER`], or an `Origin` of the server itself.
pub fn check_cookie_request(
    method: &str,
    page: RequestPage,
    console: Option<&str>,
) -> Result<(), AuthError> {
    let reads = matches!(method, "GET" | "HEAD" | "OPTIONS");
    let of_the_page = || console == Some(CONSOLE_VALUE) || page == RequestPage::Own;
    if reads || of_the_page() { Ok(()) } else { Err(AuthError::ForeignPage) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_session_is_kept_from_scripts_and_other_sites() {
        let cookie = begin_session(&Secret::new("a.b.c"), Transport::Network);
        assert_eq!(
            cookie.expose(),
            "carrel_session=a.b.c; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(
            end_session(Transport::Loopback),
            "carrel_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
        );
    }

    #[test]
    fn reading_needs_nothing_more_than_the_cookie() {
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert_eq!(check_cookie_request(method, RequestPage::Foreign, None), Ok(()));
        }
    }

    #[test]
    fn a_change_has_to_come_from_the_page() {
        let post = |page, console| check_cookie_request("POST", page, console);
        assert_eq!(post(RequestPage::Unknown, Some("1")), Ok(()));
        assert_eq!(post(RequestPage::Own, None), Ok(()));
        for (page, console) in [
            (RequestPage::Unknown, None),
            (RequestPage::Unknown, Some("")),
            (RequestPage::Unknown, Some("0")),
            (RequestPage::Unknown, Some("1, 1")),
            (RequestPage::Foreign, None),
        ] {
            assert_eq!(post(page, console), Err(AuthError::ForeignPage), "{page:?} {console:?}");
        }
        for method in ["PUT", "PATCH", "DELETE", "get", "TRACE", "", "GET "] {
            let answer = check_cookie_request(method, RequestPage::Unknown, None);
            assert_eq!(answer, Err(AuthError::ForeignPage), "{method}");
        }
    }
}
