//! Compiler diagnostics about changed Rust and Go files, with the real compilers.

use std::time::{Duration, Instant};

use carrel_tools::{CallOptions, Interface, Owner, Session};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::machine::{bare, with_go};
use super::{LOCK, MANIFEST};
use crate::test_environment::{Setting, TestEnvironment, object};

/// The time for feedback, and the rest of an edit on a busy machine.
const EDIT_TIME: Duration = Duration::from_secs(5);

/// A check on a busy machine, from nothing.
const CHECK_TIME: Duration = Duration::from_mins(2);

const CHECK: &str = "post-edit check (cargo check -p probe)";

fn rust() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("Cargo.toml", MANIFEST);
    test_env.put("Cargo.lock", LOCK);
    test_env.put(
        "src/lib.rs",
        "//! Probe.\n\npub mod other;\n\n/// One.\npub fn one() -> i32 {\n    1\n}\n",
    );
    test_env.put(
        "src/other.rs",
        "//! Other.\n\n/// Two.\npub fn two() -> i32 {\n    crate::one() + 1\n}\n",
    );
    test_env
}

fn go() -> TestEnvironment {
    let test_env = with_go();
    test_env.put("go.mod", "module example.com/probe\n\ngo 1.19\n");
    test_env.put("a.go", "package probe\n\n// One is one.\nfunc One() int {\n\treturn 1\n}\n");
    test_env.put("b/b.go", "package b\n\n// Two is two.\nfunc Two() int {\n\treturn 2\n}\n");
    test_env
}

/// Calls a tool as an agent over stdio does, and returns its text.
async fn call(test_env: &TestEnvironment, tool: &str, arguments: Value) -> String {
    let options = CallOptions::new(Interface::Stdio);
    let answer = test_env.registry.call(&test_env.session, tool, object(arguments), options).await;
    assert!(!answer.is_error, "{tool}: {}", answer.text());
    answer.text()
}

/// Edits a file, and returns the reply, which has to come in time.
async fn edit(test_env: &TestEnvironment, path: &str, from: &str, to: &str) -> String {
    let edit = json!({ "file_path": path, "old_string": from, "new_string": to });
    let began = Instant::now();
    let text = call(test_env, "Edit", edit).await;
    assert!(began.elapsed() < EDIT_TIME, "{:?}: {text}", began.elapsed());
    text
}

/// Returns the findings of an edit: those of its reply, or those of the first later reply that has them.
async fn findings(test_env: &TestEnvironment, reply: String) -> String {
    let (_, feedback) = reply.split_once("post-edit check").unwrap_or((&reply, ""));
    if !feedback.contains("still checking") {
        return feedback.to_owned();
    }
    let deadline = Instant::now() + CHECK_TIME;
    loop {
        let text = call(test_env, "Glob", json!({ "pattern": "*.toml" })).await;
        if let Some((_, late)) = text.split_once("post-edit check") {
            assert!(!late.contains("still checking"), "{text}");
            return late.to_owned();
        }
        assert!(Instant::now() < deadline, "no findings");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_an_edit_makes_is_reported_and_gone_when_it_is_mended() {
    let test_env = rust();
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    let reply = edit(&test_env, "src/lib.rs", "    1\n", "    missing\n").await;
    let found = findings(&test_env, reply).await;
    assert!(found.contains("src/lib.rs:7:5:E0425: cannot find value `missing`"), "{found}");
    let again = call(&test_env, "Glob", json!({ "pattern": "*.toml" })).await;
    assert!(!again.contains("post-edit"), "it is delivered once: {again}");

    let mended =
        edit(&test_env, "src/lib.rs", "    missing\n", "    let unused = 2;\n    1\n").await;
    let found = findings(&test_env, mended).await;
    assert!(found.contains("src/lib.rs:7:9:unused_variables: unused variable"), "{found}");
    assert!(!found.contains("E0425"), "{found}");
    let clean = edit(&test_env, "src/lib.rs", "    let unused = 2;\n", "").await;
    let found = findings(&test_env, clean).await;
    assert!(!found.contains("lib.rs"), "{found}");
    assert!(!test_env.has("target"), "the build directory is not in the tree");
    assert_eq!(test_env.get("Cargo.lock"), LOCK);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_elsewhere_are_shown_if_the_edit_made_them_and_counted_if_not() {
    let test_env = rust();
    let one = |n: u32| format!("pub fn f{n}() -> i32 {{\n    none{n}\n}}\n");
    let broken = (0..40).map(one).collect::<Vec<_>>().concat();
    test_env.put("src/broken.rs", broken);
    let library = test_env.get("src/lib.rs") + "pub mod broken;\n";
    test_env.put("src/lib.rs", library);
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    let reply = edit(&test_env, "src/lib.rs", "/// One.", "/// Uno.").await;
    let found = findings(&test_env, reply).await;
    assert!(!found.contains("none3"), "it drowns the edit: {found}");

    let reply = edit(&test_env, "src/lib.rs", "one() -> i32", "one() -> &'static str").await;
    let found = findings(&test_env, reply).await;
    let (own, others) = found.split_once("errors in other files since the edit:").expect(&found);
    assert!(own.contains("src/lib.rs:"), "{found}");
    assert!(others.contains("src/other.rs:5:"), "{found}");
    assert!(others.contains("(40 other errors, not known to come from the edit)"), "{found}");
    assert!(!found.contains("none3"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn go_vet_reports_the_package_that_was_changed() {
    let test_env = go();
    call(&test_env, "Read", json!({ "file_path": "a.go" })).await;
    test_env.put("b/b.go", "package b\n\nfunc Two() int { return none }\n");
    let reply = edit(&test_env, "a.go", "return 1", "return missing").await;
    let found = findings(&test_env, reply).await;
    // The words depend on the version of Go.
    assert!(found.contains("a.go:5:9:error: und") && found.contains(": missing"), "{found}");
    assert!(!found.contains("none"), "another package: {found}");
    let reply = edit(&test_env, "a.go", "return missing", "return 2").await;
    let found = findings(&test_env, reply).await;
    assert!(!found.contains("a.go"), "{found}");
    let patch = "--- a/a.go\n+++ b/a.go\n@@ -4,3 +4,4 @@\n func One() int {\n+\tunused := 1\n \treturn 2\n }\n";
    let reply = call(&test_env, "ApplyPatch", json!({ "patch": patch })).await;
    let found = findings(&test_env, reply).await;
    assert!(found.contains("a.go:5:2:") && found.contains("unused"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_a_later_change_made_old_is_not_delivered() {
    let test_env = rust();
    // The first check takes seconds, so that its result is late.
    test_env.put("build.rs", SLOW);
    call(&test_env, "Write", json!({ "file_path": "src/new.rs", "content": "" })).await;
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    let reply = edit(&test_env, "src/lib.rs", "    1\n", "    missing\n").await;
    assert!(
        reply.contains(&format!("{CHECK}: still checking; the next reply has its findings")),
        "{reply}"
    );
    // Changed by another hand while it is checked.
    let mended = test_env.get("src/lib.rs").replace("missing", "7");
    test_env.put("src/lib.rs", mended);
    let found = findings(&test_env, reply).await;
    assert!(found.contains("no findings in the changed files"), "{found}");
}

/// A build script that takes longer than an edit waits.
const SLOW: &str = "fn main() { std::thread::sleep(std::time::Duration::from_secs(4)); }\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_findings_of_two_edits_come_together_and_once() {
    let test_env = rust();
    test_env.put("build.rs", SLOW);
    for path in ["src/lib.rs", "src/other.rs"] {
        call(&test_env, "Read", json!({ "file_path": path })).await;
    }
    let first = edit(&test_env, "src/lib.rs", "    1\n", "    missing\n").await;
    assert!(first.contains("still checking"), "{first}");
    let second = edit(&test_env, "src/other.rs", "crate::one()", "absent").await;
    let found = findings(&test_env, second).await;
    for line in ["src/lib.rs:7:5:E0425", "src/other.rs:5:5:E0425"] {
        assert_eq!(found.matches(line).count(), 1, "{found}");
    }
    let later = call(&test_env, "Glob", json!({ "pattern": "*.toml" })).await;
    assert!(!later.contains("post-edit"), "{later}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_another_session_delays_findings_and_does_not_lose_them() {
    let (test_env, marker) = endless();
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    until(&marker, 1).await;
    let mine = edit(&test_env, "src/lib.rs", "    1\n", "    missing\n");
    let other = async {
        // The check of the first edit is under way, in place of the one that reading started.
        let checks = || {
            let jobs = test_env.registry.toolbox().jobs.list();
            jobs.iter().filter(|job| job.name().contains("cargo check")).count()
        };
        while checks() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        until(&marker, 1).await;
        let session = Session::new("other");
        let arguments = object(json!({ "file_path": "src/new.rs", "content": "//! New.\n" }));
        let options = CallOptions::new(Interface::Stdio);
        let answer = test_env.registry.call(&session, "Write", arguments, options).await;
        test_env.put("build.rs", "fn main() {}\n");
        session.kill_jobs().await;
        answer
    };
    let (mine, other) = tokio::join!(mine, other);
    assert!(mine.contains("still checking"), "{mine}");
    assert!(other.text().contains("still checking"), "{other:?}");
    let found = findings(&test_env, mine).await;
    assert!(found.contains("src/lib.rs:7:5:E0425"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_without_a_lock_file_is_left_alone_and_named_once() {
    let test_env = rust();
    std::fs::remove_file(test_env.path("main/Cargo.lock")).unwrap();
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    let reply = edit(&test_env, "src/lib.rs", "/// One.", "/// Uno.").await;
    let found = findings(&test_env, reply).await;
    assert!(found.contains("could not run: Cargo.lock is missing or out of date"), "{found}");
    let reply = edit(&test_env, "src/lib.rs", "/// Uno.", "/// One.").await;
    assert!(!reply.contains("Cargo.lock"), "said once: {reply}");
    assert!(!test_env.has("Cargo.lock") && !test_env.has("target"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_for_one_request_is_not_promised_a_later_reply() {
    let (test_env, marker) = endless();
    let session = Session::for_request(Owner::new("someone"), "request");
    let arguments = object(json!({ "file_path": "src/new.rs", "content": "//! New.\n" }));
    let options = CallOptions::new(Interface::Http);
    let answer = test_env.registry.call(&session, "Write", arguments, options).await;
    assert!(answer.text().contains("still checking; run_typecheck has its findings"), "{answer:?}");
    test_env.registry.toolbox().jobs.stop_all().await;
    until(&marker, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_toolchain_an_edit_says_nothing() {
    let test_env = bare();
    test_env.put("Cargo.toml", MANIFEST);
    test_env.put("src/lib.rs", "//! Probe.\n");
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    let reply = edit(&test_env, "src/lib.rs", "Probe", "Other").await;
    assert!(!reply.contains("post-edit check"), "{reply}");
}

/// A project whose check never ends by itself, and the marker in the command lines of its processes.
fn endless() -> (TestEnvironment, String) {
    let test_env = rust();
    let marker = format!("{}.5", 1_000_000 + std::process::id());
    let script = format!(
        "fn main() {{ std::process::Command::new(\"sleep\").arg(\"{marker}\").status().unwrap(); }}\n"
    );
    test_env.put("build.rs", script);
    (test_env, marker)
}

/// Counts the processes of the machine with a marker in their command line.
fn processes(marker: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(marker)).count()
}

/// Waits until as many processes have the marker.
async fn until(marker: &str, count: usize) {
    let deadline = Instant::now() + CHECK_TIME;
    while processes(marker) != count {
        assert!(Instant::now() < deadline, "{} processes, not {count}", processes(marker));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_has_one_check_at_a_time_and_it_ends_with_the_session() {
    let (test_env, marker) = endless();
    call(&test_env, "Read", json!({ "file_path": "src/lib.rs" })).await;
    until(&marker, 1).await;
    for (from, to) in [("One", "Uno"), ("Uno", "Eins")] {
        let reply = edit(&test_env, "src/lib.rs", from, to).await;
        assert!(reply.contains("still checking"), "{reply}");
        until(&marker, 1).await;
    }
    test_env.session.kill_jobs().await;
    until(&marker, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_edit_leaves_no_check() {
    let (test_env, marker) = endless();
    let arguments = json!({ "file_path": "src/new.rs", "content": "//! New.\n" });
    let cancel = CancellationToken::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::new(Interface::Http) };
    let called = test_env.registry.call(&test_env.session, "Write", object(arguments), options);
    let cancelling = async {
        tokio::time::timeout(Duration::from_secs(1), until(&marker, 1)).await.ok();
        cancel.cancel();
    };
    tokio::join!(called, cancelling);
    until(&marker, 0).await;
    assert!(test_env.has("src/new.rs"), "the edit itself is done");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_starts_a_check_only_where_the_caller_may_run_programs() {
    let (test_env, marker) = endless();
    for interface in [Interface::Rest, Interface::Http] {
        let arguments = object(json!({ "file_path": "src/lib.rs" }));
        let options = CallOptions::new(interface);
        test_env.registry.call(&test_env.session, "Read", arguments, options).await;
    }
    assert_eq!(test_env.registry.toolbox().jobs.list().len(), 0);
    call(&test_env, "Read", json!({ "file_path": "build.rs" })).await;
    until(&marker, 1).await;
    test_env.session.kill_jobs().await;
    until(&marker, 0).await;
    let read_only = TestEnvironment::with(Setting {
        access: carrel_domain::WorkspaceAccess::ReadOnly,
        ..Setting::default()
    });
    read_only.put("Cargo.toml", MANIFEST);
    read_only.put("src/lib.rs", "//! Probe.\n");
    call(&read_only, "Read", json!({ "file_path": "src/lib.rs" })).await;
    assert_eq!(read_only.registry.toolbox().jobs.list().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_by_structure_is_checked_like_an_edit() {
    let test_env = go();
    call(&test_env, "Read", json!({ "file_path": "a.go" })).await;
    let edit = json!({ "op": "replace", "rule": "return 1", "replacement": "return missing" });
    let mut text = call(&test_env, "code_edit", json!({ "path": "a.go", "edits": [edit] })).await;
    let begun = Instant::now();
    // A check that takes longer comes with a later reply. Versions of Go have different words for it.
    while !text.contains(": missing") && begun.elapsed() < CHECK_TIME {
        text = call(&test_env, "Read", json!({ "file_path": "b/b.go" })).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(text.contains("post-edit check (go vet") && text.contains(": missing"), "{text}");
}
