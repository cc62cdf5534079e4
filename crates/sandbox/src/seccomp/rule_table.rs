//! The notation of rules: one row for calls that share an action, conditions and a reason.
//!
//! A row reads `Action(Error) Call Call [condition, condition]: reason;`. A condition is a constructor of
//! [`Condition`](super::condition::Condition), where `under MASK` narrows a comparison to some bits and
//! `of Full64` extends it to the whole register.

use super::SyscallRule;
use super::action::SeccompAction;
use super::condition::Condition;
use super::syscall::Syscall;

impl SyscallRule {
    pub(super) fn new(
        syscall: Syscall,
        conditions: Vec<Condition>,
        action: SeccompAction,
        reason: &'static str,
    ) -> Self {
        Self { syscall, conditions, action, reason: reason.into() }
    }
}

/// Expands to the rules of its rows, in their order, as a vector.
macro_rules! rules {
    ($($action:ident($errno:ident) $($call:ident)+ $([$(
        $test:ident($($argument:expr),+) $(under $mask:ident)? $(of $width:ident)?
    ),+])?: $reason:expr;)+) => {{
        use $crate::seccomp::action::{Errno, SeccompAction};
        let mut rules = Vec::new();
        $(rules.extend([$(Syscall::$call),+].map(|syscall| {
            let conditions = vec![$($(
                Condition::$test($($argument),+)$(.under($mask))?$(.of(Width::$width))?
            ),+)?];
            SyscallRule::new(syscall, conditions, SeccompAction::$action(Errno::$errno), $reason)
        }));)+
        rules
    }};
}

pub(super) use rules;
