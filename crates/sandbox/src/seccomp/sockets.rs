//! Rules about sockets: the families, types and protocols that commands may open.
//!
//! A filter cannot see addresses, so it decides about kinds of sockets only. The peers that an open socket
//! can reach are limited by the network namespace or by Landlock.

use carrel_domain::{Network, Tier};

use super::SyscallRule;
use super::condition::Argument::{First, Second, Third};
use super::condition::Condition;
use super::rule_table::rules;
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

const INTERNET: &[u64] = &[AF_INET, AF_INET6];
const NETLINK_ROUTE: u64 = 0;

/// The default of a type, ICMP (for `ping` without privilege), TCP, UDP and `ICMPv6`.
const PROTOCOLS: &[u64] = &[0, 1, 6, 17, 58];

pub(super) fn rules(tier: Tier, network: Network) -> Vec<SyscallRule> {
    let mut rules = match (tier, network) {
        // A private loopback needs a network namespace, which this tier does not have.
        (Tier::Landlock, Network::None | Network::Loopback) => no_sockets(),
        (Tier::Full, Network::None) => [no_internet(), families()].concat(),
        (Tier::Full, Network::Loopback) | (_, Network::Full) => {
            [plain_internet(), families()].concat()
        }
    };
    rules.extend(rules! {
        Notify(Eafnosupport) Socketpair [none_of(First, &[AF_UNIX])]:
            "Pairs of other families are where the kernel is weakest.";
    });
    rules
}

/// Denies every socket that could name a peer. A datagram pair is one: each end can send to any address;
/// and the kernel treats a raw pair of the local family as a datagram pair.
fn no_sockets() -> Vec<SyscallRule> {
    rules! {
        Notify(Eacces) Socket:
            "The command has no network, and only the lack of sockets keeps it from local services.";
        Notify(Eacces) Socketpair [none_of(Second, &[SOCK_STREAM, SOCK_SEQPACKET]) under SOCKET_TYPE]:
            "A datagram pair can send to any local service; the other types cannot.";
    }
}

/// Allows named sockets of the local machine, and the list of interfaces.
fn no_internet() -> Vec<SyscallRule> {
    rules! { Notify(Eacces) Socket [one_of(First, INTERNET)]: "The command has no network."; }
}

fn plain_internet() -> Vec<SyscallRule> {
    let cooked = [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET];
    rules! {
        Notify(Eperm) Socket [one_of(First, INTERNET), none_of(Second, &cooked) under SOCKET_TYPE]:
            "Raw packets can pretend to come from anyone.";
        Deny(Eprotonosupport) Socket [one_of(First, INTERNET), none_of(Third, PROTOCOLS)]:
            "Landlock's rules for TCP do not cover its variants; programs fall back to TCP.";
    }
}

/// Denies address families that commands do not need.
fn families() -> Vec<SyscallRule> {
    rules! {
        Notify(Eafnosupport) Socket [none_of(First, &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK])]:
            "Rarely used families are where the kernel is weakest, and some leave the machine.";
        Notify(Eprotonosupport) Socket
            [one_of(First, &[AF_NETLINK]), none_of(Third, &[NETLINK_ROUTE])]:
            "Of the kernel's own protocols only the one that lists interfaces is open.";
    }
}
