//! The effect of a denied system call on its caller.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An error number that a denied call returns, the same on both architectures.
///
/// Only numbers that a filter uses are listed. Zero, which a program would take for success, cannot be
/// expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Errno {
    /// Operation not permitted.
    Eperm = 1,
    /// Permission denied.
    Eacces = 13,
    /// No such system call.
    Enosys = 38,
    /// No such protocol.
    Eprotonosupport = 93,
    /// The file system does not support the operation.
    Eopnotsupp = 95,
    /// No such address family.
    Eafnosupport = 97,
}

impl Errno {
    /// Returns the number, as programs see it in `errno`.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_ascii_uppercase())
    }
}

/// The effect of a rule. Both deny the call with the error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeccompAction {
    /// The call fails and is not reported (`SECCOMP_RET_ERRNO`), for calls that programs try as a matter
    /// of course and have a fallback for.
    Deny(Errno),
    /// The call is reported to the supervisor and fails then (`SECCOMP_RET_USER_NOTIF`), so that the
    /// command's result can list it as a denial.
    Notify(Errno),
}

impl SeccompAction {
    /// Returns the error number of the denied call.
    pub const fn errno(self) -> Errno {
        match self {
            Self::Deny(errno) | Self::Notify(errno) => errno,
        }
    }
}

impl fmt::Display for SeccompAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deny(errno) => write!(f, "{errno}"),
            Self::Notify(errno) => write!(f, "{errno}, reported"),
        }
    }
}
