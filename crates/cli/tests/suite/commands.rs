use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, World, eventually};

#[test]
fn the_same_workspace_is_created_and_then_reused() {
    let world = World::new();
    let path = world.root().join("XYZ_456");
    let first = world.run(&["create", "XYZ/456"]);
    assert_eq!(first.stdout, format!("created XYZ_456 at {}\n", path.display()));
    let second = world.run(&["create", "XYZ/456"]);
    assert_eq!(second.stdout, format!("reused XYZ_456 at {}\n", path.display()));
    assert_eq!((first.code, second.code), (0, 0));
    assert_eq!(first.stderr + &second.stderr, "");
}

#[test]
fn create_prints_its_documented_shape() {
    let world = World::new();
    let path = world.root().join("XYZ_456");
    let shape = |created: bool| {
        json!({"identifier": "XYZ/456", "key": "XYZ_456", "path": path, "created": created,
               "state": "ready", "layout": "plain"})
    };
    assert_eq!(world.json(&["create", "XYZ/456"]), shape(true));
    assert_eq!(world.json(&["create", "XYZ/456"]), shape(false));
    let tenant = world.json(&["create", "T", "--layout", "tenant"]);
    assert_eq!(tenant["layout"], "tenant");
    assert!(world.root().join("T/artifacts").is_dir());
}

#[test]
fn key_consults_the_record_of_the_root_it_is_given() {
    let world = World::new();
    world.json(&["create", "XYZ_456"]);
    let derived = Run::of(world.bare(&["workspace", "key", "XYZ/456", "--json"]));
    assert_eq!(derived.stdout, "{\"identifier\":\"XYZ/456\",\"key\":\"XYZ_456\"}\n");
    let consulted = world.json(&["key", "XYZ/456"]);
    assert_eq!(consulted, json!({"identifier": "XYZ/456", "key": "XYZ_456--d5a392b6d232cd76"}));
}

#[test]
fn ls_prints_its_documented_shape() {
    let world = World::new();
    assert_eq!(world.json(&["ls"]), json!({"root": world.root(), "workspaces": []}));
    assert!(!world.root().exists(), "listing made the root");
    world.json(&["create", "A"]);
    std::fs::write(world.root().join("A/file"), vec![0; 5000]).unwrap();
    let listed = world.json(&["ls", "--recount"]);
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
    let world = World::new();
    world.run(&["create", "evil\u{1b}[2J\nname"]);
    let table = world.run(&["ls"]).stdout;
    assert!(table.starts_with("IDENTIFIER"), "{table}");
    assert!(table.contains("evil\\u{1b}[2J\\nname") && !table.contains('\u{1b}'), "{table}");
    assert_eq!(table.lines().count(), 2);
}

#[test]
fn show_tells_record_usage_hooks_and_git() {
    let world = World::with_hooks(
        "after_create: |\n  git init --quiet --initial-branch=trunk .\n  echo hi > file",
    );
    world.json(&["create", "A", "--issue-id", "id-1"]);
    let shown = world.json(&["show", "A"]);
    assert_eq!(shown["issue_id"], "id-1");
    assert_eq!(shown["quota_bytes"], 5_u64 << 30);
    assert_eq!(shown["git"][0]["branch"], "trunk");
    assert_eq!(shown["git"][0]["changed_files"], 1);
    let run = &shown["hook_runs"][0];
    assert_eq!((&run["hook"], &run["end"]), (&json!("after_create"), &json!("succeeded")));
    assert!(std::path::Path::new(run["log"].as_str().unwrap()).is_file());
    let text = world.run(&["show", "A"]).stdout;
    assert!(text.contains("git .") && text.contains("trunk, 1 changed files"), "{text}");
}

#[test]
fn a_removed_workspace_is_gone_at_once_and_deleted_soon() {
    let world = World::new();
    world.json(&["create", "A"]);
    let removed = world.json(&["rm", "A"]);
    assert_eq!(
        removed,
        json!({"identifier": "A", "key": "A", "path": world.root().join("A"), "removed": true})
    );
    assert!(!world.root().join("A").exists());
    eventually("the trash is empty", || world.trash() == 0);
    assert_eq!(world.run(&["rm", "A", "--json"]).error()["code"], "E_WORKSPACE_NOT_FOUND");
}

#[test]
fn rm_by_path_holds_the_path_to_the_rules() {
    let world = World::new();
    let path = world.json(&["create", "A"])["path"].as_str().unwrap().to_owned();
    let root = world.root();
    for (path, kind) in [
        (root.to_str().unwrap(), "workspace_equals_root"),
        ("/tmp", "workspace_outside_root"),
        (&format!("{path}/sub"), "workspace_outside_root"),
    ] {
        let run = world.run(&["rm", "--path", path, "--json"]);
        assert_eq!((run.code, &run.error()["kind"]), (1, &json!(kind)), "{path}");
    }
    assert_eq!(world.json(&["rm", "--path", &path])["removed"], true);
}

#[test]
fn unsaved_work_is_kept_when_asked_for() {
    let commit = "git -c user.name=N -c user.email=e@x commit --quiet --allow-empty -m start";
    let world = World::with_hooks(&format!("after_create: git init --quiet . && {commit}"));
    world.json(&["create", "A"]);
    let error = world.run(&["rm", "A", "--keep-if-dirty", "--json"]).error();
    assert_eq!(error["code"], "E_WORKSPACE_DIRTY");
    assert_eq!(error["detail"]["reasons"], json!(["1 commits on no remote in ."]));
    assert!(world.root().join("A").is_dir());
    // The same commit on a remote is saved work.
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(arguments).current_dir(world.root().join("A"));
        assert!(command.output().unwrap().status.success(), "git {arguments:?}");
    };
    let bare = world.path("bare.git");
    git(&["init", "--quiet", "--bare", bare.to_str().unwrap()]);
    git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    git(&["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    git(&["fetch", "--quiet", "origin"]);
    std::fs::write(world.root().join("A/new"), "unsaved").unwrap();
    assert_eq!(world.run(&["rm", "A", "--keep-if-dirty"]).code, 1);
    std::fs::remove_file(world.root().join("A/new")).unwrap();
    assert_eq!(world.json(&["rm", "A", "--keep-if-dirty"])["removed"], true);
}

#[test]
fn git_is_asked_without_running_what_the_repository_configured() {
    let world = World::new();
    world.json(&["create", "A"]);
    let directory = world.root().join("A");
    let trap = world.path("trapped");
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(arguments).current_dir(&directory);
        assert!(command.output().unwrap().status.success(), "git {arguments:?}");
    };
    git(&["init", "--quiet", "."]);
    std::fs::write(directory.join("file"), "one").unwrap();
    std::fs::write(directory.join(".gitattributes"), "* filter=trap\n").unwrap();
    git(&["add", "."]);
    let touch = format!("touch {}", trap.display());
    for key in ["filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "core.fsmonitor"]
    {
        git(&["config", key, &touch]);
    }
    std::fs::write(directory.join("file"), "two").unwrap();
    let shown = world.json(&["show", "A"]);
    assert_eq!(shown["git"][0]["changed_files"], 2, "{shown}");
    assert!(!trap.exists(), "the repository's own command ran");
}

#[test]
fn verify_lists_every_kind_of_trouble_with_a_fix() {
    let world = World::new();
    for name in ["fine", "gone", "half", "taken"] {
        world.json(&["create", name]);
    }
    let root = world.root();
    std::fs::remove_dir(root.join("gone")).unwrap();
    std::fs::remove_dir(root.join("taken")).unwrap();
    std::fs::write(root.join("taken"), "").unwrap();
    std::fs::create_dir(root.join("stray")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    std::fs::write(root.join(".carrel/locks/nobody.lock"), "").unwrap();
    let record = root.join(".carrel/records/half.json");
    let text = std::fs::read_to_string(&record).unwrap().replace("ready", "creating");
    std::fs::write(record, text).unwrap();
    let run = world.run(&["verify", "--json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
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
    let world = World::new();
    world.json(&["create", "gone"]);
    std::fs::remove_dir(world.root().join("gone")).unwrap();
    let dry = world.json(&["gc", "--dry-run"]);
    assert_eq!(dry["actions"], json!([{"action": "drop_record", "key": "gone"}]));
    assert_eq!(
        world.run(&["gc", "--dry-run"]).stdout,
        "would drop the record of gone, whose directory is gone\n"
    );
    assert_eq!(world.json(&["gc"])["actions"], dry["actions"]);
    assert_eq!(world.json(&["ls"])["workspaces"], json!([]));
}

#[test]
fn wrong_usage_exits_with_two_and_suggests() {
    let world = World::new();
    let run = Run::of(world.bare(&["workspace", "creat", "A"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("'create'"), "{}", run.stderr);
    let run = Run::of(world.bare(&["workspace", "rm", "--json"]));
    assert_eq!((run.code, &run.error()["code"]), (2, &json!("E_USAGE")));
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert_eq!(Run::of(world.bare(&["--help"])).code, 0);
    assert!(Run::of(world.bare(&["workspace", "create", "--help"])).stdout.contains("Examples:"));
}

#[test]
fn names_that_cannot_be_workspaces_are_refused() {
    let world = World::new();
    for name in [".", "..", ""] {
        let run = world.run(&["create", name, "--json"]);
        assert_eq!(
            (run.code, &run.error()["code"]),
            (1, &json!("E_INVALID_IDENTIFIER")),
            "{name:?}"
        );
    }
    for name in ["-rf", "--", "...", ".carrel", ".git"] {
        let arguments: &[&str] =
            if name == "--" { &["create", "--", "--"] } else { &["create", name] };
        if name == "--" {
            // Everything behind `--` is an identifier, so the root comes first.
            let root = world.root();
            let root = root.to_str().unwrap();
            let run = Run::of(world.bare(&["workspace", "create", "--root", root, "--", "--"]));
            assert_eq!(run.code, 0, "{}", run.stderr);
        } else {
            assert_eq!(world.run(arguments).code, 0, "{name}");
        }
    }
}

#[test]
fn completions_are_printed_for_a_shell() {
    let world = World::new();
    let script = Run::of(world.bare(&["completions", "bash"])).stdout;
    assert!(script.contains("_carrel") && script.contains("workspace"));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let world = World::new();
    let mut command = world.bare(&["completions", "zsh"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}
