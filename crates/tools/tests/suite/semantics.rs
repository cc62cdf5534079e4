//! Answers of real language servers: gopls and clangd from the system, ty for Python.

use std::time::{Duration, Instant};

use carrel_config::OperatorPolicy;
use carrel_tools::{CallOptions, Interface};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment, object};
use crate::verify::machine;

const UTILS: &str = "\
def echo(message, err=False):
    print(message, err)


class LazyFile:
    def open(self):
        return 1
";

const CORE: &str = "\
from shop.utils import echo, LazyFile


class Context:
    # echo in a comment
    def open(self, echo_all=False):
        echo(\"echo\")
        return LazyFile().open()


def other(echo):
    return echo
";

/// A project for ty, which answers in a tenth of a second.
fn project() -> TestEnvironment {
    let test_env = machine::with_python_tools();
    test_env.put("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n");
    test_env.put("shop/__init__.py", "");
    test_env.put("shop/utils.py", UTILS);
    test_env.put("shop/core.py", CORE);
    test_env.put("README.md", "Call `echo` to print.\n");
    test_env
}

/// Asks again until the server is ready.
async fn semantic(test_env: &TestEnvironment, tool: &str, arguments: Value) -> String {
    for _ in 0..20 {
        let answer = test_env.call(tool, arguments.clone()).await;
        assert!(!answer.is_error, "{}", answer.text());
        if answer.structured["source"] == "semantic" {
            return answer.text();
        }
    }
    panic!("{tool} {arguments} has no semantic answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_those_of_the_symbol_and_not_of_its_name() {
    let test_env = project();
    assert_eq!(
        semantic(&test_env, "find_references", json!({ "symbol": "echo" })).await,
        "Found 3 reference(s) for echo:\n\
         shop/core.py\n  \
         1 (top level): from shop.utils import echo, LazyFile\n  \
         7 Context::open: echo(\"echo\")\n\
         shop/utils.py\n  \
         1 (definition): def echo(message, err=False):\n\
         [2 more lines have the name and mean something else, or cannot be told]\n\
         [by ty]\n"
    );
    let by_name = json!({ "symbol": "echo", "by_name": true });
    let text = test_env.text("find_references", by_name).await;
    assert!(text.starts_with("Found 5 reference(s) for echo:"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_and_callees_are_functions_with_the_lines_of_the_calls() {
    let test_env = project();
    let mut answers = Vec::new();
    for (symbol, calls) in [("echo", "callers"), ("Context.open", "callees"), ("other", "callees")]
    {
        let arguments = json!({ "symbol": symbol, "calls": calls });
        answers.push(semantic(&test_env, "find_references", arguments).await);
    }
    assert_eq!(
        answers,
        [
            "Found 1 caller(s) of echo:\n  shop/core.py:6 open at 7\n[by ty]\n",
            "Found 3 callee(s) of Context.open:\n  shop/utils.py:5 LazyFile at 8\n  shop/utils.py:1 echo at 7\n  shop/utils.py:6 open at 8\n[by ty]\n",
            "no callees found of other\n[by ty]\n",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_that_of_the_use_at_a_place() {
    let test_env = project();
    let place = json!({ "file_path": "shop/core.py", "line": 8, "col": 27 });
    assert_eq!(
        semantic(&test_env, "find_definition", place).await,
        "Found 1 definition(s) for symbol at shop/core.py:8:27:\n  \
         1. shop/utils.py:6:9  def open(self):\n[by ty]\n"
    );
    let parameter = json!({ "file_path": "shop/core.py", "line": 12, "col": 12 });
    let text = semantic(&test_env, "find_definition", parameter).await;
    assert!(text.contains("1. shop/core.py:11:11  def other(echo):"), "{text}");
    let hover = json!({ "file_path": "shop/core.py", "line": 7, "col": 9 });
    let text = test_env.text("hover", hover).await;
    assert!(text.contains("def echo"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_changes_all_files_at_once_lists_the_rest_and_can_be_taken_back() {
    let test_env = project();
    let dry = json!({ "symbol": "echo", "new_name": "shout", "dry_run": true });
    let text = test_env.text("rename_symbol", dry).await;
    assert!(
        text.starts_with(
            "Rename → \"shout\" would touch 2 file(s):\n  - shop/core.py (2 edit(s))\n"
        ),
        "{text}"
    );
    assert_eq!(test_env.get("shop/core.py"), CORE);
    let rename = json!({ "symbol": "echo", "new_name": "shout" });
    assert_eq!(
        test_env.text("rename_symbol", rename).await,
        "Renamed echo to shout: 3 edits in 2 files\n  \
         - shop/core.py (2 edit(s))\n  \
         - shop/utils.py (1 edit(s))\n\
         [5 lines still have echo, in comments, strings or another meaning:]\n  \
         README.md:1: Call `echo` to print.\n  \
         shop/core.py:5: # echo in a comment\n  \
         shop/core.py:7: shout(\"echo\")\n  \
         shop/core.py:11: def other(echo):\n  \
         shop/core.py:12: return echo\n\
         [by ty]\n"
    );
    let renamed =
        CORE.replace("import echo", "import shout").replace("echo(\"echo\")", "shout(\"echo\")");
    assert_eq!(test_env.get("shop/core.py"), renamed);
    assert_eq!(test_env.get("shop/utils.py"), UTILS.replace("def echo", "def shout"));
    let undo = json!({ "undo": true });
    test_env.text("rename_symbol", undo.clone()).await;
    assert_eq!(test_env.get("shop/core.py"), CORE);
    assert_eq!(test_env.get("shop/utils.py"), UTILS);
    assert_eq!(test_env.refusal("rename_symbol", undo.clone()).await.0, "E_NOT_FOUND");
    let again = json!({ "symbol": "echo", "new_name": "shout" });
    test_env.text("rename_symbol", again).await;
    test_env.put("shop/core.py", "changed = 1\n");
    assert_eq!(test_env.refusal("rename_symbol", undo).await.0, "E_CHANGED_SINCE_READ");
    assert_eq!(test_env.get("shop/utils.py"), UTILS.replace("def echo", "def shout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_needs_a_name_one_definition_and_an_installed_server() {
    let test_env = project();
    for (arguments, code) in [
        (json!({ "symbol": "echo" }), "E_INVALID_ARGUMENTS"),
        (json!({ "symbol": "echo", "new_name": "a b" }), "E_INVALID_ARGUMENTS"),
        (json!({ "symbol": "open", "new_name": "shut" }), "E_SYMBOL_AMBIGUOUS"),
        (json!({ "symbol": "nothing", "new_name": "some" }), "E_SYMBOL_NOT_FOUND"),
    ] {
        assert_eq!(
            test_env.refusal("rename_symbol", arguments.clone()).await.0,
            code,
            "{arguments}"
        );
    }
    test_env.put("a.lua", "function greet() end\n");
    let lua = json!({ "symbol": "greet", "new_name": "hello" });
    let (code, text) = test_env.refusal("rename_symbol", lua).await;
    assert_eq!(code, "E_LANGUAGE_SERVER");
    assert!(text.contains("lua-language-server"), "{text}");
    let text = test_env.text("find_references", json!({ "symbol": "greet" })).await;
    assert!(
        text.contains(
            "a.lua\n  1 (definition): function greet() end\n[by name alone: no language server"
        ),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_of_a_file_follow_its_edits() {
    let test_env = project();
    let file = json!({ "path": "shop/core.py" });
    let text = test_env.text("diagnostics", file.clone()).await;
    assert!(text.starts_with("no problems in 1 file(s)"), "{text}");
    test_env.put("shop/core.py", CORE.replace("LazyFile()", "LazyFiles()"));
    let text = test_env.text("diagnostics", file).await;
    assert!(text.contains("shop/core.py:8:16 error [unresolved-reference]"), "{text}");
    let text = test_env.text("diagnostics", json!({ "path": "shop" })).await;
    assert!(text.contains("problem(s) in 3 file(s):"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gopls_and_clangd_answer_for_go_and_c() {
    let test_env = TestEnvironment::new();
    test_env.put("go.mod", "module shop\n\ngo 1.19\n");
    test_env.put("main.go", "package main\n\nfunc main() { price(2) }\n");
    test_env.put("price.go", "package main\n\nfunc price(n int) int { return n }\n");
    let text = semantic(&test_env, "find_references", json!({ "symbol": "price" })).await;
    assert!(text.contains("main.go\n  3 main: func main() { price(2) }\n"), "{text}");
    assert!(text.contains("[by gopls]"), "{text}");
    let test_env = TestEnvironment::new();
    test_env.put("compile_flags.txt", "-std=c11\n");
    test_env.put("price.h", "int price(int n);\n");
    test_env.put("price.c", "#include \"price.h\"\nint price(int n) { return n; }\n");
    test_env.put("main.c", "#include \"price.h\"\nint main(void) { return price(2); }\n");
    let place = json!({ "file_path": "main.c", "line": 2, "col": 25 });
    let text = semantic(&test_env, "find_definition", place).await;
    assert!(text.contains("[by clangd]") && text.contains("price."), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_would_leave_code_behind_is_refused() {
    let test_env = project();
    // ty leaves the second name of such an import as it is, and the first one with it.
    test_env.put("shop/__init__.py", "from .utils import echo as echo\n");
    let rename = json!({ "symbol": "echo", "new_name": "shout" });
    let renamed = test_env.call("rename_symbol", rename).await;
    if renamed.is_error {
        assert_eq!(renamed.structured["error"]["code"], "E_SYMBOL_IN_USE");
        assert!(renamed.text().contains("shop/__init__.py:1"), "{}", renamed.text());
        assert_eq!(test_env.get("shop/utils.py"), UTILS);
    } else {
        assert!(test_env.get("shop/__init__.py").contains("shout as"), "a newer ty renames it");
    }
    // The server answers: what follows is refused for another reason than its absence.
    semantic(&test_env, "find_references", json!({ "symbol": "echo" })).await;
    for (arguments, code) in [
        (json!({ "symbol": "echo", "new_name": "class" }), "E_REPLACEMENT_INVALID"),
        (json!({ "symbol": "echo", "new_name": "2x" }), "E_INVALID_ARGUMENTS"),
        (json!({ "symbol": "echo", "new_name": "a-b" }), "E_INVALID_ARGUMENTS"),
        (json!({ "symbol": "echo", "new_name": "echo" }), "E_EDIT_FILE_NO_CHANGE"),
        (json!({ "symbol": "echo", "new_name": "LazyFile" }), "E_EDIT_CODE_NO_MATCH"),
    ] {
        let (found, text) = test_env.refusal("rename_symbol", arguments.clone()).await;
        assert_eq!(found, code, "{arguments}: {text}");
    }
    assert_eq!(test_env.get("shop/utils.py"), UTILS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_an_ignored_file_is_answered() {
    let test_env = project();
    std::process::Command::new("git")
        .args(["init", "-q"])
        .arg(test_env.path("main"))
        .status()
        .unwrap();
    test_env.put(".gitignore", "built.py\n");
    test_env.put("built.py", "def made():\n    pass\n");
    let place = json!({ "file_path": "built.py", "line": 1, "col": 5 });
    let asked = tokio::time::timeout(
        std::time::Duration::from_mins(2),
        test_env.call("find_definition", place),
    );
    let answer = asked.await.unwrap();
    assert!(answer.text().contains("built.py:1:5"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_without_a_server_takes_no_problems_of_others_with_it() {
    let test_env = project();
    test_env.put("shop/core.py", CORE.replace("LazyFile()", "LazyFiles()"));
    test_env.put("a.lua", "function greet() end\n");
    let answer = test_env.call("diagnostics", json!({})).await;
    assert!(!answer.is_error, "{}", answer.text());
    let text = answer.text();
    assert!(text.contains("shop/core.py:8:16 error [unresolved-reference]"), "{text}");
    assert!(text.contains("[no answer for lua, 1 file(s): "), "{text}");
    let facts = &answer.structured;
    assert_eq!((&facts["complete"], &facts["files"]), (&false.into(), &3.into()), "{facts}");
    assert_eq!(facts["answers"]["python"]["server"], "ty");
    assert!(facts["unanswered"]["lua"].as_str().unwrap().contains("lua-language-server"));
    // Alone it has no answer at all.
    let (code, text) = test_env.refusal("diagnostics", json!({ "path": "a.lua" })).await;
    assert_eq!(code, "E_LANGUAGE_SERVER", "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_are_those_of_the_files_that_the_session_changed() {
    let test_env = project();
    test_env.put("shop/other.py", "unknown_before()\n");
    let changed = json!({ "changed": true });
    let text = test_env.text("diagnostics", changed.clone()).await;
    assert!(text.starts_with("no problems in 0 file(s)"), "{text}");
    test_env.text("Read", json!({ "file_path": "shop/core.py" })).await;
    let edit = json!({ "file_path": "shop/core.py", "old_string": "LazyFile().", "new_string": "Lazy()." });
    test_env.text("Edit", edit).await;
    let text = test_env.text("diagnostics", changed.clone()).await;
    assert!(text.contains("1 problem(s) in 1 file(s):\nshop/core.py:8:16 error"), "{text}");
    let text = test_env.text("diagnostics", changed).await;
    assert!(text.starts_with("no problems in 0 file(s)"), "{text}");
    let text = test_env.text("diagnostics", json!({})).await;
    assert!(text.contains("shop/other.py:1:1 error"), "{text}");
}

/// A machine whose gopls is another program.
fn with_gopls(program: &str) -> (tempfile::TempDir, TestEnvironment) {
    use std::os::unix::fs::PermissionsExt;
    // Commands have a `/tmp` of their own.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), mode.clone()).unwrap();
    let top = directory.path().to_owned();
    let programs = top.join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("gopls"), program).unwrap();
    std::fs::set_permissions(programs.join("gopls"), mode).unwrap();
    let policy =
        OperatorPolicy { path: vec![programs], readable: vec![top], ..OperatorPolicy::default() };
    let test_env = TestEnvironment::with(Setting { policy, ..Setting::default() });
    test_env.put("go.mod", "module shop\n\ngo 1.19\n");
    test_env.put("main.go", "package main\n\nfunc main() { price(\"two\") }\n");
    test_env.put("price.go", "package main\n\nfunc price(n int) int { return n }\n");
    (directory, test_env)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compiler_finds_the_problems_where_a_server_cannot() {
    let (_programs, test_env) = with_gopls("#!/bin/sh\nexit 1\n");
    let answer = test_env.call("diagnostics", json!({ "path": "main.go" })).await;
    assert!(!answer.is_error, "{}", answer.text());
    let text = answer.text();
    assert!(text.starts_with("1 problem(s) in 1 file(s):\nmain.go:3:"), "{text}");
    assert!(text.contains("[by go vet"), "{text}");
    assert_eq!(answer.structured["complete"], true);
    let facts = &answer.structured["answers"]["go"];
    assert_eq!((&facts["source"], &facts["complete"]), (&json!("compiler"), &json!(true)));
    assert!(facts["as_of"].as_str().is_some(), "{facts}");
    let text = test_env.text("diagnostics", json!({})).await;
    assert!(text.starts_with("1 problem(s) in 2 file(s):\nmain.go:3:"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_has_the_time_of_the_call_and_no_more() {
    let (_programs, test_env) = with_gopls("#!/bin/sh\nexec sleep 1000\n");
    let mut options = CallOptions::new(Interface::Http);
    options.command_settings.timeout = Some(Duration::from_secs(2));
    let begun = Instant::now();
    let call = test_env.registry.call(&test_env.session, "diagnostics", object(json!({})), options);
    let answer = call.await;
    assert_eq!(answer.structured["error"]["code"], "E_LANGUAGE_SERVER", "{}", answer.text());
    // Each file alone could have 90 seconds, and this call has two.
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}
