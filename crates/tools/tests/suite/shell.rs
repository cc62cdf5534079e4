//! Commands: foreground, background, watched.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

async fn bash(test_env: &TestEnvironment, command: &str) -> String {
    test_env.text("Bash", json!({ "command": command, "description": "test" })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_shows_both_streams_and_its_exit_code_unless_it_is_zero() {
    let test_env = TestEnvironment::new();
    assert_eq!(bash(&test_env, "echo hi").await, "hi\n");
    assert_eq!(bash(&test_env, "printf no-end").await, "no-end\n");
    assert_eq!(bash(&test_env, "echo out; echo err >&2; exit 7").await, "out\nerr\nexit: 7\n");
    assert_eq!(bash(&test_env, "pwd").await, format!("{}\n", test_env.path("main").display()));
    assert_eq!(bash(&test_env, "true").await, "no output, exit 0\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_everything_and_keeps_the_output() {
    let test_env = TestEnvironment::new();
    let begun = Instant::now();
    let command = "echo before; (setsid sleep 30 &) ; sleep 30 & wait";
    let text = test_env.text("Bash", json!({ "command": command, "timeout": 1 })).await;
    assert!(text.starts_with("before\nbash: timed out after 1s\n"), "{text}");
    assert!(text.ends_with("exit: 124\n"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_left_running_is_reported_and_its_output_kept() {
    let test_env = TestEnvironment::new();
    let begun = Instant::now();
    let answer = test_env.call("Bash", json!({ "command": "sleep 60 & echo ok" })).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(answer.text().starts_with("ok\n"), "{}", answer.text());
    assert_eq!(answer.structured["left_running"], 1);
    assert_eq!(answer.structured["exit_code"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_keeps_both_ends_and_all_of_it_can_be_read() {
    let test_env = TestEnvironment::new();
    let command = "for i in $(seq 1 40000); do echo line $i; done";
    let answer = test_env.call("Bash", json!({ "command": command })).await;
    let text = answer.text();
    assert!(text.starts_with("line 1\n") && text.contains("line 40000\n"), "both ends");
    assert!(text.contains("... (output truncated, "), "{}", &text[text.len() - 300..]);
    assert!(text.len() < 110 * 1024, "{}", text.len());
    let id = answer.structured["shell_id"].as_str().unwrap().to_owned();
    let (mut cursor, mut all) = (json!(0), String::new());
    loop {
        let part = test_env.call("BashOutput", json!({ "shell_id": id, "cursor": cursor })).await;
        let text = part.text();
        all.push_str(text.split_once(" ---\n").unwrap().1);
        cursor = part.structured["next_cursor"].clone();
        if part.structured["more"] == false {
            break;
        }
    }
    let expected = (1..=40000).map(|number| format!("line {number}"));
    assert!(all.lines().eq(expected), "{} bytes", all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn privilege_commands_are_refused_in_command_position_only() {
    let test_env = TestEnvironment::new();
    for command in [
        "sudo ls",
        "su -l",
        "shutdown now",
        "true && reboot",
        "echo x | halt",
        "(mount)",
        "mkfs.ext4 x",
    ] {
        let (code, text) = test_env.refusal("Bash", json!({ "command": command })).await;
        assert_eq!(code, "E_COMMAND_REFUSED", "{command}: {text}");
    }
    for command in [
        "echo sudo",
        "ls pseudo || true",
        "echo 'fix; mount'",
        "echo x > mount",
        "test -f /etc/sudoers || true",
    ] {
        let answer = test_env.call("Bash", json!({ "command": command })).await;
        assert!(!answer.is_error, "{command}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_server_are_in_no_command() {
    let test_env = TestEnvironment::with(Setting {
        secrets: &[("DB", "hunter2-value")],
        ..Setting::default()
    });
    let text = bash(&test_env, "env; cat /proc/*/environ | tr '\\0' '\\n'").await;
    assert!(!text.contains("hunter2") && !text.contains("CARREL_SECRET"), "{text}");
    assert_eq!(test_env.text("secret", json!({ "name": "db" })).await, "hunter2-value");
    assert_eq!(bash(&test_env, "echo hunter2-value").await, "[masked secret db]\n");
    assert_eq!(test_env.text("secrets_available", json!({})).await, "db");
    let (code, text) = test_env.refusal("secret", json!({ "name": "nope" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_SECRET_UNKNOWN", "unknown secret: nope (available: db)")
    );
    let (code, text) = test_env.refusal("secret", json!({ "name": "../x" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_INVALID_ARGUMENTS", "invalid secret name: ../x")
    );
}

async fn background(test_env: &TestEnvironment, command: &str) -> String {
    let answer =
        test_env.call("Bash", json!({ "command": command, "run_in_background": true })).await;
    let id = answer.structured["shell_id"].as_str().unwrap().to_owned();
    assert_eq!(answer.text(), format!("shell_id: {id}\nstarted in background: {command}\n"));
    id
}

async fn until_over(test_env: &TestEnvironment, id: &str) -> Value {
    for _ in 0..200 {
        let answer = test_env.call("BashOutput", json!({ "shell_id": id, "cursor": 0 })).await;
        tokio::time::sleep(Duration::from_millis(25)).await;
        if answer.structured["ended"] == true {
            return json!({ "text": answer.text(), "facts": answer.structured });
        }
    }
    panic!("it does not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_is_read_to_its_very_end_and_only_new_output_by_default() {
    let test_env = TestEnvironment::new();
    let id = background(&test_env, "echo ready; sleep 0.2; echo late").await;
    let over = until_over(&test_env, &id).await;
    let text = over["text"].as_str().unwrap();
    assert!(text.contains("status: completed (exit 0)\n"), "{text}");
    assert!(text.ends_with(" ---\nready\nlate\n"), "{text}");
    let again = test_env.text("BashOutput", json!({ "shell_id": id })).await;
    let nothing = "--- output (bytes 11–11 of 11) ---\nno more output; it has ended\n";
    assert!(again.ends_with(nothing), "{again}");
    let filtered =
        test_env.text("BashOutput", json!({ "shell_id": id, "cursor": 0, "filter": "^la" })).await;
    assert!(filtered.ends_with(" ---\nlate\n"), "{filtered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_finds_a_line_anywhere_in_a_long_log() {
    let test_env = TestEnvironment::new();
    let command = "seq 1 400000; echo failed at 4711; exit 3";
    let ran = test_env.call("Bash", json!({ "command": command })).await;
    let (text, id) = (ran.text(), ran.structured["shell_id"].as_str().unwrap().to_owned());
    assert!(text.len() < 1_500 && text.contains("\nfailed at 4711\n"), "{} bytes", text.len());
    assert!(text.contains(&format!("BashOutput shell_id={id} cursor=500 reads on")), "{text}");
    let asked = test_env.call("Bash", json!({ "command": command, "max_bytes": 30_000 })).await;
    assert!(asked.text().len() > 29_000);
    let find = json!({ "shell_id": id, "cursor": 0, "filter": "^(199999|4000|failed.*)$" });
    let found = test_env.text("BashOutput", find).await;
    assert!(found.ends_with(" ---\n4000\n199999\nfailed at 4711\n"), "{found}");
    let some = json!({ "shell_id": id, "cursor": 0, "filter": "0", "max_bytes": 1000 });
    let some = test_env.call("BashOutput", some).await;
    assert!(some.text().len() < 1300 && some.structured["more"] == true, "{}", some.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_is_not_forgotten_for_those_that_were_waited_for() {
    let test_env = TestEnvironment::new();
    let id = background(&test_env, "echo precious").await;
    until_over(&test_env, &id).await;
    for _ in 0..20 {
        bash(&test_env, "true").await;
    }
    let text = test_env.text("BashOutput", json!({ "shell_id": id, "cursor": 0 })).await;
    assert!(text.ends_with(" ---\nprecious\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_the_background_take_no_place_from_those_that_are_waited_for() {
    let test_env = TestEnvironment::new();
    let mut ids = Vec::new();
    for _ in 0..16 {
        ids.push(background(&test_env, "sleep 100").await);
    }
    let one_more = json!({ "command": "true", "run_in_background": true });
    let (code, text) = test_env.refusal("Bash", one_more.clone()).await;
    let expected = format!(
        "you already have 16 running jobs; one has to end before another starts; end one with \
         KillShell: {}",
        ids.join(", ")
    );
    assert_eq!((code.as_str(), text), ("E_TOO_MANY_JOBS", expected));
    assert_eq!(bash(&test_env, "echo here").await, "here\n");
    test_env.text("KillShell", json!({ "shell_id": ids[0] })).await;
    test_env.text("Bash", one_more).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_command_is_gone_with_all_it_started_and_then_unknown() {
    let test_env = TestEnvironment::new();
    let id = background(&test_env, "echo up; setsid sleep 100 & sleep 100").await;
    test_env.call("BashOutput", json!({ "shell_id": id, "wait_seconds": 5 })).await;
    let answer = test_env.call("KillShell", json!({ "shell_id": id })).await;
    assert_eq!(answer.text(), format!("killed: {id}\n--- last output ---\nup\n"));
    let (code, text) = test_env.refusal("BashOutput", json!({ "shell_id": id })).await;
    assert_eq!((code.as_str(), text), ("E_JOB_NOT_FOUND", format!("unknown shell_id: {id}")));
    let (code, _) = test_env.refusal("KillShell", json!({ "shell_id": "job_999" })).await;
    assert_eq!(code, "E_JOB_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_of_one_session_does_not_exist_in_another() {
    let test_env = TestEnvironment::new();
    let id = background(&test_env, "sleep 60").await;
    let other = carrel_tools::Session::new("other");
    let answer = test_env.call_as(&other, "KillShell", json!({ "shell_id": id })).await;
    assert!(answer.is_error);
    test_env.call("KillShell", json!({ "shell_id": id })).await;
}

async fn watched(test_env: &TestEnvironment, arguments: Value) -> String {
    let answer = test_env.call("watch_process", arguments).await;
    assert!(!answer.is_error, "{}", answer.text());
    answer.structured["shell_id"].as_str().unwrap().to_owned()
}

async fn events_at_end(test_env: &TestEnvironment, id: &str) -> (String, Value) {
    for _ in 0..400 {
        let answer = test_env.call("watch_process_events", json!({ "shell_id": id })).await;
        if answer.text().contains("  exited  exit=") {
            return (answer.text(), answer.structured);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it does not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_command_notes_errors_silence_and_its_end() {
    let test_env = TestEnvironment::new();
    let id = watched(
        &test_env,
        json!({ "command": "echo fine; echo 'panic: boom' >&2; echo note >&2; exit 3" }),
    )
    .await;
    let (text, facts) = events_at_end(&test_env, &id).await;
    assert_eq!(facts["events"].as_array().unwrap().len(), 3, "{text}");
    assert!(text.contains("  error  (matched \"^panic:\")  panic: boom\n"), "{text}");
    assert!(text.contains("  exited  exit=3\n"), "{text}");
    let later = test_env
        .text("watch_process_events", json!({ "shell_id": id, "since_event_id": 9999 }))
        .await;
    assert!(later.ends_with("--- events (0) ---\n"), "{later}");

    let quiet =
        watched(&test_env, json!({ "command": "echo 'panic: x' >&2", "error_patterns": [] })).await;
    assert_eq!(events_at_end(&test_env, &quiet).await.1["events"].as_array().unwrap().len(), 2);

    let idle =
        watched(&test_env, json!({ "command": "sleep 30", "idle_timeout_seconds": 1 })).await;
    let (text, _) = events_at_end(&test_env, &idle).await;
    assert!(text.contains("idle_timeout  no output for 1s (configured idle_timeout=1s)"), "{text}");

    let many = watched(&test_env, json!({
        "command": "for i in $(seq 1200); do echo Error: $i >&2; done", "error_patterns": ["^Error"],
    })).await;
    let (text, _) = events_at_end(&test_env, &many).await;
    assert!(text.contains("earlier events dropped (per-shell cap of 1024 reached)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_three_megabytes_does_not_stop_the_watch() {
    let test_env = TestEnvironment::new();
    let command = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'Error: after' >&2";
    let id = watched(&test_env, json!({ "command": command })).await;
    let (text, _) = events_at_end(&test_env, &id).await;
    assert!(text.contains("Error: after"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_watched_is_refused_by_name() {
    let test_env = TestEnvironment::new();
    let patterns: Vec<_> = (0..33).map(|number| number.to_string()).collect();
    let cases = [
        (json!({}), "command is required"),
        (
            json!({ "command": "x", "error_patterns": patterns }),
            "too many error_patterns (33 > 32)",
        ),
        (json!({ "command": "x", "error_patterns": ["a", ""] }), "error_patterns[1] is empty"),
        (
            json!({ "command": "x", "error_patterns": "a" }),
            "error_patterns: invalid type: string \"a\", expected a sequence",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(test_env.refusal("watch_process", arguments).await.1, expected);
    }
    let (_, text) = test_env
        .refusal("watch_process", json!({ "command": "x", "error_patterns": ["a", "("] }))
        .await;
    assert!(text.starts_with("error_patterns[1] \"(\" failed to compile: "), "{text}");
    let id = background(&test_env, "true").await;
    let (_, text) = test_env.refusal("watch_process_events", json!({ "shell_id": id })).await;
    assert_eq!(
        text,
        format!("shell_id {id} was not started by watch_process; use BashOutput instead")
    );
}

async fn run(test_env: &TestEnvironment, cmd: &str, args: &[&str]) -> Result<String, String> {
    let answer = test_env.call("shell_run", json!({ "cmd": cmd, "args": args })).await;
    if answer.is_error {
        return Err(answer.structured["error"]["code"].as_str().unwrap().to_owned());
    }
    Ok(answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_a_shell_keeps_to_the_table_of_the_reference() {
    let test_env = TestEnvironment::new();
    test_env.put("nested/note.txt", "note");
    test_env.put("README.md", "readme");
    std::fs::write(test_env.path("outside"), "not yours").unwrap();
    std::os::unix::fs::symlink(test_env.path("outside"), test_env.path("main/escape-link"))
        .unwrap();
    let inner = test_env.path("main/README.md").display().to_string();
    let passes: [(&str, &[&str], &str); 5] = [
        ("printf", &["ok"], "ok"),
        ("cat", &[&inner], "readme"),
        ("cat", &["nested/note.txt"], "note"),
        ("echo", &["--format=json/pretty"], "--format=json/pretty"),
        ("echo", &["hello", "&&", "echo", "nope"], "hello && echo nope"),
    ];
    for (cmd, args, expected) in passes {
        let text = run(&test_env, cmd, args).await.unwrap();
        assert!(
            text.starts_with("exit_code=0\n") && text.contains(expected),
            "{cmd} {args:?}: {text}"
        );
    }
    let refused: [(&str, &[&str]); 8] = [
        ("cat", &["/etc/hosts"]),
        ("cat", &["../../etc/passwd"]),
        ("cat", &["~/x"]),
        ("/bin/cat", &["README.md"]),
        ("~/bin/evil", &[]),
        ("env", &["OUT=/etc/passwd"]),
        ("env", &["OUT=~/s"]),
        ("cat", &["--a=b=/etc/x"]),
    ];
    for (cmd, args) in refused {
        assert_eq!(
            run(&test_env, cmd, args).await,
            Err("E_SANDBOX_VIOLATION".into()),
            "{cmd} {args:?}"
        );
    }
    assert_eq!(run(&test_env, "shutdown", &["now"]).await, Err("E_COMMAND_REFUSED".into()));
    assert_eq!(run(&test_env, " ", &[]).await, Err("E_INVALID_ARGUMENTS".into()));
    // A link is judged where it leads.
    let link = run(&test_env, "cat", &["escape-link"]).await;
    assert_eq!(link, Err("E_SANDBOX_VIOLATION".into()));
    let slow = test_env
        .call(
            "shell_run",
            json!({ "cmd": "bash", "args": ["-c", "echo part; sleep 5"], "timeout_ms": 500 }),
        )
        .await;
    assert_eq!(slow.structured["error"]["code"], "E_TIMEOUT");
    assert!(
        slow.text().contains("TIMED OUT after 500ms") && slow.text().contains("part"),
        "{}",
        slow.text()
    );
    let environment = run(&test_env, "env", &[]).await.unwrap();
    assert!(environment.contains("PATH=") && !environment.contains("COLORTERM"), "{environment}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_short_and_hold_no_secret_and_no_text_of_the_client() {
    let test_env = TestEnvironment::with(Setting {
        secrets: &[("DB", "hunter2-value")],
        ..Setting::default()
    });
    test_env.call("hunter2-value", json!({ "workspace": "hunter2-value" })).await;
    test_env.call("Read", json!({ "file_path": "/hunter2-value" })).await;
    test_env.call("Read", json!({ "file_path": format!("/{}", "a".repeat(1_000_000)) })).await;
    test_env.call("Bash", json!({ "command": "cat /etc/hunter2-value" })).await;
    let (_, refusal) = test_env.refusal("secret", json!({ "name": "hunter2-value/.." })).await;
    assert!(!refusal.contains("hunter2"), "{refusal}");
    for event in test_env.events() {
        let text = event.to_string();
        assert!(text.len() < 2000 && !text.contains("hunter2"), "{text:.300}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_makes_one_event_and_a_violation_another() {
    let test_env = TestEnvironment::new();
    bash(&test_env, "true").await;
    run(&test_env, "cat", &["/etc/hosts"]).await.unwrap_err();
    let events = test_env.events();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["lifecycle.workspace.sandbox", "tool.call", "lifecycle.sandbox.violation", "tool.call"]
    );
    assert_eq!(events[3]["outcome"], "refused");
    assert_eq!(events[2]["layer"], "argument");
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("\"command\""), "events hold no arguments: {text}");
}

/// Runs commands one after the other, and returns what was said about files that run later.
async fn trust_changes(test_env: &TestEnvironment, commands: &[&str]) -> Vec<String> {
    let mut changes = Vec::new();
    for command in commands {
        let answer = test_env.call("Bash", json!({ "command": command })).await;
        assert_eq!(answer.structured["exit_code"], 0, "{command}: {}", answer.text());
        for change in answer.structured["trust_changes"].as_array().into_iter().flatten() {
            changes.push(format!("{} {}", change["what"], change["path"]).replace('"', ""));
        }
    }
    changes
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_work_with_repositories_is_left_alone() {
    let test_env = TestEnvironment::new();
    let commands = [
        "git init -q . && git config user.name A && git config user.email a@example.com",
        "echo x > file && git add file && git commit -q -m one",
        "git clone -q . copy && git clone -q . repos/copy && mkdir -p packages",
        "git worktree add -q tree && git -C tree commit -q --allow-empty -m two",
        "mv copy moved",
        "mv moved packages/inner",
        "mv packages/inner outer && ln -s outer again",
        "mv outer packages/outer && ln -s packages/outer outer",
        "git -C outer config user.name B && git -C outer commit -q --allow-empty -m three",
        "git worktree remove tree && git worktree add -q tree",
        "rm -rf tree repos packages outer again && git worktree prune",
        "git clone -q . copy && ln -s copy/file latest && ln -s /usr/share share",
    ];
    assert_eq!(trust_changes(&test_env, &commands).await, [""; 0]);
    assert!(!test_env.path("main/.carrel-aside").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_moved_behind_a_link_runs_nothing_new() {
    for target in ["deep/er/x", "$PWD/deep/er/x"] {
        let test_env = TestEnvironment::new();
        test_env.put("api/.envrc", "ours");
        std::fs::create_dir_all(test_env.path("main/deep/er")).unwrap();
        assert!(git_init(&test_env.path("main/api")));
        let swap = format!(
            "mv api deep/er/x && ln -s {target} api && git -C api config core.fsmonitor evil && \
             echo evil > api/.git/hooks/post-checkout && echo evil > api/.envrc"
        );
        let changes = trust_changes(&test_env, &["true", &swap]).await;
        assert_eq!(changes.len(), 3, "{changes:?}");
        assert_eq!(test_env.get("api/.envrc"), "ours");
        assert!(!test_env.get("api/.git/config").contains("evil"));
        assert!(!test_env.path("main/api/.git/hooks/post-checkout").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_was_away_for_a_command_brings_nothing_back() {
    let test_env = TestEnvironment::new();
    test_env.put("api/.envrc", "ours");
    std::fs::create_dir_all(test_env.path("main/deep/er")).unwrap();
    assert!(git_init(&test_env.path("main/api")));
    let commands = [
        "true",
        "mv api deep/er/x",
        "cd deep/er/x && echo evil > .envrc && mkdir .vscode && echo {} > .vscode/tasks.json",
        "mv deep/er/x api",
    ];
    let changes = trust_changes(&test_env, &commands).await;
    assert_eq!(changes, ["direnv script api/.envrc", "editor settings api/.vscode"]);
    assert_eq!(test_env.get("api/.envrc"), "ours");
    assert!(!test_env.path("main/api/.vscode").exists());
}

fn git_init(path: &std::path::Path) -> bool {
    let mut git = std::process::Command::new("git");
    git.args(["init", "-q"]).arg(path).status().unwrap().success()
}
