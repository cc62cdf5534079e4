//! The network as a cap: a caller may ask for less than the operator allows, and never for more. The target of
//! every attempt is a real listener on the loopback of the host, which must not see a connection.

use std::io::ErrorKind;
use std::net::TcpListener;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::Run;
use crate::interfaces::{Answer, Interface};
use crate::test_environment::TestEnvironment;

/// Words that would lead a model to ask for more.
const COACHING: [&str; 6] = [
    "--network",
    "policy.toml",
    "network_limit",
    "network = ",
    "network=full",
    "have network full",
];

/// A service of the host that no sandboxed command may reach.
pub(crate) struct HostService {
    listener: TcpListener,
}

impl HostService {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// A line for the shell that connects, and says so.
    pub(crate) fn attack(&self) -> String {
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo connected", self.port())
    }

    /// Tells whether a connection has arrived since the last time.
    pub(crate) fn was_reached(&self) -> bool {
        match self.listener.accept() {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }
}

fn options<'a>(test_env: &TestEnvironment, workspace: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--workspace", workspace, "--tier", test_env.tier], more].concat()
}

fn text_of_workspace(test_env: &TestEnvironment) -> String {
    test_env.workspace().to_str().unwrap().to_owned()
}

/// Checks the code of a refusal, and that its text leads nowhere.
fn assert_denied(answer: &Answer, about: &str) {
    let (code, text) = answer.refused();
    assert_eq!(code, "E_NETWORK_REFUSED", "{about}: {text}");
    assert!(text.contains("the operator decides"), "{about}: {text}");
    for word in COACHING {
        assert!(!text.contains(word), "{about}: {word:?} in {text}");
    }
}

/// Every tool that takes a network, with arguments that connect to the host.
fn attempts(host: &HostService, network: &str) -> Vec<(&'static str, Value)> {
    let line = host.attack();
    vec![
        ("Bash", json!({ "command": line, "network": network })),
        ("Bash", json!({ "command": line, "network": network, "run_in_background": true })),
        ("shell_run", json!({ "cmd": "bash", "args": ["attack.sh"], "network": network })),
        ("watch_process", json!({ "command": line, "network": network })),
        ("run_tests", json!({ "network": network })),
        ("run_script", json!({ "name": "attack", "network": network })),
        ("run_lint", json!({ "network": network })),
    ]
}

/// A project whose tests and scripts connect to the host.
fn hostile_project(test_env: &TestEnvironment, host: &HostService) {
    let line = format!("bash -c '{}'", host.attack());
    let scripts = json!({ "test": line, "lint": line, "attack": line });
    test_env.write("attack.sh", &host.attack());
    test_env.write("package.json", &json!({ "name": "p", "scripts": scripts }).to_string());
}

#[test]
fn a_model_cannot_lift_the_network_that_the_operator_typed() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    hostile_project(&test_env, &host);
    let workspace = text_of_workspace(&test_env);
    for interface in Interface::ALL {
        for (typed, asked) in [
            (Some("none"), "full"),
            (Some("none"), "loopback"),
            (Some("loopback"), "full"),
            // Without a policy file and an option the cap is the workspace's own loopback.
            (None, "full"),
        ] {
            let typed_options: Vec<_> =
                typed.iter().flat_map(|network| ["--network", network]).collect();
            let options = options(&test_env, &workspace, &typed_options);
            let mut session = interface.open(&test_env, &options);
            for (tool, arguments) in attempts(&host, asked) {
                let about = format!("{interface:?} {typed:?} {tool} {asked}");
                let answer = session.call(tool, arguments);
                assert_denied(&answer, &about);
                assert!(!host.was_reached(), "{about}");
            }
        }
    }
}

#[test]
fn an_installation_gets_the_network_of_the_cap_and_no_more() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    let settings = json!(["bash", "-c", host.attack()]);
    test_env.write("carrel.toml", &format!("[profile]\ninstall = {settings}\n"));
    let workspace = text_of_workspace(&test_env);
    for interface in Interface::ALL {
        for typed in [None, Some("none"), Some("loopback"), Some("full")] {
            let typed_options: Vec<_> =
                typed.iter().flat_map(|network| ["--network", network]).collect();
            let options = options(&test_env, &workspace, &typed_options);
            let answer = interface.open(&test_env, &options).call("install", json!({}));
            let about = format!("{interface:?} {typed:?}: {answer:?}");
            assert!(!answer.is_error, "{about}");
            assert_eq!(answer.text.contains("\nconnected\n"), typed == Some("full"), "{about}");
            assert_eq!(host.was_reached(), typed == Some("full"), "{about}");
            for word in COACHING {
                assert!(!answer.text.contains(word), "{about}: {word:?}");
            }
        }
    }
}

#[test]
fn a_model_may_ask_for_less_and_gets_what_the_operator_typed() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    let workspace = text_of_workspace(&test_env);
    for interface in Interface::ALL {
        let options = options(&test_env, &workspace, &["--network", "full"]);
        let mut session = interface.open(&test_env, &options);
        let line = host.attack();
        for arguments in [json!({ "command": line }), json!({ "command": line, "network": "full" })]
        {
            let answer = session.call("Bash", arguments);
            assert!(answer.text.contains("connected"), "{interface:?}: {answer:?}");
            assert!(host.was_reached(), "{interface:?}");
        }
        for less in ["none", "loopback"] {
            let answer = session.call("Bash", json!({ "command": line, "network": less }));
            assert!(!answer.is_error && !answer.text.contains("connected"), "{answer:?}");
            assert!(!host.was_reached(), "{interface:?} {less}");
        }
    }
}

#[test]
fn without_a_policy_a_command_has_no_network_and_may_ask_for_its_own_loopback() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    let workspace = text_of_workspace(&test_env);
    let mut session = Interface::Stdio.open(&test_env, &options(&test_env, &workspace, &[]));
    let serve = "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & \
        for _ in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/8000 && echo served && exit; sleep 0.05; done";
    let own = session.call("Bash", json!({ "command": serve, "network": "loopback" }));
    assert!(own.text.contains("served"), "{own:?}");
    let none = session.call("Bash", json!({ "command": host.attack() }));
    assert!(!none.is_error && !none.text.contains("connected"), "{none:?}");
    let other = session.call("Bash", json!({ "command": host.attack(), "network": "loopback" }));
    assert!(!other.is_error && !other.text.contains("connected"), "{other:?}");
    assert!(!host.was_reached());
}

#[test]
fn denials_say_that_the_operator_decides_and_name_a_network_only_within_the_cap() {
    let test_env = TestEnvironment::usual();
    let workspace = text_of_workspace(&test_env);
    let near = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'";
    let far = "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6";
    let cases = [
        (Some("none"), near, "the operator decides about the network"),
        (Some("none"), far, "the operator decides about the network"),
        (None, near, "run with network=loopback"),
        (None, far, "the operator decides about the network"),
    ];
    for (typed, line, expected) in cases {
        let typed_options: Vec<_> =
            typed.iter().flat_map(|network| ["--network", network]).collect();
        let options = options(&test_env, &workspace, &typed_options);
        let mut session = Interface::Stdio.open(&test_env, &options);
        let text = session.call("Bash", json!({ "command": line })).text;
        assert!(text.contains(expected), "{typed:?} {line}: {text}");
        for word in COACHING {
            assert!(!text.contains(word), "{typed:?}: {word:?} in {text}");
        }
    }
    // A file is the operator's business as well; the line for the policy is in the facts.
    let mut session = Interface::Stdio.open(&test_env, &options(&test_env, &workspace, &[]));
    let answer = session.call("Bash", json!({ "command": "cat /data/x" }));
    assert!(answer.text.contains("not visible; the operator decides"), "{answer:?}");
    assert!(!answer.text.contains("policy.toml"), "{answer:?}");
    assert_eq!(answer.structured["denials"][0]["allow"], "readable = [\"/data/x\"]");
}

#[test]
fn tier_landlock_has_no_network_unless_the_operator_types_one() {
    TestEnvironment::each(|test_env| {
        if test_env.tier != "landlock" {
            return;
        }
        let host = HostService::start();
        let workspace = text_of_workspace(test_env);
        let mut session = Interface::Stdio.open(test_env, &options(test_env, &workspace, &[]));
        for asked in ["loopback", "full"] {
            let arguments = json!({ "command": host.attack(), "network": asked });
            assert_denied(&session.call("Bash", arguments), &format!("{test_env} {asked}"));
        }
        let none = session.call("Bash", json!({ "command": host.attack() }));
        assert!(!none.text.contains("connected"), "{test_env}: {none:?}");
        assert!(!host.was_reached(), "{test_env}");
        let typed = options(test_env, &workspace, &["--network", "full"]);
        let mut session = Interface::Stdio.open(test_env, &typed);
        let full = session.call("Bash", json!({ "command": host.attack(), "network": "full" }));
        assert!(full.text.contains("connected"), "{test_env}: {full:?}");
        assert!(host.was_reached(), "{test_env}");
    });
}

#[test]
fn the_host_that_turns_out_to_lack_namespaces_has_the_cap_of_tier_landlock() {
    TestEnvironment::each(|test_env| {
        if test_env.tier != "landlock" {
            return;
        }
        let workspace = text_of_workspace(test_env);
        let options = ["--workspace", &workspace, "--without", "user_namespaces"];
        let mut session = Interface::Stdio.open(test_env, &options);
        let arguments = json!({ "command": "true", "network": "loopback" });
        assert_denied(&session.call("Bash", arguments), &format!("{test_env}"));
        assert!(!session.call("Bash", json!({ "command": "true" })).is_error, "{test_env}");
    });
}

#[test]
fn the_operator_of_exec_has_the_network_that_was_typed() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    let line = host.attack();
    let done = test_env.run(&["--network", "full", "-c", &line]);
    assert!(host.was_reached(), "{done:?}");
    let done = test_env.run(&["-c", &line]);
    assert!(!host.was_reached(), "{done:?}");
    // The operator reads what would allow it.
    let run = Run::of(test_env.exec(&["-c", &line]));
    assert!(
        run.stderr.contains("policy.toml: network = \"loopback\"; or --network loopback"),
        "{}",
        run.stderr
    );

    let limited = test_env.policy("network_limit = \"loopback\"\n");
    let mut command = test_env.exec(&["--network", "full", "-c", &line, "--json"]);
    command.args(&limited);
    let run = Run::of(command);
    assert_eq!(
        (run.code, &run.error()["code"]),
        (125, &json!("E_NETWORK_REFUSED")),
        "{}",
        run.stderr
    );
    assert!(!host.was_reached());
}

#[test]
fn a_policy_file_keeps_its_meaning() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    let workspace = text_of_workspace(&test_env);
    let cases = [
        // The limit is written: requests may have it, the default stays.
        ("network_limit = \"full\"\n", None, Some("full"), true),
        ("network_limit = \"full\"\n", None, None, false),
        // The default is written, and the limit is at least that.
        ("network = \"full\"\n", None, None, true),
        ("network = \"full\"\n", None, Some("full"), true),
        // What is typed narrows the file.
        ("network = \"full\"\n", Some("none"), None, false),
        ("network_limit = \"full\"\n", Some("none"), Some("full"), false),
        // A file without either key changes nothing.
        ("trust = \"restore\"\n", None, Some("full"), false),
    ];
    for (file, typed, asked, reaches) in cases {
        let policy = test_env.policy(file);
        let mut more = vec!["--policy", policy[1].as_str()];
        more.extend(typed.iter().flat_map(|network| ["--network", network]));
        let mut session = Interface::Stdio.open(&test_env, &options(&test_env, &workspace, &more));
        let mut arguments = json!({ "command": host.attack() });
        if let Some(asked) = asked {
            arguments["network"] = json!(asked);
        }
        let answer = session.call("Bash", arguments);
        assert_eq!(host.was_reached(), reaches, "{file} {typed:?} {asked:?}: {answer:?}");
    }
    let policy = test_env.policy("network_limit = \"loopback\"\n");
    for program in ["mcp", "tool"] {
        let mut command = test_env.carrel();
        command.args([program, "--json", "--workspace", &workspace, "--network", "full"]);
        command.args(&policy);
        let run = Run::of(command);
        assert_eq!(run.error()["code"], "E_NETWORK_REFUSED", "{program}: {}", run.stderr);
    }
}

#[test]
fn a_typed_cap_holds_for_transfers_of_git() {
    let test_env = TestEnvironment::usual();
    let host = HostService::start();
    let workspace = text_of_workspace(&test_env);
    let url = format!("https://127.0.0.1:{}/x.git", host.port());
    let clone = json!({ "operation": "clone", "args": format!("{url} copy"), "timeout": 2 });
    for typed in ["none", "loopback"] {
        let options = options(&test_env, &workspace, &["--network", typed]);
        let mut session = Interface::Stdio.open(&test_env, &options);
        let answer = session.call("git", clone.clone());
        assert_denied(&answer, typed);
        assert!(answer.text.starts_with("git clone needs the network: "), "{answer:?}");
        assert!(!host.was_reached(), "{typed}");
    }
    let mut session = Interface::Stdio.open(&test_env, &options(&test_env, &workspace, &[]));
    session.call("git", clone);
    assert!(host.was_reached(), "Carrel's own git reaches the hosts that the operator lists");
}
