//! Sessions and their owners: who finds a command, who may change a file, and within which roots.

use std::sync::Arc;

use carrel_domain::Code;
use carrel_tools::{CallOptions, ClientRoots, Interface, JobPhase, Owner, Session, ToolResponse};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment, object};

fn owner(name: &str) -> Owner {
    Owner::new(name)
}

fn code(response: &ToolResponse) -> Option<&str> {
    response.structured["error"]["code"].as_str()
}

async fn background(test_env: &TestEnvironment, session: &Arc<Session>, rest: Value) -> String {
    let mut arguments = rest;
    arguments["command"] = json!("echo ready; sleep 1000");
    arguments["run_in_background"] = json!(true);
    let started = test_env.call_as(session, "Bash", arguments).await;
    assert!(!started.is_error, "{}", started.text());
    started.structured["shell_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_found_by_its_id_in_any_session_of_its_owner_and_in_no_other() {
    let test_env = TestEnvironment::new();
    let one = Session::of_owner(owner("one"), "a");
    let id = background(&test_env, &one, json!({})).await;
    assert!(id.starts_with("job_") && id.len() == 30, "{id}");
    let job = json!({ "shell_id": id, "wait_seconds": 5 });
    for session in [Session::of_owner(owner("one"), "b"), Session::for_request(owner("one"), "c")] {
        let output = test_env.call_as(&session, "BashOutput", job.clone()).await;
        assert!(!output.is_error, "{}", output.text());
    }
    let strangers = [
        Session::of_owner(owner("other"), "a"),
        Session::for_request(owner("other"), "a"),
        // An id that reads like the other's owner is not the owner.
        Session::of_owner(owner("two"), "one"),
    ];
    for session in &strangers {
        for tool in ["BashOutput", "KillShell", "watch_process_events"] {
            let arguments = json!({ "shell_id": id });
            let refused = test_env.call_as(session, tool, arguments).await;
            let unknown = format!("unknown shell_id: {id}");
            assert_eq!((code(&refused), refused.text()), (Some("E_JOB_NOT_FOUND"), unknown));
        }
    }
    let killed = test_env.call_as(&one, "KillShell", json!({ "shell_id": id })).await;
    assert_eq!(killed.structured["was_running"], true, "{}", killed.text());
    for event in test_env.events() {
        assert!(!event.to_string().contains(&id), "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_counts_for_its_workspace_alone() {
    let names = &["primary", "extension"];
    let test_env = TestEnvironment::with(Setting { names, ..Setting::default() });
    let session = &test_env.session;
    let id = background(&test_env, session, json!({ "workspace": "primary" })).await;
    let elsewhere = json!({ "shell_id": id, "workspace": "extension" });
    assert_eq!(code(&test_env.call("KillShell", elsewhere).await), Some("E_JOB_NOT_FOUND"));
    // A session whose client has the other one open does not find it either.
    let narrowed = Session::of_owner(session.owner().clone(), "narrowed");
    let roots = vec![format!("file://{}", test_env.path("extension").display())];
    narrowed.narrow(&test_env.registry.toolbox().workspaces, &ClientRoots::Listed(roots));
    let refused = test_env.call_as(&narrowed, "KillShell", json!({ "shell_id": id })).await;
    assert_eq!(code(&refused), Some("E_JOB_NOT_FOUND"));
    test_env.text("KillShell", json!({ "shell_id": id })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_all_sessions_of_an_owner_count_together() {
    let test_env = TestEnvironment::new();
    for number in 0..16 {
        let session = Session::for_request(owner("one"), format!("request:{number}"));
        background(&test_env, &session, json!({})).await;
    }
    let more = json!({ "command": "true", "run_in_background": true });
    let session = Session::for_request(owner("one"), "more");
    let refused = test_env.call_as(&session, "Bash", more.clone()).await;
    let text = "you already have 16 running jobs; one has to end before another starts";
    assert_eq!((code(&refused), refused.text().as_str()), (Some("E_TOO_MANY_JOBS"), text));
    let other = Session::for_request(owner("other"), "more");
    assert!(!test_env.call_as(&other, "Bash", more).await.is_error);
}

/// Tasks and resources of MCP find jobs through the registry.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_as_a_task_is_found_by_owner_and_workspace_alone() {
    let names = &["primary", "extension"];
    let test_env = TestEnvironment::with(Setting { names, ..Setting::default() });
    let state = tempfile::tempdir().unwrap();
    let registry = &test_env.registry;
    registry.toolbox().keep_jobs(state.path().join("jobs"));
    let one = Session::for_request(owner("one"), "a");
    let id = background(&test_env, &one, json!({ "workspace": "primary" })).await;
    // It has printed its line before it is ended.
    let first_line = json!({ "shell_id": id, "wait_seconds": 60, "workspace": "primary" });
    let printed = test_env.call_as(&one, "BashOutput", first_line).await;
    assert!(printed.text().contains("ready"), "{}", printed.text());
    let running = registry.job(&Session::for_request(owner("one"), "b"), &id).await.unwrap();
    assert!(matches!(running.phase, JobPhase::Running), "{running:?}");
    assert_eq!(running.command, "echo ready; sleep 1000");

    let narrowed = Session::of_owner(owner("one"), "narrowed");
    let roots = vec![format!("file://{}", test_env.path("extension").display())];
    narrowed.narrow(&registry.toolbox().workspaces, &ClientRoots::Listed(roots));
    let other = Session::for_request(owner("other"), "a");
    let strangers = [narrowed, other];
    let refused = |session: Arc<Session>, id: String| async move {
        let failures = [
            registry.job(&session, &id).await.map(|_| ()),
            registry.job_log(&session, &id, 0, 100).await.map(|_| ()),
            registry.end_job(&session, &id).await,
        ];
        failures.map(|failed| failed.unwrap_err().code)
    };
    for session in &strangers {
        let codes = refused(Arc::clone(session), id.clone()).await;
        assert_eq!(codes, [Code::JobNotFound; 3]);
    }
    // The same holds for the record of a job that is in no memory any more.
    registry.end_job(&one, &id).await.unwrap();
    for _ in 0..17 {
        let short = json!({ "command": "true", "run_in_background": true, "workspace": "primary" });
        let started = test_env.call_as(&one, "Bash", short).await;
        let output = json!({ "shell_id": started.structured["shell_id"], "wait_seconds": 9 });
        test_env.call_as(&one, "BashOutput", output).await;
    }
    let stored = registry.job(&one, &id).await.unwrap();
    assert!(matches!(stored.phase, JobPhase::Killed), "{stored:?}");
    let log = registry.job_log(&one, &id, 0, 100).await.unwrap();
    assert_eq!((log.text.as_str(), log.next, log.log_bytes), ("ready\n", 6, 6));
    for session in &strangers {
        let codes = refused(Arc::clone(session), id.clone()).await;
        assert_eq!(codes, [Code::JobNotFound; 3]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_kills_what_it_started_and_nothing_else() {
    let test_env = TestEnvironment::new();
    let sessions = ["a", "b"].map(|id| Session::of_owner(owner("one"), id));
    let ended = background(&test_env, &sessions[0], json!({})).await;
    let kept = background(&test_env, &sessions[1], json!({})).await;
    sessions[0].kill_jobs().await;
    let status = async |id: &str| {
        let output = test_env.call_as(&sessions[1], "BashOutput", json!({ "shell_id": id })).await;
        output.structured["ended"].clone()
    };
    assert_eq!((status(&ended).await, status(&kept).await), (json!(true), json!(false)));
}

/// Calls a tool in a request of its own.
async fn request(test_env: &TestEnvironment, tool: &str, arguments: Value) -> ToolResponse {
    let session = Session::for_request(owner("one"), "request");
    let options = CallOptions::new(Interface::Http);
    test_env.registry.call(&session, tool, object(arguments), options).await
}

#[tokio::test]
async fn the_hash_of_a_file_stands_for_having_read_it() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\ntwo\n");
    let read = request(&test_env, "Read", json!({ "file_path": "a.txt", "limit": 1 })).await;
    let hash = read.structured["hash"].as_str().unwrap().to_owned();
    assert_eq!(hash.len(), 16);
    assert!(read.text().ends_with(&format!("\n[hash {hash}]\n")), "{}", read.text());

    let edit = |old: &str, new: &str| json!({ "file_path": "a.txt", "old_string": old, "new_string": new });
    let write = json!({ "file_path": "a.txt", "content": "all\n" });
    let multi =
        json!({ "file_path": "a.txt", "edits": [{ "old_string": "one", "new_string": "1" }] });
    let patch = json!({ "patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n" });
    let hint = " and pass its hash as expected_hash";
    for (tool, doing, arguments) in [
        ("Edit", "edit", edit("one", "1")),
        ("MultiEdit", "edit", multi.clone()),
        ("Write", "overwrite", write.clone()),
        ("ApplyPatch", "patch", patch.clone()),
    ] {
        // A refused edit shows what reading would, the hash included.
        let lines = match doing {
            "edit" => format!("\n[it would change these lines]\n1\tone\n[hash {hash}]\n"),
            _ => String::new(),
        };
        // The lines of a patch stand for having read it.
        if tool != "ApplyPatch" {
            let refused = request(&test_env, tool, arguments.clone()).await;
            let text = format!("refusing to {doing} a.txt: Read it first{hint}{lines}");
            assert_eq!((code(&refused), refused.text()), (Some("E_NOT_READ"), text), "{tool}");
        }
        let mut stale = arguments;
        stale["expected_hash"] = json!("0123456789abcdef");
        if tool == "ApplyPatch" {
            stale = json!({ "patch": patch["patch"], "expected_hashes": { "a.txt": "0123" } });
        }
        let refused = request(&test_env, tool, stale).await;
        let text = format!(
            "refusing to {doing} a.txt: it has changed since it was read; Read it again{lines}"
        );
        assert_eq!(
            (code(&refused), refused.text()),
            (Some("E_CHANGED_SINCE_READ"), text),
            "{tool}"
        );
        let told = refused.structured.to_string().contains(&hash);
        assert_eq!(told, doing == "edit", "the hash is told with the lines, and never without");
    }
    assert_eq!(test_env.get("a.txt"), "one\ntwo\n");

    // Each reply has the hash for the next request.
    let mut hash = hash;
    for (tool, mut arguments, expected) in [
        ("Edit", edit("one", "uno"), "uno\ntwo\n"),
        (
            "MultiEdit",
            json!({ "file_path": "a.txt", "edits": [{ "start_line": 1, "new_string": "one\n" }] }),
            "one\ntwo\n",
        ),
        ("ApplyPatch", patch.clone(), "1\ntwo\n"),
        ("Write", write.clone(), "all\n"),
    ] {
        arguments[if tool == "ApplyPatch" { "expected_hashes" } else { "expected_hash" }] =
            if tool == "ApplyPatch" { json!({ "a.txt": hash }) } else { json!(hash) };
        let done = request(&test_env, tool, arguments).await;
        assert!(!done.is_error, "{tool}: {}", done.text());
        assert_eq!(test_env.get("a.txt"), expected, "{tool}");
        let facts =
            if tool == "ApplyPatch" { &done.structured["changed"][0] } else { &done.structured };
        hash = facts["hash"].as_str().unwrap().to_owned();
        assert!(done.text().contains(&format!("[hash {hash}")), "{tool}: {}", done.text());
    }
    let missing = json!({ "file_path": "new.txt", "content": "x", "expected_hash": hash });
    let refused = request(&test_env, "Write", missing).await;
    let text =
        "refusing to overwrite new.txt: it no longer exists; leave out expected_hash to create it";
    assert_eq!((code(&refused), refused.text().as_str()), (Some("E_CHANGED_SINCE_READ"), text));
}

#[tokio::test]
async fn a_lasting_session_shows_no_hash_and_takes_one() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\n");
    let other = Session::new("other");
    let read = test_env.call_as(&other, "Read", json!({ "file_path": "a.txt" })).await;
    assert_eq!(read.text(), "1\tone\n");
    let hash = &read.structured["hash"];
    let edit = |old: &str, new: &str| json!({ "file_path": "a.txt", "old_string": old, "new_string": new });
    let (code, text) = test_env.refusal("Edit", edit("nothing", "two")).await;
    assert_eq!(code, "E_NOT_READ");
    assert!(text.starts_with("refusing to edit a.txt: Read it first\n"), "{text}");
    let mut first = edit("one", "two");
    first["expected_hash"] = hash.clone();
    test_env.text("Edit", first).await;
    // The session knows the file now.
    test_env.text("Edit", edit("two", "three")).await;
    test_env.text("Write", json!({ "file_path": "a.txt", "content": "four\n" })).await;
    assert_eq!(test_env.get("a.txt"), "four\n");
}
