//! The settings of a workflow file: defaults applied, ranges checked, paths absolute.
//!
//! One module for each section. Each reads its keys through the [`SettingReader`], which records mistakes and goes on,
//! so a value that was read may be a stand-in until the reader reports no problems.

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

pub use agent::{AgentConfig, AgentKind, Approvals};
pub use budgets::{Budget, Budgets};
pub use codex::CodexConfig;
pub use hooks::{HooksConfig, MAX_SCRIPT_BYTES};
pub use observability::{ObservabilityConfig, ServerConfig};
pub(crate) use tracker::FLAT_KEYS;
pub use tracker::{Provider, TrackerConfig, TrackerKind};
pub use workspace::WorkspaceConfig;

pub(crate) use choice::choices;

use crate::schema::SettingReader;
use crate::workflow::ValidationScope;
use crate::workflow_keys as keys;

/// The settings of a workflow file. They exist only if the file has no error within the scope that it was validated
/// with.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub workspace: WorkspaceConfig,
    pub hooks: HooksConfig,
    /// `None` with [`ValidationScope::WorkspaceAndHooks`], which does not read the other sections.
    pub conductor: Option<ConductorConfig>,
}

/// The sections that only the conductor needs, each of a type of its own.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq)]
pub struct ConductorConfig {
    pub tracker: TrackerConfig,
    pub poll_interval: Duration,
    pub agent: AgentConfig,
    pub codex: CodexConfig,
    pub budgets: Budgets,
    pub observability: ObservabilityConfig,
    pub server: ServerConfig,
    /// The variables that secret fields refer to, such as `MY_KEY` for `api_key: $MY_KEY`. Agents must not see
    /// them.
    pub secret_variables: Vec<String>,
}

impl Config {
    /// Reads the settings in the scope. The result is valid only if the reader has no problems.
    pub(crate) fn read(reader: &mut SettingReader<'_>, scope: ValidationScope) -> Option<Self> {
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
    fn read(reader: &mut SettingReader<'_>) -> Option<Self> {
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
