use std::fs::{remove_dir_all, remove_file};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Base;

impl Base {
    fn own(&self, path: &str) -> PathBuf {
        self.root().join(".carrel").join(path)
    }

    fn state_of(&self, key: &str) -> Value {
        let listed = self.managed(&["ls"]);
        let all = listed["workspaces"].as_array().unwrap();
        let one = all.iter().find(|one| one["key"] == key);
        one.map_or(Value::Null, |one| one["state"].clone())
    }

    /// The findings about a workspace, with their fixes.
    fn findings(&self, key: &str) -> Vec<(String, String)> {
        let found = self.workspace(&["verify"]).json;
        let is_about = |one: &&Value| Path::new(one["path"].as_str().unwrap()).ends_with(key);
        let word = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
        let findings = found["findings"].as_array().unwrap().iter().filter(is_about);
        findings.map(|one| (word(one, "check"), word(one, "fix"))).collect()
    }

    fn refuses_writes_for(&self, fork: &str) {
        let write = json!({ "file_path": "late", "content": "late\n" });
        let refused = self.tool("X", "Write", &write);
        let text = format!("{}{}", refused.json, refused.stderr);
        assert!(text.contains("E_WORKSPACE_FROZEN") && text.contains(fork), "{text}");
    }
}

#[test]
fn a_fork_that_lost_its_files_is_broken_and_its_removal_thaws_the_base() {
    Base::each(|base| {
        let test_env = &base.test_env;
        for remedy in ["rm", "rm --keep-if-dirty", "gc"] {
            base.managed(&["fork", "X", "--as", "f"]);
            base.line("f", "echo mine > a");
            remove_dir_all(base.root().join("f")).unwrap();
            remove_dir_all(base.own("forks/f")).unwrap();
            assert_eq!(base.state_of("f"), "broken", "{test_env}");
            let [(check, fix)] = &base.findings("f")[..] else { panic!("one finding") };
            assert_eq!(check, "broken_fork", "{test_env}");
            assert!(fix.starts_with("carrel workspace rm \"f\" --root "), "{test_env}: {fix}");
            base.refuses_writes_for("f");
            for used in [base.workspace(&["diff", "f"]), base.workspace(&["create", "f"])] {
                assert_eq!(used.error()["code"], "E_FORK_CONFLICT", "{test_env}: {used:?}");
            }
            match remedy {
                "gc" => drop(base.managed(&["gc"])),
                "rm" => drop(base.managed(&["rm", "f"])),
                _ => drop(base.managed(&["rm", "f", "--keep-if-dirty"])),
            }
            assert_eq!(base.keys(), ["X"], "{test_env}: {remedy}");
            base.line("X", "echo thawed > thawed");
        }
    });
}

#[test]
fn a_fork_that_was_half_made_goes_with_the_next_clean_up() {
    Base::each(|base| {
        let test_env = &base.test_env;
        // As after a kill between the record and the directory.
        base.managed(&["fork", "X", "--as", "f"]);
        let record = base.own("records/f.json");
        let text = std::fs::read_to_string(&record).unwrap();
        assert!(text.contains("\"ready\""), "{text}");
        std::fs::write(&record, text.replace("\"ready\"", "\"creating\"")).unwrap();
        remove_dir_all(base.root().join("f")).unwrap();
        remove_dir_all(base.own("forks/f")).unwrap();
        assert_eq!(base.state_of("f"), "broken", "{test_env}");
        base.refuses_writes_for("f");
        base.managed(&["gc"]);
        assert_eq!(base.keys(), ["X"], "{test_env}");
        base.line("X", "echo thawed > thawed");
    });
}

#[test]
fn a_fork_whose_directory_was_removed_keeps_its_work() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f", "--as", "g"]);
        base.line("f", "echo mine > a");
        remove_dir_all(base.root().join("f")).unwrap();
        assert_eq!(base.state_of("f"), "broken", "{test_env}");
        let [(check, fix)] = &base.findings("f")[..] else { panic!("one finding") };
        assert_eq!(check, "broken_fork", "{test_env}");
        assert!(fix.contains("workspace create \"f\"") && fix.contains("workspace rm"), "{fix}");
        // Neither a clean-up nor the promotion of another fork takes it for one without work.
        base.managed(&["gc"]);
        let refused = base.workspace(&["promote", "g"]);
        assert_eq!(refused.error()["code"], "E_FORK_CONFLICT", "{test_env}: {refused:?}");
        let message = refused.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("`carrel workspace create f`"), "{test_env}: {message}");

        base.managed(&["create", "f"]);
        assert_eq!(base.line("f", "cat a src/b"), "mine\ntwo\n", "{test_env}");
        assert_eq!(base.changes(&["diff", "f"]), ["modified a"], "{test_env}");
        base.managed(&["promote", "f"]);
        assert_eq!(base.line("X", "cat a"), "mine\n", "{test_env}");
    });
}

#[test]
fn the_list_names_the_bases_of_forks_only_where_there_are_forks() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let (without, _) = base.text(&["ls"]);
        assert!(!without.contains("FORK OF"), "{test_env}: {without}");
        base.managed(&["fork", "X", "--as", "f"]);
        let (table, _) = base.text(&["ls"]);
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().take(4).collect()).collect();
        let expected = [
            vec!["IDENTIFIER", "KEY", "FORK", "OF"],
            vec!["X", "X", "-", "ready"],
            vec!["f", "f", "X", "ready"],
        ];
        assert_eq!(rows, expected, "{test_env}: {table}");
    });
}

#[test]
fn a_damaged_marker_of_a_boot_does_not_pass_for_a_fork() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f"]);
        base.line("f", "echo mine > a");
        remove_file(base.own("forks/f/boot")).unwrap();
        let used = base.try_line("f", "true");
        assert_eq!(used.error()["code"], "E_FORK_CONFLICT", "{test_env}: {used:?}");
        // The upper layer is there, so a clean-up decides nothing.
        base.managed(&["gc"]);
        assert_eq!(base.state_of("f"), "broken", "{test_env}");
        base.managed(&["rm", "f"]);
        base.line("X", "echo thawed > thawed");
    });
}
