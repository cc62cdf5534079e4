//! The hosts and origins that requests may carry, against DNS rebinding.
//!
//! A browser sends the name that it connected to as `Host` and the page's origin as `Origin`. A page can
//! point its own name at 127.0.0.1, but the browser then still sends that name, which is not in the list.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{Uri, uri::Authority};

const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A host name or address, with a port or for every port. Case, a trailing dot and the spelling of IPv6
/// addresses do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostName {
    host: String,
    port: Option<u16>,
}

impl HostName {
    /// Parses `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Some(Self { host: address.to_string(), port: None });
        }
        let authority: Authority = text.parse().ok()?;
        // `user@host` parses as an authority, but no browser sends it in `Host`.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        Some(Self::of(&authority))
    }

    fn of(authority: &Authority) -> Self {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let host = match host.parse::<Ipv6Addr>() {
            Ok(address) => address.to_string(),
            Err(_) => host.trim_end_matches('.').to_ascii_lowercase(),
        };
        Self { host, port: authority.port_u16() }
    }

    pub(crate) fn of_address(address: IpAddr) -> Self {
        Self { host: address.to_string(), port: None }
    }

    fn allows(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

/// The origin of a page. The opaque origin `null` does not parse, so it is never allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    name: HostName,
}

impl Origin {
    /// Parses `scheme://host` or `scheme://host:port`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let authority = uri.authority()?;
        let bare = uri.path_and_query().is_none_or(|rest| rest.as_str() == "/");
        let name = bare.then(|| HostName::parse(authority.as_str())).flatten()?;
        Some(Self { scheme, name })
    }

    fn allows(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.name.allows(&other.name)
    }
}

/// The hosts and origins of requests that are served.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts {
    pub(crate) names: Vec<HostName>,
    pub(crate) origins: Vec<Origin>,
}

impl AllowedHosts {
    /// Allows the loopback names with every port, and no pages but the server's own.
    pub(crate) fn loopback() -> Self {
        let name = |host: &str| HostName { host: host.to_owned(), port: None };
        Self { names: LOOPBACK_NAMES.iter().map(|host| name(host)).collect(), origins: Vec::new() }
    }

    pub(crate) fn allows_host(&self, text: &str) -> bool {
        HostName::parse(text).is_some_and(|host| self.names.iter().any(|name| name.allows(&host)))
    }

    /// Returns whether pages of an origin may send requests to `host`: the server's own pages, and those
    /// that the operator allowed. Another port on the same host is another origin.
    pub(crate) fn allows_origin(&self, text: &str, host: &str) -> bool {
        let Some(origin) = Origin::parse(text) else { return false };
        let is_own = matches!(origin.scheme.as_str(), "http" | "https")
            && HostName::parse(host).is_some_and(|host| host == origin.name);
        is_own || self.origins.iter().any(|allowed| allowed.allows(&origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_pass_with_any_port_and_spelling() {
        let list = AllowedHosts::loopback();
        for host in
            ["localhost", "LOCALHOST:80", "localhost.", "127.0.0.1:8080", "[::1]", "[0:0::1]:9"]
        {
            assert!(list.allows_host(host), "{host}");
        }
        for (origin, host) in [
            ("http://localhost", "localhost"),
            ("http://localhost:3000", "LOCALHOST:3000"),
            ("https://[::1]:1", "[::1]:1"),
        ] {
            assert!(list.allows_origin(origin, host), "{origin}");
        }
        for (origin, host) in [
            ("http://localhost:3000", "localhost:8765"),
            ("http://localhost:3000", "127.0.0.1:3000"),
            ("http://localhost", "localhost:8765"),
        ] {
            assert!(!list.allows_origin(origin, host), "a page of another server: {origin}");
        }
    }

    #[test]
    fn names_that_only_look_like_loopback_are_refused() {
        let list = AllowedHosts::loopback();
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:80",
            "localhost@evil.example",
            "evil@localhost",
            "127.0.0.1.nip.io",
            "0.0.0.0",
            "127.0.0.2",
            "[::2]",
        ] {
            assert!(!list.allows_host(host), "{host}");
        }
        for origin in [
            "null",
            "localhost",
            "http://evil.example",
            "ftp://localhost",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://localhost/path",
        ] {
            assert!(!list.allows_origin(origin, "localhost"), "{origin}");
        }
    }

    #[test]
    fn a_port_in_the_list_is_the_only_one_that_passes() {
        let name = HostName::parse("box.example:8443").expect("a name with a port");
        let list = AllowedHosts { names: vec![name], origins: Vec::new() };
        assert!(list.allows_host("box.example:8443"));
        assert!(!list.allows_host("box.example:80"));
        assert!(!list.allows_host("box.example"));
    }
}
