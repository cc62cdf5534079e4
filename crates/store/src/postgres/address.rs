//! Parses `DATABASE_URL`.
//!
//! `tokio_postgres` knows neither `verify-ca` and `verify-full` nor `sslrootcert`. They are taken out of the
//! URL here and mean what they mean for libpq. Parameters of libpq that affect encryption and are not
//! supported are refused rather than ignored, since ignoring one could weaken the connection. No error
//! contains any part of the URL, which may hold a password.

use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::Secret;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Authorities, TlsMode, Verification};
use crate::error::StoreError;

/// The idle time before TCP keepalives, and the time that sent data may stay unacknowledged.
const DEAD_PEER_TIMEOUT: Duration = Duration::from_secs(10);

/// The value of `sslrootcert` for the authorities of the system.
const SYSTEM: &str = "system";

/// Parameters of libpq that affect encryption and are not supported.
const UNSUPPORTED: [&str; 8] = [
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
];

/// Parses the URL into a configuration and the mode of encryption.
pub(super) fn parse(url: &Secret) -> Result<(Config, TlsMode), StoreError> {
    let (rest, parameters) = split(url.expose())?;
    let mut config: Config = rest.parse().map_err(|_| {
        invalid(
            "expected a URL like postgresql://user:password@host:5432/database?sslmode=verify-full",
        )
    })?;
    if config.get_hosts().is_empty() {
        return Err(invalid("it names no host"));
    }
    let mode = parameters.mode(config.get_ssl_mode())?;
    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    if config.get_hosts().iter().all(is_socket) {
        // The kernel carries these bytes, and servers offer no encryption on Unix sockets.
        config.ssl_mode(SslMode::Disable);
    } else {
        config.ssl_mode(mode.ssl_mode());
    }
    if config.get_application_name().is_none() {
        config.application_name("carrel");
    }
    config.keepalives_idle(DEAD_PEER_TIMEOUT).tcp_user_timeout(DEAD_PEER_TIMEOUT);
    Ok((config, mode))
}

/// The parameters of a URL that `tokio_postgres` does not know.
#[derive(Default)]
struct TlsParameters {
    verification: Option<Verification>,
    authorities: Option<Authorities>,
}

impl TlsParameters {
    fn mode(self, mode: SslMode) -> Result<TlsMode, StoreError> {
        use Authorities::{File, System};
        let (verification, authorities) = match (self.verification, mode, self.authorities) {
            (None, SslMode::Prefer, None) => return Ok(TlsMode::Preferred),
            (None, SslMode::Require, None) => return Ok(TlsMode::Unverified),
            (None, _, None) => return Ok(TlsMode::Plain),
            (Some(verification), _, None) => (verification, System),
            (Some(verification), _, Some(File(path))) => (verification, File(path)),
            (None, SslMode::Require, Some(File(path))) => (Verification::Authority, File(path)),
            (None, _, Some(File(_))) => {
                return Err(invalid(
                    "sslrootcert verifies nothing with this sslmode; \
                     add sslmode=verify-full, verify-ca or require, or remove sslrootcert",
                ));
            }
            (Some(Verification::AuthorityAndName), _, Some(System))
            | (None, SslMode::Prefer, Some(System)) => (Verification::AuthorityAndName, System),
            (_, _, Some(System)) => {
                return Err(invalid("sslrootcert=system needs sslmode=verify-full"));
            }
        };
        TlsMode::verified(verification, &authorities)
    }
}

/// Takes the parameters out of a URL that `tokio_postgres` does not know.
fn split(text: &str) -> Result<(String, TlsParameters), StoreError> {
    let mut parameters = TlsParameters::default();
    let Some(at) = parameters_start(text) else {
        if text.contains("sslrootcert") || text.contains("verify-") {
            return Err(invalid(
                "sslrootcert, verify-ca and verify-full need a URL that begins with postgresql://",
            ));
        }
        return Ok((text.to_owned(), parameters));
    };
    let mut kept = Vec::new();
    for parameter in text[at..].split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => {
                parameters.verification = None;
                match value().as_str() {
                    "verify-ca" => parameters.verification = Some(Verification::Authority),
                    "verify-full" => {
                        parameters.verification = Some(Verification::AuthorityAndName);
                    }
                    "disable" | "prefer" | "require" => {}
                    _ => {
                        return Err(invalid(
                            "sslmode is disable, prefer, require, verify-ca or verify-full",
                        ));
                    }
                }
                let verified = parameters.verification.is_some();
                kept.push(if verified { "sslmode=require" } else { parameter });
            }
            "sslrootcert" => {
                parameters.authorities = match value() {
                    path if path.is_empty() => None,
                    path if path == SYSTEM => Some(Authorities::System),
                    path => Some(Authorities::File(PathBuf::from(path))),
                }
            }
            name if UNSUPPORTED.contains(&name) => {
                return Err(invalid(&format!("the parameter {name} is not supported; remove it")));
            }
            _ => kept.push(parameter),
        }
    }
    Ok((format!("{}{}", &text[..at], kept.join("&")), parameters))
}

/// Returns the position of the parameters in a URL. The password, before the first `@`, may contain a `?`.
fn parameters_start(text: &str) -> Option<usize> {
    let begin = ["postgresql://", "postgres://"].iter().find(|begin| text.starts_with(**begin))?;
    let host = text.find('@').map_or(begin.len(), |at| at + 1);
    Some(text[host..].find('?').map_or(text.len(), |at| host + at + 1))
}

fn invalid(reason: &str) -> StoreError {
    StoreError::Address { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn mode(parameters: &str) -> Result<(SslMode, String), String> {
        let url = Secret::new(format!("postgresql://carrel:hun?ter2@h/d{parameters}"));
        let (config, mode) = parse(&url).map_err(|error| error.to_string())?;
        assert_eq!(config.get_password(), Some("hun?ter2".as_bytes()));
        assert!(!format!("{config:?} {mode:?}").contains("hun?ter2"));
        let mode = format!("{mode:?}");
        Ok((config.get_ssl_mode(), mode.split(['(', ' ']).next().unwrap().to_owned()))
    }

    #[test]
    fn tls_parameters_mean_what_they_mean_for_libpq() {
        for (parameters, ssl, named) in [
            ("", SslMode::Prefer, "Preferred"),
            ("?sslmode=disable", SslMode::Disable, "Plain"),
            ("?sslmode=prefer&connect_timeout=3", SslMode::Prefer, "Preferred"),
            ("?connect_timeout=3&sslmode=require", SslMode::Require, "Unverified"),
            ("?sslmode=require&sslrootcert=", SslMode::Require, "Unverified"),
        ] {
            assert_eq!(mode(parameters), Ok((ssl, named.to_owned())), "{parameters}");
        }
        for (parameters, rule) in [
            ("?sslmode=allow", "sslmode is disable"),
            ("?sslmode=Require", "sslmode is disable"),
            ("?sslmode", "sslmode is disable"),
            ("?sslrootcert=/x", "verifies nothing"),
            ("?sslrootcert=/x&sslmode=disable", "verifies nothing"),
            ("?sslrootcert=system&sslmode=require", "needs sslmode=verify-full"),
            ("?sslrootcert=system&sslmode=verify-ca", "needs sslmode=verify-full"),
            ("?sslrootcert=system&sslmode=disable", "needs sslmode=verify-full"),
            ("?sslmode=verify-full&sslkey=/x", "sslkey is not supported"),
            ("?sslmode=verify-full&sslrootcert=/no%20such", "/no such"),
        ] {
            let error = mode(parameters).unwrap_err();
            assert!(error.contains(rule) && !error.contains("ter2"), "{parameters}: {error}");
        }
    }

    #[test]
    fn key_value_strings_cannot_ask_for_verification() {
        let parse = |text: &str| parse(&Secret::new(text)).map_err(|error| error.to_string());
        assert!(parse("host=h user=u sslmode=require").is_ok());
        for text in ["host=h sslmode=verify-full", "host=h sslrootcert=/x sslmode=require"] {
            assert!(parse(text).unwrap_err().contains("postgresql://"), "{text}");
        }
    }

    #[test]
    fn a_socket_of_this_machine_needs_no_encryption() {
        let url = Secret::new("postgresql://u@%2Frun%2Fpostgresql/d?sslmode=require");
        assert_eq!(parse(&url).unwrap().0.get_ssl_mode(), SslMode::Disable);
    }
}
