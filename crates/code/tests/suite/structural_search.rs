//! Structural search in every language: patterns, rules, captures and bounds.

use std::time::Duration;

use carrel_code::{
    CodeSearch, Constraints, Language, ParsedSource, Rule, RuleError, SearchError, TimeBudget,
};
use pretty_assertions::assert_eq;

fn budget() -> TimeBudget<'static> {
    TimeBudget::of(Duration::from_mins(1))
}

pub(crate) fn compile(language: Language, pattern: &str) -> Result<CodeSearch, RuleError> {
    CodeSearch::compile(language, &Rule::pattern(pattern), &Constraints::new())
}

fn compile_rule(language: Language, json: &str) -> Result<CodeSearch, RuleError> {
    CodeSearch::compile(language, &serde_json::from_str(json).unwrap(), &Constraints::new())
}

/// Returns `line text {captures}` for each match.
pub(crate) fn found_with(search: &CodeSearch, source: &str) -> Vec<String> {
    let parsed = ParsedSource::parse(search.language(), source).unwrap();
    let result = search.run(&parsed, &budget()).unwrap();
    let line = |found: &carrel_code::CodeMatch| {
        let text = source[found.range.clone()].lines().next().unwrap();
        let captures = found.captures.iter().map(|capture| {
            let dollars = if capture.is_variadic { "$$$" } else { "$" };
            format!("{dollars}{}={}", capture.name, capture.text(source))
        });
        let captures: Vec<_> = captures.collect();
        format!("{} {text} {{{}}}", found.lines.0, captures.join(", "))
    };
    result.matches.iter().map(line).collect()
}

fn found(language: Language, json: &str, source: &str) -> Vec<String> {
    match compile_rule(language, json) {
        Ok(search) => found_with(&search, source),
        Err(error) => panic!("{language}: {json}: {error}"),
    }
}

/// A source, a pattern of its language and the one match.
const PATTERNS: &[(Language, &str, &str, &str)] = &[
    (
        Language::Rust,
        "fn f() { x.unwrap_or(1); y.unwrap(); }",
        "$A.unwrap_or($B)",
        "1 x.unwrap_or(1) {$A=x, $B=1}",
    ),
    (Language::Rust, "fn f() { let a = 1; }", "let $A = $B;", "1 let a = 1; {$A=a, $B=1}"),
    (
        Language::Rust,
        "impl T { pub fn f(&self) -> u8 { 1 } }",
        "pub fn $F($$$P) -> $R { $$$B }",
        "1 pub fn f(&self) -> u8 { 1 } {$$$B=1, $F=f, $$$P=&self, $R=u8}",
    ),
    (
        Language::Rust,
        "fn f() { match x { Some(a) => a, _ => b } }",
        "Some($A) => $B,",
        "1 Some(a) => a, {$A=a, $B=a}",
    ),
    (
        Language::Rust,
        "fn f() { println!(\"{}\", a); }",
        "println!($$$A)",
        "1 println!(\"{}\", a) {$$$A=\"{}\", a}",
    ),
    (
        Language::Go,
        "package a\nfunc f() { fmt.Println(a, b) }\n",
        "fmt.Println($$$A)",
        "2 fmt.Println(a, b) {$$$A=a, b}",
    ),
    (
        Language::Go,
        "package a\nfunc f() {\n\tif err != nil {\n\t\treturn err\n\t}\n}\n",
        "if err != nil { $$$B }",
        "3 if err != nil { {$$$B=return err}",
    ),
    (
        Language::Go,
        "package a\nfunc (t *T) M(x int) error { return nil }\n",
        "func ($R) $M($$$P) error { $$$B }",
        "2 func (t *T) M(x int) error { return nil } {$$$B=return nil, $M=M, $$$P=x int, $R=t *T}",
    ),
    (Language::Python, "def f():\n    print(a, b)\n", "print($$$A)", "2 print(a, b) {$$$A=a, b}"),
    (
        Language::Python,
        "x = [i for i in y]\n",
        "[$A for $A in $B]",
        "1 [i for i in y] {$A=i, $B=y}",
    ),
    (
        Language::Python,
        "try:\n    a()\nexcept E:\n    pass\n",
        "try:\n    $$$A\nexcept $E:\n    pass",
        "1 try: {$$$A=a(), $E=E}",
    ),
    (
        Language::JavaScript,
        "const a = require('b');\n",
        "const $A = require($B)",
        "1 const a = require('b'); {$A=a, $B='b'}",
    ),
    (
        Language::JavaScript,
        "class A { m() { return this.x; } }",
        "m() { return $A }",
        "1 m() { return this.x; } {$A=this.x}",
    ),
    (Language::TypeScript, "let a: string = b as any;", "$A as any", "1 b as any {$A=b}"),
    (
        Language::Tsx,
        "const a = <B c={d}>x</B>;",
        "<B c={$D}>$$$C</B>",
        "1 <B c={d}>x</B> {$$$C=x, $D=d}",
    ),
    (
        Language::Java,
        "class A { void f() { log.info(\"a\", b); } }",
        "log.info($$$A)",
        "1 log.info(\"a\", b) {$$$A=\"a\", b}",
    ),
    (
        Language::Java,
        "class A { void f() { if (x) { a(); b(); } } }",
        "if ($C) { $$$B }",
        "1 if (x) { a(); b(); } {$$$B=a(); b();, $C=x}",
    ),
    (Language::C, "int f(void) { free(p); return g(1); }", "free($A);", "1 free(p); {$A=p}"),
    (Language::C, "int f(void) { int *a = malloc(1); }", "malloc($A)", "1 malloc(1) {$A=1}"),
    (
        Language::C,
        "int f(void) { if (a) { b(); c(); } }",
        "if ($A) { $$$B }",
        "1 if (a) { b(); c(); } {$A=a, $$$B=b(); c();}",
    ),
    (
        Language::C,
        "static int f(int a, char *b) { return 0; }",
        "static int $F($$$P) { $$$B }",
        "1 static int f(int a, char *b) { return 0; } {$$$B=return 0;, $F=f, $$$P=int a, char *b}",
    ),
    (
        Language::Cpp,
        "void f() { std::vector<int> v = g<int>(a); }",
        "std::vector<$T> $V = $E;",
        "1 std::vector<int> v = g<int>(a); {$E=g<int>(a), $T=int, $V=v}",
    ),
    (Language::Php, "<?php\nfoo($a, 1);\n", "foo($A, $B)", "2 foo($a, 1) {$A=$a, $B=1}"),
    (
        Language::Php,
        "<?php\nfunction f() { $x = 1; return $x; }\n",
        "return $A;",
        "2 return $x; {$A=$x}",
    ),
    (Language::Ruby, "def m(a)\n  puts a, 1\nend\n", "puts $A, $B", "2 puts a, 1 {$A=a, $B=1}"),
    (
        Language::Ruby,
        "x.each do |y|\n  z\nend\n",
        "$A.each do |$B|\n  $$$C\nend",
        "1 x.each do |y| {$A=x, $B=y, $$$C=z}",
    ),
    (Language::Lua, "local a = f(1, 2)\n", "f($$$A)", "1 f(1, 2) {$$$A=1, 2}"),
    (Language::Bash, "rm -rf \"$x\"\n", "rm -rf $A", "1 rm -rf \"$x\" {$A=\"$x\"}"),
    (Language::Css, ".a { color: red; top: 0 }", "color: $C", "1 color: red; {$C=red}"),
    (Language::Html, "<div><p>x</p></div>", "<p>$A</p>", "1 <p>x</p> {$A=x}"),
    (
        Language::Json,
        "{\"a\": [1, 2], \"b\": {\"c\": true}}",
        "{\"c\": $A}",
        "1 {\"c\": true} {$A=true}",
    ),
    (Language::Json, "{\"a\": [1, 2]}", "\"a\": $V", "1 \"a\": [1, 2] {$V=[1, 2]}"),
    (Language::Json, "{\"a\": [1, 2]}", "[$$$A]", "1 [1, 2] {$$$A=1, 2}"),
    (Language::Yaml, "a:\n  b: [1]\nc: d\n", "c: $V", "3 c: d {$V=d}"),
    (Language::Yaml, "a:\n  b: 1\n", "$K: 1", "2 b: 1 {$K=b}"),
    (Language::Toml, "[a]\nb = [1]\n", "b = $V", "2 b = [1] {$V=[1]}"),
    (
        Language::Rust,
        "fn f() { match x { A => 1, B => 2 } }",
        "match $A { $$$B }",
        "1 match x { A => 1, B => 2 } {$A=x, $$$B=A => 1, B => 2}",
    ),
    (
        Language::Rust,
        "struct S { a: u8, b: u8 }",
        "struct $A { $$$B }",
        "1 struct S { a: u8, b: u8 } {$A=S, $$$B=a: u8, b: u8}",
    ),
    (
        Language::Css,
        ".a { color: red; top: 0 }",
        ".$A { $$$B }",
        "1 .a { color: red; top: 0 } {$A=a, $$$B=color: red; top: 0}",
    ),
    (
        Language::Php,
        "<?php class A { public function m($a, $b) { return 1; } }",
        "public function $M($$$P) { $$$B }",
        "1 public function m($a, $b) { return 1; } {$$$B=return 1;, $M=m, $$$P=$a, $b}",
    ),
    (Language::Php, "<?php $a->b(1, 2);", "$A->$B($$$C)", "1 $a->b(1, 2) {$A=$a, $B=b, $$$C=1, 2}"),
    (
        Language::Ruby,
        "class A < B\n  def c; end\nend\n",
        "class $A < $B\n  $$$C\nend",
        "1 class A < B {$A=A, $B=B, $$$C=def c; end}",
    ),
    (
        Language::Lua,
        "if a then b() end\n",
        "if $A then $$$B end",
        "1 if a then b() end {$A=a, $$$B=b()}",
    ),
    (Language::Bash, "f() {\n  a\n}\n", "$F() { $$$B; }", "1 f() { {$$$B=a, $F=f}"),
    (
        Language::Java,
        "class A { private int x = 1; }",
        "private int $X = $V;",
        "1 private int x = 1; {$V=1, $X=x}",
    ),
    (
        Language::TypeScript,
        "@Component({a: 1}) class X {}",
        "@Component($A)",
        "1 @Component({a: 1}) {$A={a: 1}}",
    ),
    (
        Language::Json,
        "{\"b\": 1, \"c\": 2}",
        "{\"b\": $A, $$$R}",
        "1 {\"b\": 1, \"c\": 2} {$A=1, $$$R=\"c\": 2}",
    ),
    (Language::Toml, "[a]\nb = 1\nc = 2\n", "[a]\n$$$C", "1 [a] {$$$C=b = 1\nc = 2}"),
    (Language::Markdown, "- a\n- b\n", "- a", "1 - a {}"),
    (Language::Toml, "a = [1, 2]\n[b]\nc = 1\n", "[$$$A]", "1 [1, 2] {$$$A=1, 2}"),
];

#[test]
fn a_pattern_is_found_in_every_language() {
    let mut failures = Vec::new();
    for (language, source, pattern, expected) in PATTERNS {
        let found = match compile(*language, pattern) {
            Ok(search) => found_with(&search, source),
            Err(error) => vec![error.to_string()],
        };
        if found != [*expected] {
            failures.push(format!("{language}: {pattern}: {found:#?}, not {expected}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

const SCRIPT: &str = "\
class Store {
  #items = [];
  add(item) {
    if (item) {
      this.items.push(item);
    }
    log.info('added', item);
  }
}
function main(store) {
  store.add(1);
  log.info('x');
  for (const item of store) { store.add(item); log.warn(item); }
}
type;
";

#[test]
fn rules_combine_conditions_on_a_node_and_its_surroundings() {
    for (rule, expected) in [
        (r#"{"kind": "class_declaration"}"#, vec!["1 class Store { {}"]),
        (
            r#"{"kind": "identifier", "regex": "^sto"}"#,
            vec!["10 store {}", "11 store {}", "13 store {}", "13 store {}"],
        ),
        (
            r#"{"pattern": "log.$M($$$A)", "inside": {"kind": "class_body", "stopBy": "end"}}"#,
            vec!["7 log.info('added', item) {$$$A='added', item, $M=info}"],
        ),
        (
            r#"{"pattern": "log.$M($$$A)", "not": {"inside": {"kind": "class_body", "stopBy": "end"}}}"#,
            vec!["12 log.info('x') {$$$A='x', $M=info}", "13 log.warn(item) {$$$A=item, $M=warn}"],
        ),
        (
            r#"{"any": ["log.warn($A)", {"pattern": "$S.push($A)"}]}"#,
            vec!["5 this.items.push(item) {$A=item, $S=this.items}", "13 log.warn(item) {$A=item}"],
        ),
        (
            r#"{"all": [{"kind": "call_expression"}, {"has": {"pattern": "item", "stopBy": "end"}},
                {"not": {"regex": "this|added"}}]}"#,
            vec!["13 store.add(item) {}", "13 log.warn(item) {}"],
        ),
        (
            r#"{"kind": "function_declaration", "has": {"field": "name", "regex": "^main$"}}"#,
            vec!["10 function main(store) { {}"],
        ),
        (
            r#"{"kind": "identifier", "inside": {"kind": "for_in_statement", "field": "right"}}"#,
            vec!["13 store {}"],
        ),
        (
            r#"{"kind": "expression_statement", "follows": {"pattern": "store.add($A);", "stopBy": "end"}}"#,
            vec!["12 log.info('x'); {$A=1}", "13 log.warn(item); {$A=item}"],
        ),
        (
            r#"{"kind": "expression_statement", "precedes": {"kind": "for_in_statement"}}"#,
            vec!["12 log.info('x'); {}"],
        ),
        (
            r#"{"pattern": "item", "inside": {"kind": "call_expression", "stopBy": {"kind": "if_statement"}}}"#,
            vec!["5 item {}", "7 item {}", "13 item {}", "13 item {}"],
        ),
        (r#"{"context": "({ $A })", "selector": "object"}"#, vec![]),
        (r#"{"context": "class A { m($P) { $$$B } }", "selector": "method_definition"}"#, vec![]),
        (
            r#"{"context": "class A { add($P) { $$$B } }", "selector": "method_definition"}"#,
            vec![
                "3 add(item) { {$$$B=if (item) {\n      this.items.push(item);\n    }\n    log.info('added', item);, $P=item}",
            ],
        ),
    ] {
        assert_eq!(found(Language::JavaScript, rule, SCRIPT), expected, "{rule}");
    }
}

#[test]
fn strictness_tells_which_tokens_count() {
    let source = "f(a, /* note */ b,);\nimport c from \"d\";\n";
    for (strictness, pattern, count) in [
        ("smart", "f(a, b)", 1),
        ("cst", "f(a, b)", 0),
        ("relaxed", "f(a, b)", 1),
        ("ast", "f(a, b)", 0),
        ("signature", "g(x, y)", 1),
        ("relaxed", "import c from 'd'", 1),
        ("cst", "import c from 'd'", 0),
    ] {
        let rule = format!(r#"{{"context": "{pattern}", "strictness": "{strictness}"}}"#);
        let found = found(Language::JavaScript, &rule, source);
        assert_eq!(found.len(), count, "{strictness} {pattern}: {found:?}");
    }
}

#[test]
fn a_variable_that_occurs_twice_matches_equal_nodes_only() {
    let source = "if (a.b == a.b) {}\nif (a.b == a.c) {}\n";
    assert_eq!(
        found(Language::JavaScript, r#"{"pattern": "$A == $A"}"#, source),
        ["1 a.b == a.b {$A=a.b}"]
    );
    let deep = format!("x = {}1{} == 1;\n", "(".repeat(500), ")".repeat(500));
    let search = compile(Language::JavaScript, "$A == $A").unwrap();
    let parsed = ParsedSource::parse(Language::JavaScript, &deep).unwrap();
    assert_eq!(search.run(&parsed, &budget()), Err(SearchError::TooDeep));
    let search = compile(Language::JavaScript, "$A == $B").unwrap();
    assert_eq!(search.run(&parsed, &budget()).unwrap().matches.len(), 1);
}

#[test]
fn constraints_hold_for_every_captured_node() {
    let constrained = |json: &str| {
        let constraints: Constraints = serde_json::from_str(json).unwrap();
        let rule = Rule::pattern("log.$M($$$ARGS)");
        let search = CodeSearch::compile(Language::JavaScript, &rule, &constraints)?;
        let lines = found_with(&search, SCRIPT).into_iter();
        Ok::<_, RuleError>(lines.map(|line| line[..2].trim().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(constrained(r#"{"M": {"regex": "^info$"}}"#).unwrap(), ["7", "12"]);
    assert_eq!(constrained(r#"{"ARGS": {"kind": "identifier"}}"#).unwrap(), ["13"]);
    let error = constrained(r#"{"B": {"regex": "a"}}"#).unwrap_err();
    assert_eq!(error.to_string(), "the rule captures no `$B`, which a constraint is on");
    assert!(serde_json::from_str::<Constraints>(r#"{"A": {"regx": "a"}}"#).is_err());
}

#[test]
fn the_symbols_around_a_match_are_named() {
    let source = "\
type T = { a: string };
class C {
  m(a: string) { f(1); }
}
function g() { f(2); }
const h = () => f(3);
f(4);
";
    let parsed = ParsedSource::parse(Language::TypeScript, source).unwrap();
    let around = |pattern: &str| {
        let found =
            compile(Language::TypeScript, pattern).unwrap().run(&parsed, &budget()).unwrap();
        found.matches.into_iter().map(|found| found.symbol.join("::")).collect::<Vec<_>>()
    };
    assert_eq!(around("f($A)"), ["C::m", "g", "h", ""]);
    let types = compile_rule(Language::TypeScript, r#"{"kind": "predefined_type"}"#).unwrap();
    let found = types.run(&parsed, &budget()).unwrap().matches;
    let around: Vec<_> = found.into_iter().map(|found| found.symbol.join("::")).collect();
    assert_eq!(around, ["T::a", "C::m"]);
}

#[test]
fn a_pattern_that_is_not_understood_is_refused_and_never_matches_nothing() {
    for (language, pattern, expected) in [
        (Language::Rust, "fn (", "the pattern `fn (` does not parse as rust"),
        (Language::JavaScript, "a; b", "is several nodes of javascript"),
        (Language::JavaScript, "$$$A", "would match any list of nodes"),
        (Language::Python, "", "the pattern is empty"),
        (Language::Bash, "echo \"a $HOME\"", "`$HOME` is part of a longer token"),
        (Language::C, "#include <$A>", "`$A` is part of a longer token"),
        (Language::Python, "f($$$A, $$$B)", "two lists with `$$$` stand beside each other"),
        (Language::Json, "{\"a\": nope}", "does not parse as json"),
        (Language::Rust, &"(".repeat(5_000), "does not parse"),
        (
            Language::Rust,
            &format!("{}a{}", "(".repeat(120), ")".repeat(120)),
            "more than 100 levels deep",
        ),
        (Language::Rust, &"a".repeat(10_000), "the pattern has 10000 bytes"),
    ] {
        let error = compile(language, pattern).unwrap_err().to_string();
        assert!(error.contains(expected), "{pattern}: {error}");
    }
    let lists = (0..12).fold("a".to_owned(), |inner, _| format!("f($$$A, {inner})"));
    let error = compile(Language::JavaScript, &lists).unwrap_err().to_string();
    assert!(error.contains("inside of more than 8 other lists"), "{error}");
    for (rule, expected) in [
        (
            r#"{"kind": "function_itm"}"#,
            "rust has no node kind `function_itm`; did you mean `function_item`?",
        ),
        (r#"{"regex": "("}"#, "the regular expression `(` is not valid"),
        (r#"{"regex": "((a{100}){100}){100}"}"#, "exceeds size limit"),
        (
            r#"{"kind": "block", "has": {"kind": "block", "field": "nope"}}"#,
            "rust has no field `nope`",
        ),
        (r#"{"not": {"kind": "block"}}"#, "the rule has only conditions that exclude"),
        (
            r#"{"context": "fn f() {}", "selector": "struct_item"}"#,
            "has no node of kind `struct_item`",
        ),
    ] {
        let error = compile_rule(Language::Rust, rule).unwrap_err().to_string();
        assert!(error.contains(expected), "{rule}: {error}");
    }
    let deep = (0..20)
        .fold(r#"{"kind": "block"}"#.to_owned(), |inner, _| format!(r#"{{"has": {inner}}}"#));
    assert!(matches!(compile_rule(Language::Rust, &deep), Err(RuleError::TooDeep)));
    let wide = format!(r#"{{"any": [{}]}}"#, vec![r#"{"kind": "block"}"#; 300].join(","));
    assert!(matches!(compile_rule(Language::Rust, &wide), Err(RuleError::TooLarge)));
}

#[test]
fn a_pattern_with_two_readings_has_a_hint() {
    let search = compile(Language::JavaScript, "{ $A }").unwrap();
    assert_eq!(
        search.hint(),
        Some(
            "`{ $A }` is read as statement_block; as object it is {\"context\": \"({ $A })\", \
             \"selector\": \"object\"}"
        )
    );
    assert_eq!(compile(Language::JavaScript, "f($A)").unwrap().hint(), None);
}

#[cfg(not(feature = "all-grammars"))]
#[test]
fn a_language_without_its_grammar_is_an_error() {
    let error = compile(Language::Kotlin, "f($A)").unwrap_err().to_string();
    assert_eq!(error, "this build has no grammar for kotlin; build with --features all-grammars");
}

#[test]
fn files_without_the_words_of_a_rule_are_left_out_unparsed() {
    for (rule, yes, no) in [
        (r#"{"pattern": "$A.unwrap_or($B)"}"#, "x.unwrap_or(1)", "x.unwrap()"),
        (r#"{"any": ["f_one($A)", "f_two($A)"]}"#, "f_two(1)", "f_three(1)"),
        (r#"{"kind": "block", "has": {"pattern": "f_one()"}}"#, "{ f_one() }", "{ f_two() }"),
        (r#"{"pattern": "return $A"}"#, "return 1", "1"),
    ] {
        let search = compile_rule(Language::Rust, rule).unwrap();
        assert!(search.may_match(yes.as_bytes()), "{rule}");
        assert!(!search.may_match(no.as_bytes()), "{rule}");
    }
    for rule in [
        r#"{"kind": "block"}"#,
        r#"{"kind": "block", "not": {"pattern": "f_one()"}}"#,
        r#"{"any": ["f_one($A)", "$A + $B"]}"#,
        r#"{"context": "f_one($A)", "strictness": "signature"}"#,
    ] {
        assert!(compile_rule(Language::Rust, rule).unwrap().may_match(b"x"), "{rule}");
    }
}

#[test]
fn a_search_ends_at_its_deadline_and_when_it_is_cancelled() {
    let source = "f(a, b);\n".repeat(20_000);
    let parsed = ParsedSource::parse(Language::JavaScript, &source).unwrap();
    let search = compile_rule(
        Language::JavaScript,
        r#"{"kind": "identifier", "inside": {"regex": "nope", "stopBy": "end"}}"#,
    )
    .unwrap();
    let over = TimeBudget::of(Duration::ZERO);
    assert_eq!(search.run(&parsed, &over), Err(SearchError::TimedOut));
    let count = std::cell::Cell::new(0);
    let is_cancelled = || {
        count.set(count.get() + 1);
        count.get() > 3
    };
    let cancelled = budget().cancelled_by(&is_cancelled);
    assert_eq!(search.run(&parsed, &cancelled), Err(SearchError::Cancelled));
    let short = TimeBudget::of(Duration::from_millis(200));
    let begun = std::time::Instant::now();
    assert_eq!(search.run(&parsed, &short), Err(SearchError::TimedOut));
    assert!(begun.elapsed() < Duration::from_secs(10));
    let all = compile(Language::JavaScript, "f($A, $B)").unwrap().run(&parsed, &budget()).unwrap();
    assert_eq!((all.matches.len(), all.is_cut), (10_000, true));
}
