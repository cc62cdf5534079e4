//! What the systems that Carrel is measured against promise, lack and get wrong, through the program.
//!
//! The cases are those of section 8 of `codegen-sandbox.md` and of `acolyte.md` that no test of
//! another crate has already, and one test for each of their defects, named after the better
//! behaviour. Names without a module are below; others are files of this suite or of the crate named.
//!
//! | codegen-sandbox | the better behaviour |
//! |---|---|
//! | 1 | `a_test_that_failed_is_really_run_again`; tools `verify::rust_tests_pass_fail_are_rerun_and_mended` |
//! | 2, 3 | `neither_the_index_nor_a_language_server_is_older_than_the_last_write`; tools `code::an_answer_knows_every_write_however_it_was_made`; lsp `changes`, `oracle` |
//! | 4 | `a_language_server_that_was_killed_is_replaced_by_the_next_question`; lsp `lifecycle` |
//! | 5 | `what_looks_like_a_secret_is_shown_and_edited_as_it_is`; tools `files::reading_never_rewrites_code_and_masks_known_secrets_only` |
//! | 6 | `no_command_has_a_secret_of_the_server`; tools `shell::secrets_of_the_server_are_in_no_command` |
//! | 7 | tools `render::a_failure_leaves_the_picture_that_is_there` |
//! | 8 | `a_script_stays_executable_whatever_changes_it` |
//! | 9 | `lines_that_end_in_crlf_are_found_as_they_are_shown` |
//! | 10 | `a_server_that_is_left_running_costs_no_output`; tools `shell::a_child_that_is_left_running_is_reported_and_its_output_kept` |
//! | 11 | `the_last_words_of_a_background_command_are_never_lost` |
//! | 12 | `an_error_of_the_compiler_is_a_finding_of_the_linter`; tools `verify::clippy_findings_have_place_rule_and_severity` |
//! | 13 | `a_file_of_a_new_edition_is_no_format_error`; tools `verify::an_edit_is_followed_by_what_the_formatter_says_about_that_file_and_no_other` |
//! | 14 | `a_lint_script_that_prints_prose_is_not_zero_findings`; tools `verify::a_tool_that_is_missing_is_named_and_never_zero_findings` |
//! | 15 | `tests_that_cannot_even_begin_are_no_pass`; tools `verify::a_build_that_fails_is_never_no_failures` |
//! | 16 | `a_line_that_no_test_ran_is_covered_by_none`; tools `verify::coverage` |
//! | 17 | tools `snapshots::a_restore_brings_everything_back_and_lists_exactly_what_it_changed` |
//! | 18 | tools `snapshots::the_repository_of_the_user_is_untouched`, `snapshots::a_linked_work_tree_is_a_directory_like_any_other`; for a hostile configuration tools `git::planted`, `read_only` |
//! | 19 | `a_function_without_a_body_is_refused_and_nothing_is_written`; code `structural_edits` |
//! | 20 | `a_file_that_cannot_be_read_costs_a_search_only_itself`; tools `search::text_is_found_with_its_path_and_line_always_in_one_order` |
//! | 21 | `a_directory_that_is_called_like_an_option_is_a_directory` |
//! | 22 | `only_a_command_is_refused_never_a_word`; tools `shell::privilege_commands_are_refused_in_command_position_only` |
//! | 23 | `servers::a_page_of_somebody_else_is_refused_by_its_origin_and_its_host` |
//! | 24 | `servers::sigterm_with_open_streams_and_running_commands_ends_with_zero_and_leaves_nothing` |
//! | 25 | `a_flood_of_output_does_not_grow_the_server` |
//! | 26 | tools `shell::a_line_of_three_megabytes_does_not_stop_the_watch` |
//! | 27 | `what_failed_in_one_workspace_did_not_fail_in_another`; tools `verify::coverage::workspaces_never_answer_for_each_other` |
//! | 28 | `a_command_that_is_over_is_ended_without_harm` |
//!
//! | acolyte | the better behaviour |
//! |---|---|
//! | D1 | `escape`; `what_arguments_do_not_show_is_kept_in_by_the_kernel` |
//! | D2 | `servers::an_address_that_others_reach_needs_a_token` |
//! | D3 | `what_a_project_runs_is_behind_the_same_walls` |
//! | D4 | `a_revision_that_is_an_option_is_none`; tools `git::tests` |
//! | D5 | tools `shell::a_deadline_ends_everything_and_keeps_the_output`; `servers::a_cancelled_call_kills_its_command_and_the_next_call_works` |
//! | D6 | `a_directory_that_becomes_a_link_never_leads_out`; fsroot `race` |
//! | D7, D8 | `a_refusal_says_the_same_through_every_door` |
//! | D9 | `nothing_is_answered_from_memory` |
//! | D10, D11, D12 | verify `profiles`, `plans`, `nearest` |
//! | D13 | `nothing_is_answered_from_memory`; tools `verify::the_profile_is_told_once_and_again_when_it_changes` |
//! | D14 | tools `files::what_is_deleted_is_in_the_trash_and_can_be_brought_back`, `undo::each_call_that_changes_files_is_taken_back_in_turn`, `undo::an_undo_is_taken_back_by_its_own_checkpoint` |
//! | D15 | `the_command_line_takes_what_the_schema_says_and_prints_what_is_to_be_read` |
//! | D16 | tools `search`; search `paging`; `a_search_with_too_many_matches_says_so` |
//! | D17 | `an_edit_is_judged_by_the_project_of_its_file` |
//! | D18 | `a_slow_formatter_does_not_hold_up_an_edit` |
//! | D19, D20 | `hostile_paths` |
//! | D21 | tools `files::what_cannot_be_read_is_refused_with_its_code` |
//! | D22 | no tool fetches addresses |
//! | D23 | `events` |
//! | D24 | `servers::without_a_name_the_current_directory_is_the_workspace` |
//! | D25 | `servers::a_cancelled_call_kills_its_command_and_the_next_call_works` |
//! | D26 | `a_wrong_setting_of_a_project_is_named` |
//! | D27 | `resources` |
//! | D28 | `code_of_every_language_is_rewritten_and_parsed_again`; code `rewrites`, `structural_edits` |
//! | D29 | `no_test_at_all_is_no_pass` |
//! | D30 | `policy`; shell `reference` |

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::Run;
use crate::interfaces::{Answer, Interface, Stdin, ToolSession, through_each};
use crate::test_environment::{Caller, Mark, Process, TestEnvironment, peak_memory, processes};

/// A workspace with a session to it.
struct Bench {
    test_env: TestEnvironment,
    session: Box<dyn ToolSession>,
}

impl Bench {
    fn new() -> Self {
        Self::of(TestEnvironment::usual())
    }

    fn of(test_env: TestEnvironment) -> Self {
        let session = open(Interface::Stdio, &test_env);
        Self { test_env, session }
    }

    /// One whose commands find the toolchains of whoever runs the tests.
    fn with_toolchains() -> Self {
        let test_env = TestEnvironment::usual();
        let workspace = test_env.workspace();
        let home = std::env::home_dir().expect("whoever runs the tests has a home");
        let session = Interface::Stdio.open_with(
            &test_env,
            &["--workspace", text(&workspace)],
            move |command| {
                command.env("HOME", &home);
            },
        );
        Self { test_env, session }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.test_env.workspace().join(name)
    }

    fn put(&self, name: &str, contents: impl AsRef<[u8]>) {
        self.test_env.write(name, "");
        std::fs::write(self.path(name), contents).unwrap();
    }

    fn get(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        self.session.call(tool, arguments)
    }

    fn read(&mut self, path: &str) -> String {
        self.call("Read", json!({ "file_path": path })).ok()
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) -> Answer {
        let arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
        self.call("Edit", arguments)
    }

    fn bash(&mut self, command: &str) -> String {
        self.call("Bash", json!({ "command": command })).ok()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn open(interface: Interface, test_env: &TestEnvironment) -> Box<dyn ToolSession> {
    interface.open(test_env, &["--workspace", text(&test_env.workspace())])
}

fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|status| status.success());
    if !is_there {
        carrel_skip::unavailable(program);
    }
    is_there
}

fn counts(answer: &Answer) -> (u64, u64) {
    let counts = &answer.structured["sections"][0]["counts"];
    (counts["passed"].as_u64().unwrap(), counts["failed"].as_u64().unwrap())
}

// Files.

const NODE: &str = r#"{"name": "probe", "type": "module", "scripts": {"test": "node --test"}}"#;
const SUM: &str = "export const add = (a, b) => a + b;\n";
const SUM_TEST: &str = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from './sum.js';\ntest('adds', () => { assert.strictEqual(add(1, 2), 3); });\ntest('stands', () => {});\n";

/// The chain of the reference, with what is here: seed, commit, read, break, see it fail, mend, see
/// it pass, look at the history.
#[test]
fn work_from_the_first_file_to_a_mended_test() {
    if !has("node") {
        return;
    }
    for interface in [Interface::Stdio, Interface::Http] {
        let test_env = TestEnvironment::usual();
        let mut session = open(interface, &test_env);
        for (path, contents) in [("package.json", NODE), ("sum.js", SUM), ("sum.test.js", SUM_TEST)]
        {
            session.call("Write", json!({ "file_path": path, "content": contents })).ok();
        }
        session.call("Bash", json!({ "command": "git init -q -b main ." })).ok();
        session.call("git", json!({ "operation": "add", "args": ["."] })).ok();
        let commit = json!({ "operation": "commit", "args": ["-m", "a sum"],
            "author_name": "A", "author_email": "a@example.com" });
        session.call("git", commit).ok();
        let found =
            session.call("Grep", json!({ "pattern": "add", "output_mode": "files_with_matches" }));
        assert_eq!(found.ok(), "sum.js\nsum.test.js\n");
        let edit = |old: &str, new: &str| json!({ "file_path": "sum.js", "old_string": old, "new_string": new });
        session.call("Edit", edit("a + b", "a - b")).ok();
        let broken = session.call("run_tests", json!({}));
        assert_eq!(broken.structured["verdict"], "failed", "{broken:?}");
        assert_eq!(counts(&broken), (1, 1));
        let last = session.call("last_test_failures", json!({})).ok();
        assert!(last.contains("adds"), "{last}");
        let diff = session.call("git_inspect", json!({ "operation": "diff" })).ok();
        assert!(diff.contains("a - b") && diff.contains("a + b"), "{diff}");
        session.call("Edit", edit("a - b", "a + b")).ok();
        let mended = session.call("run_failing_tests", json!({}));
        assert_eq!(mended.structured["verdict"], "passed", "{mended:?}");
        assert_eq!(counts(&mended), (1, 0), "only the one that failed was run");
        let whole = session.call("run_tests", json!({})).ok();
        assert!(whole.ends_with("exit: 0\n"), "{whole}");
        let clean = session.call("git_inspect", json!({ "operation": "status" }));
        assert_eq!(clean.structured["status"]["clean"], true, "{clean:?}");
    }
}

/// A session with the tools for code.
fn open_with_code(interface: Interface, test_env: &TestEnvironment) -> Box<dyn ToolSession> {
    let groups = "files,shell,verify,git,code,snapshot";
    interface.open(test_env, &["--workspace", text(&test_env.workspace()), "--tools", groups])
}

fn has_gopls() -> bool {
    let is_there = Path::new("/usr/bin/gopls").exists();
    if !is_there {
        carrel_skip::unavailable("gopls");
    }
    is_there
}

/// Asks until a language server answers.
fn semantic(session: &mut dyn ToolSession, tool: &str, arguments: &Value) -> String {
    for _ in 0..40 {
        let answer = session.call(tool, arguments.clone());
        if !answer.is_error && answer.structured["source"] == "semantic" {
            return answer.ok();
        }
    }
    panic!("{tool} {arguments}: {:?}", session.call(tool, arguments.clone()));
}

const GO_MODULE: &str = "module probe\n\ngo 1.19\n";
const GO_ADD: &str = "package probe\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\n\
     type Counter struct{}\n\nfunc (c Counter) Next() int {\n\treturn 1\n}\n";
const GO_TEST: &str = "package probe\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\t\
     if Add(1, 2) != 3 {\n\t\tt.Fatal(\"not 3\")\n\t}\n}\n";

/// The chain of the reference for code.
#[test]
fn code_is_found_renamed_broken_and_mended_over_the_wire() {
    if !has_gopls() {
        return;
    }
    for interface in [Interface::Stdio, Interface::Http] {
        let test_env = TestEnvironment::usual();
        let mut session = open_with_code(interface, &test_env);
        let session = &mut *session;
        let files = [("go.mod", GO_MODULE), ("probe.go", GO_ADD), ("probe_test.go", GO_TEST)];
        for (path, contents) in files {
            let command = format!("cat > {path} <<'END'\n{contents}END\n");
            session.call("Bash", json!({ "command": command })).ok();
        }
        session.call("Bash", json!({ "command": "git init -q -b main ." })).ok();
        session.call("git", json!({ "operation": "add", "args": ["."] })).ok();
        let commit = json!({ "operation": "commit", "args": ["-m", "first"],
            "author_name": "A", "author_email": "a@example.com" });
        session.call("git", commit).ok();
        session.call("snapshot_create", json!({ "name": "baseline" })).ok();
        let snapshots = session.call("snapshot_list", json!({})).ok();
        assert!(snapshots.starts_with("baseline\t"), "{snapshots}");

        let found = session.call("search_code", json!({ "query": "Add" })).ok();
        assert!(found.contains("1. probe.go:4-6 func Add(a, b int) int"), "{found}");
        session.call("Read", json!({ "file_path": "probe.go" })).ok();
        let place = json!({ "file_path": "probe_test.go", "line": 6, "col": 5 });
        let definition = semantic(session, "find_definition", &place);
        assert!(definition.contains("probe.go:4:6  func Add(a, b int) int {"), "{definition}");
        let references = semantic(session, "find_references", &json!({ "symbol": "Add" }));
        assert!(
            references.contains("probe_test.go\n  6 TestAdd: if Add(1, 2) != 3 {"),
            "{references}"
        );
        let rename = json!({ "symbol": "Add", "new_name": "Sum", "dry_run": true });
        let diff = session.call("rename_symbol", rename).ok();
        for line in ["would touch 2 file(s)", "+func Sum(a, b int) int {", "+\tif Sum(1, 2) != 3 {"]
        {
            assert!(diff.contains(line), "{line}: {diff}");
        }
        assert_eq!(std::fs::read_to_string(test_env.workspace().join("probe.go")).unwrap(), GO_ADD);

        let subtract = json!({ "function_name": "Add", "new_body": "return a - b" });
        session.call("edit_function_body", subtract).ok();
        let broken = session.call("run_tests", json!({}));
        assert_eq!(broken.structured["verdict"], "failed", "{broken:?}");
        let last = session.call("last_test_failures", json!({})).ok();
        assert!(last.contains("TestAdd"), "{last}");
        let diff = session.call("snapshot_diff", json!({ "name": "baseline" })).ok();
        assert!(diff.contains("-\treturn a + b") && diff.contains("+\treturn a - b"), "{diff}");
        let restored = session.call("snapshot_restore", json!({ "name": "baseline" })).ok();
        assert!(
            restored.starts_with(
                "restored snapshot baseline (1 file(s) changed):\nmodified probe.go\n"
            ),
            "{restored}"
        );
        let mended = session.call("run_tests", json!({})).ok();
        assert!(mended.ends_with("exit: 0\n"), "{mended}");

        session.call("Read", json!({ "file_path": "probe.go" })).ok();
        let method = json!({ "receiver_type": "Counter", "method_name": "Next",
            "new_method": "func (c Counter) Last() int {\n\treturn 2\n}" });
        session.call("insert_after_method", method).ok();
        let head = json!({ "function_name": "Add", "new_signature": "func Add(a, b, c int) int" });
        let changed = session.call("change_function_signature", head).ok();
        assert!(changed.contains("1 call(s) no longer fit: probe_test.go:6"), "{changed}");
        let source = std::fs::read_to_string(test_env.workspace().join("probe.go")).unwrap();
        let expected = GO_ADD.replace("a, b int", "a, b, c int")
            + "\nfunc (c Counter) Last() int {\n\treturn 2\n}\n";
        assert_eq!(source, expected, "{interface:?}");
    }
}

#[test]
fn neither_the_index_nor_a_language_server_is_older_than_the_last_write() {
    if !has_gopls() {
        return;
    }
    let test_env = TestEnvironment::usual();
    test_env.write("go.mod", GO_MODULE);
    test_env.write("probe.go", GO_ADD);
    test_env.write("probe_test.go", GO_TEST);
    let mut session = open_with_code(Interface::Stdio, &test_env);
    let session = &mut *session;
    let place = json!({ "file_path": "probe_test.go", "line": 6, "col": 5 });
    let search = json!({ "query": "Add" });
    let expect = |session: &mut dyn ToolSession, at: &str, what: &str| {
        let definition = semantic(session, "find_definition", &place);
        assert!(definition.contains(&format!("1. {at}:")), "{what}: {definition}");
        let found = session.call("search_code", search.clone()).ok();
        assert!(found.contains(&format!("1. {at}-")), "{what}: {found}");
    };
    expect(session, "probe.go:4", "at first");
    session.call("Read", json!({ "file_path": "probe.go" })).ok();
    let edit = json!({ "file_path": "probe.go", "old_string": "// Add adds.\n",
        "new_string": "const One = 1\n\n// Add adds.\n" });
    session.call("Edit", edit).ok();
    expect(session, "probe.go:6", "after an edit by a tool");
    session.call("Bash", json!({ "command": "sed -i '3i // A line.' probe.go" })).ok();
    expect(session, "probe.go:7", "after an edit by a command");
    session.call("Bash", json!({ "command": "mv probe.go add.go" })).ok();
    expect(session, "add.go:7", "after a new path");
    std::fs::write(test_env.workspace().join("add.go"), GO_ADD).unwrap();
    expect(session, "add.go:4", "after a write by another program");
}

/// The language server of the tests of the tools.
const LANGUAGE_SERVER: &str = include_str!("../../../tools/tests/suite/language_server.py");

#[test]
fn a_language_server_that_was_killed_is_replaced_by_the_next_question() {
    let test_env = TestEnvironment::usual();
    test_env.write("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n");
    test_env.write("a.py", "def echo():\n    pass\n\n\necho()\n");
    let answers = json!({ "means": [["a.py", 4, 0, "a.py", 0, 4, 8]] });
    test_env.write("answers.json", &answers.to_string());
    test_env.write(".venv/bin/ty", LANGUAGE_SERVER);
    let program = test_env.workspace().join(".venv/bin/ty");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut session = open_with_code(Interface::Stdio, &test_env);
    let place = json!({ "file_path": "a.py", "line": 5, "col": 1 });
    let servers = || {
        let is_it = |process: &Process| {
            let line = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("python3 ") && line.contains(text(&program)) && process.is_running()
        };
        processes().into_iter().filter(is_it).collect::<Vec<_>>()
    };
    semantic(&mut *session, "find_definition", &place);
    let before = servers();
    assert!(!before.is_empty());
    for process in &before {
        let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    semantic(&mut *session, "find_definition", &place);
    let after = servers();
    assert!(!after.is_empty() && after.iter().all(|process| !before.contains(process)));
}

#[test]
fn a_function_without_a_body_is_refused_and_nothing_is_written() {
    for (path, source, name) in [
        ("a.go", "package p\n\nfunc asm(x int) int\n", "asm"),
        ("a.c", "int asm_(int x);\n", "asm_"),
        ("a.rs", "trait T {\n    fn run(&self);\n}\n", "run"),
        ("a.ts", "declare function run(): void;\n", "run"),
    ] {
        let test_env = TestEnvironment::usual();
        test_env.write(path, source);
        let mut session = open_with_code(Interface::Stdio, &test_env);
        session.call("Read", json!({ "file_path": path })).ok();
        let body = json!({ "file_path": path, "function_name": name, "new_body": "return 1" });
        let refused = session.call("edit_function_body", body);
        assert_eq!(refused.code(), Some("E_INVALID_ARGUMENTS"), "{path}: {refused:?}");
        assert!(refused.text.contains("a declaration without a body"), "{path}: {refused:?}");
        let now = std::fs::read_to_string(test_env.workspace().join(path)).unwrap();
        assert_eq!(now, source, "{path}");
        session.call("outline", json!({ "path": path })).ok();
    }
}

#[test]
fn code_of_every_language_is_rewritten_and_parsed_again() {
    let test_env = TestEnvironment::usual();
    let mut session = open_with_code(Interface::Stdio, &test_env);
    for (path, source) in [
        ("a.rs", "fn f() {\n    old(1);\n}\n"),
        ("a.py", "def f():\n    old(1)\n"),
        ("a.go", "package p\n\nfunc f() {\n\told(1)\n}\n"),
        ("A.java", "class A { void f() { old(1); } }\n"),
        ("a.c", "void f(void) { old(1); }\n"),
        ("a.cpp", "void f() { old(1); }\n"),
        ("a.ts", "function f() { old(1); }\n"),
    ] {
        test_env.write(path, source);
        session.call("Read", json!({ "file_path": path })).ok();
        let edit = |replacement: String| {
            let edit = json!({ "op": "replace", "rule": "old($A)", "replacement": replacement });
            json!({ "path": path, "edits": [edit] })
        };
        let broken = session.call("code_edit", edit("old(($A)".to_owned()));
        assert_eq!(broken.code(), Some("E_REPLACEMENT_INVALID"), "{path}: {broken:?}");
        let file = test_env.workspace().join(path);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), source, "{path}");
        session.call("code_edit", edit("next($A)".to_owned())).ok();
        let expected = source.replace("old(1)", "next(1)");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected, "{path}");
    }
}

#[test]
fn a_test_that_failed_is_really_run_again() {
    let mut bench = Bench::new();
    bench.put("setup.py", "from setuptools import setup\nsetup(name='x')\n");
    bench.put("tests/__init__.py", "");
    bench.put(
        "tests/test_a.py",
        "import unittest\nclass A(unittest.TestCase):\n    def test_good(self):\n        pass\n    \
         def test_bad(self):\n        open('ran', 'a').write('x')\n        self.assertEqual(1, 2)\n",
    );
    let failed = bench.call("run_tests", json!({}));
    assert_eq!(failed.structured["verdict"], "failed", "{failed:?}");
    let before = bench.get("ran");
    let again = bench.call("run_failing_tests", json!({}));
    assert_eq!(again.structured["verdict"], "failed", "{again:?}");
    assert_eq!(bench.get("ran").len(), before.len() + 1, "it really ran: {again:?}");
    assert_eq!(counts(&again), (0, 1), "and no other");
    bench.read("tests/test_a.py");
    bench.edit("tests/test_a.py", "assertEqual(1, 2)", "assertEqual(1, 1)").ok();
    let mended = bench.call("run_failing_tests", json!({}));
    assert_eq!((&mended.structured["verdict"], counts(&mended)), (&json!("passed"), (1, 0)));
}

#[test]
fn what_looks_like_a_secret_is_shown_and_edited_as_it_is() {
    let mut bench = Bench::new();
    let code = "token = lexer.next()\npassword = None\napi_key: str\nAKIAIOSFODNN7EXAMPLE\n\
                ghp_abcdefghijklmnopqrstuvwxyz0123456789\nhttp://user:pass@localhost/\n";
    bench.put("a.py", code);
    let shown: Vec<_> =
        code.lines().enumerate().map(|(n, line)| format!("{}\t{line}\n", n + 1)).collect();
    assert_eq!(bench.read("a.py"), shown.concat());
    for line in code.lines() {
        bench.edit("a.py", line, &format!("{line} ")).ok();
    }
    assert_eq!(bench.get("a.py"), code.replace('\n', " \n"));
    assert_eq!(bench.bash("head -1 a.py"), "token = lexer.next() \n");
}

#[test]
fn no_command_has_a_secret_of_the_server() {
    through_each(|interface, test_env| {
        let secrets = test_env.path("secrets");
        std::fs::create_dir(&secrets).unwrap();
        std::fs::write(secrets.join("from_file"), "value-in-the-file\n").unwrap();
        let workspace = test_env.workspace();
        let workspace = ["--workspace", text(&workspace), "--tools", "default,secrets"];
        let options = [&workspace[..], &["--secrets-dir", text(&secrets)]].concat();
        let mut session = interface.open_with(test_env, &options, |command| {
            command.env("CARREL_SECRET_FROM_ENV", "value-in-the-environment");
            command.env("SOME_API_KEY", "a-key-of-the-operator");
        });
        assert_eq!(
            session.call("secrets_available", json!({})).ok(),
            "from_env\nfrom_file",
            "{interface:?}"
        );
        let named = |name: &str| json!({ "name": name });
        assert_eq!(session.call("secret", named("from_file")).ok(), "value-in-the-file");
        assert_eq!(session.call("secret", named("from_env")).ok(), "value-in-the-environment");
        let command = "env; cat /proc/*/environ | tr '\\0' '\\n'; \
                       ls /proc/*/fd/ -l 2>/dev/null | grep secrets; true";
        let seen = session.call("Bash", json!({ "command": command })).ok();
        for hidden in ["value-in", "CARREL_SECRET", "a-key-of", "from_file"] {
            assert!(!seen.contains(hidden), "{interface:?} {hidden}: {seen}");
        }
        let path = secrets.join("from_file");
        let command = json!({ "command": format!("cat {}", path.display()) });
        assert!(!session.call("Bash", command).text.contains("value-in"), "{interface:?}");
        let printed = session.call("Bash", json!({ "command": "echo value-in-the-file" })).ok();
        assert_eq!(printed, "[masked secret from_file]\n");
    });
}

#[test]
fn a_script_stays_executable_whatever_changes_it() {
    let mut bench = Bench::new();
    bench.put("run.sh", "#!/bin/sh\necho one\n");
    std::fs::set_permissions(bench.path("run.sh"), PermissionsExt::from_mode(0o751)).unwrap();
    bench.read("run.sh");
    let patch =
        "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo three\n+echo four\n";
    let edits = [json!({ "old_string": "two", "new_string": "three" })];
    let changes = [
        ("Edit", json!({ "file_path": "run.sh", "old_string": "one", "new_string": "two" }), "two"),
        ("MultiEdit", json!({ "file_path": "run.sh", "edits": edits }), "three"),
        ("ApplyPatch", json!({ "patch": patch }), "four"),
        ("Write", json!({ "file_path": "run.sh", "content": "#!/bin/sh\necho five\n" }), "five"),
        ("Move", json!({ "source": "run.sh", "destination": "run.sh.bak" }), ""),
        ("Move", json!({ "source": "run.sh.bak", "destination": "run.sh" }), "five"),
    ];
    for (tool, arguments, says) in changes {
        bench.call(tool, arguments).ok();
        if !says.is_empty() {
            let mode = std::fs::metadata(bench.path("run.sh")).unwrap().mode() & 0o7777;
            assert_eq!(mode, 0o751, "{tool}");
            assert_eq!(bench.bash("./run.sh"), format!("{says}\n"), "{tool}");
        }
    }
}

#[test]
fn lines_that_end_in_crlf_are_found_as_they_are_shown() {
    let mut bench = Bench::new();
    bench.put("a.txt", "one\r\ntwo\r\nthree\r\n");
    bench.put("last", "one\r\ntwo");
    let shown = bench.read("a.txt");
    assert!(shown.starts_with("1\tone\n2\ttwo\n3\tthree\n"), "{shown}");
    bench.edit("a.txt", "one\ntwo\n", "1\n2\n2b\n").ok();
    assert_eq!(bench.get("a.txt"), "1\r\n2\r\n2b\r\nthree\r\n");
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -3,2 +3,2 @@\n 2b\n-three\n+3\n";
    bench.call("ApplyPatch", json!({ "patch": patch })).ok();
    assert_eq!(bench.get("a.txt"), "1\r\n2\r\n2b\r\n3\r\n");
    bench.read("last");
    bench.edit("last", "two", "2").ok();
    assert_eq!(bench.get("last"), "one\r\n2", "no line end is added");
}

#[test]
fn bytes_that_are_no_text_stay_what_they_are_around_an_edit() {
    let mut bench = Bench::new();
    bench.put("latin", b"caf\xe9 one\nna\xefve two\n");
    assert_eq!(bench.read("latin"), "1\tcafé one\n2\tnaïve two\n");
    bench.edit("latin", "naïve two", "naïve zwei").ok();
    let bytes = std::fs::read(bench.path("latin")).unwrap();
    assert_eq!(bytes, b"caf\xe9 one\nna\xefve zwei\n");
    bench.put("utf16", b"\xff\xfeo\0n\0e\0\n\0");
    assert_eq!(bench.read("utf16"), "1\tone\n");
    bench.edit("utf16", "one", "two").ok();
    let bytes = std::fs::read(bench.path("utf16")).unwrap();
    assert_eq!(bytes, b"\xff\xfet\0w\0o\0\n\0");
}

/// Lines that say which they are.
fn numbered(first: usize, last: usize) -> String {
    (first..=last).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat()
}

/// The first and the last line that are shown, or the code of a refusal.
type Window<'a> = Result<(u64, u64), &'a str>;

#[test]
fn the_windows_of_a_file_are_those_of_the_reference() {
    let mut bench = Bench::new();
    for (name, count) in [("3", 3), ("6", 6), ("100", 100)] {
        bench.put(name, numbered(1, count));
    }
    let cases: [(&str, Value, Window<'_>); 6] = [
        ("6", json!({ "around_line": 3, "context_lines": 1 }), Ok((2, 4))),
        ("100", json!({ "around_line": 50 }), Ok((30, 70))),
        ("3", json!({ "around_line": 3, "context_lines": 1 }), Ok((2, 3))),
        ("3", json!({ "around_line": 4 }), Err("E_INVALID_RANGE")),
        ("3", json!({ "around_line": 0 }), Err("E_INVALID_RANGE")),
        ("6", json!({ "context_lines": 1 }), Ok((1, 6))),
    ];
    for (name, mut arguments, expected) in cases {
        arguments["file_path"] = json!(name);
        let answer = bench.call("Read", arguments.clone());
        let facts = &answer.structured;
        let found = match answer.code() {
            Some(code) => Err(code),
            None => {
                Ok((facts["first_line"].as_u64().unwrap(), facts["last_line"].as_u64().unwrap()))
            }
        };
        assert_eq!(found, expected, "{arguments}: {}", answer.text);
    }
}

#[test]
fn the_limits_of_an_edit_are_those_of_the_reference_where_a_project_wants_them() {
    let mut bench = Bench::new();
    let lines = numbered(1, 50);
    bench.put("a.js", &lines);
    bench.put("package.json", r#"{"name": "x"}"#);
    bench.put("carrel.toml", "[edit]\nlimits = \"strict\"\n");
    bench.read("a.js");
    let ten = numbered(11, 20);
    let forty = "x\n".repeat(40);
    let one = |old: &str, new: &str| json!([{ "old_string": old, "new_string": new }]);
    let many: Vec<_> = (1..=33)
        .map(|n| json!({ "old_string": format!("line {n}\n"), "new_string": format!("l {n}\n") }))
        .collect();
    let repeats = "line 7\nline 8\nline 9\nline 10\nline 11\n";
    let cases = [
        (one(&ten, "x\n"), "E_EDIT_FILE_FIND_TOO_LARGE"),
        (one("line 30\n", &forty), "E_EDIT_FILE_REPLACE_TOO_LARGE"),
        (json!(many), "E_EDIT_FILE_BATCH_TOO_LARGE"),
        (
            json!([{ "start_line": 7, "end_line": 8, "new_string": repeats }]),
            "E_EDIT_FILE_DUPLICATES_CONTEXT",
        ),
        (one("absent", "x"), "E_EDIT_FILE_FIND_NOT_FOUND"),
        (one("line 1", "x"), "E_EDIT_FILE_MULTI_MATCH"),
    ];
    for (edits, expected) in cases {
        let answer = bench.call("MultiEdit", json!({ "file_path": "a.js", "edits": edits }));
        assert_eq!(answer.refused().0, expected, "{}", answer.text);
        assert_eq!(bench.get("a.js"), lines);
    }
    let mixed = json!([
        { "start_line": 2, "end_line": 3, "new_string": "two\nthree\n" },
        { "old_string": "line 5\n", "new_string": "five\n" },
    ]);
    bench.call("MultiEdit", json!({ "file_path": "a.js", "edits": mixed })).ok();
    assert!(bench.get("a.js").starts_with("line 1\ntwo\nthree\nline 4\nfive\nline 6\n"));
}

// Searching.

#[test]
fn a_file_that_cannot_be_read_costs_a_search_only_itself() {
    carrel_skip::needs!(Root);
    let mut bench = Bench::of(TestEnvironment::new(Caller::User, "full"));
    for name in ["a.txt", "locked.txt", "z.txt"] {
        bench.put(name, "needle\n");
    }
    let locked = bench.path("locked.txt");
    std::os::unix::fs::chown(&locked, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o600)).unwrap();
    let answer = bench.call("Grep", json!({ "pattern": "needle" }));
    let found = answer.clone().ok();
    assert!(found.starts_with("a.txt:1:needle\nz.txt:1:needle\n"), "{found}");
    let all = format!("{found} {}", answer.structured);
    assert!(all.contains("locked.txt"), "it is told: {all}");
}

#[test]
fn a_directory_that_is_called_like_an_option_is_a_directory() {
    let mut bench = Bench::new();
    for directory in ["--files", "-e", "--pre=touch pwned", "-"] {
        bench.put(&format!("{directory}/a.txt"), "needle\n");
        let here = format!("{directory}/a.txt");
        let glob = bench.call("Glob", json!({ "pattern": "*.txt", "path": directory })).ok();
        assert_eq!(glob.trim_end(), here, "{directory}");
        let grep = bench.call("Grep", json!({ "pattern": "needle", "path": directory })).ok();
        assert_eq!(grep, format!("{here}:1:needle\n"), "{directory}");
        let list = bench.call("LS", json!({ "path": directory })).ok();
        assert!(list.contains("a.txt"), "{list}");
    }
    for pattern in ["--pre=touch pwned", "-f", "--help"] {
        bench.call("Grep", json!({ "pattern": pattern, "fixed_strings": true })).ok();
        bench.call("Glob", json!({ "pattern": pattern })).ok();
    }
    assert!(!bench.path("pwned").exists());
}

#[test]
fn a_search_with_too_many_matches_says_so() {
    let mut bench = Bench::new();
    for file in 0..20 {
        bench.put(&format!("f{file:02}.txt"), "needle in a line of hay\n".repeat(5000));
    }
    let answer = bench.call("Grep", json!({ "pattern": "needle" }));
    let found = answer.clone().ok();
    assert!(found.len() < 600 * 1024, "{}", found.len());
    assert!(found.contains("offset"), "how to go on: {}", &found[found.len() - 300..]);
    let count = bench.call("Grep", json!({ "pattern": "needle", "output_mode": "count" })).ok();
    assert_eq!(count.lines().filter(|line| line.ends_with(":5000")).count(), 20, "{count}");
    let next = bench.call("Grep", json!({ "pattern": "needle", "offset": 99_999 })).ok();
    assert_eq!(next, "f19.txt:5000:needle in a line of hay\n");
}

#[test]
fn nothing_is_answered_from_memory() {
    let mut bench = Bench::new();
    bench.put("a.txt", "one\n");
    bench.put("package.json", r#"{"name": "x"}"#);
    let look = |bench: &mut Bench| {
        let read = bench.read("a.txt");
        let grep = bench.call("Grep", json!({ "pattern": "e", "glob": "*.txt" })).ok();
        let glob = bench.call("Glob", json!({ "pattern": "*.txt", "sort_by_path": true })).ok();
        (read, grep, glob.trim_end().to_owned())
    };
    let profile = |bench: &mut Bench| {
        bench.call("profile", json!({})).structured["profiles"][0]["lint"].clone()
    };
    assert_eq!(look(&mut bench), ("1\tone\n".into(), "a.txt:1:one\n".into(), "a.txt".into()));
    assert_eq!(profile(&mut bench), Value::Null);
    // Somebody else writes, with the same length and the old date.
    let before = std::fs::metadata(bench.path("a.txt")).unwrap().modified().unwrap();
    bench.put("a.txt", "eno\n");
    let file = std::fs::File::options().append(true).open(bench.path("a.txt")).unwrap();
    file.set_modified(before).unwrap();
    bench.put("b.txt", "x\n");
    bench.put("biome.jsonc", "// a comment\n{ \"$schema\": \"https://biomejs.dev/s.json\" }\n");
    assert_eq!(
        look(&mut bench),
        ("1\teno\n".into(), "a.txt:1:eno\n".into(), "a.txt\nb.txt".into())
    );
    assert!(profile(&mut bench).to_string().contains("biome"), "{}", profile(&mut bench));
}

// Commands.

#[test]
fn a_server_that_is_left_running_costs_no_output() {
    through_each(|interface, test_env| {
        let mark = Mark::new();
        let mut session = open(interface, test_env);
        let begun = Instant::now();
        let command = format!("echo begin; sleep {} & echo ok", mark.0);
        let answer = session.call("Bash", json!({ "command": command }));
        assert!(begun.elapsed() < Duration::from_secs(20), "{interface:?}: {:?}", begun.elapsed());
        assert_eq!(answer.structured["exit_code"], 0, "{answer:?}");
        assert!(answer.text.starts_with("begin\nok\n"), "{answer:?}");
        crate::eventually("nothing is left", || mark.alive().is_empty());
    });
}

#[test]
fn the_last_words_of_a_background_command_are_never_lost() {
    let mut bench = Bench::new();
    let mut ids = Vec::new();
    for number in 0..12 {
        let command = format!("echo first {number}; echo last {number} >&2");
        let started = bench.call("Bash", json!({ "command": command, "run_in_background": true }));
        ids.push(started.structured["shell_id"].as_str().unwrap().to_owned());
    }
    for (number, id) in ids.iter().enumerate() {
        let expected = format!(" ---\nfirst {number}\nlast {number}\n");
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let wait = json!({ "shell_id": id, "cursor": 0, "wait_seconds": 1 });
            let answer = bench.call("BashOutput", wait);
            if answer.structured["ended"] == true {
                assert!(answer.text.ends_with(&expected), "{}", answer.text);
                break;
            }
            assert!(Instant::now() < deadline, "{}", answer.text);
        }
    }
}

#[test]
fn a_command_that_is_over_is_ended_without_harm() {
    let mut bench = Bench::new();
    let started = bench.call("Bash", json!({ "command": "echo x", "run_in_background": true }));
    let id = json!({ "shell_id": started.structured["shell_id"] });
    let deadline = Instant::now() + Duration::from_secs(30);
    while bench.call("BashOutput", id.clone()).structured["ended"] != true {
        assert!(Instant::now() < deadline);
    }
    let ended = bench.call("KillShell", id.clone());
    assert!(!ended.is_error, "{ended:?}");
    assert_eq!(bench.call("KillShell", id).refused().0, "E_JOB_NOT_FOUND");
    assert_eq!(bench.bash("echo still here"), "still here\n");
}

#[test]
fn only_a_command_is_refused_never_a_word() {
    let mut bench = Bench::new();
    for command in [
        "sudo ls",
        "su -l",
        "shutdown",
        "reboot",
        "halt",
        "poweroff",
        "chroot .",
        "mount",
        "umount x",
        "mkfs x",
        "mkfs.ext4 x",
        "mkfs.xfs x",
        "true && sudo ls",
        "true | su",
        "true; halt",
        "(reboot)",
        "true\nmount",
        "FOO=1 sudo ls",
        "if true; then sudo ls; fi",
        "$(sudo ls)",
        "env sudo ls",
        "command sudo ls",
    ] {
        let answer = bench.call("Bash", json!({ "command": command }));
        assert_eq!(answer.refused().0, "E_COMMAND_REFUSED", "{command}: {}", answer.text);
    }
    for command in [
        "ls /etc/sudoers",
        "echo pseudo",
        "echo sudoku",
        "echo 'sudo rm'",
        "echo \"a; mount b\"",
        "echo mkfs.",
        "touch su.txt unmount.txt",
        "git log --grep mount || true",
        "ls | grep halt; true",
        "echo > mount; rm mount",
    ] {
        let answer = bench.call("Bash", json!({ "command": command }));
        assert!(!answer.is_error, "{command}: {}", answer.text);
    }
}

#[test]
fn a_flood_of_output_does_not_grow_the_server() {
    let test_env = TestEnvironment::usual();
    test_env.write("wide", &"x".repeat(3_000_000));
    let mut command = test_env.carrel();
    command.args(["mcp", "--workspace", text(&test_env.workspace())]);
    let mut client = Stdin::start(command);
    client.call("Bash", json!({ "command": "echo warm" })).ok();
    let before = peak_memory(client.server.pid()).unwrap();
    let flood = json!({ "command": "head -c 200000000 /dev/zero | tr '\\0' x; echo; echo end" });
    let answer = client.call("Bash", flood.clone()).ok();
    assert!(answer.len() < 110 * 1024 && answer.contains("output truncated"), "{}", answer.len());
    let mut background = flood;
    background["run_in_background"] = json!(true);
    let id = json!({ "shell_id": client.call("Bash", background).structured["shell_id"] });
    let deadline = Instant::now() + Duration::from_mins(1);
    while client.call("BashOutput", id.clone()).structured["ended"] != true {
        assert!(Instant::now() < deadline);
    }
    client.call("Read", json!({ "file_path": "wide" })).ok();
    client.call("Grep", json!({ "pattern": "x" })).ok();
    let grown = peak_memory(client.server.pid()).unwrap() - before;
    eprintln!("the server grew by {grown} KiB");
    assert!(grown < 128 * 1024, "by {grown} KiB");
}

#[test]
fn what_arguments_do_not_show_is_kept_in_by_the_kernel() {
    let mut bench = Bench::new();
    std::fs::create_dir(bench.test_env.path("outside")).unwrap();
    let secret = bench.test_env.path("outside/secret");
    std::fs::write(&secret, "TOP-SECRET\n").unwrap();
    std::os::unix::fs::symlink(&secret, bench.path("link")).unwrap();
    bench.put("list", format!("{}\n", secret.display()));
    let path = secret.display();
    let cases: Vec<(&str, Vec<String>)> = vec![
        ("sh", vec!["-c".into(), format!("cat {path}")]),
        ("sh", vec!["-c".into(), "cat ../outside/secret; cd ..; cat outside/secret".into()]),
        ("cat", vec!["link".into()]),
        ("xargs", vec!["-a".into(), "list".into(), "cat".into()]),
        ("grep", vec![format!("-f{path}"), "list".into()]),
        ("python3", vec!["-c".into(), format!("print(open('{path}').read())")]),
        ("dd", vec!["if=link".into()]),
        ("tar", vec!["-ch".into(), "link".into()]),
        ("ln", vec![format!("{path}"), "hard".into()]),
        ("sh", vec!["-c".into(), format!("exec 3<{path}; cat <&3")]),
    ];
    for (cmd, args) in cases {
        let answer = bench.call("shell_run", json!({ "cmd": cmd, "args": args }));
        assert!(!answer.text.contains("TOP-SECRET"), "{cmd} {args:?}: {}", answer.text);
        let failed = answer.is_error || answer.structured["exit_code"] != 0;
        assert!(failed, "{cmd} {args:?}: {}", answer.text);
    }
    assert!(!bench.path("hard").exists());
}

#[test]
fn a_directory_that_becomes_a_link_never_leads_out() {
    let mut bench = Bench::new();
    std::fs::create_dir(bench.test_env.path("outside")).unwrap();
    std::fs::write(bench.test_env.path("outside/file"), "TOP-SECRET\n").unwrap();
    let (here, there) = (bench.path("swapped"), bench.path("aside"));
    std::fs::create_dir(&here).unwrap();
    std::fs::write(here.join("file"), "inside\n").unwrap();
    std::os::unix::fs::symlink(bench.test_env.path("outside"), &there).unwrap();
    let stop = AtomicBool::new(false);
    let target = bench.test_env.path("outside");
    let outside = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (cwd, flags) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
                if rustix::fs::renameat_with(cwd, &here, cwd, &there, flags).is_err() {
                    // A link that appears in the workspace may be put aside; then there is another.
                    let _ = std::fs::create_dir(&here);
                    let _ = std::os::unix::fs::symlink(&target, &there);
                }
            }
        });
        let (mut inside, mut refused) = (0, 0);
        for number in 0..150 {
            let read = bench.call("Read", json!({ "file_path": "swapped/file" }));
            assert!(!read.text.contains("TOP-SECRET"), "{}", read.text);
            if read.is_error {
                refused += 1;
            } else {
                inside += 1;
            }
            let name = format!("swapped/new-{number}");
            bench.call("Write", json!({ "file_path": name, "content": "x" }));
            let found = bench.call("Grep", json!({ "pattern": "SECRET", "path": "swapped" }));
            assert!(!found.text.contains("TOP-SECRET"), "{}", found.text);
        }
        stop.store(true, Ordering::Relaxed);
        eprintln!("read {inside} times, refused {refused} times");
        std::fs::read_dir(bench.test_env.path("outside")).unwrap().count()
    });
    assert_eq!(outside, 1, "nothing was written there");
}

#[test]
fn a_revision_that_is_an_option_is_none() {
    let mut bench = Bench::new();
    bench.bash("git init -q -b main . && git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m x");
    for (operation, word) in [
        ("show", "--output=stolen"),
        ("log", "--output=stolen"),
        ("diff", "--output=stolen"),
        ("show", "--ext-diff"),
        ("show", "-O../../x"),
        ("blame", "--contents=/etc/passwd"),
        ("log", "--exec=touch stolen"),
        ("branch", "--upload-pack=touch stolen"),
    ] {
        let answer = bench.call("git_inspect", json!({ "operation": operation, "args": [word] }));
        assert!(answer.is_error, "{operation} {word}: {}", answer.text);
        assert_ne!(answer.code(), Some("E_INTERNAL"), "{operation} {word}");
    }
    assert!(!bench.path("stolen").exists());
}

// Projects.

#[test]
fn what_a_project_runs_is_behind_the_same_walls() {
    if !has("node") {
        return;
    }
    let test_env = TestEnvironment::usual();
    std::fs::create_dir(test_env.path("outside")).unwrap();
    let secret = test_env.path("outside/secret");
    std::fs::write(&secret, "TOP-SECRET\n").unwrap();
    let steal = format!("echo x >> ran; cat {0}; touch {0}.taken; env", secret.display());
    let scripts =
        json!({ "name": "x", "scripts": { "test": steal, "lint": steal, "steal": steal } });
    test_env.write("package.json", &scripts.to_string());
    let format = ["sh", "-c", &format!("{steal}; exit 1"), "$FILES"];
    let install = ["sh", "-c", &steal];
    let settings =
        format!("[profile]\nformat = {format:?}\ninstall = {install:?}\nformat_on_edit = true\n");
    test_env.write("carrel.toml", &settings);
    test_env.write("a.js", "let x = 1;\n");
    let workspace = test_env.workspace();
    let mut session =
        Interface::Stdio.open_with(&test_env, &["--workspace", text(&workspace)], |command| {
            command.env("SOME_API_KEY", "a-key-of-the-operator");
        });
    session.call("Read", json!({ "file_path": "a.js" })).ok();
    for (tool, arguments) in [
        ("run_tests", json!({})),
        ("run_lint", json!({})),
        ("run_script", json!({ "name": "steal" })),
        ("format", json!({})),
        ("install", json!({})),
        ("Edit", json!({ "file_path": "a.js", "old_string": "1", "new_string": "2" })),
    ] {
        // What the one before left behind says nothing about this one.
        let _ = std::fs::remove_file(workspace.join("ran"));
        let answer = session.call(tool, arguments);
        let all = format!("{} {}", answer.text, answer.structured);
        // A check runs in a read-only tree, and says how it ended.
        let ran = if tool == "run_lint" {
            !workspace.join("ran").exists() && all.contains("command: npm run lint\nexit: 0")
        } else {
            workspace.join("ran").exists()
        };
        assert!(ran, "{tool} ran nothing, or changed files: {all}");
        assert!(!all.contains("TOP-SECRET") && !all.contains("a-key-of"), "{tool}: {all}");
        assert_ne!(answer.code(), Some("E_INTERNAL"), "{tool}: {all}");
    }
    assert_eq!(std::fs::read_dir(test_env.path("outside")).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(test_env.workspace().join("a.js")).unwrap(), "let x = 2;\n");
}

#[test]
fn a_lint_script_that_prints_prose_is_not_zero_findings() {
    if !has("node") {
        return;
    }
    let mut bench = Bench::new();
    for (script, passes) in [("echo all is well", true), ("echo that is wrong; exit 1", false)] {
        let manifest = json!({ "name": "x", "scripts": { "lint": script } });
        bench.put("package.json", manifest.to_string());
        let answer = bench.call("run_lint", json!({}));
        let verdict = answer.structured["verdict"].as_str().unwrap_or_default().to_owned();
        if passes {
            assert_ne!(verdict, "failed", "{answer:?}");
        } else {
            assert_ne!(verdict, "passed", "{answer:?}");
            assert!(!answer.text.starts_with("0 findings"), "{}", answer.text);
        }
    }
}

#[test]
fn an_error_of_the_compiler_is_a_finding_of_the_linter() {
    if !has("cargo") {
        return;
    }
    let mut bench = Bench::with_toolchains();
    bench.put(
        "Cargo.toml",
        "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    bench.put("Cargo.lock", "version = 4\n\n[[package]]\nname = \"probe\"\nversion = \"0.1.0\"\n");
    bench.put("src/lib.rs", "pub fn number() -> i32 {\n    \"text\"\n}\n");
    for tool in ["run_lint", "run_typecheck"] {
        let answer = bench.call(tool, json!({}));
        assert_eq!(answer.structured["verdict"], "failed", "{answer:?}");
        let finding = &answer.structured["sections"][0]["findings"][0];
        assert_eq!(
            (&finding["file"], &finding["line"], &finding["rule"], &finding["severity"]),
            (&json!("src/lib.rs"), &json!(2), &json!("E0308"), &json!("error")),
            "{answer:?}"
        );
    }
}

#[test]
fn a_file_of_a_new_edition_is_no_format_error() {
    if !has("cargo") {
        return;
    }
    let mut bench = Bench::with_toolchains();
    let manifest =
        "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    bench.put("Cargo.toml", manifest);
    bench.put("src/lib.rs", "pub async fn one() -> i32 {\n    1\n}\n");
    bench.read("src/lib.rs");
    let good = bench.edit("src/lib.rs", "    1\n", "    2\n").ok();
    assert!(!good.contains("post-edit format"), "{good}");
    let bad = bench.edit("src/lib.rs", "    2\n", "  3\n").ok();
    assert!(bad.contains("post-edit format"), "and the formatter was there: {bad}");
}

#[test]
fn an_edit_is_judged_by_the_project_of_its_file() {
    if !has("cargo") {
        return;
    }
    let mut bench = Bench::with_toolchains();
    let manifest =
        "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    bench.put("service/Cargo.toml", manifest);
    bench.put("service/src/lib.rs", "pub fn one() -> i32 {\n    1\n}\n");
    bench.put("service/notes.md", "# x\n");
    bench.put("go.mod", "module example.com/x\n\ngo 1.22\n");
    bench.put("main.js", "let x = 1\n");
    for path in ["service/src/lib.rs", "service/notes.md", "main.js"] {
        bench.read(path);
    }
    let rust = bench.edit("service/src/lib.rs", "    1\n", "  2\n").ok();
    assert!(rust.contains("post-edit format"), "its own project, not the one at the top: {rust}");
    for (path, old, new) in [("service/notes.md", "# x", "#   y"), ("main.js", "1", "2")] {
        let other = bench.edit(path, old, new).ok();
        assert!(!other.contains("post-edit"), "nobody there knows {path}: {other}");
    }
}

#[test]
fn a_slow_formatter_does_not_hold_up_an_edit() {
    let mut bench = Bench::new();
    bench.put("package.json", r#"{"name": "x"}"#);
    let mark = Mark::new();
    let slow = format!("[\"sh\", \"-c\", \"sleep {}\", \"$FILES\"]", mark.0);
    bench.put(
        "carrel.toml",
        format!("[profile]\nformat = {slow}\nformat_check = {slow}\nlint = {slow}\n"),
    );
    bench.put("a.js", "let x = 1;\n");
    bench.read("a.js");
    let begun = Instant::now();
    bench.edit("a.js", "1", "2").ok();
    assert!(begun.elapsed() > Duration::from_secs(1), "the formatter was never asked");
    // The promise is two seconds; the rest is for a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(bench.get("a.js"), "let x = 2;\n");
    crate::eventually("the formatter has ended", || mark.alive().is_empty());
}

#[test]
fn tests_that_cannot_even_begin_are_no_pass() {
    if !has("node") {
        return;
    }
    let mut node = Bench::new();
    node.put("package.json", NODE);
    node.put("a.test.js", "import test from 'node:test';\ntest('x', () => {\n");
    let answer = node.call("run_tests", json!({}));
    assert_eq!(answer.structured["verdict"], "failed", "{answer:?}");
    let mut python = Bench::new();
    python.put("setup.py", "from setuptools import setup\nsetup(name='x')\n");
    python.put("tests/__init__.py", "");
    python.put("tests/test_a.py", "import nothing_like_that\n");
    let answer = python.call("run_tests", json!({}));
    assert_ne!(answer.structured["verdict"], "passed", "{answer:?}");
    let last = python.call("last_test_failures", json!({})).ok();
    assert!(!last.contains("had no failures"), "{last}");
}

#[test]
fn the_first_command_of_tier_landlock_may_leave_a_report() {
    if !has("node") {
        return;
    }
    let test_env = TestEnvironment::new(TestEnvironment::usual().caller, "landlock");
    let workspace = test_env.workspace();
    let session =
        Interface::Stdio.open(&test_env, &["--tier", "landlock", "--workspace", text(&workspace)]);
    let mut bench = Bench { test_env, session };
    bench.put("package.json", NODE);
    bench.put("sum.js", SUM);
    bench.put("sum.test.js", SUM_TEST);
    let answer = bench.call("run_tests", json!({}));
    assert_eq!(answer.structured["verdict"], "passed", "{answer:?}");
}

#[test]
fn no_test_at_all_is_no_pass() {
    if !has("node") {
        return;
    }
    let mut bench = Bench::new();
    bench.put("package.json", NODE);
    bench.put("sum.js", SUM);
    let answer = bench.call("run_tests", json!({}));
    assert_ne!(answer.structured["verdict"], "passed", "{answer:?}");
    bench.put("sum.test.js", SUM_TEST);
    let named = bench.call("run_tests", json!({ "name": "nothing is called so" }));
    assert_ne!(named.structured["verdict"], "passed", "{named:?}");
}

#[test]
fn what_failed_in_one_workspace_did_not_fail_in_another() {
    if !has("node") {
        return;
    }
    let test_env = TestEnvironment::usual();
    for (name, broken) in [("one", true), ("other", false)] {
        std::fs::create_dir(test_env.path(name)).unwrap();
        std::fs::write(test_env.path(name).join("package.json"), NODE).unwrap();
        let sum = if broken { SUM.replace("a + b", "a - b") } else { SUM.to_owned() };
        std::fs::write(test_env.path(name).join("sum.js"), sum).unwrap();
        std::fs::write(test_env.path(name).join("sum.test.js"), SUM_TEST).unwrap();
    }
    let spec = format!(
        "one={},other={}",
        test_env.path("one").display(),
        test_env.path("other").display()
    );
    let mut session = Interface::Stdio.open(&test_env, &["--workspaces", &spec]);
    let at = |name: &str| json!({ "workspace": name });
    assert_eq!(session.call("run_tests", at("one")).structured["verdict"], "failed");
    let other = session.call("last_test_failures", at("other")).ok();
    assert_eq!(other, "no run_tests call yet in this session");
    assert_eq!(session.call("run_tests", at("other")).structured["verdict"], "passed");
    assert!(session.call("last_test_failures", at("one")).ok().contains("adds"));
    let rerun = session.call("run_failing_tests", at("one"));
    assert_eq!((&rerun.structured["verdict"], counts(&rerun)), (&json!("failed"), (0, 1)));
    let all = session.call("run_tests", at("all"));
    assert!(all.text.contains("=== one ===") && all.text.contains("=== other ==="), "{}", all.text);
    assert_eq!(all.structured["workspaces"]["one"]["verdict"], "failed");
    assert_eq!(all.structured["workspaces"]["other"]["verdict"], "passed");
    // A shell of one is not in the other.
    let mut start = at("one");
    start["command"] = json!("sleep 60");
    start["run_in_background"] = json!(true);
    let id = session.call("Bash", start).structured["shell_id"].clone();
    let there = session.call("KillShell", json!({ "workspace": "other", "shell_id": id }));
    assert_eq!(there.refused().0, "E_JOB_NOT_FOUND");
    session.call("KillShell", json!({ "workspace": "one", "shell_id": id })).ok();
}

#[test]
fn a_line_that_no_test_ran_is_covered_by_none() {
    if !has("node") {
        return;
    }
    through_each(|interface, test_env| {
        test_env.write("package.json", NODE);
        let less = "export function less(a, b) {\n  return a - b;\n}\n";
        test_env.write("sum.js", &format!("{SUM}{less}"));
        test_env.write("sum.test.js", SUM_TEST);
        let workspace = test_env.workspace();
        let options = ["--workspace", text(&workspace), "--tools", "default,code"];
        let mut session = interface.open(test_env, &options);
        let line = |line: u32| json!({ "file": "sum.js", "line": line });
        let before = session.call("tests_covering", line(1)).ok();
        assert!(before.starts_with("no coverage data yet — run `run_tests` first"), "{before}");
        let answer = session.call("run_tests", json!({ "coverage": true }));
        assert_eq!(answer.structured["verdict"], "passed", "{answer:?}");
        let ran = session.call("tests_covering", line(1)).ok();
        assert!(ran.starts_with("1 test(s) cover sum.js:1:\n\nsum.test.js:\n"), "{ran}");
        let count = SUM.lines().count();
        let not = session.call("tests_covering", line(u32::try_from(count).unwrap() + 2)).ok();
        assert!(not.starts_with(&format!("no coverage found for sum.js:{}\n", count + 2)), "{not}");
    });
}

#[test]
fn a_wrong_setting_of_a_project_is_named() {
    let mut bench = Bench::new();
    bench.put("package.json", r#"{"name": "x"}"#);
    bench.put("carrel.toml", "[profile]\ntets = [\"true\"]\ntest = \"not a list\"\n");
    let answer = bench.call("profile", json!({}));
    let all = format!("{} {}", answer.text, answer.structured);
    assert!(all.contains("tets"), "{all}");
    assert!(all.contains("carrel.toml"), "{all}");
}

// Interfaces.

#[test]
fn a_refusal_says_the_same_through_every_door() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "x\n");
    let calls = [
        ("Read", json!({ "file_path": "../x" }), "E_SANDBOX_VIOLATION", "sandbox_violation"),
        ("Read", json!({ "file_path": "nope" }), "E_NOT_FOUND", "not_found"),
        (
            "Edit",
            json!({ "file_path": "a.txt", "old_string": "x", "new_string": "y" }),
            "E_NOT_READ",
            "not_read",
        ),
        ("Bash", json!({ "command": "sudo ls" }), "E_COMMAND_REFUSED", "command_refused"),
        ("git", json!({ "operation": "status", "cwd": ".." }), "", ""),
        (
            "shell_run",
            json!({ "cmd": "cat", "args": ["/etc/hosts"] }),
            "E_SANDBOX_VIOLATION",
            "sandbox_violation",
        ),
        ("run_tests", json!({}), "E_PROJECT_NOT_DETECTED", "project_not_detected"),
    ];
    let mut interfaces: Vec<_> =
        Interface::ALL.iter().map(|interface| open(*interface, &test_env)).collect();
    for (tool, arguments, code, kind) in calls {
        let answers: Vec<_> =
            interfaces.iter_mut().map(|session| session.call(tool, arguments.clone())).collect();
        for answer in &answers {
            let error = &answer.structured["error"];
            assert_eq!(answer, &answers[0], "{tool} {arguments}");
            assert!(error["message"].is_string() && error["detail"].is_object(), "{answer:?}");
            if !code.is_empty() {
                assert_eq!((&error["code"], &error["kind"]), (&json!(code), &json!(kind)));
            }
        }
    }
}

#[test]
fn the_command_line_takes_what_the_schema_says_and_prints_what_is_to_be_read() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "one\ntwo\nthree\n");
    let run = |words: &[&str]| {
        let mut command = test_env.carrel();
        command.arg("tool").args(words).args(["--workspace", text(&test_env.workspace())]);
        Run::of(command)
    };
    let read = run(&["Read", "file_path=a.txt", "offset=2", "limit=1"]);
    assert_eq!(read.code, 0, "{}", read.stderr);
    assert!(read.stdout.starts_with("2\ttwo\n"), "not wrapped: {}", read.stdout);
    assert_eq!(read.stderr, "");
    let words = run(&["shell_run", "cmd=echo", "args=a b", "args=$HOME;ls", "args=7"]);
    assert!(words.stdout.contains("a b $HOME;ls 7"), "{}", words.stdout);
    for (arguments, says) in [
        (&["Read", "file=a.txt"][..], "file_path"),
        (&["Read", "file_path=a.txt", "limit=many"], "limit"),
        (&["Read", "nothing"], "key=value"),
        (&["Raed"], "Read"),
        (&["Read", "file_path=nope"], "E_NOT_FOUND"),
    ] {
        let run = run(arguments);
        assert!(run.code != 0 && run.stdout.is_empty(), "{arguments:?}: {}", run.stdout);
        assert!(run.stderr.contains(says), "{arguments:?}: {}", run.stderr);
    }
    let schema = run(&["Read", "--schema"]);
    for field in ["file_path*", "offset", "limit", "workspace"] {
        assert!(schema.stdout.contains(field), "{}", schema.stdout);
    }
    let listed = run(&[]);
    assert!(listed.stdout.lines().count() >= 28, "{}", listed.stdout);
}

#[test]
fn output_is_text_whatever_a_command_prints() {
    let mut bench = Bench::new();
    for (printed, shown) in [
        (r"\033[2J\033[3J\033[Hdone\n", "done\n"),
        (r"\033[32mok\033[0m\n", "ok\n"),
        (r"a\033]52;c;aGk=\007b\n", "ab\n"),
        (r"a\000b\007\tc\n", "ab\tc\n"),
        (r"10%%\r20%%\r30%%\n", "10%\n20%\n30%\n"),
        (r"a\r\nb\n", "a\nb\n"),
        ("héé 入\\n", "héé 入\n"),
    ] {
        assert_eq!(bench.bash(&format!("printf '{printed}'")), shown, "{printed}");
    }
}
