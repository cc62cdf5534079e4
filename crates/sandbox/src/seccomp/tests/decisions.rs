//! What the standard filter decides, call by call.

use carrel_domain::{Network, Tier};

use super::interpreter::{Attempt, run};
use super::{ALLOW, EXPLAIN, HIGH, all_standard, check, decide, refuse};
use crate::seccomp::SeccompFilter;
use crate::seccomp::program::Reporting;
use crate::seccomp::syscall::Syscall;

#[test]
fn another_architecture_is_the_end_of_the_process() {
    let program =
        SeccompFilter::standard(Tier::Full, Network::None).assemble(Reporting::Supervisor);
    let i386 = Attempt { audit: 0x4000_0003, number: 0, args: [0; 6] };
    assert_eq!(run(&program, &i386), libc::SECCOMP_RET_KILL_PROCESS);
}

#[test]
fn unreviewed_call_numbers_do_not_exist() {
    for (architecture, filter) in all_standard() {
        let program = filter.assemble_for(architecture, Reporting::Supervisor);
        let at = |number| run(&program, &Attempt::new(architecture, number, &[]));
        for number in [470, 512, 0x4000_0000, 0x4000_0029, u32::MAX] {
            assert_eq!(at(number), refuse(libc::ENOSYS), "{number:#x}");
        }
        assert_eq!(at(469), EXPLAIN);
        assert_eq!(at(468), ALLOW);
    }
}

#[test]
fn new_namespaces_are_refused_and_new_threads_are_not() {
    let thread = 0x003d_0f00;
    let fork = 0x0120_0011;
    check(
        &SeccompFilter::standard(Tier::Full, Network::Full),
        &[
            (Syscall::Clone, &[thread], ALLOW),
            (Syscall::Clone, &[fork], ALLOW),
            // The exit signal may have the bit that means a time namespace elsewhere.
            (Syscall::Clone, &[0x80 | fork], ALLOW),
            (Syscall::Clone, &[HIGH | thread], ALLOW),
            (Syscall::Clone, &[0x1000_0011], EXPLAIN),
            (Syscall::Clone, &[HIGH | 0x4000_0011], EXPLAIN),
            (Syscall::Clone, &[0x2_0000], EXPLAIN),
            (Syscall::Clone, &[0x8011], EXPLAIN),
            (Syscall::Clone3, &[], refuse(libc::ENOSYS)),
            (Syscall::Unshare, &[0x400], ALLOW),
            (Syscall::Unshare, &[0x80], EXPLAIN),
            (Syscall::Unshare, &[0x1000_0000], EXPLAIN),
            (Syscall::Unshare, &[HIGH], EXPLAIN),
        ],
    );
}

#[test]
fn bits_that_the_kernel_drops_change_nothing() {
    check(
        &SeccompFilter::standard(Tier::Full, Network::None),
        &[
            (Syscall::Ioctl, &[0, 0x5412], EXPLAIN),
            (Syscall::Ioctl, &[0, HIGH | 0x5412], EXPLAIN),
            (Syscall::Ioctl, &[HIGH, HIGH | 0x541c], EXPLAIN),
            (Syscall::Ioctl, &[0x5412, 0x5413], ALLOW),
            (Syscall::Ioctl, &[0, 0x4030_5828], refuse(libc::EOPNOTSUPP)),
            (Syscall::Socket, &[HIGH | 2, 1, 0], EXPLAIN),
            (Syscall::Socket, &[HIGH | 1, 1, 0], ALLOW),
            (Syscall::Personality, &[HIGH | 0x4_0000], ALLOW),
            (Syscall::Personality, &[HIGH | 0x40_0000], EXPLAIN),
            (Syscall::Personality, &[0xffff_ffff], ALLOW),
            (Syscall::Seccomp, &[1, HIGH | 8], EXPLAIN),
            (Syscall::Seccomp, &[1, 1], ALLOW),
        ],
    );
}

#[test]
fn modes_that_lend_an_identity_are_refused() {
    let (create, temporary) = (0o101, 0o2020_0002);
    check(
        &SeccompFilter::standard(Tier::Full, Network::None),
        &[
            (Syscall::Chmod, &[0, 0o4755], EXPLAIN),
            (Syscall::Chmod, &[0, 0o1777], ALLOW),
            (Syscall::Fchmod, &[3, 0o2755], EXPLAIN),
            (Syscall::Fchmodat, &[0, 0, HIGH | 0o6755], EXPLAIN),
            // The kernel takes 16 bits of a mode.
            (Syscall::Fchmodat2, &[0, 0, 0xf_0000 | 0o4755], EXPLAIN),
            (Syscall::Fchmodat2, &[0, 0, 0o755], ALLOW),
            (Syscall::Openat, &[0, 0, create, 0o4755], EXPLAIN),
            (Syscall::Openat, &[0, 0, temporary, 0o2755], EXPLAIN),
            (Syscall::Openat, &[0, 0, create, 0o666], ALLOW),
            // Without creation the mode is not read and can be anything.
            (Syscall::Openat, &[0, 0, 0, 0o7777], ALLOW),
            (Syscall::Open, &[0, create, 0o4755], EXPLAIN),
            (Syscall::Creat, &[0, 0o4755], EXPLAIN),
            (Syscall::Mknodat, &[0, 0, 0o2_0666], EXPLAIN),
            (Syscall::Mknodat, &[0, 0, HIGH | 0o6_0666], EXPLAIN),
            (Syscall::Mknodat, &[0, 0, 0o10_4755], EXPLAIN),
            (Syscall::Mknodat, &[0, 0, 0o1_0666], ALLOW),
            (Syscall::Mknod, &[0, 0o14_0666], ALLOW),
        ],
    );
}

#[test]
fn sockets_follow_the_network() {
    let (inet, inet6, unix, netlink) = (2, 10, 1, 16);
    let (stream, raw, packet, close_on_exec) = (1, 3, 10, 0o200_0000);
    check(
        &SeccompFilter::standard(Tier::Full, Network::None),
        &[
            (Syscall::Socket, &[unix, stream], ALLOW),
            (Syscall::Socket, &[inet, stream], EXPLAIN),
            (Syscall::Socket, &[inet6, stream], EXPLAIN),
            (Syscall::Socket, &[netlink, raw | close_on_exec, 0], ALLOW),
            (Syscall::Socket, &[netlink, raw, 15], EXPLAIN),
        ],
    );
    for filter in [
        SeccompFilter::standard(Tier::Full, Network::Loopback),
        SeccompFilter::standard(Tier::Full, Network::Full),
        SeccompFilter::standard(Tier::Landlock, Network::Full),
    ] {
        check(
            &filter,
            &[
                (Syscall::Socket, &[inet, stream | close_on_exec, 6], ALLOW),
                (Syscall::Socket, &[inet6, 2, 17], ALLOW),
                (Syscall::Socket, &[inet, raw | close_on_exec, 1], EXPLAIN),
                (Syscall::Socket, &[inet, packet], EXPLAIN),
                (Syscall::Socket, &[inet, HIGH | raw], EXPLAIN),
                (Syscall::Socket, &[inet, stream, 262], refuse(libc::EPROTONOSUPPORT)),
                (Syscall::Socket, &[17, raw], EXPLAIN),
                (Syscall::Socket, &[38, 5], EXPLAIN),
                (Syscall::Socket, &[40, stream], EXPLAIN),
                (Syscall::Socket, &[netlink, raw, 0], ALLOW),
                (Syscall::Socketpair, &[unix, 2], ALLOW),
                (Syscall::Socketpair, &[30, stream], EXPLAIN),
            ],
        );
    }
}

#[test]
fn without_a_namespace_no_network_means_no_sockets() {
    for network in [Network::None, Network::Loopback] {
        check(
            &SeccompFilter::standard(Tier::Landlock, network),
            &[
                (Syscall::Socket, &[1, 1], EXPLAIN),
                (Syscall::Socket, &[2, 1], EXPLAIN),
                (Syscall::Socket, &[16, 3], EXPLAIN),
                (Syscall::Socketpair, &[1, 1 | 0o200_0000], ALLOW),
                (Syscall::Socketpair, &[1, 5], ALLOW),
                (Syscall::Socketpair, &[1, 2], EXPLAIN),
                (Syscall::Socketpair, &[1, 3], EXPLAIN),
            ],
        );
    }
    let prlimit = |tier, pid| {
        decide(&SeccompFilter::standard(tier, Network::None), Syscall::Prlimit64, &[pid])
    };
    assert_eq!(prlimit(Tier::Landlock, 0), ALLOW);
    assert_eq!(prlimit(Tier::Landlock, HIGH), ALLOW);
    assert_eq!(prlimit(Tier::Landlock, 1), EXPLAIN);
    assert_eq!(prlimit(Tier::Full, 1), EXPLAIN);
}
