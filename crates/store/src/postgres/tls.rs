//! How the bytes travel.

mod binding;
mod stream;

use std::sync::Arc;

use rustls::ClientConfig;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Connection, Socket};

use self::stream::{Connector, Stream};
use super::trouble::Trouble;
use crate::error::StoreError;
pub(super) use crate::tls::{Authorities, Rule};
use crate::tls::{AuthorityError, unverified, verified};

/// What is asked of a connection.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// It is not encrypted.
    Plain,
    /// It is encrypted if the server can do that. Who the server is, nobody knows.
    Preferred,
    /// It is encrypted. Who the server is, nobody knows.
    Unverified,
    /// It is encrypted, and an authority vouches for the server.
    Verified(Rule, Arc<ClientConfig>),
}

/// A connection that is made, and what carries its bytes.
pub(super) type Connected = (Client, Connection<Socket, Stream>);

impl Mode {
    /// Reads the certificates of authorities.
    pub(super) fn verified(rule: Rule, authorities: &Authorities) -> Result<Self, StoreError> {
        let config = verified(rule, authorities).map_err(|error| StoreError::Address {
            reason: match error {
                AuthorityError::System => format!("{error}, or add sslrootcert=PATH"),
                AuthorityError::File { .. } => format!("sslrootcert={error}"),
            },
        })?;
        Ok(Self::Verified(rule, config))
    }

    /// Returns what the server is asked for.
    pub(super) fn asks_for(&self) -> SslMode {
        match self {
            Self::Plain => SslMode::Disable,
            Self::Preferred => SslMode::Prefer,
            Self::Unverified | Self::Verified(..) => SslMode::Require,
        }
    }

    fn connector(&self) -> Connector {
        match self {
            Self::Plain => Connector::none(),
            Self::Preferred | Self::Unverified => Connector::new(unverified()),
            Self::Verified(_, config) => Connector::new(Arc::clone(config)),
        }
    }

    /// Says what to do about a server that is not what the address asks for.
    fn way_out(&self) -> &'static str {
        match self {
            Self::Plain | Self::Preferred | Self::Unverified => {
                "turn encryption on at the server, or use a socket or a private network and sslmode=disable"
            }
            Self::Verified(Rule::Authority, _) => {
                "name the certificate of the server's authority with sslrootcert=PATH or SSL_CERT_FILE"
            }
            Self::Verified(Rule::AuthorityAndName, _) => {
                "use the host that the certificate names, and name the certificate of its authority with \
                 sslrootcert=PATH or SSL_CERT_FILE"
            }
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Plain => "disable",
            Self::Preferred => "prefer",
            Self::Unverified => "require",
            Self::Verified(Rule::Authority, _) => "verify-ca (or require with sslrootcert)",
            Self::Verified(Rule::AuthorityAndName, _) => "verify-full",
        }
    }
}

/// Connects, encrypted as far as the mode asks for it.
pub(super) async fn connect(config: &Config, mode: &Mode) -> Result<Connected, Trouble> {
    let error = match config.connect(mode.connector()).await {
        Ok(connected) => return Ok(connected),
        Err(error) => error,
    };
    let Some(reason) = refusal(&error) else { return Err(error.into()) };
    if matches!(mode, Mode::Preferred) {
        let mut plain = config.clone();
        plain.ssl_mode(SslMode::Disable);
        return Ok(plain.connect(Connector::none()).await?);
    }
    let (mode, way_out) = (mode.word(), mode.way_out());
    Err(StoreError::Unencrypted { reason: format!("sslmode={mode}: {reason}; {way_out}") }.into())
}

/// Returns why there is no encryption, if that is what went wrong.
fn refusal(error: &tokio_postgres::Error) -> Option<String> {
    if error.to_string() != "error performing TLS handshake" {
        return None;
    }
    let cause = std::error::Error::source(error)?;
    let Some(broken) = cause.downcast_ref::<std::io::Error>() else {
        return Some(cause.to_string());
    };
    // Without a word of TLS about it the connection broke, as any may.
    let told = broken.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(told.to_string())
}
