use std::process::Stdio;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Base;

impl Base {
    fn names_of(&self, list: &Value, word: &str) -> Vec<String> {
        let all = list.as_array().unwrap_or_else(|| panic!("{}: {list}", self.test_env));
        all.iter().map(|one| one[word].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn the_work_of_a_loser_is_put_onto_the_base_that_the_winner_made() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "winner", "--as", "loser"]);
        base.line("winner", "echo won > a; echo won > only-won");
        base.line("loser", "mkdir deep; echo lost > deep/new; echo lost > src/b; chmod 700 src");
        base.managed(&["promote", "winner"]);
        base.line("X", "echo later > later");
        let made = base.managed(&["fork", "X", "--from", "fork-loser", "--as", "again"]);
        let changes = base.names_of(&made["work"]["changes"], "path");
        assert_eq!(changes, ["deep", "deep/new", "src", "src/b"], "{test_env}: {made}");
        let all = "cat a only-won later deep/new src/b; stat -c %a src";
        assert_eq!(base.line("again", all), "won\nwon\nlater\nlost\nlost\n700\n", "{test_env}");
        assert_eq!(base.line("X", "cat a src/b; ls"), "won\ntwo\na\nlater\nlink\nonly-won\nsrc\n");
        // What both have is no change of the fork.
        let expected = ["added deep", "added deep/new", "mode src", "modified src/b"];
        assert_eq!(base.changes(&["diff", "again"]), expected, "{test_env}");
        base.managed(&["promote", "again"]);
        assert_eq!(base.line("X", all), "won\nwon\nlater\nlost\nlost\n700\n", "{test_env}");
    });
}

#[test]
fn work_that_the_base_has_changed_too_is_refused_and_leaves_nothing() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "winner", "--as", "loser"]);
        base.line("winner", "echo won > a");
        base.line("loser", "echo lost > a; rm -r src; echo lost > b");
        base.managed(&["promote", "winner"]);
        base.line("X", "echo later > src/later");
        let refused = base.workspace(&["fork", "X", "--from", "fork-loser"]);
        let error = refused.error();
        assert_eq!(error["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        assert_eq!(error["detail"]["paths"], json!(["a", "src"]), "{test_env}: {refused:?}");
        assert_eq!(base.keys(), ["X"], "{test_env}");
        // Thawed, and nothing of it is left.
        base.line("X", "echo one > a; rm src/later");
        base.managed(&["fork", "X", "--from", "fork-loser", "--as", "again"]);
        assert_eq!(base.line("again", "cat a b; ls"), "lost\nlost\na\nb\nlink\n", "{test_env}");
    });
}

#[test]
fn what_is_no_work_of_a_fork_is_refused_by_name() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.tool("X", "snapshot_create", &json!({ "name": "plain" }));
        let code = |arguments: &[&str]| base.workspace(arguments).error()["code"].clone();
        assert_eq!(code(&["fork", "X", "--from", "plain"]), "E_FORK_REFUSED", "{test_env}");
        assert_eq!(code(&["fork", "X", "--from", "none"]), "E_SNAPSHOT_NOT_FOUND", "{test_env}");
        assert_eq!(code(&["fork", "X", "--from", "../x"]), "E_INVALID_ARGUMENTS", "{test_env}");
        assert_eq!(
            code(&["fork", "X", "--from", "plain", "--as", "f", "--as", "g"]),
            "E_USAGE",
            "{test_env}"
        );
        assert_eq!(base.keys(), ["X"], "{test_env}");
        base.line("X", "echo thawed > a");
    });
}

#[test]
fn in_copies_work_is_put_onto_the_base_too() {
    Base::each_in("landlock", |base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "copy"]);
        base.line("copy", "echo mine > b");
        let refused = base.workspace(&["rebase", "copy"]);
        assert_eq!(refused.error()["code"], "E_FORK_REFUSED", "{test_env}: {refused:?}");
        std::thread::sleep(Duration::from_millis(1100));
        let ended = base.clean_up("\"1s\"", &[]);
        assert_eq!(ended["expired_forks"][0]["snapshot"], "fork-copy", "{test_env}: {ended}");
        base.line("X", "echo later > later");
        base.managed(&["fork", "X", "--from", "fork-copy", "--as", "again"]);
        assert_eq!(base.line("again", "cat a b later"), "one\nmine\nlater\n", "{test_env}");
    });
}

#[test]
fn a_fork_takes_over_what_an_editor_changed_in_its_base() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f", "--as", "g"]);
        base.line("f", "echo mine > a; echo new > src/new");
        base.line("g", "echo other > src/b");
        let none = base.managed(&["rebase", "f"]);
        assert_eq!(none["changed"], json!([]), "{test_env}");

        std::fs::write(base.path.join("src/b"), "by an editor\n").unwrap();
        std::fs::write(base.path.join("src/by-editor"), "by an editor\n").unwrap();
        let refused = base.workspace(&["promote", "f"]);
        assert_eq!(refused.error()["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        let adopted = base.managed(&["rebase", "f"]);
        assert_eq!(adopted["changed"], json!(["src", "src/b", "src/by-editor"]), "{test_env}");
        let all = "cat a src/new src/b src/by-editor";
        let expected = "mine\nnew\nby an editor\nby an editor\n";
        assert_eq!(base.line("f", all), expected, "{test_env}");

        // The other fork has changed the same file, and neither takes it over nor is promoted.
        let refused = base.workspace(&["rebase", "g"]);
        let error = refused.error();
        assert_eq!(error["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        assert_eq!(error["detail"]["paths"], json!(["src/b"]), "{test_env}: {refused:?}");
        let refused = base.workspace(&["promote", "g"]);
        assert_eq!(refused.error()["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");

        // What changes afterwards is another matter.
        std::fs::write(base.path.join("src/later"), "later\n").unwrap();
        let refused = base.workspace(&["promote", "f"]);
        assert_eq!(refused.error()["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        base.managed(&["rebase", "f"]);
        let promoted = base.managed(&["promote", "f"]);
        assert_eq!(base.line("X", all), expected, "{test_env}");
        assert_eq!(base.line("X", "cat src/later"), "later\n", "{test_env}");
        // Its origin is not known: what both have changed would pass for its own.
        assert_eq!(promoted["ended"][0]["snapshot"], "fork-g", "{test_env}");
        let refused = base.workspace(&["fork", "X", "--from", "fork-g"]);
        assert_eq!(refused.error()["code"], "E_FORK_REFUSED", "{test_env}: {refused:?}");
    });
}

#[test]
fn a_fork_that_is_made_from_work_and_killed_is_whole_or_goes() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "winner", "--as", "loser"]);
        base.line("winner", "echo won > a");
        base.line("loser", "for i in $(seq 200); do echo lost > f$i; done");
        base.managed(&["promote", "winner"]);
        let mut random = fastrand::Rng::with_seed(17);
        let mut gone = 0;
        for _ in 0..8 {
            let mut command = test_env.carrel();
            command.args(["workspace", "fork", "X", "--from", "fork-loser", "--as", "again"]);
            command.args(["--tier", test_env.tier, "--root"]).arg(base.root());
            let mut making = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(5..250)));
            making.kill().unwrap();
            making.wait().unwrap();
            let listed = base.managed(&["ls"]);
            let state = listed["workspaces"].as_array().unwrap().iter();
            let state = state.clone().find(|one| one["key"] == "again").map(|one| &one["state"]);
            if state == Some(&json!("ready")) {
                let shown = base.line("again", "cat f* | wc -l; cat a");
                assert_eq!(shown, "200\nwon\n", "{test_env}");
                base.managed(&["rm", "again"]);
            } else {
                gone += 1;
                let used = base.try_line("again", "true");
                assert_ne!(used.code, 0, "{test_env}: {state:?}");
                base.managed(&["gc"]);
            }
            assert_eq!(base.keys(), ["X"], "{test_env}: {state:?}");
            base.line("X", "echo won > a; ! ls f1");
        }
        assert!(gone > 0, "{test_env}: none was killed in time");
        base.managed(&["fork", "X", "--from", "fork-loser", "--as", "again"]);
        assert_eq!(base.line("again", "cat f* | wc -l; cat a"), "200\nwon\n", "{test_env}");
    });
}
