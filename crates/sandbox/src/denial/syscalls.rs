//! Denials of system calls, which the kernel reported exactly.

use carrel_domain::{Network, Tier};

use super::{Certainty, Denial, DenialClass, network};
use crate::plan::Plan;
use crate::seccomp::{DeniedCall, SyscallRule};

/// Details of denied socket calls that a wider network would allow.
const OPENED_BY_NETWORK: [&str; 5] =
    ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK NETLINK_ROUTE", "AF_UNIX SOCK_DGRAM"];

const NO_LINE: &str = "no line of policy.toml allows this call";

/// Explains a denied call. `outside` says that the command tried to reach another machine, `cap` is the most
/// network that the request could have had.
pub(super) fn denial(plan: &Plan, refused: &DeniedCall, outside: bool, cap: Network) -> Denial {
    let denial = Denial {
        rule: rule_text(plan, refused),
        object: match &refused.detail {
            Some(detail) => format!("{}({detail})", refused.call),
            None => format!("{}()", refused.call),
        },
        errno: name(refused.errno),
        source: Certainty::Exact,
        count: refused.count,
        allow: None,
        hint: None,
        network: None,
        class: DenialClass::SystemCalls,
    };
    match sufficient_network(plan, refused, outside) {
        Some(network) => {
            let denial = Denial { class: DenialClass::Network, ..denial };
            let denial = network::suggest(denial, plan, network, cap);
            network::hint_at_loopback(denial, plan, cap)
        }
        None => denial.hinting(NO_LINE),
    }
}

/// Returns the network that would have allowed the call.
fn sufficient_network(plan: &Plan, refused: &DeniedCall, outside: bool) -> Option<Network> {
    let is_socket = matches!(refused.call.as_str(), "socket" | "socketpair");
    let is_ordinary =
        refused.detail.as_deref().is_some_and(|detail| OPENED_BY_NETWORK.contains(&detail));
    let is_lack_of_network = plan.network == Network::None && refused.errno == libc::EACCES;
    let network = match plan.tier {
        Tier::Full if !outside => Network::Loopback,
        Tier::Full | Tier::Landlock => Network::Full,
    };
    (is_socket && is_ordinary && is_lack_of_network).then_some(network)
}

fn rule_text(plan: &Plan, refused: &DeniedCall) -> String {
    match matching_rule(plan, refused) {
        Some(rule) => format!("seccomp: {}", fragment(&rule.reason)),
        None => "seccomp: a denied system call".to_owned(),
    }
}

/// Finds the rule of the filter that denied a call.
fn matching_rule<'a>(plan: &'a Plan, refused: &DeniedCall) -> Option<&'a SyscallRule> {
    let fits = |rule: &&SyscallRule| {
        rule.syscall.name() == refused.call
            && i32::from(rule.action.errno().number()) == refused.errno
    };
    let rules: Vec<&SyscallRule> = plan.seccomp.rules.iter().filter(fits).collect();
    let detail = refused.detail.as_deref().unwrap_or_default();
    rules.get(position(&refused.call, detail)).or(rules.last()).copied()
}

/// Returns the index of the rule to which a detail belongs, among the rules for one call and one error in
/// the order of the standard filter.
fn position(call: &str, detail: &str) -> usize {
    match call {
        "clone" => usize::from(!detail.contains("CLONE_NEW")),
        "ioctl" if detail == "TIOCSETD" => 1,
        "ioctl" if detail.starts_with("FS_IOC") => 2,
        "mknod" | "mknodat" => usize::from(detail.starts_with("mode")),
        // Variants of TCP come first, and are not reported.
        "socket" if detail.starts_with("AF_NETLINK") => usize::MAX,
        _ => 0,
    }
}

/// Turns a sentence into a lower-case fragment without its full stop.
fn fragment(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn name(errno: i32) -> String {
    match errno {
        libc::EPERM => "EPERM".to_owned(),
        libc::EACCES => "EACCES".to_owned(),
        libc::ENOSYS => "ENOSYS".to_owned(),
        libc::EOPNOTSUPP => "EOPNOTSUPP".to_owned(),
        libc::EAFNOSUPPORT => "EAFNOSUPPORT".to_owned(),
        libc::EPROTONOSUPPORT => "EPROTONOSUPPORT".to_owned(),
        other => format!("errno {other}"),
    }
}
