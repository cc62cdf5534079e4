use carrel_domain::{Network, Tier};
use pretty_assertions::assert_eq;

use super::{context, plan};
use crate::denial::{Certainty, Denial, DenialClass, explain};
use crate::seccomp::DeniedCall;

fn refused(call: &str, detail: Option<&str>, errno: i32) -> DeniedCall {
    DeniedCall { call: call.to_owned(), detail: detail.map(str::to_owned), errno, pid: 7, count: 1 }
}

fn one(tier: Tier, network: Network, refused: DeniedCall, stderr: &str) -> Denial {
    let denials = explain(&plan(tier, network), &[refused], stderr, context());
    denials.into_iter().next().expect("a denial for a refused call")
}

#[test]
fn a_refused_call_is_explained_with_the_reason_of_the_filter() {
    let unshare = refused("unshare", Some("CLONE_NEWUSER"), libc::EPERM);
    assert_eq!(
        one(Tier::Full, Network::None, unshare, ""),
        Denial {
            rule: "seccomp: a command stays in the namespaces that it was given".to_owned(),
            object: "unshare(CLONE_NEWUSER)".to_owned(),
            errno: "EPERM".to_owned(),
            source: Certainty::Exact,
            count: 1,
            allow: None,
            hint: Some("no line of policy.toml allows this call".to_owned()),
            network: None,
            class: DenialClass::SystemCalls,
        }
    );
}

#[test]
fn the_reason_is_that_of_the_rule_that_decided() {
    let cases = [
        ("clone", Some("CLONE_NEWUSER"), libc::EPERM, "a command stays in the namespaces"),
        ("clone", Some("CLONE_PARENT|CLONE_NEWNET"), libc::EPERM, "a command stays in the"),
        ("clone", Some("CLONE_PARENT"), libc::EPERM, "the process would be a child of Carrel's"),
        ("ioctl", Some("TIOCSTI"), libc::EPERM, "it types into the terminal"),
        ("ioctl", Some("TIOCSETD"), libc::EPERM, "it loads rarely used parts"),
        ("ioctl", Some("FS_IOC_SETFLAGS"), libc::EPERM, "inode attributes can take"),
        ("mknodat", Some("S_IFCHR"), libc::EPERM, "a device file reaches past"),
        ("mknodat", Some("mode 4755"), libc::EPERM, "who runs such a file"),
        ("socket", Some("AF_INET SOCK_RAW"), libc::EPERM, "raw packets can pretend"),
        ("socket", Some("AF_VSOCK"), libc::EAFNOSUPPORT, "rarely used families"),
        (
            "socket",
            Some("AF_NETLINK NETLINK_AUDIT"),
            libc::EPROTONOSUPPORT,
            "of the kernel's own protocols",
        ),
        ("mount", None, libc::EPERM, "the tree of files that a command sees"),
        ("call 999", None, libc::EPERM, "a denied system call"),
    ];
    for (call, detail, errno, expected) in cases {
        let denial = one(Tier::Full, Network::Full, refused(call, detail, errno), "");
        let start = format!("seccomp: {expected}");
        assert!(denial.rule.starts_with(&start), "{call} {detail:?}: {}", denial.rule);
        assert_eq!(denial.allow, None);
    }
}

#[test]
fn sockets_name_the_network_that_would_open_them() {
    let (internet, local, raw) = ("AF_INET", "AF_UNIX", "AF_INET SOCK_RAW");
    let (loopback, full) = (Some(r#"network = "loopback""#), Some(r#"network = "full""#));
    let outside = "curl: (6) Could not resolve host: example.com";
    let cases = [
        (Tier::Full, "socket", internet, "", loopback),
        (Tier::Full, "socket", internet, outside, full),
        (Tier::Full, "socket", raw, "", None),
        (Tier::Landlock, "socket", internet, "", full),
        (Tier::Landlock, "socket", local, "", full),
        (Tier::Landlock, "socketpair", "AF_UNIX SOCK_DGRAM", "", full),
        (Tier::Landlock, "socket", "AF_VSOCK", "", None),
    ];
    for (tier, call, detail, stderr, expected) in cases {
        let denial = one(tier, Network::None, refused(call, Some(detail), libc::EACCES), stderr);
        assert_eq!(denial.allow.as_deref(), expected, "{tier} {call} {detail}");
    }
}

#[test]
fn an_unknown_error_number_is_kept() {
    let denial = one(Tier::Full, Network::None, refused("mount", None, 200), "");
    assert_eq!(denial.errno, "errno 200");
}
