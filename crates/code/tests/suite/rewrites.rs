//! Rewrites: replacements with metavariables, and renames.

use std::time::Duration;

use carrel_code::{
    CodeEdit, Language, RewriteError, RewriteProblem, RewrittenSource, SyntaxTree, TimeBudget,
    rewrite,
};
use pretty_assertions::assert_eq;

fn edits(json: &str) -> Vec<CodeEdit> {
    let json = if json.starts_with('[') { json.to_owned() } else { format!("[{json}]") };
    serde_json::from_str(&json).unwrap()
}

fn run(language: Language, source: &str, json: &str) -> Result<RewrittenSource, RewriteError> {
    rewrite(language, source, &edits(json), &TimeBudget::of(Duration::from_mins(1)))
}

fn rewritten(language: Language, source: &str, json: &str) -> String {
    match run(language, source, json) {
        Ok(rewritten) => rewritten.text,
        Err(error) => panic!("{json}: {error}"),
    }
}

fn replace(rule: &str, replacement: &str) -> String {
    serde_json::json!({"op": "replace", "rule": rule, "replacement": replacement}).to_string()
}

fn rename(from: &str, to: &str) -> String {
    serde_json::json!({"op": "rename", "from": from, "to": to}).to_string()
}

fn refusal(language: Language, source: &str, json: &str) -> String {
    run(language, source, json).unwrap_err().to_string()
}

#[test]
fn captures_go_into_the_replacement() {
    let source = "console.log(a);\nf(console.log(b, c));\n";
    let result = run(Language::JavaScript, source, &replace("console.log($$$A)", "log.info($$$A)"));
    let result = result.unwrap();
    assert_eq!(result.text, "log.info(a);\nf(log.info(b, c));\n");
    assert_eq!(result.operations[0].replaced, 2);
    assert_eq!(result.operations[0].matches[1].lines, (2, 2));
    for (language, source, rule, replacement, expected) in [
        (
            Language::Rust,
            "fn f() { x.unwrap_or(g()); }",
            "$A.unwrap_or($B)",
            "$A.unwrap_or_else(|| $B)",
            "fn f() { x.unwrap_or_else(|| g()); }",
        ),
        (Language::JavaScript, "let a = 1;", "let $A = $B", "const $A = $B", "const a = 1;"),
        (Language::JavaScript, "let a = 1", "let $A = $B", "const $A = $B", "const a = 1"),
        (Language::JavaScript, "f();", "f($$$A)", "g($$$A, x)", "g(x);"),
        (Language::JavaScript, "f();", "f($$$A)", "g(x, $$$A)", "g(x);"),
        (Language::JavaScript, "f(a, b,);", "f($$$A)", "g($$$A, x)", "g(a, b, x);"),
        (Language::Php, "<?php\nfoo($a);\n", "foo($A)", "bar($A, \\$B)", "<?php\nbar($a, $B);\n"),
        (
            Language::Go,
            "package a\nfunc f() { g(1) }\n",
            "g($A)",
            "g(ctx, $A)",
            "package a\nfunc f() { g(ctx, 1) }\n",
        ),
        (Language::Python, "print(a, b)\n", "print($$$A)", "log.info($$$A)", "log.info(a, b)\n"),
        (
            Language::C,
            "int f(void) { free(p); }",
            "free($A);",
            "xfree(&$A);",
            "int f(void) { xfree(&p); }",
        ),
        (
            Language::Css,
            ".a { color: red; }",
            "color: $C",
            "background: $C",
            ".a { background: red; }",
        ),
        (
            Language::Json,
            "{\"a\": [1], \"b\": 2}",
            "\"a\": $V",
            "\"c\": $V",
            "{\"c\": [1], \"b\": 2}",
        ),
        (Language::Toml, "a = 1\nb = 2\n", "a = $V", "c = $V", "c = 1\nb = 2\n"),
        (Language::Yaml, "a: 1\nb: 2\n", "a: $V", "c: $V", "c: 1\nb: 2\n"),
        (Language::Bash, "rm -rf \"$x\"\n", "rm -rf $A", "rm -r -- $A", "rm -r -- \"$x\"\n"),
        (Language::Ruby, "puts a\n", "puts $A", "p $A", "p a\n"),
        (Language::Lua, "f(1)\n", "f($A)", "g($A)", "g(1)\n"),
        (
            Language::Java,
            "class A { void f() { a.b(1); } }",
            "a.b($A)",
            "c.d($A)",
            "class A { void f() { c.d(1); } }",
        ),
        (Language::Html, "<p>x</p>", "<p>$A</p>", "<b>$A</b>", "<b>x</b>"),
    ] {
        assert_eq!(
            rewritten(language, source, &replace(rule, replacement)),
            expected,
            "{language}"
        );
    }
}

#[test]
fn lines_of_a_template_and_of_captures_are_indented() {
    let source = "\
function f() {
  if (a) {
    one();
    two(`x
y`);
  }
}
";
    let expected = "\
function f() {
  guard(() => {
    while (a) {
      one();
      two(`x
y`);
    }
  });
}
";
    let edit = replace("if ($C) { $$$B }", "guard(() => {\n  while ($C) {\n    $$$B\n  }\n});");
    assert_eq!(rewritten(Language::JavaScript, source, &edit), expected);
    let crlf = source.replace('\n', "\r\n");
    assert_eq!(rewritten(Language::JavaScript, &crlf, &edit), expected.replace('\n', "\r\n"));
    let python = "def f():\n    if a:\n        b()\n        c()\n";
    let edit = replace(
        "if $C:\n    $$$B",
        "while $C:\n    try:\n        $$$B\n    finally:\n        pass",
    );
    assert_eq!(
        rewritten(Language::Python, python, &edit),
        "def f():\n    while a:\n        try:\n            b()\n            c()\n        finally:\n            pass\n"
    );
}

#[test]
fn the_outermost_of_nested_matches_is_replaced() {
    let source = "f(f(1), f(2)); f(3);\n";
    let result = run(Language::JavaScript, source, &replace("f($$$A)", "g($$$A)")).unwrap();
    assert_eq!(result.text, "g(f(1), f(2)); g(3);\n");
    assert_eq!((result.operations[0].replaced, result.operations[0].nested), (2, 2));
}

#[test]
fn operations_follow_each_other_and_fail_together() {
    let source = "f(1);\n";
    let both = format!("[{}, {}]", replace("f($A)", "g($A)"), replace("g($A)", "h($A)"));
    assert_eq!(rewritten(Language::JavaScript, source, &both), "h(1);\n");
    let second = format!("[{}, {}]", replace("f($A)", "g($A)"), replace("f($A)", "h($A)"));
    assert_eq!(
        refusal(Language::JavaScript, source, &second),
        "operation 2: nothing matches pattern `f($A)`"
    );
}

#[test]
fn single_matches_are_chosen_by_number() {
    let source = "f(1); f(2); f(3);\n";
    let edit = r#"{"op": "replace", "rule": "f($A)", "replacement": "g($A)", "only": [3, 1]}"#;
    let result = run(Language::JavaScript, source, edit).unwrap();
    assert_eq!(result.text, "g(1); f(2); g(3);\n");
    assert_eq!((result.operations[0].matches.len(), result.operations[0].replaced), (3, 2));
    let edit = r#"{"op": "replace", "rule": "f($A)", "replacement": "g($A)", "only": [4]}"#;
    assert_eq!(
        refusal(Language::JavaScript, source, edit),
        "there is no match 4; there are 3, counted from 1"
    );
}

#[test]
fn a_region_limits_what_is_changed() {
    let source = "\
class A {
  m() { log(1); }
}
function g() { log(2); }
log(3);
";
    let within = r#"{"op": "replace", "rule": "log($A)", "replacement": "w($A)", "within": {"kind": "class_body"}}"#;
    assert_eq!(rewritten(Language::JavaScript, source, within), source.replace("log(1)", "w(1)"));
    for symbol in ["g", "A::m"] {
        let edit = format!(
            r#"{{"op": "replace", "rule": "log($A)", "replacement": "w($A)", "withinSymbol": "{symbol}"}}"#
        );
        let result = run(Language::JavaScript, source, &edit).unwrap();
        assert_eq!(result.symbols, [symbol.split("::").collect::<Vec<_>>()]);
        assert_eq!(result.operations[0].replaced, 1);
    }
    let edit = r#"{"op": "rename", "from": "log", "to": "w", "withinSymbol": "h"}"#;
    assert_eq!(refusal(Language::JavaScript, source, edit), "symbol h not found");
}

#[test]
fn a_replacement_that_cannot_be_made_is_refused() {
    let source = "f(1, 2);\n";
    for (edit, expected) in [
        (
            replace("f($A, $B)", "g($A, $C)"),
            "the replacement has `$C`, which the rule does not capture; it captures `$A`, `$B`; a literal dollar \
             sign is `\\$`",
        ),
        (replace("f($A, $B)", "g($A"), "the result did not parse: line 1 of the result: `g(1;`"),
        (replace("h($A)", "g($A)"), "nothing matches pattern `h($A)`"),
        (
            replace("f($A, $B)", "f($A, $B)"),
            "nothing would change: the new text is the same as the old",
        ),
        (
            r#"{"op": "replace", "rule": {"any": ["a", "b"]}, "replacement": "c"}"#.to_owned(),
            "nothing matches any(2)",
        ),
        ("[]".to_owned(), "there are 0 operations; between 1 and 50 are made at once"),
    ] {
        assert_eq!(refusal(Language::JavaScript, source, &edit), expected);
    }
    for json in [
        r#"{"op": "replace", "rule": "f", "replacment": "g"}"#,
        r#"{"op": "replace", "rule": "f", "replacement": "g", "witin": "h"}"#,
        r#"{"op": "rename", "from": "f", "to": "g", "rule": "h"}"#,
        r#"{"op": "remove", "from": "f"}"#,
        r#"{"from": "f", "to": "g"}"#,
    ] {
        let error = serde_json::from_str::<CodeEdit>(json).unwrap_err().to_string();
        assert!(error.contains("unknown") || error.contains("missing field"), "{json}: {error}");
    }
}

#[test]
fn a_local_is_renamed_with_its_shorthands() {
    let source = "\
import { config as other } from 'x';
export function load(config) {
  const { name, port = 1 } = config;
  start({ config, name });
  start({ ...config, port });
  return this.other.config || config.config;
}
";
    assert_eq!(
        rewritten(Language::TypeScript, source, &rename("config", "settings")),
        "\
import { config as other } from 'x';
export function load(settings) {
  const { name, port = 1 } = settings;
  start({ config: settings, name });
  start({ ...settings, port });
  return this.other.config || settings.config;
}
"
    );
    let port = rewritten(Language::TypeScript, source, &rename("port", "where"));
    assert_eq!(
        port,
        source
            .replace("port = 1", "port: where = 1")
            .replace("config, port }", "config, port: where }")
    );
    let arrow = "const f = (item) => item.item + g(item => item, { item });\n";
    assert_eq!(
        rewritten(Language::JavaScript, arrow, &rename("item", "entry")),
        "const f = (entry) => entry.item + g(entry => entry, { item: entry });\n"
    );
    let modules =
        "import { a } from 'a';\nimport b, * as c from 'b';\nexport { a, b };\na(b, c);\n";
    assert_eq!(
        rewritten(Language::JavaScript, modules, &rename("a", "x")),
        "import { a as x } from 'a';\nimport b, * as c from 'b';\nexport { x as a, b };\nx(b, c);\n"
    );
}

#[test]
fn a_member_and_a_local_of_one_name_are_told_apart() {
    let source = "\
const count = 1;
class A {
  count = 0;
  add() { this.count += count; return other.count; }
}
";
    assert_eq!(
        refusal(Language::TypeScript, source, &rename("count", "total")),
        "ambiguous: count is declared as a local at line 1 and as a member at line 3; add target `local` or `member`"
    );
    let targeted = |target: &str| {
        let edit =
            format!(r#"{{"op": "rename", "from": "count", "to": "total", "target": "{target}"}}"#);
        rewritten(Language::TypeScript, source, &edit)
    };
    assert_eq!(
        targeted("local"),
        source.replace("const count", "const total").replace("+= count", "+= total")
    );
    assert_eq!(
        targeted("member"),
        source.replace("  count = 0", "  total = 0").replace("this.count", "this.total")
    );
    let method = "class A {\n  run() { this.run(); super.run(); b.run(); }\n}\n";
    assert_eq!(
        rewritten(Language::JavaScript, method, &rename("run", "go")),
        "class A {\n  go() { this.go(); super.go(); b.run(); }\n}\n"
    );
    let private = "class A {\n  #x = 1;\n  m() { return this.#x; }\n}\n";
    assert_eq!(
        rewritten(Language::JavaScript, private, &rename("#x", "#y")),
        private.replace("#x", "#y")
    );
    let wrong = r#"{"op": "rename", "from": "run", "to": "go", "target": "local"}"#;
    assert_eq!(
        refusal(Language::JavaScript, method, wrong),
        "run is not declared as a local here; leave the target out, or widen the region"
    );
    assert_eq!(
        rewritten(Language::JavaScript, "use(x.x, x);\n", &rename("x", "y")),
        "use(y.y, y);\n"
    );
}

#[test]
fn a_rename_to_a_name_that_is_taken_is_refused() {
    let source = "function f(a) {\n  const b = 1;\n  return a + b;\n}\nfunction g(b) {}\n";
    assert_eq!(
        refusal(Language::JavaScript, source, &rename("a", "b")),
        "b is used at line 2 already, in the scope of a at line 1; choose another name"
    );
    for name in ["", "a b", "1a", "a.b", "a;b"] {
        let error = run(Language::JavaScript, source, &rename("a", name)).unwrap_err();
        assert!(matches!(error.problem, RewriteProblem::NotAName { .. }), "{name}: {error}");
    }
    assert!(refusal(Language::JavaScript, source, &rename("a", "class")).contains("did not parse"));
}

#[test]
fn names_are_renamed_exactly_in_other_languages() {
    for (language, source, edit, expected) in [
        (
            Language::Rust,
            "fn f(x: u8) -> u8 { let xx = x; S { x }.x + xx }",
            r#"{"op": "rename", "from": "x", "to": "y", "target": "local"}"#,
            "fn f(y: u8) -> u8 { let xx = y; S { x: y }.x + xx }",
        ),
        (
            Language::Python,
            "def f(x):\n    return g(x=x).x\ndef h(x):\n    return x\n",
            r#"{"op": "rename", "from": "x", "to": "y", "target": "local", "withinSymbol": "f"}"#,
            "def f(y):\n    return g(x=y).x\ndef h(x):\n    return x\n",
        ),
        (
            Language::Python,
            "def f(x):\n    return x.x\n",
            r#"{"op": "rename", "from": "x", "to": "y", "target": "member"}"#,
            "def f(x):\n    return x.y\n",
        ),
        (
            Language::Go,
            "package a\n\nfunc f(x int) int { return x + t.x }\n",
            r#"{"op": "rename", "from": "x", "to": "y"}"#,
            "package a\n\nfunc f(y int) int { return y + t.y }\n",
        ),
        (
            Language::C,
            "int f(int x) { return p->x + x; } // x\n",
            r#"{"op": "rename", "from": "x", "to": "y", "target": "local"}"#,
            "int f(int y) { return p->x + y; } // x\n",
        ),
        (
            Language::Java,
            "class A { int x; int f() { return x + \"x\"; } }",
            r#"{"op": "rename", "from": "x", "to": "y"}"#,
            "class A { int y; int f() { return y + \"x\"; } }",
        ),
        (
            Language::Ruby,
            "def f(x)\n  x + 1\nend\n",
            r#"{"op": "rename", "from": "x", "to": "y"}"#,
            "def f(y)\n  y + 1\nend\n",
        ),
        (
            Language::Php,
            "<?php function f($x) { return $x; }",
            r#"{"op": "rename", "from": "x", "to": "y"}"#,
            "<?php function f($y) { return $y; }",
        ),
    ] {
        assert_eq!(rewritten(language, source, edit), expected, "{language}: {edit}");
    }
}

/// Returns the words of a source, without comments.
fn words(language: Language, source: &str) -> Vec<String> {
    let tree = SyntaxTree::parse(language, source).unwrap();
    let mut cursor = tree.root().walk();
    let mut words = Vec::new();
    loop {
        let node = cursor.node();
        let is_word = node.child_count() == 0 && node.is_named() && !node.is_extra();
        if is_word {
            words.push(source[node.byte_range()].to_owned());
        }
        if !node.is_extra() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return words;
            }
        }
    }
}

#[test]
fn a_pattern_that_replaces_itself_loses_no_word() {
    for (source, language, patterns) in [
        (
            include_str!("../real/route.js"),
            Language::JavaScript,
            &[
                "if ($C) { $$$B }",
                "$F($$$A)",
                "function $N($$$P) { $$$B }",
                "var $A = $B",
                "$A($$$B, $C)",
                "return $$$A;",
            ][..],
        ),
        (
            include_str!("../real/Subject.ts"),
            Language::TypeScript,
            &["if ($C) { $$$B }", "$F($$$A)", "$A = $B;", "$F($A, $$$B)", "$M($$$P) { $$$B }"],
        ),
        (
            include_str!("../real/shlex.py"),
            Language::Python,
            &["if $C:\n    $$$B", "$F($$$A)", "def $N($$$P):\n    $$$B", "$A = $B", "$F($A, $$$B)"],
        ),
        (
            include_str!("../real/scan.go"),
            Language::Go,
            &["if $C { $$$B }", "$F($$$A)", "func $N($$$P) $R { $$$B }", "$A := $B", "return $$$A"],
        ),
        (
            include_str!("../real/walkdir_error.rs"),
            Language::Rust,
            &[
                "match $A { $$$B }",
                "$F($$$A)",
                "fn $N($$$P) -> $R { $$$B }",
                "impl $A for $B { $$$C }",
                "$A { $$$B }",
            ],
        ),
        (
            include_str!("../real/blake3_dispatch.c"),
            Language::C,
            &["if ($C) { $$$B }", "$F($$$A);", "$T $A = $B;", "$F($A, $$$B)"],
        ),
        (
            include_str!("../real/PluginHandle.java"),
            Language::Java,
            &[
                "if ($C) { $$$B }",
                "$O.$F($$$A)",
                "public $T $N($$$P) { $$$B }",
                "throw new $E($$$A);",
            ],
        ),
        (
            include_str!("../real/TestLogger.php"),
            Language::Php,
            &["if ($C) { $$$B }", "$F($$$A)", "public function $N($$$P) { $$$B }", "$A->$B($$$C)"],
        ),
        (
            include_str!("../real/static.rb"),
            Language::Ruby,
            &["def $N($$$P)\n  $$$B\nend", "$F($$$A)", "$A = $B"],
        ),
        (
            include_str!("../real/Set.lua"),
            Language::Lua,
            &["$F($$$A)", "for $A in $B do $$$C end", "function $N($$$P) $$$B end", "return $$$A"],
        ),
        (
            include_str!("../real/bootstrap-reboot.css"),
            Language::Css,
            &["color: $A", "$S { $$$B }"],
        ),
        (
            include_str!("../real/capacitor.json"),
            Language::Json,
            &["{$$$A}", "[$$$A]", "\"type\": $V"],
        ),
        (include_str!("../real/walkdir.toml"), Language::Toml, &["name = $V", "[$$$A]"]),
    ] {
        for pattern in patterns {
            let edit = replace(pattern, pattern);
            match run(language, source, &edit) {
                Ok(rewritten) => {
                    let (before, after) =
                        (words(language, source), words(language, &rewritten.text));
                    assert_eq!(before, after, "{language}: {pattern}");
                }
                Err(RewriteError { problem: RewriteProblem::NoChange, .. }) => {}
                Err(error) => panic!("{language}: {pattern}: {error}"),
            }
        }
    }
}

#[test]
fn what_follows_a_comment_of_a_list_begins_a_new_line() {
    let source = "if (a) {\n  b(); // note\n}\n";
    assert_eq!(
        rewritten(
            Language::JavaScript,
            source,
            &replace("if ($C) { $$$B }", "while ($C) { $$$B }")
        ),
        "while (a) { b(); // note\n}\n"
    );
    let source = "f(() => { g() /* x */ }) || h;\nlambda = 1;\n";
    assert_eq!(
        rewritten(Language::JavaScript, source, &replace("() => { $$$B }", "function () { $$$B }")),
        "f(function () { g() /* x */ }) || h;\nlambda = 1;\n"
    );
}

#[test]
fn a_match_that_would_leave_a_part_behind_is_none() {
    let edit = replace("lambda $$$P: $B", "f($$$P, $B)");
    assert_eq!(
        refusal(Language::Python, "lambda x: x[1]\n", &edit),
        "nothing matches pattern `lambda $$$P: $B`"
    );
    let source = "void f(void) {\n  {\n#if A\n    a();\n#endif\n  }\n}\n";
    let edit =
        r#"{"op": "replace", "rule": "{$$$A}", "replacement": "{$$$A}", "within": "{ { $$$B } }"}"#;
    assert_eq!(
        run(Language::C, source, edit).unwrap().text,
        "void f(void) {{\n#if A\n  a();\n#endif\n}}\n"
    );
}
