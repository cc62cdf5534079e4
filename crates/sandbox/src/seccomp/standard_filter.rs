//! The standard filter, which every command gets.
//!
//! It denies calls that reach beyond the command: namespaces and mounts, other processes, keyrings, the
//! kernel and the machine, and interfaces through which a call would escape the filter (`clone3`,
//! `openat2` and `io_uring` keep their arguments in memory). Every rule has its reason; a denial repeats
//! it to the reader of the result.

use carrel_domain::{Network, Tier};

use super::condition::Argument::{First, Second};
use super::condition::{Condition, Width};
use super::rule_table::rules;
use super::syscall::Syscall;
use super::{SeccompFilter, SyscallRule, file_modes, sockets};

const NAMESPACES: &str = "A command stays in the namespaces that it was given.";
const INODE_FLAGS: &str =
    "Inode attributes can take a file out of its quota or change how names compare.";
const ALLOCATION: &str =
    "It takes space faster than a quota can be watched; posix_fallocate falls back to writing.";

/// Every flag of `clone` that creates a namespace. `CLONE_NEWTIME` is not among them: its bit belongs
/// to the exit signal there, and the kernel accepts the flag from `clone3` and `unshare` only.
const NEW_NAMESPACE: u64 = 0x7e02_0000;
/// Makes the new process a child of the caller's parent.
const CLONE_PARENT: u64 = 0x8000;
/// The flags of `unshare` that are allowed: `CLONE_FS`, `CLONE_FILES` and `CLONE_SYSVSEM`.
const UNSHARE_HARMLESS: u64 = 0x200 | 0x400 | 0x4_0000;

pub(super) const TIOCSTI: u64 = 0x5412;
pub(super) const TIOCLINUX: u64 = 0x541c;
pub(super) const TIOCSETD: u64 = 0x5423;
pub(super) const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
pub(super) const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
pub(super) const FS_IOC_RESVSP: u64 = 0x4030_5828;
pub(super) const FS_IOC_RESVSP64: u64 = 0x4030_582a;
pub(super) const FS_IOC_ZERO_RANGE: u64 = 0x4030_5839;

const F_SETLEASE: u64 = 1024;

/// The values of `setpriority` and `ioprio_set` for a single process.
const PRIO_PROCESS: u64 = 0;
const IOPRIO_WHO_PROCESS: u64 = 1;

const SECCOMP_FILTER_FLAG_NEW_LISTENER: u64 = 1 << 3;

/// `PER_LINUX` and `PER_LINUX32`, each plain, with an old version number (`UNAME26`) and with a
/// fixed address layout (`ADDR_NO_RANDOMIZE`, which debuggers set), and the question what is set.
const PERSONALITIES: &[u64] = &[0, 8, 0x2_0000, 0x2_0008, 0x4_0000, 0x4_0008, 0xffff_ffff];

impl SeccompFilter {
    /// Returns the filter for commands of a tier with a network.
    pub fn standard(tier: Tier, network: Network) -> Self {
        let mut rules = always();
        rules.extend(processes());
        match tier {
            Tier::Full => {}
            Tier::Landlock => rules.extend(shared_with_the_user()),
        }
        rules.extend(controls());
        rules.extend(file_modes::rules());
        rules.extend(sockets::rules(tier, network));
        Self { rules, newest: Syscall::FileSetattr }
    }
}

/// Denies calls for all arguments.
fn always() -> Vec<SyscallRule> {
    rules! {
        Notify(Eperm) Setns: NAMESPACES;
        Notify(Eperm) Mount Umount2 MountSetattr MoveMount OpenTree OpenTreeAttr Fsopen Fsconfig
            Fsmount Fspick PivotRoot Chroot:
            "The tree of files that a command sees is made before it starts and stays so.";
        Notify(Eperm) Ptrace ProcessVmReadv ProcessVmWritev Kcmp PidfdGetfd:
            "A process may not look into another one or take what it has open.";
        Notify(Eperm) Keyctl AddKey RequestKey:
            "Keyrings belong to the user, not to the workspace, and can hold credentials.";
        Notify(Eperm) Bpf PerfEventOpen Userfaultfd:
            "Much of the kernel stands behind this call, and building software needs none.";
        Notify(Eperm) FanotifyInit:
            "It watches whole file systems, including hidden paths; inotify is allowed.";
        Notify(Eperm) OpenByHandleAt:
            "It opens a file without resolving its path, and so bypasses every rule about paths.";
        Notify(Eperm) KexecLoad KexecFileLoad InitModule FinitModule DeleteModule CreateModule:
            "The running kernel belongs to the operator of the machine.";
        Notify(Eperm) Reboot Swapon Swapoff Acct Quotactl QuotactlFd Nfsservctl Iopl Ioperm Vhangup
            Syslog LookupDcookie:
            "The machine belongs to its operator.";
        Notify(Eperm) Settimeofday ClockSettime ClockAdjtime Adjtimex:
            "The clock is shared with everything else on the machine.";
        Notify(Eperm) Sethostname Setdomainname:
            "The host name is set before a command starts and stays so.";
        Notify(Enosys) ModifyLdt Uselib:
            "A remnant that emulators of old systems use; kernels can be built without it.";
        Notify(Eperm) FileSetattr: INODE_FLAGS;
        Deny(Enosys) Clone3:
            "Its flags are in memory, out of sight; C libraries fall back to clone.";
        Deny(Enosys) Openat2:
            "The mode of a file that it makes is in memory, out of sight, and may lend its owner; programs fall back to openat.";
        Deny(Enosys) IoUringSetup IoUringEnter IoUringRegister:
            "It makes calls that no filter sees; programs fall back to plain ones.";
        Deny(Enosys) IoSetup:
            "What it takes is short for the whole machine; programs fall back to plain calls.";
        Deny(Enosys) MemfdSecret:
            "Its memory cannot be swapped or sampled; programs fall back to plain memory.";
        Deny(Eopnotsupp) Fallocate: ALLOCATION;
    }
}

/// Denies ways to create or change processes that reach beyond the command.
fn processes() -> Vec<SyscallRule> {
    rules! {
        Notify(Eperm) Clone [any_bit(First, NEW_NAMESPACE)]: NAMESPACES;
        Notify(Eperm) Clone [any_bit(First, CLONE_PARENT)]:
            "The process would be a child of Carrel's own, which does not expect it.";
        Notify(Eperm) Unshare [any_bit(First, !UNSHARE_HARMLESS) of Full64]: NAMESPACES;
        Notify(Eperm) Personality [none_of(First, PERSONALITIES)]:
            "Other personalities weaken how memory is protected.";
        Notify(Eperm) Seccomp [any_bit(Second, SECCOMP_FILTER_FLAG_NEW_LISTENER)]:
            "Its listener would receive calls before Carrel's; filters without one are allowed.";
        Notify(Eperm) Fcntl [one_of(Second, &[F_SETLEASE])]:
            "It blocks every process that opens the file, also outside the sandbox.";
        Notify(Eperm) Prlimit64 [none_of(First, &[0])]:
            "It could change the limits of Carrel's own processes; those of the caller are open.";
    }
}

/// Denies calls that reach every process of the user if there are no namespaces: neither Landlock nor
/// the kernel's ordinary permission checks prevent them.
fn shared_with_the_user() -> Vec<SyscallRule> {
    let own = "It could slow down or hold up any process of the user; the caller's own, named as zero, is open.";
    rules! {
        Notify(Eperm) SchedSetparam SchedSetscheduler SchedSetaffinity SchedSetattr
            [none_of(First, &[0])]: own;
        Notify(Eperm) Setpriority [none_of(First, &[PRIO_PROCESS])]: own;
        Notify(Eperm) Setpriority [one_of(First, &[PRIO_PROCESS]), none_of(Second, &[0])]: own;
        Notify(Eperm) IoprioSet [none_of(First, &[IOPRIO_WHO_PROCESS])]: own;
        Notify(Eperm) IoprioSet [one_of(First, &[IOPRIO_WHO_PROCESS]), none_of(Second, &[0])]: own;
        Notify(Eperm) Shmget Semget Msgget MqOpen:
            "It outlives the command and is shared with every process of the user.";
    }
}

/// Denies `ioctl` commands that act on more than the file they are made on.
fn controls() -> Vec<SyscallRule> {
    rules! {
        Notify(Eperm) Ioctl [one_of(Second, &[TIOCSTI, TIOCLINUX])]:
            "It types into the terminal, whose reader may be outside.";
        Notify(Eperm) Ioctl [one_of(Second, &[TIOCSETD])]:
            "It loads rarely used parts of the kernel through a terminal.";
        Notify(Eperm) Ioctl [one_of(Second, &[FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR])]: INODE_FLAGS;
        Deny(Eopnotsupp) Ioctl [one_of(Second, &[FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE])]:
            ALLOCATION;
    }
}
