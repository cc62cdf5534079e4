//! Which system calls a command may not make, and what it is told when it tries.
//!
//! A [`SeccompFilter`] is plain data with a reason for each entry: it can be printed, compared and sent
//! to another process. It is assembled into a [`BpfProgram`] for the kernel, which the thread that is
//! about to become the command installs on itself. What the filter does not name is allowed: it is
//! the second wall, behind namespaces and Landlock, and it closes what those leave open.
//!
//! Some refusals are explained: the kernel holds the caller and reports the call to a
//! [`Listener`], which answers it with the error number of the entry. The listener never lets a
//! call through, so it does not matter that the caller could change memory in the meantime.

mod action;
mod condition;
mod detail;
mod install;
mod instruction;
mod listener;
mod modes;
mod program;
mod sockets;
mod standard;
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

/// The system calls that are refused. All others are allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeccompFilter {
    /// What is refused. The first entry that fits a call decides.
    pub rules: Vec<SyscallRule>,
    /// The newest call that somebody has judged. Calls with higher numbers do not exist for the
    /// command, before any entry is looked at: a newer kernel may have some that would open a way
    /// out, and programs expect to find themselves on an older one.
    pub newest: Syscall,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallRule {
    /// The call that is refused.
    pub syscall: Syscall,
    /// What its arguments look like when it is. All conditions must hold; none means always.
    pub conditions: Vec<Condition>,
    /// What the caller gets.
    pub action: SeccompAction,
    /// A sentence that says why.
    pub reason: Cow<'static, str>,
}

/// What calls above [`SeccompFilter::newest`] get.
const UNJUDGED: Errno = Errno::Enosys;

impl SeccompFilter {
    /// Returns the entry that decides a call, or nothing if the call is not named.
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
        writeln!(f, "calls newer than {newest}: {UNJUDGED}. Nobody has judged them.")
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
