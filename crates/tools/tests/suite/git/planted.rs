use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{begin, call, host, sure};
use crate::test_environment::{Setting, TestEnvironment};

/// What a planted program prints, and the file that it leaves.
const MARK: &str = "EVIL-RAN";

/// A program that a repository can make git run.
struct Plant {
    name: &'static str,
    prepare: fn(&Path),
    /// Words with which the git of the host runs it, to show that it was planted well.
    control: &'static [&'static str],
    /// What the tool is asked.
    operation: &'static str,
    args: &'static str,
    /// How git ends.
    exit: i64,
}

/// Makes a repository with a program `evil` beside it.
fn ground(top: &Path) {
    begin(top);
    let main = top.join("main");
    program(&main.join("evil"), &main);
    std::fs::write(main.join(".git/info/exclude"), "evil\nran\nhooks\n").unwrap();
}

fn program(path: &Path, main: &Path) {
    let text =
        format!("#!/bin/sh\ntouch {}/ran\necho {MARK}\necho {MARK} >&2\nexit 0\n", main.display());
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn config(top: &Path, name: &str) {
    let main = top.join("main");
    sure(&main, &["config", name, &main.join("evil").display().to_string()]);
}

fn change(top: &Path) {
    std::fs::write(top.join("main/file"), "one\n2\nthree\n").unwrap();
}

fn attributes(top: &Path, text: &str) {
    std::fs::write(top.join("main/.git/info/attributes"), text).unwrap();
}

fn hook(top: &Path, name: &str) {
    let main = top.join("main");
    let hooks = main.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    program(&hooks.join(name), &main);
}

/// Makes a bare repository that `origin` names, one commit ahead of `main`.
fn origin(top: &Path) {
    let main = top.join("main");
    sure(&main, &["clone", "-q", "--bare", ".", "origin.git"]);
    sure(&main, &["clone", "-q", "origin.git", "second"]);
    std::fs::write(main.join("second/file"), "one\ntwo\n3\n").unwrap();
    sure(&main.join("second"), &["commit", "-q", "-a", "-m", "ahead"]);
    sure(&main.join("second"), &["push", "-q", "origin", "main"]);
    let url = main.join("origin.git").display().to_string();
    sure(&main, &["remote", "add", "origin", &url]);
    sure(&main, &["config", "branch.main.remote", "origin"]);
    sure(&main, &["config", "branch.main.merge", "refs/heads/main"]);
}

/// A commit that says it is signed.
fn signed(top: &Path) {
    let main = top.join("main");
    let tree = sure(&main, &["rev-parse", "HEAD^{tree}"]);
    let text = format!(
        "tree {tree}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    );
    std::fs::write(main.join(".git/signed"), text).unwrap();
    let commit = sure(&main, &["hash-object", "-w", "-t", "commit", ".git/signed"]);
    sure(&main, &["update-ref", "refs/heads/main", &commit]);
}

/// A change put aside that has to be merged.
fn stashed(top: &Path) {
    let main = top.join("main");
    change(top);
    sure(&main, &["stash", "-q"]);
    std::fs::write(main.join("file"), "one\ntwo\nthree\nfour\n").unwrap();
    sure(&main, &["commit", "-q", "-a", "-m", "second"]);
}

fn submodule(top: &Path) {
    ground(top);
    let main = top.join("main");
    sure(&main, &["clone", "-q", ".", "other"]);
    sure(&main, &["submodule", "--quiet", "add", "./other", "module"]);
    sure(&main, &["commit", "-q", "-m", "module"]);
    let evil = main.join("evil").display().to_string();
    sure(&main.join("module"), &["config", "filter.x.clean", &evil]);
    std::fs::write(main.join(".git/modules/module/info/attributes"), "file filter=x\n").unwrap();
    std::fs::write(main.join("module/file"), "one\ntwo\nother\n").unwrap();
}

const PLANTS: &[Plant] = &[
    Plant {
        name: "a hook",
        prepare: |top| {
            ground(top);
            hook(top, "pre-commit");
        },
        control: &["commit", "--allow-empty", "-m", "x"],
        operation: "commit",
        args: "--allow-empty -m x",
        exit: 0,
    },
    Plant {
        name: "a hook for checkouts",
        prepare: |top| {
            ground(top);
            hook(top, "post-checkout");
        },
        control: &["checkout", "-b", "a"],
        operation: "checkout",
        args: "-b b",
        exit: 0,
    },
    Plant {
        name: "a hook elsewhere",
        prepare: |top| {
            ground(top);
            let main = top.join("main");
            std::fs::create_dir(main.join("hooks")).unwrap();
            program(&main.join("hooks/pre-commit"), &main);
            sure(&main, &["config", "core.hooksPath", "hooks"]);
        },
        control: &["commit", "--allow-empty", "-m", "x"],
        operation: "commit",
        args: "--allow-empty -m x",
        exit: 0,
    },
    Plant {
        name: "a hook for merges",
        prepare: |top| {
            ground(top);
            origin(top);
            hook(top, "post-merge");
        },
        control: &["pull", "--ff-only"],
        operation: "pull",
        args: "--ff-only",
        exit: 0,
    },
    Plant {
        name: "a monitor of files",
        prepare: |top| {
            ground(top);
            config(top, "core.fsmonitor");
        },
        control: &["status"],
        operation: "status",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a program for diffs",
        prepare: |top| {
            ground(top);
            config(top, "diff.external");
            change(top);
        },
        control: &["diff"],
        operation: "diff",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a program for some diffs",
        prepare: |top| {
            ground(top);
            config(top, "diff.x.command");
            attributes(top, "file diff=x\n");
            change(top);
        },
        control: &["diff"],
        operation: "diff",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a converter, in a diff",
        prepare: |top| {
            ground(top);
            config(top, "diff.x.textconv");
            attributes(top, "file diff=x\n");
            change(top);
        },
        control: &["diff"],
        operation: "diff",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a converter, in a commit",
        prepare: |top| {
            ground(top);
            config(top, "diff.x.textconv");
            attributes(top, "file diff=x\n");
        },
        control: &["show"],
        operation: "show",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a converter, in a log",
        prepare: |top| {
            ground(top);
            config(top, "diff.x.textconv");
            attributes(top, "file diff=x\n");
        },
        control: &["log", "-p"],
        operation: "log",
        args: "-p",
        exit: 0,
    },
    Plant {
        name: "a converter, in blame",
        prepare: |top| {
            ground(top);
            config(top, "diff.x.textconv");
            attributes(top, "file diff=x\n");
        },
        control: &["blame", "file"],
        operation: "blame",
        args: "file",
        exit: 0,
    },
    Plant {
        name: "a filter, on the way in",
        prepare: |top| {
            ground(top);
            config(top, "filter.x.clean");
            sure(&top.join("main"), &["config", "filter.x.required", "true"]);
            attributes(top, "file filter=x\n");
            change(top);
        },
        control: &["add", "file"],
        operation: "add",
        args: "file",
        exit: 0,
    },
    Plant {
        name: "a filter, where one only looks",
        prepare: |top| {
            ground(top);
            config(top, "filter.x.clean");
            attributes(top, "file filter=x\n");
            change(top);
        },
        control: &["diff"],
        operation: "diff",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a filter in a file that is included",
        prepare: |top| {
            ground(top);
            let main = top.join("main");
            let evil = main.join("evil").display().to_string();
            std::fs::write(
                main.join(".git/more"),
                format!("[filter \"a.b=c\"]\n\tclean = {evil}\n"),
            )
            .unwrap();
            sure(&main, &["config", "include.path", "more"]);
            attributes(top, "file filter=a.b=c\n");
            change(top);
        },
        control: &["diff"],
        operation: "diff",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a filter, on the way out",
        prepare: |top| {
            ground(top);
            config(top, "filter.x.smudge");
            attributes(top, "file filter=x\n");
            change(top);
        },
        control: &["checkout", "-f", "HEAD", "--", "file"],
        operation: "checkout",
        args: "-- file",
        exit: 0,
    },
    Plant {
        name: "a filter that stays",
        prepare: |top| {
            ground(top);
            config(top, "filter.x.process");
            attributes(top, "file filter=x\n");
            change(top);
        },
        control: &["add", "file"],
        operation: "add",
        args: "file",
        exit: 0,
    },
    Plant {
        name: "a filter of a submodule, where one looks",
        prepare: submodule,
        control: &["status"],
        operation: "status",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a filter of a submodule, where one adds",
        prepare: submodule,
        control: &["add", "-u"],
        operation: "add",
        args: "-u",
        exit: 0,
    },
    Plant {
        name: "a driver for merges",
        prepare: |top| {
            ground(top);
            stashed(top);
            config(top, "merge.x.driver");
            attributes(top, "file merge=x\n");
        },
        control: &["stash", "apply"],
        operation: "stash",
        args: "apply",
        exit: 0,
    },
    Plant {
        name: "a program for signatures, when committing",
        prepare: |top| {
            ground(top);
            config(top, "gpg.program");
            sure(&top.join("main"), &["config", "commit.gpgSign", "true"]);
        },
        control: &["commit", "--allow-empty", "-m", "x"],
        operation: "commit",
        args: "--allow-empty -m x",
        exit: 0,
    },
    Plant {
        name: "a program for signatures, when looking",
        prepare: |top| {
            ground(top);
            signed(top);
            config(top, "gpg.program");
            sure(&top.join("main"), &["config", "log.showSignature", "true"]);
        },
        control: &["log", "-1"],
        operation: "log",
        args: "-1",
        exit: 0,
    },
    Plant {
        name: "a program for signatures, in a format",
        prepare: |top| {
            ground(top);
            signed(top);
            config(top, "gpg.openpgp.program");
        },
        control: &["log", "-1", "--format=%G?"],
        operation: "log",
        args: "-1 '--format=%G? %GG'",
        exit: 0,
    },
    Plant {
        name: "an editor",
        prepare: |top| {
            ground(top);
            config(top, "core.editor");
        },
        control: &["commit", "--allow-empty"],
        operation: "commit",
        args: "--allow-empty",
        exit: 1,
    },
    Plant {
        name: "a program at the other end, when fetching",
        prepare: |top| {
            ground(top);
            origin(top);
            config(top, "remote.origin.uploadpack");
        },
        control: &["fetch"],
        operation: "fetch",
        args: "",
        exit: 0,
    },
    Plant {
        name: "a program at the other end, when pushing",
        prepare: |top| {
            ground(top);
            origin(top);
            config(top, "remote.origin.receivepack");
        },
        control: &["push", "origin", "HEAD:refs/heads/a"],
        operation: "push",
        args: "origin HEAD:refs/heads/b",
        exit: 0,
    },
    Plant {
        name: "a hook at the other end",
        prepare: |top| {
            ground(top);
            origin(top);
            let main = top.join("main");
            program(&main.join("origin.git/hooks/post-receive"), &main);
        },
        control: &["push", "origin", "HEAD:refs/heads/a"],
        operation: "push",
        args: "origin HEAD:refs/heads/b",
        exit: 0,
    },
    Plant {
        name: "a hook before pushing",
        prepare: |top| {
            ground(top);
            origin(top);
            hook(top, "pre-push");
        },
        control: &["push", "origin", "HEAD:refs/heads/a"],
        operation: "push",
        args: "origin HEAD:refs/heads/b",
        exit: 0,
    },
    Plant {
        name: "what lists borrowed objects",
        prepare: |top| {
            ground(top);
            let main = top.join("main");
            origin(top);
            sure(&main, &["clone", "-q", "--bare", "--shared", ".", "borrows.git"]);
            let evil = main.join("evil").display().to_string();
            sure(&main.join("borrows.git"), &["config", "core.alternateRefsCommand", &evil]);
            sure(&main, &["commit", "-q", "--allow-empty", "-m", "more"]);
        },
        control: &["push", "borrows.git", "HEAD:refs/heads/a"],
        operation: "push",
        args: "borrows.git HEAD:refs/heads/b",
        exit: 0,
    },
    Plant {
        name: "objects that are missing",
        prepare: |top| {
            ground(top);
            let main = top.join("main");
            origin(top);
            sure(&main, &["config", "extensions.partialClone", "origin"]);
            sure(&main, &["config", "remote.origin.promisor", "true"]);
            config(top, "remote.origin.uploadpack");
            let blob = sure(&main, &["rev-parse", "HEAD:file"]);
            std::fs::remove_file(main.join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..])))
                .unwrap();
        },
        control: &["show", "HEAD:file"],
        operation: "show",
        args: "HEAD:file",
        exit: 128,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_repository_configures_runs() {
    let mut failed = Vec::new();
    for plant in PLANTS {
        if let Err(reason) = try_plant(plant).await {
            failed.push(format!("{}: {reason}", plant.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Says how a program was run.
async fn try_plant(plant: &Plant) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("main");
    std::fs::create_dir(&main).unwrap();
    (plant.prepare)(directory.path());
    host(&main, plant.control);
    if !main.join("ran").exists() {
        return Err("it was not planted well".to_owned());
    }

    let test_env = TestEnvironment::with(Setting { prepare: plant.prepare, ..Setting::default() });
    let answer = test_env.call("git", call(plant.operation, plant.args)).await;
    let text = answer.text();
    if test_env.path("main/ran").exists()
        || text.contains(MARK)
        || test_env.get("file").contains(MARK)
    {
        return Err(format!("it ran: {text}"));
    }
    match answer.structured["exit_code"].as_i64() {
        Some(exit) if exit == plant.exit => Ok(()),
        exit => Err(format!("it ended with {exit:?}: {text}")),
    }
}

#[tokio::test]
async fn what_was_not_run_is_told_and_a_merge_is_still_one() {
    let test_env = TestEnvironment::with(Setting {
        prepare: |top| {
            ground(top);
            stashed(top);
            config(top, "merge.x.driver");
            config(top, "filter.y.clean");
            attributes(top, "file merge=x\n");
        },
        ..Setting::default()
    });
    let answer = test_env.call("git", call("stash", "apply")).await;
    assert_eq!(answer.structured["not_run"], serde_json::json!(["filter.y", "merge.x"]));
    assert!(
        answer
            .text()
            .contains("programs that the repository configures were not run: filter.y, merge.x")
    );
    assert_eq!(
        test_env.get("file"),
        "one\n2\nthree\nfour\n",
        "merged as git does without a driver"
    );
}
