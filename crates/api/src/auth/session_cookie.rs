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

/// Checks that a request may use the session cookie.
///
/// Reads may. A mutation needs [`CONSOLE_HEADER`], or an `Origin` that equals the `Host`.
pub fn check_cookie_request(
    method: &str,
    origin: Option<&str>,
    host: Option<&str>,
    console: Option<&str>,
) -> Result<(), AuthError> {
    let reads = matches!(method, "GET" | "HEAD" | "OPTIONS");
    let of_the_page = || console == Some(CONSOLE_VALUE);
    let same_origin =
        || origin.zip(host).is_some_and(|(origin, host)| is_same_origin(origin, host));
    if reads || of_the_page() || same_origin() { Ok(()) } else { Err(AuthError::ForeignPage) }
}

fn is_same_origin(origin: &str, host: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let plain = |text: &str| text.strip_suffix(default_port).unwrap_or(text).to_ascii_lowercase();
    !authority.is_empty() && plain(authority) == plain(host)
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
            assert_eq!(check_cookie_request(method, Some("http://evil"), Some("a"), None), Ok(()));
        }
    }

    #[test]
    fn a_change_has_to_come_from_the_page() {
        let host = Some("127.0.0.1:8080");
        let post = |origin, console| check_cookie_request("POST", origin, host, console);
        assert_eq!(post(None, Some("1")), Ok(()));
        assert_eq!(post(Some("http://127.0.0.1:8080"), None), Ok(()));
        for (origin, console) in [
            (None, None),
            (None, Some("")),
            (None, Some("0")),
            (None, Some("1, 1")),
            (Some("null"), None),
            (Some(""), None),
            (Some("http://"), None),
            (Some("http://127.0.0.1"), None),
            (Some("http://127.0.0.1:3000"), None),
            (Some("http://localhost:8080"), None),
            (Some("http://127.0.0.1:8080.evil.example"), None),
            (Some("http://127.0.0.1:8080/"), None),
            (Some("http://u@127.0.0.1:8080"), None),
            (Some("file://127.0.0.1:8080"), None),
        ] {
            assert_eq!(
                post(origin, console),
                Err(AuthError::ForeignPage),
                "{origin:?} {console:?}"
            );
        }
        for method in ["PUT", "PATCH", "DELETE", "get", "TRACE", "", "GET "] {
            let answer = check_cookie_request(method, None, host, None);
            assert_eq!(answer, Err(AuthError::ForeignPage), "{method}");
        }
    }

    #[test]
    fn the_usual_port_may_be_left_out() {
        for (origin, host, same) in [
            ("http://a.example", "a.example:80", true),
            ("https://A.example", "a.example", true),
            ("https://a.example:443", "a.example", true),
            ("https://a.example", "a.example:80", false),
            ("http://a.example:8080", "a.example:80", false),
            ("http://[::1]:8080", "[::1]:8080", true),
            ("http://", "", false),
        ] {
            assert_eq!(is_same_origin(origin, host), same, "{origin} {host}");
        }
        assert!(check_cookie_request("POST", Some("http://a"), None, None).is_err());
    }
}
