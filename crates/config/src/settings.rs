//! The resolved settings: defaults applied, ranges checked, paths absolute.

mod agent;
mod budgets;
mod choice;
mod codex;
mod hooks;
mod interface;
pub(crate) mod profile;
mod tracker;
mod variables;
mod workspace;

use std::time::Duration;

pub use agent::{AgentConfig, AgentKind, AgentToolset, Approvals, Network};
pub use budgets::{Budget, Budgets};
pub use codex::CodexConfig;
pub use hooks::{HooksConfig, MAX_SCRIPT_BYTES};
pub use interface::{ObservabilityConfig, ServerConfig};
pub use tracker::{Provider, TrackerConfig, TrackerKind};
pub use workspace::WorkspaceConfig;

use crate::reader::Reader;
use crate::schema::keys;
use crate::workflow::ValidationScope;

/// Everything a workflow file configures.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where workspaces live.
    pub workspace: WorkspaceConfig,
    /// The operator's scripts.
    pub hooks: HooksConfig,
    /// The rest, unless only workspaces and hooks were asked for.
    pub conductor: Option<ConductorConfig>,
}

/// What the loop over a tracker's issues needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ConductorConfig {
    /// Where issues come from.
    pub tracker: TrackerConfig,
    /// The time between two polls of the tracker.
    pub poll_interval: Duration,
    /// Which agent works, and how many at once.
    pub agent: AgentConfig,
    /// The Codex app server.
    pub codex: CodexConfig,
    /// Limits of spending.
    pub budgets: Budgets,
    /// What the terminal shows.
    pub observability: ObservabilityConfig,
    /// The HTTP interface.
    pub server: ServerConfig,
    /// Names of the variables that secrets of the tracker are written as, such as `MY_KEY` for `$MY_KEY`.
    pub secret_variables: Vec<String>,
}

impl Config {
    /// Reads what the scope asks for. The result counts only if the reader has no problem.
    pub(crate) fn read(reader: &mut Reader<'_>, scope: ValidationScope) -> Option<Self> {
        let workspace = WorkspaceConfig::read(reader);
        let hooks = HooksConfig::read(reader);
        let conductor = match scope {
            ValidationScope::WorkspaceAndHooks => None,
            ValidationScope::Everything => Some(ConductorConfig::read(reader)?),
        };
        Some(Self { workspace, hooks, conductor })
    }
}

impl ConductorConfig {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let tracker = TrackerConfig::read(reader);
        let poll_interval = reader.millis(&keys::POLLING_INTERVAL);
        let agent = AgentConfig::read(reader);
        let codex = CodexConfig::read(reader);
        let budgets = Budgets::read(reader);
        let observability = ObservabilityConfig::read(reader);
        let server = ServerConfig::read(reader);
        let secret_variables = tracker::secret_variables(reader);
        for name in agent.env.iter().filter(|name| secret_variables.contains(name)) {
            reader
                .problem(&keys::AGENT_ENV, format!("lists {name:?}, {}", variables::HOLDS_SECRET));
        }
        let tracker = tracker?;
        Some(Self {
            tracker,
            poll_interval,
            agent,
            codex,
            budgets,
            observability,
            server,
            secret_variables,
        })
    }
}
