//! Rules about file modes: commands cannot create devices or set-user-id and set-group-id files.
//!
//! The files of a workspace belong to the user that Carrel runs as. A set-user-id file left there would
//! give that user's rights to any user of the host who runs it, and mounts are not always `nosuid`.
//!
//! `openat2` takes the mode of a new file in memory, where no filter can look, so it gets `ENOSYS`. `mkdir`
//! and `mkdirat` need no rule: the kernel drops both bits there.

use super::SyscallRule;
use super::condition::Argument::{Fifth, Fourth, Second, Third};
use super::condition::Condition;
use super::rule_table::rules;
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

const ON_CHANGE: &str = "Who runs such a file on the host gets its owner's or group's rights; of \
                         usual commands only chmod u+s and g+s, and git init --shared, set the bits.";
const ON_CREATION: &str = "Who runs such a file on the host gets its owner's or group's rights.";
/// A flag of `renameat2` that leaves a device file at the old path.
const RENAME_WHITEOUT: u64 = 4;

const DEVICES: &[u64] = &[CHARACTER_DEVICE, BLOCK_DEVICE];
const DEVICE: &str = "A device file reaches past the file system to the machine.";

pub(super) fn rules() -> Vec<SyscallRule> {
    rules! {
        Notify(Eperm) Mknod [one_of(Second, DEVICES) under FILE_TYPE]: DEVICE;
        Notify(Eperm) Mknodat [one_of(Third, DEVICES) under FILE_TYPE]: DEVICE;
        Notify(Eperm) Mknod [any_bit(Second, SET_IDENTITY)]: ON_CREATION;
        Notify(Eperm) Mknodat [any_bit(Third, SET_IDENTITY)]: ON_CREATION;
        Notify(Eperm) Chmod Fchmod [any_bit(Second, SET_IDENTITY)]: ON_CHANGE;
        Notify(Eperm) Fchmodat Fchmodat2 [any_bit(Third, SET_IDENTITY)]: ON_CHANGE;
        Notify(Eperm) Open [any_bit(Second, CREATES), any_bit(Third, SET_IDENTITY)]: ON_CREATION;
        Notify(Eperm) Openat [any_bit(Third, CREATES), any_bit(Fourth, SET_IDENTITY)]: ON_CREATION;
        Notify(Eperm) Creat [any_bit(Second, SET_IDENTITY)]: ON_CREATION;
        Notify(Eperm) Renameat2 [any_bit(Fifth, RENAME_WHITEOUT)]: DEVICE;
    }
}
