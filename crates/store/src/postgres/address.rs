//! Where the server is, from a text that may hold a password.

use std::time::Duration;

use carrel_domain::Secret;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::tls::Mode;
use crate::error::StoreError;

/// How long a silent connection is believed in.
const SILENCE: Duration = Duration::from_secs(10);

/// Reads the address. Nothing of it is in the error.
pub(super) fn read(address: &Secret) -> Result<(Config, Mode), StoreError> {
    let refuse = |reason: &str| StoreError::Address { reason: reason.to_owned() };
    let text = address.expose();
    for mode in ["verify-ca", "verify-full"] {
        if text.contains(&format!("sslmode={mode}")) {
            return Err(refuse(&unencrypted(mode)));
        }
    }
    let mut config: Config = text.parse().map_err(|_| {
        refuse("it is no address like postgresql://user:password@host:5432/database")
    })?;
    if config.get_hosts().is_empty() {
        return Err(refuse("it names no host"));
    }
    if config.get_ssl_mode() == SslMode::Require {
        return Err(refuse(&unencrypted("require")));
    }
    if config.get_application_name().is_none() {
        config.application_name("carrel");
    }
    config.keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
    Ok((config, Mode::Plain))
}

fn unencrypted(mode: &str) -> String {
    format!(
        "this build cannot encrypt the connection, which sslmode={mode} asks for; \
         use a socket, a private network or a tunnel, and sslmode=disable"
    )
}
