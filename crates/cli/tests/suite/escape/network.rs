//! Services outside, on the network and on the machine.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use serde_json::{Value, json};

use super::{Scenario, Tier, open_to_all, scenes};

const SOCKETS: &str = include_str!("probes/sockets.py");

/// What an operator's machine offers. The first stands for the server's own port.
struct Services {
    tcp: TcpListener,
    /// Machines without the newer protocol have none.
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    abstract_stream: UnixListener,
    abstract_datagram: UnixDatagram,
    path_stream: UnixListener,
    path_datagram: UnixDatagram,
    given: Value,
}

impl Services {
    fn start(scenario: &Scenario) -> Self {
        let name = |kind: &str| format!("carrel-escape-{kind}-{}", fastrand::u64(..));
        let address = |name: &str| SocketAddr::from_abstract_name(name).unwrap();
        let (stream, datagram) = (name("stream"), name("datagram"));
        let directory = scenario.make_directory("services");
        let paths = ["stream", "datagram"].map(|kind| directory.join(kind));
        let services = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_stream: UnixListener::bind_addr(&address(&stream)).unwrap(),
            abstract_datagram: UnixDatagram::bind_addr(&address(&datagram)).unwrap(),
            path_stream: UnixListener::bind(&paths[0]).unwrap(),
            path_datagram: UnixDatagram::bind(&paths[1]).unwrap(),
            given: Value::Null,
        };
        for path in &paths {
            open_to_all(path);
        }
        services.become_patient();
        let given = json!({
            "tcp": services.tcp.local_addr().unwrap().port(),
            "tcp6": services.tcp6.as_ref().map_or(1, |tcp| tcp.local_addr().unwrap().port()),
            "udp": services.udp.local_addr().unwrap().port(),
            "abstract stream": stream,
            "abstract datagram": datagram,
            "path stream": paths[0],
            "path datagram": paths[1],
            "elsewhere": true,
        });
        Self { given, ..services }
    }

    /// Nobody waits for a caller who was kept away.
    fn become_patient(&self) {
        self.tcp.set_nonblocking(true).unwrap();
        self.tcp6.iter().for_each(|tcp| tcp.set_nonblocking(true).unwrap());
        self.udp.set_nonblocking(true).unwrap();
        self.abstract_stream.set_nonblocking(true).unwrap();
        self.abstract_datagram.set_nonblocking(true).unwrap();
        self.path_stream.set_nonblocking(true).unwrap();
        self.path_datagram.set_nonblocking(true).unwrap();
    }

    /// Who was called since the last time.
    fn called(&self) -> BTreeSet<&'static str> {
        let mut buffer = [0; 8];
        [
            ("tcp", self.tcp.accept().is_ok()),
            ("tcp6", self.tcp6.as_ref().is_some_and(|tcp| tcp.accept().is_ok())),
            ("udp", self.udp.recv(&mut buffer).is_ok()),
            ("abstract stream", self.abstract_stream.accept().is_ok()),
            ("abstract datagram", self.abstract_datagram.recv(&mut buffer).is_ok()),
            ("path stream", self.path_stream.accept().is_ok()),
            ("path datagram", self.path_datagram.recv(&mut buffer).is_ok()),
        ]
        .into_iter()
        .filter_map(|(name, called)| called.then_some(name))
        .collect()
    }

    /// Shows that all of them can be called.
    fn assert_open_outside(&self, scenario: &Scenario) {
        let mut given = self.given.clone();
        given["elsewhere"] = false.into();
        scenario.outside(SOCKETS, &given);
        let mut called = self.called();
        called.insert("tcp6");
        let all = [
            "abstract datagram",
            "abstract stream",
            "path datagram",
            "path stream",
            "tcp",
            "tcp6",
            "udp",
        ];
        assert_eq!(called, BTreeSet::from(all));
        while !self.called().is_empty() {}
    }
}

/// Families that no command gets, whatever its network.
fn with_rare_families(mut expected: Value) -> Value {
    for family in ["packet", "vsock", "crypto", "ipsec", "xdp"] {
        expected[family] = "EAFNOSUPPORT".into();
    }
    for protocol in ["netlink audit", "netlink generic"] {
        expected[protocol] = "EPROTONOSUPPORT".into();
    }
    expected
}

fn attack(tier: Tier, network: &str, expected: &Value, called: &[&str]) {
    for scenario in scenes(tier) {
        let services = Services::start(&scenario);
        services.assert_open_outside(&scenario);
        // Beyond the machine only where nothing could leave it: the tests call nobody.
        let mut given = services.given.clone();
        given["elsewhere"] = (network != "full").into();
        let seen = scenario.inside_with(&["--network", network], SOCKETS, &given);
        let mut found = services.called();
        found.remove("tcp6");
        assert_eq!(found, called.iter().copied().collect(), "{:?}", scenario.who);
        pretty_assertions::assert_eq!(&seen, expected, "{:?}", scenario.who);
    }
}

mod full {
    use super::*;

    #[test]
    fn network_namespace_and_seccomp_leave_nobody_to_call_with_network_none() {
        let expected = with_rare_families(json!({
            "tcp": "EACCES", "tcp6": "EACCES", "tcp mapped": "EACCES", "tcp fast open": "EACCES",
            "mptcp": "EACCES", "udp": "EACCES", "raw": "EACCES", "raw6": "EACCES",
            "abstract stream": "ECONNREFUSED", "abstract datagram": "ECONNREFUSED",
            "abstract datagram from a pair": "ECONNREFUSED",
            "path stream": "ENOENT", "path datagram": "ENOENT",
            "dns": "EHOSTUNREACH", "metadata service": "EACCES",
        }));
        attack(Tier::Full, "none", &expected, &[]);
    }

    #[test]
    fn network_namespace_has_a_loopback_that_is_not_the_hosts() {
        let expected = with_rare_families(json!({
            "tcp": "ECONNREFUSED", "tcp6": "ECONNREFUSED", "tcp mapped": "ECONNREFUSED",
            "tcp fast open": "ECONNREFUSED", "mptcp": "EPROTONOSUPPORT", "udp": "done",
            "raw": "EPERM", "raw6": "EPERM",
            "abstract stream": "ECONNREFUSED", "abstract datagram": "ECONNREFUSED",
            "abstract datagram from a pair": "ECONNREFUSED",
            "path stream": "ENOENT", "path datagram": "ENOENT",
            "dns": "EHOSTUNREACH", "metadata service": "ENETUNREACH",
        }));
        attack(Tier::Full, "loopback", &expected, &[]);
    }

    #[test]
    fn abstract_socket_scope_and_mount_namespace_keep_local_services_apart_with_network_full() {
        let expected = with_rare_families(json!({
            // Asked for: the host's network.
            "tcp": "done", "tcp6": "done", "tcp mapped": "done", "tcp fast open": "done",
            "udp": "done",
            "mptcp": "EPROTONOSUPPORT", "raw": "EPERM", "raw6": "EPERM",
            "abstract stream": "EPERM", "abstract datagram": "EPERM",
            "abstract datagram from a pair": "EPERM",
            "path stream": "ENOENT", "path datagram": "ENOENT",
        }));
        attack(Tier::Full, "full", &expected, &["tcp", "udp"]);
    }

    #[test]
    fn network_namespace_shows_no_interface_of_the_host() {
        for scenario in scenes(Tier::Full) {
            for network in ["none", "loopback"] {
                let argv = ["bash", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"];
                let answer = scenario.exec(&["--network", network], &argv);
                assert_eq!(answer.stdout().trim(), "lo");
            }
        }
    }
}

mod landlock {
    use super::*;

    #[test]
    fn seccomp_leaves_no_socket_to_call_with() {
        let expected: serde_json::Map<String, Value> = [
            "tcp",
            "tcp6",
            "tcp mapped",
            "tcp fast open",
            "mptcp",
            "udp",
            "raw",
            "raw6",
            "abstract stream",
            "abstract datagram",
            "abstract datagram from a pair",
            "path stream",
            "path datagram",
            "packet",
            "netlink audit",
            "netlink generic",
            "vsock",
            "crypto",
            "ipsec",
            "xdp",
            "metadata service",
        ]
        .map(|name| (name.to_owned(), "EACCES".into()))
        .into_iter()
        .chain([("dns".to_owned(), "EHOSTUNREACH".into())])
        .collect();
        attack(Tier::Landlock, "none", &expected.into(), &[]);
    }

    #[test]
    fn abstract_socket_scope_keeps_local_services_apart_with_network_full() {
        let expected = with_rare_families(json!({
            // Asked for: the host's network.
            "tcp": "done", "tcp6": "done", "tcp mapped": "done", "tcp fast open": "done",
            "udp": "done",
            "mptcp": "EPROTONOSUPPORT", "raw": "EPERM", "raw6": "EPERM",
            "abstract stream": "EPERM", "abstract datagram": "EPERM",
            "abstract datagram from a pair": "EPERM",
            // As the answer says: `local_services_unreachable` is not enforced.
            "path stream": "done", "path datagram": "done",
        }));
        let called = ["path datagram", "path stream", "tcp", "udp"];
        attack(Tier::Landlock, "full", &expected, &called);
        for scenario in scenes(Tier::Landlock) {
            let answer = scenario.exec(&["--network", "full"], &["true"]);
            let broken = answer.0["sandbox"]["not_enforced"].as_array().unwrap();
            assert!(broken.contains(&"local_services_unreachable".into()));
        }
    }

    #[test]
    fn a_loopback_of_its_own_is_refused_where_it_cannot_be_had() {
        for scenario in scenes(Tier::Landlock) {
            let mut command = scenario.exec_command(&["--network", "loopback"], &["true"]);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(125));
            assert!(String::from_utf8(output.stderr).unwrap().contains("E_SANDBOX_UNAVAILABLE"));
        }
    }
}
