//! Code intelligence: outlines, symbols by name, definitions, references, search and maps.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{Setting, TestEnvironment};
use crate::verify::machine;

/// The end of the first answer that a language server could give.
const NO_SERVER: &str = "[by name alone: no language server for python is installed; install one of these where \
     commands find it, or in the project: ty (pip install ty), or basedpyright (pip install basedpyright)]\n";

const UTILS: &str = "\
import sys


def echo(message, err=False):
    \"\"\"Prints a message to the terminal.\"\"\"
    stream = sys.stderr if err else sys.stdout
    stream.write(message)


class LazyFile:
    def __init__(self, name):
        self.name = name

    def open(self):
        return open(self.name)
";

const CORE: &str = "\
from .utils import echo


class Context:
    # echo in a comment is no use
    def fail(self, message):
        echo(message, err=True)

    def open(self):
        echo(\"echo\")
";

/// A project on a machine without language servers.
fn project() -> TestEnvironment {
    with_project(machine::bare())
}

fn with_project(test_env: TestEnvironment) -> TestEnvironment {
    test_env.put("src/click/utils.py", UTILS);
    test_env.put("src/click/core.py", CORE);
    test_env
}

#[tokio::test]
async fn an_outline_of_a_file_has_its_symbols_with_lines_and_signatures() {
    let test_env = project();
    assert_eq!(
        test_env.text("outline", json!({ "path": "src/click/utils.py" })).await,
        "src/click/utils.py (15 lines)\n\
         4-7 def echo(message, err=False)\n\
         10-15 class LazyFile\n  \
           11-12 def __init__(self, name)\n  \
           14-15 def open(self)\n"
    );
}

#[tokio::test]
async fn an_outline_of_a_directory_names_the_top_symbols_of_each_file() {
    let test_env = project();
    test_env.put("README.md", "# Click\n");
    assert_eq!(
        test_env.text("outline", json!({})).await,
        "README.md\nsrc/click/core.py: Context:4\nsrc/click/utils.py: echo:4 LazyFile:10\n"
    );
    let small = json!({ "max_bytes": 1000, "path": "src" });
    for n in 0..100 {
        test_env.put(&format!("src/many/file{n}.py"), "def one(): pass\n");
    }
    let text = test_env.text("outline", small).await;
    assert!(text.len() < 1300, "{text}");
    assert!(text.contains("src/click/core.py 3\n"), "{text}");
    assert!(text.contains("more files]"), "{text}");
}

#[tokio::test]
async fn an_outline_of_a_long_file_is_briefer_inside_of_symbols_and_then_leaves_that_out() {
    let test_env = TestEnvironment::new();
    let class = |n: usize| format!("class C{n}:\n    def method(self):\n        pass\n\n");
    test_env.put("long.py", (0..60).map(class).collect::<String>());
    let text = test_env.text("outline", json!({ "path": "long.py", "max_bytes": 2600 })).await;
    assert!(text.ends_with("237-239 class C59\n  method:238\n"), "{text}");
    let text = test_env.text("outline", json!({ "path": "long.py", "max_bytes": 1500 })).await;
    assert!(text.contains("237-239 class C59\n"), "{text}");
    assert!(!text.contains("def method"), "{text}");
    assert!(text.ends_with("[60 more; max_bytes, or read_symbol for one of these]\n"), "{text}");
}

#[tokio::test]
async fn a_symbol_is_read_by_its_name_path_wherever_it_is() {
    let test_env = project();
    let expected =
        "src/click/utils.py:14-15\n14\t    def open(self):\n15\t        return open(self.name)\n";
    for symbol in
        ["LazyFile.open", "LazyFile::open", "click.utils.LazyFile.open", "utils/LazyFile/open"]
    {
        assert_eq!(
            test_env.text("read_symbol", json!({ "symbol": symbol })).await,
            expected,
            "{symbol}"
        );
    }
    let in_file = json!({ "symbol": "open", "file_path": "src/click/utils.py" });
    assert_eq!(test_env.text("read_symbol", in_file).await, expected);
    let both = test_env.text("read_symbol", json!({ "symbol": "open" })).await;
    assert!(
        both.contains("src/click/core.py:9-10\n") && both.contains("src/click/utils.py:14-15\n"),
        "{both}"
    );
}

#[tokio::test]
async fn a_symbol_that_is_not_there_is_refused_with_near_names() {
    let test_env = project();
    let (code, text) = test_env.refusal("read_symbol", json!({ "symbol": "LazyFil" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_SYMBOL_NOT_FOUND", "LazyFil is not defined; there is LazyFile")
    );
    let (_, text) = test_env.refusal("read_symbol", json!({ "symbol": "Context.echo" })).await;
    assert_eq!(text, "Context::echo is not defined; there is echo");
    let elsewhere = json!({ "symbol": "echo", "file_path": "src/click/core.py" });
    let (_, text) = test_env.refusal("read_symbol", elsewhere).await;
    assert_eq!(text, "echo is not defined in src/click/core.py, but in src/click/utils.py:4");
    let (code, _) = test_env.refusal("read_symbol", json!({ "symbol": "()" })).await;
    assert_eq!(code, "E_INVALID_ARGUMENTS");
}

#[tokio::test]
async fn a_long_symbol_that_is_defined_twice_is_chosen_by_the_caller() {
    let test_env = TestEnvironment::new();
    let long = format!("def run():\n{}", "    step()\n".repeat(50));
    test_env.put("a.py", &long);
    test_env.put("b.py", &long);
    let (code, text) = test_env.refusal("read_symbol", json!({ "symbol": "run" })).await;
    assert_eq!(code, "E_SYMBOL_AMBIGUOUS");
    assert_eq!(
        text,
        "run is defined 2 times; give more of its path, or file_path and line:\n\
         a.py:1 function run\nb.py:1 function run"
    );
}

#[tokio::test]
async fn of_overloads_the_longest_is_shown_with_the_lines_of_the_others() {
    let test_env = TestEnvironment::new();
    let stub = "    @t.overload\n    def run(self, x: int) -> int: ...\n\n";
    let body = "    def run(self, x):\n        return x\n";
    test_env.put("a.py", format!("class A:\n{stub}{stub}{body}"));
    assert_eq!(
        test_env.text("read_symbol", json!({ "symbol": "A.run" })).await,
        "a.py:8-9\n8\t    def run(self, x):\n9\t        return x\n[overloads at lines 3, 6]\n"
    );
}

#[tokio::test]
async fn reading_a_symbol_or_an_outline_allows_an_edit_of_the_file() {
    for (tool, arguments) in [
        ("read_symbol", json!({ "symbol": "echo" })),
        ("outline", json!({ "path": "src/click/utils.py" })),
        ("find_references", json!({ "symbol": "echo" })),
        ("find_definition", json!({ "symbol": "echo" })),
        ("search_code", json!({ "query": "echo" })),
    ] {
        let test_env = project();
        let edit = json!({
            "file_path": "src/click/utils.py", "old_string": "err=False", "new_string": "err=True",
        });
        test_env.text(tool, arguments).await;
        let edited = test_env.call("Edit", edit).await;
        assert!(!edited.is_error, "{tool}: {}", edited.text());
        let (code, _) = test_env
            .refusal("Write", json!({ "file_path": "src/click/core.py", "content": "" }))
            .await;
        assert_eq!(code, "E_NOT_READ", "Write needs all of a file");
    }
}

#[tokio::test]
async fn definitions_are_found_by_name_and_by_the_place_of_a_use() {
    let test_env = project();
    assert_eq!(
        test_env.text("find_definition", json!({ "symbol": "echo" })).await,
        "Found 1 definition(s) for echo:\n  \
         1. src/click/utils.py:4:5  def echo(message, err=False):\n"
    );
    let place = json!({ "file_path": "src/click/core.py", "line": 7, "col": 9 });
    assert_eq!(
        test_env.text("find_definition", place.clone()).await,
        "Found 1 definition(s) for symbol at src/click/core.py:7:9:\n  \
         1. src/click/utils.py:4:5  def echo(message, err=False):\n"
            .to_owned()
            + NO_SERVER
    );
    let again = test_env.text("find_definition", place).await;
    assert!(again.ends_with("err=False):\n[by name alone]\n"), "the reason is said once: {again}");
    let unknown = json!({ "file_path": "src/click/core.py", "line": 7, "col": 19 });
    let text = test_env.text("find_definition", unknown).await;
    assert_eq!(
        text, "no definition found at src/click/core.py:7:19\n[by name alone]\n",
        "a parameter is no symbol"
    );
    for (arguments, message) in [
        (json!({}), "file_path is required, or symbol"),
        (json!({ "file_path": "src/click/core.py" }), "line is required (1-based)"),
        (json!({ "file_path": "src/click/core.py", "line": 1 }), "col is required (1-based)"),
    ] {
        assert_eq!(test_env.refusal("find_definition", arguments).await.1, message);
    }
    let nowhere = json!({ "file_path": "src/click/core.py", "line": 2, "col": 1 });
    assert_eq!(test_env.refusal("find_definition", nowhere).await.0, "E_SYMBOL_NOT_FOUND");
    let beyond = json!({ "file_path": "src/click/core.py", "line": 99, "col": 1 });
    assert_eq!(test_env.refusal("find_definition", beyond).await.0, "E_INVALID_RANGE");
}

#[tokio::test]
async fn references_are_grouped_by_file_with_the_symbol_around_them() {
    let test_env = project();
    assert_eq!(
        test_env.text("find_references", json!({ "symbol": "echo" })).await,
        "Found 4 reference(s) for echo:\n\
         src/click/core.py\n  \
         1 (top level): from .utils import echo\n  \
         7 Context::fail: echo(message, err=True)\n  \
         10 Context::open: echo(\"echo\")\n\
         src/click/utils.py\n  \
         4 (definition): def echo(message, err=False):\n"
            .to_owned()
            + NO_SERVER
    );
}

#[tokio::test]
async fn an_answer_knows_every_write_however_it_was_made() {
    let test_env = with_project(TestEnvironment::new());
    let references = json!({ "symbol": "echo", "by_name": true });
    test_env.text("find_references", references.clone()).await;
    // As an editor or another program would.
    test_env.put("src/click/more.py", "from .utils import echo\n");
    let text = test_env.text("find_references", references.clone()).await;
    assert!(text.starts_with("Found 5 reference(s)"), "{text}");
    let moved = json!({ "command": "mv src/click/more.py src/click/most.py && sed -i 's/echo/shout/' src/click/core.py" });
    test_env.text("Bash", moved).await;
    let text = test_env.text("find_references", references.clone()).await;
    assert!(text.contains("src/click/most.py") && !text.contains("more.py"), "{text}");
    let edit =
        json!({ "file_path": "src/click/most.py", "old_string": "echo", "new_string": "shout" });
    test_env.text("Edit", edit).await;
    let text =
        test_env.text("find_references", json!({ "symbol": "shout", "by_name": true })).await;
    assert!(text.contains("src/click/most.py"), "{text}");
}

#[tokio::test]
async fn a_search_answers_with_places_and_says_what_it_left_out() {
    let test_env = project();
    test_env.put("latin.py", b"def echo(): '\xe9'\n");
    let text = test_env.text("search_code", json!({ "query": "print to the terminal" })).await;
    assert_eq!(
        text,
        "1 results for \"print to the terminal\":\n\
         1. src/click/utils.py:4-7 def echo(message, err=False)\n\
         [incomplete: left out: latin.py (not UTF-8)]\n"
    );
    let answer = test_env.call("search_code", json!({ "query": "open", "kind": "method" })).await;
    assert_eq!(answer.structured["hits"][0]["symbol"], "LazyFile::open");
    assert_eq!(answer.structured["complete"], false);
    assert_eq!(answer.structured["source"], "syntactic");
    let text = test_env.text("search_code", json!({ "query": "zebra" })).await;
    assert!(text.starts_with("no results for \"zebra\""), "{text}");
    let (code, text) =
        test_env.refusal("search_code", json!({ "query": "a", "kind": "thing" })).await;
    assert_eq!(code, "E_INVALID_ARGUMENTS");
    assert!(text.starts_with("no kind \"thing\"; one of module, class"), "{text}");
    assert_eq!(
        test_env.refusal("search_code", json!({ "query": " " })).await.1,
        "query is required"
    );
}

#[tokio::test]
async fn a_map_has_the_symbols_that_other_files_use() {
    let test_env = project();
    let text = test_env.text("repo_map", json!({})).await;
    assert_eq!(text, "src/click/utils.py\n  4 def echo(message, err=False)\n");
    let (code, _) = test_env.refusal("repo_map", json!({ "files": ["gone.py"] })).await;
    assert_eq!(code, "E_NOT_FOUND");
}

#[tokio::test]
async fn files_without_a_grammar_and_paths_outside_are_refused() {
    let test_env = project();
    test_env.put("notes.txt", "echo\n");
    let (code, _) = test_env.refusal("outline", json!({ "path": "notes.txt" })).await;
    assert_eq!(code, "E_UNSUPPORTED_LANGUAGE");
    for path in ["/etc/passwd", "../other"] {
        let (code, _) = test_env.refusal("outline", json!({ "path": path })).await;
        assert_eq!(code, "E_SANDBOX_VIOLATION", "{path}");
    }
    let (code, _) = test_env.refusal("outline", json!({ "path": "gone.py" })).await;
    assert_eq!(code, "E_NOT_FOUND");
}

#[tokio::test]
async fn each_workspace_has_an_index_of_its_own() {
    let setting = Setting { names: &["main", "other"], ..Setting::default() };
    let test_env = TestEnvironment::with(setting);
    test_env.put("a.py", "def here(): pass\n");
    std::fs::write(test_env.path("other/b.py"), "def there(): pass\n").unwrap();
    let find = |workspace: &str, symbol: &str| {
        let arguments = json!({ "workspace": workspace, "symbol": symbol });
        test_env.call("find_definition", arguments)
    };
    assert!(!find("main", "here").await.is_error);
    assert!(!find("other", "there").await.is_error);
    assert!(find("main", "there").await.is_error);
    assert!(find("other", "here").await.is_error);
}

#[tokio::test]
async fn a_kept_index_is_read_by_the_next_server() {
    let test_env = TestEnvironment::new();
    for n in 0..40 {
        test_env.put(&format!("f{n}.py"), format!("def f{n}(): pass\n"));
    }
    test_env.text("find_definition", json!({ "symbol": "f7" })).await;
    let kept = std::fs::read_dir(test_env.path("state/symbols")).unwrap().count();
    assert_eq!(kept, 1);
    let again = test_env.restarted(Setting::default());
    again.put("f7.py", "def other(): pass\n");
    assert!(again.call("find_definition", json!({ "symbol": "f7" })).await.is_error);
    assert!(!again.call("find_definition", json!({ "symbol": "f8" })).await.is_error);
}

#[tokio::test]
async fn an_outline_says_which_files_have_syntax_errors() {
    let test_env = TestEnvironment::new();
    test_env.put("good.py", "def good():\n    pass\n");
    test_env.put("bad.py", "def bad(:\n    pass\n\ndef after():\n    pass\n");
    let answer = test_env.call("outline", json!({ "path": "bad.py" })).await;
    assert!(
        answer.text().contains("[syntax errors: symbols may be missing]\n"),
        "{}",
        answer.text()
    );
    assert_eq!(answer.structured["with_errors"], json!(["bad.py"]));
    let answer = test_env.call("outline", json!({ "path": "good.py" })).await;
    assert!(!answer.text().contains("syntax errors"), "{}", answer.text());
    assert_eq!(answer.structured["with_errors"], json!([]));
    let answer = test_env.call("outline", json!({})).await;
    assert!(
        answer.text().contains("[syntax errors, symbols may be missing: bad.py]"),
        "{}",
        answer.text()
    );
    assert_eq!(answer.structured["with_errors"], json!(["bad.py"]));
}

#[tokio::test]
async fn a_language_without_its_grammar_is_an_error_that_names_the_feature() {
    let test_env = TestEnvironment::new();
    test_env.put("a.kt", "fun main() {}\n");
    test_env.put("a.rs", "fn main() {}\n");
    if carrel_code::Language::Kotlin.grammar().is_ok() {
        return;
    }
    for (tool, arguments) in [
        ("outline", json!({ "path": "a.kt" })),
        ("code_scan", json!({ "pattern": "fun $A() {}", "path": "a.kt" })),
        ("code_scan", json!({ "pattern": "fun $A() {}", "language": "kotlin" })),
    ] {
        let (code, text) = test_env.refusal(tool, arguments).await;
        assert_ne!(code, "E_INTERNAL", "{text}");
        assert!(text.contains("grammar"), "{tool}: {text}");
    }
    // The file of the other language is found nevertheless, and the one that is left out is named.
    let answer = test_env.call("search_code", json!({ "query": "main" })).await;
    assert!(answer.text().contains("a.rs:1"), "{}", answer.text());
    assert!(answer.text().contains("a.kt (this build has no grammar for it)"), "{}", answer.text());
}
