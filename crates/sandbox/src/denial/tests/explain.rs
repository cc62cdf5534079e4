use carrel_domain::{Network, Tier};
use pretty_assertions::assert_eq;

use super::{context, line, plan};
use crate::denial::{DenialClass, MAX_DENIALS, MAX_PER_RULE, explain};
use crate::seccomp::DeniedCall;

#[test]
fn exact_denials_come_first_and_each_comes_once() {
    let refused = |detail: &str| DeniedCall {
        call: "socket".to_owned(),
        detail: Some(detail.to_owned()),
        errno: libc::EACCES,
        pid: 0,
        count: 1,
    };
    let calls = [refused("AF_INET6"), refused("AF_INET"), refused("AF_INET6")];
    let stderr = "touch: cannot touch '/usr/x': Read-only file system\n\
                  curl: (6) Could not resolve host: example.com\n\
                  curl: (6) Could not resolve host: example.com\n";
    let denials = explain(&plan(Tier::Full, Network::None), &calls, stderr, context());
    assert_eq!(
        denials.iter().map(line).collect::<Vec<_>>(),
        [
            r#"seccomp: the command has no network | socket(AF_INET6) | EACCES | network = "full""#,
            r#"seccomp: the command has no network | socket(AF_INET) | EACCES | network = "full""#,
            "read-only: /usr | /usr/x | EROFS | -",
            r#"network: none | example.com | EAI_AGAIN | network = "full""#,
        ]
    );
}

#[test]
fn a_denial_counts_its_calls_and_messages() {
    let stderr = "curl: (6) Could not resolve host: example.com\n".repeat(3)
        + "cat: /data/x: No such file or directory\n";
    let denials = explain(&plan(Tier::Full, Network::None), &[], &stderr, context());
    let counts: Vec<_> =
        denials.iter().map(|denial| (denial.object.as_str(), denial.count, denial.class)).collect();
    assert_eq!(
        counts,
        [("example.com", 3, DenialClass::Network), ("/data/x", 1, DenialClass::Files)]
    );
}

#[test]
fn a_denial_is_printed_with_its_six_fields() {
    let stderr = "cat: /data/x: No such file or directory\n";
    let denials = explain(&plan(Tier::Full, Network::None), &[], stderr, context());
    assert_eq!(
        serde_json::to_value(&denials).unwrap(),
        serde_json::json!([{
            "rule": "not visible",
            "object": "/data/x",
            "errno": "ENOENT",
            "source": "inferred",
            "count": 1,
            "allow": "readable = [\"/data/x\"]",
        }])
    );
}

#[test]
fn there_are_never_too_many() {
    use std::fmt::Write as _;
    let mut stderr = String::new();
    for number in 0..100_000 {
        writeln!(stderr, "cat: /data/{number}: No such file or directory").unwrap();
    }
    stderr.push_str("touch: cannot touch '/usr/x': Read-only file system\n");
    let refused = |number| DeniedCall {
        call: format!("call {number}"),
        detail: None,
        errno: libc::EPERM,
        pid: 0,
        count: 1,
    };
    let refused: Vec<_> = (0..1000).map(refused).collect();
    let denials = explain(&plan(Tier::Full, Network::None), &refused, &stderr, context());
    let of = |rule: &str| denials.iter().filter(|denial| denial.rule == rule).count();
    let counts = ["seccomp: a denied system call", "not visible", "read-only: /usr"].map(of);
    assert_eq!((counts, denials.len()), ([MAX_PER_RULE, MAX_PER_RULE, 1], 2 * MAX_PER_RULE + 1));
}

/// Pieces that messages are made of, and pieces that they should not be made of.
const PIECES: [&str; 52] = [
    "/",
    "/data/x",
    "/usr",
    "..",
    ".git",
    ".git/hooks/x",
    "/etc/shadow",
    "'",
    "\"",
    "‘",
    "’",
    "`",
    ": ",
    ":",
    " ",
    "(",
    ")",
    "[",
    "]",
    "\n",
    "\r",
    "\t",
    "\0",
    "\x1b[",
    "\x1b[1m",
    "m",
    " -> ",
    " => ",
    " to /",
    "ß",
    "\u{fffd}",
    "\u{10ffff}",
    "Permission denied",
    "No such file",
    "READ-ONLY FILE SYSTEM",
    "Operation not permitted",
    "Invalid cross-device link",
    "Device or resource busy",
    "Could not resolve host: ",
    "connect ENETUNREACH ",
    "getaddrinfo EAI_AGAIN",
    "Network is unreachable",
    "/dev/tcp/",
    "MemoryError",
    "fork: retry",
    "Too many open files",
    "cannot open",
    "cannot copy ",
    "symbolic link",
    "Caused by:",
    "bash",
    "127.0.0.1:80",
];

#[test]
fn no_message_is_too_strange() {
    // Numbers that look random and are the same each time (xorshift).
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let plans = [plan(Tier::Full, Network::None), plan(Tier::Landlock, Network::None)];
    for _ in 0..20_000 {
        let stderr: String = (0..next(40)).map(|_| PIECES[next(PIECES.len())]).collect();
        for plan in &plans {
            let denials = explain(plan, &[], &stderr, context());
            assert!(denials.len() <= MAX_DENIALS);
            assert_eq!(denials, explain(plan, &[], &stderr, context()), "{stderr:?}");
            for allow in denials.iter().filter_map(|denial| denial.allow.as_deref()) {
                assert!(!allow.contains("[\"/etc/shadow") && !allow.contains('\n'), "{allow:?}");
            }
        }
    }
}

#[test]
fn only_the_end_of_a_long_text_is_read() {
    let mut stderr = "cat: /data/first: No such file or directory\n".to_owned();
    stderr.push_str(&"ß\n".repeat(super::super::MAX_SCANNED_BYTES));
    stderr.push_str("cat: /data/last: No such file or directory\n");
    let denials = explain(&plan(Tier::Full, Network::None), &[], &stderr, context());
    let objects: Vec<_> = denials.iter().map(|denial| denial.object.as_str()).collect();
    assert_eq!(objects, ["/data/last"]);
}
