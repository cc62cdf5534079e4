use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Base;
use crate::test_environment::Done;

impl Base {
    pub(super) fn try_clean_up(&self, policy: &str) -> Done {
        let [_, policy] = self.test_env.policy(policy);
        let mut command = self.test_env.carrel();
        command.env("CARREL_POLICY", policy).args(["workspace", "gc", "--json", "--root"]);
        command.arg(self.root());
        Done::of(command)
    }

    pub(super) fn clean_up(&self, idle: &str, more: &[&str]) -> Value {
        let [_, policy] = self.test_env.policy(&format!("[forks]\nidle = {idle}\n"));
        let mut command = self.test_env.carrel();
        command.env("CARREL_POLICY", policy).args(["workspace", "gc", "--json"]).args(more);
        command.arg("--root").arg(self.root());
        let done = Done::of(command);
        assert_eq!(done.code, 0, "{}: {done:?}", self.test_env);
        done.json
    }
}

#[test]
fn a_fork_that_nothing_uses_ends_and_its_work_is_a_snapshot_of_the_base() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let made = base.managed(&["fork", "X", "--as", "f", "--as", "same", "--as", "noise"]);
        assert_eq!(made["idle_seconds"], 3600, "{test_env}");
        let (text, _) = base.text(&["fork", "X", "--as", "later"]);
        assert!(text.contains("unused for 1h"), "{test_env}: {text}");
        base.managed(&["rm", "later"]);
        base.line("f", "echo mine > a");
        base.line("noise", "echo ignored > .git/info/exclude; git status > /dev/null");
        base.line("X", "true");
        // Its time is not over, or there is none.
        for idle in ["\"1h\"", "0"] {
            assert_eq!(base.clean_up(idle, &[])["expired_forks"], json!([]), "{test_env}");
        }
        std::thread::sleep(Duration::from_millis(1100));
        let planned = base.clean_up("\"1s\"", &["--dry-run"]);
        assert_eq!(planned["expired_forks"].as_array().unwrap().len(), 3, "{test_env}: {planned}");
        let ended = base.clean_up("\"1s\"", &[]);
        let by_key = |key: &str| {
            let all = ended["expired_forks"].as_array().unwrap();
            all.iter()
                .find(|one| one["key"] == key)
                .unwrap_or_else(|| panic!("{key}: {ended}"))
                .clone()
        };
        let expected = json!({ "key": "f", "base": "X", "snapshot": "fork-f", "lost": false });
        assert_eq!(by_key("f"), expected, "{test_env}");
        assert_eq!(by_key("same")["snapshot"], json!(null), "{test_env}");
        assert_eq!(base.keys(), ["X"], "{test_env}");
        base.line("X", "echo thawed > thawed");
        let restored = base.tool("X", "snapshot_restore", &json!({ "name": "fork-f" }));
        assert_eq!(restored.code, 0, "{test_env}: {restored:?}");
        assert_eq!(base.line("X", "cat a"), "mine\n", "{test_env}");
        let events = std::fs::read_to_string(test_env.path("state/carrel/events.jsonl")).unwrap();
        let event =
            events.lines().find(|line| line.contains("fork_expired") && line.contains("\"f\""));
        assert!(event.is_some_and(|event| event.contains("fork-f")), "{test_env}: {events}");
    });
}

#[test]
fn a_fork_of_an_earlier_boot_ends_without_its_work_and_says_so() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f"]);
        base.line("f", "echo mine > a");
        let boot = base.root().join(".carrel/forks/f/boot");
        std::fs::write(&boot, "another boot\n").unwrap();
        let used = base.try_line("f", "true");
        assert_eq!(used.error()["code"], "E_FORK_CONFLICT", "{test_env}: {used:?}");
        let promoted = base.workspace(&["promote", "f"]);
        assert_eq!(promoted.error()["code"], "E_FORK_CONFLICT", "{test_env}: {promoted:?}");
        assert_eq!(base.line("X", "cat a"), "one\n", "{test_env}");
        std::thread::sleep(Duration::from_millis(1100));
        let ended = base.clean_up("\"1s\"", &[]);
        let expected = json!([{ "key": "f", "base": "X", "snapshot": null, "lost": true }]);
        assert_eq!(ended["expired_forks"], expected, "{test_env}");
        base.line("X", "echo thawed > a");
    });
}

#[test]
fn a_fork_in_which_something_runs_does_not_expire() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f"]);
        let fork = base.root().join("f");
        let line = "echo started; read line; echo done > a";
        let mut command = test_env.exec_in(&fork, &["-c", line]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut running = command.spawn().unwrap();
        let mut output = std::io::BufReader::new(running.stdout.take().unwrap());
        let mut started = String::new();
        std::io::BufRead::read_line(&mut output, &mut started).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1500) {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(base.clean_up("\"1s\"", &[])["expired_forks"], json!([]), "{test_env}");
        drop(running.stdin.take());
        assert!(running.wait().unwrap().success(), "{test_env}");
        assert_eq!(base.line("f", "cat a"), "done\n", "{test_env}");
    });
}
