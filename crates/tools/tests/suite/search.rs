//! Finding files and text.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::TestEnvironment;

fn filled() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("a.go", "alpha\nbeta\nalpha again\n");
    test_env.put("sub/b.go", "Alpha\n");
    test_env.put(".gitignore", "ignored.go\n");
    test_env.put("ignored.go", "alpha\n");
    test_env.put(".hidden.go", "alpha\n");
    test_env
}

#[tokio::test]
async fn text_is_found_with_its_path_and_line_always_in_one_order() {
    let test_env = filled();
    let grep = async |arguments| test_env.text("Grep", arguments).await;
    assert_eq!(grep(json!({ "pattern": "alpha" })).await, "a.go:1:alpha\na.go:3:alpha again\n");
    assert_eq!(
        grep(json!({ "pattern": "alpha", "path": "a.go" })).await,
        "a.go:1:alpha\na.go:3:alpha again\n"
    );
    assert_eq!(
        grep(json!({ "pattern": "alpha", "output_mode": "files_with_matches" })).await,
        "a.go\n"
    );
    assert_eq!(grep(json!({ "pattern": "alpha", "output_mode": "count" })).await, "a.go:2\n");
    let both = "a.go:1:alpha\na.go:3:alpha again\nsub/b.go:1:Alpha\n";
    assert_eq!(grep(json!({ "pattern": "alpha", "case_insensitive": true })).await, both);
    assert_eq!(
        grep(json!({ "pattern": "alpha", "glob": "sub/**" })).await,
        "no matches for alpha\n"
    );
    assert_eq!(
        grep(json!({ "pattern": "alpha", "glob": "*.go" })).await,
        "a.go:1:alpha\na.go:3:alpha again\n",
        "a glob brings nothing back"
    );
    let hidden = grep(json!({ "pattern": "alpha", "hidden": true, "ignored": true, "output_mode": "files_with_matches" })).await;
    assert_eq!(hidden, ".hidden.go\na.go\nignored.go\n");
    let first = test_env.call("Grep", json!({ "pattern": "alpha", "head_limit": 1 })).await;
    assert!(
        first.text().starts_with("a.go:1:alpha\n[cut by limit; continue with offset 1]"),
        "{}",
        first.text()
    );
    assert_eq!(grep(json!({ "pattern": "alpha", "offset": 1 })).await, "a.go:3:alpha again\n");
    assert_eq!(
        grep(json!({ "pattern": "beta", "context": 1 })).await,
        "a.go-1-alpha\na.go:2:beta\na.go-3-alpha again\n"
    );
}

#[tokio::test]
async fn a_wrong_search_says_what_is_wrong() {
    let test_env = filled();
    for (arguments, expected) in [
        (json!({ "pattern": "" }), "E_INVALID_ARGUMENTS"),
        (json!({ "pattern": "[unclosed" }), "E_INVALID_PATTERN"),
        (json!({ "pattern": "x", "output_mode": "lines" }), "E_INVALID_ARGUMENTS"),
        (json!({ "pattern": "x", "path": "nope" }), "E_NOT_FOUND"),
        (json!({ "pattern": "x", "path": "../" }), "E_SANDBOX_VIOLATION"),
        (json!({ "pattern": "x", "type": "rusty" }), "E_INVALID_ARGUMENTS"),
    ] {
        let (code, text) = test_env.refusal("Grep", arguments.clone()).await;
        assert_eq!(code, expected, "{arguments}: {text}");
    }
}

#[tokio::test]
async fn files_are_found_by_name_the_last_changed_first() {
    let test_env = filled();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let file = std::fs::File::options().write(true).open(test_env.path("main/sub/b.go")).unwrap();
    file.set_modified(old).unwrap();
    assert_eq!(test_env.text("Glob", json!({ "pattern": "**/*.go" })).await, "a.go\nsub/b.go");
    assert_eq!(
        test_env.text("Glob", json!({ "pattern": "*.go", "path": "sub" })).await,
        "sub/b.go"
    );
    assert_eq!(test_env.text("Glob", json!({ "pattern": "*.rs" })).await, "no files match *.rs\n");
    let cut = test_env.call("Glob", json!({ "pattern": "*.go", "limit": 1 })).await;
    assert_eq!(
        (cut.text().as_str(), cut.structured["total"].clone()),
        ("a.go\n[showing 1 of 2, cut by limit]\n", json!(2))
    );
    assert_eq!(
        test_env.refusal("Glob", json!({ "pattern": "*", "path": "../" })).await.0,
        "E_SANDBOX_VIOLATION"
    );
    assert_eq!(
        test_env.refusal("Glob", json!({ "pattern": "*", "path": "a.go" })).await.0,
        "E_NOT_A_DIRECTORY"
    );
}

#[tokio::test]
async fn a_directory_is_listed_with_everything_in_it() {
    let test_env = filled();
    std::os::unix::fs::symlink("gone", test_env.path("main/dangling")).unwrap();
    assert_eq!(
        test_env.text("LS", json!({})).await,
        ".gitignore\n.hidden.go\na.go\ndangling -> gone (no target in the workspace)\nignored.go\nsub/\n"
    );
    assert_eq!(
        test_env.text("LS", json!({ "visible_only": true, "depth": 2 })).await,
        "a.go\ndangling -> gone (no target in the workspace)\nsub/\nsub/b.go\n"
    );
    assert_eq!(test_env.refusal("LS", json!({ "path": "a.go" })).await.0, "E_NOT_A_DIRECTORY");
}

#[tokio::test]
async fn node_modules_are_left_out_unless_ignored_brings_them_back_as_the_descriptions_say() {
    let test_env = TestEnvironment::new();
    test_env.put("node_modules/a.js", "needle\n");
    for (tool, found) in [("Grep", "node_modules/a.js:1:needle\n"), ("Glob", "node_modules/a.js")] {
        let pattern = if tool == "Grep" { "needle" } else { "*.js" };
        let without = test_env.text(tool, json!({ "pattern": pattern })).await;
        assert!(without.starts_with("no "), "{without}");
        let with = test_env.text(tool, json!({ "pattern": pattern, "ignored": true })).await;
        assert_eq!(with, found);
        let mut definitions = test_env.registry.definitions();
        let definition = definitions.find(|one| one.about.name == tool).unwrap();
        assert!(definition.about.description.contains("node_modules"), "{tool}");
        let ignored = &definition.input_schema()["properties"]["ignored"]["description"];
        assert!(ignored.as_str().unwrap().contains("node_modules"), "{tool}: {ignored}");
    }
}
