//! What the standard filter decides, call by call.

use carrel_domain::{Network, Tier};

use super::interpreter::{Attempt, run};
use super::{ALLOW, EXPLAIN, HIGH, all_standard, check, decide, refuse};
use crate::seccomp::Filter;
use crate::seccomp::call::Call;
use crate::seccomp::program::Reporting;

#[test]
fn another_architecture_is_the_end_of_the_process() {
    let program = Filter::standard(Tier::Full, Network::None).assemble(Reporting::Supervisor);
    let i386 = Attempt { audit: 0x4000_0003, number: 0, args: [0; 6] };
    assert_eq!(run(&program, &i386), libc::SECCOMP_RET_KILL_PROCESS);
}

#[test]
fn numbers_that_nobody_judged_do_not_exist() {
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
        &Filter::standard(Tier::Full, Network::Full),
        &[
            (Call::Clone, &[thread], ALLOW),
            (Call::Clone, &[fork], ALLOW),
            // The exit signal may have the bit that means a time namespace elsewhere.
            (Call::Clone, &[0x80 | fork], ALLOW),
            (Call::Clone, &[HIGH | thread], ALLOW),
            (Call::Clone, &[0x1000_0011], EXPLAIN),
            (Call::Clone, &[HIGH | 0x4000_0011], EXPLAIN),
            (Call::Clone, &[0x2_0000], EXPLAIN),
            (Call::Clone, &[0x8011], EXPLAIN),
            (Call::Clone3, &[], refuse(libc::ENOSYS)),
            (Call::Unshare, &[0x400], ALLOW),
            (Call::Unshare, &[0x80], EXPLAIN),
            (Call::Unshare, &[0x1000_0000], EXPLAIN),
            (Call::Unshare, &[HIGH], EXPLAIN),
        ],
    );
}

#[test]
fn bits_that_the_kernel_drops_change_nothing() {
    check(
        &Filter::standard(Tier::Full, Network::None),
        &[
            (Call::Ioctl, &[0, 0x5412], EXPLAIN),
            (Call::Ioctl, &[0, HIGH | 0x5412], EXPLAIN),
            (Call::Ioctl, &[HIGH, HIGH | 0x541c], EXPLAIN),
            (Call::Ioctl, &[0x5412, 0x5413], ALLOW),
            (Call::Ioctl, &[0, 0x4030_5828], refuse(libc::EOPNOTSUPP)),
            (Call::Socket, &[HIGH | 2, 1, 0], EXPLAIN),
            (Call::Socket, &[HIGH | 1, 1, 0], ALLOW),
            (Call::Personality, &[HIGH | 0x4_0000], ALLOW),
            (Call::Personality, &[HIGH | 0x40_0000], EXPLAIN),
            (Call::Personality, &[0xffff_ffff], ALLOW),
            (Call::Seccomp, &[1, HIGH | 8], EXPLAIN),
            (Call::Seccomp, &[1, 1], ALLOW),
        ],
    );
}

#[test]
fn modes_that_lend_an_identity_are_refused() {
    let (create, temporary) = (0o101, 0o2020_0002);
    check(
        &Filter::standard(Tier::Full, Network::None),
        &[
            (Call::Chmod, &[0, 0o4755], EXPLAIN),
            (Call::Chmod, &[0, 0o1777], ALLOW),
            (Call::Fchmod, &[3, 0o2755], EXPLAIN),
            (Call::Fchmodat, &[0, 0, HIGH | 0o6755], EXPLAIN),
            // The kernel takes 16 bits of a mode.
            (Call::Fchmodat2, &[0, 0, 0xf_0000 | 0o4755], EXPLAIN),
            (Call::Fchmodat2, &[0, 0, 0o755], ALLOW),
            (Call::Openat, &[0, 0, create, 0o4755], EXPLAIN),
            (Call::Openat, &[0, 0, temporary, 0o2755], EXPLAIN),
            (Call::Openat, &[0, 0, create, 0o666], ALLOW),
            // Without creation the mode is not read and can be anything.
            (Call::Openat, &[0, 0, 0, 0o7777], ALLOW),
            (Call::Open, &[0, create, 0o4755], EXPLAIN),
            (Call::Creat, &[0, 0o4755], EXPLAIN),
            (Call::Mknodat, &[0, 0, 0o2_0666], EXPLAIN),
            (Call::Mknodat, &[0, 0, HIGH | 0o6_0666], EXPLAIN),
            (Call::Mknodat, &[0, 0, 0o10_4755], EXPLAIN),
            (Call::Mknodat, &[0, 0, 0o1_0666], ALLOW),
            (Call::Mknod, &[0, 0o14_0666], ALLOW),
        ],
    );
}

#[test]
fn sockets_follow_the_network() {
    let (inet, inet6, unix, netlink) = (2, 10, 1, 16);
    let (stream, raw, packet, close_on_exec) = (1, 3, 10, 0o200_0000);
    check(
        &Filter::standard(Tier::Full, Network::None),
        &[
            (Call::Socket, &[unix, stream], ALLOW),
            (Call::Socket, &[inet, stream], EXPLAIN),
            (Call::Socket, &[inet6, stream], EXPLAIN),
            (Call::Socket, &[netlink, raw | close_on_exec, 0], ALLOW),
            (Call::Socket, &[netlink, raw, 15], EXPLAIN),
        ],
    );
    for filter in [
        Filter::standard(Tier::Full, Network::Loopback),
        Filter::standard(Tier::Full, Network::Full),
        Filter::standard(Tier::Landlock, Network::Full),
    ] {
        check(
            &filter,
            &[
                (Call::Socket, &[inet, stream | close_on_exec, 6], ALLOW),
                (Call::Socket, &[inet6, 2, 17], ALLOW),
                (Call::Socket, &[inet, raw | close_on_exec, 1], EXPLAIN),
                (Call::Socket, &[inet, packet], EXPLAIN),
                (Call::Socket, &[inet, HIGH | raw], EXPLAIN),
                (Call::Socket, &[inet, stream, 262], refuse(libc::EPROTONOSUPPORT)),
                (Call::Socket, &[17, raw], EXPLAIN),
                (Call::Socket, &[38, 5], EXPLAIN),
                (Call::Socket, &[40, stream], EXPLAIN),
                (Call::Socket, &[netlink, raw, 0], ALLOW),
                (Call::Socketpair, &[unix, 2], ALLOW),
                (Call::Socketpair, &[30, stream], EXPLAIN),
            ],
        );
    }
}

#[test]
fn without_a_namespace_no_network_means_no_sockets() {
    for network in [Network::None, Network::Loopback] {
        check(
            &Filter::standard(Tier::Landlock, network),
            &[
                (Call::Socket, &[1, 1], EXPLAIN),
                (Call::Socket, &[2, 1], EXPLAIN),
                (Call::Socket, &[16, 3], EXPLAIN),
                (Call::Socketpair, &[1, 1 | 0o200_0000], ALLOW),
                (Call::Socketpair, &[1, 5], ALLOW),
                (Call::Socketpair, &[1, 2], EXPLAIN),
                (Call::Socketpair, &[1, 3], EXPLAIN),
            ],
        );
    }
    let prlimit =
        |tier, pid| decide(&Filter::standard(tier, Network::None), Call::Prlimit64, &[pid]);
    assert_eq!(prlimit(Tier::Landlock, 0), ALLOW);
    assert_eq!(prlimit(Tier::Landlock, HIGH), ALLOW);
    assert_eq!(prlimit(Tier::Landlock, 1), EXPLAIN);
    assert_eq!(prlimit(Tier::Full, 1), EXPLAIN);
}
