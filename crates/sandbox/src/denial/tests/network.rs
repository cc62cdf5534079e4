use carrel_domain::{Network, Tier};
use pretty_assertions::assert_eq;

use super::{check, context, plan};
use crate::denial::{Certainty, Denial, DenialClass, DenialContext, explain};

const MESSAGES: [(&str, &str, &str); 16] = [
    ("curl: (6) Could not resolve host: example.com", "example.com", "EAI_AGAIN"),
    (
        "fatal: unable to access 'https://example.com/x/': Could not resolve host: example.com",
        "example.com",
        "EAI_AGAIN",
    ),
    (
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
        "github.com",
        "EAI_AGAIN",
    ),
    ("wget: unable to resolve host address ‘example.invalid’", "example.invalid", "EAI_AGAIN"),
    (
        "Resolving example.invalid (example.invalid)... failed: Name or service not known.",
        "example.invalid",
        "EAI_AGAIN",
    ),
    (
        "  [cause]: Error: getaddrinfo EAI_AGAIN registry.npmjs.org",
        "registry.npmjs.org",
        "EAI_AGAIN",
    ),
    (
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "network",
        "EAI_AGAIN",
    ),
    (
        "  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
        "index.crates.io",
        "EAI_AGAIN",
    ),
    (
        "go: x: Get \"https://proxy.golang.org/\": dial tcp: lookup proxy.golang.org: no such host",
        "proxy.golang.org",
        "EAI_AGAIN",
    ),
    (
        "Exception in thread \"main\" java.net.UnknownHostException: example.com",
        "example.com",
        "EAI_AGAIN",
    ),
    (
        "Connecting to 93.184.216.34:80... failed: Network is unreachable.",
        "93.184.216.34",
        "ENETUNREACH",
    ),
    (
        "Error: connect ENETUNREACH 93.184.216.34:80 - Local (0.0.0.0:0)",
        "93.184.216.34",
        "ENETUNREACH",
    ),
    ("bash: line 1: /dev/tcp/1.1.1.1/80: Network is unreachable", "1.1.1.1", "ENETUNREACH"),
    ("OSError: [Errno 101] Network is unreachable", "network", "ENETUNREACH"),
    ("dial tcp [2606:2800::1]:443: connect: network is unreachable", "2606:2800::1", "ENETUNREACH"),
    (
        "curl: (7) Failed to connect to 93.184.216.34 port 80 after 0 ms: Couldn't connect to server",
        "93.184.216.34",
        "ENETUNREACH",
    ),
];

#[test]
fn failures_for_lack_of_network_name_the_line_and_that_the_operator_decides() {
    for network in [Network::None, Network::Loopback] {
        for (message, host, errno) in MESSAGES {
            let found = explain(&plan(Tier::Full, network), &[], message, context());
            let expected = Denial {
                rule: format!("network: {network}"),
                object: host.to_owned(),
                errno: errno.to_owned(),
                source: Certainty::Inferred,
                count: 1,
                allow: Some("network = \"full\"".to_owned()),
                hint: Some("the operator decides about the network".to_owned()),
                network: Some(Network::Full),
                class: DenialClass::Network,
            };
            assert_eq!(found, [expected], "{message}");
        }
    }
}

#[test]
fn with_the_hosts_network_nothing_is_a_denial() {
    for tier in [Tier::Full, Tier::Landlock] {
        let plan = plan(tier, Network::Full);
        for (message, ..) in MESSAGES {
            assert_eq!(explain(&plan, &[], message, context()), [], "{message}");
        }
    }
}

#[test]
fn the_own_loopback_is_enough_for_what_is_near() {
    let message =
        "curl: (7) Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server";
    check(
        &plan(Tier::Full, Network::None),
        &[(message, &[r#"network: none | localhost | ENETUNREACH | network = "loopback""#])],
    );
    check(
        &plan(Tier::Landlock, Network::None),
        &[(message, &[r#"network: none | localhost | ENETUNREACH | network = "full""#])],
    );
    check(&plan(Tier::Full, Network::Loopback), &[(message, &[])]);
}

#[test]
fn a_hint_names_a_network_only_within_the_cap() {
    let near = "curl: (7) Failed to connect to localhost port 3000: Couldn't connect to server";
    let far = "curl: (6) Could not resolve host: example.com";
    let decides = "the operator decides about the network";
    let cases = [
        (Tier::Full, near, Network::None, decides),
        (Tier::Full, near, Network::Loopback, "run with network=loopback"),
        (Tier::Full, far, Network::Loopback, decides),
        (Tier::Full, far, Network::Full, "run with network=full"),
        (
            Tier::Landlock,
            near,
            Network::Loopback,
            "the operator decides about the network; tier landlock has no loopback of its own",
        ),
    ];
    for (tier, message, network_cap, expected) in cases {
        let context = DenialContext { network_cap, ..context() };
        let found = explain(&plan(tier, Network::None), &[], message, context);
        assert_eq!(found[0].hint.as_deref(), Some(expected), "{tier} {message} {network_cap}");
    }
}

#[test]
fn a_socket_for_another_machine_is_hinted_at_the_loopback_without_promising_more() {
    let socket = crate::seccomp::DeniedCall {
        call: "socket".to_owned(),
        detail: Some("AF_INET".to_owned()),
        errno: libc::EACCES,
        pid: 0,
        count: 41,
    };
    let far = "curl: (6) Could not resolve host: example.com";
    let only =
        "network=loopback reaches the command's own servers only; the operator decides about more";
    let decides = "the operator decides about the network";
    let cases = [
        ("", Network::None, decides),
        ("", Network::Loopback, "run with network=loopback"),
        (far, Network::None, decides),
        (far, Network::Loopback, only),
        (far, Network::Full, "run with network=full"),
    ];
    for (message, network_cap, expected) in cases {
        let context = DenialContext { network_cap, ..context() };
        let refused = std::slice::from_ref(&socket);
        let found = explain(&plan(Tier::Full, Network::None), refused, message, context);
        let first = (found[0].hint.as_deref(), found[0].count, found[0].class);
        assert_eq!(first, (Some(expected), 41, DenialClass::Network), "{message} {network_cap}");
    }
}
