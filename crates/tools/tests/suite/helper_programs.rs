//! Programs that help with a call, such as language servers, and the callers for whom none is started.

use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

use carrel_domain::WorkspaceAccess;
use carrel_tools::{CallOptions, HelperPrograms, Interface, ToolResponse};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment, object};

/// Language servers of the project.
const PLANTED: &[&str] = &[
    ".venv/bin/ty",
    ".venv/bin/basedpyright-langserver",
    "node_modules/.bin/typescript-language-server",
    "node_modules/.bin/vtsls",
];

/// A project with language servers of its own, which leave a sign when they are started.
struct Planted {
    test_env: TestEnvironment,
    /// Hears from a program that can write nowhere, as in a read-only tree.
    ear: std::fs::File,
}

impl Planted {
    fn new(access: WorkspaceAccess) -> Self {
        let test_env = TestEnvironment::with(Setting { access, ..Setting::default() });
        let fifo = test_env.path("main/fifo");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o666.into(), 0).unwrap();
        std::fs::set_permissions(&fifo, std::fs::Permissions::from_mode(0o666)).unwrap();
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut options = std::fs::File::options();
        let ear = options.read(true).write(true).custom_flags(nonblocking).open(&fifo).unwrap();
        let program = format!("#!/bin/sh\necho x <> {} >&0\nexit 1\n", fifo.display());
        for path in PLANTED {
            test_env.put_program(path, &program);
        }
        test_env.put("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n");
        test_env.put("shop.py", "# Adds the tax.\ndef price(n):\n    return n\n\n\nprice(2)\n");
        test_env.put("package.json", "{}\n");
        test_env.put("shop.ts", "export function cost(n: number) { return n; }\ncost(2);\n");
        Self { test_env, ear }
    }

    fn has_run(&mut self) -> bool {
        self.ear.read(&mut [0; 1]).is_ok_and(|read| read > 0)
    }

    async fn ask(&self, tool: &str, arguments: Value, helpers: HelperPrograms) -> ToolResponse {
        let options = CallOptions { helper_programs: helpers, ..CallOptions::new(Interface::Rest) };
        let Self { test_env, .. } = self;
        test_env.registry.call(&test_env.session, tool, object(arguments), options).await
    }

    /// Asks everything, and checks that nothing was started and that the answers say so.
    async fn check_none_starts(&mut self, helpers: HelperPrograms, refusal: &'static str) {
        for (tool, arguments, code) in questions(refusal) {
            let answer = self.ask(tool, arguments.clone(), helpers).await;
            let found = answer.is_error.then(|| &answer.structured["error"]["code"]);
            assert_eq!(found, code.map(Value::from).as_ref(), "{tool}: {}", answer.text());
            if code.is_some() {
                assert!(answer.text().contains("needs a language server"), "{}", answer.text());
            } else {
                assert_eq!(answer.structured["source"], "syntactic", "{tool} {arguments}");
                assert!(answer.structured["unanswered"].is_string(), "{tool}: {}", answer.text());
            }
        }
        assert!(!self.has_run(), "a program of the project has run");
    }
}

/// The questions that a language server could answer, with the code of a refusal.
fn questions(refusal: &'static str) -> Vec<(&'static str, Value, Option<&'static str>)> {
    let place = |file: &str, line: u64| json!({ "file_path": file, "line": line, "col": 1 });
    vec![
        ("find_references", json!({ "symbol": "price" }), None),
        ("find_references", json!({ "symbol": "cost" }), None),
        ("find_references", json!({ "symbol": "price", "calls": "callers" }), Some(refusal)),
        ("find_definition", place("shop.py", 6), None),
        ("find_definition", place("shop.ts", 2), None),
        ("hover", json!({ "symbol": "price" }), None),
        ("find_implementations", json!({ "symbol": "price" }), Some(refusal)),
        ("diagnostics", json!({ "path": "shop.py" }), Some(refusal)),
        ("diagnostics", json!({}), Some(refusal)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_answers_by_syntax_and_starts_nothing() {
    let mut planted = Planted::new(WorkspaceAccess::ReadOnly);
    planted.check_none_starts(HelperPrograms::Allowed, "E_READ_ONLY").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_the_right_to_run_programs_is_answered_by_syntax() {
    let mut planted = Planted::new(WorkspaceAccess::ReadWrite);
    planted.check_none_starts(HelperPrograms::Denied, "E_FORBIDDEN").await;
    let answer = planted.ask("hover", json!({ "symbol": "price" }), HelperPrograms::Denied).await;
    let text = answer.text();
    assert!(text.starts_with("shop.py:2\n# Adds the tax.\ndef price(n)\n"), "{text}");
    let rename = json!({ "symbol": "price", "new_name": "cost" });
    let answer = planted.ask("rename_symbol", rename, HelperPrograms::Denied).await;
    assert_eq!(answer.structured["error"]["code"], "E_FORBIDDEN");
    assert!(!planted.has_run(), "a program of the project has run");
}

/// Programs that nothing could start would prove nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_planted_servers_are_started_for_a_caller_who_may() {
    for (file, line) in [("shop.py", 6), ("shop.ts", 2)] {
        let mut planted = Planted::new(WorkspaceAccess::ReadWrite);
        let question = json!({ "file_path": file, "line": line, "col": 1 });
        planted.ask("find_definition", question, HelperPrograms::Allowed).await;
        assert!(planted.has_run(), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn formatters_and_linters_run_only_after_edits_of_callers_who_may() {
    for (helpers, runs) in [(HelperPrograms::Denied, false), (HelperPrograms::Allowed, true)] {
        let mut planted = Planted::new(WorkspaceAccess::ReadWrite);
        let fifo = planted.test_env.path("main/fifo");
        let program = ["sh", "-c", &format!("echo x <> {} >&0", fifo.display()), "$FILES"];
        let settings = format!("[profile]\nformat = {program:?}\nformat_on_edit = true\n");
        planted.test_env.put("carrel.toml", settings);
        planted.ask("Read", json!({ "file_path": "shop.py" }), helpers).await;
        let edit =
            json!({ "file_path": "shop.py", "old_string": "price(2)", "new_string": "price(3)" });
        let answer = planted.ask("Edit", edit, helpers).await;
        assert!(!answer.is_error, "{}", answer.text());
        assert_eq!(planted.has_run(), runs, "{helpers:?}");
    }
}
