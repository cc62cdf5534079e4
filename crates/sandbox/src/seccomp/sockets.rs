//! Rules about sockets: the families, types and protocols that commands may open.
//!
//! A filter cannot see addresses, so it decides about kinds of sockets only. The peers that an open socket
//! can reach are limited by the network namespace or by Landlock.

use carrel_domain::{Network, Tier};

use super::SyscallRule;
use super::action::Errno::{Eacces, Eafnosupport, Eperm, Eprotonosupport};
use super::action::SeccompAction::{Deny, Notify};
use super::condition::Argument::{First, Second, Third};
use super::condition::Condition;
use super::syscall::Syscall;

pub(super) const AF_UNIX: u64 = 1;
pub(super) const AF_INET: u64 = 2;
pub(super) const AF_INET6: u64 = 10;
pub(super) const AF_NETLINK: u64 = 16;

/// The bits of a socket type without the flags for non-blocking and close-on-exec.
pub(super) const SOCKET_TYPE: u64 = 0xf;
pub(super) const SOCK_STREAM: u64 = 1;
pub(super) const SOCK_DGRAM: u64 = 2;
pub(super) const SOCK_SEQPACKET: u64 = 5;

const NETLINK_ROUTE: u64 = 0;

/// The default of a type, ICMP (for `ping` without privilege), TCP, UDP and `ICMPv6`.
const PROTOCOLS: &[u64] = &[0, 1, 6, 17, 58];

const NO_NETWORK: &str = "The command has no network.";

#[derive(Clone, Copy, Debug)]
enum SocketAccess {
    /// Pairs that are connected to each other.
    Pairs,
    /// Also named sockets of the local machine, and the list of interfaces.
    Local,
    /// Also the internet families.
    Internet,
}

pub(super) fn rules(tier: Tier, network: Network) -> Vec<SyscallRule> {
    let mut rules = match access(tier, network) {
        SocketAccess::Pairs => no_sockets(),
        SocketAccess::Local => [no_internet(), families()].concat(),
        SocketAccess::Internet => [plain_internet(), families()].concat(),
    };
    rules.push(SyscallRule::new(
        Syscall::Socketpair,
        vec![Condition::none_of(First, &[AF_UNIX])],
        Notify(Eafnosupport),
        "Pairs of other families are where the kernel is weakest.",
    ));
    rules
}

fn access(tier: Tier, network: Network) -> SocketAccess {
    match (tier, network) {
        // A private loopback needs a network namespace, which this tier does not have.
        (Tier::Landlock, Network::None | Network::Loopback) => SocketAccess::Pairs,
        (Tier::Full, Network::None) => SocketAccess::Local,
        (Tier::Full, Network::Loopback) | (_, Network::Full) => SocketAccess::Internet,
    }
}

/// Denies every socket that could name a peer. A datagram pair is one: each end can send to any address;
/// and the kernel treats a raw pair of the local family as a datagram pair.
fn no_sockets() -> Vec<SyscallRule> {
    let connected = [SOCK_STREAM, SOCK_SEQPACKET];
    vec![
        SyscallRule::new(
            Syscall::Socket,
            vec![],
            Notify(Eacces),
            "The command has no network, and only the lack of sockets keeps it from local services.",
        ),
        SyscallRule::new(
            Syscall::Socketpair,
            vec![Condition::none_of(Second, &connected).under(SOCKET_TYPE)],
            Notify(Eacces),
            "A datagram pair can send to any local service; the other types cannot.",
        ),
    ]
}

fn no_internet() -> Vec<SyscallRule> {
    vec![SyscallRule::new(Syscall::Socket, vec![internet()], Notify(Eacces), NO_NETWORK)]
}

fn plain_internet() -> Vec<SyscallRule> {
    let cooked = [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET];
    vec![
        SyscallRule::new(
            Syscall::Socket,
            vec![internet(), Condition::none_of(Second, &cooked).under(SOCKET_TYPE)],
            Notify(Eperm),
            "Raw packets can pretend to come from anyone.",
        ),
        SyscallRule::new(
            Syscall::Socket,
            vec![internet(), Condition::none_of(Third, PROTOCOLS)],
            Deny(Eprotonosupport),
            "Landlock's rules for TCP do not cover its variants; programs fall back to TCP.",
        ),
    ]
}

fn internet() -> Condition {
    Condition::one_of(First, &[AF_INET, AF_INET6])
}

/// Denies address families that commands do not need.
fn families() -> Vec<SyscallRule> {
    vec![
        SyscallRule::new(
            Syscall::Socket,
            vec![Condition::none_of(First, &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK])],
            Notify(Eafnosupport),
            "Rarely used families are where the kernel is weakest, and some leave the machine.",
        ),
        SyscallRule::new(
            Syscall::Socket,
            vec![
                Condition::one_of(First, &[AF_NETLINK]),
                Condition::none_of(Third, &[NETLINK_ROUTE]),
            ],
            Notify(Eprotonosupport),
            "Of the kernel's own protocols only the one that lists interfaces is open.",
        ),
    ]
}
