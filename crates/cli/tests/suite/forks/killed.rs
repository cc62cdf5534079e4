use std::process::Stdio;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::Base;

/// Bounds the rounds that go on until a clean-up was killed.
const MAX_ROUNDS: u64 = 12;

/// The files that a fork makes.
const FILES: usize = 60;

impl Base {
    /// Starts a clean-up that ends idle forks and deletes old snapshots, and kills it; tells whether it was running.
    fn kill_clean_up(&self, policy: &str, after: Duration) -> bool {
        let [_, policy] = self.test_env.policy(policy);
        let mut command = self.test_env.carrel();
        command.env("CARREL_POLICY", policy).args(["workspace", "gc", "--root"]).arg(self.root());
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        let was_running = running.try_wait().unwrap().is_none();
        running.kill().unwrap();
        running.wait().unwrap();
        was_running
    }

    /// The names of the snapshots that have the work of the fork.
    fn kept_work(&self) -> Vec<String> {
        let listed = self.tool("X", "snapshot_list", &json!({}));
        assert_eq!(listed.code, 0, "{}: {listed:?}", self.test_env);
        let all = listed.json["structured"]["snapshots"].as_array().unwrap().iter();
        let names = all.filter_map(|one| one["name"].as_str().map(str::to_owned));
        names.filter(|name| name.starts_with("fork-f")).collect()
    }
}

#[test]
fn a_clean_up_killed_at_any_moment_loses_no_work_and_the_next_one_ends_it() {
    let rounds = if crate::test_environment::is_soak() { 50 } else { 3 };
    let policy = "[forks]\nidle = \"1s\"\n[snapshots]\nkeep = 1\n";
    Base::each(|base| {
        let test_env = &base.test_env;
        base.tool("X", "snapshot_create", &json!({ "name": "mine" }));
        let mut random = fastrand::Rng::with_seed(rounds);
        let (mut killed, mut alive, mut span) = (0, 0, 0);
        let mut round = 0;
        while round <= rounds || (killed == 0 && round < MAX_ROUNDS) {
            // Automatic snapshots that the clean-up deletes, each with something of its own.
            for number in 0..3 {
                base.line("X", &format!("head -c 300000 /dev/urandom > junk{number}"));
                let restored = base.tool("X", "snapshot_restore", &json!({ "name": "mine" }));
                assert_eq!(restored.code, 0, "{test_env}: {restored:?}");
            }
            base.managed(&["fork", "X", "--as", "f"]);
            base.line("f", &format!("for i in $(seq {FILES}); do echo work {round} > f$i; done"));
            std::thread::sleep(Duration::from_millis(1100));
            if round == 0 {
                // How long it takes, on this machine and now.
                let begun = Instant::now();
                assert_eq!(base.try_clean_up(policy).code, 0, "{test_env}");
                span = u64::try_from(begun.elapsed().as_millis()).unwrap();
            } else {
                let after = Duration::from_millis(random.u64(span / 10..span));
                killed += u64::from(base.kill_clean_up(policy, after));
            }

            let count = "cat f* | sort | uniq -c | tr -s ' '";
            let expected = format!(" {FILES} work {round}\n");
            if base.keys().contains(&"f".to_owned()) && base.kept_work().is_empty() {
                alive += 1;
                assert_eq!(base.line("f", count), expected, "{test_env}");
                std::thread::sleep(Duration::from_millis(1100));
            }
            crate::eventually("the next clean-up ends it", || {
                let done = base.try_clean_up(policy);
                assert_eq!(done.code, 0, "{test_env}: {done:?}");
                base.keys() == ["X"]
            });
            let kept = base.kept_work();
            assert!(!kept.is_empty(), "{test_env}: round {round}: the work is lost");
            for name in kept {
                let restored = base.tool("X", "snapshot_restore", &json!({ "name": name }));
                assert_eq!(restored.code, 0, "{test_env}: {restored:?}");
                assert_eq!(base.line("X", count), expected, "{test_env}: {name}");
                base.tool("X", "snapshot_delete", &json!({ "name": name }));
            }
            round += 1;
            let restored = base.tool("X", "snapshot_restore", &json!({ "name": "mine" }));
            assert_eq!(restored.code, 0, "{test_env}: {restored:?}");
            assert_eq!(base.line("X", "cat a src/b; ls"), "one\ntwo\na\nlink\nsrc\n", "{test_env}");
        }
        eprintln!("{test_env}: {killed} of {round} were killed, {alive} before the fork ended");
        assert!(killed > 0, "{test_env}: no clean-up was killed");
    });
}
