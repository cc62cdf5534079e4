//! What the environment says about the service.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_config::Environment;
use carrel_config::environment::{
    CARREL_FREE_SPACE_FLOOR, CARREL_GIT_HOSTS, CARREL_RATE_LIMIT, DATABASE_URL, REDIS_URL,
    SSL_CERT_FILE, WORKER_CONCURRENCY, WORKSPACE_DEFAULT_QUOTA_GB, WORKSPACE_VOLUME_PATH,
};
use carrel_domain::ByteSize;
use carrel_service::repository::DEFAULT_HOSTS;
use carrel_service::{Floor, InvalidFloor, MAX_QUOTA_GB, quota_of_gibibytes};
use carrel_workspace::Quota;

use crate::failure::Failure;

/// How many tasks run at once, and how many may.
const CONCURRENCY: (u64, u64) = (3, 256);

/// How much a workspace may use.
const USUAL_QUOTA: ByteSize = ByteSize::gib(5);

/// How many files a workspace may hold.
const QUOTA_FILES: u64 = 1_000_000;

/// How many requests a second a workspace may send, and how many it may be allowed.
const RATE: (u64, u64) = (5000, 1_000_000);

/// How long finished tasks are kept.
const KEEP: Duration = Duration::from_hours(30 * 24);

/// What the environment says about the service.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) concurrency: usize,
    pub(super) quota: Quota,
    pub(super) volume: Option<PathBuf>,
    pub(super) keep: Duration,
    /// Requests a second of one workspace.
    pub(super) rate: NonZeroU32,
    /// Machines that repositories may come from.
    pub(super) hosts: Arc<[String]>,
    /// Who vouches for them, if not the authorities of the system.
    pub(super) authorities: Option<Arc<[u8]>>,
    /// How much of the disk has to stay free.
    pub(super) floor: Floor,
}

impl Settings {
    pub(super) fn read(environment: &Environment) -> Result<Self, Failure> {
        for name in [DATABASE_URL, REDIS_URL] {
            if environment.get(name).is_some_and(|value| !value.is_empty()) {
                return Err(Failure::NotYet { name });
            }
        }
        let concurrency = number(environment, WORKER_CONCURRENCY, CONCURRENCY)?;
        let quota = quota(environment)?;
        let rate = number(environment, CARREL_RATE_LIMIT, RATE)?;
        let volume = environment.get(WORKSPACE_VOLUME_PATH).filter(|path| !path.is_empty());
        Ok(Self {
            concurrency: usize::try_from(concurrency).unwrap_or(1),
            quota: Quota { bytes: quota, files: Some(QUOTA_FILES) },
            volume: volume.map(PathBuf::from),
            keep: KEEP,
            hosts: hosts(environment)?,
            authorities: authorities(environment)?,
            floor: floor(environment)?,
            rate: NonZeroU32::new(u32::try_from(rate).unwrap_or(u32::MAX))
                .unwrap_or(NonZeroU32::MAX),
        })
    }
}

/// Reads the certificates that the operator trusts.
#[expect(clippy::disallowed_methods, reason = "the operator's own file, in no workspace")]
fn authorities(environment: &Environment) -> Result<Option<Arc<[u8]>>, Failure> {
    let Some(path) = environment.get(SSL_CERT_FILE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let read = std::fs::read(path).map_err(|error| Failure::Variable {
        name: SSL_CERT_FILE,
        value: path.to_string_lossy().into_owned(),
        expected: format!("a file of certificates that can be read ({error})"),
    })?;
    Ok(Some(read.into()))
}

/// Reads the machines that repositories may come from.
fn hosts(environment: &Environment) -> Result<Arc<[String]>, Failure> {
    let text = environment.get_str(CARREL_GIT_HOSTS).unwrap_or_default();
    let named = text.split([',', ' ']).map(str::trim).filter(|host| !host.is_empty());
    let named: Vec<_> = named.map(str::to_ascii_lowercase).collect();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    if let Some(other) = named.iter().find(|host| !host.bytes().all(plain)) {
        let expected =
            "names of machines with commas between them, such as github.com,git.example.com:8443";
        let (name, value) = (CARREL_GIT_HOSTS, other.clone());
        return Err(Failure::Variable { name, value, expected: expected.to_owned() });
    }
    if named.is_empty() { Ok(DEFAULT_HOSTS.map(str::to_owned).into()) } else { Ok(named.into()) }
}

/// Reads a number from 1 to a limit; blank counts as unset.
fn number(
    environment: &Environment,
    name: &'static str,
    (usual, most): (u64, u64),
) -> Result<u64, Failure> {
    let Some(text) = environment.get(name).filter(|text| !text.is_empty()) else {
        return Ok(usual);
    };
    let text = text.to_string_lossy();
    let number = text.trim().parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Failure::Variable {
        name,
        value: text.into_owned(),
        expected: format!("a number from 1 to {most}"),
    })
}

/// Reads how much of the disk has to stay free; blank counts as unset.
fn floor(environment: &Environment) -> Result<Floor, Failure> {
    let name = CARREL_FREE_SPACE_FLOOR;
    let Some(text) = environment.get(name).filter(|text| !text.is_empty()) else {
        return Ok(Floor::default());
    };
    let text = text.to_string_lossy();
    text.parse().map_err(|error: InvalidFloor| Failure::Variable {
        name,
        value: text.clone().into_owned(),
        expected: error.to_string(),
    })
}

/// Reads the usual quota; blank counts as unset.
fn quota(environment: &Environment) -> Result<ByteSize, Failure> {
    let name = WORKSPACE_DEFAULT_QUOTA_GB;
    let Some(text) = environment.get(name).filter(|text| !text.is_empty()) else {
        return Ok(USUAL_QUOTA);
    };
    let text = text.to_string_lossy();
    text.trim().parse().ok().and_then(quota_of_gibibytes).ok_or_else(|| Failure::Variable {
        name,
        value: text.into_owned(),
        expected: format!("a number above 0, at most {MAX_QUOTA_GB}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn read(pairs: &[(&str, &str)]) -> Result<(usize, u64), String> {
        let environment = Environment::from_pairs(pairs.iter().copied());
        let settings = Settings::read(&environment).map_err(|error| error.to_string())?;
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
        assert!(read(&[("REDIS_URL", "redis://x")]).unwrap_err().contains("REDIS_URL"));
    }
}
