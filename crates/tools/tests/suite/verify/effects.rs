//! Effects of formatters, linters and installers as audit events.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::TestEnvironment;

/// Tools of a project that pass, or fail where a file `broken` exists.
fn project(format_on_edit: bool) -> TestEnvironment {
    let test_env = TestEnvironment::new();
    for name in ["format", "lint", "install"] {
        test_env.put_program(name, "#!/bin/sh\n[ ! -e broken ]\n");
    }
    let settings = format!(
        "[profile]\nformat = [\"./format\", \"$FILES\"]\nlint = [\"./lint\", \"$FILES\"]\n\
         install = [\"./install\", \"all\"]\nformat_on_edit = {format_on_edit}\n"
    );
    test_env.put("package.json", r#"{"name":"probe"}"#);
    test_env.put("carrel.toml", settings);
    test_env.put("a.js", "one\n");
    test_env
}

/// Returns the effects so far, as name, files or command, and errors.
fn effects(test_env: &TestEnvironment) -> Vec<(String, Value, bool)> {
    let events = test_env.events();
    let all = events.iter().filter_map(|event| {
        let name = event["event"].as_str()?.strip_prefix("lifecycle.effect.")?;
        assert_eq!((&event["workspace"], &event["session"]), (&json!("main"), &json!("test")));
        let object = if name == "install" { &event["command"] } else { &event["files"] };
        Some((name.to_owned(), object.clone(), event["has_errors"].as_bool()?))
    });
    all.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn format_lint_and_install_are_events_also_when_they_fail() {
    let test_env = project(false);
    for has_errors in [false, true] {
        if has_errors {
            test_env.put("broken", "");
        }
        for tool in ["format", "run_lint", "install"] {
            test_env.text(tool, json!({})).await;
        }
        test_env.text("format", json!({ "path": "a.js" })).await;
        // Neither a check of the format nor a refused call has an effect.
        test_env.call("format", json!({ "check": true })).await;
        test_env.call("install", json!({ "language": "cobol" })).await;
        assert_eq!(
            effects(&test_env),
            [
                ("format".to_owned(), json!(["."]), has_errors),
                ("lint".to_owned(), json!(["."]), has_errors),
                ("install".to_owned(), json!("./install all"), has_errors),
                ("format".to_owned(), json!(["a.js"]), has_errors),
            ]
        );
    }
    std::fs::remove_file(test_env.path("main/install")).unwrap();
    test_env.text("install", json!({})).await;
    let missing = ("install".to_owned(), json!("./install all"), true);
    assert_eq!(effects(&test_env), [missing], "a program that is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_after_an_edit_are_events_too() {
    for (format_on_edit, name) in [(false, "lint"), (true, "format")] {
        let test_env = project(format_on_edit);
        for (has_errors, from, to) in [(false, "one", "two"), (true, "two", "three")] {
            if has_errors {
                test_env.put("broken", "");
            }
            test_env.text("Read", json!({ "file_path": "a.js" })).await;
            let edit = json!({ "file_path": "a.js", "old_string": from, "new_string": to });
            test_env.text("Edit", edit).await;
            let expected = (name.to_owned(), json!(["a.js"]), has_errors);
            assert_eq!(effects(&test_env), [expected]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linter_that_is_too_slow_for_an_edit_leaves_an_event() {
    let test_env = project(false);
    test_env.put_program("lint", "#!/bin/sh\nsleep 20\n");
    test_env.text("Read", json!({ "file_path": "a.js" })).await;
    let edit = json!({ "file_path": "a.js", "old_string": "one", "new_string": "two" });
    test_env.text("Edit", edit).await;
    assert_eq!(effects(&test_env), [("lint".to_owned(), json!(["a.js"]), true)]);
}
