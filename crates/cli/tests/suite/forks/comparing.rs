use serde_json::json;

use super::Base;

#[test]
fn two_forks_of_a_base_are_compared_with_each_other() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.line("X", "seq 5 > n; chmod 644 n; mkdir gone; echo x > gone/x; echo s > same");
        base.managed(&["fork", "X", "--as", "f", "--as", "g"]);
        base.line(
            "f",
            "echo mine > a; echo new > only-f; chmod 755 n; rm -r gone; echo both > same",
        );
        base.line("g", "echo other > a; rm src/b; ln -sf src link; echo both > same");
        let expected = [
            "modified a",
            "deleted gone",
            "deleted gone/x",
            "modified link",
            "mode n",
            "added only-f",
            "added src/b",
        ];
        assert_eq!(base.changes(&["diff", "f", "--against", "g"]), expected, "{test_env}");
        let same: Vec<String> = base.changes(&["diff", "f", "--against", "f"]);
        assert!(same.is_empty(), "{test_env}: {same:?}");

        base.managed(&["create", "Y"]);
        base.managed(&["fork", "Y", "--as", "stranger"]);
        let refused = base.workspace(&["diff", "f", "--against", "stranger"]);
        assert_eq!(refused.error()["code"], "E_FORK_REFUSED", "{test_env}: {refused:?}");
        let refused = base.workspace(&["diff", "f", "--against", "X"]);
        assert_eq!(refused.error()["code"], "E_FORK_REFUSED", "{test_env}: {refused:?}");
    });
}

#[test]
fn a_patch_of_a_fork_makes_its_base_what_it_is() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.line("X", "seq 9 > n; printf 'no end' > end; head -c 40 /dev/zero > bin");
        base.managed(&["fork", "X", "--as", "f"]);
        let work = "git add -A; git commit -qm work; sed -i s/5/five/ n; printf more >> end; rm src/b; mkdir new; echo x > new/x; chmod 755 a; \
                    ln -sf n link; echo y >> bin";
        base.line("f", work);
        let diff = base.managed(&["diff", "f", "--patch"]);
        let text = diff["patch"]["text"].as_str().unwrap();
        assert_eq!(diff["patch"]["not_shown"], json!([]), "{test_env}");
        for part in [
            "-5\n+five\n",
            "\\ No newline at end of file",
            "old mode 100644\nnew mode 100755",
            "deleted file mode",
            "Binary files a/bin and b/bin differ",
            "+++ b/new/x",
        ] {
            assert!(text.contains(part), "{test_env}: {part}: {text}");
        }
        assert!(!text.contains(".git/"), "{test_env}: {text}");
        let (shown, notes) = base.text(&["diff", "f", "--patch"]);
        assert!(notes.contains(" changes in .git are not in the patch"), "{test_env}: {notes}");
        assert_eq!(shown, text, "{test_env}");

        // git takes it for what it is.
        let without_binary = text.split("diff --git ").filter(|one| !one.starts_with("a/bin"));
        let patch = without_binary.collect::<Vec<_>>().join("diff --git ");
        base.managed(&["create", "Y"]);
        base.line("Y", "seq 9 > n; printf 'no end' > end; mkdir src; echo one > a; echo two > src/b; ln -s a link");
        let write = json!({ "file_path": "patch", "content": patch });
        assert_eq!(base.tool("Y", "Write", &write).code, 0, "{test_env}");
        base.line("Y", "git apply patch && rm patch");
        let state = "cat n end new/x; readlink link; test ! -e src/b && test -x a && echo done";
        assert_eq!(base.line("Y", state), base.line("f", state), "{test_env}");
    });
}

#[test]
fn a_list_of_changes_for_people_is_short_and_says_what_it_leaves_out() {
    Base::each(|base| {
        let test_env = &base.test_env;
        base.managed(&["fork", "X", "--as", "f"]);
        let work = "for i in $(seq 30); do echo $i > t$i; git add t$i; git commit -qm $i; done; rm t*; \
                    mkdir big; for i in $(seq 50); do echo $i > big/$i; done; \
                    mkdir few; for i in $(seq 300); do echo $i > few$i; done";
        base.line("f", work);
        let (text, _) = base.text(&["diff", "f"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 201, "{test_env}: {text}");
        let git: Vec<&&str> = lines.iter().filter(|line| line.contains(".git")).collect();
        assert_eq!(git.len(), 1, "{test_env}: {git:?}");
        assert!(git[0].contains(" .git/ ("), "{test_env}: {git:?}");
        assert!(text.contains("added      big/ (51 added)\n"), "{test_env}: {text}");
        assert!(
            lines[200].starts_with("and ") && lines[200].ends_with(" more; --json has all"),
            "{text}"
        );
        let all = base.managed(&["diff", "f"]);
        assert!(all["changes"].as_array().unwrap().len() > 400, "{test_env}");
    });
}
