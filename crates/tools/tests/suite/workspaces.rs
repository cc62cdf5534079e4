//! Which workspace a call is about.

use carrel_domain::{TokenScope, WorkspaceAccess};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{Setting, TestEnvironment};

fn two() -> TestEnvironment {
    let test_env =
        TestEnvironment::with(Setting { names: &["primary", "extension"], ..Setting::default() });
    for name in ["primary", "extension"] {
        std::fs::write(test_env.path(name).join("MARKER"), format!("{name}\n")).unwrap();
        std::fs::write(test_env.path(name).join("LOCK_TEST"), "old\n").unwrap();
    }
    test_env
}

const NOT_CHOSEN: &str = "multi-workspace sandbox: 2 workspaces configured (extension, primary) — pass `workspace` to pick one";
const UNKNOWN: &str = "unknown workspace \"bogus\"; configured: extension, primary";

#[tokio::test]
async fn the_two_texts_of_the_seed_are_exact() {
    let test_env = two();
    let (code, text) = test_env.refusal("Read", json!({ "file_path": "MARKER" })).await;
    assert_eq!((code.as_str(), text.as_str()), ("E_WORKSPACE_NOT_CHOSEN", NOT_CHOSEN));
    let (code, text) =
        test_env.refusal("Read", json!({ "file_path": "MARKER", "workspace": "bogus" })).await;
    assert_eq!((code.as_str(), text.as_str()), ("E_UNKNOWN_WORKSPACE", UNKNOWN));
    let (_, text) =
        test_env.refusal("Read", json!({ "file_path": "MARKER", "workspace": "Primary" })).await;
    assert!(text.starts_with("unknown workspace \"Primary\""), "names are case-sensitive");
    let single = TestEnvironment::new();
    let (_, text) = single.refusal("Read", json!({ "file_path": "x", "workspace": "other" })).await;
    assert_eq!(text, "unknown workspace \"other\"; configured: main");
}

#[tokio::test]
async fn a_call_sees_the_chosen_workspace_and_no_other() {
    let test_env = two();
    for name in ["primary", "  extension  "] {
        let expected = name.trim();
        let text = test_env.text("Read", json!({ "file_path": "MARKER", "workspace": name })).await;
        assert_eq!(text, format!("1\t{expected}\n"));
        let text = test_env
            .text("Grep", json!({ "pattern": ".", "glob": "MARKER", "workspace": name }))
            .await;
        assert_eq!(text, format!("MARKER:1:{expected}\n"));
        let text = test_env
            .text("Bash", json!({ "command": "cat MARKER; ls ..", "workspace": name }))
            .await;
        assert!(text.starts_with(&format!("{expected}\n")), "{text}");
        assert!(
            !text.contains(if expected == "primary" { "extension" } else { "primary\n" })
                || expected == "primary",
            "{text}"
        );
    }
    let out = json!({ "file_path": "../extension/MARKER", "workspace": "primary" });
    assert_eq!(test_env.refusal("Read", out).await.0, "E_SANDBOX_VIOLATION");
}

#[tokio::test]
async fn reading_in_one_workspace_unlocks_nothing_in_another() {
    let test_env = two();
    test_env.text("Read", json!({ "file_path": "LOCK_TEST", "workspace": "primary" })).await;
    let write = json!({ "file_path": "LOCK_TEST", "content": "new\n", "workspace": "extension" });
    assert_eq!(test_env.refusal("Write", write.clone()).await.0, "E_NOT_READ");
    test_env.text("Read", json!({ "file_path": "LOCK_TEST", "workspace": "extension" })).await;
    test_env.text("Write", write).await;
    assert_eq!(std::fs::read_to_string(test_env.path("primary/LOCK_TEST")).unwrap(), "old\n");
    let bogus = json!({ "file_path": "LOCK_TEST", "content": "new\n", "workspace": "bogus" });
    assert_eq!(test_env.refusal("Write", bogus).await.1, UNKNOWN);
}

#[tokio::test]
async fn all_means_each_with_a_section_of_its_own() {
    let test_env = two();
    let answer =
        test_env.call("Grep", json!({ "pattern": "primary|extension", "workspace": "all" })).await;
    assert_eq!(
        answer.text(),
        "=== extension ===\nMARKER:1:extension\n=== primary ===\nMARKER:1:primary\n"
    );
    assert_eq!(answer.structured["workspaces"]["primary"]["files"], 1);
    let (_, text) =
        test_env.refusal("Read", json!({ "file_path": "MARKER", "workspace": "all" })).await;
    assert_eq!(text, "unknown workspace \"all\"; configured: extension, primary");
}

/// Every tool × (omitted, known, unknown, all) × (one, two roots).
#[tokio::test]
async fn every_tool_takes_workspace_in_the_same_way() {
    for names in [&["primary"][..], &["primary", "extension"]] {
        let test_env = TestEnvironment::with(Setting { names, ..Setting::default() });
        let configured = if names.len() == 1 { "primary" } else { "extension, primary" };
        let tools: Vec<_> = test_env.registry.definitions().cloned().collect();
        assert!(tools.len() >= 19, "{}", tools.len());
        for tool in tools {
            let name = tool.about.name;
            let schema = &tool.input_schema()["properties"]["workspace"]["type"];
            assert_eq!(schema, "string", "{name}");
            let text = async |arguments| test_env.call(name, arguments).await.text();
            let unknown = text(json!({ "workspace": "bogus" })).await;
            assert_eq!(
                unknown,
                format!("unknown workspace \"bogus\"; configured: {configured}"),
                "{name}"
            );
            let all = text(json!({ "workspace": "all" })).await;
            let omitted = text(json!({})).await;
            let known = text(json!({ "workspace": "primary" })).await;
            assert!(!known.contains("configured"), "{name}: {known}");
            match tool.about.workspaces {
                carrel_tools::WorkspaceChoice::OneOrAll => {
                    assert!(all.contains("=== primary ==="), "{name}: {all}");
                }
                _ => assert_eq!(
                    all,
                    format!("unknown workspace \"all\"; configured: {configured}"),
                    "{name}"
                ),
            }
            match (tool.about.workspaces, names.len()) {
                (carrel_tools::WorkspaceChoice::Optional, _) | (_, 1) => {
                    assert!(!omitted.contains("configured"), "{name}: {omitted}");
                }
                _ => assert_eq!(omitted, NOT_CHOSEN, "{name}"),
            }
            let wrong = text(json!({ "workspace": 7 })).await;
            assert_eq!(wrong, "workspace: expected a string, found 7", "{name}");
        }
    }
}

#[tokio::test]
async fn read_only_leaves_out_what_changes_anything() {
    let access = WorkspaceAccess::ReadOnly;
    let test_env = TestEnvironment::with(Setting { access, ..Setting::default() });
    let names: Vec<_> = test_env.registry.definitions().map(|tool| tool.about.name).collect();
    for gone in [
        "Write",
        "Edit",
        "MultiEdit",
        "ApplyPatch",
        "Move",
        "Delete",
        "Bash",
        "shell_run",
        "watch_process",
    ] {
        assert!(!names.contains(&gone), "{gone}");
        assert_eq!(test_env.refusal(gone, json!({})).await.0, "E_UNKNOWN_TOOL");
    }
    for kept in ["Read", "LS", "Glob", "Grep", "workspaces", "secret", "secrets_available"] {
        assert!(names.contains(&kept), "{kept}");
    }
}

#[tokio::test]
async fn an_unknown_tool_gets_a_suggestion() {
    let test_env = TestEnvironment::new();
    let (code, text) = test_env.refusal("Grap", json!({})).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_UNKNOWN_TOOL", "unknown tool `Grap`; did you mean `Grep`?")
    );
}

#[tokio::test]
async fn the_workspaces_can_be_asked_for() {
    let test_env = two();
    let text = test_env.text("workspaces", json!({})).await;
    let (extension, primary) = (test_env.path("extension"), test_env.path("primary"));
    assert_eq!(
        text,
        format!("extension\t{}\nprimary\t{}\n", extension.display(), primary.display())
    );
}

#[test]
fn the_guide_to_the_tools_is_up_to_date() {
    let text = carrel_tools::tool_reference_markdown();
    let checked_in = include_str!("../../../../docs/tools.md");
    assert!(text == checked_in, "docs/tools.md is out of date; run `make docs`");
}

#[test]
fn every_tool_teaches_and_tells_the_truth_about_itself() {
    for tool in carrel_tools::definitions(carrel_tools::ToolSelection::ALL) {
        let about = tool.about;
        assert!(about.description.len() > 30, "{}", about.name);
        assert!(about.description.ends_with('.'), "{}", about.name);
        if about.class == carrel_tools::Class::Read {
            assert_eq!(about.effect, carrel_tools::Effect::NONE, "{}", about.name);
        }
        // Each is based on a default; one that forgot its rules would need too small a scope.
        let scope = about.rules.token_scope;
        let runs_programs = about.class == carrel_tools::Class::Execute || about.effect.open_world;
        assert!(!runs_programs || scope == TokenScope::Exec, "{}", about.name);
        let writes = about.class == carrel_tools::Class::Write;
        assert!(!writes || scope != TokenScope::Read, "{}", about.name);
        assert!(!about.title.is_empty(), "{}", about.name);
        for schema in [tool.input_schema(), &tool.output_schema] {
            assert_eq!(schema["type"], "object", "{}", about.name);
            assert!(!schema.contains_key("$ref"), "{}", about.name);
        }
        for (name, property) in tool.input_schema()["properties"].as_object().unwrap() {
            let described = property["description"].as_str().is_some_and(|text| text.len() > 8);
            assert!(described, "{} {name}", about.name);
        }
    }
}
