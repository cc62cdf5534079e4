//! What a running language server tells about an edit: new problems, in time or with a later reply.

use carrel_config::{LanguageServerPolicy, OperatorPolicy};
use carrel_tools::{CallOptions, Interface};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

use crate::test_environment::{Setting, TestEnvironment, object};

/// The time for something that comes by itself, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// A machine with the servers for Python, TypeScript and C.
fn machine(language_servers: LanguageServerPolicy) -> TestEnvironment {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let installed = |name| std::fs::canonicalize(target.join(name)).unwrap();
    let (python, servers) = (installed("test-tools/python"), installed("language-servers"));
    let policy = OperatorPolicy {
        path: vec![python.join("bin"), servers.join("node_modules/.bin")],
        readable: vec![python, servers],
        language_servers,
        ..OperatorPolicy::default()
    };
    TestEnvironment::with(Setting { policy, ..Setting::default() })
}

/// Calls a tool as an agent does, over standard streams.
async fn call(test_env: &TestEnvironment, tool: &str, arguments: Value) -> String {
    let options = CallOptions::new(Interface::Stdio);
    let answer = test_env.registry.call(&test_env.session, tool, object(arguments), options).await;
    assert!(!answer.is_error, "{tool}: {}", answer.text());
    answer.text()
}

/// Edits a file; returns the reply and those after it, until one has what the edit's server says.
async fn edited(test_env: &TestEnvironment, file: &str, (old, new): (&str, &str)) -> String {
    let edit = json!({ "file_path": file, "old_string": old, "new_string": new });
    let mut text = call(test_env, "Edit", edit).await;
    let waiting = async {
        while text.contains("still checking") {
            let later = call(test_env, "LS", json!({})).await;
            if later.contains("post-edit check") {
                text = later;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the server never answered");
    text
}

/// A file that a server finds nothing wrong with, and edits of it.
struct Case {
    server: &'static str,
    files: &'static [(&'static str, &'static str)],
    file: &'static str,
    wrong: (&'static str, &'static str),
    problem: &'static str,
    harmless: (&'static str, &'static str),
}

const CASES: [Case; 3] = [
    Case {
        server: "ty",
        files: &[
            ("pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n"),
            ("a.py", "def f(x: int) -> int:\n    return x\n\n\ny = f(1)\nz = 2\n"),
        ],
        file: "a.py",
        wrong: ("y = f(1)", "y = g(1)"),
        problem: "a.py:5:5 error [unresolved-reference]",
        harmless: ("z = 2", "z = 3"),
    },
    Case {
        server: "typescript-language-server",
        files: &[
            ("tsconfig.json", "{ \"compilerOptions\": { \"strict\": true } }"),
            (
                "a.ts",
                "export function f(x: number) { return x; }\nexport const y = f(1);\nexport const z = 2;\n",
            ),
        ],
        file: "a.ts",
        wrong: ("f(1)", "f(\"1\")"),
        problem: "a.ts:2:20 error [2345]",
        harmless: ("z = 2", "z = 3"),
    },
    Case {
        server: "clangd",
        files: &[
            ("compile_flags.txt", "-std=c11\n"),
            ("a.c", "int f(int x) { return x; }\nint g(void) { return f(1); }\nint z = 2;\n"),
        ],
        file: "a.c",
        wrong: ("return f(1)", "return h"),
        problem: "a.c:2:22 error [undeclared_var_use]",
        harmless: ("z = 2", "z = 3"),
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_told_what_it_broke_and_only_once() {
    for case in CASES {
        let test_env = machine(LanguageServerPolicy::default());
        for (path, text) in case.files {
            test_env.put(path, text);
        }
        call(&test_env, "Read", json!({ "file_path": case.file })).await;
        // No server is started for an edit.
        let text = edited(&test_env, case.file, case.harmless).await;
        assert!(!text.contains("post-edit check"), "{text}");
        let text = call(&test_env, "diagnostics", json!({ "path": case.file })).await;
        assert!(text.starts_with("no problems"), "{text}");
        let (old, new) = case.harmless;
        let text = edited(&test_env, case.file, (new, old)).await;
        assert!(!text.contains(" error "), "{text}");
        let text = edited(&test_env, case.file, case.wrong).await;
        let expected = format!("post-edit check ({}): 1 new:\n{}", case.server, case.problem);
        assert!(text.contains(&expected), "{text}");
        let text = edited(&test_env, case.file, case.harmless).await;
        assert!(!text.contains(" error "), "an old problem is told again: {text}");
        test_env.registry.toolbox().end_processes().await;
    }
}

/// A server that takes longer than the time for feedback about a text with `slow`, and finds each `bad`.
const SLOW: &str = r#"#!/usr/bin/python3
import json, sys, time
texts = {}
def send(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()
while line := sys.stdin.buffer.readline():
    if not line.lower().startswith(b"content-length:"):
        continue
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(line.split(b":")[1])))
    method, params = message.get("method"), message.get("params") or {}
    uri = params.get("textDocument", {}).get("uri")
    result = None
    if method == "initialize":
        result = {"capabilities": {"diagnosticProvider": {}, "positionEncoding": "utf-8"}}
    elif method == "textDocument/didOpen":
        texts[uri] = params["textDocument"]["text"]
    elif method == "textDocument/didChange":
        texts[uri] = params["contentChanges"][0]["text"]
    elif method == "textDocument/diagnostic":
        if "slow" in texts[uri]:
            time.sleep(4)
        lines = [n for n, text in enumerate(texts[uri].split("\n")) if "bad" in text]
        ranges = [{"start": {"line": n, "character": 0}, "end": {"line": n, "character": 1}} for n in lines]
        result = {"kind": "full", "items": [{"range": one, "message": "it is bad"} for one in ranges]}
    elif method == "exit":
        break
    if "id" in message:
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_slow_server_finds_comes_with_a_later_reply_and_once() {
    let test_env = machine(LanguageServerPolicy::default());
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n");
    test_env.put("a.py", "bad = 1\nx = 1\n");
    test_env.put_program(".venv/bin/ty", SLOW);
    call(&test_env, "diagnostics", json!({ "path": "a.py" })).await;
    call(&test_env, "Read", json!({ "file_path": "a.py" })).await;
    let text = edited(&test_env, "a.py", ("x = 1", "x = 2")).await;
    assert!(!text.contains("still checking"), "{text}");
    let edit = json!({ "file_path": "a.py", "old_string": "x = 2", "new_string": "slow = bad" });
    let text = call(&test_env, "Edit", edit).await;
    assert!(text.contains("post-edit check (language server): still checking"), "{text}");
    let found = "post-edit check (ty): 1 new:\na.py:2:1 error: it is bad\n";
    let waiting = async {
        loop {
            let text = call(&test_env, "LS", json!({})).await;
            if text.contains("post-edit check") {
                return text;
            }
        }
    };
    let text = tokio::time::timeout(PATIENCE, waiting).await.expect("nothing came");
    assert!(text.contains(found), "{text}");
    let text = call(&test_env, "LS", json!({})).await;
    assert!(!text.contains("post-edit check"), "{text}");
    test_env.registry.toolbox().end_processes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_of_a_file_that_was_read_are_old_ones() {
    let test_env = machine(LanguageServerPolicy::default());
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n");
    test_env.put("b.py", "b = 1\n");
    call(&test_env, "diagnostics", json!({ "path": "b.py" })).await;
    let mut last = String::new();
    for number in 0..50 {
        let file = format!("a{number}.py");
        test_env.put(&file, "x = missing\nz = 2\n");
        call(&test_env, "Read", json!({ "file_path": file })).await;
        // The server looks at the file while these are answered.
        let place = json!({ "file_path": file, "line": 2, "col": 1 });
        for _ in 0..5 {
            call(&test_env, "hover", place.clone()).await;
        }
        last = edited(&test_env, &file, ("z = 2", "z = nothing")).await;
        // An edit that came before the look has nothing to be compared with, and says so.
        if !last.contains("of which some may be old") {
            break;
        }
    }
    assert!(last.contains("1 new:\n"), "{last}");
    assert!(last.contains("error [unresolved-reference]: Name `nothing`"), "{last}");
    assert!(!last.contains("Name `missing`"), "{last}");
    test_env.registry.toolbox().end_processes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ended_because_it_was_idle_is_named_in_the_next_answer() {
    let policy =
        LanguageServerPolicy { idle: Duration::from_secs(1), ..LanguageServerPolicy::default() };
    let test_env = machine(policy);
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n");
    test_env.put("a.py", "x = 1\n");
    let path = json!({ "path": "a.py" });
    let notice = "[ty was ended after 1s without a question, and starts again]";
    let text = call(&test_env, "diagnostics", path.clone()).await;
    assert!(!text.contains(notice), "{text}");
    let waiting = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let text = call(&test_env, "diagnostics", path.clone()).await;
            if text.contains(notice) {
                return text;
            }
        }
    };
    let text = tokio::time::timeout(PATIENCE, waiting).await.expect("it was never ended");
    assert_eq!(text.matches(notice).count(), 1);
}
