//! Denials of the network: hosts from error messages about names and connections.

use carrel_domain::{Network, Tier};

use super::Denial;
use crate::plan::Plan;

/// The longest DNS name.
const MAX_HOST_BYTES: usize = 253;

/// The object of a denial whose message names no host.
const UNNAMED_HOST: &str = "network";

/// A known message: a phrase in lower case, its error, and the words before the host.
struct Message {
    words: &'static str,
    errno: &'static str,
    host_after: &'static [&'static str],
}

const RESOLVE: &str = "EAI_AGAIN";
const UNREACHABLE: &str = "ENETUNREACH";

const MESSAGES: [Message; 17] = [
    Message { words: "could not resolve host: ", errno: RESOLVE, host_after: &["host: "] },
    Message { words: "could not resolve hostname ", errno: RESOLVE, host_after: &["hostname "] },
    Message { words: "couldn't resolve host ", errno: RESOLVE, host_after: &["host "] },
    Message { words: "unable to resolve host address ", errno: RESOLVE, host_after: &["address "] },
    Message { words: "getaddrinfo eai_again", errno: RESOLVE, host_after: &["eai_again "] },
    Message { words: "getaddrinfo enotfound", errno: RESOLVE, host_after: &["enotfound "] },
    Message { words: "unknownhostexception: ", errno: RESOLVE, host_after: &["exception: "] },
    Message { words: "dial tcp: lookup ", errno: RESOLVE, host_after: &["lookup "] },
    Message {
        words: "name or service not known",
        errno: RESOLVE,
        host_after: &["resolving ", "hostname "],
    },
    Message {
        words: "temporary failure in name resolution",
        errno: RESOLVE,
        host_after: &["resolving ", "hostname "],
    },
    Message { words: "failed to lookup address information", errno: RESOLVE, host_after: &[] },
    Message { words: "connect enetunreach ", errno: UNREACHABLE, host_after: &["enetunreach "] },
    Message {
        words: "network is unreachable",
        errno: UNREACHABLE,
        host_after: &["/dev/tcp/", "/dev/udp/", "connecting to ", "connect to ", "dial tcp "],
    },
    Message { words: "network unreachable", errno: UNREACHABLE, host_after: &["connect to "] },
    Message { words: "no route to host", errno: "EHOSTUNREACH", host_after: &["connect to host "] },
    Message {
        words: "couldn't connect to server",
        errno: UNREACHABLE,
        host_after: &["failed to connect to "],
    },
    Message {
        words: "cannot assign requested address",
        errno: "EADDRNOTAVAIL",
        host_after: &["connect to "],
    },
];

/// Explains a line of stderr that reports a network error, unless the command has the host's network.
pub(super) fn denial(plan: &Plan, line: &str) -> Option<Denial> {
    if plan.network == Network::Full {
        return None;
    }
    let small = line.to_ascii_lowercase();
    let message = MESSAGES.iter().find(|message| small.contains(message.words))?;
    let host = message.host_after.iter().find_map(|before| host(&small, line, before));
    let is_near = host.is_some_and(is_loopback);
    let network = match (plan.tier, is_near) {
        // The command has a loopback, so the error is its own.
        (_, true) if plan.network == Network::Loopback => return None,
        (Tier::Full, true) => Network::Loopback,
        (Tier::Full, false) | (Tier::Landlock, _) => Network::Full,
    };
    let rule = format!("network: {}", plan.network);
    let denial = Denial::inferred(rule, host.unwrap_or(UNNAMED_HOST), message.errno);
    Some(suggest(denial, plan, network))
}

/// Adds the policy line for a wider network, and the option of a request.
pub(super) fn suggest(denial: Denial, plan: &Plan, network: Network) -> Denial {
    let request = format!("a request can ask for it with --network {network}");
    let hint = match (network, plan.tier) {
        (Network::Loopback, _) => format!("{request}; it takes \"full\" to leave the machine"),
        (Network::Full, Tier::Full) | (Network::None, _) => request,
        (Network::Full, Tier::Landlock) => {
            format!("{request}; tier landlock has no loopback of its own")
        }
    };
    denial.allowed_by(line(network)).hinting(hint)
}

/// Returns whether a denial shows that the command tried to reach another machine.
pub(super) fn leaves_the_machine(denial: &Denial) -> bool {
    denial.allow.as_deref() == Some(&line(Network::Full))
}

fn line(network: Network) -> String {
    format!("network = \"{network}\"")
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
