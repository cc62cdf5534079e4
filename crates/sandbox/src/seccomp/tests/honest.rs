//! What honest programs need.

use super::interpreter::{Attempt, run};
use super::{ALLOW, NETWORKS, TIERS};
use crate::seccomp::SeccompFilter;
use crate::seccomp::program::Reporting;
use crate::seccomp::syscall::Architecture;

/// Calls that compilers, interpreters, databases and shells make.
const HONEST: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_process_madvise,
    libc::SYS_brk,
    libc::SYS_mlock,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_move_pages,
    libc::SYS_memfd_create,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_clone,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_exit_group,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_timerfd_create,
    libc::SYS_signalfd4,
    libc::SYS_pipe2,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_ioctl,
    libc::SYS_getdents64,
    libc::SYS_getrandom,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_setpriority,
    libc::SYS_setsid,
    libc::SYS_setuid,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_fsync,
    libc::SYS_sync_file_range,
    libc::SYS_ftruncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_umask,
    libc::SYS_setxattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_seccomp,
    libc::SYS_personality,
    libc::SYS_unshare,
];

#[test]
fn calls_that_honest_programs_make_are_allowed() {
    // Both the type and the family of a pair have to be something; to the others it means nothing.
    let args = [1, 1];
    for network in NETWORKS {
        for tier in TIERS {
            let program = SeccompFilter::standard(tier, network).assemble(Reporting::Supervisor);
            for number in HONEST {
                let plain = [
                    libc::SYS_prlimit64,
                    libc::SYS_personality,
                    libc::SYS_unshare,
                    libc::SYS_sched_setaffinity,
                    libc::SYS_sched_setscheduler,
                    libc::SYS_setpriority,
                ];
                let args = if plain.contains(number) { [0, 0] } else { args };
                let number = u32::try_from(*number).unwrap();
                let attempt = Attempt::new(Architecture::CURRENT, number, &args);
                assert_eq!(run(&program, &attempt), ALLOW, "{number} for {tier:?} {network:?}");
            }
        }
    }
}
