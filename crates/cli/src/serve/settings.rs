//! The settings of `serve` and `worker`, from the environment. Blank counts as unset everywhere.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_api::HostRules;
use carrel_client::{InvalidServerUrl, ServerUrl};
use carrel_config::Environment;
use carrel_config::environment::{
    CARREL_DRAIN_SECONDS, CARREL_FREE_SPACE_FLOOR, CARREL_GIT_HOSTS, CARREL_LEASE_SECONDS,
    CARREL_ON_ENQUEUE_FAILURE, CARREL_PUBLIC_URLS, CARREL_RATE_LIMIT, CARREL_TRUSTED_PROXIES,
    REDIS_URL, SSL_CERT_FILE, WORKER_CONCURRENCY, WORKER_INTERNAL_TOKEN, WORKER_INTERNAL_URL,
    WORKSPACE_DEFAULT_QUOTA_GB, WORKSPACE_VOLUME_PATH,
};
use carrel_domain::{ByteSize, Code, Secret};
use carrel_http::{AddressRange, Origin, TrustedProxies};
use carrel_service::limits::LEASE;
use carrel_service::repository::DEFAULT_HOSTS;
use carrel_service::{FreeSpaceReserve, InvalidReserve, OnEnqueueFailure, quota_from_gibibytes};
use carrel_wire::limits::{MAX_QUOTA_GB, MIN_QUOTA_GB};
use carrel_workspace::Quota;
use serde_json::json;

use crate::database::DatabaseSettings;
use crate::error::{CliError, Result};

/// Default and maximum of tasks that run at once.
const CONCURRENCY: (u64, u64) = (3, 256);

const DEFAULT_QUOTA: ByteSize = ByteSize::gib(5);

const QUOTA_FILES: u64 = 1_000_000;

/// Default and maximum of requests per second of one workspace.
const RATE: (u64, u64) = (5000, 1_000_000);

/// The time for which tasks that have ended are kept.
pub(crate) const KEEP: Duration = Duration::from_hours(30 * 24);

const MAX_DRAIN_SECONDS: u64 = 3600;

/// The shortest and the longest time after which a silent worker loses its tasks, in seconds.
const LEASE_SECONDS: (u64, u64) = (3, 3600);

/// The settings of a process that serves or runs tasks.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) concurrency: usize,
    pub(crate) quota: Quota,
    pub(crate) volume: Option<PathBuf>,
    pub(crate) rate: NonZeroU32,
    /// Hosts that repositories may be cloned from.
    pub(crate) hosts: Arc<[String]>,
    /// The URLs under which browsers reach the server.
    pub(crate) public_urls: Vec<Origin>,
    /// Proxies whose account of a forwarded request counts.
    pub(crate) trusted_proxies: Vec<AddressRange>,
    /// PEM certificates trusted instead of the system's.
    pub(crate) authorities: Option<Arc<[u8]>>,
    pub(crate) reserve: FreeSpaceReserve,
    /// The shared store; an embedded one if none.
    pub(crate) shared: Option<SharedBackend>,
    /// The drain time; `serve` and `worker` have defaults of their own.
    pub(crate) drain: Option<Duration>,
    pub(crate) lease: Duration,
    /// The token between servers and workers.
    pub(crate) internal_token: Option<Secret>,
    /// The address of a worker that registered none.
    pub(crate) internal_url: Option<ServerUrl>,
}

#[derive(Clone, Debug)]
pub(crate) struct SharedBackend {
    pub(crate) database: DatabaseSettings,
    pub(crate) redis: Option<Secret>,
    pub(crate) on_enqueue_failure: OnEnqueueFailure,
}

impl Settings {
    pub(crate) fn read(environment: &Environment) -> Result<Self> {
        let concurrency = number(environment, WORKER_CONCURRENCY, (1, CONCURRENCY.1))?;
        let quota = quota(environment)?;
        let rate = number(environment, CARREL_RATE_LIMIT, (1, RATE.1))?.unwrap_or(RATE.0);
        let volume = environment.get(WORKSPACE_VOLUME_PATH).filter(|path| !path.is_empty());
        let lease = number(environment, CARREL_LEASE_SECONDS, LEASE_SECONDS)?;
        let drain = number(environment, CARREL_DRAIN_SECONDS, (0, MAX_DRAIN_SECONDS))?;
        Ok(Self {
            concurrency: usize::try_from(concurrency.unwrap_or(CONCURRENCY.0)).unwrap_or(1),
            quota: Quota { bytes: quota, files: Some(QUOTA_FILES) },
            volume: volume.map(PathBuf::from),
            hosts: hosts(environment)?,
            public_urls: public_urls(environment)?,
            trusted_proxies: trusted_proxies(environment)?,
            authorities: authorities(environment)?,
            reserve: reserve(environment)?,
            rate: NonZeroU32::new(u32::try_from(rate).unwrap_or(u32::MAX))
                .unwrap_or(NonZeroU32::MAX),
            shared: shared(environment)?,
            drain: drain.map(Duration::from_secs),
            lease: lease.map_or(LEASE, Duration::from_secs),
            internal_token: secret(environment, WORKER_INTERNAL_TOKEN),
            internal_url: server_url(environment, WORKER_INTERNAL_URL)?,
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the operator's own file, in no workspace")]
fn authorities(environment: &Environment) -> Result<Option<Arc<[u8]>>> {
    let Some(path) = environment.get(SSL_CERT_FILE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let read = std::fs::read(path).map_err(|error| {
        let expected = format!("a file of certificates that can be read ({error})");
        CliError::variable(SSL_CERT_FILE, &path.to_string_lossy(), expected)
    })?;
    Ok(Some(read.into()))
}

fn hosts(environment: &Environment) -> Result<Arc<[String]>> {
    let named = words(environment, CARREL_GIT_HOSTS);
    let named: Vec<_> = named.map(str::to_ascii_lowercase).collect();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    if let Some(other) = named.iter().find(|host| !host.bytes().all(plain)) {
        let expected =
            "names of machines with commas between them, such as github.com,git.example.com:8443";
        return Err(CliError::variable(CARREL_GIT_HOSTS, other, expected));
    }
    if named.is_empty() { Ok(DEFAULT_HOSTS.map(str::to_owned).into()) } else { Ok(named.into()) }
}

/// Returns the words of a variable, which commas or spaces separate.
fn words<'a>(environment: &'a Environment, name: &str) -> impl Iterator<Item = &'a str> {
    let text = environment.get_str(name).unwrap_or_default();
    text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty())
}

/// Returns the hosts under which a server at an address may be reached.
pub(crate) fn host_rules(address: SocketAddr, environment: &Environment) -> Result<HostRules> {
    let proxies = TrustedProxies::new(trusted_proxies(environment)?);
    Ok(HostRules::new(address, &public_urls(environment)?, proxies))
}

fn public_urls(environment: &Environment) -> Result<Vec<Origin>> {
    let url = |text: &str| {
        let origin = Origin::parse(text.trim_end_matches('/'));
        let is_web = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        origin.filter(|_| is_web).ok_or_else(|| {
            let expected = "URLs without a path and with commas between them, such as \
                https://carrel.example.com,http://10.0.0.5:8080";
            CliError::variable(CARREL_PUBLIC_URLS, text, expected)
        })
    };
    words(environment, CARREL_PUBLIC_URLS).map(url).collect()
}

fn trusted_proxies(environment: &Environment) -> Result<Vec<AddressRange>> {
    let range = |text: &str| {
        AddressRange::parse(text).ok_or_else(|| {
            let expected = "addresses or ranges of them with commas between them, such as \
                127.0.0.1,10.0.0.0/8";
            CliError::variable(CARREL_TRUSTED_PROXIES, text, expected)
        })
    };
    words(environment, CARREL_TRUSTED_PROXIES).map(range).collect()
}

fn shared(environment: &Environment) -> Result<Option<SharedBackend>> {
    let database = DatabaseSettings::read(environment)?;
    let redis = secret(environment, REDIS_URL);
    let on_enqueue_failure = match word(environment, CARREL_ON_ENQUEUE_FAILURE).as_deref() {
        None | Some("keep") => OnEnqueueFailure::Keep,
        Some("fail") => OnEnqueueFailure::Fail,
        Some(value) => {
            let expected = "`keep` or `fail`";
            return Err(CliError::variable(CARREL_ON_ENQUEUE_FAILURE, value, expected));
        }
    };
    match (database, redis) {
        (Some(database), redis) => Ok(Some(SharedBackend { database, redis, on_enqueue_failure })),
        (None, Some(_)) => {
            let message = "REDIS_URL is set and DATABASE_URL is not: Redis only tells processes of tasks that a database holds; set DATABASE_URL too, or unset REDIS_URL to keep everything in the data directory";
            Err(CliError::new(Code::Usage, message).with(json!({ "variable": REDIS_URL })))
        }
        (None, None) => Ok(None),
    }
}

pub(crate) fn word(environment: &Environment, name: &str) -> Option<String> {
    let text = environment.get(name)?.to_string_lossy().trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Reads a text that is not to be shown; blank counts as unset.
pub(crate) fn secret(environment: &Environment, name: &str) -> Option<Secret> {
    word(environment, name).map(Secret::new)
}

/// Reads a variable whose text `parse` accepts, or says what the text has to be.
fn parsed<T>(
    environment: &Environment,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>> {
    let Some(text) = word(environment, name) else { return Ok(None) };
    parse(&text).map(Some).map_err(|expected| CliError::variable(name, &text, expected))
}

pub(crate) fn server_url(environment: &Environment, name: &str) -> Result<Option<ServerUrl>> {
    parsed(environment, name, |text| {
        text.parse().map_err(|error: InvalidServerUrl| format!("an address: {error}"))
    })
}

pub(crate) fn number(
    environment: &Environment,
    name: &str,
    (least, most): (u64, u64),
) -> Result<Option<u64>> {
    parsed(environment, name, |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("a number from {least} to {most}"))
    })
}

fn reserve(environment: &Environment) -> Result<FreeSpaceReserve> {
    let name = CARREL_FREE_SPACE_FLOOR;
    let Some(text) = environment.get(name).filter(|text| !text.is_empty()) else {
        return Ok(FreeSpaceReserve::default());
    };
    let text = text.to_string_lossy();
    text.parse().map_err(|error: InvalidReserve| CliError::variable(name, &text, error))
}

fn quota(environment: &Environment) -> Result<ByteSize> {
    let quota = parsed(environment, WORKSPACE_DEFAULT_QUOTA_GB, |text| {
        let quota = text.parse().ok().and_then(quota_from_gibibytes);
        quota.ok_or_else(|| format!("a number from {MIN_QUOTA_GB} (1 MiB) to {MAX_QUOTA_GB}"))
    })?;
    Ok(quota.unwrap_or(DEFAULT_QUOTA))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let environment = Environment::from_pairs(pairs.iter().copied());
        Settings::read(&environment).map_err(|error| error.to_string())
    }

    fn read(pairs: &[(&str, &str)]) -> Result<(usize, u64), String> {
        let settings = settings(pairs)?;
        Ok((settings.concurrency, settings.quota.bytes.as_u64() >> 20))
    }

    #[test]
    fn variables_are_read_by_the_table() {
        assert_eq!(read(&[]), Ok((3, 5 << 10)));
        let set = [("WORKER_CONCURRENCY", "8"), ("WORKSPACE_DEFAULT_QUOTA_GB", " 2.5 ")];
        assert_eq!(read(&set), Ok((8, 2560)));
        assert_eq!(read(&[("WORKER_CONCURRENCY", "")]), Ok((3, 5 << 10)));
        for value in ["0", "-1", "many", "257"] {
            let error = read(&[("WORKER_CONCURRENCY", value)]).unwrap_err();
            assert!(error.contains("WORKER_CONCURRENCY") && error.contains("1 to 256"), "{error}");
        }
        for value in ["0", "-1", "NaN", "inf", "1e300", "much"] {
            let error = read(&[("WORKSPACE_DEFAULT_QUOTA_GB", value)]).unwrap_err();
            assert!(error.contains("WORKSPACE_DEFAULT_QUOTA_GB"), "{error}");
        }
    }

    #[test]
    fn what_is_shared_follows_from_two_variables() {
        let database = ("DATABASE_URL", "postgres://u:hidden@h/d");
        let redis = ("REDIS_URL", "redis://h");
        assert!(settings(&[]).unwrap().shared.is_none());
        assert!(settings(&[("DATABASE_URL", " ")]).unwrap().shared.is_none());
        let shared = settings(&[database]).unwrap().shared.unwrap();
        assert!(shared.redis.is_none() && shared.database.migrate);
        assert!(!format!("{shared:?}").contains("hidden"));
        let error = settings(&[redis]).unwrap_err();
        assert!(error.contains("REDIS_URL") && error.contains("DATABASE_URL"), "{error}");
        let fails = ("CARREL_ON_ENQUEUE_FAILURE", "fail");
        let shared = settings(&[database, redis, fails, ("CARREL_MIGRATE", "off")]).unwrap();
        let shared = shared.shared.unwrap();
        let found = (shared.redis.is_some(), shared.on_enqueue_failure, shared.database.migrate);
        assert_eq!(found, (true, OnEnqueueFailure::Fail, false));
        for (name, value) in [
            ("CARREL_ON_ENQUEUE_FAILURE", "explode"),
            ("CARREL_MIGRATE", "maybe"),
            ("CARREL_DRAIN_SECONDS", "3601"),
            ("CARREL_LEASE_SECONDS", "1"),
            ("WORKER_INTERNAL_URL", "worker:8081"),
            ("CARREL_PUBLIC_URLS", "carrel.example.com"),
            ("CARREL_PUBLIC_URLS", "https://carrel.example.com/console"),
            ("CARREL_TRUSTED_PROXIES", "proxy.example.com"),
            ("CARREL_TRUSTED_PROXIES", "10.0.0.0/40"),
        ] {
            let error = settings(&[database, (name, value)]).unwrap_err();
            assert!(error.contains(name), "{name}: {error}");
        }
        let drain = settings(&[("CARREL_DRAIN_SECONDS", "0")]).unwrap().drain;
        assert_eq!(drain, Some(Duration::ZERO));
    }
}
