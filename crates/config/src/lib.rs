//! `WORKFLOW.md`, `policy.toml` and the environment: the operator's configuration.
//!
//! A workflow file is YAML front matter and a prompt template. [`Workflow::load`] resolves it in one step: either
//! every setting is valid, with defaults applied, ranges checked and paths absolute, or one error lists every
//! mistake with file, line and column. Doubtful settings become warnings. [`Reloader`] keeps the last good
//! workflow while its file is edited. [`OperatorPolicy::load`] reads the limits for sandboxed commands, from a
//! file that only the operator can have written.
//!
//! ```text
//! WORKFLOW.md ── front_matter ─┬─ yaml ──┐                 ┌─ schema + workflow_keys ──► Config
//!                              └─ prompt │                 │
//!                                        ├─► value_tree ───┤
//! policy.toml ── toml_tree ──────────────┘                 └─ schema + policy_keys ────► OperatorPolicy
//! ```
//!
//! Both files go through one engine: a value tree with positions, and a table in which each setting is described
//! once. Reading, the search for misspelt keys and the pages of [`reference_markdown`] and
//! [`policy_reference_markdown`] all follow that table. The environment is read by [`environment`] alone, as one
//! snapshot that is passed on.
#![forbid(unsafe_code)]

mod diagnostic;
mod effective_settings;
pub mod environment;
mod front_matter;
mod path_expansion;
mod policy;
mod prompt;
mod reloader;
mod schema;
mod secrets;
mod settings;
mod suggest;
mod toml_tree;
mod value_tree;
mod workflow;
mod workflow_error;
mod workflow_file;
mod workflow_keys;
mod workflow_reference;
mod workspace_root;
mod yaml;

pub use diagnostic::{Diagnostic, Position};
pub use effective_settings::{EffectiveSetting, Origin};
pub use environment::{Environment, is_variable_name};
pub use path_expansion::PathError;
pub use policy::{
    BUILT_IN_SERVERS, DetectedToolchains, LanguageServerPolicy, LoadedPolicy, MAX_POLICY_BYTES,
    OperatorPolicy, PolicyError, PolicyFile, PolicyOrigin, SERVER_LANGUAGES, SYSTEM_POLICY_FILE,
    ServerEntry, ServerReadiness, SnapshotPolicy, TOOLCHAINS, TierChoice, Toolchain,
    ToolchainChoice, Trust, UidRange, policy_reference_markdown, policy_template, user_policy_file,
};
pub use prompt::{Prompt, TemplateError};
pub use reloader::{ReloadOutcome, Reloader};
pub use secrets::{MIN_SECRET_BYTES, withheld_variables};
pub use settings::{
    AgentConfig, AgentKind, Approvals, Budget, Budgets, CodexConfig, ConductorConfig, Config,
    HooksConfig, MAX_SCRIPT_BYTES, ObservabilityConfig, Provider, ServerConfig, TrackerConfig,
    TrackerKind, WorkspaceConfig,
};
pub use workflow::{ValidationScope, Workflow};
pub use workflow_error::{Problem, WorkflowError};
pub use workflow_file::MAX_FILE_BYTES;
pub use workflow_reference::{reference_markdown, workflow_template};
pub use workspace_root::{ResolvedRoot, RootOrigin, resolve_root};
