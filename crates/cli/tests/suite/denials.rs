//! Denials in the texts of every interface: a model that reads only the text learns that the sandbox was in the
//! way, also where the exit status hides it, and reads no advice that the cap refuses.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::Run;
use crate::interfaces::{Answer, Interface, ToolSession};
use crate::test_environment::TestEnvironment;

/// Makes 41 sockets of two families, and says nothing about the result.
const SOCKETS: &str = "python3 -c '
import socket
for number in range(41):
    try: socket.socket(socket.AF_INET if number % 2 else socket.AF_INET6)
    except OSError: pass
'";

const DENIED: &str =
    "socket(AF_INET6), socket(AF_INET) (EACCES): seccomp: the command has no network";

/// Advice that a model must not read while the cap is below it.
const REFUSED: [&str; 4] = ["network=loopback", "network=full", "--network", "policy.toml"];

/// A test that needs a server of its own.
const SERVER_TEST: &str = "
const test = require('node:test');
const net = require('node:net');
test('adds', () => {});
for (const number of [1, 2]) {
  test(`serves ${number}`, (_, done) => {
    const server = net.createServer((socket) => socket.end('hello'));
    server.on('error', done);
    server.listen(0, '127.0.0.1', () => {
      const client = net.connect(server.address().port, '127.0.0.1');
      client.on('error', done);
      client.on('data', () => server.close(() => done()));
    });
  });
}
";

fn options<'a>(
    test_env: &'a TestEnvironment,
    workspace: &'a str,
    more: &[&'a str],
) -> Vec<&'a str> {
    [&["--workspace", workspace, "--tier", test_env.tier], more].concat()
}

fn open(test_env: &TestEnvironment, interface: Interface, more: &[&str]) -> Box<dyn ToolSession> {
    let workspace = test_env.workspace().to_str().unwrap().to_owned();
    interface.open(test_env, &options(test_env, &workspace, more))
}

/// A project whose every command makes sockets that are denied, and succeeds.
fn tolerant_project(test_env: &TestEnvironment) {
    test_env.write("sockets.sh", SOCKETS);
    let line = "bash sockets.sh";
    let scripts = json!({ "test": line, "lint": line, "typecheck": line, "attack": line });
    let dev = json!({ "prettier": "3.0.0" });
    let package = json!({ "name": "p", "scripts": scripts, "devDependencies": dev });
    test_env.write("package.json", &package.to_string());
    test_env.write(".prettierrc", "{}");
    test_env.write("node_modules/.bin/prettier", &format!("#!/bin/bash\n{SOCKETS}\nexit 0\n"));
    let program = test_env.workspace().join("node_modules/.bin/prettier");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program, mode).unwrap();
}

fn server_project(test_env: &TestEnvironment) {
    test_env.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    test_env.write("server.test.js", SERVER_TEST);
}

fn lines_about_denials(answer: &Answer) -> Vec<&str> {
    answer.text.lines().filter(|line| line.starts_with("carrel: ")).collect()
}

/// The calls that run a command of the project or of the caller.
fn calls(line: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Bash", json!({ "command": format!("{line} | tail -n 1") })),
        ("shell_run", json!({ "cmd": "bash", "args": ["sockets.sh"] })),
        ("run_script", json!({ "name": "attack" })),
        ("run_lint", json!({})),
        ("run_typecheck", json!({})),
        ("run_tests", json!({ "network": "none" })),
    ]
}

#[test]
fn a_command_that_succeeds_says_in_one_line_what_the_sandbox_denied() {
    let test_env = TestEnvironment::usual();
    tolerant_project(&test_env);
    for interface in Interface::ALL {
        let mut session = open(&test_env, interface, &[]);
        for (tool, arguments) in calls("bash sockets.sh") {
            let answer = session.call(tool, arguments);
            let expected = format!("carrel: denied 41 times: {DENIED}; run with network=loopback");
            assert_eq!(
                lines_about_denials(&answer),
                [expected],
                "{interface:?} {tool}: {answer:?}"
            );
        }
        // It has no argument for the network.
        let formatted = session.call("format", json!({}));
        let decides = "the operator decides about the network";
        let expected = format!("carrel: denied 41 times: {DENIED}; {decides}");
        assert_eq!(lines_about_denials(&formatted), [expected], "{interface:?}: {formatted:?}");
    }
}

/// A repository that borrows objects from one outside, which git reads about in vain.
fn borrowing_repository(test_env: &TestEnvironment) -> String {
    let script = r"
        git init -q --bare outside && mkdir -p outside/objects/pack && chmod -R a+rX outside
        cd workspace && git init -q . && echo one > tracked && git add tracked
        git -c user.name=Example -c user.email=example@localhost commit -q -m first
        realpath ../outside/objects > .git/objects/info/alternates
        chown -R --reference=. . && realpath ../outside/objects/pack
    ";
    let mut shell = std::process::Command::new("sh");
    let trust = [("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", "*")];
    shell.envs(trust.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value)));
    shell.args(["-ec", script]).current_dir(test_env.path(""));
    let run = Run::of(shell);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout.trim().to_owned()
}

/// Git has no argument that makes it do something forbidden by itself; in this tier it sees that objects which a
/// repository names are there, and is denied to read them.
#[test]
fn git_says_what_the_sandbox_denied_also_where_it_succeeds() {
    TestEnvironment::each(|test_env| {
        if test_env.tier != "landlock" {
            return;
        }
        let denied = borrowing_repository(test_env);
        for interface in Interface::ALL {
            let mut session = open(test_env, interface, &[]);
            for (tool, operation) in [("git", "log"), ("git", "status"), ("git_inspect", "log")] {
                let answer = session.call(tool, json!({ "operation": operation }));
                assert!(!answer.is_error, "{test_env} {interface:?} {tool}: {answer:?}");
                let lines = lines_about_denials(&answer);
                let [line] = lines[..] else { panic!("{test_env} {interface:?}: {answer:?}") };
                assert!(line.starts_with("carrel: probably denied"), "{test_env}: {line}");
                assert!(line.contains(&denied) && line.contains("(EACCES)"), "{test_env}: {line}");
                let facts = &answer.structured["denials"];
                assert_eq!(facts[0]["object"], json!(denied), "{test_env} {interface:?}: {facts}");
                for word in REFUSED {
                    assert!(!answer.text.contains(word), "{interface:?} {tool}: {word}");
                }
            }
        }
    });
}

#[test]
fn the_output_of_a_background_command_ends_with_its_denials() {
    let test_env = TestEnvironment::usual();
    tolerant_project(&test_env);
    let mut session = open(&test_env, Interface::Stdio, &[]);
    let arguments = json!({ "command": "bash sockets.sh", "run_in_background": true });
    let started = session.call("Bash", arguments);
    let shell_id = started.structured["shell_id"].clone();
    let ended = session.call("BashOutput", json!({ "shell_id": shell_id, "wait_seconds": 60 }));
    let expected = format!("carrel: denied 41 times: {DENIED}; run with network=loopback");
    assert_eq!(lines_about_denials(&ended), [expected], "{ended:?}");
}

#[test]
fn no_text_about_a_denial_suggests_what_the_cap_refuses() {
    let test_env = TestEnvironment::usual();
    tolerant_project(&test_env);
    for interface in Interface::ALL {
        let mut session = open(&test_env, interface, &["--network", "none"]);
        for (tool, arguments) in calls("bash sockets.sh") {
            let answer = session.call(tool, arguments);
            let decides = "the operator decides about the network";
            let expected = format!("carrel: denied 41 times: {DENIED}; {decides}");
            assert_eq!(
                lines_about_denials(&answer),
                [expected],
                "{interface:?} {tool}: {answer:?}"
            );
            for word in REFUSED {
                assert!(!answer.text.contains(word), "{interface:?} {tool}: {word} in {answer:?}");
            }
        }
    }
}

#[test]
fn ordinary_commands_that_succeed_have_no_line_about_denials() {
    TestEnvironment::each(|test_env| {
        let mut session = open(test_env, Interface::Stdio, &[]);
        for line in [
            "ls -la . >/dev/null",
            "python3 -c 'import json, ssl, subprocess; subprocess.run([\"true\"])'",
            "node -e 'require(\"node:fs\").readdirSync(\".\")'",
            "git init -q . && git status --short",
            "npm --version",
        ] {
            let answer = session.call("Bash", json!({ "command": line }));
            assert_eq!(lines_about_denials(&answer), [""; 0], "{test_env} {line}: {answer:?}");
        }
    });
}

#[test]
fn tests_have_their_own_loopback_by_default() {
    let test_env = TestEnvironment::usual();
    server_project(&test_env);
    for interface in Interface::ALL {
        let mut session = open(&test_env, interface, &[]);
        let answer = session.call("run_tests", json!({}));
        let section = &answer.structured["sections"][0];
        assert_eq!(answer.structured["verdict"], "passed", "{interface:?}: {answer:?}");
        assert_eq!(section["counts"]["passed"], 3, "{interface:?}: {answer:?}");
        assert_eq!(section["denials"], json!([]), "{interface:?}: {answer:?}");
    }
}

#[test]
fn a_failed_run_says_what_was_denied_before_its_failures() {
    let test_env = TestEnvironment::usual();
    server_project(&test_env);
    let (loopback, decides) =
        ("run with network=loopback", "the operator decides about the network");
    for interface in Interface::ALL {
        for (cap, asked, remedy) in [
            (&[][..], json!({ "network": "none" }), loopback),
            (&["--network", "none"][..], json!({}), decides),
        ] {
            let mut session = open(&test_env, interface, cap);
            for tool in ["run_tests", "run_failing_tests"] {
                let answer = session.call(tool, asked.clone());
                let first = answer.text.lines().next().unwrap_or_default();
                let count = first
                    .strip_prefix("failed: 2 failures; ")
                    .and_then(|rest| rest.strip_suffix(&format!(" denials of network; {remedy}")));
                let count = count.and_then(|count| count.parse::<u64>().ok());
                assert!(count.is_some_and(|count| count >= 2), "{interface:?} {tool}: {answer:?}");
                for word in REFUSED.iter().filter(|_| !cap.is_empty()) {
                    assert!(!answer.text.contains(word), "{interface:?}: {word} in {answer:?}");
                }
            }
        }
    }
}

#[test]
fn a_failed_run_says_that_another_machine_was_probably_denied() {
    let test_env = TestEnvironment::usual();
    test_env.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    let test = "
require('node:test')('looks up', async () => {
  await require('node:dns').promises.lookup('example.com');
});
";
    test_env.write("lookup.test.js", test);
    for interface in Interface::ALL {
        let answer = open(&test_env, interface, &[]).call("run_tests", json!({}));
        let first = answer.text.lines().next().unwrap_or_default();
        assert!(first.starts_with("failed: 1 failure; probably "), "{interface:?}: {answer:?}");
        let end = "of network; the operator decides about the network";
        assert!(first.ends_with(end), "{interface:?}: {answer:?}");
        for word in REFUSED {
            assert!(!answer.text.contains(word), "{interface:?}: {word} in {answer:?}");
        }
    }
}

#[test]
fn tests_have_no_network_in_tier_landlock() {
    TestEnvironment::each(|test_env| {
        if test_env.tier != "landlock" {
            return;
        }
        server_project(test_env);
        let answer = open(test_env, Interface::Stdio, &[]).call("run_tests", json!({}));
        let first = answer.text.lines().next().unwrap_or_default();
        assert!(first.starts_with("failed: 2 failures; "), "{test_env}: {answer:?}");
        assert!(first.contains("the operator decides about the network"), "{test_env}: {first}");
        for word in REFUSED {
            assert!(!answer.text.contains(word), "{test_env}: {word} in {answer:?}");
        }
    });
}

#[test]
fn a_check_says_what_its_sandbox_does_not_enforce() {
    TestEnvironment::each(|test_env| {
        test_env
            .write("Makefile", "all:\n\t@true\nlint:\n\t@echo x 2>/dev/null > written || true\n");
        test_env.write("carrel.toml", "[profile]\ntypecheck = [\"make\"]\n");
        let mut session = open(test_env, Interface::Stdio, &[]);
        let of_exec = test_env.line("true").json["sandbox"]["not_enforced"].clone();
        for (tool, writes) in [("run_lint", false), ("run_typecheck", true)] {
            let answer = session.call(tool, json!({}));
            let section = &answer.structured["sections"][0];
            let found = section["not_enforced"].as_array();
            let mut found =
                found.unwrap_or_else(|| panic!("{test_env}: {tool}: {answer:?}")).clone();
            let is_first = found.first() == Some(&json!("read_only_tree"));
            assert_eq!(is_first, writes, "{test_env}: {tool}: {section}");
            found.retain(|name| name != "read_only_tree");
            // A tree that is read-only has git hooks that are.
            let mut expected = of_exec.as_array().unwrap().clone();
            expected.retain(|name| writes || name != "git_hooks_read_only");
            assert_eq!(found, expected, "{test_env}: {tool}");
            let of_metadata = found.contains(&json!("outside_metadata_unchanged"));
            assert_eq!(of_metadata, test_env.tier == "landlock", "{test_env}: {tool}");
        }
        assert!(!test_env.workspace().join("written").exists(), "{test_env}");
    });
}

#[test]
fn exec_says_what_was_denied_also_where_the_command_succeeds_and_names_its_option() {
    let test_env = TestEnvironment::usual();
    test_env.write("sockets.sh", SOCKETS);
    let line = "bash sockets.sh | tail -n 1";
    let run = Run::of(test_env.exec(&["-c", line]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.stderr,
        format!(
            "carrel: denied 41 times: {DENIED}; policy.toml: network = \"loopback\"; or --network loopback\n"
        )
    );
    let json = test_env.run(&["-c", line]).json;
    let facts: Vec<_> = json["denials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|denial| (denial["count"].as_u64(), denial["hint"].as_str()))
        .collect();
    let option = Some("--network loopback");
    assert_eq!(facts, [(Some(21), option), (Some(20), option)], "{json}");
}
