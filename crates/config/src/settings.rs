//! The settings of a workflow file: defaults applied, ranges checked, paths absolute.

mod agent;
mod budgets;
mod choice;
mod codex;
mod hooks;
mod observability;
mod tracker;
pub(crate) mod tracker_profile;
mod variable_names;
mod workspace;

use std::time::Duration;

pub use agent::{AgentConfig, AgentKind, AgentToolset, Approvals, Network};
pub use budgets::{Budget, Budgets};
pub use codex::CodexConfig;
pub use hooks::{HooksConfig, MAX_SCRIPT_BYTES};
pub use observability::{ObservabilityConfig, ServerConfig};
pub use tracker::{Provider, TrackerConfig, TrackerKind};
pub use workspace::WorkspaceConfig;

use crate::reader::Reader;
use crate::schema::keys;
use crate::workflow::ValidationScope;

/// Everything a workflow file configures.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The root and quotas of workspaces.
    pub workspace: WorkspaceConfig,
    /// The operator's hooks.
    pub hooks: HooksConfig,
    /// The rest; `None` with [`ValidationScope::WorkspaceAndHooks`].
    pub conductor: Option<ConductorConfig>,
}

/// Settings of the conductor.
#[derive(Clone, Debug, PartialEq)]
pub struct ConductorConfig {
    /// The tracker whose issues are worked on.
    pub tracker: TrackerConfig,
    /// The time between two polls of the tracker.
    pub poll_interval: Duration,
    /// The agent, its concurrency and its sandbox.
    pub agent: AgentConfig,
    /// The Codex app server, for agents of that kind.
    pub codex: CodexConfig,
    /// Limits of turns, tokens, minutes and attempts.
    pub budgets: Budgets,
    /// The terminal dashboard.
    pub observability: ObservabilityConfig,
    /// The conductor's HTTP interface.
    pub server: ServerConfig,
    /// The variables that secret fields refer to, such as `MY_KEY` for `api_key: $MY_KEY`. Agents must not
    /// see them.
    pub secret_variables: Vec<String>,
}

impl Config {
    /// Reads the settings in the scope. The result is valid only if the reader has no problems.
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
            reader.problem(
                &keys::AGENT_ENV,
                format!("lists {name:?}, {}", variable_names::HOLDS_SECRET),
            );
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
