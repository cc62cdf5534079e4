//! `agent`: kind, command, concurrency and sandbox of agents.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::choices;
use super::variable_names;
use crate::path_expansion;
use crate::reader::Reader;
use crate::schema::{Key, Kind, keys, kind};
use crate::yaml::{MapEntry, Value};

choices! {
    /// The protocol between Carrel and an agent.
    #[derive(Default)]
    AgentKind {
        /// The Codex app server.
        #[default]
        Codex = "codex",
        /// The Agent Client Protocol.
        Acp = "acp",
        /// A plain command that reads the prompt from its input.
        Command = "command",
    }
}

choices! {
    /// The network of an agent.
    #[derive(Default)]
    Network {
        /// No network.
        None = "none",
        /// A loopback interface of its own.
        Loopback = "loopback",
        /// The host's network.
        #[default]
        Full = "full",
    }
}

choices! {
    /// The reply to an agent that requests permission.
    #[derive(Default)]
    Approvals {
        /// Permission is granted; the sandbox limits the agent either way.
        #[default]
        Accept = "accept",
        /// A person has to decide, which stops the run.
        Ask = "ask",
    }
}

choices! {
    /// Carrel's own tools that an agent is offered beside the tracker's.
    #[derive(Default)]
    AgentToolset {
        /// None; agents have tools of their own.
        #[default]
        None = "none",
        /// The tools for work on code.
        Code = "code",
        /// The six tools of the workspace service.
        Workspace = "workspace",
    }
}

/// Settings of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The protocol of the agent.
    pub kind: AgentKind,
    /// The command that starts the agent; `None` only for Codex, which has its own setting.
    pub command: Option<String>,
    /// The reply to requests for permission.
    pub approvals: Approvals,
    /// The network of the agent.
    pub network: Network,
    /// Carrel's own tools that the agent is offered.
    pub toolset: AgentToolset,
    /// Names of the operator's environment variables that the agent sees.
    pub env: Vec<String>,
    /// Further absolute paths that the agent may read.
    pub readable: Vec<PathBuf>,
    /// Further absolute paths that the agent may write.
    pub writable: Vec<PathBuf>,
    /// Agents that run at once; at least 1.
    pub max_concurrent_agents: u64,
    /// Agents that run at once for issues in a state, by the state's name in lower case.
    pub max_concurrent_agents_by_state: BTreeMap<String, u64>,
    /// Turns of one run; at least 1.
    pub max_turns: u64,
    /// The longest back-off between two attempts.
    pub max_retry_backoff: Duration,
}

impl AgentConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let kind = reader.choice(&keys::AGENT_KIND, AgentKind::parse);
        Self {
            kind,
            command: read_command(reader, kind),
            approvals: reader.choice(&keys::AGENT_APPROVALS, Approvals::parse),
            network: reader.choice(&keys::AGENT_NETWORK, Network::parse),
            toolset: reader.choice(&keys::AGENT_TOOLSET, AgentToolset::parse),
            env: variable_names::read(reader, &keys::AGENT_ENV),
            readable: read_paths(reader, &keys::AGENT_READABLE),
            writable: read_paths(reader, &keys::AGENT_WRITABLE),
            max_concurrent_agents: reader.count(&keys::AGENT_CONCURRENCY).unwrap_or_default(),
            max_concurrent_agents_by_state: read_limits(reader),
            max_turns: reader.count(&keys::AGENT_TURNS).unwrap_or_default(),
            max_retry_backoff: reader.millis(&keys::AGENT_BACKOFF),
        }
    }
}

fn read_command(reader: &mut Reader<'_>, kind: AgentKind) -> Option<String> {
    let key = &keys::AGENT_COMMAND;
    let command = reader.text(key);
    match kind {
        AgentKind::Codex if command.is_some() => {
            let message = "agent.command is not used by the agent kind codex; set codex.command, \
                           or agent.kind to acp or command";
            reader.warn(key, message.to_owned());
        }
        AgentKind::Acp | AgentKind::Command if reader.written(key).is_none() => {
            reader.problem(key, format!("is missing; the agent kind {} needs it", kind.as_str()));
        }
        AgentKind::Codex | AgentKind::Acp | AgentKind::Command => {}
    }
    command
}

fn read_paths(reader: &mut Reader<'_>, key: &Key) -> Vec<PathBuf> {
    let mut resolved = Vec::new();
    for path in reader.texts(key).unwrap_or_default() {
        match path_expansion::expand(OsStr::new(&path), reader.directory, reader.environment) {
            Ok(expanded) => resolved.push(expanded.path),
            Err(error) => reader.problem(key, format!("lists {path:?}: {error}")),
        }
    }
    resolved
}

/// Reads the limits by state. An invalid entry gives a warning and limits nothing.
fn read_limits(reader: &mut Reader<'_>) -> BTreeMap<String, u64> {
    let key = &keys::AGENT_BY_STATE;
    let mut limits = BTreeMap::new();
    // Reports a value that is not a map; the entries are read from the tree for their positions.
    reader.json(key);
    let Some(Value::Map(map)) = reader.written(key).map(|node| &node.value) else {
        return limits;
    };
    for entry in &map.0 {
        match read_limit(entry) {
            Some((state, limit)) => {
                limits.insert(state, limit);
            }
            None => warn_about_limit(reader, key, entry),
        }
    }
    limits
}

fn read_limit(entry: &MapEntry) -> Option<(String, u64)> {
    let state = entry.key.trim().to_lowercase();
    let limit = kind::integer(&entry.value).and_then(|limit| u64::try_from(limit).ok())?;
    (!state.is_empty() && limit > 0).then_some((state, limit))
}

fn warn_about_limit(reader: &mut Reader<'_>, key: &Key, entry: &MapEntry) {
    let message = format!(
        "{}.{} is ignored: it {}",
        key.path,
        entry.key,
        Kind::POSITIVE.complaint(&entry.value)
    );
    reader.warn_at(key, Some(entry.position), message);
}
