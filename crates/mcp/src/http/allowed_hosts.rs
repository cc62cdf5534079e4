//! The names under which a server may be called, against DNS rebinding.
//!
//! A browser sends the name it was told to connect to as `Host` and the page that asked as `Origin`.
//! Both must be names that the operator allowed, so a foreign page cannot reach a local server by
//! pointing its own name at this machine.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{Uri, uri::Authority};

/// The names of this machine for itself.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A name with or without a port. Without one, every port is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
    /// Reads `host`, `host:port`, `[v6]`, `[v6]:port` or a bare address of version 6.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Some(Self { host: address.to_string(), port: None });
        }
        let authority: Authority = text.parse().ok()?;
        // `user@host` is an authority, but no browser sends it here and nobody means it.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        Some(Self::of(&authority))
    }

    fn of(authority: &Authority) -> Self {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        // The same address may be written in several ways.
        let host = match host.parse::<Ipv6Addr>() {
            Ok(address) => address.to_string(),
            Err(_) => host.trim_end_matches('.').to_ascii_lowercase(),
        };
        Self { host, port: authority.port_u16() }
    }

    /// The name that an address is for itself.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        Self { host: address.to_string(), port: None }
    }

    fn allows(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

/// A page's origin. The opaque origin `null` is never allowed, so it has no form here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    name: Name,
}

impl Origin {
    /// Reads `scheme://host` or `scheme://host:port`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let authority = uri.authority()?;
        let bare = uri.path_and_query().is_none_or(|rest| rest.as_str() == "/");
        let name = bare.then(|| Name::parse(authority.as_str())).flatten()?;
        Some(Self { scheme, name })
    }

    fn allows(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.name.allows(&other.name)
    }
}

/// Which names and origins are let through.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts {
    pub(crate) names: Vec<Name>,
    pub(crate) origins: Vec<Origin>,
}

impl AllowedHosts {
    /// The loopback names with every port, and no page but those of the server itself.
    pub(crate) fn loopback() -> Self {
        let name = |host: &str| Name { host: host.to_owned(), port: None };
        Self { names: LOOPBACK_NAMES.iter().map(|host| name(host)).collect(), origins: Vec::new() }
    }

    /// Whether a `Host` header may pass.
    pub(crate) fn allows_host(&self, text: &str) -> bool {
        Name::parse(text).is_some_and(|host| self.names.iter().any(|name| name.allows(&host)))
    }

    /// Whether an `Origin` header may pass in a request for this host: that of the very server that is
    /// asked, or one that the operator named. A page of another port is somebody else's.
    pub(crate) fn allows_origin(&self, text: &str, host: &str) -> bool {
        let Some(origin) = Origin::parse(text) else { return false };
        let is_own = matches!(origin.scheme.as_str(), "http" | "https")
            && Name::parse(host).is_some_and(|host| host == origin.name);
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
        let name = Name::parse("box.example:8443").expect("a name with a port");
        let list = AllowedHosts { names: vec![name], origins: Vec::new() };
        assert!(list.allows_host("box.example:8443"));
        assert!(!list.allows_host("box.example:80"));
        assert!(!list.allows_host("box.example"));
    }
}
