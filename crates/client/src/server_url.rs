//! The URL of a server.

use std::fmt;
use std::iter;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use hyper::http::uri::Scheme;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that need no percent-encoding: RFC 3986 calls them unreserved.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The reason that a text is not the URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the URL of a server: it {rule}; an example is http://127.0.0.1:8080")]
pub struct InvalidServerUrl {
    rule: &'static str,
}

/// The URL of a server: scheme, authority, and the prefix of its paths.
///
/// It has no user, query or fragment: a token in a URL would end up in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    secure: bool,
    authority: String,
    host: String,
    /// Empty, or begins with `/` and does not end with one.
    prefix: String,
}

impl ServerUrl {
    /// Returns `true` if requests cross a network unencrypted, so that no token may be sent.
    pub fn is_cleartext_remote(&self) -> bool {
        !self.secure && !self.is_loopback()
    }

    /// Returns `true` for `localhost` and loopback addresses.
    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost"
            || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
    }

    pub(crate) fn at(&self, path: &str, query: &[(String, String)]) -> String {
        let pairs = query.iter().zip(iter::once('?').chain(iter::repeat('&')));
        let pairs =
            pairs.map(|((name, value), mark)| format!("{mark}{name}={}", percent_encode(value)));
        format!("{self}{path}{}", pairs.collect::<String>())
    }
}

/// Percent-encodes a text for one segment of a path, or one value of a query.
pub fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

impl FromStr for ServerUrl {
    type Err = InvalidServerUrl;

    fn from_str(text: &str) -> Result<Self, InvalidServerUrl> {
        let invalid = |rule| InvalidServerUrl { rule };
        if text.contains('#') {
            return Err(invalid("has a `#`"));
        }
        let uri: Uri = text.parse().map_err(|_| invalid("is not a URL"))?;
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(invalid("begins with neither http:// nor https://")),
        };
        let authority = uri.authority().ok_or_else(|| invalid("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid("names a user; a token is not part of a URL"));
        }
        if authority.host().is_empty() {
            return Err(invalid("names no host"));
        }
        if uri.query().is_some() {
            return Err(invalid("has a query"));
        }
        Ok(Self {
            secure,
            authority: authority.as_str().to_ascii_lowercase(),
            host: authority.host().to_ascii_lowercase(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn urls_are_parsed_by_the_table() {
        for (text, excerpt) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("https://Carrel.Example", "https://carrel.example"),
            ("https://example.org/carrel/", "https://example.org/carrel"),
            ("http://[::1]:9", "http://[::1]:9"),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().to_string(), excerpt);
        }
        for text in [
            "",
            "127.0.0.1:8080",
            "/x",
            "ftp://x",
            "http://",
            "http://user:password@x",
            "http://x/?a=b",
            "http://x/#a",
            "http://x y",
            "unix:///run/x",
        ] {
            assert!(text.parse::<ServerUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_this_host_is_loopback() {
        let loopback = |text: &str| text.parse::<ServerUrl>().unwrap().is_loopback();
        for text in [
            "http://127.9.9.9",
            "http://[::1]:1",
            "http://localhost:1",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(loopback(text), "{text}");
        }
        for text in ["http://10.0.0.1", "http://localhost.evil.org", "http://127.0.0.1.evil.org"] {
            assert!(
                !loopback(text) && text.parse::<ServerUrl>().unwrap().is_cleartext_remote(),
                "{text}"
            );
        }
        assert!(!"https://10.0.0.1".parse::<ServerUrl>().unwrap().is_cleartext_remote());
    }

    #[test]
    fn values_cannot_escape_their_position() {
        let server: ServerUrl = "http://x".parse().unwrap();
        let query = [("path", "a b&c=d/ä#?%"), ("n", "1")];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            server.at("/files", &query),
            "http://x/files?path=a%20b%26c%3Dd%2F%C3%A4%23%3F%25&n=1"
        );
        assert_eq!(percent_encode("../x"), "..%2Fx");
    }
}
