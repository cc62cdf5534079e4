//! The facts of answers: their source, their completeness, and the reason for which no server answered.

use std::time::Duration;

use carrel_tools::{CallOptions, Interface, ToolResponse};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{TestEnvironment, object};

/// Answers for `ty` what `answers.json` says.
const SERVER: &str = include_str!("language_server.py");

/// A project in which `echo` is defined once and used in two files.
fn project(answers: &Value) -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n");
    test_env.put_program(".venv/bin/ty", SERVER);
    test_env.put("answers.json", answers.to_string());
    test_env.put("a.py", "def echo():\n    pass\n");
    test_env.put("b.py", "from a import echo\necho()\n");
    test_env.put("c.py", "import b\nb.echo()\n");
    test_env
}

/// Returns the facts about an answer, without its time, which has to be there.
fn facts(answer: &ToolResponse) -> Value {
    assert!(!answer.is_error, "{}", answer.text());
    assert!(answer.structured["as_of"].as_str().is_some(), "{}", answer.structured);
    let names = ["source", "complete", "missing", "server", "unanswered"];
    let fact = |name: &str| (name.to_owned(), answer.structured[name].clone());
    names.into_iter().map(fact).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_a_part_of_the_project_gives_no_complete_answer() {
    let uses = json!([["a.py", 0, 4, 8], ["b.py", 0, 14, 18], ["b.py", 1, 0, 4]]);
    let test_env = project(&json!({ "uses": uses, "failure": "no manifest" }));
    let answer = test_env.call("find_references", json!({ "symbol": "echo" })).await;
    let missing = "ty knows a part of the project: Error: no manifest";
    assert_eq!(
        facts(&answer),
        json!({
            "source": "syntactic",
            "complete": false,
            "missing": missing,
            "server": null,
            "unanswered": "ty knows 3 of these lines",
        })
    );
    assert_eq!(
        answer.text(),
        format!(
            "Found 4 reference(s) for echo:\n\
             a.py\n  1 (definition): def echo():\n\
             b.py\n  1 (top level): from a import echo\n  2 (top level): echo()\n\
             c.py\n  2 (top level): b.echo()\n\
             [by name alone: ty knows 3 of these lines]\n[incomplete: {missing}]\n"
        )
    );
    // What it knows are all lines that have the name.
    test_env.put("c.py", "");
    let answer = test_env.call("find_references", json!({ "symbol": "echo" })).await;
    assert_eq!(answer.structured["source"], "semantic");
    assert_eq!(answer.structured["complete"], false);
    assert_eq!(answer.structured["missing"], "Error: no manifest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_work_is_named_with_its_work_and_an_estimate() {
    let test_env = project(&json!({ "work": ["indexing", "3 of 6", 50] }));
    let mut options = CallOptions::new(Interface::Cli);
    options.command_settings.timeout = Some(Duration::from_secs(2));
    let mut said = Vec::new();
    // It has to start first.
    for _ in 0..30 {
        let question = object(json!({ "symbol": "echo" }));
        let call =
            test_env.registry.call(&test_env.session, "find_references", question, options.clone());
        let answer = call.await;
        let facts = facts(&answer);
        assert_eq!((&facts["source"], &facts["complete"]), (&json!("syntactic"), &json!(true)));
        let reason = facts["unanswered"].as_str().unwrap().to_owned();
        assert!(answer.text().ends_with(&format!("[by name alone: {reason}]\n")), "{reason}");
        let rest = reason.strip_prefix("ty is not ready (indexing: 3 of 6 (50 %), for about ");
        if let Some(rest) = rest {
            let (seconds, rest) = rest.split_once(' ').unwrap();
            assert!(seconds.parse::<u64>().unwrap() >= 1, "{reason}");
            assert_eq!(rest, "s more); ask again for its answer");
            return;
        }
        said.push(reason);
    }
    panic!("{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_that_lasts_is_told_once_in_texts_and_always_in_facts() {
    let test_env = TestEnvironment::new();
    test_env.put("a.lua", "function echo()\nend\necho()\n");
    let question = json!({ "symbol": "echo" });
    let first = test_env.call("find_references", question.clone()).await;
    let second = test_env.call("find_references", question).await;
    let reason = first.structured["unanswered"].as_str().unwrap();
    assert!(reason.starts_with("no language server for lua is installed"), "{reason}");
    assert!(first.text().contains(&format!("[by name alone: {reason}]\n")), "{}", first.text());
    assert!(second.text().contains("[by name alone]\n"), "{}", second.text());
    assert_eq!(facts(&first), facts(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_and_rewrites_have_a_source_and_say_what_is_missing() {
    let test_env = TestEnvironment::new();
    test_env.put("a.py", "run(1)\nrun(2)\n");
    let expected = |complete: bool, missing: Value| {
        json!({
            "source": "syntactic",
            "complete": complete,
            "missing": missing,
            "server": null,
            "unanswered": null,
        })
    };
    let scan = json!({ "pattern": "run($A)" });
    let answer = test_env.call("code_scan", scan.clone()).await;
    assert_eq!(facts(&answer), expected(true, Value::Null));
    let answer =
        test_env.call("code_scan", json!({ "pattern": "run($A)", "max_results": 1 })).await;
    assert_eq!(facts(&answer), expected(false, json!("matches behind the last one")));
    let edit = json!({ "op": "replace", "rule": "run($A)", "replacement": "walk($A)" });
    let rewrite = json!({ "path": ".", "edits": [edit], "dry_run": true });
    let answer = test_env.call("code_edit", rewrite.clone()).await;
    assert_eq!(facts(&answer), expected(true, Value::Null));
    test_env.put("latin.py", b"x = '\xe9'\n");
    let answer = test_env.call("code_scan", scan).await;
    assert_eq!(facts(&answer), expected(false, json!("the files in `skipped`")));
    assert_eq!(answer.structured["skipped"].as_array().unwrap().len(), 1);
    test_env.put("b.sh", "run 1\n");
    let edit = json!({ "op": "replace", "rule": "def $A(): pass", "replacement": "def $A(): 1" });
    test_env.put("c.py", "def a(): pass\n");
    let rewrite = json!({ "path": ".", "edits": [edit], "dry_run": true });
    let answer = test_env.call("code_edit", rewrite).await;
    assert_eq!(answer.structured["complete"], false, "{}", answer.structured);
}
