use serde_json::json;

use super::Base;
use crate::interfaces::{Interface, Stdin, ToolSession};
use crate::test_environment::{Caller, TestEnvironment};

fn session(base: &Base, interface: Interface) -> Box<dyn ToolSession> {
    let workspace = base.path.display().to_string();
    let options = ["--workspace", &workspace, "--tools", "default,snapshot", "--tier", "full"];
    interface.open(&base.test_env, &options)
}

/// The names of the forks in the reply of `fork`.
fn forks(session: &mut dyn ToolSession, count: u8) -> Vec<String> {
    let made = session.call("fork", json!({ "count": count }));
    assert!(!made.is_error, "{made:?}");
    let names = made.structured["forks"].as_array().unwrap().iter();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_forks_its_workspace_works_in_the_forks_and_promotes_one() {
    Base::each(|base| {
        for interface in [Interface::Stdio, Interface::Http] {
            let test_env = &base.test_env;
            base.line("X", "echo one > a");
            let mut session = session(base, interface);
            let names = forks(&mut *session, 2);
            assert_eq!(names, ["X.fork-1", "X.fork-2"], "{test_env}");
            for (name, text) in [("X.fork-1", "first"), ("X.fork-2", "second")] {
                session.call("Read", json!({ "workspace": name, "file_path": "a" })).ok();
                let edit = json!({ "workspace": name, "file_path": "a", "old_string": "one", "new_string": text });
                session.call("Edit", edit).ok();
                let line = json!({ "workspace": name, "command": "cat a; echo more > by-command" });
                assert!(session.call("Bash", line).ok().contains(text), "{test_env}");
            }
            assert!(session.call("Read", json!({ "file_path": "a" })).ok().contains("one"));
            let write = json!({ "file_path": "late", "content": "late\n" });
            assert_eq!(
                session.call("Write", write).code(),
                Some("E_WORKSPACE_FROZEN"),
                "{test_env}"
            );

            let diff = session.call("fork_diff", json!({ "fork": "X.fork-1" })).ok();
            assert!(diff.contains("-one\n+first\n") && diff.contains("b/by-command"), "{diff}");
            let against = json!({ "fork": "X.fork-1", "against": "X.fork-2" });
            let diff = session.call("fork_diff", against).ok();
            assert!(diff.contains("-second\n+first\n") && !diff.contains("by-command"), "{diff}");
            let unknown = session.call("fork_diff", json!({ "fork": "Y" }));
            assert!(unknown.refused().1.contains("X.fork-1, X.fork-2"), "{unknown:?}");

            let job = json!({ "workspace": "X.fork-1", "command": "sleep 60", "run_in_background": true });
            let job = session.call("Bash", job);
            let busy = session.call("fork_promote", json!({ "fork": "X.fork-1" }));
            assert_eq!(busy.code(), Some("E_WORKSPACE_BUSY"), "{test_env}: {busy:?}");
            let id = job.structured["shell_id"].as_str().unwrap();
            session.call("KillShell", json!({ "workspace": "X.fork-1", "shell_id": id })).ok();
            let promoted = session.call("fork_promote", json!({ "fork": "X.fork-1" }));
            let text = promoted.clone().ok();
            assert!(text.contains("ended X.fork-2: snapshot fork-X.fork-2"), "{test_env}: {text}");
            assert!(session.call("Read", json!({ "file_path": "a" })).ok().contains("first"));
            let gone = session.call("Read", json!({ "workspace": "X.fork-1", "file_path": "a" }));
            assert_eq!(gone.code(), Some("E_UNKNOWN_WORKSPACE"), "{test_env}: {gone:?}");
            let write = json!({ "file_path": "thawed", "content": "thawed\n" });
            session.call("Write", write).ok();
            drop(session);
            base.tool("X", "snapshot_delete", &json!({ "name": "fork-X.fork-2" }));
            base.line("X", "rm thawed by-command");
        }
    });
}

#[test]
fn a_fork_that_is_thrown_away_thaws_its_base_and_one_of_an_earlier_session_is_reached() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let mut first = session(base, Interface::Stdio);
        forks(&mut *first, 2);
        let line = json!({ "workspace": "X.fork-2", "command": "echo kept > a" });
        first.call("Bash", line).ok();
        let left = first.call("fork_end", json!({ "fork": "X.fork-1" })).ok();
        assert!(left.contains("left: X.fork-2"), "{test_env}: {left}");
        drop(first);
        let mut second = session(base, Interface::Stdio);
        let read = json!({ "workspace": "X.fork-2", "file_path": "a" });
        assert!(second.call("Read", read).ok().contains("kept"), "{test_env}");
        let left = second.call("fork_end", json!({ "fork": "X.fork-2" })).ok();
        assert!(left.contains("can be changed again"), "{test_env}: {left}");
        second.call("Write", json!({ "file_path": "thawed", "content": "x\n" })).ok();
        assert_eq!(base.keys(), ["X"], "{test_env}");
    });
}

#[test]
fn a_directory_of_an_operator_has_no_forks_and_the_refusal_says_what_has() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace().display().to_string();
    let options = ["--workspace", &workspace, "--tools", "snapshot"];
    let mut session = Interface::Stdio.open(&test_env, &options);
    let refused = session.call("fork", json!({}));
    let (code, text) = refused.refused();
    assert_eq!(code, "E_FORK_REFUSED", "{text}");
    assert!(text.contains("carrel workspace create NAME --root DIR"), "{text}");
}

#[test]
fn the_definitions_of_forks_cost_a_model_little() {
    let test_env = TestEnvironment::new(Caller::User, "full");
    let mut command = test_env.carrel();
    command.args(["mcp", "--tools", "snapshot", "--workspace"]).arg(test_env.workspace());
    let tools = Stdin::start(command).tools();
    let forks: Vec<_> =
        tools.iter().filter(|tool| tool["name"].as_str().unwrap().starts_with("fork")).collect();
    assert_eq!(forks.len(), 4, "{forks:?}");
    // Four bytes and a half for a token, as in the budget of all definitions.
    let bytes = json!(forks).to_string().len();
    assert!(bytes < 400 * 9 / 2, "{bytes} bytes: {forks:?}");
}
