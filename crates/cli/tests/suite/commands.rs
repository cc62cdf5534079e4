use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, TestRoot, eventually};

#[test]
fn the_same_workspace_is_created_and_then_reused() {
    let fixture = TestRoot::new();
    let path = fixture.root().join("XYZ_456");
    let first = fixture.run(&["create", "XYZ/456"]);
    assert_eq!(first.stdout, format!("created XYZ_456 at {}\n", path.display()));
    let second = fixture.run(&["create", "XYZ/456"]);
    assert_eq!(second.stdout, format!("reused XYZ_456 at {}\n", path.display()));
    assert_eq!((first.code, second.code), (0, 0));
    assert_eq!(first.stderr + &second.stderr, "");
}

#[test]
fn create_prints_its_documented_shape() {
    let fixture = TestRoot::new();
    let path = fixture.root().join("XYZ_456");
    let shape = |created: bool| {
        json!({"identifier": "XYZ/456", "key": "XYZ_456", "path": path, "created": created,
               "state": "ready", "layout": "plain"})
    };
    assert_eq!(fixture.json(&["create", "XYZ/456"]), shape(true));
    assert_eq!(fixture.json(&["create", "XYZ/456"]), shape(false));
    let tenant = fixture.json(&["create", "T", "--layout", "tenant"]);
    assert_eq!(tenant["layout"], "tenant");
    assert!(fixture.root().join("T/artifacts").is_dir());
}

#[test]
fn key_consults_the_record_of_the_root_it_is_given() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "XYZ_456"]);
    let derived = Run::of(fixture.bare(&["workspace", "key", "XYZ/456", "--json"]));
    assert_eq!(derived.stdout, "{\"identifier\":\"XYZ/456\",\"key\":\"XYZ_456\"}\n");
    let consulted = fixture.json(&["key", "XYZ/456"]);
    assert_eq!(consulted, json!({"identifier": "XYZ/456", "key": "XYZ_456--d5a392b6d232cd76"}));
}

#[test]
fn ls_prints_its_documented_shape() {
    let fixture = TestRoot::new();
    std::fs::create_dir(fixture.root()).unwrap();
    assert_eq!(fixture.json(&["ls"]), json!({"root": fixture.root(), "workspaces": []}));
    assert!(!fixture.root().join(".carrel").exists(), "listing made a root of the directory");
    fixture.json(&["create", "A"]);
    std::fs::write(fixture.root().join("A/file"), vec![0; 5000]).unwrap();
    let listed = fixture.json(&["ls", "--recount"]);
    let workspace = &listed["workspaces"][0];
    let fields: Vec<_> = workspace.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "identifier",
            "key",
            "path",
            "state",
            "layout",
            "fork",
            "created_at",
            "last_used_at",
            "usage_bytes",
            "files"
        ]
    );
    assert_eq!((&workspace["state"], &workspace["files"]), (&json!("ready"), &json!(1)));
    assert!(workspace["usage_bytes"].as_u64().unwrap() >= 5000);
}

#[test]
fn ls_for_people_is_a_table_that_obeys_no_escape_sequence() {
    let fixture = TestRoot::new();
    fixture.run(&["create", "evil\u{1b}[2J\nname"]);
    let table = fixture.run(&["ls"]).stdout;
    assert!(table.starts_with("IDENTIFIER"), "{table}");
    assert!(table.contains("evil\\u{1b}[2J\\nname") && !table.contains('\u{1b}'), "{table}");
    assert_eq!(table.lines().count(), 2);
}

#[test]
fn show_tells_record_usage_hooks_and_git() {
    let fixture = TestRoot::with_hooks(
        "after_create: |\n  git init --quiet --initial-branch=trunk .\n  echo hi > file",
    );
    fixture.json(&["create", "A", "--issue-id", "id-1"]);
    let shown = fixture.json(&["show", "A"]);
    assert_eq!(shown["issue_id"], "id-1");
    assert_eq!(shown["quota_bytes"], 5_u64 << 30);
    assert_eq!(shown["git"][0]["branch"], "trunk");
    assert_eq!(shown["git"][0]["changed_files"], 1);
    let run = &shown["hook_runs"][0];
    assert_eq!((&run["hook"], &run["end"]), (&json!("after_create"), &json!("succeeded")));
    assert!(std::path::Path::new(run["log"].as_str().unwrap()).is_file());
    let text = fixture.run(&["show", "A"]).stdout;
    assert!(text.contains("git .") && text.contains("trunk, 1 changed file"), "{text}");
}

#[test]
fn a_removed_workspace_is_gone_at_once_and_deleted_soon() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "A"]);
    let removed = fixture.json(&["rm", "A"]);
    assert_eq!(
        removed,
        json!({"identifier": "A", "key": "A", "path": fixture.root().join("A"), "removed": true})
    );
    assert!(!fixture.root().join("A").exists());
    eventually("the trash is empty", || fixture.trash() == 0);
    assert_eq!(fixture.run(&["rm", "A", "--json"]).error()["code"], "E_WORKSPACE_NOT_FOUND");
}

#[test]
fn rm_by_path_holds_the_path_to_the_rules() {
    let fixture = TestRoot::new();
    let path = fixture.json(&["create", "A"])["path"].as_str().unwrap().to_owned();
    let root = fixture.root();
    for (path, kind) in [
        (root.to_str().unwrap(), "workspace_equals_root"),
        ("/tmp", "workspace_outside_root"),
        (&format!("{path}/sub"), "workspace_outside_root"),
    ] {
        let run = fixture.run(&["rm", "--path", path, "--json"]);
        assert_eq!((run.code, &run.error()["kind"]), (1, &json!(kind)), "{path}");
    }
    assert_eq!(fixture.json(&["rm", "--path", &path])["removed"], true);
}

#[test]
fn unsaved_work_is_kept_when_asked_for() {
    let commit = "git -c user.name=N -c user.email=e@x commit --quiet --allow-empty -m start";
    let fixture = TestRoot::with_hooks(&format!("after_create: git init --quiet . && {commit}"));
    fixture.json(&["create", "A"]);
    let error = fixture.run(&["rm", "A", "--keep-if-dirty", "--json"]).error();
    assert_eq!(error["code"], "E_WORKSPACE_DIRTY");
    assert_eq!(error["detail"]["reasons"], json!(["1 commit on no remote in ."]));
    assert!(fixture.root().join("A").is_dir());
    // The same commit on a remote is saved work.
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(arguments).current_dir(fixture.root().join("A"));
        assert!(command.output().unwrap().status.success(), "git {arguments:?}");
    };
    let bare = fixture.path("bare.git");
    git(&["init", "--quiet", "--bare", bare.to_str().unwrap()]);
    git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    git(&["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    git(&["fetch", "--quiet", "origin"]);
    std::fs::write(fixture.root().join("A/new"), "unsaved").unwrap();
    assert_eq!(fixture.run(&["rm", "A", "--keep-if-dirty"]).code, 1);
    std::fs::remove_file(fixture.root().join("A/new")).unwrap();
    assert_eq!(fixture.json(&["rm", "A", "--keep-if-dirty"])["removed"], true);
}

/// A repository in a workspace, and a file that its traps would make.
struct Trap {
    fixture: TestRoot,
    sprung: std::path::PathBuf,
}

impl Trap {
    fn new() -> Self {
        let fixture = TestRoot::new();
        fixture.json(&["create", "A"]);
        let sprung = fixture.path("sprung");
        let trap = Self { fixture, sprung };
        trap.git(".", &["init", "--quiet", "."]);
        trap.git(".", &["config", "user.name", "N"]);
        trap.git(".", &["config", "user.email", "e@x"]);
        std::fs::write(trap.path("file"), "one").unwrap();
        let script = format!("#!/bin/sh\ntouch {}\ncat\n", trap.sprung.display());
        std::fs::write(trap.path("evil.sh"), script).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(trap.path("evil.sh"), executable).unwrap();
        trap
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.fixture.root().join("A").join(name)
    }

    fn evil(&self) -> String {
        self.path("evil.sh").display().to_string()
    }

    fn git(&self, directory: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new("git");
        command.args(arguments).current_dir(self.path(directory));
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }

    /// Asks about the workspace in both ways; neither may spring the trap.
    fn ask(&self) -> Value {
        let shown = self.fixture.json(&["show", "A"]);
        let refused = self.fixture.run(&["rm", "A", "--keep-if-dirty", "--json"]).error();
        assert_eq!(refused["code"], "E_WORKSPACE_DIRTY");
        assert!(!self.sprung.exists(), "the repository's own command ran");
        shown["git"].clone()
    }
}

#[test]
fn git_runs_no_filter_monitor_or_hook_of_a_repository() {
    let trap = Trap::new();
    std::fs::write(trap.path(".gitattributes"), "* filter=trap\nfile filter=a=b\n").unwrap();
    trap.git(".", &["add", "."]);
    let evil = trap.evil();
    for key in ["filter.trap.clean", "filter.trap.process", "filter.a=b.clean", "core.fsmonitor"] {
        trap.git(".", &["config", key, &evil]);
    }
    trap.git(".", &["config", "core.hooksPath", &trap.path("").display().to_string()]);
    std::fs::write(trap.path("file"), "two").unwrap();
    assert_eq!(trap.ask()[0]["changed_files"], 3);
}

#[test]
fn git_runs_no_filter_of_a_repository_inside_another() {
    let trap = Trap::new();
    std::fs::create_dir(trap.path("inner")).unwrap();
    trap.git("inner", &["init", "--quiet", "."]);
    std::fs::write(trap.path("inner/file"), "one").unwrap();
    std::fs::write(trap.path("inner/.gitattributes"), "* filter=trap\n").unwrap();
    trap.git("inner", &["add", "."]);
    trap.git("inner", &["config", "filter.trap.clean", &trap.evil()]);
    trap.git(".", &["-c", "advice.addEmbeddedRepo=false", "add", "file"]);
    std::fs::write(trap.path("inner/file"), "two").unwrap();
    let states = trap.ask();
    assert_eq!(states[1]["path"], "inner");
    assert_eq!(states[1]["changed_files"], 2, "{states}");
}

#[test]
fn git_checks_no_signature_and_fetches_nothing_for_a_repository() {
    let trap = Trap::new();
    trap.git(".", &["add", "."]);
    trap.git(".", &["commit", "--quiet", "-m", "one"]);
    std::fs::write(trap.path("file"), "two").unwrap();
    trap.git(".", &["stash", "--quiet"]);
    let evil = trap.evil();
    for (key, value) in [
        ("log.showSignature", "true"),
        ("gpg.program", evil.as_str()),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "/nonexistent"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", evil.as_str()),
    ] {
        trap.git(".", &["config", key, value]);
    }
    let states = trap.ask();
    assert_eq!((&states[0]["stashes"], &states[0]["unpushed_commits"]), (&json!(1), &json!(1)));
    // An object that would have to be fetched is missing.
    let objects = trap.path(".git/objects");
    let directory = std::fs::read_dir(&objects).unwrap().map(|entry| entry.unwrap().path());
    for path in directory.filter(|path| path.file_name().unwrap().len() == 2) {
        std::fs::remove_dir_all(path).unwrap();
    }
    assert!(trap.ask()[0]["error"].is_string());
}

#[test]
fn unsaved_work_is_found_wherever_it_is_and_however_it_hides() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "A"]);
    let repository = fixture.root().join("A/checkout/here");
    std::fs::create_dir_all(&repository).unwrap();
    for arguments in [&["init", "--quiet", "."][..], &["config", "status.showUntrackedFiles", "no"]]
    {
        let mut command = std::process::Command::new("git");
        assert!(command.args(arguments).current_dir(&repository).status().unwrap().success());
    }
    std::fs::write(repository.join("new"), "unsaved").unwrap();
    let error = fixture.run(&["rm", "A", "--keep-if-dirty", "--json"]).error();
    assert_eq!(error["detail"]["reasons"], json!(["1 changed file in checkout/here"]));
}

/// Makes a workspace look as if nobody had used it for years.
fn forget(fixture: &TestRoot, key: &str) {
    let path = fixture.root().join(format!(".carrel/records/{key}.json"));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["last_used_at"] = json!("2020-01-01T00:00:00.000Z");
    std::fs::write(path, record.to_string()).unwrap();
}

#[test]
fn clean_up_does_not_touch_what_came_to_life_meanwhile() {
    let wait = "touch ../started; while [ ! -e ../go ]; do sleep 0.01; done";
    let fixture = TestRoot::with_hooks(&format!("before_remove: {wait}"));
    for name in ["A", "missing", "unused"] {
        fixture.json(&["create", name]);
    }
    std::fs::remove_dir(fixture.root().join("missing")).unwrap();
    forget(&fixture, "A");
    forget(&fixture, "unused");
    let mut gc = fixture.command(&["gc", "--older-than", "1d"]);
    let mut gc = gc.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // While the hook of the first keeps clean-up busy, the others are used again.
    eventually("clean-up is at work", || fixture.root().join("started").exists());
    for name in ["missing", "unused"] {
        fixture.json(&["create", name]);
        std::fs::write(fixture.root().join(name).join("work"), "precious").unwrap();
    }
    std::fs::write(fixture.root().join("go"), "").unwrap();
    assert!(gc.wait().unwrap().success());
    assert!(!fixture.root().join("A").exists());
    for name in ["missing", "unused"] {
        assert!(fixture.root().join(name).join("work").exists(), "{name} is gone");
    }
}

#[test]
fn a_removal_that_waited_does_not_take_what_somebody_else_made_there() {
    let fixture = TestRoot::with_hooks(
        "before_remove: touch ../started; while [ ! -e ../go ]; do sleep 0.01; done",
    );
    fixture.json(&["create", "XYZ/456"]);
    let start = |arguments: &[&str]| {
        fixture.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut first = start(&["rm", "XYZ/456"]);
    eventually("the first removal is at work", || fixture.root().join("started").exists());
    let mut second = start(&["rm", "XYZ/456"]);
    let mut create = start(&["create", "XYZ_456"]);
    std::fs::write(fixture.root().join("go"), "").unwrap();
    assert!(first.wait().unwrap().success());
    assert!(create.wait().unwrap().success());
    second.wait().unwrap();
    let listed = fixture.json(&["ls"]);
    assert_eq!(listed["workspaces"][0]["identifier"], "XYZ_456", "{listed}");
    assert_eq!(listed["workspaces"][0]["state"], "ready", "{listed}");
}

#[test]
fn trash_that_arrives_while_it_is_emptied_is_not_forgotten() {
    let fixture = TestRoot::new();
    for round in 0..10 {
        for name in ["A", "B", "C"] {
            fixture.json(&["create", name]);
            std::fs::write(fixture.root().join(name).join("file"), "").unwrap();
        }
        for name in ["A", "B", "C"] {
            fixture.json(&["rm", name]);
        }
        eventually(&format!("the trash of round {round} is empty"), || fixture.trash() == 0);
    }
}

/// A small file system in memory, unmounted whatever happens.
pub(crate) struct SmallDisk(pub(crate) std::path::PathBuf);

impl SmallDisk {
    pub(crate) fn mount(path: std::path::PathBuf) -> Self {
        std::fs::create_dir(&path).unwrap();
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=512k,nr_inodes=200,mode=0700", "none"]).arg(&path);
        assert!(command.status().unwrap().success());
        Self(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A sweep may still be at work there.
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_still_lets_people_look_and_make_room() {
    carrel_skip::needs!(Root);
    let fixture = TestRoot::with_hooks("before_remove: 'true'");
    let _disk = SmallDisk::mount(fixture.root());
    fixture.json(&["create", "A"]);
    let filled = std::fs::write(fixture.root().join("A/big"), vec![1; 1 << 20]);
    assert!(filled.is_err(), "the file system is not full");
    let full = fixture.run(&["create", "B", "--json"]).error();
    assert_eq!(full["code"], "E_DISK_FULL", "{full}");
    assert!(full["message"].as_str().unwrap().contains("df -h"), "{full}");
    for arguments in [&["ls", "--recount"][..], &["show", "A"], &["create", "A"], &["rm", "A"]] {
        let run = fixture.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    }
    eventually("the trash is empty", || fixture.trash() == 0);
    assert_eq!(fixture.run(&["create", "B"]).code, 0);
}

#[test]
fn names_that_are_not_text_can_be_shown_everywhere() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = TestRoot::new();
    fixture.json(&["create", "A"]);
    let strange = std::ffi::OsStr::from_bytes(b"x\xff");
    let repository = fixture.root().join("A").join(strange);
    std::fs::create_dir(&repository).unwrap();
    let mut git = std::process::Command::new("git");
    assert!(
        git.args(["init", "--quiet", "."]).current_dir(&repository).status().unwrap().success()
    );
    std::fs::write(fixture.root().join(strange), "").unwrap();
    assert_eq!(fixture.json(&["show", "A"])["git"][0]["path"], "x\u{fffd}");
    let report = fixture.run(&["verify", "--json"]);
    assert!(report.stdout.contains("x\u{fffd}"), "{}", report.stdout);
}

#[test]
fn a_repository_can_neither_hang_nor_exhaust_whoever_asks() {
    let trap = Trap::new();
    for name in ["one", "two"] {
        std::fs::create_dir_all(trap.path(name).join(".git")).unwrap();
        let pipe = trap.path(name).join(".git/config");
        let mut command = std::process::Command::new("mkfifo");
        assert!(command.arg(pipe).status().unwrap().success());
    }
    let bomb = std::fs::File::create(trap.path(".git/refs/heads/bomb")).unwrap();
    bomb.set_len(200 << 30).unwrap();
    let begun = std::time::Instant::now();
    let states = trap.ask();
    assert!(begun.elapsed() < std::time::Duration::from_secs(90), "{:?}", begun.elapsed());
    for state in states.as_array().unwrap() {
        assert!(state["error"].is_string(), "{state}");
    }
}

#[test]
fn unsaved_work_is_found_at_any_depth() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "A"]);
    let repository = fixture.root().join("A/1/2/3/4/5/6/7/8");
    std::fs::create_dir_all(&repository).unwrap();
    let mut git = std::process::Command::new("git");
    assert!(
        git.args(["init", "--quiet", "."]).current_dir(&repository).status().unwrap().success()
    );
    std::fs::write(repository.join("new"), "unsaved").unwrap();
    assert_eq!(fixture.run(&["rm", "A", "--keep-if-dirty"]).code, 1);
}

#[test]
fn the_process_that_empties_the_trash_holds_nothing_of_its_callers() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "A"]);
    let lock = fixture.path("lock");
    let script = format!(
        "exec 9>{lock}; flock 9; {carrel} workspace rm A --root {root}; exec 9>&-; flock -w 0.1 {lock} true",
        lock = lock.display(),
        carrel = env!("CARGO_BIN_EXE_carrel"),
        root = fixture.root().display()
    );
    for n in 0..20_000 {
        std::fs::write(fixture.root().join("A").join(n.to_string()), "").unwrap();
    }
    let mut command = std::process::Command::new("sh");
    // A descriptor is closed a moment after the process that execs appears to run.
    assert!(command.args(["-c", &script]).status().unwrap().success(), "the lock is still held");
    eventually("the trash is empty", || fixture.trash() == 0);
}

#[test]
fn verify_lists_every_kind_of_trouble_with_a_fix() {
    let fixture = TestRoot::new();
    for name in ["fine", "gone", "half", "taken"] {
        fixture.json(&["create", name]);
    }
    let root = fixture.root();
    std::fs::remove_dir(root.join("gone")).unwrap();
    std::fs::remove_dir(root.join("taken")).unwrap();
    std::fs::write(root.join("taken"), "").unwrap();
    std::fs::create_dir(root.join("stray")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    std::fs::write(root.join(".carrel/locks/nobody.lock"), "").unwrap();
    let record = root.join(".carrel/records/half.json");
    let text = std::fs::read_to_string(&record).unwrap().replace("ready", "creating");
    std::fs::write(record, text).unwrap();
    let run = fixture.run(&["verify", "--json"]);
    assert_eq!((run.code, &run.error()["code"]), (1, &json!("E_VERIFY_FAILED")));
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let found: Vec<(&str, &str)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["path"].as_str().unwrap().starts_with(root.to_str().unwrap()))
        .map(|finding| {
            assert!(!finding["fix"].as_str().unwrap().is_empty());
            let name = finding["path"].as_str().unwrap().rsplit('/').next().unwrap();
            (finding["check"].as_str().unwrap(), name)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("owner", "root"),
            ("missing", "gone"),
            ("half_made", "half"),
            ("occupied", "taken"),
            ("stray", "stray"),
            ("link", "link"),
            ("stray", "taken"),
            ("lock", "nobody.lock"),
        ]
    );
}

#[test]
fn gc_says_what_it_would_do_and_then_does_it() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "gone"]);
    std::fs::remove_dir(fixture.root().join("gone")).unwrap();
    let dry = fixture.json(&["gc", "--dry-run"]);
    assert_eq!(dry["actions"], json!([{"action": "drop_record", "key": "gone"}]));
    assert_eq!(
        fixture.run(&["gc", "--dry-run"]).stdout,
        "would drop the record of gone, whose directory is gone\n"
    );
    let done = fixture.json(&["gc"]);
    assert_eq!(done["actions"][0], dry["actions"][0]);
    assert_eq!(fixture.json(&["ls"])["workspaces"], json!([]));
}

#[test]
fn wrong_usage_exits_with_two_and_suggests() {
    let fixture = TestRoot::new();
    let run = Run::of(fixture.bare(&["workspace", "creat", "A"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("'create'"), "{}", run.stderr);
    let run = Run::of(fixture.bare(&["workspace", "rm", "--json"]));
    assert_eq!((run.code, &run.error()["code"]), (2, &json!("E_USAGE")));
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert_eq!(Run::of(fixture.bare(&["--help"])).code, 0);
    assert!(Run::of(fixture.bare(&["workspace", "create", "--help"])).stdout.contains("Examples:"));
}

#[test]
fn names_that_cannot_be_workspaces_are_refused() {
    let fixture = TestRoot::new();
    for (name, kind) in [
        (".", "workspace_equals_root"),
        ("", "workspace_equals_root"),
        ("..", "workspace_outside_root"),
    ] {
        for command in ["create", "show", "rm"] {
            let run = fixture.run(&[command, name, "--json"]);
            assert_eq!((run.code, &run.error()["kind"]), (1, &json!(kind)), "{command} {name:?}");
            assert_eq!(run.error()["detail"]["root"], json!(fixture.root()));
        }
        let key = Run::of(fixture.bare(&["workspace", "key", name, "--json"]));
        assert_eq!((key.code, &key.error()["code"]), (1, &json!("E_INVALID_IDENTIFIER")));
    }
    let long = "x".repeat(5000);
    let error = fixture.run(&["create", &long, "--json"]).error();
    assert_eq!(error["code"], "E_INVALID_IDENTIFIER");
    for name in ["-rf", "--", "...", ".carrel", ".git"] {
        let arguments: &[&str] =
            if name == "--" { &["create", "--", "--"] } else { &["create", name] };
        if name == "--" {
            // Everything behind `--` is an identifier, so the root comes first.
            let root = fixture.root();
            let root = root.to_str().unwrap();
            let run = Run::of(fixture.bare(&["workspace", "create", "--root", root, "--", "--"]));
            assert_eq!(run.code, 0, "{}", run.stderr);
        } else {
            assert_eq!(fixture.run(arguments).code, 0, "{name}");
        }
    }
}

#[test]
fn completions_are_printed_for_a_shell() {
    let fixture = TestRoot::new();
    for (shell, word) in [("bash", "complete -"), ("zsh", "#compdef carrel"), ("fish", "complete ")]
    {
        let script = Run::of(fixture.bare(&["completions", shell])).stdout;
        assert!(script.contains(word) && script.contains("CARREL_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let fixture = TestRoot::new();
    let mut command = fixture.bare(&["completions", "zsh"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}
