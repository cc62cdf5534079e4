//! The hosts and origins that requests may carry, against DNS rebinding.
//!
//! A browser sends the name that it connected to as `Host` and the page's origin as `Origin`. A page can
//! point its own name at 127.0.0.1, but the browser then still sends that name, which is not in the list.
//! A server asks [`AllowedHosts::check`] for requests whose credentials a browser adds by itself, or that
//! have none.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{HeaderMap, HeaderValue, Uri, header, uri::Authority};

const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A host name or address, with a port or for every port. Case, a trailing dot and the spelling of IPv6
/// addresses do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    host: String,
    port: Option<u16>,
}

impl HostName {
    /// Parses `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Some(Self { host: address.to_string(), port: None });
        }
        let authority: Authority = text.parse().ok()?;
        // `user@host` parses as an authority, but no browser sends it in `Host`.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        // An authority accepts a port beyond 65535 or none behind a colon; no browser sends one.
        let rest = authority.as_str().strip_prefix(authority.host())?;
        if !rest.is_empty() && authority.port_u16().is_none() {
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

    fn of_address(address: IpAddr) -> Self {
        Self { host: address.to_canonical().to_string(), port: None }
    }

    fn allows(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

/// The origin of a page: scheme, host and port. The opaque origin `null` does not parse, so it is never
/// allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    /// Parses `scheme://host` or `scheme://host:port`. The usual port of `http` and `https` may be left out.
    pub fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let authority = uri.authority()?;
        // An absolute URI without a path gets `/` when it is parsed.
        let bare = uri.path_and_query().is_none_or(|rest| rest.as_str() == "/");
        let bare = bare && !text.ends_with('/');
        let HostName { host, port } =
            bare.then(|| HostName::parse(authority.as_str())).flatten()?;
        let port = port.or_else(|| usual_port(&scheme));
        Some(Self { scheme, host, port })
    }

    /// Returns the host of the origin, for every port: names are what a page could have pointed here.
    pub fn host_name(&self) -> HostName {
        HostName { host: self.host.clone(), port: None }
    }

    /// Returns whether a server that is reached as `host` serves the pages of this origin.
    fn is_of(&self, host: &HostName) -> bool {
        let usual = usual_port(&self.scheme);
        usual.is_some() && self.host == host.host && self.port == host.port.or(usual)
    }
}

fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// A request whose host or origin is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The host is missing, repeated, malformed or of another server.
    #[error("this server does not accept that Host")]
    Host,
    /// The page is of another origin.
    #[error("pages of that Origin may not use this server")]
    Origin,
}

/// The hosts and origins of requests that are served.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    names: Vec<HostName>,
    origins: Vec<Origin>,
}

impl AllowedHosts {
    /// Allows the loopback names with every port, and no pages but the server's own.
    pub fn loopback() -> Self {
        let name = |host: &str| HostName { host: host.to_owned(), port: None };
        Self { names: LOOPBACK_NAMES.iter().map(|host| name(host)).collect(), origins: Vec::new() }
    }

    /// Allows an address of this machine as a host, unless it stands for all of them.
    pub fn allow_address(&mut self, address: IpAddr) {
        if !address.is_unspecified() {
            self.names.push(HostName::of_address(address));
        }
    }

    /// Allows one more host.
    pub fn allow_host(&mut self, name: HostName) {
        self.names.push(name);
    }

    /// Allows the pages of one more origin.
    pub fn allow_origin(&mut self, origin: Origin) {
        self.origins.push(origin);
    }

    /// Checks the host of a request, and the origin if it has one. A host that is the address `reached`,
    /// at which the connection arrived, is the server's own: an address cannot be pointed elsewhere.
    pub fn check(
        &self,
        host: Option<&str>,
        headers: &HeaderMap,
        reached: Option<IpAddr>,
    ) -> Result<(), HostError> {
        let host = host.and_then(HostName::parse).ok_or(HostError::Host)?;
        let is_reached = reached.is_some_and(|address| HostName::of_address(address).allows(&host));
        if !is_reached && !self.names.iter().any(|name| name.allows(&host)) {
            return Err(HostError::Host);
        }
        self.check_origin(&host, headers)
    }

    /// Checks the origin of a request alone, for a server that is reached under any name.
    pub fn check_own_origin(
        &self,
        host: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), HostError> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        self.check_origin(&host.and_then(HostName::parse).ok_or(HostError::Host)?, headers)
    }

    /// Checks that pages of the request's origin may send requests to `host`: the server's own pages, and
    /// pages that the operator allowed. Another port on the same host is another origin.
    fn check_origin(&self, host: &HostName, headers: &HeaderMap) -> Result<(), HostError> {
        let allows = |value: &HeaderValue| {
            let origin = value.to_str().ok().and_then(Origin::parse);
            origin.is_some_and(|origin| origin.is_of(host) || self.origins.contains(&origin))
        };
        let all = headers.get_all(header::ORIGIN).iter().all(allows);
        if all { Ok(()) } else { Err(HostError::Origin) }
    }
}

/// Returns the host that a request names: in `Host`, or in its target if there is no `Host`. None if there are
/// several.
pub fn requested_host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        // A request in absolute form may name the host in its target instead.
        (None, _) => uri.authority().map(Authority::as_str),
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn check(list: &AllowedHosts, host: &str, origin: Option<&str>) -> Result<(), HostError> {
        let origin = origin.map(|origin| HeaderValue::from_str(origin).unwrap());
        let headers = origin.map(|origin| (header::ORIGIN, origin)).into_iter().collect();
        list.check(Some(host), &headers, None)
    }

    #[test]
    fn loopback_names_pass_with_any_port_and_spelling() {
        let list = AllowedHosts::loopback();
        for host in
            ["localhost", "LOCALHOST:80", "localhost.", "127.0.0.1:8080", "[::1]", "[0:0::1]:9"]
        {
            assert_eq!(check(&list, host, None), Ok(()), "{host}");
        }
        for (origin, host) in [
            ("http://localhost", "localhost"),
            ("http://localhost", "localhost:80"),
            ("https://localhost:443", "localhost"),
            ("http://localhost:3000", "LOCALHOST:3000"),
            ("https://[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(check(&list, host, Some(origin)), Ok(()), "{origin}");
        }
        for (origin, host) in [
            ("http://localhost:3000", "localhost:8765"),
            ("http://localhost:3000", "127.0.0.1:3000"),
            ("http://localhost", "localhost:8765"),
            ("https://localhost", "localhost:80"),
        ] {
            let refused = check(&list, host, Some(origin));
            assert_eq!(refused, Err(HostError::Origin), "a page of another server: {origin}");
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
            "localhost:",
            "localhost:99999",
        ] {
            assert_eq!(check(&list, host, None), Err(HostError::Host), "{host}");
        }
        for origin in [
            "null",
            "localhost",
            "http://evil.example",
            "ftp://localhost",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://localhost/path",
            "http://localhost/",
            "http://",
            "",
            "file://localhost",
        ] {
            let refused = check(&list, "localhost", Some(origin));
            assert_eq!(refused, Err(HostError::Origin), "{origin}");
        }
    }

    #[test]
    fn a_port_in_the_list_is_the_only_one_that_passes() {
        let name = HostName::parse("box.example:8443").expect("a name with a port");
        let list = AllowedHosts { names: vec![name], origins: Vec::new() };
        assert_eq!(check(&list, "box.example:8443", None), Ok(()));
        assert_eq!(check(&list, "box.example:80", None), Err(HostError::Host));
        assert_eq!(check(&list, "box.example", None), Err(HostError::Host));
    }

    #[test]
    fn an_allowed_origin_is_exact_and_its_usual_port_may_be_left_out() {
        let mut list = AllowedHosts::loopback();
        list.allow_origin(Origin::parse("https://app.example").unwrap());
        for origin in ["https://app.example", "https://APP.example:443"] {
            assert_eq!(check(&list, "localhost", Some(origin)), Ok(()), "{origin}");
        }
        for origin in ["http://app.example", "https://app.example:8443", "https://x.app.example"] {
            assert_eq!(check(&list, "localhost", Some(origin)), Err(HostError::Origin), "{origin}");
        }
    }

    #[test]
    fn the_address_at_which_a_connection_arrived_is_a_host() {
        let list = AllowedHosts::loopback();
        let headers = HeaderMap::new();
        for (reached, host, passes) in [
            ("10.0.0.5", "10.0.0.5:8080", true),
            ("::ffff:10.0.0.5", "10.0.0.5", true),
            ("fd00::5", "[fd00:0::5]:8080", true),
            ("10.0.0.5", "10.0.0.6", false),
            ("10.0.0.5", "evil.example", false),
        ] {
            let checked = list.check(Some(host), &headers, Some(reached.parse().unwrap()));
            assert_eq!(checked.is_ok(), passes, "{host} at {reached}");
        }
        assert_eq!(list.check(None, &headers, None), Err(HostError::Host));
    }

    #[test]
    fn a_request_names_one_host() {
        let uri: Uri = "http://target.example/mcp".parse().unwrap();
        let mut headers = HeaderMap::new();
        assert_eq!(requested_host(&uri, &headers), Some("target.example"));
        assert_eq!(requested_host(&Uri::from_static("/mcp"), &headers), None);
        headers.append(header::HOST, HeaderValue::from_static("a.example"));
        assert_eq!(requested_host(&uri, &headers), Some("a.example"));
        headers.append(header::HOST, HeaderValue::from_static("a.example"));
        assert_eq!(requested_host(&uri, &headers), None);
    }
}
