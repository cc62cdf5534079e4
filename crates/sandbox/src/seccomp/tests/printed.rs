//! The data: how it is printed and sent.

use carrel_domain::{Network, Tier};

use super::all_standard;
use crate::seccomp::syscall::Syscall;
use crate::seccomp::{SeccompFilter, SyscallRule};

#[test]
fn every_call_that_is_listed_is_used() {
    let used: Vec<Syscall> =
        all_standard().flat_map(|(_, filter)| filter.rules).map(|rule| rule.syscall).collect();
    let unused: Vec<_> = Syscall::ALL.iter().filter(|call| !used.contains(call)).collect();
    assert_eq!(unused, Vec::<&Syscall>::new());
}

#[test]
fn the_standard_filter_for_no_network() {
    insta::assert_snapshot!(SeccompFilter::standard(Tier::Full, Network::None).to_string());
}

#[test]
fn the_sockets_of_every_other_plan() {
    let sockets = |tier, network| {
        let is_own = |rule: &&SyscallRule| {
            let common = SeccompFilter::standard(Tier::Full, Network::None);
            [Syscall::Socket, Syscall::Socketpair].contains(&rule.syscall)
                || !common.rules.contains(rule)
        };
        let filter = SeccompFilter::standard(tier, network);
        let lines: Vec<_> =
            filter.rules.iter().filter(is_own).map(SyscallRule::to_string).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!("landlock_none", sockets(Tier::Landlock, Network::None));
    insta::assert_snapshot!("full_full", sockets(Tier::Full, Network::Full));
}

#[test]
fn a_filter_survives_being_sent() {
    let filter = SeccompFilter::standard(Tier::Landlock, Network::Full);
    let sent = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<SeccompFilter>(&sent).unwrap(), filter);
    let unknown = sent.replace("\"setns\"", "\"setnss\"");
    assert!(serde_json::from_str::<SeccompFilter>(&unknown).is_err());
}
