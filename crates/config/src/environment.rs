//! The process environment, read by this module alone.
//!
//! [`Environment::process`] takes one snapshot at the start; everything else receives an [`Environment`] as
//! an argument, so tests need no global state and a value cannot change between two readers. The names of
//! all variables that Carrel reads are constants here; `OTEL_*` and `XDG_*` have the meaning that their
//! specifications give them. Printing an environment shows names only.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use carrel_domain::Secret;

macro_rules! variables {
    ($($(#[doc = $doc:literal])* $name:ident;)+) => {
        $(#[allow(missing_docs, reason = "many names say it all")]
        $(#[doc = $doc])* pub const $name: &str = stringify!($name);)+
    };
}

variables! {
    HOME;
    /// The current directory with the links by which the shell entered it.
    PWD;
    TMPDIR;
    CARREL_LOG;
    /// The shell whose completion script asks for words.
    CARREL_COMPLETE;
    LOG_LEVEL;
    /// The path of the running `carrel`, set for hooks; a login profile may take it off `PATH`.
    CARREL;
    /// The data directory of a conductor, set for hooks, for `carrel issue`.
    CARREL_DATA;
    LINEAR_API_KEY;
    LINEAR_ASSIGNEE;
    GITHUB_TOKEN;
    /// The GitHub App whose installations give tokens to workspaces.
    GITHUB_APP_ID;
    GITHUB_APP_PRIVATE_KEY;
    GITHUB_APP_PRIVATE_KEY_FILE;
    /// The API key of Composio, which holds GitHub connections of workspaces.
    COMPOSIO_API_KEY;
    /// The workspaces that may use the operator's GitHub token and app, and the repositories they may use them for.
    CARREL_GITHUB_ALLOW;
    CARREL_GITHUB_API_URL;
    CARREL_GITHUB_HOST;
    CARREL_COMPOSIO_URL;
    CARREL_GIT_HOSTS;
    GITHUB_REPO;
    JIRA_BASE_URL;
    JIRA_EMAIL;
    JIRA_API_TOKEN;
    ASANA_PAT;
    GITLAB_PAT;
    GITLAB_PROJECT_PATH;
    CARREL_POLICY;
    /// The token that clients of `carrel mcp --http` must send.
    CARREL_MCP_TOKEN;
    /// The secret that signs tokens of `carrel serve`, instead of the one in its data directory.
    CARREL_TOKEN_SECRET;
    /// The secret that a tracker signs its webhooks with.
    CARREL_WEBHOOK_SECRET;
    /// Acceptance of tokens that this server signed: `on` or `off`.
    CARREL_LOCAL_TOKENS;
    /// The URL of the key set that verifies an identity provider's tokens.
    CARREL_JWKS_URL;
    CARREL_JWT_ISSUER;
    CARREL_JWT_AUDIENCE;
    CARREL_JWT_WORKSPACE_CLAIM;
    CARREL_JWT_WORKSPACES_CLAIM;
    CARREL_JWT_SCOPE_CLAIM;
    /// The socket to which `carrel mcp`, started by an agent, relays tool calls.
    CARREL_TOOLS;
    CARREL_SERVER;
    CARREL_TOKEN;
    /// The key that seals credentials of workspaces, instead of the one in the data directory.
    CARREL_CREDENTIAL_KEY;
    /// The point at which a try ends its process, in tests of programs that are built for them.
    CARREL_TRY_KILL_AT;
    /// The free space reserve of the disk: `512M`, `2%`.
    CARREL_FREE_SPACE_FLOOR;
    /// The URLs under which browsers reach `carrel serve`, beside its own address.
    CARREL_PUBLIC_URLS;
    /// The addresses of proxies whose `X-Forwarded-*` headers count.
    CARREL_TRUSTED_PROXIES;
    /// The rate limit of one workspace at `carrel serve`, in requests per second.
    CARREL_RATE_LIMIT;
    /// The URL at which servers reach a worker that cannot determine it itself.
    CARREL_WORKER_URL;
    /// Seconds that running tasks have to end when their worker stops.
    CARREL_DRAIN_SECONDS;
    /// The lease of a claimed task in seconds; a worker without a heartbeat loses the task after it.
    CARREL_LEASE_SECONDS;
    /// The handling of a submission while Redis is unavailable.
    CARREL_ON_ENQUEUE_FAILURE;
    /// Migration of the database at the start of a server: `on` or `off`.
    CARREL_MIGRATE;
    /// A file with trusted certificate authorities, instead of the system's.
    SSL_CERT_FILE;
    OTEL_SDK_DISABLED;
    OTEL_TRACES_EXPORTER;
    OTEL_EXPORTER_OTLP_ENDPOINT;
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
    OTEL_EXPORTER_OTLP_HEADERS;
    OTEL_EXPORTER_OTLP_TRACES_HEADERS;
    OTEL_EXPORTER_OTLP_PROTOCOL;
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL;
    OTEL_EXPORTER_OTLP_TIMEOUT;
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT;
    OTEL_SERVICE_NAME;
    OTEL_RESOURCE_ATTRIBUTES;
    OTEL_TRACES_SAMPLER;
    OTEL_TRACES_SAMPLER_ARG;
    XDG_CONFIG_HOME;
    XDG_STATE_HOME;
    REDIS_URL;
    DATABASE_URL;
    /// The directory that holds the workspaces of a worker.
    WORKSPACE_VOLUME_PATH;
    WORKSPACE_DEFAULT_QUOTA_GB;
    WORKER_CONCURRENCY;
    WORKER_HEALTH_PORT;
    WORKER_BIND_HOST;
    WORKER_INTERNAL_TOKEN;
    /// The URL of a worker that did not register one.
    WORKER_INTERNAL_URL;
}

/// The prefix of variables with the operator's named secrets.
pub const SECRET_PREFIX: &str = "CARREL_SECRET_";

/// The prefix of variables with tokens for git, by host.
pub const GIT_TOKEN_PREFIX: &str = "CARREL_GIT_TOKEN_";

const FALLBACK_TEMP_DIR: &str = "/tmp";

/// A snapshot of environment variables. Printing it shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Takes a snapshot of this process's environment.
    pub fn process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// Builds an environment from names and values; a later pair replaces an earlier one.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect() }
    }

    /// Returns the value of a variable; one that is set to nothing has an empty value.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns the value of a variable; `None` also if it is not UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str()
    }

    /// Returns every variable, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the secrets that the operator put into `CARREL_SECRET_<NAME>`, by name.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, Secret)> {
        self.variables.iter().filter_map(|(name, value)| {
            let name =
                name.to_str()?.strip_prefix(SECRET_PREFIX).filter(|name| !name.is_empty())?;
            Some((name, Secret::new(value.to_str()?)))
        })
    }

    /// Returns the operator's home directory; `None` if `HOME` is unset or empty.
    pub fn home(&self) -> Option<PathBuf> {
        self.get(HOME).filter(|home| !home.is_empty()).map(PathBuf::from)
    }

    /// Returns `TMPDIR`, or `/tmp` if that is unset or empty.
    pub fn temp_dir(&self) -> PathBuf {
        let set = self.get(TMPDIR).filter(|dir| !dir.is_empty());
        PathBuf::from(set.unwrap_or(OsStr::new(FALLBACK_TEMP_DIR)))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// Returns whether a text is a variable name: a letter or `_`, then letters, digits and `_`.
pub fn is_variable_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the variable that a whole value refers to: `WS` for `$WS`, `None` for `$WS/x`.
pub(crate) fn reference(value: &str) -> Option<&str> {
    value.strip_prefix('$').filter(|name| is_variable_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_an_environment_shows_no_value() {
        let environment = Environment::from_pairs([(LINEAR_API_KEY, "lin_secret")]);
        assert_eq!(format!("{environment:?}"), r#"{"LINEAR_API_KEY"}"#);
    }

    #[test]
    fn the_temporary_directory_follows_the_variable() {
        let temp_dir = |value: &str| Environment::from_pairs([(TMPDIR, value)]).temp_dir();
        assert_eq!(temp_dir("/var/tmp"), PathBuf::from("/var/tmp"));
        assert_eq!(temp_dir(""), PathBuf::from("/tmp"));
        assert_eq!(Environment::default().temp_dir(), PathBuf::from("/tmp"));
    }

    #[test]
    fn only_a_whole_value_is_a_reference() {
        for (value, name) in [("$A", Some("A")), ("$_a1", Some("_a1"))] {
            assert_eq!(reference(value), name);
        }
        for value in ["A", "$", "$1", "$A/b", "${A}", "$A ", "env:A", "$Å"] {
            assert_eq!(reference(value), None, "{value}");
        }
    }
}
