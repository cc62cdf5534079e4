//! The audit log, which the operator reads.
//!
//! Calls of tools and of the API are one event each. A refusal at a boundary is another one,
//! `lifecycle.sandbox.violation`, and has three sources, each of them one place in the code that every
//! interface passes: the registry of tools, the reply of the API, and the runner for denials of the kernel.
//! Commands of the command line add the refusals that end them. All of them go through
//! [`AuditLog::add_violation`], which bounds and masks their detail.
//!
//! The crate is below `runner`, so that a command of `carrel exec`, a hook or an agent, which no tool started,
//! is heard of as well.
#![forbid(unsafe_code)]

mod audit_log;
mod interface;
mod violation;

pub use audit_log::{AuditEvent, AuditLog, AuditRecord, ViolationLayer};
pub use interface::Interface;
pub use violation::{AuditedCall, Mask, Violation};
