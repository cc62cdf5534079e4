//! The vocabulary of Carrel: workspace keys, layouts, policies, error codes, tasks, sizes and times.
//!
//! Everything here is plain data and pure functions; the crate does no input or output. A value that exists
//! is valid: text is parsed into these types at the border and needs no further checks. Small rules that
//! every crate follows are here too: [`encoding`] for the bytes of stores and journals, [`excerpt`] for foreign text in
//! messages, [`hex`] for digits, [`suggest`] for misspelt names, [`sync`] for poisoned locks.
#![forbid(unsafe_code)]

mod code;
pub mod encoding;
mod error_envelope;
pub mod exact_path;
pub mod excerpt;
mod failure;
mod fingerprint;
pub mod hex;
pub mod json_integer;
mod key;
mod layout;
pub mod lossy_path;
mod network_cap;
mod policy;
mod secret;
mod size;
pub mod suggest;
pub mod sync;
mod task;
mod time;
mod token_scope;
mod tool_group;
mod trial_id;

pub use code::Code;
pub use error_envelope::{Coded, ErrorBody, ErrorEnvelope, message_of};
pub use failure::Failure;
pub use fingerprint::Fingerprint;
pub use key::{Identifier, InvalidIdentifier, KeyCandidates, KeyChoice, WorkspaceKey};
pub use layout::Layout;
pub use network_cap::{
    GrantedNetwork, NetworkDenied, NetworkLayer, NetworkPolicy, NetworkPurpose, NetworkRequest,
};
pub use policy::{Network, ResourceLimits, Tier, UnknownPolicyValue, WorkspaceAccess};
pub use secret::Secret;
pub use size::{ByteSize, InvalidSize};
pub use task::{
    InvalidId, MAX_FORKS, Priority, TaskId, TaskStatus, UnknownTaskValue, VolumeId, WorkspaceId,
};
pub use time::{Age, Clock, FixedClock, InvalidAge, SystemClock, Timestamp};
pub use token_scope::{InvalidTokenScopes, TokenScope, TokenScopes};
pub use tool_group::{ToolGroup, ToolSelection, UnknownToolGroup};
pub use trial_id::{InvalidTrialId, TrialId};
