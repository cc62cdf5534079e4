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

mod aside;
mod cell;
mod denial;
mod descriptors;
mod execute;
mod fork;
mod guarantee;
mod host;
mod landlock;
mod memory;
mod mounts;
mod namespaces;
mod plan;
mod policy;
mod seccomp;
mod seed;
mod signals;
mod usage;

pub use cell::{Ahead, Cell, Doors, Enclosure, Expected, Failure, Parts, Step, Unsealed};
pub use denial::{Certainty, Denial, MAX_DENIALS, Situation, explain as explain_denials};
pub use descriptors::close_on_exec;
pub use execute::execute;
pub use fork::{Fork, Loan, fork};
pub use guarantee::{Grouped, Guarantee, enforced, guarantees, not_enforced, without_walls};
pub use host::{Host, Visible, VisibleKind};
pub use landlock::version as landlock_version;
pub use memory::share_the_heap;
pub use plan::{GIT_SETTINGS_TEXT, Identity, Landlock, Node, Plan, PlanError, Reach, Rule, Source};
pub use policy::{Owner, Policy, Repository, UserRange};
pub use seccomp::{Filter, Listener, Program, Refused, Reporting};
pub use seed::plant;
pub use signals::{SignalQueue, restore_default_dispositions, unblock_all_signals};
pub use usage::{Usage, usage_of_children};
