//! `policy.toml`: what the operator allows sandboxed commands to do.
//!
//! The file belongs to the operator and is never read from a workspace.
//! [`OperatorPolicy::load`] finds it, refuses it when someone else could have written
//! it, and resolves it: paths are absolute, ranges are checked, defaults are applied.
//! A mistake is an error and never ignored, because a misspelt restriction would
//! otherwise be no restriction.
//!
//! The settings are described once, in the table of `keys`, which drives reading,
//! the search for misspelt keys and the guide of [`policy_reference_markdown`].

mod document;
mod error;
mod file;
mod inspect;
mod keys;
mod kind;
mod load;
mod operator;
mod paths;
mod place;
mod reader;
mod reference;
mod toolchain;
mod uids;

pub use error::PolicyError;
pub use file::MAX_POLICY_BYTES;
pub use load::{LoadedPolicy, PolicyFile};
pub use operator::{NetworkLimitExceeded, OperatorPolicy, TierChoice, ToolchainChoice, Trust};
pub use place::{PolicyOrigin, SYSTEM_POLICY_FILE};
pub use reference::policy_reference_markdown;
pub use toolchain::{DetectedToolchains, TOOLCHAINS, Toolchain};
pub use uids::UidRange;
