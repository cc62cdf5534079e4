//! The filter that every command gets.

use carrel_domain::{Network, Tier};

use super::answer::Answer::{self, Explain, Refuse};
use super::answer::Errno::{Enosys, Eopnotsupp, Eperm};
use super::call::Call;
use super::condition::Argument::{First, Second};
use super::condition::{Condition, Test, Width};
use super::{Entry, Filter, modes, sockets};

/// Calls that are refused whatever their arguments, with the reason that they share.
struct Row {
    calls: &'static [Call],
    answer: Answer,
    reason: &'static str,
}

const ALWAYS: &[Row] = &[
    Row {
        calls: &[Call::Setns],
        answer: Explain(Eperm),
        reason: "A command stays in the namespaces that it was given.",
    },
    Row {
        calls: &[
            Call::Mount,
            Call::Umount2,
            Call::MountSetattr,
            Call::MoveMount,
            Call::OpenTree,
            Call::OpenTreeAttr,
            Call::Fsopen,
            Call::Fsconfig,
            Call::Fsmount,
            Call::Fspick,
            Call::PivotRoot,
            Call::Chroot,
        ],
        answer: Explain(Eperm),
        reason: "The tree of files that a command sees is made before it starts and stays so.",
    },
    Row {
        calls: &[
            Call::Ptrace,
            Call::ProcessVmReadv,
            Call::ProcessVmWritev,
            Call::Kcmp,
            Call::PidfdGetfd,
        ],
        answer: Explain(Eperm),
        reason: "A process may not look into another one or take what it has open.",
    },
    Row {
        calls: &[Call::Keyctl, Call::AddKey, Call::RequestKey],
        answer: Explain(Eperm),
        reason: "Keyrings belong to the user, not to the workspace, and can hold credentials.",
    },
    Row {
        calls: &[Call::Bpf, Call::PerfEventOpen, Call::Userfaultfd],
        answer: Explain(Eperm),
        reason: "Much of the kernel stands behind this call, and building software needs none.",
    },
    Row {
        calls: &[Call::FanotifyInit],
        answer: Explain(Eperm),
        reason: "It watches whole file systems, also where paths are walled off; inotify is open.",
    },
    Row {
        calls: &[Call::OpenByHandleAt],
        answer: Explain(Eperm),
        reason: "It opens a file without walking its path, past every wall that paths have.",
    },
    Row {
        calls: &[
            Call::KexecLoad,
            Call::KexecFileLoad,
            Call::InitModule,
            Call::FinitModule,
            Call::DeleteModule,
            Call::CreateModule,
        ],
        answer: Explain(Eperm),
        reason: "The running kernel belongs to the operator of the machine.",
    },
    Row {
        calls: &[
            Call::Reboot,
            Call::Swapon,
            Call::Swapoff,
            Call::Acct,
            Call::Quotactl,
            Call::QuotactlFd,
            Call::Nfsservctl,
            Call::Iopl,
            Call::Ioperm,
            Call::Vhangup,
            Call::Syslog,
            Call::LookupDcookie,
        ],
        answer: Explain(Eperm),
        reason: "The machine belongs to its operator.",
    },
    Row {
        calls: &[Call::Settimeofday, Call::ClockSettime, Call::ClockAdjtime, Call::Adjtimex],
        answer: Explain(Eperm),
        reason: "The clock is shared with everything else on the machine.",
    },
    Row {
        calls: &[Call::Sethostname, Call::Setdomainname],
        answer: Explain(Eperm),
        reason: "The host name is set before a command starts and stays so.",
    },
    Row {
        calls: &[Call::ModifyLdt, Call::Uselib],
        answer: Explain(Enosys),
        reason: "A remnant that emulators of old systems use; kernels can be built without it.",
    },
    Row { calls: &[Call::FileSetattr], answer: Explain(Eperm), reason: INODE_FLAGS },
    Row {
        calls: &[Call::Clone3],
        answer: Refuse(Enosys),
        reason: "Its flags are in memory, out of sight; C libraries fall back to clone.",
    },
    Row {
        calls: &[Call::Openat2],
        answer: Refuse(Enosys),
        reason: "The mode of a file that it makes is in memory, out of sight, and may lend its owner; programs fall back to openat.",
    },
    Row {
        calls: &[Call::IoUringSetup, Call::IoUringEnter, Call::IoUringRegister],
        answer: Refuse(Enosys),
        reason: "It makes calls that no filter sees; programs fall back to plain ones.",
    },
    Row {
        calls: &[Call::IoSetup],
        answer: Refuse(Enosys),
        reason: "What it takes is short for the whole machine; programs fall back to plain calls.",
    },
    Row {
        calls: &[Call::MemfdSecret],
        answer: Refuse(Enosys),
        reason: "Its memory cannot be swapped or sampled; programs fall back to plain memory.",
    },
    Row { calls: &[Call::Fallocate], answer: Refuse(Eopnotsupp), reason: ALLOCATION },
];

const INODE_FLAGS: &str =
    "Inode attributes can take a file out of its quota or change how names compare.";
const ALLOCATION: &str =
    "It takes space faster than a quota can be watched; posix_fallocate falls back to writing.";

/// Every flag of `clone` that makes a namespace. `CLONE_NEWTIME` is not among them: its bit belongs
/// to the exit signal there, and the kernel takes the flag from `clone3` and `unshare` only.
const NEW_NAMESPACE: u64 = 0x7e02_0000;
/// Makes the new process a child of the caller's parent.
const CLONE_PARENT: u64 = 0x8000;
/// What `unshare` may separate: `CLONE_FS`, `CLONE_FILES` and `CLONE_SYSVSEM`.
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

/// One process, by its id, as `setpriority` and `ioprio_set` say it.
const PRIO_PROCESS: u64 = 0;
const IOPRIO_WHO_PROCESS: u64 = 1;

const SECCOMP_FILTER_FLAG_NEW_LISTENER: u64 = 1 << 3;

/// `PER_LINUX` and `PER_LINUX32`, each plain, with an old version number (`UNAME26`) and with a
/// fixed address layout (`ADDR_NO_RANDOMIZE`, which debuggers set), and the question what is set.
const PERSONALITIES: &[u64] = &[0, 8, 0x2_0000, 0x2_0008, 0x4_0000, 0x4_0008, 0xffff_ffff];

impl Filter {
    /// Returns the filter for a command behind the given walls, with the given network.
    pub fn standard(tier: Tier, network: Network) -> Self {
        let mut entries: Vec<Entry> = ALWAYS.iter().flat_map(Row::entries).collect();
        entries.extend(processes(tier));
        entries.extend(controls());
        entries.extend(modes::entries());
        entries.extend(sockets::entries(tier, network));
        Self { entries, newest: Call::FileSetattr }
    }
}

impl Row {
    fn entries(&self) -> impl Iterator<Item = Entry> {
        self.calls.iter().map(|call| Entry::new(*call, vec![], self.answer, self.reason))
    }
}

impl Entry {
    pub(super) fn new(
        call: Call,
        conditions: Vec<Condition>,
        answer: Answer,
        reason: &'static str,
    ) -> Self {
        Self { call, conditions, answer, reason: reason.into() }
    }

    /// Refuses a call with `EPERM`, and says so, under one condition.
    fn explained(call: Call, condition: Condition, reason: &'static str) -> Self {
        Self::new(call, vec![condition], Explain(Eperm), reason)
    }
}

/// Refuses ways to make or change processes that reach beyond the command.
fn processes(tier: Tier) -> Vec<Entry> {
    let mut entries = vec![
        Entry::explained(
            Call::Clone,
            Condition::any_bit(First, NEW_NAMESPACE),
            "A command stays in the namespaces that it was given.",
        ),
        Entry::explained(
            Call::Clone,
            Condition::any_bit(First, CLONE_PARENT),
            "The process would be a child of Carrel's own, which does not expect it.",
        ),
        Entry::explained(
            Call::Unshare,
            Condition {
                argument: First,
                width: Width::Full64,
                test: Test::AnyBit(!UNSHARE_HARMLESS),
            },
            "A command stays in the namespaces that it was given.",
        ),
        Entry::explained(
            Call::Personality,
            Condition::none_of(First, PERSONALITIES),
            "Other personalities weaken how memory is protected.",
        ),
        Entry::explained(
            Call::Seccomp,
            Condition::any_bit(Second, SECCOMP_FILTER_FLAG_NEW_LISTENER),
            "Its listener would hear calls before Carrel's; filters without one are open.",
        ),
    ];
    entries.push(Entry::explained(
        Call::Fcntl,
        Condition::one_of(Second, &[F_SETLEASE]),
        "Whoever opens the file afterwards waits, those outside included.",
    ));
    entries.push(Entry::explained(
        Call::Prlimit64,
        Condition::none_of(First, &[0]),
        "It could change the limits of Carrel's own processes; those of the caller are open.",
    ));
    match tier {
        Tier::Full => {}
        Tier::Landlock => entries.extend(shared_with_the_user()),
    }
    entries
}

/// Refuses what reaches every process of the user where there are no namespaces: neither Landlock nor
/// the kernel's own rules stand in its way.
fn shared_with_the_user() -> Vec<Entry> {
    let own = "It could slow down or hold up any process of the user; the caller's own, named as zero, is open.";
    let left = "It outlives the command and is shared with every process of the user.";
    let scheduling =
        [Call::SchedSetparam, Call::SchedSetscheduler, Call::SchedSetaffinity, Call::SchedSetattr];
    let other = |call, kind| {
        let conditions = vec![Condition::one_of(First, &[kind]), Condition::none_of(Second, &[0])];
        Entry::new(call, conditions, Explain(Eperm), own)
    };
    let named = scheduling.map(|call| Entry::explained(call, Condition::none_of(First, &[0]), own));
    let priorities = [
        Entry::explained(Call::Setpriority, Condition::none_of(First, &[PRIO_PROCESS]), own),
        other(Call::Setpriority, PRIO_PROCESS),
        Entry::explained(Call::IoprioSet, Condition::none_of(First, &[IOPRIO_WHO_PROCESS]), own),
        other(Call::IoprioSet, IOPRIO_WHO_PROCESS),
    ];
    let objects = [Call::Shmget, Call::Semget, Call::Msgget, Call::MqOpen];
    let objects = objects.map(|call| Entry::new(call, vec![], Explain(Eperm), left));
    named.into_iter().chain(priorities).chain(objects).collect()
}

/// Refuses `ioctl` commands that act on more than the file they are made on.
fn controls() -> Vec<Entry> {
    let command = |commands: &[u64]| Condition::one_of(Second, commands);
    vec![
        Entry::explained(
            Call::Ioctl,
            command(&[TIOCSTI, TIOCLINUX]),
            "It types into the terminal, whose reader may be outside.",
        ),
        Entry::explained(
            Call::Ioctl,
            command(&[TIOCSETD]),
            "It loads rarely used parts of the kernel through a terminal.",
        ),
        Entry::explained(Call::Ioctl, command(&[FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR]), INODE_FLAGS),
        Entry::new(
            Call::Ioctl,
            vec![command(&[FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE])],
            Refuse(Eopnotsupp),
            ALLOCATION,
        ),
    ]
}
