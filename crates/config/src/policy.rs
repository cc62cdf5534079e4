//! `policy.toml`: the operator's limits for sandboxed commands.
//!
//! The file belongs to the operator and is never read from a workspace.
//! [`OperatorPolicy::load`] locates it, rejects it if another user could have written it, and resolves it:
//! paths are absolute, ranges are checked, defaults are applied. Every mistake is an error, unknown keys
//! included: a misspelt restriction would otherwise be no restriction.

mod document;
mod inspect;
mod keys;
mod kind;
mod loaded_policy;
mod operator_policy;
mod policy_error;
mod policy_file;
mod policy_location;
mod policy_paths;
mod policy_reference;
mod reader;
mod toolchain;
mod uid_range;

pub use loaded_policy::{LoadedPolicy, PolicyFile};
pub use operator_policy::{
    NetworkLimitExceeded, OperatorPolicy, TierChoice, ToolchainChoice, Trust,
};
pub use policy_error::PolicyError;
pub use policy_file::MAX_POLICY_BYTES;
pub use policy_location::{PolicyOrigin, SYSTEM_POLICY_FILE};
pub use policy_reference::policy_reference_markdown;
pub use toolchain::{DetectedToolchains, TOOLCHAINS, Toolchain};
pub use uid_range::UidRange;
