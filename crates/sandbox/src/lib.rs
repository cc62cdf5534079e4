//! The sandbox of commands: policy, plan and enforcement.
//!
//! A [`Policy`] is the operator's decision about the commands of a workspace. Together with the facts
//! about a [`Host`] it becomes a [`Plan`]: plain data that lists mounts, Landlock rules, the seccomp
//! filter and the user. A [`Cell`] is a process that has applied a plan and is forked for each command.
//! After a command, [`explain_denials`] turns system calls that the filter denied and messages on stderr
//! into denials with the rule and, where there is one, the policy line that would allow the operation;
//! [`guarantees`] lists the properties that a plan enforces.
//!
//! Every decision is made when the plan is made, in the server, where it can be tested, printed and
//! compared. Applying a plan runs in a forked process before `exec`, where neither tests nor logs reach,
//! so that part only follows the plan.
//!
//! This crate is the only home of `unsafe` in Carrel. Each module wraps a few system calls that have no
//! safe wrapper elsewhere. An exported function is sound for every caller: the conditions of the call
//! are checked or established inside, never required of the caller.
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
mod overlay;
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
pub use denial::{
    Certainty, Denial, DenialClass, DenialContext, MAX_DENIALS, explain as explain_denials,
};
pub use descriptors::close_on_exec;
pub use execute::execute;
pub use fork::{Fork, VforkStack, fork};
pub use guarantee::{CgroupLimits, Guarantee, enforced, guarantees, not_enforced, without_sandbox};
pub use host::{Host, HostEntry, HostEntryKind};
pub use landlock::version as landlock_version;
pub use namespaces::NetworkNamespace;
pub use overlay::{MountedOverlay, OverlayDirectories, OverlayNamespaces, OverlayPlan, UsedLayers};
pub use plan::{
    BindSource, CommandUser, FileAccess, GIT_SETTINGS_TEXT, Landlock, Plan, PlanError, RootEntry,
    Rule,
};
pub use policy::{GitDirectory, Owner, Policy, UserRange, WorkspaceSource};
pub use scrubbed_fork::fork_scrubbed;
pub use seccomp::{BpfProgram, DeniedCall, Listener, Reporting, SeccompFilter};
pub use signals::{
    SignalQueue, restore_default_dispositions, signal_process_group, unblock_all_signals,
};
pub use usage::{Usage, usage_of_children};
