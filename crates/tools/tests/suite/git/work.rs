use carrel_domain::WorkspaceAccess;
use serde_json::{Value, json};

use super::{begin, call, repository, sure};
use crate::test_environment::{Setting, TestEnvironment};

#[tokio::test]
async fn work_from_status_to_commit() {
    let test_env = repository();
    test_env.put("new file", "x\n");
    test_env.put("file", "one\n2\nthree\n");
    let answer = test_env.call("git", json!({ "operation": "status" })).await;
    assert_eq!(answer.text(), "## main\n M file\n?? new file\n");
    let status = &answer.structured["status"];
    assert_eq!(
        (&status["branch"], &status["count"], &status["clean"]),
        (&json!("main"), &json!(2), &json!(false))
    );
    assert_eq!(status["entries"][1], json!({ "path": "new file", "index": "?", "worktree": "?" }));
    assert_eq!(answer.structured["repository"], ".");

    let answer = test_env.call("git", json!({ "operation": "diff" })).await;
    assert!(answer.text().starts_with("diff --git a/file b/file\n"), "{}", answer.text());
    assert_eq!(
        answer.structured["changes"],
        json!({ "files": 1, "insertions": 1, "deletions": 1 })
    );

    assert_eq!(test_env.text("git", call("add", "-A")).await, "staged\n");
    let answer = test_env.call("git", call("commit", "-m \"fix; mount\n\nand more\"")).await;
    let commit = answer.structured["commit"].as_str().unwrap().to_owned();
    assert!(answer.text().starts_with(&format!("committed {commit}\n")), "{}", answer.text());
    assert_eq!(sure(&test_env.path("main"), &["rev-parse", "HEAD"]), commit);
    assert_eq!(
        sure(&test_env.path("main"), &["log", "-1", "--format=%an|%B"]),
        "Carrel|fix; mount\n\nand more"
    );

    let log = test_env.text("git", call("log", "--format='%s|%H' -5")).await;
    assert_eq!(log.lines().next().unwrap(), format!("fix; mount|{commit}"));
    let answer = test_env.call("git", json!({ "operation": "status" })).await;
    assert_eq!(answer.text(), "## main\nnothing to commit, working tree clean\n");
    assert_eq!(answer.structured["status"]["clean"], true);
    assert_eq!(test_env.text("git", json!({ "operation": "diff" })).await, "no changes\n");
}

#[tokio::test]
async fn branches_stashes_and_blame() {
    let test_env = repository();
    let text = test_env.text("git", call("checkout", "-b feature/x")).await;
    assert!(text.contains("Switched to a new branch 'feature/x'"), "{text}");
    assert_eq!(test_env.text("git", call("branch", "")).await, "* feature/x\n  main\n");
    assert_eq!(test_env.text("git", call("branch", "--show-current")).await, "feature/x\n");
    test_env.text("git", call("branch", "other main")).await;
    test_env.text("git", call("branch", "-d other")).await;
    test_env.put("file", "one\ntwo\n3\n");
    test_env.text("git", call("stash", "push -m 'half done'")).await;
    assert_eq!(
        test_env.text("git", call("stash", "list")).await,
        "stash@{0}: On feature/x: half done\n"
    );
    assert!(test_env.text("git", call("stash", "show -p")).await.contains("+3\n"));
    assert_eq!(test_env.get("file"), "one\ntwo\nthree\n");
    test_env.text("git", call("stash", "pop")).await;
    assert_eq!(test_env.get("file"), "one\ntwo\n3\n");
    test_env.text("git", call("checkout", "-- file")).await;
    assert_eq!(test_env.get("file"), "one\ntwo\nthree\n");
    let blame = test_env.text("git", call("blame", "-L 2,2 file")).await;
    assert!(blame.contains("(A ") && blame.ends_with("two\n"), "{blame}");
    test_env.text("git", call("checkout", "-")).await;
    assert_eq!(test_env.text("git", call("branch", "--show-current")).await, "main\n");
    assert_eq!(test_env.text("git", call("show", "HEAD:file")).await, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn a_failure_of_git_is_data_and_its_words_are_shown() {
    let test_env = repository();
    let answer = test_env.call("git", call("checkout", "nowhere")).await;
    assert!(!answer.is_error);
    assert_eq!(answer.structured["exit_code"], 1);
    assert!(
        answer.text().contains("did not match any file") && answer.text().ends_with("exit: 1\n"),
        "{}",
        answer.text()
    );
    let answer = test_env.call("git", call("commit", "-m nothing")).await;
    assert_eq!(answer.structured["exit_code"], 1);
    assert!(answer.text().contains("nothing to commit"), "{}", answer.text());
    test_env.put("file", "x");
    let answer = test_env.call("git", call("commit", "-a")).await;
    assert!(answer.text().contains("give a message with -m"), "{}", answer.text());
}

#[tokio::test]
async fn where_there_is_no_repository_the_answer_says_so() {
    let test_env = TestEnvironment::new();
    for tool in ["git", "git_inspect"] {
        let (code, text) = test_env.refusal(tool, json!({ "operation": "status" })).await;
        assert_eq!(code, "E_GIT_REFUSED");
        assert!(text.starts_with("not a git repository: ."), "{text}");
    }
    let (code, _) =
        test_env.refusal("git", json!({ "operation": "status", "cwd": "../state" })).await;
    assert_eq!(code, "E_SANDBOX_VIOLATION");
    // A repository above the workspace, or one without a work tree, is not entered.
    sure(&test_env.path(""), &["init", "-q"]);
    sure(&test_env.path("main"), &["init", "-q", "--bare", "bare"]);
    test_env.refusal("git", json!({ "operation": "status", "cwd": "bare" })).await;
}

#[tokio::test]
async fn a_directory_below_the_top_and_a_submodule_are_places_to_work() {
    let test_env = TestEnvironment::with(Setting {
        prepare: |top| {
            begin(top);
            let main = top.join("main");
            std::fs::create_dir(main.join("deep")).unwrap();
            std::fs::write(main.join("deep/x"), "1\n").unwrap();
            std::os::unix::fs::symlink("deep", main.join("link")).unwrap();
            sure(&main, &["clone", "-q", ".", "other"]);
            sure(&main, &["submodule", "--quiet", "add", "./other", "module"]);
            std::fs::write(main.join("module/file"), "changed\n").unwrap();
        },
        ..Setting::default()
    });
    for cwd in ["deep", "link"] {
        let answer =
            test_env.call("git", json!({ "operation": "add", "args": ["x"], "cwd": cwd })).await;
        assert_eq!(
            (answer.text(), &answer.structured["repository"]),
            ("staged\n".into(), &json!(".")),
            "{cwd}"
        );
    }
    let absolute = test_env.path("main/deep/x").display().to_string();
    let log = test_env
        .text(
            "git",
            json!({ "operation": "diff", "args": ["--cached", "--name-only", "--", absolute] }),
        )
        .await;
    assert_eq!(log, "deep/x\n");
    let answer =
        test_env.call("git_inspect", json!({ "operation": "status", "cwd": "module" })).await;
    assert_eq!(answer.text().lines().nth(1), Some(" M file"), "{}", answer.text());
    assert_eq!(answer.structured["repository"], "module");
}

#[tokio::test]
async fn looking_changes_nothing_and_is_offered_where_nothing_may_change() {
    let test_env = TestEnvironment::with(Setting {
        prepare: begin,
        access: WorkspaceAccess::ReadOnly,
        ..Setting::default()
    });
    let names: Vec<_> = test_env.registry.definitions().map(|tool| tool.about.name).collect();
    assert!(names.contains(&"git_inspect") && !names.contains(&"git"), "{names:?}");
    std::fs::write(test_env.path("main/file"), "other\n").unwrap();
    let before = snapshot(&test_env);
    for (operation, args) in [
        ("status", ""),
        ("diff", ""),
        ("log", "-p"),
        ("show", "HEAD"),
        ("blame", "file"),
        ("branch", "-a"),
        ("stash", "list"),
    ] {
        let answer = test_env.call("git_inspect", call(operation, args)).await;
        assert_eq!(answer.structured["exit_code"], 0, "{operation}: {}", answer.text());
    }
    assert_eq!(snapshot(&test_env), before);
    for (operation, args) in
        [("branch", "x"), ("branch", "-d main"), ("stash", ""), ("stash", "drop")]
    {
        let (code, text) = test_env.refusal("git_inspect", call(operation, args)).await;
        assert_eq!(code, "E_GIT_REFUSED");
        assert!(text.contains("is not read-only") || text.contains("is not allowed"), "{text}");
    }
    let (code, _) = test_env.refusal("git_inspect", call("commit", "-m x")).await;
    assert_eq!(code, "E_INVALID_ARGUMENTS");
}

/// Returns every file of the workspace with its size and when it was changed.
fn snapshot(test_env: &TestEnvironment) -> Vec<String> {
    let output = std::process::Command::new("find")
        .arg(test_env.path("main"))
        .args(["-printf", "%p %s %T@ %C@\n"])
        .output()
        .unwrap();
    let mut lines: Vec<_> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn who_commits_can_be_said_and_is_one_line() {
    let test_env = repository();
    test_env.put("file", "x");
    let mut arguments = call("commit", "-am x");
    arguments["author_name"] = json!("Ann O'Neil");
    arguments["author_email"] = json!("ann@example.com");
    test_env.text("git", arguments).await;
    let author = sure(&test_env.path("main"), &["log", "-1", "--format=%an <%ae> %cn"]);
    assert_eq!(author, "Ann O'Neil <ann@example.com> Ann O'Neil");
    for (field, value) in [
        ("author_name", "x\n[core]\n sshCommand = id"),
        ("author_email", "a>b"),
        ("author_name", " "),
    ] {
        let mut arguments = call("commit", "--allow-empty -m x");
        arguments[field] = Value::from(value);
        let (code, text) = test_env.refusal("git", arguments).await;
        assert_eq!(code, "E_INVALID_ARGUMENTS");
        assert!(text.contains(field), "{text}");
    }
}

#[tokio::test]
async fn a_long_answer_is_cut_and_the_rest_can_be_read() {
    let test_env = repository();
    let lines: Vec<_> = (0..40_000).map(|line| format!("line {line}")).collect();
    test_env.put("long", lines.join("\n") + "\n");
    test_env.text("git", call("add", "long")).await;
    let answer = test_env.call("git", call("diff", "--cached")).await;
    let text = answer.text();
    assert!(text.len() < 110_000 && answer.structured["truncated"] == true, "{}", text.len());
    assert_eq!(answer.structured["changes"]["insertions"], 40_000);
    assert!(text.starts_with("diff --git") && text.contains("+line 39999\n"));
    let shell_id = answer.structured["shell_id"].as_str().unwrap();
    assert!(text.contains(&format!("BashOutput shell_id={shell_id} cursor=0")));
    let more = test_env.text("BashOutput", json!({ "shell_id": shell_id, "cursor": 60_000 })).await;
    assert!(more.contains("+line 6000\n"), "{}", &more[..300]);
}

#[tokio::test]
async fn what_is_refused_names_the_word_and_what_would_pass() {
    let test_env = repository();
    for (operation, args, says) in [
        ("show", "--output=x", "`--output=x` is not allowed: it writes a file"),
        ("diff", "--no-index /dev/null /etc/hostname", "`--no-index` is not allowed"),
        ("fetch", "-c core.sshCommand=id", "configuration can name programs"),
        ("log", "'unclosed", "not closed"),
    ] {
        let (_, text) = test_env.refusal("git", call(operation, args)).await;
        assert!(text.contains(says), "{text}");
    }
    assert!(!test_env.path("main/x").exists());
    // Shell text is a list of names.
    let status = test_env.text("git", call("status", "; touch evil")).await;
    assert_eq!(status, "## main\nnothing to commit, working tree clean\n");
    assert!(!test_env.path("main/evil").exists());
}
