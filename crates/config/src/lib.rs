//! `WORKFLOW.md`, `policy.toml` and the environment: everything an operator tells Carrel.
//!
//! A workflow file is YAML front matter and a prompt template. [`Workflow::load`]
//! reads it into a [`Config`] whose defaults are applied, whose ranges are checked
//! and whose paths are absolute, together with a parsed [`Prompt`]. Everything that
//! is wrong is reported at once, each with file, line and column; what is only
//! doubtful becomes a warning. [`Reloader`] keeps the last good file while it is edited.
//!
//! The settings are described once, in a table that drives reading, the search for
//! misspelt keys and the generated guide of [`reference_markdown`]. The operator's limits
//! for sandboxed commands are a file of their own, read by [`OperatorPolicy::load`].
#![forbid(unsafe_code)]

mod diagnostic;
mod effective_settings;
pub mod environment;
mod front_matter;
mod parsed_workflow;
mod path_expansion;
mod policy;
mod prompt;
mod reader;
mod reloader;
mod schema;
mod secrets;
mod settings;
mod suggest;
mod workflow;
mod workflow_error;
mod workflow_file;
mod workflow_reference;
mod workspace_root;
mod yaml;

pub use diagnostic::{Diagnostic, Position};
pub use effective_settings::{EffectiveSetting, Origin};
pub use environment::{Environment, is_variable_name};
pub use path_expansion::PathError;
pub use policy::{
    DetectedToolchains, LoadedPolicy, MAX_POLICY_BYTES, NetworkLimitExceeded, OperatorPolicy,
    PolicyError, PolicyFile, PolicyOrigin, SYSTEM_POLICY_FILE, TOOLCHAINS, TierChoice, Toolchain,
    ToolchainChoice, Trust, UidRange, policy_reference_markdown,
};
pub use prompt::{Prompt, TemplateError};
pub use reloader::{ReloadOutcome, Reloader};
pub use secrets::{MIN_SECRET_BYTES, environment_secrets, is_withheld, withheld_variables};
pub use settings::{
    AgentConfig, AgentKind, AgentToolset, Approvals, Budget, Budgets, CodexConfig, ConductorConfig,
    Config, HooksConfig, MAX_SCRIPT_BYTES, Network, ObservabilityConfig, Provider, ServerConfig,
    TrackerConfig, TrackerKind, WorkspaceConfig,
};
pub use workflow::{ValidationScope, Workflow};
pub use workflow_error::{Problem, WorkflowError};
pub use workflow_file::MAX_FILE_BYTES;
pub use workflow_reference::reference_markdown;
pub use workspace_root::{ResolvedRoot, RootOrigin, default_root, resolve_root};
