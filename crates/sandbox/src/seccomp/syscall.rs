//! The system calls that a filter can name, with their numbers on each architecture.

use serde::{Deserialize, Serialize};

/// An instruction set whose system call numbers are listed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "a build is for one; tests look at both"))]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    #[cfg(target_arch = "x86_64")]
    pub(super) const CURRENT: Self = Self::X86_64;
    #[cfg(target_arch = "aarch64")]
    pub(super) const CURRENT: Self = Self::Aarch64;

    /// Returns the `AUDIT_ARCH_…` value that the kernel passes to a filter: the number of the ELF
    /// machine, and two bits for 64-bit and little-endian.
    pub(super) const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

macro_rules! number {
    (-) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

macro_rules! calls {
    ($($call:ident $name:literal $x86_64:tt $aarch64:tt,)+) => {
        /// A system call, by its name in the kernel.
        ///
        /// An enum instead of a string, because a misspelt name would be skipped silently, like a call
        /// that an architecture does not have.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Syscall {
            $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $call,)+
        }

        impl Syscall {
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$call),+];

            /// Returns the name, as manual pages spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$call => $name,)+
                }
            }

            /// Returns the number, or `None` on an architecture that does not have the call.
            pub(super) const fn number(self, architecture: Architecture) -> Option<u32> {
                let (x86_64, aarch64) = match self {
                    $(Self::$call => (number!($x86_64), number!($aarch64)),)+
                };
                match architecture {
                    Architecture::X86_64 => x86_64,
                    Architecture::Aarch64 => aarch64,
                }
            }
        }
    };
}

// The name, then the numbers on x86_64 and on aarch64.
calls! {
    Acct "acct" 163 89,
    AddKey "add_key" 248 217,
    Adjtimex "adjtimex" 159 171,
    Bpf "bpf" 321 280,
    Chmod "chmod" 90 -,
    Chroot "chroot" 161 51,
    ClockAdjtime "clock_adjtime" 305 266,
    ClockSettime "clock_settime" 227 112,
    Clone "clone" 56 220,
    Clone3 "clone3" 435 435,
    Creat "creat" 85 -,
    CreateModule "create_module" 174 -,
    DeleteModule "delete_module" 176 106,
    Fallocate "fallocate" 285 47,
    FanotifyInit "fanotify_init" 300 262,
    Fchmod "fchmod" 91 52,
    Fchmodat "fchmodat" 268 53,
    Fchmodat2 "fchmodat2" 452 452,
    Fcntl "fcntl" 72 25,
    FileSetattr "file_setattr" 469 469,
    FinitModule "finit_module" 313 273,
    Fsconfig "fsconfig" 431 431,
    Fsmount "fsmount" 432 432,
    Fsopen "fsopen" 430 430,
    Fspick "fspick" 433 433,
    InitModule "init_module" 175 105,
    IoSetup "io_setup" 206 0,
    IoUringEnter "io_uring_enter" 426 426,
    IoUringRegister "io_uring_register" 427 427,
    IoUringSetup "io_uring_setup" 425 425,
    Ioctl "ioctl" 16 29,
    Ioperm "ioperm" 173 -,
    Iopl "iopl" 172 -,
    IoprioSet "ioprio_set" 251 30,
    Kcmp "kcmp" 312 272,
    KexecFileLoad "kexec_file_load" 320 294,
    KexecLoad "kexec_load" 246 104,
    Keyctl "keyctl" 250 219,
    LookupDcookie "lookup_dcookie" 212 18,
    MemfdSecret "memfd_secret" 447 447,
    Mknod "mknod" 133 -,
    Mknodat "mknodat" 259 33,
    ModifyLdt "modify_ldt" 154 -,
    Mount "mount" 165 40,
    MountSetattr "mount_setattr" 442 442,
    MoveMount "move_mount" 429 429,
    MqOpen "mq_open" 240 180,
    Msgget "msgget" 68 186,
    Nfsservctl "nfsservctl" 180 42,
    Open "open" 2 -,
    OpenByHandleAt "open_by_handle_at" 304 265,
    OpenTree "open_tree" 428 428,
    OpenTreeAttr "open_tree_attr" 467 467,
    Openat "openat" 257 56,
    Openat2 "openat2" 437 437,
    PerfEventOpen "perf_event_open" 298 241,
    Personality "personality" 135 92,
    PidfdGetfd "pidfd_getfd" 438 438,
    PivotRoot "pivot_root" 155 41,
    Prlimit64 "prlimit64" 302 261,
    ProcessVmReadv "process_vm_readv" 310 270,
    ProcessVmWritev "process_vm_writev" 311 271,
    Ptrace "ptrace" 101 117,
    Quotactl "quotactl" 179 60,
    QuotactlFd "quotactl_fd" 443 443,
    Reboot "reboot" 169 142,
    Renameat2 "renameat2" 316 276,
    RequestKey "request_key" 249 218,
    SchedSetaffinity "sched_setaffinity" 203 122,
    SchedSetattr "sched_setattr" 314 274,
    SchedSetparam "sched_setparam" 142 118,
    SchedSetscheduler "sched_setscheduler" 144 119,
    Seccomp "seccomp" 317 277,
    Semget "semget" 64 190,
    Setdomainname "setdomainname" 171 162,
    Sethostname "sethostname" 170 161,
    Setns "setns" 308 268,
    Setpriority "setpriority" 141 140,
    Settimeofday "settimeofday" 164 170,
    Shmget "shmget" 29 194,
    Socket "socket" 41 198,
    Socketpair "socketpair" 53 199,
    Swapoff "swapoff" 168 225,
    Swapon "swapon" 167 224,
    Syslog "syslog" 103 116,
    Umount2 "umount2" 166 39,
    Unshare "unshare" 272 97,
    Uselib "uselib" 134 -,
    Userfaultfd "userfaultfd" 323 282,
    Vhangup "vhangup" 153 58,
}
