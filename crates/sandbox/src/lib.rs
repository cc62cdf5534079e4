//! Policy, plan, walls: what a command may do, the restrictions that follow, and their enforcement.
//!
//! A [`Policy`] says what a caller means. With the facts about a [`Host`] it becomes a [`Plan`],
//! which is plain data. A [`Cell`] is a process behind the walls that a plan describes.
//!
//! This is the only home of `unsafe` in Carrel.
//! Each module wraps a few system calls that the helper processes of `carrel-exec` need and that
//! have no safe wrapper elsewhere. A function that is exported is sound for every caller: what
//! makes the call correct is checked or established inside, never asked of the caller.
#![deny(unsafe_op_in_unsafe_fn)]

mod allocator;
mod cell;
mod denial;
mod descriptors;
mod execute;
mod fork;
mod guarantee;
mod host;
mod landlock;
mod mounts;
mod namespaces;
mod plan;
mod policy;
mod scrubbed_fork;
mod seccomp;
mod setup_process;
mod signals;
mod usage;

pub use allocator::limit_malloc_arenas;
pub use cell::{
    Cell, CellLifetime, CellResources, PreparedNamespaces, SetupError, SetupStep, SharedMounts,
    SignalScope, UnsealedCell,
};
pub use denial::{Certainty, Denial, DenialContext, MAX_DENIALS, explain as explain_denials};
pub use descriptors::close_on_exec;
pub use execute::execute;
pub use fork::{Fork, VforkStack, fork};
pub use guarantee::{CgroupLimits, Guarantee, enforced, guarantees, not_enforced, without_sandbox};
pub use host::{Host, HostEntry, HostEntryKind};
pub use landlock::version as landlock_version;
pub use plan::{
    BindSource, CommandUser, FileAccess, GIT_SETTINGS_TEXT, Landlock, Plan, PlanError, RootEntry,
    Rule,
};
pub use policy::{GitDirectory, Owner, Policy, UserRange};
pub use scrubbed_fork::fork_scrubbed;
pub use seccomp::{BpfProgram, DeniedCall, Listener, Reporting, SeccompFilter};
pub use signals::{SignalQueue, restore_default_dispositions, unblock_all_signals};
pub use usage::{Usage, usage_of_children};
