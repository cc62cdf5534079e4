//! The nouns of Carrel: workspace keys, layouts, policies, error codes, tasks, sizes and times.
//!
//! Everything here is plain data and pure functions. A value that exists is
//! valid: it was parsed at the border and needs no further checks.
#![forbid(unsafe_code)]

mod code;
pub mod exact_path;
mod guide;
mod key;
mod layout;
pub mod lossy_path;
mod page;
mod policy;
mod secret;
mod size;
mod task;
mod time;
pub mod whole;

pub use code::{Code, Coded, ErrorBody, ErrorEnvelope, message_of};
pub use key::{Candidates, Choice, Identifier, InvalidIdentifier, WorkspaceKey};
pub use layout::Layout;
pub use page::error_pages;
pub use policy::{Network, ResourceLimits, Tier, UnknownWord, WorkspaceAccess};
pub use secret::Secret;
pub use size::{ByteSize, InvalidSize};
pub use task::{InvalidId, Priority, TaskId, TaskStatus, UnknownTaskWord, VolumeId, WorkspaceId};
pub use time::{Age, Clock, FixedClock, InvalidAge, SystemClock, Timestamp};
