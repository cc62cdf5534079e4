//! Options of the HTTP transport.

use std::{net::SocketAddr, time::Duration};

use carrel_http::{AllowedHosts, ConnectionLimits, HostName, Origin};

use super::bearer_token::BearerToken;
use crate::limits::{
    BODY_READ_TIMEOUT, HEADER_READ_TIMEOUT, MAX_CONNECTIONS, MAX_MESSAGE_BYTES, MAX_SESSIONS,
    MAX_SESSIONS_PER_OWNER, SESSION_IDLE, WRITE_STALL,
};

/// Options that are not safe or not well-formed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The address is reachable from other machines, and without a token each of them could run commands.
    #[error("{address} can be reached from other machines, so a bearer token is required")]
    TokenRequired {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The text is not `host` or `host:port`.
    #[error("not a host name: {text}")]
    NotAHost {
        /// The text.
        text: String,
    },
    /// The text is not `scheme://host` or `scheme://host:port`.
    #[error("not an origin: {text}")]
    NotAnOrigin {
        /// The text.
        text: String,
    },
}

/// The form of the response to a call without messages before its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyFormat {
    /// Plain JSON if the reply comes within [`crate::JSON_REPLY_TIMEOUT`], else an event stream.
    #[default]
    Json,
    /// Always an event stream.
    EventStream,
}

/// The way of a plain `tools/call` or `tools/list` from its connection to the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallPath {
    /// Through a service of the SDK, as every other message. For handlers that send messages of their own
    /// while they serve such a request.
    #[default]
    Service,
    /// Straight to the handler, in the task of the connection. In the stateless revision a message that the
    /// handler then sends to its peer is lost, unless the client asked for progress.
    Direct,
}

/// The proof that requests carry. Other programs of the machine, of other users too, can connect to a loopback
/// port, so leaving it out is a choice that the operator makes in words.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// The token in `Authorization: Bearer …`.
    Bearer(BearerToken),
    /// None.
    Unauthenticated,
}

/// Options of the HTTP transport. They are made for an address, so that the token of a public one cannot
/// be forgotten.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    pub(crate) authentication: Authentication,
    pub(crate) allowed: AllowedHosts,
    /// The form of responses.
    pub reply_format: ReplyFormat,
    /// The way of plain requests.
    pub call_path: CallPath,
    /// The largest request body; a larger one is answered with 413.
    pub max_body_bytes: usize,
    /// Sessions that may be open at once.
    pub max_sessions: usize,
    /// Sessions that one owner may have open at once.
    pub max_sessions_per_owner: usize,
    /// The time without use after which a session expires.
    pub session_idle: Duration,
    /// The time in which the body of a request must arrive.
    pub body_read_timeout: Duration,
    /// The bounds of connections.
    pub connections: ConnectionLimits,
}

impl HttpOptions {
    /// Returns the options for an address to listen on. Unless it is loopback a token is required.
    ///
    /// Requests are accepted under the loopback names and under the address itself.
    pub fn new(address: SocketAddr, authentication: Authentication) -> Result<Self, OptionsError> {
        let mut options = Self::embedded();
        // Requests are not told apart here, so one owner may fill the table.
        options.max_sessions_per_owner = usize::MAX;
        options.authentication = authentication;
        options.allowed.allow_address(address.ip());
        options.check_address(address)?;
        Ok(options)
    }

    /// Returns the defaults for [`super::EmbeddedEndpoint`], whose server does access control itself.
    pub fn embedded() -> Self {
        Self {
            authentication: Authentication::Unauthenticated,
            allowed: AllowedHosts::loopback(),
            reply_format: ReplyFormat::Json,
            call_path: CallPath::Service,
            max_body_bytes: MAX_MESSAGE_BYTES,
            max_sessions: MAX_SESSIONS,
            max_sessions_per_owner: MAX_SESSIONS_PER_OWNER,
            session_idle: SESSION_IDLE,
            body_read_timeout: BODY_READ_TIMEOUT,
            connections: ConnectionLimits {
                header_read_timeout: HEADER_READ_TIMEOUT,
                write_stall: WRITE_STALL,
                max_connections: MAX_CONNECTIONS,
            },
        }
    }

    pub(crate) fn check_address(&self, address: SocketAddr) -> Result<(), OptionsError> {
        // `::ffff:127.0.0.1` is loopback too.
        let is_loopback = address.ip().to_canonical().is_loopback();
        match self.authentication {
            Authentication::Unauthenticated if !is_loopback => {
                Err(OptionsError::TokenRequired { address })
            }
            Authentication::Unauthenticated | Authentication::Bearer(_) => Ok(()),
        }
    }

    /// Accepts requests for one more host: `host` for every port, or `host:port`.
    pub fn allow_host(mut self, text: &str) -> Result<Self, OptionsError> {
        let error = || OptionsError::NotAHost { text: text.to_owned() };
        self.allowed.allow_host(HostName::parse(text).ok_or_else(error)?);
        Ok(self)
    }

    /// Accepts requests from pages of one more origin: `scheme://host`, or with a port.
    pub fn allow_origin(mut self, text: &str) -> Result<Self, OptionsError> {
        let error = || OptionsError::NotAnOrigin { text: text.to_owned() };
        let origin = Origin::parse(text.trim_end_matches('/'));
        self.allowed.allow_origin(origin.ok_or_else(error)?);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderMap;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn token() -> Authentication {
        Authentication::Bearer(BearerToken::new("0123456789abcdef").expect("a token"))
    }

    #[test]
    fn an_address_that_other_machines_reach_needs_a_token() {
        for text in ["0.0.0.0:1", "192.168.1.5:1", "[::]:1", "[fe80::1]:1"] {
            let address = address(text);
            let error = HttpOptions::new(address, Authentication::Unauthenticated).expect_err(text);
            assert_eq!(error, OptionsError::TokenRequired { address });
            assert!(HttpOptions::new(address, token()).is_ok(), "{text}");
        }
    }

    #[test]
    fn loopback_can_do_without_a_token() {
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            let options = HttpOptions::new(address(text), Authentication::Unauthenticated);
            assert!(options.is_ok(), "{text}");
        }
    }

    #[test]
    fn the_address_itself_is_an_accepted_name() {
        let options = HttpOptions::new(address("192.168.1.5:80"), token()).expect("a token");
        let checked = |host| options.allowed.check(Some(host), &HeaderMap::new(), None);
        assert!(checked("192.168.1.5:80").is_ok());
        assert!(checked("192.168.1.6:80").is_err());
    }

    #[test]
    fn names_and_origins_are_read_when_they_are_given() {
        let options = HttpOptions::new(address("127.0.0.1:1"), token()).expect("a token");
        assert!(options.clone().allow_host("box.example").is_ok());
        assert!(options.clone().allow_host("http://box.example").is_err());
        assert!(options.clone().allow_origin("https://box.example:443").is_ok());
        assert!(options.allow_origin("box.example").is_err());
    }
}
