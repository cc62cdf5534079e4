//! Renames by a language server of the tests, which answers what each case says.

use std::os::unix::fs::PermissionsExt as _;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

/// Answers for `ty` what `answers.json` says.
const SERVER: &str = include_str!("language_server.py");

/// A project with the server of the tests.
fn project(files: &[(&str, &str)], answers: &Value) -> TestEnvironment {
    with(Setting::default(), files, answers)
}

fn with(setting: Setting, files: &[(&str, &str)], answers: &Value) -> TestEnvironment {
    let test_env = TestEnvironment::with(setting);
    test_env.put("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n");
    test_env.put_program(".venv/bin/ty", SERVER);
    test_env.put("answers.json", answers.to_string());
    for (path, text) in files {
        test_env.put(path, text);
    }
    test_env
}

fn rename() -> Value {
    json!({ "symbol": "echo", "file_path": "a.py", "new_name": "shout" })
}

/// The function of the cases, and the edit that renames it.
const FUNCTION: (&str, &str) = ("a.py", "def echo():\n    pass\n");

async fn refused_with(test_env: &TestEnvironment, place: &str) {
    let (code, text) = test_env.refusal("rename_symbol", rename()).await;
    assert_eq!(code, "E_SYMBOL_IN_USE", "{text}");
    assert!(text.contains(place), "{text}");
    assert_eq!(test_env.get("a.py"), FUNCTION.1, "nothing was renamed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_use_in_a_line_that_the_change_edits_is_noticed() {
    let uses = ("b.py", "from a import echo as echo  # echo\nprint(\"echo\")\n");
    let edits = json!({ "edits": [["a.py", 0, 4, 8], ["b.py", 0, 14, 18]] });
    let test_env = project(&[FUNCTION, uses], &edits);
    refused_with(&test_env, "b.py:1").await;
    let edits = json!({ "edits": [["a.py", 0, 4, 8], ["b.py", 0, 14, 18], ["b.py", 0, 22, 26]] });
    test_env.put("answers.json", edits.to_string());
    test_env.text("rename_symbol", rename()).await;
    let renamed = "from a import shout as shout  # echo\nprint(\"echo\")\n";
    assert_eq!(test_env.get("b.py"), renamed, "strings and comments are no uses");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_use_is_too_many_to_be_looked_at() {
    let uses = "from a import echo\n".to_owned() + &"echo()\n".repeat(60) + "lost = echo\n";
    let mut edits = vec![json!(["a.py", 0, 4, 8]), json!(["b.py", 0, 14, 18])];
    // All but one of the uses mean something else, as the server says.
    let means: Vec<_> = (1..=60).map(|line| json!(["b.py", line, 0, "c.py", 0, 4, 8])).collect();
    let answers = json!({ "edits": edits, "means": means });
    let files = [FUNCTION, ("b.py", uses.as_str()), ("c.py", "x = 1234\n")];
    let test_env = project(&files, &answers);
    refused_with(&test_env, "b.py:62").await;
    edits.push(json!(["b.py", 61, 7, 11]));
    test_env.put("answers.json", json!({ "edits": edits, "means": means }).to_string());
    test_env.text("rename_symbol", rename()).await;
    assert!(test_env.get("b.py").ends_with("lost = shout\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_of_one_of_several_definitions_is_looked_at() {
    let other = ("c.py", "def echo():\n    pass\n");
    let uses = ("b.py", "import a, c\n\na.echo()\nc.echo()\nunknown.echo()\n");
    let means = json!([["b.py", 2, 2, "a.py", 0, 4, 8], ["b.py", 3, 2, "c.py", 0, 4, 8]]);
    let answers = json!({ "edits": [["a.py", 0, 4, 8]], "means": means });
    let test_env = project(&[FUNCTION, other, uses], &answers);
    let (code, text) = test_env.refusal("rename_symbol", rename()).await;
    assert_eq!(code, "E_SYMBOL_IN_USE", "{text}");
    assert!(text.contains(": b.py:3;"), "the server knows line 4, and nothing of line 5: {text}");
    let edits = json!([["a.py", 0, 4, 8], ["b.py", 2, 2, 6]]);
    test_env.put("answers.json", json!({ "edits": edits, "means": means }).to_string());
    test_env.text("rename_symbol", rename()).await;
    assert_eq!(test_env.get("c.py"), other.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn overloads_are_one_definition() {
    let stub = "def echo(x: int): ...\n\n\n";
    let source = format!("{stub}def echo(x):\n    pass\n");
    let edits = json!({ "edits": [["a.py", 0, 4, 8], ["a.py", 3, 4, 8]] });
    let test_env = project(&[("a.py", source.as_str()), ("b.py", "unknown.echo()\n")], &edits);
    let (code, text) = test_env.refusal("rename_symbol", rename()).await;
    assert_eq!(code, "E_SYMBOL_IN_USE", "a use that cannot be resolved means it, probably: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_word_in_another_language_is_no_use() {
    let answers = json!({ "edits": [["a.py", 0, 4, 8]] });
    let test_env = project(&[FUNCTION, ("run.sh", "echo one\n")], &answers);
    test_env.text("rename_symbol", rename()).await;
    assert_eq!(test_env.get("a.py"), "def shout():\n    pass\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_waits_for_the_index_and_for_files_that_it_leaves_out() {
    let answers = json!({ "edits": [["a.py", 0, 4, 8]] });
    let setting = Setting { index_time: Some(std::time::Duration::ZERO), ..Setting::default() };
    let test_env = with(setting, &[FUNCTION], &answers);
    let place = json!({ "file_path": "a.py", "line": 1, "col": 5, "new_name": "shout" });
    let (code, text) = test_env.refusal("rename_symbol", place).await;
    assert_eq!(code, "E_SYMBOL_IN_USE", "{text}");
    assert!(text.contains("not indexed yet"), "{text}");
    let test_env = project(&[FUNCTION], &answers);
    test_env.put("latin.py", b"# caf\xe9\nfrom a import echo\n");
    refused_with(&test_env, "latin.py (not UTF-8) has the word echo").await;
    let forced = json!({ "symbol": "echo", "new_name": "shout", "force": true });
    test_env.text("rename_symbol", forced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_renamed_with_its_symbol_keeps_its_permissions_also_when_that_is_taken_back()
{
    let answers = json!({
        "edits": [["echo.py", 0, 4, 8]],
        "operations": [["rename", "echo.py", "shout.py"]],
    });
    let test_env = project(&[], &answers);
    test_env.put_program("echo.py", FUNCTION.1);
    let mode = |path: &str| {
        let metadata = std::fs::metadata(test_env.path("main").join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    let rename = json!({ "symbol": "echo", "new_name": "shout" });
    test_env.text("rename_symbol", rename).await;
    assert!(!test_env.has("echo.py"));
    assert_eq!(test_env.get("shout.py"), "def shout():\n    pass\n");
    assert_eq!(format!("{:o}", mode("shout.py")), "755");
    test_env.text("rename_symbol", json!({ "undo": true })).await;
    assert!(!test_env.has("shout.py"));
    assert_eq!(format!("{:o}", mode("echo.py")), "755");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_updates_the_imports_that_its_server_knows() {
    let answers = json!({ "moves": [["b.py", 0, 5, 6, "lib.a"], ["a.py", 0, 0, 8, "import c"]] });
    let files = [("a.py", "import b\n"), ("b.py", "from a import x\n")];
    let test_env = project(&files, &answers);
    let moved = json!({ "source": "a.py", "destination": "lib/a.py" });
    let answer = test_env.call("Move", moved).await;
    let text = answer.text();
    assert_eq!(text, "moved a.py to lib/a.py\n[imports updated by ty: b.py, lib/a.py]\n");
    assert_eq!(test_env.get("b.py"), "from lib.a import x\n");
    assert_eq!(test_env.get("lib/a.py"), "import c\n", "also in what was moved");
    assert!(!test_env.has("a.py"));
    let edit = json!({ "file_path": "b.py", "old_string": "x", "new_string": "y",
        "expected_hash": answer.structured["updated"][0]["hash"] });
    test_env.text("Edit", edit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_directory_takes_its_imports_along() {
    let answers = json!({ "moves": [["b.py", 0, 5, 8, "new"], ["old/a.py", 0, 5, 8, "new"]] });
    let files =
        [("old/a.py", "from old import c\n"), ("old/c.py", ""), ("b.py", "from old import a\n")];
    let test_env = project(&files, &answers);
    test_env.text("Move", json!({ "source": "old", "destination": "new" })).await;
    assert_eq!(test_env.get("b.py"), "from new import a\n");
    assert_eq!(test_env.get("new/a.py"), "from new import c\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_without_a_server_names_the_imports_that_it_leaves() {
    let test_env = crate::verify::machine::bare();
    test_env.put("shop/price.py", "def price(n): pass\n");
    test_env.put("cart.py", "from shop import price\n\nprice.price(1)\n");
    let moved = json!({ "source": "shop/price.py", "destination": "shop/cost.py" });
    let answer = test_env.call("Move", moved).await;
    let text = answer.text();
    assert!(text.contains("[imports may be left at cart.py:1 (no language server"), "{text}");
    assert_eq!(answer.structured["left"], json!(["cart.py:1"]));
    assert!(test_env.has("shop/cost.py") && !test_env.has("shop/price.py"));
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_that_cannot_be_changed_are_left_and_named_and_the_file_is_moved() {
    // A hook would run later, outside, so that no tool writes it.
    let answers = json!({ "moves": [["b.py", 0, 5, 6, "c"], [".git/hooks/x.py", 0, 5, 6, "c"]] });
    let hook = (".git/hooks/x.py", "from a import x\n");
    let test_env = project(&[("a.py", ""), ("b.py", "from a import x\n"), hook], &answers);
    let moved = json!({ "source": "a.py", "destination": "c.py" });
    let text = test_env.text("Move", moved).await;
    assert!(text.contains("[imports were left in .git/hooks/x.py, b.py: "), "{text}");
    assert_eq!(test_env.get("b.py"), "from a import x\n", "all imports are updated or none");
    assert!(test_env.has("c.py"));
}

/// The settings of a project whose formatter takes blanks away that stand before a parenthesis.
const FORMATTER: (&str, &str) = (
    "carrel.toml",
    "[profile]\nformat = [\"sed\", \"-i\", \"s/ (/(/\", \"$FILES\"]\nformat_on_edit = true\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_is_formatted_as_other_edits_are_and_can_still_be_taken_back() {
    let answers = json!({ "edits": [["a.py", 0, 4, 8]] });
    let source = "def echo ():\n    pass\n";
    let test_env = project(&[("a.py", source), FORMATTER], &answers);
    let answer = test_env.call("rename_symbol", rename()).await;
    assert!(answer.text().contains("formatted:\n"), "{}", answer.text());
    assert_eq!(test_env.get("a.py"), "def shout():\n    pass\n");
    let read = test_env.call("Read", json!({ "file_path": "a.py" })).await;
    assert_eq!(answer.structured["files"][0]["hash"], read.structured["hash"]);
    test_env.text("rename_symbol", json!({ "undo": true })).await;
    assert_eq!(test_env.get("a.py"), source);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_by_structure_is_formatted_as_other_edits_are() {
    let test_env = project(&[("a.py", "run(1)\n"), FORMATTER], &json!({}));
    test_env.text("Read", json!({ "file_path": "a.py" })).await;
    let edit = json!({ "op": "replace", "rule": "run($A)", "replacement": "walk ($A)" });
    let rewrite = json!({ "path": "a.py", "edits": [edit] });
    let answer = test_env.call("code_edit", rewrite).await;
    assert!(answer.text().contains("formatted:\n"), "{}", answer.text());
    assert_eq!(test_env.get("a.py"), "walk(1)\n");
}
