//! The process environment, read in one place.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use carrel_domain::Secret;

macro_rules! variables {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {
        $($(#[doc = $doc])+ pub const $name: &str = stringify!($name);)+
    };
}

variables! {
    /// The operator's home directory, for `~` in paths.
    HOME;
    /// The system's directory for temporary files.
    TMPDIR;
    /// Which log lines are shown.
    CARREL_LOG;
    /// Which log lines are shown, when `CARREL_LOG` is not set.
    LOG_LEVEL;
    /// The program of a conductor, as its hooks see it. A login profile may take it off the search path.
    CARREL;
    /// The data directory of a conductor, as its hooks see it, for `carrel issue`.
    CARREL_DATA;
    /// The API key of Linear.
    LINEAR_API_KEY;
    /// Whose Linear issues are taken.
    LINEAR_ASSIGNEE;
    /// The token for GitHub.
    GITHUB_TOKEN;
    /// The GitHub App whose installations give tokens to workspaces.
    GITHUB_APP_ID;
    /// Its private key, as PEM.
    GITHUB_APP_PRIVATE_KEY;
    /// The file with its private key.
    GITHUB_APP_PRIVATE_KEY_FILE;
    /// The key for Composio, which keeps connections of workspaces to GitHub.
    COMPOSIO_API_KEY;
    /// Which workspaces may use the operator's token and app, for whose repositories.
    CARREL_GITHUB_ALLOW;
    /// Where GitHub's API is.
    CARREL_GITHUB_API_URL;
    /// The machine that GitHub's repositories are cloned from.
    CARREL_GITHUB_HOST;
    /// Where Composio's API is.
    CARREL_COMPOSIO_URL;
    /// Machines that repositories may come from.
    CARREL_GIT_HOSTS;
    /// The GitHub repository, as `owner/name`.
    GITHUB_REPO;
    /// The address of a Jira site.
    JIRA_BASE_URL;
    /// The account that a Jira token belongs to.
    JIRA_EMAIL;
    /// The token for Jira.
    JIRA_API_TOKEN;
    /// The personal access token for Asana.
    ASANA_PAT;
    /// The personal access token for GitLab.
    GITLAB_PAT;
    /// The GitLab project, as `group/name`.
    GITLAB_PROJECT_PATH;
    /// The operator's policy file.
    CARREL_POLICY;
    /// The token that clients of `carrel mcp --http` must send.
    CARREL_MCP_TOKEN;
    /// The secret that signs the tokens of `carrel serve`, instead of the one in its data directory.
    CARREL_TOKEN_SECRET;
    /// What the tracker of a conductor signs its webhooks with.
    CARREL_WEBHOOK_SECRET;
    /// Whether tokens that this server signs are believed: `on` or `off`.
    CARREL_LOCAL_TOKENS;
    /// Where the keys are that tokens of a provider are verified with.
    CARREL_JWKS_URL;
    /// The issuer that tokens of the provider have to name.
    CARREL_JWT_ISSUER;
    /// The audience that tokens of the provider have to name.
    CARREL_JWT_AUDIENCE;
    /// The claim that names one workspace.
    CARREL_JWT_WORKSPACE_CLAIM;
    /// The claim that names several workspaces.
    CARREL_JWT_WORKSPACES_CLAIM;
    /// The claim that names scopes.
    CARREL_JWT_SCOPE_CLAIM;
    /// The socket that `carrel mcp`, started by an agent, passes requests for tools on to.
    CARREL_TOOLS;
    /// The server that `carrel task` talks to.
    CARREL_SERVER;
    /// The token that `carrel task` shows to it.
    CARREL_TOKEN;
    /// The key that credentials of workspaces are sealed with, instead of the one in the data directory.
    CARREL_CREDENTIAL_KEY;
    /// How much of the disk has to stay free: `512M`, `2%`.
    CARREL_FREE_SPACE_FLOOR;
    /// How many requests a second one workspace may send to `carrel serve`.
    CARREL_RATE_LIMIT;
    /// Where other servers reach a worker, if it cannot know.
    CARREL_WORKER_URL;
    /// How many seconds tasks have to end when their worker stops.
    CARREL_DRAIN_SECONDS;
    /// After how many seconds without a sign of life a worker loses its tasks.
    CARREL_LEASE_SECONDS;
    /// What becomes of a submission while Redis is away.
    CARREL_ON_ENQUEUE_FAILURE;
    /// Whether servers bring the database up to date when they start.
    CARREL_MIGRATE;
    /// A file with the certificates of authorities that are trusted, instead of those of the system.
    SSL_CERT_FILE;
    /// Whether nothing of OpenTelemetry is wanted: `true`.
    OTEL_SDK_DISABLED;
    /// Who is told of spans: `otlp` or `none`.
    OTEL_TRACES_EXPORTER;
    /// Where a collector is, whose paths begin behind this.
    OTEL_EXPORTER_OTLP_ENDPOINT;
    /// Where a collector takes spans.
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
    /// What a collector is shown with each request.
    OTEL_EXPORTER_OTLP_HEADERS;
    /// The same, for spans alone.
    OTEL_EXPORTER_OTLP_TRACES_HEADERS;
    /// How a collector is spoken to.
    OTEL_EXPORTER_OTLP_PROTOCOL;
    /// The same, for spans alone.
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL;
    /// How many milliseconds a collector may take to answer.
    OTEL_EXPORTER_OTLP_TIMEOUT;
    /// The same, for spans alone.
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT;
    /// What a collector knows this program by.
    OTEL_SERVICE_NAME;
    /// What else a collector is told of it.
    OTEL_RESOURCE_ATTRIBUTES;
    /// Which traces are kept.
    OTEL_TRACES_SAMPLER;
    /// Which part of them.
    OTEL_TRACES_SAMPLER_ARG;
    /// The directory for a user's settings.
    XDG_CONFIG_HOME;
    /// The directory for what Carrel remembers for a user.
    XDG_STATE_HOME;
    /// The queue's address.
    REDIS_URL;
    /// The database's address.
    DATABASE_URL;
    /// The directory that holds the workspaces of a worker.
    WORKSPACE_VOLUME_PATH;
    /// How many gibibytes a workspace may use when nothing else says so.
    WORKSPACE_DEFAULT_QUOTA_GB;
    /// How many tasks a worker runs at once.
    WORKER_CONCURRENCY;
    /// The port of a worker's own API.
    WORKER_HEALTH_PORT;
    /// The address a worker's own API listens on.
    WORKER_BIND_HOST;
    /// The token that protects a worker's own API.
    WORKER_INTERNAL_TOKEN;
    /// Where the server reaches a worker that did not register its address.
    WORKER_INTERNAL_URL;
}

/// Variables that start with this hold secrets of the server.
pub const SECRET_PREFIX: &str = "CARREL_SECRET_";

/// Variables that start with this hold tokens for git, by the name of the machine.
pub const GIT_TOKEN_PREFIX: &str = "CARREL_GIT_TOKEN_";

/// Where temporary files go when `TMPDIR` says nothing.
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

    /// Builds an environment from names and values.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect() }
    }

    /// Returns the value of a variable that is set, even to nothing.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns the value of a variable that is set to valid UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str()
    }

    /// Returns every variable, in order of its name.
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

    /// Returns the operator's home directory; nothing when `HOME` is unset or empty.
    pub fn home(&self) -> Option<PathBuf> {
        self.get(HOME).filter(|home| !home.is_empty()).map(PathBuf::from)
    }

    /// Returns the system's directory for temporary files.
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

/// Tells whether a text can name a variable: a letter or `_`, then letters, digits and `_`.
pub fn is_variable_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the variable that a value names as a whole: `WS` for `$WS`, nothing for `$WS/x`.
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
