//! `agent`: which agent works, how many at once, and what each may reach.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::choices;
use super::variables;
use crate::paths;
use crate::reader::Reader;
use crate::schema::{Key, Kind, keys, kind};
use crate::yaml::{Entry, Value};

choices! {
    /// How an agent is spoken to.
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
    /// What an agent reaches over the network.
    #[derive(Default)]
    Network {
        /// Nothing.
        None = "none",
        /// Its own loopback interface.
        Loopback = "loopback",
        /// What the host reaches.
        #[default]
        Full = "full",
    }
}

choices! {
    /// What an agent is answered when it asks for permission.
    #[derive(Default)]
    Approvals {
        /// That it may go on.
        #[default]
        Accept = "accept",
        /// That a person has to decide.
        Ask = "ask",
    }
}

choices! {
    /// Which of Carrel's own tools an agent is offered, beside those of the tracker.
    #[derive(Default)]
    AgentToolset {
        /// None: agents have their own.
        #[default]
        None = "none",
        /// Everything for work on code.
        Code = "code",
        /// The six tools of the workspace service.
        Workspace = "workspace",
    }
}

/// Which agent works, how many at once, and what each may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// How the agent is spoken to.
    pub kind: AgentKind,
    /// The command that starts it; always there unless the kind is Codex.
    pub command: Option<String>,
    /// What it is answered when it asks for permission.
    pub approvals: Approvals,
    /// What it reaches over the network.
    pub network: Network,
    /// Which of Carrel's own tools it is offered.
    pub toolset: AgentToolset,
    /// Names of the operator's variables that it sees.
    pub env: Vec<String>,
    /// Further paths that it may read.
    pub readable: Vec<PathBuf>,
    /// Further paths that it may write.
    pub writable: Vec<PathBuf>,
    /// How many agents run at once.
    pub max_concurrent_agents: u64,
    /// How many agents run at once for issues in a state, by its name in lower case.
    pub max_concurrent_agents_by_state: BTreeMap<String, u64>,
    /// How many turns one run may take.
    pub max_turns: u64,
    /// The longest wait between two attempts.
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
            env: variables::read(reader, &keys::AGENT_ENV),
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
        match paths::expand(OsStr::new(&path), reader.directory, reader.environment) {
            Ok(expanded) => resolved.push(expanded.path),
            Err(error) => reader.problem(key, format!("lists {path:?}: {error}")),
        }
    }
    resolved
}

/// Reads the limits by state. An entry that makes no sense limits nothing and gives a warning.
fn read_limits(reader: &mut Reader<'_>) -> BTreeMap<String, u64> {
    let key = &keys::AGENT_BY_STATE;
    let mut limits = BTreeMap::new();
    // Reports a value that is not a map; the entries are read here for their places.
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

fn read_limit(entry: &Entry) -> Option<(String, u64)> {
    let state = entry.key.trim().to_lowercase();
    let limit = kind::integer(&entry.value).and_then(|limit| u64::try_from(limit).ok())?;
    (!state.is_empty() && limit > 0).then_some((state, limit))
}

fn warn_about_limit(reader: &mut Reader<'_>, key: &Key, entry: &Entry) {
    let message = format!(
        "{}.{} is ignored: it {}",
        key.path,
        entry.key,
        Kind::POSITIVE.complaint(&entry.value)
    );
    reader.warn_at(key, Some(entry.position), message);
}
