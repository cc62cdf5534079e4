//! Links that lead to a workspace, inside one, and out of one, over every interface.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::interfaces::{Answer, Interface, ToolSession};
use crate::test_environment::TestEnvironment;

/// Calls that name a file or directory of the workspace by one path, and a part of the answer to each.
fn calls(top: &Path) -> Vec<(&'static str, Value, &'static str)> {
    let path = |below: &str| top.join(below).to_str().unwrap().to_owned();
    vec![
        ("Read", json!({ "file_path": path("directory/file") }), "contents"),
        (
            "Edit",
            json!({ "file_path": path("directory/file"), "old_string": "contents", "new_string": "edited" }),
            "replaced 1 occurrence(s)",
        ),
        (
            "MultiEdit",
            json!({ "file_path": path("directory/file"),
                "edits": [{ "old_string": "edited", "new_string": "edited twice" }] }),
            "replaced 1 occurrence(s)",
        ),
        ("Write", json!({ "file_path": path("directory/new"), "content": "new\n" }), "new"),
        ("LS", json!({ "path": path("directory") }), "file"),
        ("Glob", json!({ "path": path("directory"), "pattern": "*" }), "directory/file"),
        ("Grep", json!({ "path": path("directory"), "pattern": "twice" }), "directory/file"),
        (
            "Move",
            json!({ "source": path("directory/new"), "destination": path("directory/moved") }),
            "moved",
        ),
        ("Delete", json!({ "path": path("directory/moved") }), "moved"),
        ("Bash", json!({ "command": "cat file", "cwd": path("directory") }), "edited twice"),
        (
            "shell_run",
            json!({ "cmd": "cat", "args": ["file"], "cwd": path("directory") }),
            "edited twice",
        ),
        ("shell_run", json!({ "cmd": "cat", "args": [path("directory/file")] }), "edited twice"),
        (
            "shell_run",
            json!({ "cmd": "grep", "args": ["-c", "twice", format!("--file={}", path("pattern"))] }),
            "",
        ),
        ("shell_run", json!({ "cmd": path("script") }), "from the script"),
    ]
}

/// The workspace with its files as they were at first.
fn prepare(test_env: &TestEnvironment) {
    test_env.write("directory/file", "contents\n");
    test_env.write("pattern", "twice\n");
    test_env.write("script", "#!/bin/sh\necho from the script\n");
    let script = test_env.workspace().join("script");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(script, executable).unwrap();
}

/// Opens a session of the workspace `link`, relative to the directory that holds it.
fn open_link(test_env: &TestEnvironment, interface: Interface) -> Box<dyn ToolSession> {
    let above = test_env.path("");
    let options = ["--workspace", "link", "--tier", test_env.tier];
    interface.open_with(test_env, &options, move |command| {
        command.current_dir(&above);
    })
}

fn assert_answers(session: &mut dyn ToolSession, top: &Path, label: &str) {
    for (tool, arguments, part) in calls(top) {
        let Answer { text, is_error, .. } = session.call(tool, arguments.clone());
        assert!(!is_error && text.contains(part), "{label}: {tool} {arguments}: {text}");
    }
}

#[test]
fn a_relative_linked_workspace_takes_absolute_paths_in_both_spellings() {
    TestEnvironment::each(|test_env| {
        symlink("workspace", test_env.path("link")).unwrap();
        for interface in Interface::ALL {
            let mut session = open_link(test_env, interface);
            for top in ["link", "workspace"] {
                prepare(test_env);
                let label = format!("{test_env} {interface:?} {top}");
                assert_answers(&mut *session, &test_env.path(top), &label);
            }
        }
    });
}

#[test]
fn the_path_that_the_shell_shows_names_a_workspace_too() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    symlink("workspace", test_env.path("entered")).unwrap();
    let workspace = test_env.workspace();
    let (entered, unrelated) = (test_env.path("entered"), test_env.path("home"));
    for (shown, accepted) in [(entered.clone(), true), (unrelated, false)] {
        let mut command = test_env.carrel();
        command.args(["tool", "--workspace", ".", "Read"]);
        command.arg(format!("file_path={}", entered.join("directory/file").display()));
        let output = command.current_dir(&workspace).env("PWD", shown).output().unwrap();
        assert_eq!(output.status.success(), accepted, "{output:?}");
    }
}

#[test]
fn the_working_directory_of_exec_is_relative_or_absolute_in_both_spellings() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    symlink("workspace", test_env.path("link")).unwrap();
    let (through, real) = (test_env.path("link/directory"), test_env.path("workspace/directory"));
    for directory in [Path::new("directory"), &through, &real] {
        let mut command = test_env.carrel();
        command.args(["exec", "--workspace", "link", "--cwd"]).arg(directory);
        command.args(["--", "cat", "file"]).current_dir(test_env.path(""));
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "contents\n", "{output:?}");
    }
}

#[test]
fn absolute_links_that_stay_inside_work_in_every_tool() {
    TestEnvironment::each(|test_env| {
        let workspace = test_env.workspace();
        for interface in Interface::ALL {
            prepare(test_env);
            let _ = std::fs::remove_file(workspace.join("inward"));
            symlink(&workspace, workspace.join("inward")).unwrap();
            let options = ["--workspace", workspace.to_str().unwrap(), "--tier", test_env.tier];
            let mut session = interface.open(test_env, &options);
            // Every path of every call leads through the link.
            let label = format!("{test_env} {interface:?}");
            assert_answers(&mut *session, Path::new("inward"), &label);
            let moved = json!({ "source": "inward", "destination": "directory/inward" });
            session.call("Move", moved).ok();
            assert!(workspace.join("directory/inward").is_symlink(), "{label}");
            session.call("Delete", json!({ "path": "directory/inward" })).ok();
            assert!(!workspace.join("directory/inward").is_symlink(), "{label}");
            assert!(workspace.join("directory/file").is_file(), "{label}");
        }
    });
}

#[test]
fn searches_do_not_follow_links_below_the_place_where_they_begin() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    let workspace = test_env.workspace();
    symlink(workspace.join("directory"), workspace.join("inward")).unwrap();
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    let found = session.call("Grep", json!({ "pattern": "contents" })).ok();
    assert!(found.contains("directory/file") && !found.contains("inward"), "{found}");
    let found = session.call("Glob", json!({ "pattern": "**/file" })).ok();
    assert!(found.contains("directory/file") && !found.contains("inward"), "{found}");
}

#[test]
fn an_edit_through_an_absolute_link_changes_the_file_that_it_leads_to() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    let workspace = test_env.workspace();
    symlink(workspace.join("directory/file"), workspace.join("inward")).unwrap();
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    session.call("Read", json!({ "file_path": "directory/file" })).ok();
    let edit = json!({ "file_path": "inward", "old_string": "contents", "new_string": "edited" });
    session.call("Edit", edit).ok();
    assert!(workspace.join("inward").is_symlink());
    assert_eq!(std::fs::read_to_string(workspace.join("directory/file")).unwrap(), "edited\n");
}

#[test]
fn a_file_that_would_run_later_is_refused_behind_an_absolute_link_too() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    let workspace = test_env.workspace();
    test_env.write(".git/HEAD", "ref: refs/heads/main\n");
    test_env.write(".git/hooks/README", "none\n");
    symlink(workspace.join(".git/hooks"), workspace.join("inward")).unwrap();
    let mut session =
        Interface::Stdio.open(&test_env, &["--workspace", workspace.to_str().unwrap()]);
    let write = json!({ "file_path": "inward/pre-commit", "content": "#!/bin/sh\n" });
    let answer = session.call("Write", write);
    assert_eq!(answer.refused().0, "E_RUNS_LATER", "{answer:?}");
    assert!(!workspace.join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_link_among_the_arguments_of_a_program_is_judged_by_the_place_to_which_it_leads() {
    TestEnvironment::each(|test_env| {
        prepare(test_env);
        let workspace = test_env.workspace();
        std::fs::create_dir(test_env.path("outside")).unwrap();
        std::fs::write(test_env.path("outside/secret"), "secret\n").unwrap();
        for (target, name) in [
            ("../outside", "outward"),
            ("../outside/secret", "outward-file"),
            ("outward", "chain"),
            ("/etc", "absolute"),
            ("/dev/null", "null"),
            ("/bin/cat", "program"),
            ("../outside/secret", "evil"),
            ("directory", "inward"),
        ] {
            symlink(target, workspace.join(name)).unwrap();
        }
        symlink(workspace.join("directory"), workspace.join("absolute-inward")).unwrap();
        for interface in Interface::ALL {
            let options = ["--workspace", workspace.to_str().unwrap(), "--tier", test_env.tier];
            let mut session = interface.open(test_env, &options);
            let mut run = |cmd: &str, args: &[&str]| {
                session.call("shell_run", json!({ "cmd": cmd, "args": args }))
            };
            let absolute = workspace.join("outward/secret");
            for path in [
                "outward/secret",
                "outward-file",
                "chain/secret",
                "absolute/passwd",
                "inward/../outward/secret",
                "--file=outward/secret",
                absolute.to_str().unwrap(),
            ] {
                let answer = run("cat", &[path]);
                let (code, text) = answer.refused();
                assert_eq!(code, "E_SANDBOX_VIOLATION", "{test_env} {path}: {answer:?}");
                assert!(text.contains("through a link"), "{test_env} {path}: {text}");
                assert_eq!(answer.structured["error"]["detail"]["reason"], "link", "{answer:?}");
            }
            assert_eq!(run("./evil", &[]).refused().0, "E_SANDBOX_VIOLATION", "{test_env}");
            for path in ["inward/file", "absolute-inward/file"] {
                let answer = run("cat", &["null", path]);
                assert!(!answer.is_error && answer.text.contains("contents"), "{answer:?}");
            }
            let answer = run("./program", &["directory/file"]);
            assert!(answer.text.contains("contents"), "{test_env}: {answer:?}");
        }
    });
}
