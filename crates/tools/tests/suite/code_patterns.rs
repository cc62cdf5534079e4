//! Search and rewrites by structure.

use std::time::Duration;

use carrel_tools::{CallOptions, Interface};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{TestEnvironment, object};

const LIB: &str = "\
fn load(path: &str) -> String {
    read(path).unwrap_or(
        default(),
    )
}

fn other() {
    // x.unwrap_or(y) in a comment
    x.unwrap_or(1);
}
";

fn project() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("src/lib.rs", LIB);
    test_env.put("src/more.rs", "fn more() { z.unwrap_or(2); }\n");
    test_env.put("a.py", "x.unwrap_or(1)\n");
    test_env.put("notes.txt", "x.unwrap_or(1)\n");
    test_env
}

#[tokio::test]
async fn a_pattern_finds_code_in_every_layout_with_its_symbol_and_captures() {
    let test_env = project();
    let scan = json!({ "pattern": "$A.unwrap_or($B)", "language": "rust" });
    assert_eq!(
        test_env.text("code_scan", scan).await,
        "scanned=2 matches=3\n\
         src/lib.rs:2:[load] read(path).unwrap_or(  {$A=read(path), $B=default()}\n\
         src/lib.rs:9:[other] x.unwrap_or(1)  {$A=x, $B=1}\n\
         src/more.rs:1:[more] z.unwrap_or(2)  {$A=z, $B=2}\n"
    );
    let rule = json!({ "rule": { "pattern": "$A.unwrap_or($B)", "inside": { "pattern": "fn other() { $$$ }", "stopBy": "end" } }, "path": "src" });
    let text = test_env.text("code_scan", rule).await;
    assert!(text.starts_with("scanned=2 matches=1\nsrc/lib.rs:9:"), "{text}");
    let all = test_env.call("code_scan", json!({ "pattern": "$A.unwrap_or($B)" })).await;
    assert_eq!(all.structured["total"], 4, "Python understands the pattern too");
    let few = test_env
        .text("code_scan", json!({ "pattern": "$A.unwrap_or($B)", "max_results": 1 }))
        .await;
    assert!(few.ends_with("[cut; max_results shows up to 200, or name a path]\n"), "{few}");
    let none =
        test_env.text("code_scan", json!({ "pattern": "nothing($A)", "language": "rust" })).await;
    assert!(none.starts_with("scanned=2 matches=0\nNo matches."), "{none}");
}

#[tokio::test]
async fn a_pattern_that_is_no_code_and_a_rule_with_an_unknown_field_are_refused() {
    let test_env = project();
    for (arguments, code) in [
        (json!({ "pattern": "fn (", "language": "rust" }), "E_INVALID_PATTERN"),
        (json!({ "rule": { "patern": "x" } }), "E_INVALID_ARGUMENTS"),
        (json!({}), "E_INVALID_ARGUMENTS"),
        (json!({ "pattern": "x", "language": "klingon" }), "E_INVALID_ARGUMENTS"),
        (json!({ "pattern": "x", "path": "notes.txt" }), "E_SCAN_CODE_UNSUPPORTED_FILE"),
        (json!({ "pattern": "x", "path": "gone" }), "E_NOT_FOUND"),
        (json!({ "pattern": "x", "path": "../x" }), "E_SANDBOX_VIOLATION"),
    ] {
        let (found, text) = test_env.refusal("code_scan", arguments.clone()).await;
        assert_eq!(found, code, "{arguments}: {text}");
    }
}

#[tokio::test]
async fn a_rewrite_shows_what_it_would_change_and_then_changes_all_files_or_none() {
    let test_env = project();
    let edits = json!([{ "op": "replace", "rule": "$A.unwrap_or($B)", "replacement": "$A.unwrap_or_else(|| $B)" }]);
    let dry = json!({ "path": "src", "edits": edits, "dry_run": true });
    let text = test_env.text("code_edit", dry).await;
    assert!(text.starts_with("would change 2 file(s): 3 of 3 match(es) replaced\n"), "{text}");
    assert_eq!(test_env.get("src/lib.rs"), LIB);
    let call = json!({ "path": "src", "edits": edits });
    let other = carrel_tools::Session::new("other");
    let refused = test_env.call_as(&other, "code_edit", call.clone()).await;
    assert_eq!(refused.structured["error"]["code"], "E_NOT_READ");
    let text = refused.text();
    assert!(text.contains("x.unwrap_or(1);") && text.contains("z.unwrap_or(2)"), "{text}");
    // The dry run has shown the lines to this session.
    test_env.text("code_edit", call).await;
    assert_eq!(test_env.get("src/more.rs"), "fn more() { z.unwrap_or_else(|| 2); }\n");
    assert!(test_env.get("src/lib.rs").contains("x.unwrap_or_else(|| 1);"));
    assert!(test_env.get("src/lib.rs").contains("// x.unwrap_or(y) in a comment"));
    // As another program would write it, while the session knows the version before.
    test_env.put("src/more.rs", "fn more() { z.unwrap_or_else(|| 3); }\n");
    let back = json!([{ "op": "replace", "rule": "$A.unwrap_or_else(|| $B)", "replacement": "$A.unwrap_or($B)" }]);
    let lib = test_env.get("src/lib.rs");
    let (code, _) = test_env.refusal("code_edit", json!({ "path": "src", "edits": back })).await;
    assert_eq!(code, "E_CHANGED_SINCE_READ");
    assert_eq!(test_env.get("src/lib.rs"), lib, "none is changed if one is refused");
}

#[tokio::test]
async fn a_rewrite_names_what_is_wrong_with_it() {
    let test_env = project();
    test_env.text("Read", json!({ "file_path": "src/lib.rs" })).await;
    let before = test_env.get("src/lib.rs");
    for (edit, code) in [
        (
            json!({ "op": "replace", "rule": "nothing($A)", "replacement": "$A" }),
            "E_EDIT_CODE_NO_MATCH",
        ),
        (
            json!({ "op": "replace", "rule": "$A.unwrap_or($B)", "replacement": "$C" }),
            "E_EDIT_CODE_REPLACEMENT_META_MISMATCH",
        ),
        (
            json!({ "op": "replace", "rule": "$A.unwrap_or($B)", "replacement": "$A.(" }),
            "E_REPLACEMENT_INVALID",
        ),
        (json!({ "op": "rename", "from": "load", "to": "a b" }), "E_INVALID_ARGUMENTS"),
        (json!({ "op": "move" }), "E_INVALID_ARGUMENTS"),
    ] {
        let call = json!({ "path": "src/lib.rs", "edits": [edit.clone()] });
        let (found, text) = test_env.refusal("code_edit", call).await;
        assert_eq!(found, code, "{edit}: {text}");
    }
    let text =
        json!({ "path": "notes.txt", "edits": [{ "op": "rename", "from": "x", "to": "y" }] });
    assert_eq!(test_env.refusal("code_edit", text).await.0, "E_EDIT_CODE_UNSUPPORTED_FILE");
    assert_eq!(test_env.get("src/lib.rs"), before);
    let rename = json!({ "path": "src/lib.rs", "edits": [{ "op": "rename", "from": "load", "to": "fetch" }] });
    let text = test_env.text("code_edit", rename).await;
    assert!(text.ends_with("src/lib.rs:1: fn fetch(path: &str) -> String {\n"), "{text}");
    assert_eq!(test_env.get("src/lib.rs"), LIB.replace("fn load", "fn fetch"));
}

#[tokio::test]
async fn a_scan_names_the_languages_and_files_that_it_did_not_look_at() {
    let test_env = TestEnvironment::new();
    test_env.put("a.rs", "fn a() { x.unwrap_or(1); }\n");
    test_env.put("b.go", "package b\n");
    test_env.put("c.go", "package c\n");
    test_env.put("table.rs", b"fn b() { x.unwrap_or(1); } // \0\xe9\n");
    // Rust alone has `fn`.
    let scan = json!({ "pattern": "fn $F() { $$$B }" });
    let answer = test_env.call("code_scan", scan).await;
    assert!(!answer.is_error, "{}", answer.text());
    assert_eq!(
        answer.text(),
        "scanned=2 matches=1\na.rs:1:fn a() { x.unwrap_or(1); }  {$B=x.unwrap_or(1);, $F=a}\n\
         [not scanned: table.rs (not UTF-8)]\n\
         [not scanned: files whose language does not understand the pattern: 2 in go]\n"
    );
    assert_eq!(answer.structured["skipped"], json!(["table.rs (not UTF-8)"]));
    let missing = "files whose language does not understand the pattern: 2 in go";
    assert_eq!(answer.structured["missing"], missing);

    let edit = json!({ "op": "replace", "rule": "$A.unwrap_or($B)", "replacement": "$A.or($B)" });
    let edit = json!({ "path": ".", "edits": [edit], "dry_run": true });
    let answer = test_env.call("code_edit", edit).await;
    assert!(!answer.is_error, "{}", answer.text());
    let skipped = answer.structured["skipped"][0].as_str().unwrap();
    assert!(skipped.starts_with("table.rs ("), "{skipped}");
    assert!(answer.text().contains("[not looked at: table.rs ("), "{}", answer.text());

    let edit = json!({ "op": "replace", "rule": "fn $F() { $$$B }", "replacement": "fn $F() {}" });
    let edit = json!({ "path": ".", "edits": [edit], "dry_run": true });
    let answer = test_env.call("code_edit", edit).await;
    assert_eq!(answer.structured["missing"], missing, "{}", answer.text());
}

/// A file in which a rule with `has` takes longer than a test waits: each block is searched with all those in it.
fn nested_blocks() -> String {
    let calls = "x();".repeat(100);
    let (open, close) = (format!("{{ {calls} ").repeat(400), "}".repeat(400));
    format!("// needle\nfn long() {{ {open} {close} }}\n")
}

#[tokio::test]
async fn matches_until_the_time_was_over_are_shown_and_marked() {
    let test_env = TestEnvironment::new();
    test_env.put("a.rs", "fn a() { { needle(); } }\n");
    test_env.put("b.rs", nested_blocks());
    let rule = json!({ "kind": "block", "has": { "pattern": "needle()", "stopBy": "end" } });
    let mut options = CallOptions::new(Interface::Cli);
    options.command_settings.timeout = Some(Duration::from_secs(2));
    let arguments = object(json!({ "rule": rule }));
    let answer = test_env.registry.call(&test_env.session, "code_scan", arguments, options).await;
    assert!(!answer.is_error, "{}", answer.text());
    assert_eq!(
        (&answer.structured["total"], &answer.structured["is_cut"]),
        (&2.into(), &true.into())
    );
    assert!(answer.text().contains("[incomplete: the time was over in b.rs;"), "{}", answer.text());
}
