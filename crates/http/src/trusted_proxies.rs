//! Reverse proxies whose word counts about the request that they forward.
//!
//! A proxy connects for its client, so that the server sees the proxy's address and the name under which the
//! proxy reaches it. The proxy says in `X-Forwarded-Host` and `X-Forwarded-Proto` what the client asked for,
//! and in `X-Forwarded-For` who it was. Any client can send these headers, so they count only on connections
//! from addresses that the operator named.

use std::net::IpAddr;

use axum::http::HeaderMap;

const FORWARDED_HOST: &str = "x-forwarded-host";
const FORWARDED_PROTO: &str = "x-forwarded-proto";
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The two ends of the connection that a request arrived on. [`crate::HttpServer`] puts it into the extensions
/// of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnds {
    /// The address of the client, or of the proxy in front of it.
    pub peer: IpAddr,
    /// The address of this machine that it connected to.
    pub reached: IpAddr,
}

/// Addresses with a common prefix, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// Parses an address, or an address with the length of a prefix (CIDR).
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = bits.unwrap_or_else(|| width(address));
        (bits <= width(address)).then_some(Self { address, bits })
    }

    fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(address) == width(self.address)
            && prefix(address, self.bits) == prefix(self.address, self.bits)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns the first bits of an address.
fn prefix(address: IpAddr, bits: u32) -> u128 {
    let all = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    all.checked_shr(width(address) - bits).unwrap_or(0)
}

/// The proxies that the operator named.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<AddressRange>);

/// A proxy's account of the request that it forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded<'a> {
    /// The host that the client named.
    pub host: Option<&'a str>,
    /// True if the client used TLS.
    pub is_encrypted: bool,
    /// The address of the client.
    pub client: Option<IpAddr>,
}

impl TrustedProxies {
    /// Trusts connections from these addresses.
    pub fn new(ranges: Vec<AddressRange>) -> Self {
        Self(ranges)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.holds(address))
    }

    /// Returns the account of a proxy that is trusted; nothing for a connection of another peer.
    ///
    /// A proxy appends its value to the values that the client sent, so that the last one is its own. In
    /// `X-Forwarded-For` each proxy of a chain appends the peer that it saw: the client is the last one that
    /// is not itself a trusted proxy.
    pub fn forwarded<'a>(&self, peer: Option<IpAddr>, headers: &'a HeaderMap) -> Forwarded<'a> {
        if !peer.is_some_and(|peer| self.trusts(peer)) {
            return Forwarded::default();
        }
        let addresses = values(headers, FORWARDED_FOR);
        let mut addresses = addresses.rev().map_while(|text| text.parse::<IpAddr>().ok());
        Forwarded {
            host: values(headers, FORWARDED_HOST).next_back(),
            is_encrypted: values(headers, FORWARDED_PROTO)
                .next_back()
                .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
            client: addresses.find(|address| !self.trusts(*address)),
        }
    }
}

/// Returns the values of a header that is a list, also if it is repeated.
fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl DoubleEndedIterator<Item = &'a str> {
    let lines: Vec<_> = headers.get_all(name).iter().collect();
    let texts = lines.into_iter().map(|line| line.to_str().unwrap_or_default());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn a_range_holds_the_addresses_with_its_prefix() {
        for (range, inside, outside) in [
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", "::a00:1"),
            ("192.168.1.129/25", "192.168.1.255", "192.168.1.1"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("::1", "::1", "::2"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "fe80::1", "127.0.0.1"),
        ] {
            let parsed = AddressRange::parse(range).unwrap();
            assert!(parsed.holds(address(inside)), "{range} {inside}");
            assert!(!parsed.holds(address(outside)), "{range} {outside}");
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "proxy", "10.0.0/8"] {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_trusted_peer_is_believed() {
        let proxies = TrustedProxies::new(vec![AddressRange::parse("10.0.0.0/8").unwrap()]);
        let said = headers(&[
            ("x-forwarded-host", "carrel.example"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", "203.0.113.9"),
        ]);
        let believed = Forwarded {
            host: Some("carrel.example"),
            is_encrypted: true,
            client: Some(address("203.0.113.9")),
        };
        assert_eq!(proxies.forwarded(Some(address("10.1.1.1")), &said), believed);
        for peer in [Some(address("11.1.1.1")), None] {
            assert_eq!(proxies.forwarded(peer, &said), Forwarded::default(), "{peer:?}");
        }
        let none = TrustedProxies::default();
        assert_eq!(none.forwarded(Some(address("127.0.0.1")), &said), Forwarded::default());
    }

    #[test]
    fn the_value_of_the_proxy_itself_counts_and_not_that_of_its_client() {
        let proxies = TrustedProxies::new(vec![AddressRange::parse("10.0.0.0/8").unwrap()]);
        let said = headers(&[
            ("x-forwarded-host", "localhost, carrel.example"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-for", "127.0.0.1, 203.0.113.9, 10.0.0.7"),
        ]);
        let found = proxies.forwarded(Some(address("10.1.1.1")), &said);
        let client = Some(address("203.0.113.9"));
        let host = Some("carrel.example");
        assert_eq!(found, Forwarded { host, is_encrypted: false, client });
    }
}
