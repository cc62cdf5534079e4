//! The life of a workspace: one enclosed directory for each piece of work.
//!
//! [`Workspaces`] owns a root. Each workspace is a real directory directly below it, with a record in
//! the server's own `.carrel` directory beside them. Creating and removing a workspace take its lock
//! exclusively, using it shares the lock, so several processes can work on one root.
//!
//! Every step that must survive a crash is recorded before it is done: a directory whose record does
//! not say `ready` is never used, and one whose removal was begun is removed at the next opportunity.
//! `create` and `remove` list the steps.
//!
//! Commands in a workspace are the crate `runner`, above this one.
#![forbid(unsafe_code)]

mod blocking;
mod create;
mod error;
mod fork;
mod fork_many;
mod freeze;
mod gc;
mod git_state;
mod homes;
mod hook_log;
mod hooks;
mod json_file;
mod kept;
mod listing;
mod location;
mod lock;
mod promote;
mod quota;
mod rebase;
mod record;
mod remove;
mod root;
mod trash;
mod tries;
mod unsaved;
mod usage;
mod verify;
mod volume;
mod workspace;
mod workspaces;

pub use blocking::blocking;
pub use create::{Create, Created};
pub use error::{CwdReason, Error, LocationRule, WorkspaceLocation};
pub use fork::{Fork, ForkKind, MakeFork};
pub use freeze::{ChangeRight, FrozenBase};
pub use gc::{Gc, GcAction, GcReport};
pub use git_state::{Fingerprint, GitState};
pub use hooks::{
    Hook, HookEnd, HookError, HookRun, HookSandbox, HookSandboxError, HookSettings, Hooks,
    SandboxedHook,
};
pub use kept::{KeptWork, Restore, Restored};
pub use listing::{ListingState, WorkspaceListing};
pub use lock::{LOCK_TIMEOUT, poll};
pub use quota::{Amount, Exceeded, Quota};
pub use rebase::BaseDrift;
pub use record::{Record, State, TrackerName};
pub use remove::{RemovalLock, Remove, Removed, Target, UnsavedWork};
pub use tries::{Tries, TryLock};
pub use usage::{Freshness, MeasuredUsage};
pub use verify::{RootFinding, Severity, verify};
pub use workspace::Workspace;
pub use workspaces::{DEFAULT_KEEP_UNSAVED, RootOptions, Workspaces};
