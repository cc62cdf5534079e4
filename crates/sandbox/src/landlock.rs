//! Landlock: rulesets that restrict files, TCP ports, abstract sockets and signals of a process and its
//! descendants, for good.
//!
//! A ruleset first *handles* rights, which denies them everywhere, and then grants some of them beneath
//! paths. The plan says which rights are handled, by the version of the ABI that the kernel offers, and
//! lists the rules; applying it has no choices. A right that this module does not know is not handled
//! and so stays allowed, which is why [`version`] never reports more than [`NEWEST_KNOWN`]: guarantees are
//! derived from that number.
//!
//! In tier `full` Landlock is the second layer behind mounts. In tier `landlock` it is the only layer for
//! files, and it has gaps that guarantees name: metadata (modes, times, owners) and `stat` are not covered.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde::{Deserialize, Serialize};

use crate::cell::{SetupError, SetupStep, StepContext};
use crate::plan::{FileAccess, Rule};

/// The newest version of the ABI whose rights are listed here.
const NEWEST_KNOWN: u32 = 7;

const CREATE_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// Rights over files, by the version that brought them.
mod file {
    pub(super) const EXECUTE: u64 = 1;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const READ_FILE: u64 = 1 << 2;
    pub(super) const READ_DIR: u64 = 1 << 3;
    pub(super) const REMOVE_DIR: u64 = 1 << 4;
    pub(super) const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_CHAR: u64 = 1 << 6;
    pub(super) const MAKE_DIR: u64 = 1 << 7;
    pub(super) const MAKE_REG: u64 = 1 << 8;
    pub(super) const MAKE_SOCK: u64 = 1 << 9;
    pub(super) const MAKE_FIFO: u64 = 1 << 10;
    pub(super) const MAKE_BLOCK: u64 = 1 << 11;
    pub(super) const MAKE_SYM: u64 = 1 << 12;
    pub(super) const REFER: u64 = 1 << 13;
    pub(super) const TRUNCATE: u64 = 1 << 14;
    pub(super) const IOCTL_DEV: u64 = 1 << 15;

    pub(super) const FIRST: u64 = (1 << 13) - 1;
    pub(super) const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
    pub(super) const DEVICE: u64 = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV | READ_DIR;
    /// All rights except creating devices and `ioctl` on devices.
    pub(super) const CHANGE: u64 = READ
        | WRITE_FILE
        | REMOVE_DIR
        | REMOVE_FILE
        | MAKE_DIR
        | MAKE_REG
        | MAKE_SOCK
        | MAKE_FIFO
        | MAKE_SYM
        | REFER
        | TRUNCATE;
    /// Rights that the kernel accepts in a rule for a path that is not a directory.
    pub(super) const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    /// Rights that no rule grants.
    pub(super) const NEVER: u64 = MAKE_CHAR | MAKE_BLOCK;
}

const TCP: u64 = 0b11;
const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
const SCOPE_SIGNALS: u64 = 1 << 1;

/// The rights that a ruleset handles: denied everywhere, except where a rule grants them. The layout is that
/// of the kernel's `landlock_ruleset_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handled {
    files: u64,
    tcp: u64,
    scopes: u64,
}

impl Handled {
    /// Handles every right of this version: files, abstract sockets and signals, and with `tcp` also
    /// binding and connecting TCP ports.
    pub(crate) fn everything(abi: u32, tcp: bool) -> Self {
        let files = file::FIRST
            | if abi >= 2 { file::REFER } else { 0 }
            | if abi >= 3 { file::TRUNCATE } else { 0 }
            | if abi >= 5 { file::IOCTL_DEV } else { 0 };
        Self {
            files: if abi >= 1 { files } else { 0 },
            tcp: if tcp && abi >= 4 { TCP } else { 0 },
            scopes: if abi >= 6 { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 },
        }
    }

    /// Handles only signals to processes outside the domain. Moving files between directories is denied
    /// by every ruleset that does not handle it, so it is handled too and granted by a rule for `/`.
    pub(crate) fn signals(abi: u32) -> Self {
        if abi < 6 {
            return Self::default();
        }
        Self { files: file::REFER, scopes: SCOPE_SIGNALS, ..Self::default() }
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns whether signals to processes outside the domain are denied.
    pub fn signals_stay_inside(self) -> bool {
        self.scopes & SCOPE_SIGNALS != 0
    }

    fn of(self, access: FileAccess) -> u64 {
        let wanted = match access {
            FileAccess::Read => file::READ,
            FileAccess::Change => file::CHANGE,
            FileAccess::Device => file::DEVICE,
        };
        wanted & self.files & !file::NEVER
    }
}

/// Returns the version of the ABI that the kernel offers, at most the newest known one; zero if Landlock is
/// not built in or disabled at boot.
pub fn version() -> u32 {
    // SAFETY: with this flag the kernel reads no memory and returns a number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<Handled>(),
            0_usize,
            CREATE_VERSION,
        )
    };
    u32::try_from(result).unwrap_or(0).min(NEWEST_KNOWN)
}

/// The kernel's `landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// A ruleset, which any number of processes can restrict themselves with.
#[derive(Debug)]
pub(crate) struct Ruleset(OwnedFd);

impl Ruleset {
    /// Creates the ruleset. Paths are opened now, without following links; a missing one is an error.
    pub(crate) fn new(handled: Handled, rules: &[Rule]) -> Result<Self, SetupError> {
        let ruleset = Self::create(handled).during(SetupStep::Landlock)?;
        for rule in rules {
            ruleset.allow(handled, rule).during_with(SetupStep::Landlock, &rule.path)?;
        }
        Ok(ruleset)
    }

    fn create(handled: Handled) -> io::Result<Self> {
        // An older kernel knows a shorter structure and takes a longer one whose rest is zero.
        let length = size_of::<Handled>();
        // SAFETY: the pointer is valid for reading `length` bytes during the call.
        let result = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, length, 0_u32)
        };
        match i32::try_from(result) {
            Ok(descriptor) if descriptor >= 0 => {
                // SAFETY: the kernel just made this descriptor for this call; nothing else owns it.
                Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn allow(&self, handled: Handled, rule: &Rule) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let parent = openat2(CWD, &rule.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let kind = FileType::from_raw_mode(fstat(&parent)?.st_mode);
        let possible = if kind == FileType::Directory { u64::MAX } else { file::ON_FILES };
        let allowed = handled.of(rule.access) & possible;
        if allowed == 0 {
            return Ok(());
        }
        let beneath = PathBeneath { allowed, parent: parent.as_fd().as_raw_fd() };
        // SAFETY: the pointer is valid for reading the structure that this kind of rule takes, and
        // both descriptors are open during the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.0.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const beneath,
                0_u32,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Restricts the calling process for good. It must have set `no_new_privs`.
    pub(crate) fn restrict(&self) -> io::Result<()> {
        // SAFETY: the call takes a descriptor that is open and no memory.
        let result =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.as_raw_fd(), 0_u32) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_follow_the_version() {
        for (abi, expected) in [
            (0, Handled { files: 0, tcp: 0, scopes: 0 }),
            (1, Handled { files: 0x1fff, tcp: 0, scopes: 0 }),
            (2, Handled { files: 0x3fff, tcp: 0, scopes: 0 }),
            (3, Handled { files: 0x7fff, tcp: 0, scopes: 0 }),
            (4, Handled { files: 0x7fff, tcp: 3, scopes: 0 }),
            (5, Handled { files: 0xffff, tcp: 3, scopes: 0 }),
            (6, Handled { files: 0xffff, tcp: 3, scopes: 3 }),
            (7, Handled { files: 0xffff, tcp: 3, scopes: 3 }),
        ] {
            assert_eq!(Handled::everything(abi, true), expected, "version {abi}");
        }
    }

    #[test]
    fn no_rule_lets_a_command_create_devices() {
        let handled = Handled::everything(7, true);
        for access in [FileAccess::Read, FileAccess::Change, FileAccess::Device] {
            assert_eq!(handled.of(access) & file::NEVER, 0);
        }
        assert_eq!(handled.files & file::NEVER, file::NEVER);
    }
}
