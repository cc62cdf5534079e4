use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::Base;

#[test]
fn of_two_promotions_at_once_one_wins_and_nothing_hangs() {
    Base::each(|base| {
        let test_env = &base.test_env;
        for round in 0..3 {
            base.managed(&["fork", "X", "--as", "f", "--as", "g"]);
            base.line("f", &format!("echo f{round} > a; echo f > only-f"));
            base.line("g", &format!("echo g{round} > a; echo g > only-g"));
            let promote = |fork: &str| {
                let mut command = test_env.carrel();
                command.args(["workspace", "promote", "--json", fork, "--root"]).arg(base.root());
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let begun = std::time::Instant::now();
            let ended = [promote("f"), promote("g")].map(|one| one.wait_with_output().unwrap());
            assert!(begun.elapsed() < Duration::from_mins(1), "{test_env}");
            let won: Vec<bool> = ended.iter().map(|one| one.status.success()).collect();
            assert_eq!(won.iter().filter(|won| **won).count(), 1, "{test_env}: {ended:?}");
            let winner = if won[0] { "f" } else { "g" };
            let expected = format!("{winner}{round}\n");
            assert_eq!(base.line("X", "cat a"), expected, "{test_env}");
            assert_eq!(base.keys(), ["X"], "{test_env}");
            base.line("X", "rm only-*");
            assert_eq!(base.line("X", "ls"), "a\nlink\nsrc\n", "{test_env}");
        }
    });
}

#[test]
fn a_promotion_and_a_fork_at_once_leave_a_whole_base_and_no_half_fork() {
    Base::each(|base| {
        let test_env = &base.test_env;
        for round in 0..4 {
            base.managed(&["fork", "X", "--as", "f"]);
            base.line("f", &format!("echo f{round} > a; echo f{round} > src/b"));
            let run = |words: &[&str]| {
                let mut command = test_env.carrel();
                command.args(["workspace", "--json"]).args(words).arg("--root").arg(base.root());
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let ended = [run(&["promote", "f"]), run(&["fork", "X", "--as", "late"])]
                .map(|one| one.wait_with_output().unwrap());
            assert!(ended[0].status.success(), "{test_env}: {ended:?}");
            assert_eq!(
                base.line("X", "cat a src/b"),
                format!("f{round}\nf{round}\n"),
                "{test_env}"
            );
            // A fork that was there before the promotion ended with it; a later one is of the new base.
            if base.keys().contains(&"late".to_owned()) {
                assert_eq!(base.line("late", "cat a src/b"), format!("f{round}\nf{round}\n"));
                base.managed(&["rm", "late"]);
            }
            assert_eq!(base.keys(), ["X"], "{test_env}");
            base.line("X", "echo thawed > a");
        }
    });
}

#[test]
fn a_promotion_and_the_removal_of_another_fork_at_once_do_not_wait_for_each_other() {
    Base::each(|base| {
        let test_env = &base.test_env;
        for _ in 0..5 {
            base.managed(&["fork", "X", "--as", "f", "--as", "g"]);
            base.line("f", "echo f > a");
            base.line("g", "echo g > a");
            let run = |words: &[&str]| {
                let mut command = test_env.carrel();
                command.args(["workspace", "--json"]).args(words).arg("--root").arg(base.root());
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let begun = std::time::Instant::now();
            let ended = [run(&["promote", "f"]), run(&["rm", "g"])]
                .map(|one| one.wait_with_output().unwrap());
            // A lock is waited for ten seconds.
            assert!(begun.elapsed() < Duration::from_secs(9), "{test_env}: {ended:?}");
            assert!(ended[0].status.success(), "{test_env}: {ended:?}");
            assert_eq!(base.line("X", "cat a"), "f\n", "{test_env}");
            assert_eq!(base.keys(), ["X"], "{test_env}");
        }
    });
}

#[test]
fn whatever_a_promotion_is_killed_at_the_work_of_the_others_is_somewhere() {
    Base::each(|base| {
        let test_env = &base.test_env;
        for round in 0..6 {
            base.managed(&["fork", "X", "--as", "f", "--as", "g"]);
            base.line("f", "for i in $(seq 40); do echo f > f$i; done");
            base.line("g", &format!("echo {round} > work"));
            let mut command = test_env.carrel();
            command.args(["workspace", "promote", "f", "--root"]).arg(base.root());
            let mut promoting =
                command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(fastrand::u64(20..300)));
            promoting.kill().unwrap();
            promoting.wait().unwrap();
            base.line("X", "true");
            base.managed(&["gc"]);
            let is_there = base.keys().contains(&"g".to_owned());
            if is_there {
                assert_eq!(base.line("g", "cat work"), format!("{round}\n"), "{test_env}");
                base.managed(&["rm", "g"]);
            } else {
                let listed = base.tool("X", "snapshot_list", &json!({}));
                assert!(listed.json.to_string().contains("fork-g"), "{test_env}: {listed:?}");
            }
            base.workspace(&["rm", "f"]);
            base.managed(&["gc"]);
            base.line("X", "rm -f f*; echo thawed > thawed");
            assert_eq!(base.keys(), ["X"], "{test_env}");
        }
    });
}

#[test]
fn a_loser_that_changed_only_ignored_files_makes_no_snapshot() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.line("X", "echo '*.o' > .gitignore");
        base.managed(&["fork", "X", "--as", "f", "--as", "loser"]);
        base.line("f", "echo won > a");
        base.line("loser", "echo object > src/b.o");
        assert_eq!(base.changes(&["diff", "loser"]), ["added src/b.o"], "{test_env}");
        let promoted = base.managed(&["promote", "f"]);
        let expected = json!([{ "key": "loser", "snapshot": null, "only_ignored": true }]);
        assert_eq!(promoted["ended"], expected, "{test_env}");
    });
}

#[test]
fn a_promotion_carries_the_times_of_files_that_were_written_with_the_same_content() {
    for tier in ["full", "landlock"] {
        Base::each_in(tier, |base| {
            let test_env = &base.test_env;
            base.line("X", "touch -d '2020-01-01 UTC' a src/b");
            base.managed(&["fork", "X", "--as", "f"]);
            base.line("f", "touch -d '2021-02-03 UTC' a; chmod u+x src/b; chmod u-x src/b");
            let none: Vec<String> = base.changes(&["diff", "f"]);
            assert!(none.is_empty(), "{test_env}: {none:?}");
            base.managed(&["promote", "f"]);
            let time = |name: &str| {
                let modified = std::fs::metadata(base.path.join(name)).unwrap().modified().unwrap();
                modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
            };
            assert_eq!((time("a"), time("src/b")), (1_612_310_400, 1_577_836_800), "{test_env}");
            assert_eq!(base.keys(), ["X"], "{test_env}");
            base.line("X", "echo thawed > a");
        });
    }
}

#[test]
fn what_may_not_be_read_is_named_by_its_path() {
    Base::each_in("landlock", |base| {
        let test_env = &base.test_env;
        if test_env.caller == crate::test_environment::Caller::Root {
            // Permissions deny an administrator nothing.
            return;
        }
        base.line("X", "mkdir -p src/deep/closed; echo x > src/deep/closed/x");
        base.managed(&["fork", "X", "--as", "f"]);
        base.line("f", "chmod 000 src/deep/closed");
        let refused = base.workspace(&["diff", "f"]);
        let message = refused.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("src/deep/closed"), "{test_env}: {message}");
        assert_eq!(refused.error()["detail"]["path"], "src/deep/closed", "{test_env}");
        // For the removal of the test's directory.
        let closed = base.root().join("f/src/deep/closed");
        std::fs::set_permissions(closed, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    });
}

#[test]
fn messages_end_with_one_way_out() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f"]);
        let error = |arguments: &[&str]| {
            let (_, text) = base.text(arguments);
            text.lines().last().unwrap_or_default().to_owned()
        };
        let expected = [
            (
                vec!["rm", "X"],
                "error: workspace X is frozen, since it has forks: f; work in a fork, or promote or remove them \
                 [E_WORKSPACE_FROZEN]",
            ),
            (
                vec!["fork", "f"],
                "error: f is a fork itself; fork its base X, or promote f first [E_FORK_REFUSED]",
            ),
            (
                vec!["diff", "X"],
                "error: X is no fork; `carrel workspace ls --json` names the base of each fork [E_FORK_REFUSED]",
            ),
        ];
        for (arguments, text) in expected {
            assert_eq!(error(&arguments), text, "{test_env}: {arguments:?}");
        }
        base.line("f", "echo mine > a");
        let dirty = "error: the fork f has a change that its base X does not have; commit and push the work, promote a \
                     fork, or leave out --keep-if-dirty [E_WORKSPACE_DIRTY]";
        assert_eq!(error(&["rm", "f", "--keep-if-dirty"]), dirty, "{test_env}");
        std::fs::write(base.path.join("src/b"), "by an editor\n").unwrap();
        let conflict = "error: the base X has changed since it was forked, not through Carrel: src/b; \
                        `carrel workspace rebase f` takes that over where the fork has not changed the same \
                        [E_FORK_CONFLICT]";
        assert_eq!(error(&["promote", "f"]), conflict, "{test_env}");
    });
}

/// What is done first after a promotion was killed.
const AFTER_A_KILL: [&str; 3] = ["use the base", "use the fork", "remove the fork"];

#[test]
fn a_promotion_that_is_killed_is_whole_or_not_begun_whatever_comes_next() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let state = "cat f* | sort | uniq -c | tr -s ' ' && ls | wc -l";
        for round in 0..9 {
            base.line("X", "rm -rf f* new; for i in $(seq 120); do echo old > f$i; done");
            let old = base.line("X", state);
            base.managed(&["fork", "X"]);
            let work = "for i in $(seq 100); do echo new > f$i; done; rm f11*; mkdir new && echo x > new/x";
            base.line("X.fork-1", work);
            let new = base.line("X.fork-1", state);
            let mut command = test_env.carrel();
            command.args(["workspace", "promote", "X.fork-1", "--root"]).arg(base.root());
            let mut promoting =
                command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(fastrand::u64(5..250)));
            promoting.kill().unwrap();
            promoting.wait().unwrap();
            let next = AFTER_A_KILL[round % AFTER_A_KILL.len()];
            match next {
                "use the fork" => drop(base.try_line("X.fork-1", "echo late > f1")),
                "remove the fork" => drop(base.workspace(&["rm", "X.fork-1"])),
                _ => {}
            }
            let now = base.line("X", state);
            assert!(now == old || now == new, "{test_env}: {next}: {now}");
            base.workspace(&["rm", "X.fork-1"]);
            base.managed(&["gc"]);
            base.line("X", "echo thawed > thawed; rm thawed");
            assert_eq!(base.keys(), ["X"], "{test_env}: {next}");
        }
    });
}
