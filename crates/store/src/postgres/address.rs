//! Where the server is, from a text that may hold a password.

use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::Secret;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Authorities, Mode, Rule};
use crate::error::StoreError;

/// How long a silent connection is believed in.
const SILENCE: Duration = Duration::from_secs(10);

/// What stands for the authorities that the system trusts.
const SYSTEM: &str = "system";

/// Other parameters of libpq that decide about encryption. Passing over one could weaken it.
const UNKNOWN: [&str; 8] = [
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
];

/// Reads the address. Nothing of it is in the error.
pub(super) fn read(address: &Secret) -> Result<(Config, Mode), StoreError> {
    let (rest, asked) = split(address.expose())?;
    let mut config: Config = rest.parse().map_err(|_| {
        refused("it is no address like postgresql://user:password@host:5432/database?sslmode=verify-full")
    })?;
    if config.get_hosts().is_empty() {
        return Err(refused("it names no host"));
    }
    let mode = asked.mode(config.get_ssl_mode())?;
    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    if config.get_hosts().iter().all(is_socket) {
        // Nobody but the system carries these bytes; servers offer no encryption there.
        config.ssl_mode(SslMode::Disable);
    } else {
        config.ssl_mode(mode.asks_for());
    }
    if config.get_application_name().is_none() {
        config.application_name("carrel");
    }
    config.keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
    Ok((config, mode))
}

/// What an address asks for beside what `tokio_postgres` reads.
#[derive(Default)]
struct Asked {
    verify: Option<Rule>,
    authorities: Option<Authorities>,
}

impl Asked {
    fn mode(self, mode: SslMode) -> Result<Mode, StoreError> {
        use Authorities::{File, System};
        let (rule, authorities) = match (self.verify, mode, self.authorities) {
            (None, SslMode::Prefer, None) => return Ok(Mode::Preferred),
            (None, SslMode::Require, None) => return Ok(Mode::Unverified),
            (None, _, None) => return Ok(Mode::Plain),
            (Some(rule), _, None) => (rule, System),
            (Some(rule), _, Some(File(path))) => (rule, File(path)),
            (None, SslMode::Require, Some(File(path))) => (Rule::Authority, File(path)),
            (None, _, Some(File(_))) => {
                return Err(refused(
                    "sslrootcert verifies nothing with this sslmode; \
                     add sslmode=verify-full, verify-ca or require, or take sslrootcert out",
                ));
            }
            (Some(Rule::AuthorityAndName), _, Some(System))
            | (None, SslMode::Prefer, Some(System)) => (Rule::AuthorityAndName, System),
            (_, _, Some(System)) => {
                return Err(refused("sslrootcert=system needs sslmode=verify-full"));
            }
        };
        Mode::verified(rule, &authorities)
    }
}

/// Takes out of an address what `tokio_postgres` does not know.
fn split(text: &str) -> Result<(String, Asked), StoreError> {
    let mut asked = Asked::default();
    let Some(at) = parameters(text) else {
        if text.contains("sslrootcert") || text.contains("verify-") {
            return Err(refused(
                "sslrootcert, verify-ca and verify-full are read from an address that begins with \
                 postgresql:// alone; write it so",
            ));
        }
        return Ok((text.to_owned(), asked));
    };
    let mut kept = Vec::new();
    for parameter in text[at..].split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => {
                asked.verify = None;
                match value().as_str() {
                    "verify-ca" => asked.verify = Some(Rule::Authority),
                    "verify-full" => asked.verify = Some(Rule::AuthorityAndName),
                    "disable" | "prefer" | "require" => {}
                    _ => {
                        return Err(refused(
                            "sslmode is disable, prefer, require, verify-ca or verify-full",
                        ));
                    }
                }
                kept.push(if asked.verify.is_some() { "sslmode=require" } else { parameter });
            }
            "sslrootcert" => {
                asked.authorities = match value() {
                    path if path.is_empty() => None,
                    path if path == SYSTEM => Some(Authorities::System),
                    path => Some(Authorities::File(PathBuf::from(path))),
                }
            }
            name if UNKNOWN.contains(&name) => {
                return Err(refused(&format!(
                    "its parameter {name} is not supported; take it out"
                )));
            }
            _ => kept.push(parameter),
        }
    }
    Ok((format!("{}{}", &text[..at], kept.join("&")), asked))
}

/// Returns where the parameters of an address begin. What stands before the first `@` may hold anything.
fn parameters(text: &str) -> Option<usize> {
    let begin = ["postgresql://", "postgres://"].iter().find(|begin| text.starts_with(**begin))?;
    let host = text.find('@').map_or(begin.len(), |at| at + 1);
    Some(text[host..].find('?').map_or(text.len(), |at| host + at + 1))
}

fn refused(reason: &str) -> StoreError {
    StoreError::Address { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn mode(parameters: &str) -> Result<(SslMode, String), String> {
        let url = Secret::new(format!("postgresql://carrel:hun?ter2@h/d{parameters}"));
        let (config, mode) = read(&url).map_err(|error| error.to_string())?;
        assert_eq!(config.get_password(), Some("hun?ter2".as_bytes()));
        assert!(!format!("{config:?} {mode:?}").contains("hun?ter2"));
        let mode = format!("{mode:?}");
        Ok((config.get_ssl_mode(), mode.split(['(', ' ']).next().unwrap().to_owned()))
    }

    #[test]
    fn each_word_of_an_address_means_what_it_means_elsewhere() {
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
            let told = mode(parameters).unwrap_err();
            assert!(told.contains(rule) && !told.contains("ter2"), "{parameters}: {told}");
        }
    }

    #[test]
    fn an_address_of_words_may_not_ask_for_what_is_not_read_there() {
        let read = |text: &str| read(&Secret::new(text)).map_err(|error| error.to_string());
        assert!(read("host=h user=u sslmode=require").is_ok());
        for text in ["host=h sslmode=verify-full", "host=h sslrootcert=/x sslmode=require"] {
            assert!(read(text).unwrap_err().contains("postgresql://"), "{text}");
        }
    }

    #[test]
    fn a_socket_of_this_machine_needs_no_encryption() {
        let url = Secret::new("postgresql://u@%2Frun%2Fpostgresql/d?sslmode=require");
        assert_eq!(read(&url).unwrap().0.get_ssl_mode(), SslMode::Disable);
    }
}
