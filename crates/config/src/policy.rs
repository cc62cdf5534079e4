//! `policy.toml`: the operator's limits for sandboxed commands.
//!
//! The file belongs to the operator and is never read from a workspace: a command that could write its own policy
//! would have none. [`OperatorPolicy::load`] locates it (command line, `CARREL_POLICY`, the user's, the machine's),
//! rejects it if another user could have written it, and resolves it: paths are absolute, ranges are checked,
//! defaults are applied. Every mistake is an error, unknown keys included, since a misspelt restriction would be no
//! restriction; with an error no command runs. Without a file the defaults apply.
//!
//! Paths that the policy shares are checked after their links are resolved, so that a link cannot share what its
//! target may not be: the whole file system, the sandbox's own directories, for writing also the system's
//! directories and the policy itself.

mod language_servers;
mod loaded_policy;
mod operator_policy;
mod policy_error;
mod policy_file;
mod policy_keys;
mod policy_location;
mod policy_paths;
mod policy_reader;
mod policy_reference;
mod snapshot_policy;
mod toolchain;
mod uid_range;

pub use language_servers::{
    BUILT_IN_SERVERS, LanguageServerPolicy, SERVER_LANGUAGES, ServerEntry, ServerReadiness,
};
pub use loaded_policy::{LoadedPolicy, PolicyFile};
pub use operator_policy::{OperatorPolicy, TierChoice, ToolchainChoice, Trust};
pub use policy_error::PolicyError;
pub use policy_file::MAX_POLICY_BYTES;
#[cfg(test)]
pub(crate) use policy_keys::SCHEMA;
pub use policy_location::{PolicyOrigin, SYSTEM_POLICY_FILE, user_policy_file};
pub use policy_reference::{policy_reference_markdown, policy_template};
pub use snapshot_policy::SnapshotPolicy;
pub use toolchain::{DetectedToolchains, TOOLCHAINS, Toolchain};
pub use uid_range::UidRange;
