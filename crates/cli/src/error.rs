//! The errors of all commands, and the one place that prints them.
//!
//! Each error has a stable code. The message ends with the first remedy of that code, so that a person gets
//! the way out without looking it up; `--json` prints the same as an object.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use carrel_config::{PathError, PolicyError, WorkflowError};
use carrel_domain::{Code, Coded, ErrorEnvelope};
use carrel_mcp::{HttpError, OptionsError, StdioError, TokenError};
use carrel_runner::RunError;
use carrel_tools::WorkspaceListError;
use serde_json::json;

use crate::output::{Format, printable};

const FAILED: u8 = 1;
const USED_WRONGLY: u8 = 2;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Workspace(#[from] carrel_workspace::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the policy file {file} lies in the workspace {workspace} that it applies to")]
    PolicyInside { file: String, workspace: String },
    #[error("--workspace {path} cannot be used")]
    Directory {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("{path} is a directory of Carrel itself, or holds one; name a workspace in it")]
    OwnDirectory { path: String },
    #[error("{path} lies inside a workspace; write --workspace {workspace} --cwd {relative}")]
    InsideWorkspace { path: String, workspace: String, relative: String },
    #[error("workspace[{index}] ({name})")]
    Entry {
        index: usize,
        name: String,
        #[source]
        source: Box<CliError>,
    },
    #[error(transparent)]
    Workspaces(#[from] WorkspaceListError),
    #[error(transparent)]
    Stdio(#[from] StdioError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    HttpOptions(#[from] OptionsError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("could not read the token in {path}")]
    TokenFile {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("{text:?} is no argument of a tool; write key=value, or one JSON object")]
    Argument { text: String },
    #[error("there is no directory for state: HOME and XDG_STATE_HOME are both unset")]
    NoState,
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
    #[error("--root {value:?} cannot be used")]
    Root { value: String, source: PathError },
    #[error("findings that stop work or endanger it: {count}")]
    Verify { count: usize },
    #[error("steps of the clean-up that failed: {count}")]
    CleanUp { count: usize },
    #[error(transparent)]
    Key(#[from] carrel_api::auth::KeyError),
    #[error(transparent)]
    Provider(#[from] carrel_api::auth::jwks::ProviderSettingsError),
    #[error(transparent)]
    GitHub(#[from] carrel_github::GitHubSettingsError),
    #[error(transparent)]
    Grant(#[from] carrel_api::auth::GrantError),
    #[error(transparent)]
    Service(#[from] carrel_service::ServiceError),
    #[error(transparent)]
    Store(#[from] carrel_store::StoreError),
    #[error("the database {path} cannot be used")]
    Database {
        path: String,
        #[source]
        source: carrel_store::StoreError,
    },
    #[error("--data {path} cannot be used")]
    Data {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error(
        "there is no data directory {path}; `carrel issue new` makes it, or name another with --data"
    )]
    NoData { path: String },
    #[error(transparent)]
    Issue(#[from] carrel_tracker::LocalError),
    #[error(transparent)]
    Conductor(#[from] carrel_conductor::drive::StartError),
    #[error("not everything went well: {}", listed(failed))]
    Runs { failed: Vec<(String, String)> },
    #[error("another carrel run has taken over the issues that this one worked off: {by}")]
    Superseded { by: String },
    #[error("another carrel serve uses {path}")]
    DataInUse { path: String },
    #[error(
        "other machines can reach {address}, and there is no key for tokens yet; make one with `carrel token new`, or set CARREL_TOKEN_SECRET"
    )]
    NoKey { address: std::net::SocketAddr },
    #[error(transparent)]
    Credential(#[from] carrel_service::credentials::CredentialError),
    #[error(
        "the stored credentials were sealed with another key; set CARREL_CREDENTIAL_KEY to that one or put it \
         back as credentials.key, or give them up with --forget-credentials"
    )]
    CredentialKey,
    #[error("{name}={value} cannot be used; it is {expected}")]
    Variable { name: &'static str, value: String, expected: String },
    #[error(transparent)]
    Client(#[from] carrel_client::ClientError),
    #[error(transparent)]
    Server(#[from] carrel_client::InvalidServerUrl),
    #[error(
        "there is no token; set CARREL_TOKEN, or name a file with --token-file; `carrel token new` makes one"
    )]
    NoToken,
    #[error("could not read the steps in {path}")]
    StepsFile {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("{path} {rule}")]
    Steps { path: String, rule: String },
    #[error(
        "REDIS_URL is set and DATABASE_URL is not: Redis only tells processes of tasks that a database holds; set DATABASE_URL too, or unset REDIS_URL to keep everything in the data directory"
    )]
    RedisAlone,
    #[error(
        "a worker alone gets its tasks from PostgreSQL and hears of them from Redis, and {name} is not set; `carrel serve` has a worker of its own and needs neither"
    )]
    WorkerNeeds { name: &'static str },
    #[error(
        "--no-worker leaves tasks to workers elsewhere, which need a database that they can reach; set DATABASE_URL, or leave out --no-worker"
    )]
    NoWorkers,
    #[error("REDIS_URL cannot be used; {0}")]
    Redis(#[from] carrel_service::RedisAddressError),
    #[error(
        "WORKER_BIND_HOST={host} lets other machines reach the worker, and there is no token to keep strangers out; set WORKER_INTERNAL_TOKEN, or unset WORKER_BIND_HOST"
    )]
    OpenWorker { host: std::net::IpAddr },
    #[error("could not write the output")]
    Output(#[source] io::Error),
    #[error("could not listen on {address}, which another program may use; name another port")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("could not start: {doing}")]
    Start {
        doing: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Coded for CliError {
    fn code(&self) -> Code {
        match self {
            Self::Workspace(error) => error.code(),
            Self::Run(error) => error.code(),
            Self::Policy(error) => error.code(),
            Self::PolicyInside { .. } => Code::PolicyUnsafe,
            Self::Directory { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Code::NotFound,
                io::ErrorKind::NotADirectory => Code::NotADirectory,
                io::ErrorKind::PermissionDenied => Code::PermissionDenied,
                _ => Code::Io,
            },
            Self::OwnDirectory { .. } => Code::SandboxViolation,
            Self::InsideWorkspace { .. } => Code::InvalidWorkspaceCwd,
            Self::Entry { source, .. } => source.code(),
            Self::Workspaces(error) => error.code(),
            Self::NoState
            | Self::Argument { .. }
            | Self::Grant(_)
            | Self::Provider(_)
            | Self::GitHub(_)
            | Self::NoKey { .. }
            | Self::Variable { .. }
            | Self::Server(_)
            | Self::NoToken
            | Self::Steps { .. }
            | Self::HttpOptions(_)
            | Self::Token(_)
            | Self::CredentialKey
            | Self::RedisAlone
            | Self::NoWorkers
            | Self::WorkerNeeds { .. }
            | Self::Redis(_)
            | Self::OpenWorker { .. }
            | Self::Http(HttpError::Options(_)) => Code::Usage,
            Self::TokenFile { .. } | Self::Stdio(_) | Self::Http(HttpError::Listener(_)) => {
                Code::Io
            }
            Self::Workflow(error) => error.code(),
            Self::Root { .. } => Code::RootRefused,
            Self::Verify { .. } => Code::VerifyFailed,
            Self::CleanUp { .. } => Code::CleanUpIncomplete,
            Self::Key(error) => error.code(),
            Self::Service(error) => error.code(),
            Self::Store(error) | Self::Database { source: error, .. } => error.code(),
            Self::Client(error) => error.code(),
            Self::Credential(error) => error.code(),
            Self::Issue(error) => error.code(),
            Self::Conductor(error) => error.code(),
            Self::Runs { .. } => Code::RunFailed,
            Self::NoData { .. } => Code::NotFound,
            Self::DataInUse { .. } | Self::Superseded { .. } => Code::WorkspaceBusy,
            Self::Data { .. } | Self::StepsFile { .. } | Self::Output(_) => Code::Io,
            Self::Start { .. } | Self::Listen { .. } => Code::SpawnFailed,
        }
    }

    fn detail(&self) -> serde_json::Value {
        match self {
            Self::Workspace(error) => error.detail(),
            Self::Run(error) => error.detail(),
            Self::Policy(error) => error.detail(),
            Self::PolicyInside { file, workspace } => {
                json!({ "file": file, "workspace": workspace })
            }
            Self::Directory { path, .. }
            | Self::OwnDirectory { path }
            | Self::InsideWorkspace { path, .. }
            | Self::Data { path, .. }
            | Self::Database { path, .. }
            | Self::NoData { path }
            | Self::DataInUse { path }
            | Self::StepsFile { path, .. }
            | Self::Steps { path, .. }
            | Self::TokenFile { path, .. } => json!({ "path": path }),
            Self::Workflow(error) => error.detail(),
            Self::Entry { source, .. } => source.detail(),
            Self::Workspaces(error) => error.detail(),
            Self::Argument { text } => json!({ "argument": text }),
            Self::Root { value, .. } => json!({ "root": value }),
            Self::Key(error) => error.detail(),
            Self::Service(error) => error.detail(),
            Self::Store(error) => error.detail(),
            Self::Issue(error) => error.detail(),
            Self::Conductor(error) => error.detail(),
            Self::Runs { failed } => {
                let issues: Vec<_> = failed.iter().map(|(issue, _)| issue).collect();
                json!({ "issues": issues })
            }
            Self::Superseded { by } => json!({ "holder": by }),
            Self::Client(error) => error.detail(),
            Self::Credential(error) => error.detail(),
            Self::NoKey { address } => json!({ "address": address.to_string() }),
            Self::Variable { name, .. } | Self::WorkerNeeds { name } => {
                json!({ "variable": name })
            }
            Self::RedisAlone | Self::Redis(_) => json!({ "variable": "REDIS_URL" }),
            Self::OpenWorker { host } => json!({ "host": host.to_string() }),
            Self::Verify { count } | Self::CleanUp { count } => json!({ "count": count }),
            Self::NoState
            | Self::Server(_)
            | Self::NoToken
            | Self::CredentialKey
            | Self::NoWorkers
            | Self::Output(_)
            | Self::Grant(_)
            | Self::Provider(_)
            | Self::GitHub(_)
            | Self::Start { .. }
            | Self::Listen { .. }
            | Self::Stdio(_)
            | Self::Http(_)
            | Self::HttpOptions(_)
            | Self::Token(_) => json!({}),
        }
    }
}

impl From<carrel_domain::InvalidIdentifier> for CliError {
    fn from(error: carrel_domain::InvalidIdentifier) -> Self {
        Self::Workspace(error.into())
    }
}

const MAX_LISTED: usize = 5;

fn listed(failed: &[(String, String)]) -> String {
    let told = failed.iter().take(MAX_LISTED).map(|(issue, error)| format!("{issue}: {error}"));
    let more = failed.len().checked_sub(MAX_LISTED + 1).map(|more| format!("{} more", more + 1));
    told.chain(more).collect::<Vec<_>>().join("; ")
}

impl CliError {
    /// Prints the error as the last line of stderr and returns the exit status.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        let mut envelope = ErrorEnvelope::of(self);
        envelope.error.message = format!("{}; {}", envelope.error.message, self.code().remedy());
        report(&envelope, format);
        ExitCode::from(if self.code() == Code::Usage { USED_WRONGLY } else { FAILED })
    }
}

fn report(envelope: &ErrorEnvelope, format: Format) {
    let mut stderr = io::stderr().lock();
    // A closed stderr cannot be reported anywhere.
    let _ = match format {
        Format::Json => serde_json::to_writer(&mut stderr, envelope)
            .map_err(io::Error::from)
            .and_then(|()| stderr.write_all(b"\n")),
        Format::Text => {
            let error = &envelope.error;
            writeln!(stderr, "error: {} [{}]", printable(&error.message), error.code)
        }
    };
}

/// Prints the usage error, or the help that was requested.
pub(crate) fn report_usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let asked_for_help = !error.use_stderr();
    let json = arguments.iter().any(|argument| argument == "--json");
    if asked_for_help || !json {
        let _ = error.print();
        return ExitCode::from(if asked_for_help { 0 } else { USED_WRONGLY });
    }
    let text = error.to_string();
    let message = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    report(&ErrorEnvelope::new(Code::Usage, message, json!({})), Format::Json);
    ExitCode::from(USED_WRONGLY)
}
