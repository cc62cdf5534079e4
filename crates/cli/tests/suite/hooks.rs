use std::path::PathBuf;
use std::time::Duration;

use carrel_config::{Environment, ValidationScope, Workflow};
use carrel_domain::{Code, Coded, Identifier};
use carrel_exec::LazySpawner;
use carrel_runner::SandboxedHooks;
use carrel_workspace::{Create, Hook, HookEnd, Hooks, RootOptions, Workspaces};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Run, TestRoot, eventually, is_running};

impl TestRoot {
    /// The text of the newest log of a workspace.
    fn log(&self, key: &str) -> Vec<u8> {
        let directory = self.root().join(".carrel/logs").join(key);
        let mut logs: Vec<PathBuf> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.sort();
        std::fs::read(logs.last().unwrap()).unwrap()
    }

    fn log_text(&self, key: &str) -> String {
        String::from_utf8(self.log(key)).unwrap()
    }

    /// The same root and hooks as the command has them, for what no command runs yet.
    fn open(&self, cancel: &CancellationToken) -> (Workspaces, Hooks) {
        let environment = Environment::from_pairs([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), self.path("home").display().to_string()),
        ]);
        let file = self.path("WORKFLOW.md");
        let workflow =
            Workflow::load(&file, &environment, ValidationScope::WorkspaceAndHooks).unwrap();
        let commands = LazySpawner::new(env!("CARGO_BIN_EXE_carrel").into());
        let events = carrel_tools::AuditLog::none();
        let cancel = cancel.clone();
        let hooks = SandboxedHooks::of_workflow(&workflow, &environment, commands, events, cancel);
        (Workspaces::open_or_create(&RootOptions::of(&workflow, &environment)).unwrap(), hooks)
    }
}

fn identifier() -> Identifier {
    Identifier::parse("A").unwrap()
}

#[test]
fn item_021_022_and_122_after_create_runs_once_and_its_failure_takes_the_workspace_back() {
    let fixture = TestRoot::with_hooks("after_create: echo run >> ../count; touch half; exit 7");
    for _ in 0..2 {
        let error = fixture.run(&["create", "A", "--json"]).error();
        assert_eq!(error["code"], "E_HOOK_FAILED");
        assert_eq!(error["detail"]["end"], json!({"exited": 7}));
        assert!(!fixture.root().join("A").exists());
    }
    fixture.write_hooks("after_create: echo run >> ../count; touch whole");
    assert_eq!(fixture.json(&["create", "A"])["created"], true);
    assert_eq!(fixture.json(&["create", "A"])["created"], false);
    assert_eq!(std::fs::read_to_string(fixture.root().join("count")).unwrap(), "run\nrun\nrun\n");
    assert!(!fixture.root().join("A/half").exists() && fixture.root().join("A/whole").exists());
}

#[test]
fn item_025_and_123_before_remove_runs_and_neither_failure_nor_deadline_stops_the_removal() {
    for hook in ["pwd > ../seen; head -c 3000 /dev/zero; exit 9", "touch ../seen; sleep 60"] {
        let fixture = TestRoot::with_hooks(&format!("timeout_ms: 1000\nbefore_remove: {hook}"));
        fixture.json(&["create", "A"]);
        let run = fixture.run(&["rm", "A"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stderr.contains("WARN Workspace hook "), "{}", run.stderr);
        assert!(fixture.root().join("seen").exists() && !fixture.root().join("A").exists());
    }
}

#[test]
fn item_120_a_link_out_of_the_root_is_refused_before_any_hook_runs() {
    let fixture = TestRoot::with_hooks("before_remove: touch \"$HOME/ran\"");
    fixture.json(&["create", "A"]);
    std::fs::remove_dir(fixture.root().join("A")).unwrap();
    std::os::unix::fs::symlink(fixture.path("home"), fixture.root().join("A")).unwrap();
    let place = fixture.root().join("A").display().to_string();
    for target in [&["A"][..], &["--path", &place]] {
        let error = fixture.run(&[&["rm"], target, &["--json"]].concat()).error();
        assert_eq!(error["code"], "E_WORKSPACE_SYMLINK_ESCAPE", "{target:?}: {error}");
    }
    assert!(fixture.path("home").is_dir() && !fixture.path("home/ran").exists());
}

#[tokio::test]
async fn item_023_and_024_before_run_is_fatal_and_after_run_is_not() {
    let fixture = TestRoot::with_hooks(
        "before_run: echo \"$CARREL_ATTEMPT\" > attempt; test ! -e fail\nafter_run: touch ended; exit 1",
    );
    let (workspaces, hooks) = fixture.open(&CancellationToken::new());
    workspaces.create(Create::new(identifier()), &hooks).await.unwrap();
    let workspace = workspaces.open(&identifier()).await.unwrap();
    workspace.run_hook(Hook::BeforeRun, &hooks, Some(3)).await.unwrap();
    workspace.run_hook(Hook::AfterRun, &hooks, Some(3)).await.unwrap();
    let directory = fixture.root().join("A");
    assert_eq!(std::fs::read_to_string(directory.join("attempt")).unwrap(), "3\n");
    assert!(directory.join("ended").exists());
    std::fs::write(directory.join("fail"), "").unwrap();
    let error = workspace.run_hook(Hook::BeforeRun, &hooks, Some(4)).await.unwrap_err();
    assert_eq!(error.code(), Code::HookFailed);
    let ends: Vec<_> =
        workspaces.record(&identifier()).unwrap().hook_runs.iter().map(|run| run.end).collect();
    assert_eq!(ends, [HookEnd::Succeeded, HookEnd::Failed, HookEnd::Failed]);
}

#[tokio::test]
async fn a_workspace_replaced_before_the_run_is_refused() {
    let fixture = TestRoot::with_hooks("before_run: touch ran");
    let (workspaces, hooks) = fixture.open(&CancellationToken::new());
    workspaces.create(Create::new(identifier()), &hooks).await.unwrap();
    let workspace = workspaces.open(&identifier()).await.unwrap();
    std::fs::remove_dir(fixture.root().join("A")).unwrap();
    std::os::unix::fs::symlink(fixture.path("home"), fixture.root().join("A")).unwrap();
    let error = workspace.run_hook(Hook::BeforeRun, &hooks, None).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidWorkspaceCwd);
    assert!(!fixture.path("home/ran").exists());
}

#[tokio::test]
async fn a_cancelled_hook_ends_and_another_can_still_run() {
    let fixture =
        TestRoot::with_hooks("before_run: echo $$ > pid; sleep 300\nafter_run: touch ended");
    let cancel = CancellationToken::new();
    let (workspaces, hooks) = fixture.open(&cancel);
    workspaces.create(Create::new(identifier()), &hooks).await.unwrap();
    let workspace = workspaces.open(&identifier()).await.unwrap();
    let pid = fixture.root().join("A/pid");
    let started = async {
        while !is_running(&pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(workspace.run_hook(Hook::BeforeRun, &hooks, None), started);
    assert_eq!(result.unwrap_err().to_string(), "hook before_run was cancelled");
    assert!(!is_running(&pid));
    let (_, hooks) = fixture.open(&CancellationToken::new());
    workspace.run_hook(Hook::AfterRun, &hooks, None).await.unwrap();
    assert!(fixture.root().join("A/ended").exists());
}

#[test]
fn item_101_at_the_deadline_everything_a_hook_started_is_gone() {
    let fixture = TestRoot::with_hooks(
        "timeout_ms: 1500\nafter_create: |\n  \
         setsid sh -c 'echo $$ > ../grandchild; trap \"\" TERM; while :; do sleep 1; done' &\n  \
         (setsid sh -c 'echo $$ > ../daemon; exec sleep 300' &) \n  \
         while [ ! -s ../grandchild ] || [ ! -s ../daemon ]; do sleep 0.01; done\n  \
         echo waiting; sleep 300",
    );
    let error = fixture.run(&["create", "A", "--json"]).error();
    assert_eq!(error["code"], "E_HOOK_TIMEOUT", "{error}");
    assert_eq!(error["detail"]["timeout_ms"], 1500);
    assert_eq!(error["detail"]["output"], "waiting\n");
    for name in ["grandchild", "daemon"] {
        assert!(fixture.root().join(name).exists(), "{name} never ran");
        assert!(!is_running(&fixture.root().join(name)), "{name} survived");
    }
    assert!(!fixture.root().join("A").exists());
}

#[test]
fn what_a_hook_leaves_running_is_ended_with_it() {
    let fixture = TestRoot::with_hooks(
        "after_create: sh -c 'echo $$ > ../left; exec sleep 300' & until [ -s ../left ]; do sleep 0.01; done",
    );
    let run = fixture.run(&["create", "A"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stderr.contains("Workspace hook left processes, which were ended"),
        "{}",
        run.stderr
    );
    assert!(fixture.root().join("left").exists() && !is_running(&fixture.root().join("left")));
}

#[test]
fn a_hundred_megabytes_of_output_stay_within_bounds() {
    let fixture = TestRoot::with_hooks(
        "after_create: head -c 100000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1",
    );
    let mut command = fixture.command(&["create", "A", "--json"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        // The peak only grows, so the last value that can be read is the one that counts.
        while let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find(|line| line.starts_with("VmHWM"));
            let Some(line) = line else { break };
            peak = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        peak
    });
    let output = child.wait_with_output().unwrap();
    let peak_kib = watch.join().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let error: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    let shown = error["error"]["detail"]["output"].as_str().unwrap();
    assert!(shown.len() < 4096 && shown.ends_with("the end\n"), "{} bytes", shown.len());
    assert!(shown.contains("bytes omitted"), "{shown}");
    let log = fixture.log("A");
    assert!(log.len() < 33 << 20, "the log has {} bytes", log.len());
    assert!(
        String::from_utf8_lossy(&log[log.len() - 100..]).contains("log limit of 32.0 MiB reached")
    );
    eprintln!("peak memory {peak_kib} KiB");
    assert!(peak_kib > 0 && peak_kib < 64 << 10, "{peak_kib} KiB");
}

#[test]
fn secrets_never_reach_a_hook_not_even_by_the_login_profile() {
    let fixture = TestRoot::with_hooks(
        "env: [WANTED, COPIED]\nafter_create: env; cat /proc/self/environ; echo ok",
    );
    let profile = "export LINEAR_API_KEY=tracker-secret\nexport ALIAS=tracker-secret\n\
                   export URL=https://x:tracker-secret@host/\nexport HARMLESS=fine\n\
                   export DATABASE_URL=postgres://elsewhere\ncd /\n";
    std::fs::write(fixture.path("home/.profile"), profile).unwrap();
    let mut command = fixture.command(&["create", "A"]);
    command.envs([
        ("LINEAR_API_KEY", "tracker-secret"),
        ("DATABASE_URL", "postgres://server"),
        ("WANTED", "passed"),
        ("COPIED", "tracker-secret"),
        ("UNLISTED", "kept back"),
    ]);
    let run = Run::of(command);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let log = fixture.log_text("A");
    for absent in ["tracker-secret", "postgres://", "UNLISTED", "COPIED"] {
        assert!(!log.contains(absent), "{absent} in {log}");
    }
    for present in ["HARMLESS=fine", "WANTED=passed", "ok"] {
        assert!(log.contains(present), "{present} not in {log}");
    }
    let directory = fixture.root().join("A");
    assert!(log.contains(&format!("PWD={}", directory.display())), "{log}");
}

#[test]
fn a_hook_gets_exactly_its_variables() {
    let fixture = TestRoot::with_hooks("after_create: env | sort | grep -v -e '^_=' -e '^PATH='");
    let mut command = fixture.command(&["create", "A", "--issue-id", "42"]);
    command.envs([
        ("USER", "somebody"),
        ("LANG", "C"),
        ("LC_TIME", "C"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("AWS_SECRET_ACCESS_KEY", "no"),
        ("EDITOR", "no"),
    ]);
    assert_eq!(Run::of(command).code, 0);
    let text = fixture.log_text("A").replace(fixture.directory.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!(text, @r"
    CARREL_ATTEMPT=
    CARREL_HOOK=after_create
    CARREL_ISSUE_ID=42
    CARREL_ISSUE_IDENTIFIER=A
    CARREL_WORKSPACE=DIR/root/A
    GIT_CEILING_DIRECTORIES=DIR/root
    HOME=DIR/home
    LANG=C
    LC_TIME=C
    PWD=DIR/root/A
    SSH_AUTH_SOCK=/run/agent
    TERM=dumb
    TMPDIR=/tmp
    USER=somebody
    ");
}

#[test]
fn a_hook_that_reads_gets_the_end_of_file_and_bytes_survive() {
    let fixture = TestRoot::with_hooks("after_create: cat; printf 'a\\377\\000b'");
    assert_eq!(fixture.run(&["create", "A"]).code, 0);
    assert_eq!(fixture.log("A"), b"a\xff\0b");
}

#[test]
fn a_hook_is_no_template_and_says_so() {
    let fixture = TestRoot::with_hooks("after_create: echo '{{ issue.identifier }}'");
    let run = fixture.run(&["create", "A"]);
    assert!(run.stderr.contains("not a template"), "{}", run.stderr);
    assert_eq!(fixture.log_text("A"), "{{ issue.identifier }}\n");
}

#[test]
fn git_in_a_hook_does_not_see_a_repository_around_the_root() {
    let fixture = TestRoot::new();
    let mut init = std::process::Command::new("git");
    assert!(
        init.args(["init", "--quiet", "."])
            .current_dir(fixture.directory.path())
            .status()
            .unwrap()
            .success()
    );
    fixture.write_hooks("after_create: git rev-parse --show-toplevel || echo none");
    fixture.run(&["create", "A"]);
    assert!(fixture.log_text("A").ends_with("none\n"), "{}", fixture.log_text("A"));
}

#[test]
fn a_confined_hook_works_in_its_workspace_and_nowhere_else() {
    let fixture = TestRoot::with_hooks(
        "sandbox: true\nafter_create: |\n  echo \"$CARREL_HOOK $HOME\" > inside\n  touch ../ran",
    );
    let error = fixture.run(&["create", "A", "--json"]).error();
    assert_eq!(error["code"], "E_HOOK_FAILED");
    assert!(!fixture.root().join("ran").exists() && !fixture.root().join("A").exists());
    fixture.write_hooks("sandbox: true\nafter_create: echo \"$CARREL_HOOK $HOME\" > inside");
    fixture.run(&["create", "A"]);
    let inside = std::fs::read_to_string(fixture.root().join("A/inside")).unwrap();
    assert_eq!(inside, "after_create /home/carrel\n");
}

#[test]
fn a_hook_that_replaces_its_workspace_does_not_get_away_with_it() {
    for (hook, kind) in [
        ("rm -rf \"$CARREL_WORKSPACE\"; ln -s /etc \"$CARREL_WORKSPACE\"", "symlink_escape"),
        ("rm -rf \"$CARREL_WORKSPACE\"", "path_unreadable"),
        ("mv \"$CARREL_WORKSPACE\" ../moved; mkdir \"$CARREL_WORKSPACE\"", "replaced"),
    ] {
        let fixture = TestRoot::with_hooks(&format!("after_create: {hook}"));
        let error = fixture.run(&["create", "A", "--json"]).error();
        assert_eq!(error["kind"], "invalid_workspace_cwd", "{hook}");
        assert_eq!(error["detail"]["reason"], kind, "{hook}");
        assert_eq!(fixture.json(&["ls"])["workspaces"], json!([]), "{hook}");
    }
}

#[test]
fn a_secret_is_blanked_out_before_the_output_is_cut() {
    let secret = "SUPERSECRETVALUE";
    let filler = "x".repeat(1010);
    let script =
        format!("printf {filler}; cat ../../secret; head -c 5000 /dev/zero | tr '\\0' y; exit 1");
    let fixture = TestRoot::with_hooks(&format!("after_create: {script}"));
    std::fs::write(fixture.path("secret"), secret).unwrap();
    let mut command = fixture.command(&["create", "A", "--json"]);
    command.env("GITHUB_TOKEN", secret);
    let run = Run::of(command);
    assert!(!run.stderr.contains("SUPER"), "{}", run.stderr);
    assert!(run.stderr.contains("***"), "{}", run.stderr);
}

#[test]
fn a_hook_that_waits_for_its_own_workspace_is_told_and_does_not_hang() {
    let fixture = TestRoot::new();
    let carrel = env!("CARGO_BIN_EXE_carrel");
    let root = fixture.root().display().to_string();
    fixture.write_hooks(&format!(
        "after_create: {carrel} workspace rm A --root {root} --json 2>&1; true"
    ));
    assert_eq!(fixture.run(&["create", "A"]).code, 0);
    assert!(fixture.log_text("A").contains("E_WORKSPACE_BUSY"), "{}", fixture.log_text("A"));
}

#[test]
fn a_profile_that_exits_does_not_pass_for_a_hook_that_ran() {
    let fixture = TestRoot::with_hooks("after_create: touch ../ran");
    std::fs::write(fixture.path("home/.profile"), "exit 0\n").unwrap();
    let error = fixture.run(&["create", "A", "--json"]).error();
    assert_eq!(error["code"], "E_HOOK_FAILED");
    assert!(error["message"].as_str().unwrap().contains("login profile"), "{error}");
    assert!(!fixture.root().join("A").exists() && !fixture.root().join("ran").exists());
}

#[test]
fn a_command_that_is_interrupted_takes_its_hook_along() {
    for signal in ["TERM", "INT"] {
        let fixture = TestRoot::with_hooks("after_create: echo $$ > ../pid; sleep 300");
        let mut command = fixture.command(&["create", "A"]);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        let pid = fixture.root().join("pid");
        eventually("the hook runs", || is_running(&pid));
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
        eventually("the hook is gone", || !is_running(&pid));
        fixture.write_hooks("after_create: touch whole");
        assert_eq!(fixture.json(&["create", "A"])["created"], true, "{signal}");
        assert!(fixture.root().join("A/whole").exists());
    }
}

#[test]
fn a_workspace_stays_locked_until_the_hook_of_a_killed_command_is_gone() {
    let fixture =
        TestRoot::with_hooks("after_create: trap '' TERM; while :; do date > stamp; done");
    let mut command = fixture.command(&["create", "A"]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    eventually("the hook writes", || fixture.root().join("A/stamp").exists());
    fixture.write_hooks("after_create: touch whole");
    child.kill().unwrap();
    child.wait().unwrap();
    fixture.json(&["create", "A"]);
    let names: Vec<_> = std::fs::read_dir(fixture.root().join("A"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["whole"], "the old hook wrote into the new workspace");
}

#[test]
fn old_logs_make_room_for_new_ones() {
    let fixture = TestRoot::with_hooks("after_create: exit 1");
    for _ in 0..25 {
        fixture.run(&["create", "A"]);
    }
    let logs = std::fs::read_dir(fixture.root().join(".carrel/logs/A")).unwrap().count();
    assert_eq!(logs, 20);
    eventually("the trash is empty", || fixture.trash() == 0);
}

#[tokio::test]
async fn hooks_of_a_run_neither_begin_in_a_frozen_base_nor_are_overtaken_by_a_fork() {
    let fixture = TestRoot::with_hooks(
        "before_run: touch ran; echo $$ > pid; while [ -e ../wait ]; do sleep 0.01; done\nafter_run: touch ended",
    );
    let (workspaces, hooks) = fixture.open(&CancellationToken::new());
    workspaces.create(Create::new(identifier()), &hooks).await.unwrap();
    let workspace = workspaces.open(&identifier()).await.unwrap();
    let (directory, wait) = (fixture.root().join("A"), fixture.root().join("wait"));
    std::fs::write(&wait, "").unwrap();
    let pid = directory.join("pid");
    let forked_meanwhile = async {
        while !is_running(&pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let refused = fixture.run(&["fork", "A", "--json"]).error();
        std::fs::remove_file(&wait).unwrap();
        refused
    };
    let (ran, refused) =
        tokio::join!(workspace.run_hook(Hook::BeforeRun, &hooks, None), forked_meanwhile);
    ran.unwrap();
    assert_eq!(refused["code"], "E_WORKSPACE_BUSY", "{refused}");

    std::fs::remove_file(directory.join("ran")).unwrap();
    fixture.json(&["fork", "A"]);
    let frozen = workspace.run_hook(Hook::BeforeRun, &hooks, None).await.unwrap_err();
    assert_eq!(frozen.code(), Code::WorkspaceFrozen);
    assert!(frozen.to_string().contains("A.fork-1"), "{frozen}");
    workspace.run_hook(Hook::AfterRun, &hooks, None).await.unwrap();
    assert!(!directory.join("ran").exists() && !directory.join("ended").exists());

    fixture.json(&["rm", "A.fork-1"]);
    workspace.run_hook(Hook::BeforeRun, &hooks, None).await.unwrap();
    workspace.run_hook(Hook::AfterRun, &hooks, None).await.unwrap();
    assert!(directory.join("ran").exists() && directory.join("ended").exists());
}
