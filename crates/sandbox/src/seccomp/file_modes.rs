//! Rules about file modes: commands cannot create devices or set-user-id and set-group-id files.
//!
//! The files of a workspace belong to the user that Carrel runs as. A set-user-id file left there would
//! give that user's rights to any user of the host who runs it, and mounts are not always `nosuid`.
//!
//! `openat2` takes the mode of a new file in memory, where no filter can look, so it gets `ENOSYS`. `mkdir`
//! and `mkdirat` need no rule: the kernel drops both bits there.

use super::SyscallRule;
use super::action::Errno::Eperm;
use super::action::SeccompAction::Notify;
use super::condition::Argument::{self, Fifth, Fourth, Second, Third};
use super::condition::Condition;
use super::syscall::Syscall;

/// `S_ISUID` and `S_ISGID`.
const SET_IDENTITY: u64 = 0o6000;
/// The file type bits of a mode.
pub(super) const FILE_TYPE: u64 = 0o17_0000;
pub(super) const CHARACTER_DEVICE: u64 = 0o2_0000;
pub(super) const BLOCK_DEVICE: u64 = 0o6_0000;
/// `O_CREAT` and the bit that only `O_TMPFILE` has. Without them the mode argument is meaningless and may
/// hold any value.
const CREATES: u64 = 0o100 | 0o2000_0000;

const CHANGES: &[(Syscall, Argument)] = &[
    (Syscall::Chmod, Second),
    (Syscall::Fchmod, Second),
    (Syscall::Fchmodat, Third),
    (Syscall::Fchmodat2, Third),
];
const NODES: &[(Syscall, Argument)] = &[(Syscall::Mknod, Second), (Syscall::Mknodat, Third)];
/// The call, the argument with its flags, the argument with its mode.
const OPENINGS: &[(Syscall, Argument, Argument)] =
    &[(Syscall::Open, Second, Third), (Syscall::Openat, Third, Fourth)];

const ON_CHANGE: &str = "Who runs such a file on the host gets its owner's or group's rights; of \
                         usual commands only chmod u+s and g+s, and git init --shared, set the bits.";
const ON_CREATION: &str = "Who runs such a file on the host gets its owner's or group's rights.";
/// A flag of `renameat2` that leaves a device file at the old path.
const RENAME_WHITEOUT: u64 = 4;

const DEVICE: &str = "A device file reaches past the file system to the machine.";

pub(super) fn rules() -> Vec<SyscallRule> {
    let devices = NODES.iter().map(|(call, mode)| refused(*call, vec![device(*mode)], DEVICE));
    let nodes = NODES.iter().map(|(call, mode)| refused(*call, vec![identity(*mode)], ON_CREATION));
    let changes =
        CHANGES.iter().map(|(call, mode)| refused(*call, vec![identity(*mode)], ON_CHANGE));
    let openings = OPENINGS.iter().map(|(call, flags, mode)| {
        refused(*call, vec![Condition::any_bit(*flags, CREATES), identity(*mode)], ON_CREATION)
    });
    let creation = refused(Syscall::Creat, vec![identity(Second)], ON_CREATION);
    let whiteout = Condition::any_bit(Fifth, RENAME_WHITEOUT);
    let whiteout = refused(Syscall::Renameat2, vec![whiteout], DEVICE);
    devices.chain(nodes).chain(changes).chain(openings).chain([creation, whiteout]).collect()
}

fn refused(syscall: Syscall, conditions: Vec<Condition>, reason: &'static str) -> SyscallRule {
    SyscallRule::new(syscall, conditions, Notify(Eperm), reason)
}

fn device(mode: Argument) -> Condition {
    Condition::one_of(mode, &[CHARACTER_DEVICE, BLOCK_DEVICE]).under(FILE_TYPE)
}

fn identity(mode: Argument) -> Condition {
    Condition::any_bit(mode, SET_IDENTITY)
}
