use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{Run, TestRoot};

fn run(fixture: &TestRoot, arguments: &[&str]) -> Run {
    let mut command = fixture.bare(arguments);
    command.env("XDG_STATE_HOME", fixture.path("state"));
    Run::of(command)
}

#[test]
fn exec_needs_no_dashes_before_the_program() {
    let fixture = TestRoot::new();
    let workspace = fixture.path("work");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("file"), "").unwrap();
    let options = ["exec", "--workspace", workspace.to_str().unwrap(), "--sandbox", "off"];
    for argv in [&["ls", "-1"][..], &["--", "ls", "-1"], &["sh", "-c", "ls -- file"]] {
        let listed = run(&fixture, &[&options, argv].concat());
        assert_eq!((listed.code, listed.stdout.as_str()), (0, "file\n"), "{}", listed.stderr);
    }
    let unknown = run(&fixture, &["exec", "--nonsense", "ls"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("'--nonsense'"), "{}", unknown.stderr);
}

#[test]
fn words_of_other_programs_lead_to_the_command() {
    let fixture = TestRoot::new();
    for (word, command) in [
        ("delete", "rm"),
        ("remove", "rm"),
        ("list", "ls"),
        ("new", "create"),
        ("info", "show"),
        ("prune", "gc"),
    ] {
        let run = run(&fixture, &["workspace", word, "A"]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(&format!("'{command}'")), "{word}: {}", run.stderr);
    }
}

#[test]
fn a_root_that_was_named_and_is_missing_is_an_error() {
    let fixture = TestRoot::new();
    let missing = fixture.path("missing");
    let root = missing.to_str().unwrap();
    for command in [&["ls"][..], &["ls", "--kept"], &["gc"]] {
        let words = [&["workspace"], command, &["--root", root]].concat();
        let plain = run(&fixture, &words);
        let expected = format!(
            "error: there is no root {root}; check the spelling; `carrel workspace create NAME --root {root}` makes it [E_NOT_FOUND]\n"
        );
        assert_eq!((plain.code, plain.stderr), (1, expected), "{command:?}");
    }
    assert!(!missing.exists());
    // A workflow's root is made with its first workspace.
    std::fs::write(fixture.path("WORKFLOW.md"), "---\nworkspace: {root: missing}\n---\n").unwrap();
    let empty = run(&fixture, &["workspace", "ls", "--json"]);
    let listed: Value = serde_json::from_str(&empty.stdout).unwrap();
    assert_eq!((empty.code, &listed["workspaces"]), (0, &json!([])));
}

#[test]
fn a_directory_that_cannot_be_a_workspace_gets_the_hint_for_its_case() {
    let fixture = TestRoot::new();
    fixture.run(&["create", "A"]);
    let root = fixture.root();
    let error = |workspace: &str| {
        let run = run(&fixture, &["exec", "--workspace", workspace, "--", "true"]);
        assert_eq!(run.code, 125, "{workspace}");
        run.stderr
    };
    let shown = root.to_str().unwrap();
    assert_eq!(
        error(shown),
        format!(
            "error: {shown} is a root of workspaces: it holds .carrel, Carrel's own state; name a workspace in it, which `carrel workspace ls --root {shown}` lists, or a directory outside it [E_SANDBOX_VIOLATION]\n"
        )
    );
    assert_eq!(
        error(&format!("{shown}/.carrel/logs")),
        format!(
            "error: {shown}/.carrel/logs is a directory of Carrel itself; name a directory outside {shown}/.carrel [E_SANDBOX_VIOLATION]\n"
        )
    );
    for (typed, meant) in [("~", "$HOME"), ("~/app", "$HOME/app")] {
        let hint =
            format!("; the shell did not expand ~: write --workspace \"{meant}\" [E_NOT_FOUND]");
        assert!(error(typed).trim_end().ends_with(&hint), "{}", error(typed));
    }
}

#[test]
fn a_failure_is_said_once() {
    let fixture = TestRoot::with_hooks("after_create: echo no luck; exit 3");
    let removed = fixture.run(&["rm", "A"]).stderr;
    assert_eq!(removed.matches("no workspace \"A\"").count(), 1, "{removed}");
    let created = fixture.run(&["create", "A"]).stderr;
    assert_eq!(created.matches("no luck").count(), 1, "{created}");
    let mut task = fixture.bare(&["task", "ls"]);
    task.env_remove("CARREL_TOKEN");
    let refused = Run::of(task).stderr;
    assert!(refused.ends_with("`carrel token new` makes one [E_USAGE]\n"), "{refused}");
    // Lines about a failure that does not end the command are shown.
    fixture.write_hooks("before_remove: echo bad; exit 9");
    fixture.json(&["create", "B"]);
    let removed = fixture.run(&["rm", "B"]);
    assert!(removed.code == 0 && removed.stderr.contains("WARN Workspace hook failed"));
}

#[test]
fn ids_are_given_as_id_and_workspaces_as_directories() {
    let fixture = TestRoot::new();
    let id = "0198c0de-7a11-7000-8000-000000000001";
    std::fs::create_dir(fixture.path("data")).unwrap();
    let token = run(&fixture, &["token", "new", "--data", "data", "--id", id]);
    assert_eq!(token.code, 0, "{}", token.stderr);
    for words in [
        &["token", "new", "--data", "data", "--workspace", id][..],
        &["task", "ls", "--workspace", id],
    ] {
        let refused = run(&fixture, words);
        assert!(
            refused.code == 2 && refused.stderr.contains("'--workspace'"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn the_default_root_says_once_that_it_may_not_last() {
    let fixture = TestRoot::new();
    let create = |name: &str| {
        let mut command = fixture.bare(&["workspace", "create", name]);
        command.env("TMPDIR", fixture.path("home"));
        Run::of(command)
    };
    let first = create("A");
    let expected = format!(
        "WARN Workspaces in the temporary directory may not survive a reboot; workspace.root in WORKFLOW.md or --root moves them root={}\n",
        fixture.path("home/carrel_workspaces").display()
    );
    assert_eq!((first.code, first.stderr), (0, expected));
    let second = create("B");
    assert_eq!((second.code, second.stderr.as_str()), (0, ""));
    assert_eq!(fixture.run(&["create", "C"]).stderr, "", "a root that was named");
}
