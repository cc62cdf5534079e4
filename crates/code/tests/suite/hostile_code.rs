//! Hostile sources, texts and rules: edits and searches of them end in time, with a result or an error.

use std::time::{Duration, Instant};

use carrel_code::{
    CodeEdit, CodeSearch, Constraints, Language, LeadingComments, ParsedSource, Rule, Side,
    SymbolTarget, TimeBudget, rewrite,
};

/// The time in which each case has to end, on a machine that does other work too.
const LIMIT: Duration = Duration::from_secs(30);

/// Pieces of sources of all languages, put together at random.
const PIECES: [&str; 40] = [
    "{", "}", "(", ")", "[", "]", "<", ">", ";", ",", ":", "\n", "\r\n", "\t", "    ", "\"", "'",
    "`", "/*", "*/", "//", "#", "\\", "$A", "$$$B", "µ", "\u{feff}", "\0", "é", "def f():",
    "fn f() {", "class A", "func f()", "end", "=>", "=", "---", "<p id=a>", "# H", "\u{2028}",
];

const LANGUAGES: [Language; 19] = [
    Language::Bash,
    Language::C,
    Language::Cpp,
    Language::Css,
    Language::Go,
    Language::Html,
    Language::Java,
    Language::JavaScript,
    Language::Json,
    Language::Lua,
    Language::Markdown,
    Language::Php,
    Language::Python,
    Language::Ruby,
    Language::Rust,
    Language::Toml,
    Language::Tsx,
    Language::TypeScript,
    Language::Yaml,
];

fn random_text(random: &mut fastrand::Rng, pieces: usize) -> String {
    (0..pieces).map(|_| PIECES[random.usize(..PIECES.len())]).collect()
}

/// Edits every symbol of a source in every way with a text, and searches it with the text as a pattern.
fn use_everything(language: Language, source: &str, text: &str) {
    let Ok(parsed) = ParsedSource::parse(language, source) else { return };
    for (index, symbol) in parsed.symbols().symbols.iter().enumerate().take(6) {
        let path = parsed.symbols().path(index).join("::");
        let Ok(target) = SymbolTarget::parse(&path) else { continue };
        let target = target.at_line(symbol.line);
        let results = [
            parsed.replace_body(&target, text),
            parsed.replace_signature(&target, text),
            parsed.insert(&target, Side::Before, text),
            parsed.insert(&target, Side::After, text),
            parsed.insert_after_method(&path, &symbol.name, None, text),
            parsed.replace_symbol(&target, text, LeadingComments::Keep),
            parsed.replace_symbol(&target, text, LeadingComments::Replace),
            parsed.delete_symbol(&target),
        ];
        for edited in results.into_iter().flatten() {
            assert_eq!(source[..edited.change.old.start], edited.text[..edited.change.new.start]);
            assert_eq!(source[edited.change.old.end..], edited.text[edited.change.new.end..]);
        }
    }
    let budget = TimeBudget::of(LIMIT);
    if let Ok(search) = CodeSearch::compile(language, &Rule::pattern(text), &Constraints::new()) {
        let _ = search.run(&parsed, &budget);
        let edit = serde_json::json!({"op": "replace", "rule": text, "replacement": text});
        let edit: CodeEdit = serde_json::from_value(edit).unwrap();
        let _ = rewrite(language, source, &[edit], &budget);
    }
}

#[test]
fn random_sources_and_texts_end_in_a_result_or_an_error() {
    let mut random = fastrand::Rng::with_seed(fastrand::u64(..));
    let seed = random.get_seed();
    for round in 0..12 {
        for language in LANGUAGES {
            let source = random_text(&mut random, 20 << (round % 4));
            let text = random_text(&mut random, 1 + round);
            let begun = Instant::now();
            use_everything(language, &source, &text);
            assert!(begun.elapsed() < LIMIT, "seed {seed}: {language}: {source:?} {text:?}");
        }
    }
}

#[test]
fn real_sources_survive_random_texts() {
    let mut random = fastrand::Rng::with_seed(fastrand::u64(..));
    for (language, source) in [
        (Language::Rust, include_str!("../real/same_file_unix.rs")),
        (Language::Python, include_str!("../real/cmd.py")),
        (Language::Ruby, include_str!("../real/events.rb")),
        (Language::TypeScript, include_str!("../real/Subject.ts")),
        (Language::Yaml, include_str!("../real/unicode_ident_ci.yml")),
    ] {
        for _ in 0..8 {
            let text = random_text(&mut random, 6);
            use_everything(language, source, &text);
        }
    }
}

#[test]
fn deep_nesting_ends_in_time() {
    for (language, open, close) in [
        (Language::Rust, "fn f() { ", " }"),
        (Language::JavaScript, "(", ")"),
        (Language::Python, "[", "]"),
        (Language::Json, "{\"a\": ", "}"),
        (Language::C, "{", "}"),
        (Language::Html, "<p id=a>", "</p>"),
        (Language::Yaml, "- ", ""),
    ] {
        for depth in [300, 5_000] {
            let begun = Instant::now();
            let source = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let source = if language == Language::Rust { source } else { format!("{source}\n") };
            if let Ok(parsed) = ParsedSource::parse(language, &source) {
                for rule in [
                    r#"{"regex": "1", "inside": {"regex": "nope", "stopBy": "end"}}"#,
                    r#"{"regex": "1", "has": {"regex": "nope", "stopBy": "end"}}"#,
                    r#"{"regex": "1", "not": {"follows": {"regex": "1", "stopBy": "end"}}}"#,
                ] {
                    let rule: Rule = serde_json::from_str(rule).unwrap();
                    let search = CodeSearch::compile(language, &rule, &Constraints::new()).unwrap();
                    let begun = Instant::now();
                    let _ = search.run(&parsed, &TimeBudget::of(Duration::from_millis(200)));
                    assert!(begun.elapsed() < Duration::from_secs(5), "{language} {depth}");
                }
                if let Ok(target) = SymbolTarget::parse("f") {
                    let _ = parsed.replace_body(&target, "1");
                }
            }
            assert!(begun.elapsed() < LIMIT, "{language} {depth}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn lists_inside_of_lists_are_matched_in_bounded_time() {
    let nested = |depth: usize, inner: &str, open: &str| {
        (0..depth).fold(inner.to_owned(), |inner, _| format!("f({open}{inner})"))
    };
    let source = nested(60, "z", "1, 2, 3, 4, ");
    let parsed = ParsedSource::parse(Language::JavaScript, &source).unwrap();
    let begun = Instant::now();
    let pattern = nested(8, "$Z", "$$$A, ");
    let rule = Rule::pattern(pattern);
    let search = CodeSearch::compile(Language::JavaScript, &rule, &Constraints::new()).unwrap();
    let _ = search.run(&parsed, &TimeBudget::of(LIMIT));
    assert!(begun.elapsed() < LIMIT);
}

#[test]
fn a_replacement_that_multiplies_the_source_is_refused() {
    let source = format!("f({});\n", "a".repeat(100_000)).repeat(20);
    let edit = serde_json::json!({
        "op": "replace", "rule": "f($A)", "replacement": format!("g({})", "$A, ".repeat(200)),
    });
    let edit: CodeEdit = serde_json::from_value(edit).unwrap();
    let error =
        rewrite(Language::JavaScript, &source, &[edit], &TimeBudget::of(LIMIT)).unwrap_err();
    assert!(error.to_string().starts_with("the result would have "), "{error}");
}
