//! Denials of the network: hosts from error messages about names and connections.

use carrel_domain::{Network, Tier};

use super::{Denial, DenialClass};
use crate::plan::Plan;

/// The longest DNS name.
const MAX_HOST_BYTES: usize = 253;

/// The object of a denial whose message names no host.
const UNNAMED_HOST: &str = "network";

const OPERATOR_DECIDES: &str = "the operator decides about the network";

/// The hint about a socket of a command that also tried to reach another machine, which the cap forbids.
const LOOPBACK_ONLY: &str =
    "network=loopback reaches the command's own servers only; the operator decides about more";

const RESOLVE: &str = "EAI_AGAIN";
const UNREACHABLE: &str = "ENETUNREACH";

/// Known messages: a phrase in lower case, its error, and the words before the host.
const MESSAGES: [(&str, &str, &[&str]); 17] = [
    ("could not resolve host: ", RESOLVE, &["host: "]),
    ("could not resolve hostname ", RESOLVE, &["hostname "]),
    ("couldn't resolve host ", RESOLVE, &["host "]),
    ("unable to resolve host address ", RESOLVE, &["address "]),
    ("getaddrinfo eai_again", RESOLVE, &["eai_again "]),
    ("getaddrinfo enotfound", RESOLVE, &["enotfound "]),
    ("unknownhostexception: ", RESOLVE, &["exception: "]),
    ("dial tcp: lookup ", RESOLVE, &["lookup "]),
    ("name or service not known", RESOLVE, &["resolving ", "hostname "]),
    ("temporary failure in name resolution", RESOLVE, &["resolving ", "hostname "]),
    ("failed to lookup address information", RESOLVE, &[]),
    ("connect enetunreach ", UNREACHABLE, &["enetunreach "]),
    (
        "network is unreachable",
        UNREACHABLE,
        &["/dev/tcp/", "/dev/udp/", "connecting to ", "connect to ", "dial tcp "],
    ),
    ("network unreachable", UNREACHABLE, &["connect to "]),
    ("no route to host", "EHOSTUNREACH", &["connect to host "]),
    ("couldn't connect to server", UNREACHABLE, &["failed to connect to "]),
    ("cannot assign requested address", "EADDRNOTAVAIL", &["connect to "]),
];

/// Explains a line of stderr that reports a network error, unless the command has the host's network.
pub(super) fn denial(plan: &Plan, line: &str, cap: Network) -> Option<Denial> {
    if plan.network == Network::Full {
        return None;
    }
    let small = line.to_ascii_lowercase();
    let (_, errno, host_after) = MESSAGES.iter().find(|(words, ..)| small.contains(words))?;
    let host = host_after.iter().find_map(|before| host(&small, line, before));
    let is_near = host.is_some_and(is_loopback);
    let network = match (plan.tier, is_near) {
        // The command has a loopback, so the error is its own.
        (_, true) if plan.network == Network::Loopback => return None,
        (Tier::Full, true) => Network::Loopback,
        (Tier::Full, false) | (Tier::Landlock, _) => Network::Full,
    };
    let rule = format!("network: {}", plan.network);
    let denial = Denial::inferred(DenialClass::Network, rule, host.unwrap_or(UNNAMED_HOST), errno);
    Some(suggest(denial, plan, network, cap))
}

/// Adds the policy line for a wider network. The hint names the network only if the cap allows it: a model
/// reads the hint, and must not be led to ask for what is refused.
pub(super) fn suggest(denial: Denial, plan: &Plan, network: Network, cap: Network) -> Denial {
    let hint = if network <= cap {
        format!("run with network={network}")
    } else {
        OPERATOR_DECIDES.to_owned()
    };
    let hint = match plan.tier {
        Tier::Full => hint,
        Tier::Landlock => format!("{hint}; tier landlock has no loopback of its own"),
    };
    let line = format!("network = \"{network}\"");
    Denial { network: Some(network), ..denial.allowed_by(line).hinting(hint) }
}

/// Changes the hint about a denied socket where the cap allows the sandbox's own loopback and no more.
pub(super) fn hint_at_loopback(denial: Denial, plan: &Plan, cap: Network) -> Denial {
    let is_wider = denial.network == Some(Network::Full);
    if plan.tier == Tier::Full && is_wider && cap == Network::Loopback {
        return denial.hinting(LOOPBACK_ONLY);
    }
    denial
}

/// Returns whether a denial shows that the command tried to reach another machine.
pub(super) fn leaves_the_machine(denial: &Denial) -> bool {
    denial.network == Some(Network::Full)
}

/// Returns the name or address after the words `before`, without its port.
fn host<'a>(small: &str, line: &'a str, before: &str) -> Option<&'a str> {
    // ASCII lower case has the same length in bytes.
    let start = small.find(before)? + before.len();
    let rest = line[start..].trim_start_matches(['\'', '"', '`', '\u{2018}', '(', ' ']);
    let belongs =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(['.', ':']);
    let name = match name.rsplit_once(':') {
        Some((name, port)) if is_number(port) && (!name.contains(':') || name.ends_with(']')) => {
            name
        }
        _ => name,
    };
    let name = name.trim_matches(['[', ']']);
    (!name.is_empty() && name.len() <= MAX_HOST_BYTES).then_some(name)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host == "::1" || host.starts_with("127.")
}
