//! The seccomp filter: the system calls that commands are denied.
//!
//! A [`SeccompFilter`] is plain data, a list of rules with a reason each: it can be printed, compared and
//! sent to another process. It is assembled into a [`BpfProgram`] for the kernel, which the supervisor of
//! a command installs on itself before it starts the command.
//!
//! The filter is a denylist. It is the second layer behind namespaces and Landlock and closes what those
//! leave open; an allowlist would break programs with every new version of their C library.
//! The list cannot fall behind the kernel: calls newer than the newest one that was reviewed get `ENOSYS`.
//!
//! A rule denies in one of two ways. Calls that programs try as a matter of course just fail. Calls that a
//! reader of the result should know about are reported: the kernel suspends the caller and notifies the
//! [`Listener`], which records the call and responds with the rule's error number. The listener never
//! lets a call continue, so it is harmless that the caller could change the arguments in memory meanwhile.
//! If the supervisor dies, reported calls fail with `ENOSYS`.

mod action;
mod call_detail;
mod condition;
mod file_modes;
mod install;
mod instruction;
mod listener;
mod program;
mod rule_table;
mod sockets;
mod standard_filter;
mod syscall;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use listener::{DeniedCall, Listener};
pub use program::{BpfProgram, Reporting};

use action::{Errno, SeccompAction};
use condition::Condition;
use syscall::{Architecture, Syscall};

/// The system calls that are denied. All others are allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeccompFilter {
    /// The rules. The first one that matches a call decides.
    pub rules: Vec<SyscallRule>,
    /// The newest call that was reviewed. Calls with higher numbers get `ENOSYS` before any rule is
    /// tried: a newer kernel may have calls that open a way out, and programs are prepared for older
    /// kernels.
    pub newest: Syscall,
}

/// A rule that denies one system call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallRule {
    /// The call that is denied.
    pub syscall: Syscall,
    /// Conditions on its arguments, all of which must hold. Without conditions the call is always denied.
    pub conditions: Vec<Condition>,
    /// The effect on the caller.
    pub action: SeccompAction,
    /// The reason, a sentence that denials repeat.
    pub reason: Cow<'static, str>,
}

/// The error of calls above [`SeccompFilter::newest`].
const UNREVIEWED: Errno = Errno::Enosys;

impl SeccompFilter {
    /// Returns the rule that matches a call, if any.
    fn rule_for(
        &self,
        architecture: Architecture,
        call: u32,
        args: &[u64; 6],
    ) -> Option<&SyscallRule> {
        self.rules.iter().find(|rule| {
            rule.syscall.number(architecture) == Some(call)
                && rule.conditions.iter().all(|condition| condition.holds(args))
        })
    }
}

impl fmt::Display for SeccompFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))?;
        let newest = self.newest.name();
        writeln!(f, "calls newer than {newest}: {UNREVIEWED}. They have not been reviewed.")
    }
}

impl fmt::Display for SyscallRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.syscall.name())?;
        for (index, condition) in self.conditions.iter().enumerate() {
            write!(f, " {} {condition}", if index == 0 { "when" } else { "and" })?;
        }
        write!(f, ": {}. {}", self.action, self.reason)
    }
}
