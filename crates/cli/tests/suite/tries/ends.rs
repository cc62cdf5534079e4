//! The ends that tries have, and what is refused before one begins.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Project, RUNS, VERIFY};
use crate::test_environment::{Mark, TestEnvironment};

#[test]
fn the_right_candidate_is_promoted_among_one_that_fails_and_one_that_is_too_large() {
    Project::each(|project| {
        let done = project.carrel_try(&Project::usual(&["--promote", "best"]));
        assert_eq!(done.code, 0, "{}: {done:?}", project.test_env);
        project.assert_promoted(&done.json, "at once");
        project.assert_work_is_kept(&done.json, "at once");
        let id = done.json["id"].as_str().unwrap();
        let shown = project.carrel_try(&["show", id]);
        assert_eq!(shown.json, done.json, "{}", project.test_env);
        let diff = project.carrel_try(&["show", id, "--diff", "1"]).json["diff"].to_string();
        assert!(diff.contains("+    return a * b"), "{}: {diff}", project.test_env);
    });
}

#[test]
fn the_comparison_is_a_table_for_people() {
    let project = Project::new(TestEnvironment::usual());
    let mut command = project.test_env.carrel();
    command.args(["try"]).args(Project::usual(&["--promote", "best", "--score", "echo 0.5"]));
    let output = command.arg("--root").arg(project.root()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}{stderr}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(words(lines[0])[..5], ["RANK", "CANDIDATE", "VERDICT", "TESTS", "SCORE"], "{text}");
    assert_eq!(
        words(lines[1])[..9],
        ["1", "3", "passed", "3/3", "0.5", "2", "files", "+2", "-1"],
        "{text}"
    );
    assert_eq!(words(lines[2])[..5], ["2", "1", "failed", "1/3", "-"], "{text}");
    for said in [
        "candidate 2: it changed 5003 lines, and the budget allows 100",
        "candidate 3 is the best: its verdict is better",
        "promoted candidate 3 into X",
        "modified  calc.py +1 -1",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.contains("the work of candidate 1 is the snapshot fork-X.try-"), "{text}");
}

#[test]
fn what_a_verification_writes_is_not_promoted_and_does_not_count_as_the_work() {
    Project::each(|project| {
        let verify = "echo by-the-tests > written; echo spoiled >> calc.py; cp test_calc.py copy.py; false || true; \
                      git --version > /dev/null; echo '3 passed in 0.1s'";
        let run = "sed -i 's/a - b/a + b/' calc.py";
        let score = "echo by-the-score >> calc.py; echo 7";
        let done = project.carrel_try(&[
            "X",
            "--run",
            run,
            "--verify",
            verify,
            "--score",
            score,
            "--promote",
            "best",
        ]);
        assert_eq!(done.code, 0, "{}: {done:?}", project.test_env);
        let candidate = &done.json["candidates"][0];
        assert_eq!(candidate["diff"]["files"], 1, "{}: {done:?}", project.test_env);
        assert_eq!(candidate["score"]["value"], 7.0, "{}: {done:?}", project.test_env);
        assert_eq!(
            candidate["verification"]["tests"]["passed"], 3,
            "{}: {done:?}",
            project.test_env
        );
        let expected = "calc.py\ntest_calc.py\ndef add(a, b):\n    return a + b\n";
        assert_eq!(project.line("X", "ls; cat calc.py"), expected, "{}", project.test_env);
    });
}

#[test]
fn nothing_is_promoted_unless_it_is_asked_for_and_a_person_can_choose() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let done = project.carrel_try(&Project::usual(&[]));
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        assert_eq!(done.json["outcome"], json!({ "kind": "chosen", "candidate": 3 }), "{test_env}");
        let forks: Vec<_> = done.json["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["fork"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(project.keys(), [vec!["X".to_owned()], forks.clone()].concat(), "{test_env}");
        assert_eq!(project.line("X", "tail -n 1 calc.py"), "    return a - b\n", "{test_env}");
        assert_eq!(
            project.line(&forks[0], "tail -n 1 calc.py"),
            "    return a * b\n",
            "{test_env}"
        );
        let promoted = project.workspace(&["promote", &forks[2]]);
        assert_eq!(promoted.code, 0, "{test_env}: {promoted:?}");
        assert_eq!(project.keys(), ["X"], "{test_env}");
        assert_eq!(project.line("X", "tail -n 1 calc.py"), "    return a + b\n", "{test_env}");
    });
}

#[test]
fn when_no_candidate_passes_nothing_is_promoted_and_the_exit_status_says_so() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let done = project.carrel_try(&[
            "X",
            "--promote",
            "best",
            "--verify",
            VERIFY,
            "--timeout",
            "60",
            "--run",
            RUNS[0],
            "--run",
            "true",
            "--run",
            "sed -i 's/a - b/a + b/' calc.py; exit 3",
        ]);
        assert_eq!(done.code, 3, "{test_env}: {done:?}");
        assert_eq!(done.json["outcome"], json!({ "kind": "none_passed" }), "{test_env}: {done:?}");
        let reason =
            |index: usize| done.json["candidates"][index]["disqualified"]["reason"].clone();
        assert_eq!([reason(1), reason(2)], [json!("unchanged"), json!("run_failed")], "{test_env}");
        assert_eq!(project.line("X", "tail -n 1 calc.py"), "    return a - b\n", "{test_env}");
        assert_eq!(project.keys().len(), 4, "{test_env}");
        let removed = project.carrel_try(&["rm", done.json["id"].as_str().unwrap()]);
        assert_eq!(removed.code, 0, "{test_env}: {removed:?}");
        assert_eq!(project.keys(), ["X"], "{test_env}");
        let listed = project.tool("X", "snapshot_list", &json!({}));
        assert!(listed.json.to_string().contains("fork-X.try-"), "{test_env}: {listed:?}");
        project.line("X", "echo thawed > thawed");
    });
}

#[test]
fn a_candidate_that_never_ends_is_ended_and_disqualified() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let mark = Mark::new();
        let endless = format!("sed -i 's/a - b/a + b/' calc.py; sleep {}", mark.0);
        let arguments = [
            "X",
            "--run",
            &endless,
            "--run",
            RUNS[2],
            "--verify",
            VERIFY,
            "--timeout",
            "6",
            "--promote",
            "best",
        ];
        let done = project.carrel_try(&arguments);
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        assert_eq!(done.json["outcome"]["candidate"], 2, "{test_env}: {done:?}");
        let reason = &done.json["candidates"][0]["disqualified"]["reason"];
        assert_eq!(reason, "out_of_time", "{test_env}: {done:?}");
        assert_eq!(mark.alive(), [0; 0], "{test_env}");

        let arguments = [
            "X",
            "--run",
            &endless,
            "--candidates",
            "2",
            "--parallel",
            "1",
            "--verify",
            VERIFY,
            "--total-timeout",
            "3",
        ];
        let done = project.carrel_try(&arguments);
        assert_eq!(done.code, 3, "{test_env}: {done:?}");
        let messages: Vec<_> = [0, 1]
            .map(|index| done.json["candidates"][index]["disqualified"]["message"].to_string())
            .into();
        assert!(messages[1].contains("over before it began"), "{test_env}: {messages:?}");
    });
}

#[test]
fn forks_of_others_keep_a_try_from_promoting() {
    let project = Project::new(TestEnvironment::usual());
    assert_eq!(project.workspace(&["fork", "X", "--as", "mine"]).code, 0);
    project.line("mine", "echo work > work");
    let refused = project.carrel_try(&Project::usual(&["--promote", "best"]));
    assert_eq!(refused.error()["code"], "E_FORK_REFUSED", "{refused:?}");
    assert_eq!(refused.error()["detail"]["forks"], json!(["mine"]), "{refused:?}");
    let done = project.carrel_try(&Project::usual(&[]));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(project.line("mine", "cat work"), "work\n");
}

#[test]
fn patches_are_candidates_and_one_that_does_not_apply_is_disqualified() {
    Project::each(|project| {
        let test_env = &project.test_env;
        let patch = |name: &str, old: &str| {
            let path = test_env.path(name);
            let text = format!(
                "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    {old}\n+    return a + b\n"
            );
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (right, wrong) = (patch("right.diff", "return a - b"), patch("wrong.diff", "return b"));
        let done = project.carrel_try(&[
            "X",
            "--patch",
            &wrong,
            "--patch",
            &right,
            "--verify",
            VERIFY,
            "--promote",
            "best",
        ]);
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        assert_eq!(done.json["outcome"]["candidate"], 2, "{test_env}: {done:?}");
        let reason = &done.json["candidates"][0]["disqualified"]["reason"];
        assert_eq!(reason, "patch_failed", "{test_env}: {done:?}");
        assert_eq!(project.line("X", "tail -n 1 calc.py"), "    return a + b\n", "{test_env}");
    });
}

#[test]
fn an_agent_reads_its_prompt_and_the_number_of_its_candidate() {
    let project = Project::new(TestEnvironment::usual());
    let agent = "read operator; [ $CARREL_CANDIDATE = 2 ] && sed -i \"s/a - b/a $operator b/\" calc.py; true";
    let done = project.carrel_try(&[
        "X",
        "--agent",
        agent,
        "--prompt",
        "+",
        "--candidates",
        "2",
        "--verify",
        VERIFY,
        "--promote",
        "best",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json["outcome"]["candidate"], 2, "{done:?}");
    assert_eq!(project.line("X", "tail -n 1 calc.py"), "    return a + b\n");
}

#[test]
fn the_tests_of_the_project_verify_if_no_line_is_given() {
    let project = Project::new(TestEnvironment::usual());
    let done = project.carrel_try(&["X", "--run", RUNS[0], "--run", RUNS[2], "--promote", "best"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json["outcome"]["candidate"], 2, "{done:?}");
    assert_eq!(done.json["candidates"][1]["verification"]["tests"]["passed"], 3, "{done:?}");
    // A directory that names no tests has to be told how.
    project.line("X", "rm *; echo text > notes");
    let refused = project.carrel_try(&["X", "--run", "echo more >> notes"]);
    assert_eq!(refused.error()["code"], "E_PROJECT_NOT_DETECTED", "{refused:?}");
    assert!(refused.stderr.contains("--verify"), "{refused:?}");
    project.line("X", "echo still thawed >> notes");
}

#[test]
fn what_cannot_be_tried_says_why() {
    let project = Project::new(TestEnvironment::usual());
    let text = project.test_env.path("no.diff");
    std::fs::write(&text, "this is no patch\n").unwrap();
    let text = text.display().to_string();
    project.workspace(&["fork", "X", "--as", "fork"]);
    let code = |arguments: &[&str]| {
        let done = project.carrel_try(arguments);
        (done.code, done.error()["code"].as_str().unwrap().to_owned())
    };
    let usage = (2, "E_USAGE".to_owned());
    let verify = ["--verify", "true"];
    let with = |arguments: &[&'static str]| [arguments, &verify].concat();
    assert_eq!(code(&with(&["X"])), usage);
    assert_eq!(code(&with(&["X", "--run", "true", "--candidates", "0"])), usage);
    assert_eq!(code(&with(&["X", "--run", "true", "--candidates", "101"])), usage);
    assert_eq!(code(&with(&["X", "--run", "true", "--run", "true", "--candidates", "1"])), usage);
    assert_eq!(code(&with(&["X", "--run", "true", "--prompt", "x"])), usage);
    let refused = |code: &str| (1, code.to_owned());
    assert_eq!(code(&with(&["nothing", "--run", "true"])), refused("E_WORKSPACE_NOT_FOUND"));
    assert_eq!(code(&with(&["fork", "--run", "true"])), refused("E_FORK_REFUSED"));
    assert_eq!(code(&with(&["X", "--run", "  "])), refused("E_INVALID_ARGUMENTS"));
    assert_eq!(code(&["X", "--patch", &text, "--verify", "true"]), refused("E_PATCH_INVALID"));
    assert_eq!(code(&["X", "--patch", "/no/such", "--verify", "true"]), refused("E_NOT_FOUND"));
    assert_eq!(code(&["--resume", "0badcafe"]), refused("E_TRY_NOT_FOUND"));
    assert_eq!(code(&["show", "0badcafe"]), refused("E_TRY_NOT_FOUND"));
    assert_eq!(code(&["rm", "0badcafe"]), refused("E_TRY_NOT_FOUND"));
    assert_eq!(code(&["show", "../.."]), usage);
    assert_eq!(project.tries(), [""; 0], "nothing of it was recorded");
    assert_eq!(project.keys(), ["X", "fork"]);
}

#[test]
fn a_command_that_may_change_the_base_keeps_a_try_from_beginning() {
    let project = Project::new(TestEnvironment::usual());
    let mut command = project.test_env.exec_in(&project.path, &["-c", "echo started; read line"]);
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(running.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let refused = project.carrel_try(&Project::usual(&[]));
    assert_eq!(refused.error()["code"], "E_WORKSPACE_BUSY", "{refused:?}");
    assert_eq!(project.tries(), [""; 0]);
    drop(running.stdin.take());
    running.wait().unwrap();
    assert_eq!(project.carrel_try(&Project::usual(&[])).code, 0);
}

#[test]
fn copies_are_tried_where_there_are_no_overlays() {
    Project::each_in("landlock", |project| {
        let done = project.carrel_try(&Project::usual(&["--promote", "best"]));
        assert_eq!(done.code, 0, "{}: {done:?}", project.test_env);
        project.assert_promoted(&done.json, "copies");
        project.assert_work_is_kept(&done.json, "copies");
    });
}

#[test]
fn the_tool_answers_with_the_comparison() {
    let project = Project::new(TestEnvironment::usual());
    let arguments = json!({ "runs": RUNS, "verify": VERIFY, "promote": true });
    let done = project.tool("X", "try", &arguments);
    assert_eq!(done.code, 0, "{done:?}");
    let (facts, text) = (&done.json["structured"], done.json["content"].as_str().unwrap());
    assert_eq!(facts["outcome"], "promoted", "{done:?}");
    // Without the limit of lines the large one is right too, and its diff is larger.
    let order: Vec<_> =
        facts["candidates"].as_array().unwrap().iter().map(|one| &one["candidate"]).collect();
    assert_eq!(order, [3, 2, 1], "{text}");
    assert!(text.contains("+    return a + b"), "{text}");
    assert_eq!(project.line("X", "tail -n 1 calc.py"), "    return a + b\n");
    let refused = project.tool("X", "try", &json!({ "runs": ["sudo true"], "verify": "true" }));
    assert_eq!(refused.json["structured"]["error"]["code"], "E_COMMAND_REFUSED", "{refused:?}");
}
