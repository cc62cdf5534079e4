//! Forks: attempts on a workspace that see its files, change their own, and replace it or go.

/// Forks that a crash or a person left without something that they need.
mod broken;
/// Changes of one fork against another, and patches.
mod comparing;
/// The end of forks that nothing uses.
mod expiring;
/// Every way to change a base, while it has forks.
mod frozen;
/// Clean-ups that are killed.
mod killed;
/// Limits of commands, in forks.
mod limits;
/// Promotions beside one another, and their failures.
mod promoting;
/// Work that is put onto a base which moved on.
mod rebasing;
/// Forks made and used by one session of MCP.
mod tools;

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::test_environment::{Caller, Done, TestEnvironment};

/// A workspace `X` of a root, with some files, and the commands about it.
struct Base {
    test_env: TestEnvironment,
    path: PathBuf,
}

impl Base {
    /// One as an administrator and one as an ordinary user, in the tier that has overlays.
    fn each(check: impl Fn(&Self) + Sync) {
        Self::each_in("full", check);
    }

    fn each_in(tier: &str, check: impl Fn(&Self) + Sync) {
        let all: Vec<_> =
            TestEnvironment::all().into_iter().filter(|one| one.tier == tier).collect();
        std::thread::scope(|scope| {
            for test_env in all {
                scope.spawn(|| check(&Self::new(test_env)));
            }
        });
    }

    fn new(test_env: TestEnvironment) -> Self {
        let path = test_env.managed("200M");
        let base = Self { test_env, path };
        base.line(
            "X",
            "mkdir src && echo one > a && echo two > src/b && ln -s a link && git init -q",
        );
        base
    }

    /// Runs a line for the shell in a workspace, which has to succeed; returns its output.
    fn line(&self, workspace: &str, line: &str) -> String {
        let done = self.try_line(workspace, line);
        assert_eq!(done.code, 0, "{}: {line}: {done:?}", self.test_env);
        done.stdout().to_owned()
    }

    fn try_line(&self, workspace: &str, line: &str) -> Done {
        self.test_env.line_in(&self.root().join(workspace), line)
    }

    fn root(&self) -> &Path {
        self.path.parent().unwrap()
    }

    fn workspace(&self, arguments: &[&str]) -> Done {
        let mut command = self.test_env.carrel();
        command.args(["workspace", "--json"]).args(arguments).arg("--root").arg(self.root());
        if ["fork", "diff", "promote", "rebase"].contains(&arguments[0]) {
            command.args(["--tier", self.test_env.tier]);
        }
        Done::of(command)
    }

    /// Runs a command about workspaces that has to succeed; returns its data.
    fn managed(&self, arguments: &[&str]) -> Value {
        let done = self.workspace(arguments);
        assert_eq!(done.code, 0, "{}: {arguments:?}: {done:?}", self.test_env);
        done.json
    }

    /// Runs a command about workspaces that prints for people; returns stdout and stderr.
    fn text(&self, arguments: &[&str]) -> (String, String) {
        let mut command = self.test_env.carrel();
        command.arg("workspace").args(arguments).arg("--root").arg(self.root());
        if ["fork", "diff", "promote", "rebase"].contains(&arguments[0]) {
            command.args(["--tier", self.test_env.tier]);
        }
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    /// The changes of a fork in words.
    fn changes(&self, arguments: &[&str]) -> Vec<String> {
        let diff = self.managed(arguments);
        let changes = diff["changes"].as_array().unwrap().iter();
        let word = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
        changes.map(|one| format!("{} {}", word(one, "change"), word(one, "path"))).collect()
    }

    /// Calls a tool in a workspace.
    fn tool(&self, workspace: &str, name: &str, arguments: &Value) -> Done {
        let mut command = self.test_env.carrel();
        command.args(["tool", "--json", name]).arg(arguments.to_string());
        command.arg("--workspace").arg(self.root().join(workspace));
        Done::of(command)
    }

    fn keys(&self) -> Vec<String> {
        let listed = self.managed(&["ls"]);
        let workspaces = listed["workspaces"].as_array().unwrap();
        workspaces.iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_fork_begins_as_its_base_and_changes_only_itself() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let made = base.managed(&["fork", "X", "--count", "2"]);
        let keys: Vec<_> =
            made["forks"].as_array().unwrap().iter().map(|one| &one["key"]).collect();
        assert_eq!(keys, ["X.fork-1", "X.fork-2"], "{test_env}");
        assert_eq!(base.line("X.fork-1", "cat a src/b link"), "one\ntwo\none\n", "{test_env}");
        base.line(
            "X.fork-1",
            "echo mine > a; rm src/b; mkdir new; echo x > new/file; chmod 700 src",
        );
        let read = base.tool("X.fork-1", "Read", &json!({ "file_path": "a" }));
        assert!(read.json.to_string().contains("mine"), "{test_env}: {read:?}");
        let write = json!({ "file_path": "by-tool", "content": "from a tool\n" });
        assert_eq!(base.tool("X.fork-1", "Write", &write).code, 0, "{test_env}");
        assert_eq!(base.line("X.fork-1", "cat by-tool"), "from a tool\n", "{test_env}");

        assert_eq!(base.line("X", "cat a src/b; ls"), "one\ntwo\na\nlink\nsrc\n", "{test_env}");
        assert_eq!(
            base.line("X.fork-2", "cat a src/b; ls"),
            "one\ntwo\na\nlink\nsrc\n",
            "{test_env}"
        );
        let diff = base.managed(&["diff", "X.fork-1"]);
        let changes: Vec<String> = diff["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                format!("{} {}", one["change"].as_str().unwrap(), one["path"].as_str().unwrap())
            })
            .collect();
        let expected = [
            "modified a",
            "added by-tool",
            "added new",
            "added new/file",
            "mode src",
            "deleted src/b",
        ];
        assert_eq!(changes, expected, "{test_env}");
        assert_eq!(base.managed(&["diff", "X.fork-2"])["changes"], json!([]), "{test_env}");
    });
}

#[test]
fn a_fork_sees_no_other_file_of_its_base_or_of_another_fork() {
    Base::each(|base| {
        base.managed(&["fork", "X", "--count", "2"]);
        base.line("X.fork-2", "echo secret > secret");
        let root = base.root().display();
        let line = format!(
            "echo mine > a; ls {root}; cat {root}/X/a {root}/X.fork-2/secret; find / -name secret -size -2 2>/dev/null; \
             grep -l secret /proc/*/root/* /proc/*/cwd/* 2>/dev/null; cat /proc/self/mountinfo"
        );
        let done = base.try_line("X.fork-1", &line);
        let shown = done.stdout();
        let names: Vec<&str> = shown.lines().take_while(|line| !line.contains(' ')).collect();
        assert_eq!(names, ["X", "X.fork-1", "mine"], "{}: {done:?}", base.test_env);
        for hidden in ["secret", "/upper", "/work/", ".carrel/forks"] {
            assert!(!shown.contains(hidden), "{}: {hidden}: {done:?}", base.test_env);
        }
    });
}

#[test]
fn programs_that_name_the_base_find_the_files_of_the_fork() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let at_base = base.root().join("X").display().to_string();
        let install = format!(
            "mkdir -p env/bin; ln -s /bin/sh env/bin/sh; printf '#!{at_base}/env/bin/sh\ncat {at_base}/a\n' > env/bin/tool; \
             chmod +x env/bin/tool"
        );
        base.line("X", &install);
        base.managed(&["fork", "X"]);
        let line =
            format!("echo mine > a; env/bin/tool; echo more > {at_base}/b; rm -f {at_base}; ls");
        let done = base.try_line("X.fork-1", &line);
        assert_eq!(done.stdout(), "mine\na\nb\nenv\nlink\nsrc\n", "{test_env}: {done:?}");
        let done = base.try_line("X", "cat a; ls");
        assert_eq!(done.stdout(), "one\na\nenv\nlink\nsrc\n", "{test_env}: {done:?}");
    });
}

#[test]
fn the_base_is_frozen_while_it_has_forks() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X"]);
        let done = base.try_line("X", "echo late > a; cat a");
        assert_eq!(done.stdout(), "one\n", "{test_env}: {done:?}");
        assert!(
            done.stderr.is_empty() || !done.stderr.contains("panicked"),
            "{test_env}: {done:?}"
        );
        let write = json!({ "file_path": "late", "content": "late\n" });
        let removal = json!({ "path": "src", "recursive": true });
        let patch = json!({ "patch": "--- a/late\n+++ b/late\n@@ -0,0 +1 @@\n+late\n" });
        let calls = [("Write", write), ("Delete", removal), ("ApplyPatch", patch)];
        for (tool, arguments) in calls {
            let done = base.tool("X", tool, &arguments);
            assert_ne!(done.code, 0, "{test_env}: {tool}: {done:?}");
            let text = format!("{}{}", done.json, done.stderr);
            assert!(text.contains("E_WORKSPACE_FROZEN"), "{test_env}: {tool}: {text}");
            assert!(text.contains("X.fork-1"), "{test_env}: {tool}: {text}");
        }
        let removed = base.workspace(&["rm", "X"]);
        assert_eq!(removed.error()["code"], "E_WORKSPACE_FROZEN", "{test_env}: {removed:?}");
        assert_eq!(base.line("X", "ls; cat a src/b"), "a\nlink\nsrc\none\ntwo\n", "{test_env}");

        base.managed(&["rm", "X.fork-1"]);
        base.line("X", "echo thawed > a");
        assert_eq!(base.keys(), ["X"], "{test_env}");
    });
}

#[test]
fn no_fork_is_made_while_a_command_may_change_the_base() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let mut command =
            test_env.exec_in(&base.path, &["-c", "echo started; read line; echo late > late"]);
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = std::io::BufReader::new(running.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        let refused = base.workspace(&["fork", "X"]);
        assert_eq!(refused.error()["code"], "E_WORKSPACE_BUSY", "{test_env}: {refused:?}");
        drop(running.stdin.take());
        assert!(running.wait().unwrap().success(), "{test_env}");
        base.managed(&["fork", "X"]);
        assert_eq!(base.line("X.fork-1", "ls late"), "late\n", "{test_env}");
    });
}

#[test]
fn a_promoted_fork_becomes_its_base_and_the_work_of_the_others_is_kept() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "winner", "--as", "loser", "--as", "idle"]);
        let work = "echo won > a; rm -r src; mkdir src; echo new > src/c; ln -s src/c other; chmod 755 a; \
                    git add -A; git commit -qm won";
        base.line("winner", work);
        base.line("loser", "echo lost > b");
        let promoted = base.managed(&["promote", "winner"]);
        let ended = json!([
            { "key": "idle", "snapshot": null, "only_ignored": false },
            { "key": "loser", "snapshot": "fork-loser", "only_ignored": false },
        ]);
        assert_eq!(promoted["ended"], ended, "{test_env}");
        assert_eq!(base.keys(), ["X"], "{test_env}");
        let now =
            "cat a src/c other; ls; stat -c %a a; git status --porcelain; git log --format=%s";
        let expected = "won\nnew\nnew\na\nlink\nother\nsrc\n755\nwon\n";
        assert_eq!(base.line("X", now), expected, "{test_env}");

        let restore = json!({ "name": promoted["before"] });
        let restored = base.tool("X", "snapshot_restore", &restore);
        assert_eq!(restored.code, 0, "{test_env}: {restored:?}");
        assert_eq!(base.line("X", "cat a src/b"), "one\ntwo\n", "{test_env}");
        let restored = base.tool("X", "snapshot_restore", &json!({ "name": "fork-loser" }));
        assert_eq!(restored.code, 0, "{test_env}: {restored:?}");
        assert_eq!(base.line("X", "cat a b"), "one\nlost\n", "{test_env}");
    });
}

#[test]
fn a_base_that_was_changed_past_carrel_is_not_overwritten() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X"]);
        base.line("X.fork-1", "echo mine > a");
        std::fs::write(base.path.join("src/b"), "by an editor\n").unwrap();
        let refused = base.workspace(&["promote", "X.fork-1"]);
        let error = refused.error();
        assert_eq!(error["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        assert_eq!(error["detail"]["paths"], json!(["src/b"]), "{test_env}: {refused:?}");
        assert_eq!(base.line("X", "cat a src/b"), "one\nby an editor\n", "{test_env}");
        assert_eq!(base.line("X.fork-1", "cat a"), "mine\n", "{test_env}");
    });
}

#[test]
fn what_cannot_be_forked_or_promoted_says_why() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X"]);
        let code = |arguments: &[&str]| base.workspace(arguments).error()["code"].clone();
        assert_eq!(code(&["fork", "X.fork-1"]), "E_FORK_REFUSED", "{test_env}");
        assert_eq!(code(&["promote", "X"]), "E_FORK_REFUSED", "{test_env}");
        assert_eq!(code(&["diff", "X"]), "E_FORK_REFUSED", "{test_env}");
        assert_eq!(code(&["fork", "nothing"]), "E_WORKSPACE_NOT_FOUND", "{test_env}");
        assert_eq!(code(&["fork", "X", "--as", "X"]), "E_ALREADY_EXISTS", "{test_env}");
        assert_eq!(code(&["fork", "X", "--as", "X.fork-1"]), "E_ALREADY_EXISTS", "{test_env}");
    });
}

#[test]
fn a_fork_has_its_own_quota_which_counts_what_it_changed() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.line("X", "head -c 20M /dev/urandom > large");
        base.managed(&["fork", "X", "--quota", "10M"]);
        base.line("X.fork-1", "head -c 4M /dev/zero > small; wc -c < large");
        let done = base.try_line(
            "X.fork-1",
            "for part in $(seq 100); do head -c 2M /dev/urandom >> more; done",
        );
        assert_eq!(done.json["limit"], "quota", "{test_env}: {done:?}");
        let shown = base.managed(&["show", "X.fork-1", "--recount"]);
        let used = shown["usage_bytes"].as_u64().unwrap();
        assert!((4 << 20..16 << 20).contains(&used), "{test_env}: {used}");
    });
}

#[test]
fn where_there_are_no_overlays_a_fork_is_a_copy() {
    Base::each_in("landlock", |base| {
        let test_env = &base.test_env;
        let made = base.managed(&["fork", "X", "--as", "winner", "--as", "other"]);
        assert_eq!(made["forks"][0]["kind"], "copy", "{test_env}");
        base.line("winner", "cat a src/b && echo won > a && rm -r src && mkdir -p new/deep && echo x > new/deep/file");
        let diff = base.managed(&["diff", "winner"]);
        assert_eq!(diff["changes"].as_array().unwrap().len(), 6, "{test_env}: {diff}");
        base.managed(&["promote", "winner"]);
        assert_eq!(
            base.line("X", "cat a new/deep/file; ls"),
            "won\nx\na\nlink\nnew\n",
            "{test_env}"
        );
        assert_eq!(base.line("other", "cat a src/b"), "one\ntwo\n", "{test_env}");
        let refused = base.workspace(&["promote", "other"]);
        assert_eq!(refused.error()["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        base.line("X", "echo not frozen > a");
        assert_eq!(base.keys(), ["X", "other"], "{test_env}");
    });
}

#[test]
fn a_fork_of_a_server_that_runs_as_root_belongs_to_the_owner_of_its_base() {
    carrel_skip::needs!(Root);
    let test_env = TestEnvironment::new(Caller::Root, "full");
    let base = Base::new(test_env);
    base.managed(&["fork", "X"]);
    base.line("X.fork-1", "echo mine > file; mkdir dir");
    let write = json!({ "file_path": "by-tool", "content": "x\n" });
    assert_eq!(base.tool("X.fork-1", "Write", &write).code, 0);
    base.managed(&["promote", "X.fork-1"]);
    let owner = |name: &str| {
        use std::os::unix::fs::MetadataExt as _;
        let found = std::fs::metadata(base.path.join(name)).unwrap();
        (found.uid(), found.gid())
    };
    let top = owner(".");
    assert_eq!([owner("file"), owner("dir"), owner("by-tool")], [top; 3]);
}

#[test]
fn a_second_process_on_a_fork_is_refused_and_harms_nothing() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X"]);
        let fork = base.root().join("X.fork-1");
        let line = "echo started; read line; echo more >> a && rm src/b && cat a";
        let mut command = test_env.exec_in(&fork, &["-c", line]);
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = std::io::BufReader::new(running.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let second = base.try_line("X.fork-1", "true");
        assert_eq!(second.error()["code"], "E_WORKSPACE_BUSY", "{test_env}: {second:?}");
        drop(running.stdin.take());
        let rest: Vec<String> = output.lines().map(Result::unwrap).collect();
        assert!(running.wait().unwrap().success(), "{test_env}: {rest:?}");
        assert_eq!(rest, ["one", "more"], "{test_env}");
    });
}

#[test]
fn changed_forks_count_as_unsaved_and_keep_their_snapshots_apart() {
    Base::each(|base| {
        let test_env = &base.test_env;
        for round in ["first", "second"] {
            base.managed(&["fork", "X", "--count", "2"]);
            base.line("X.fork-2", &format!("echo {round} > {round}"));
            let refused = base.workspace(&["rm", "X.fork-2", "--keep-if-dirty"]);
            assert_eq!(refused.error()["code"], "E_WORKSPACE_DIRTY", "{test_env}: {refused:?}");
            let promoted = base.managed(&["promote", "X.fork-1"]);
            let name = promoted["ended"][0]["snapshot"].as_str().unwrap().to_owned();
            let expected = if round == "first" { "fork-X.fork-2" } else { "fork-X.fork-2-2" };
            assert_eq!(name, expected, "{test_env}");
        }
        for (round, name) in [("first", "fork-X.fork-2"), ("second", "fork-X.fork-2-2")] {
            base.tool("X", "snapshot_restore", &json!({ "name": name }));
            assert_eq!(base.line("X", &format!("cat {round}")), format!("{round}\n"), "{test_env}");
        }
    });
}
