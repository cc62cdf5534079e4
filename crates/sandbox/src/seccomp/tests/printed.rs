//! The data: how it is printed and sent.

use carrel_domain::{Network, Tier};

use super::all_standard;
use crate::seccomp::call::Call;
use crate::seccomp::{Entry, Filter};

#[test]
fn every_call_that_is_listed_is_used() {
    let used: Vec<Call> =
        all_standard().flat_map(|(_, filter)| filter.entries).map(|entry| entry.call).collect();
    let unused: Vec<_> = Call::ALL.iter().filter(|call| !used.contains(call)).collect();
    assert_eq!(unused, Vec::<&Call>::new());
}

#[test]
fn the_standard_filter_for_no_network() {
    insta::assert_snapshot!(Filter::standard(Tier::Full, Network::None).to_string());
}

#[test]
fn the_sockets_of_every_other_plan() {
    let sockets = |tier, network| {
        let is_own = |entry: &&Entry| {
            let common = Filter::standard(Tier::Full, Network::None);
            [Call::Socket, Call::Socketpair].contains(&entry.call)
                || !common.entries.contains(entry)
        };
        let filter = Filter::standard(tier, network);
        let lines: Vec<_> = filter.entries.iter().filter(is_own).map(Entry::to_string).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!("landlock_none", sockets(Tier::Landlock, Network::None));
    insta::assert_snapshot!("full_full", sockets(Tier::Full, Network::Full));
}

#[test]
fn a_filter_survives_being_sent() {
    let filter = Filter::standard(Tier::Landlock, Network::Full);
    let sent = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<Filter>(&sent).unwrap(), filter);
    let unknown = sent.replace("\"setns\"", "\"setnss\"");
    assert!(serde_json::from_str::<Filter>(&unknown).is_err());
}
