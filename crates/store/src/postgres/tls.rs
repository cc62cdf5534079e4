//! Encryption of connections, by the modes of libpq's `sslmode`.
//!
//! A failed handshake is a permanent error with a remedy, since retrying would not help, while a connection that
//! breaks during the handshake is transient like any other. `prefer` falls back to a plain connection only
//! after a TLS error.

mod binding;
mod stream;

use std::sync::Arc;

use rustls::ClientConfig;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Connection, Socket};

use self::stream::{Connector, Stream};
use super::error::PgError;
use crate::error::StoreError;
pub(super) use crate::tls::{Authorities, Verification};
use crate::tls::{AuthorityError, unverified, verified};

#[derive(Clone, Debug)]
pub(super) enum TlsMode {
    /// `disable`.
    Plain,
    /// `prefer`: encrypted if the server offers it, to any server.
    Preferred,
    /// `require`: encrypted, to any server.
    Unverified,
    /// `verify-ca` or `verify-full`: encrypted, to a server with a valid certificate.
    Verified(Verification, Arc<ClientConfig>),
}

pub(super) type Connected = (Client, Connection<Socket, Stream>);

impl TlsMode {
    pub(super) fn verified(
        verification: Verification,
        authorities: &Authorities,
    ) -> Result<Self, StoreError> {
        let config = verified(verification, authorities).map_err(|error| StoreError::Address {
            reason: match error {
                AuthorityError::System => format!("{error}, or add sslrootcert=PATH"),
                AuthorityError::File { .. } => format!("sslrootcert={error}"),
            },
        })?;
        Ok(Self::Verified(verification, config))
    }

    pub(super) fn ssl_mode(&self) -> SslMode {
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

    /// Returns the remedy for a server that does not meet the mode.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Plain | Self::Preferred | Self::Unverified => {
                "turn encryption on at the server, or use a socket or a private network and sslmode=disable"
            }
            Self::Verified(Verification::Authority, _) => {
                "name the certificate of the server's authority with sslrootcert=PATH or SSL_CERT_FILE"
            }
            Self::Verified(Verification::AuthorityAndName, _) => {
                "use the host that the certificate names, and name the certificate of its authority with \
                 sslrootcert=PATH or SSL_CERT_FILE"
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Plain => "disable",
            Self::Preferred => "prefer",
            Self::Unverified => "require",
            Self::Verified(Verification::Authority, _) => "verify-ca (or require with sslrootcert)",
            Self::Verified(Verification::AuthorityAndName, _) => "verify-full",
        }
    }
}

/// Connects with the encryption of the mode. `Preferred` falls back to a plain connection.
pub(super) async fn connect(config: &Config, mode: &TlsMode) -> Result<Connected, PgError> {
    let error = match config.connect(mode.connector()).await {
        Ok(connected) => return Ok(connected),
        Err(error) => error,
    };
    let Some(reason) = tls_error(&error) else { return Err(error.into()) };
    if matches!(mode, TlsMode::Preferred) {
        let mut plain = config.clone();
        plain.ssl_mode(SslMode::Disable);
        return Ok(plain.connect(Connector::none()).await?);
    }
    let reason = format!("sslmode={}: {reason}; {}", mode.name(), mode.remedy());
    Err(StoreError::Unencrypted { reason }.into())
}

/// Returns the error of the TLS handshake, if that is what failed.
fn tls_error(error: &tokio_postgres::Error) -> Option<String> {
    if error.to_string() != "error performing TLS handshake" {
        return None;
    }
    let cause = std::error::Error::source(error)?;
    let Some(broken) = cause.downcast_ref::<std::io::Error>() else {
        return Some(cause.to_string());
    };
    // An I/O error without an error of TLS is a broken connection, which is retried.
    let error = broken.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(error.to_string())
}
