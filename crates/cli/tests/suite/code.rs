//! `carrel code`: every command on a small project in Go, for people and as JSON, with the real gopls.

use std::process::Output;

use pretty_assertions::assert_eq;
use rustix::fs::OFlags;
use serde_json::Value;

use crate::terminal::Terminal;
use crate::test_environment::TestEnvironment;

const SHAPES: &str = "\
package shapes

// Shape has an area.
type Shape interface {
\tArea() int
}

// Square is a shape.
type Square struct {
\tside int
}

// Area returns the area of a square.
func (s Square) Area() int {
\treturn s.side * s.side
}
";

const TOTAL: &str = "\
package shapes

// Total adds the areas of shapes.
func Total(all []Shape) int {
\tsum := 0
\tfor _, one := range all {
\t\tsum += one.Area()
\t}
\treturn sum
}
";

const USER: &str = "\
package shapes

func twice(all []Shape) int {
\treturn 2 * Total(all)
}
";

fn project() -> TestEnvironment {
    let test_env = TestEnvironment::usual();
    test_env.write("go.mod", "module example.com/shapes\n\ngo 1.19\n");
    test_env.write("shapes.go", SHAPES);
    test_env.write("total.go", TOTAL);
    test_env.write("user.go", USER);
    test_env
}

fn code(test_env: &TestEnvironment, arguments: &[&str]) -> Output {
    let mut command = test_env.carrel();
    command.arg("code").args(arguments).arg("--workspace").arg(test_env.workspace());
    command.output().unwrap()
}

/// Commands, with a part of their answers.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["outline", "shapes.go"], "13-16 func (s Square) Area() int"),
    (&["outline", "shapes.go", "--max-bytes", "1000"], "8-11 type Square"),
    (&["read", "Square.Area"], "return s.side * s.side"),
    (&["def", "Total"], "total.go:4"),
    (&["def", "user.go:4:15"], "total.go:4:6"),
    (&["refs", "Total"], "user.go\n  4 twice: return 2 * Total(all)"),
    (&["refs", "Total", "--max-bytes", "1000"], "user.go"),
    (&["impls", "Shape"], "shapes.go:9:6"),
    (&["hover", "Total"], "func Total(all []Shape) int"),
    (&["diag"], "no problems in 3 file(s)"),
    (&["diag", "user.go"], "no problems in 1 file(s)"),
    (&["scan", "$A * $A", "--language", "go"], "shapes.go:15:[Square::Area] s.side * s.side"),
    (&["scan", "2 * $A", "--replace", "$A * 2", "--dry-run"], "+\treturn Total(all) * 2"),
    (&["search", "adds", "areas"], "total.go:4"),
    (&["search", "area", "--kind", "method", "--path", "shapes.go", "--limit", "1"], "1 results"),
    (&["map"], "Shape"),
    (&["map", "user.go", "--max-bytes", "1000"], "Total"),
    (&["rename", "Total", "Sum", "--dry-run"], "would touch 2 file(s)"),
];

#[test]
fn every_command_answers_people_and_programs() {
    let test_env = project();
    for (arguments, expected) in COMMANDS {
        let output = code(&test_env, arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}{text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert!(!text.contains('\u{1b}'), "colours without a terminal: {text}");
        let as_json: Vec<_> = arguments.iter().copied().chain(["--json"]).collect();
        let output = code(&test_env, &as_json);
        assert!(output.status.success(), "{as_json:?}: {output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["is_error"], false, "{answer}");
        assert!(answer["content"].as_str().unwrap().contains(expected), "{as_json:?}: {answer}");
        assert!(answer["structured"].is_object(), "{answer}");
    }
    let unchanged = std::fs::read_to_string(test_env.workspace().join("user.go")).unwrap();
    assert_eq!(unchanged, USER);
}

#[test]
fn an_answer_has_colours_on_a_terminal_and_nowhere_else() {
    let test_env = project();
    let arguments = ["code", "outline", "shapes.go", "--workspace"];
    let shown = |variable: (&str, &str)| {
        let terminal = Terminal::new();
        let mut command = test_env.carrel();
        command.args(arguments).arg(test_env.workspace()).env("TERM", "xterm");
        command.env(variable.0, variable.1).stdout(terminal.side_of_programs(OFlags::RDWR));
        let status = command.status().unwrap();
        // It has the other side of the terminal.
        drop(command);
        assert!(status.success(), "{status}");
        terminal.read_all().replace("\r\n", "\n")
    };
    let piped = String::from_utf8(code(&test_env, &["outline", "shapes.go"]).stdout).unwrap();
    let coloured = shown(("LANG", "C"));
    assert!(coloured.contains("\u{1b}[32m13-16\u{1b}[0m func (s Square) Area() int"), "{coloured}");
    assert_eq!(console::strip_ansi_codes(&coloured), piped);
    for none in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert_eq!(shown(none), piped, "{none:?}");
    }
}

#[test]
fn a_rename_and_a_rewrite_change_the_files() {
    let test_env = project();
    let read = |name: &str| std::fs::read_to_string(test_env.workspace().join(name)).unwrap();
    let output = code(&test_env, &["rename", "Total", "Sum"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read("user.go"), USER.replace("Total", "Sum"));
    assert!(read("total.go").contains("func Sum(all []Shape) int {"));
    // A rewrite is refused until the caller has seen the lines that it changes, which a dry run shows.
    let rewrite = ["scan", "2 * $A", "--replace", "$A * 2", "--language", "go"];
    let dry: Vec<_> = rewrite.iter().copied().chain(["--dry-run"]).collect();
    assert!(code(&test_env, &dry).status.success());
    let output = code(&test_env, &rewrite);
    assert!(output.status.success(), "{output:?}");
    assert!(read("user.go").contains("return Sum(all) * 2"));
}

#[test]
fn a_command_has_no_option_that_its_tool_refuses_and_fails_with_a_reason() {
    let test_env = project();
    for command in [
        &["def", "Total"][..],
        &["impls", "Shape"],
        &["hover", "Total"],
        &["diag"],
        &["search", "area"],
    ] {
        let limited: Vec<_> = command.iter().copied().chain(["--max-bytes", "1000"]).collect();
        let output = code(&test_env, &limited);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("unexpected argument '--max-bytes'"), "{limited:?}: {errors}");
    }
    let output = code(&test_env, &["read", "Nothing"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("[E_SYMBOL_NOT_FOUND]"), "{output:?}");
    let output = code(&test_env, &["read", "Nothing", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["structured"]["error"]["code"], "E_SYMBOL_NOT_FOUND", "{answer}");
}
