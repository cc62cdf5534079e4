//! The standard filter, which every command gets.
//!
//! It denies calls that reach beyond the command: namespaces and mounts, other processes, keyrings, the
//! kernel and the machine, and interfaces through which a call would escape the filter (`clone3`,
//! `openat2` and `io_uring` keep their arguments in memory). Every rule has its reason; a denial repeats
//! it to the reader of the result.

use carrel_domain::{Network, Tier};

use super::action::Errno::{Enosys, Eopnotsupp, Eperm};
use super::action::SeccompAction::{self, Deny, Notify};
use super::condition::Argument::{First, Second};
use super::condition::{Condition, Test, Width};
use super::syscall::Syscall;
use super::{SeccompFilter, SyscallRule, file_modes, sockets};

/// Calls that are denied for all arguments, with a common reason.
struct Row {
    calls: &'static [Syscall],
    action: SeccompAction,
    reason: &'static str,
}

const ALWAYS: &[Row] = &[
    Row {
        calls: &[Syscall::Setns],
        action: Notify(Eperm),
        reason: "A command stays in the namespaces that it was given.",
    },
    Row {
        calls: &[
            Syscall::Mount,
            Syscall::Umount2,
            Syscall::MountSetattr,
            Syscall::MoveMount,
            Syscall::OpenTree,
            Syscall::OpenTreeAttr,
            Syscall::Fsopen,
            Syscall::Fsconfig,
            Syscall::Fsmount,
            Syscall::Fspick,
            Syscall::PivotRoot,
            Syscall::Chroot,
        ],
        action: Notify(Eperm),
        reason: "The tree of files that a command sees is made before it starts and stays so.",
    },
    Row {
        calls: &[
            Syscall::Ptrace,
            Syscall::ProcessVmReadv,
            Syscall::ProcessVmWritev,
            Syscall::Kcmp,
            Syscall::PidfdGetfd,
        ],
        action: Notify(Eperm),
        reason: "A process may not look into another one or take what it has open.",
    },
    Row {
        calls: &[Syscall::Keyctl, Syscall::AddKey, Syscall::RequestKey],
        action: Notify(Eperm),
        reason: "Keyrings belong to the user, not to the workspace, and can hold credentials.",
    },
    Row {
        calls: &[Syscall::Bpf, Syscall::PerfEventOpen, Syscall::Userfaultfd],
        action: Notify(Eperm),
        reason: "Much of the kernel stands behind this call, and building software needs none.",
    },
    Row {
        calls: &[Syscall::FanotifyInit],
        action: Notify(Eperm),
        reason: "It watches whole file systems, including hidden paths; inotify is allowed.",
    },
    Row {
        calls: &[Syscall::OpenByHandleAt],
        action: Notify(Eperm),
        reason: "It opens a file without resolving its path, and so bypasses every rule about paths.",
    },
    Row {
        calls: &[
            Syscall::KexecLoad,
            Syscall::KexecFileLoad,
            Syscall::InitModule,
            Syscall::FinitModule,
            Syscall::DeleteModule,
            Syscall::CreateModule,
        ],
        action: Notify(Eperm),
        reason: "The running kernel belongs to the operator of the machine.",
    },
    Row {
        calls: &[
            Syscall::Reboot,
            Syscall::Swapon,
            Syscall::Swapoff,
            Syscall::Acct,
            Syscall::Quotactl,
            Syscall::QuotactlFd,
            Syscall::Nfsservctl,
            Syscall::Iopl,
            Syscall::Ioperm,
            Syscall::Vhangup,
            Syscall::Syslog,
            Syscall::LookupDcookie,
        ],
        action: Notify(Eperm),
        reason: "The machine belongs to its operator.",
    },
    Row {
        calls: &[
            Syscall::Settimeofday,
            Syscall::ClockSettime,
            Syscall::ClockAdjtime,
            Syscall::Adjtimex,
        ],
        action: Notify(Eperm),
        reason: "The clock is shared with everything else on the machine.",
    },
    Row {
        calls: &[Syscall::Sethostname, Syscall::Setdomainname],
        action: Notify(Eperm),
        reason: "The host name is set before a command starts and stays so.",
    },
    Row {
        calls: &[Syscall::ModifyLdt, Syscall::Uselib],
        action: Notify(Enosys),
        reason: "A remnant that emulators of old systems use; kernels can be built without it.",
    },
    Row { calls: &[Syscall::FileSetattr], action: Notify(Eperm), reason: INODE_FLAGS },
    Row {
        calls: &[Syscall::Clone3],
        action: Deny(Enosys),
        reason: "Its flags are in memory, out of sight; C libraries fall back to clone.",
    },
    Row {
        calls: &[Syscall::Openat2],
        action: Deny(Enosys),
        reason: "The mode of a file that it makes is in memory, out of sight, and may lend its owner; programs fall back to openat.",
    },
    Row {
        calls: &[Syscall::IoUringSetup, Syscall::IoUringEnter, Syscall::IoUringRegister],
        action: Deny(Enosys),
        reason: "It makes calls that no filter sees; programs fall back to plain ones.",
    },
    Row {
        calls: &[Syscall::IoSetup],
        action: Deny(Enosys),
        reason: "What it takes is short for the whole machine; programs fall back to plain calls.",
    },
    Row {
        calls: &[Syscall::MemfdSecret],
        action: Deny(Enosys),
        reason: "Its memory cannot be swapped or sampled; programs fall back to plain memory.",
    },
    Row { calls: &[Syscall::Fallocate], action: Deny(Eopnotsupp), reason: ALLOCATION },
];

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
        let mut rules: Vec<SyscallRule> = ALWAYS.iter().flat_map(Row::rules).collect();
        rules.extend(processes(tier));
        rules.extend(controls());
        rules.extend(file_modes::rules());
        rules.extend(sockets::rules(tier, network));
        Self { rules, newest: Syscall::FileSetattr }
    }
}

impl Row {
    fn rules(&self) -> impl Iterator<Item = SyscallRule> {
        self.calls.iter().map(|call| SyscallRule::new(*call, vec![], self.action, self.reason))
    }
}

impl SyscallRule {
    pub(super) fn new(
        syscall: Syscall,
        conditions: Vec<Condition>,
        action: SeccompAction,
        reason: &'static str,
    ) -> Self {
        Self { syscall, conditions, action, reason: reason.into() }
    }

    /// A rule that denies with `EPERM` and reports, under one condition.
    fn reported(syscall: Syscall, condition: Condition, reason: &'static str) -> Self {
        Self::new(syscall, vec![condition], Notify(Eperm), reason)
    }
}

/// Denies ways to create or change processes that reach beyond the command.
fn processes(tier: Tier) -> Vec<SyscallRule> {
    let mut rules = vec![
        SyscallRule::reported(
            Syscall::Clone,
            Condition::any_bit(First, NEW_NAMESPACE),
            "A command stays in the namespaces that it was given.",
        ),
        SyscallRule::reported(
            Syscall::Clone,
            Condition::any_bit(First, CLONE_PARENT),
            "The process would be a child of Carrel's own, which does not expect it.",
        ),
        SyscallRule::reported(
            Syscall::Unshare,
            Condition {
                argument: First,
                width: Width::Full64,
                test: Test::AnyBit(!UNSHARE_HARMLESS),
            },
            "A command stays in the namespaces that it was given.",
        ),
        SyscallRule::reported(
            Syscall::Personality,
            Condition::none_of(First, PERSONALITIES),
            "Other personalities weaken how memory is protected.",
        ),
        SyscallRule::reported(
            Syscall::Seccomp,
            Condition::any_bit(Second, SECCOMP_FILTER_FLAG_NEW_LISTENER),
            "Its listener would receive calls before Carrel's; filters without one are allowed.",
        ),
    ];
    rules.push(SyscallRule::reported(
        Syscall::Fcntl,
        Condition::one_of(Second, &[F_SETLEASE]),
        "It blocks every process that opens the file, also outside the sandbox.",
    ));
    rules.push(SyscallRule::reported(
        Syscall::Prlimit64,
        Condition::none_of(First, &[0]),
        "It could change the limits of Carrel's own processes; those of the caller are open.",
    ));
    match tier {
        Tier::Full => {}
        Tier::Landlock => rules.extend(shared_with_the_user()),
    }
    rules
}

/// Denies calls that reach every process of the user if there are no namespaces: neither Landlock nor
/// the kernel's ordinary permission checks prevent them.
fn shared_with_the_user() -> Vec<SyscallRule> {
    let own = "It could slow down or hold up any process of the user; the caller's own, named as zero, is open.";
    let left = "It outlives the command and is shared with every process of the user.";
    let scheduling = [
        Syscall::SchedSetparam,
        Syscall::SchedSetscheduler,
        Syscall::SchedSetaffinity,
        Syscall::SchedSetattr,
    ];
    let other = |call, kind| {
        let conditions = vec![Condition::one_of(First, &[kind]), Condition::none_of(Second, &[0])];
        SyscallRule::new(call, conditions, Notify(Eperm), own)
    };
    let named =
        scheduling.map(|call| SyscallRule::reported(call, Condition::none_of(First, &[0]), own));
    let priorities = [
        SyscallRule::reported(
            Syscall::Setpriority,
            Condition::none_of(First, &[PRIO_PROCESS]),
            own,
        ),
        other(Syscall::Setpriority, PRIO_PROCESS),
        SyscallRule::reported(
            Syscall::IoprioSet,
            Condition::none_of(First, &[IOPRIO_WHO_PROCESS]),
            own,
        ),
        other(Syscall::IoprioSet, IOPRIO_WHO_PROCESS),
    ];
    let objects = [Syscall::Shmget, Syscall::Semget, Syscall::Msgget, Syscall::MqOpen];
    let objects = objects.map(|call| SyscallRule::new(call, vec![], Notify(Eperm), left));
    named.into_iter().chain(priorities).chain(objects).collect()
}

/// Denies `ioctl` commands that act on more than the file they are made on.
fn controls() -> Vec<SyscallRule> {
    let command = |commands: &[u64]| Condition::one_of(Second, commands);
    vec![
        SyscallRule::reported(
            Syscall::Ioctl,
            command(&[TIOCSTI, TIOCLINUX]),
            "It types into the terminal, whose reader may be outside.",
        ),
        SyscallRule::reported(
            Syscall::Ioctl,
            command(&[TIOCSETD]),
            "It loads rarely used parts of the kernel through a terminal.",
        ),
        SyscallRule::reported(
            Syscall::Ioctl,
            command(&[FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR]),
            INODE_FLAGS,
        ),
        SyscallRule::new(
            Syscall::Ioctl,
            vec![command(&[FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE])],
            Deny(Eopnotsupp),
            ALLOCATION,
        ),
    ]
}
