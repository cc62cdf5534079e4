//! The only home of `unsafe` in Carrel.
//!
//! Each module wraps a few system calls that the helper processes of `carrel-exec` need and that
//! have no safe wrapper elsewhere. A function that is exported is sound for every caller: what
//! makes the call correct is checked or established inside, never asked of the caller.
#![deny(unsafe_op_in_unsafe_fn)]

mod descriptors;
mod fork;
mod signals;
mod usage;

pub use descriptors::close_on_exec;
pub use fork::{Fork, fork};
pub use signals::{SignalQueue, restore_default_dispositions, unblock_all_signals};
pub use usage::{Usage, usage_of_children};
