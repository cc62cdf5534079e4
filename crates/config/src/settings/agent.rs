//! `agent`: kind, command, concurrency and sandbox of agents.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use carrel_domain::{Network, ToolSelection};

use super::choice::choices;
use super::variable_names;
use crate::path_expansion;
use crate::schema::{Setting, SettingReader, Syntax, ValueKind, integer};
use crate::value_tree::Node;
use crate::workflow_keys as keys;

choices! {
    /// The protocol between Carrel and an agent: the Codex app server, the Agent Client Protocol, or a command that
    /// reads the prompt from its input.
    #[derive(Default)]
    AgentKind {
        #[default]
        Codex = "codex",
        Acp = "acp",
        Command = "command",
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

/// The section `agent`: defaults applied, ranges checked, paths absolute. `docs/workflow.md` documents each
/// key; numbers are at least 1.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    pub kind: AgentKind,
    /// The shell command that starts the agent; `None` only for Codex, which has a setting of its own.
    pub command: Option<String>,
    pub approvals: Approvals,
    pub network: Network,
    pub tools: ToolSelection,
    /// Names of environment variables; never one that holds a secret of a tracker or the server.
    pub env: Vec<String>,
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    pub max_concurrent_agents: u64,
    /// Agents that run at once for issues in a state, by the state's name in lower case. Invalid entries of the
    /// file gave a warning and are not here.
    pub max_concurrent_agents_by_state: BTreeMap<String, u64>,
    pub max_turns: u64,
    /// `None` is no limit.
    pub max_turns_without_progress: Option<u64>,
    pub max_retry_backoff: Duration,
}

impl AgentConfig {
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
        let kind = reader.choice(&keys::AGENT_KIND, AgentKind::parse).unwrap_or_default();
        Self {
            kind,
            command: read_command(reader, kind),
            approvals: reader.choice(&keys::AGENT_APPROVALS, Approvals::parse).unwrap_or_default(),
            network: reader
                .choice(&keys::AGENT_NETWORK, |word| word.parse().ok())
                .unwrap_or(Network::Full),
            tools: read_tools(reader),
            env: variable_names::read(reader, &keys::AGENT_ENV),
            readable: read_paths(reader, &keys::AGENT_READABLE),
            writable: read_paths(reader, &keys::AGENT_WRITABLE),
            max_concurrent_agents: reader.count(&keys::AGENT_CONCURRENCY).unwrap_or_default(),
            max_concurrent_agents_by_state: read_limits(reader),
            max_turns: reader.count(&keys::AGENT_TURNS).unwrap_or_default(),
            max_turns_without_progress: reader.limit(&keys::AGENT_TURNS_WITHOUT_PROGRESS),
            max_retry_backoff: reader.millis(&keys::AGENT_BACKOFF),
        }
    }
}

fn read_command(reader: &mut SettingReader<'_>, kind: AgentKind) -> Option<String> {
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

fn read_tools(reader: &mut SettingReader<'_>) -> ToolSelection {
    let key = &keys::AGENT_TOOLS;
    let mut tools = ToolSelection::NONE;
    for word in reader.texts(key).unwrap_or_default() {
        match ToolSelection::of_word(&word) {
            Ok(chosen) => tools = tools.and(chosen),
            Err(error) => reader.problem(key, format!("has an {error}")),
        }
    }
    tools
}

fn read_paths(reader: &mut SettingReader<'_>, key: &Setting) -> Vec<PathBuf> {
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
fn read_limits(reader: &mut SettingReader<'_>) -> BTreeMap<String, u64> {
    let key = &keys::AGENT_BY_STATE;
    let mut limits = BTreeMap::new();
    // Reports a value that is not a map; the entries are read from the tree for their positions.
    reader.json(key);
    let Some(map) = reader.written(key).and_then(Node::as_map) else {
        return limits;
    };
    for entry in &map.0 {
        let state = entry.key.trim().to_lowercase();
        let limit = integer(&entry.value).and_then(|limit| u64::try_from(limit).ok());
        if let Some(limit) = limit.filter(|limit| *limit > 0 && !state.is_empty()) {
            limits.insert(state, limit);
        } else {
            let complaint = ValueKind::POSITIVE.complaint(&entry.value, Syntax::Yaml);
            let message = format!("{}.{} is ignored: it {complaint}", key.path, entry.key);
            reader.warn_at(key, Some(entry.position), message);
        }
    }
    limits
}
