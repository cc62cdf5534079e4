//! Diagrams that real and fake renderers draw.

use std::path::Path;

use carrel_config::{Environment, OperatorPolicy};
use carrel_domain::WorkspaceAccess;
use carrel_tools::{Session, ToolResponse};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

const GRAPH: &str = "digraph { a -> b; b -> c [label=\"Über\"] }\n";

/// An mmdc that writes its input to its output.
const COPY: &str = "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\ncat >\"$1\"\n";

fn diagram(path: &str) -> Value {
    json!({ "source": GRAPH, "output_path": path })
}

fn text(answer: &ToolResponse) -> String {
    assert!(!answer.is_error, "{}", answer.text());
    answer.text()
}

/// A machine with graphviz.
fn with_dot() -> TestEnvironment {
    let is_there = Path::new("/usr/bin/dot").exists();
    assert!(is_there, "there is no /usr/bin/dot: run scripts/install-test-tools");
    TestEnvironment::new()
}

/// A project with this program as its mmdc.
fn with_mmdc(script: &str) -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put_program("node_modules/.bin/mmdc", script);
    test_env
}

/// Returns the names in the directory of the workspace.
fn files(test_env: &TestEnvironment) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(test_env.path("main"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn graphviz_draws_each_format_and_leaves_nothing_else() {
    let test_env = with_dot();
    for (path, start) in [("a.svg", "<?xml"), ("pictures/b.PNG", "\u{fffd}PNG"), ("c.pdf", "%PDF")]
    {
        let answer = test_env.call("render_dot", diagram(path)).await;
        let bytes = std::fs::read(test_env.path("main").join(path)).unwrap();
        let format = path.rsplit('.').next().unwrap().to_lowercase();
        assert_eq!(text(&answer), format!("wrote {} bytes to {path} ({format})\n", bytes.len()));
        assert!(String::from_utf8_lossy(&bytes).starts_with(start), "{path}");
        let facts = &answer.structured;
        assert_eq!(
            (&facts["path"], &facts["created"], &facts["bytes"], &facts["format"]),
            (&json!(path), &json!(true), &json!(bytes.len()), &json!(format))
        );
    }
    let drawn = test_env.get("a.svg");
    assert!(drawn.contains("<title>a</title>") && drawn.contains("Über"), "{drawn}");
    assert_eq!(files(&test_env), ["a.svg", "c.pdf", "pictures"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_counts_as_read_until_another_changes_it() {
    let test_env = with_dot();
    text(&test_env.call("render_dot", diagram("a.svg")).await);
    let again = test_env.call("render_dot", diagram("a.svg")).await;
    assert_eq!(again.structured["created"], false);
    let (code, message) = {
        let other = Session::new("other");
        refusal(&test_env.call_as(&other, "render_dot", diagram("a.svg")).await)
    };
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("E_NOT_READ", "refusing to overwrite a.svg: Read it first")
    );
    test_env.put("a.svg", "mine");
    assert_eq!(test_env.refusal("render_dot", diagram("a.svg")).await.0, "E_CHANGED_SINCE_READ");
    assert_eq!(test_env.get("a.svg"), "mine");
    test_env.text("Read", json!({ "file_path": "a.svg" })).await;
    let replaced = test_env.call("render_dot", diagram("a.svg")).await;
    let hash = replaced.structured["hash"].clone();
    let by_hash = json!({ "source": GRAPH, "output_path": "a.svg", "expected_hash": hash });
    let other = Session::new("third");
    text(&test_env.call_as(&other, "render_dot", by_hash).await);
}

fn refusal(answer: &ToolResponse) -> (String, String) {
    assert!(answer.is_error, "{}", answer.text());
    (answer.structured["error"]["code"].as_str().unwrap().to_owned(), answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_leaves_the_picture_that_is_there() {
    let test_env = with_dot();
    text(&test_env.call("render_dot", diagram("a.svg")).await);
    let drawn = test_env.get("a.svg");
    let broken = json!({ "source": "digraph { a -> ", "output_path": "a.svg" });
    let (code, message) = test_env.refusal("render_dot", broken).await;
    assert_eq!(code, "E_INVALID_ARGUMENTS");
    let said = "render_dot: dot: exit status 1: Error: <stdin>: syntax error in line 1";
    assert!(message.starts_with(said), "{message}");
    let mermaid = json!({ "source": "graph TD", "output_path": "a.svg" });
    test_env.put_program(
        "node_modules/.bin/mmdc",
        "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\necho half >\"$1\"\necho no >&2\nexit 3\n",
    );
    let (_, message) = test_env.refusal("render_mermaid", mermaid).await;
    assert_eq!(message, "render_mermaid: mmdc: exit status 3: no");
    assert_eq!(test_env.get("a.svg"), drawn);
}

#[tokio::test(flavor = "multi_thread")]
async fn mermaid_is_drawn_by_the_program_of_the_project_from_standard_input() {
    let test_env = with_mmdc(COPY);
    let answer = test_env.call("render_mermaid", diagram("docs/a.svg")).await;
    assert_eq!(text(&answer), format!("wrote {} bytes to docs/a.svg (svg)\n", GRAPH.len()));
    assert_eq!(test_env.get("docs/a.svg"), GRAPH);
    assert_eq!(files(&test_env), ["docs", "node_modules"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renderer_neither_writes_to_the_tree_nor_reaches_the_network() {
    let script = "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n\
        (echo x >written) 2>/dev/null && echo tree >>\"$1\"\n\
        grep -v -e '|' -e ' lo:' /proc/net/dev >>\"$1\"\necho done >>\"$1\"\n";
    let test_env = with_mmdc(script);
    text(&test_env.call("render_mermaid", diagram("a.svg")).await);
    assert_eq!(test_env.get("a.svg"), "done\n");
    assert!(!test_env.has("written"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_all_processes_and_writes_nothing() {
    let script = "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\necho half >\"$1\"\n\
        setsid sleep 987654321 &\nsleep 987654321\n";
    let test_env = with_mmdc(script);
    let slow = json!({ "source": GRAPH, "output_path": "a.svg", "timeout": 1 });
    let (code, message) = test_env.refusal("render_mermaid", slow).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("E_TIMEOUT", "render_mermaid: timed out after 1s")
    );
    assert!(!test_env.has("a.svg"));
    let left =
        std::process::Command::new("pgrep").args(["-f", "sleep 987654321"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_is_too_large_or_empty_is_not_written() {
    for (size, said) in [
        (11 << 20, "render_mermaid: the picture exceeds 10 MiB; nothing was written"),
        (0, "render_mermaid: mmdc left no picture: nothing drawn"),
    ] {
        let script = format!(
            "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\necho nothing drawn >&2\nhead -c {size} /dev/zero >\"$1\"\n"
        );
        let test_env = with_mmdc(&script);
        let (_, message) = test_env.refusal("render_mermaid", diagram("a.png")).await;
        assert_eq!(message, said);
        assert!(!test_env.has("a.png"));
    }
    let largest = with_mmdc(
        "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\nhead -c 10485760 /dev/zero >\"$1\"\n",
    );
    let answer = largest.call("render_mermaid", diagram("a.png")).await;
    assert_eq!(text(&answer), "wrote 10485760 bytes to a.png (png)\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_refused_with_the_texts_of_the_reference() {
    let test_env = TestEnvironment::new();
    test_env.put("pictures.svg/x", "");
    let large = "a".repeat((1 << 20) + 1);
    for (source, path, code, message) in [
        ("", "a.svg", "E_INVALID_ARGUMENTS", "source is required"),
        (&large, "a.svg", "E_TOO_LARGE", "source 1048577 bytes exceeds cap 1048576"),
        ("x", "", "E_INVALID_ARGUMENTS", "output_path is required"),
        (
            "x",
            "a.jpg",
            "E_INVALID_ARGUMENTS",
            "unsupported output extension \".jpg\"; supported: .svg, .png, .pdf",
        ),
        ("x", "pictures.svg", "E_IS_A_DIRECTORY", "path is a directory: pictures.svg"),
    ] {
        for tool in ["render_mermaid", "render_dot"] {
            let given = json!({ "source": source, "output_path": path });
            let refused = test_env.refusal(tool, given).await;
            assert_eq!(refused, (code.to_owned(), message.to_owned()));
        }
    }
    let outside = test_env.refusal("render_dot", diagram("../a.svg")).await.0;
    assert_eq!(outside, "E_SANDBOX_VIOLATION");
    let linked = test_env.path("main/linked");
    std::os::unix::fs::symlink("/tmp", linked).unwrap();
    let linked = test_env.refusal("render_dot", diagram("linked/a.svg")).await.0;
    assert_eq!(linked, "E_SANDBOX_VIOLATION");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renderer_that_is_missing_is_named_with_how_to_get_it() {
    let policy = OperatorPolicy {
        environment: Environment::from_pairs([("PATH", "/nonexistent")]),
        ..OperatorPolicy::default()
    };
    let test_env = TestEnvironment::with(Setting { policy, ..Setting::default() });
    for (tool, program) in
        [("render_mermaid", "mermaid-cli (mmdc)"), ("render_dot", "graphviz (dot)")]
    {
        let (_, message) = test_env.refusal(tool, diagram("a.svg")).await;
        let said = format!("{tool}: {program} not found on PATH — install ");
        assert!(message.starts_with(&said), "{message}");
    }
    assert!(!test_env.has("a.svg"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_renders_nothing() {
    let access = WorkspaceAccess::ReadOnly;
    let test_env = TestEnvironment::with(Setting { access, ..Setting::default() });
    assert_eq!(test_env.refusal("render_dot", diagram("a.svg")).await.0, "E_UNKNOWN_TOOL");
    assert!(!test_env.has("a.svg"));
}
