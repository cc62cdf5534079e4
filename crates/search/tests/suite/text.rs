use carrel_domain::{Code, Coded};
use carrel_fsroot::Problem;
use carrel_search::{Case, Error, GrepRequest, LineKind, Mode, Syntax, Totals};
use pretty_assertions::assert_eq;

use crate::{TestTree, find, refused, text_of};

fn alphas() -> TestTree {
    TestTree::with(&[
        ("a.go", "alpha\nbeta\nalpha again\n"),
        ("b.txt", "gamma\nALPHA\n"),
        ("sub/c.go", "no\nalpha\n"),
    ])
}

#[test]
fn content_files_and_counts_always_carry_the_path() {
    let tree_fixture = alphas();
    let request = GrepRequest::new("alpha");
    let content = find(&tree_fixture.scope(), &request);
    assert_eq!(content.text(), "a.go:1:alpha\na.go:3:alpha again\nsub/c.go:2:alpha\n");
    let totals = Totals { matching_lines: Some(3), files_with_matches: 2, files_searched: 3 };
    assert_eq!((content.totals, content.truncation), (Some(totals), None));
    let files = GrepRequest { mode: Mode::FilesWithMatches, ..request.clone() };
    assert_eq!(find(&tree_fixture.scope(), &files).text(), "a.go\nsub/c.go\n");
    let count = GrepRequest { mode: Mode::Count, ..request.clone() };
    assert_eq!(find(&tree_fixture.scope(), &count).text(), "a.go:2\nsub/c.go:1\n");
    // A single file is no exception.
    assert_eq!(
        find(&tree_fixture.at("a.go"), &request).text(),
        "a.go:1:alpha\na.go:3:alpha again\n"
    );
    assert_eq!(find(&tree_fixture.at("a.go"), &files).text(), "a.go\n");
    assert_eq!(find(&tree_fixture.at("./a.go"), &count).text(), "a.go:2\n");
    assert_eq!(find(&tree_fixture.at("sub/../a.go"), &count).text(), "a.go:2\n");
    assert_eq!(text_of(&tree_fixture.scope(), "nothing"), "");
}

#[test]
fn case_words_and_literals_are_as_requested() {
    let tree_fixture = TestTree::with(&[("f", "Foo\nfoo\nfoobar\nf.o\nx foo y\n")]);
    let lines = |request: &GrepRequest| -> Vec<u64> {
        let report = find(&tree_fixture.scope(), request);
        report.files.iter().flat_map(|file| &file.lines).map(|line| line.number).collect()
    };
    let foo = GrepRequest::new("foo");
    assert_eq!(lines(&foo), [2, 3, 5]);
    let insensitive = GrepRequest { case: Case::Insensitive, ..foo.clone() };
    assert_eq!(lines(&insensitive), [1, 2, 3, 5]);
    let smart = GrepRequest { case: Case::Smart, ..foo.clone() };
    assert_eq!(lines(&smart), [1, 2, 3, 5]);
    let smart = GrepRequest { case: Case::Smart, ..GrepRequest::new("Foo") };
    assert_eq!(lines(&smart), [1]);
    let whole = GrepRequest { whole_word: true, ..foo };
    assert_eq!(lines(&whole), [2, 5]);
    let dot = GrepRequest::new("f.o");
    assert_eq!(lines(&dot), [2, 3, 4, 5]);
    let literal = GrepRequest { syntax: Syntax::Literal, ..dot };
    assert_eq!(lines(&literal), [4]);
    let bracket = GrepRequest { syntax: Syntax::Literal, ..GrepRequest::new("[unclosed") };
    assert_eq!(lines(&bracket), Vec::<u64>::new());
}

#[test]
fn matches_are_structured() {
    let tree_fixture = TestTree::with(&[("f", "one two one\nthree\n")]);
    let request = GrepRequest { after: 1, ..GrepRequest::new("one") };
    let report = find(&tree_fixture.scope(), &request);
    let [first, second] = report.files[0].lines.as_slice() else { panic!("{report:?}") };
    assert_eq!((first.number, first.kind, &first.spans), (1, LineKind::Match, &vec![0..3, 8..11]));
    assert_eq!((second.number, second.kind, second.text.as_str()), (2, LineKind::Context, "three"));
}

#[test]
fn context_is_marked_and_groups_are_kept_apart() {
    let lines: String = (1..=12).map(|n| if n % 5 == 0 { "hit\n" } else { "miss\n" }).collect();
    let tree_fixture = TestTree::with(&[("a", &lines), ("b", "hit\n")]);
    let request = GrepRequest { before: 1, after: 1, ..GrepRequest::new("hit") };
    assert_eq!(
        find(&tree_fixture.scope(), &request).text(),
        "a-4-miss\na:5:hit\na-6-miss\n--\na-9-miss\na:10:hit\na-11-miss\n--\nb:1:hit\n"
    );
    let wide = GrepRequest { before: 2, after: 2, ..GrepRequest::new("hit") };
    let text = find(&tree_fixture.at("a"), &wide).text();
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(!text.contains("--\n"), "{text}");
}

#[test]
fn a_multiline_match_covers_its_lines() {
    let tree_fixture =
        TestTree::with(&[("f", "fn a() {\n  body\n}\nother\n"), ("g", "fn b() {}\n")]);
    let request = GrepRequest { multiline: true, ..GrepRequest::new(r"a\(\) \{.*?\n\}") };
    let report = find(&tree_fixture.scope(), &request);
    assert_eq!(report.text(), "f:1:fn a() {\nf:2:  body\nf:3:}\n");
    let spans: Vec<_> = report.files[0].lines.iter().map(|line| line.spans.clone()).collect();
    assert_eq!(spans, [vec![3..8], vec![0..6], vec![0..1]]);
    let single = GrepRequest { multiline: false, ..request };
    assert!(refused(&tree_fixture.scope(), &single).to_string().contains("multiline"));
}

#[test]
fn globs_and_types_choose_files() {
    let tree_fixture = alphas();
    let text = |globs: &[&str], types: &[&str]| {
        let own = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        let request =
            GrepRequest { globs: own(globs), types: own(types), ..GrepRequest::new("(?i)alpha") };
        find(&tree_fixture.scope(), &GrepRequest { mode: Mode::FilesWithMatches, ..request }).text()
    };
    assert_eq!(text(&[], &[]), "a.go\nb.txt\nsub/c.go\n");
    assert_eq!(text(&["*.go"], &[]), "a.go\nsub/c.go\n");
    assert_eq!(text(&["!*.go"], &[]), "b.txt\n");
    assert_eq!(text(&["*.go", "!sub/**"], &[]), "a.go\n");
    assert_eq!(text(&["!sub"], &[]), "a.go\nb.txt\n");
    assert_eq!(text(&["*.{go,txt}", "!a.*"], &[]), "b.txt\nsub/c.go\n");
    assert_eq!(text(&[], &["go"]), "a.go\nsub/c.go\n");
    assert_eq!(text(&["sub/**"], &["go"]), "sub/c.go\n");
    assert_eq!(text(&[], &["txt", "go"]), "a.go\nb.txt\nsub/c.go\n");
}

#[test]
fn wrong_requests_are_explained() {
    let tree_fixture = alphas();
    let bad = refused(&tree_fixture.scope(), &GrepRequest::new("[unclosed"));
    assert!(bad.to_string().contains("unclosed character class"), "{bad}");
    assert_eq!(bad.code(), Code::InvalidPattern);
    let types = GrepRequest { types: vec!["pyhton".into()], ..GrepRequest::new("x") };
    let bad = refused(&tree_fixture.scope(), &types);
    assert!(bad.to_string().contains("python"), "{bad}");
    assert_eq!(bad.code(), Code::InvalidArguments);
    let globs = GrepRequest { globs: vec!["{a,b".into()], ..GrepRequest::new("x") };
    let bad = refused(&tree_fixture.scope(), &globs);
    assert!(bad.to_string().contains("`{a,b` at character 1"), "{bad}");
    for (path, problem) in [("missing", Problem::NotFound), ("a.go/x", Problem::NotADirectory)] {
        match refused(&tree_fixture.at(path), &GrepRequest::new("x")) {
            Error::Path(error) => assert_eq!(error.problem(), problem, "{path}"),
            other => panic!("{path}: {other}"),
        }
    }
}

#[test]
fn binary_files_are_counted_and_not_shown() {
    let tree_fixture = TestTree::with(&[("text", "needle\n")]);
    tree_fixture.file("binary", b"needle\n\0needle\n");
    tree_fixture.file("other", b"\0\0\0");
    let mut late = b"needle\n".repeat(60_000);
    late.extend(b"\0\nneedle\n");
    tree_fixture.file("z_late", late);
    let request = GrepRequest { mode: Mode::Count, ..GrepRequest::new("needle") };
    let report = find(&tree_fixture.scope(), &request);
    // Far from the beginning a NUL byte is a character like any other.
    assert_eq!(report.text(), "text:1\nz_late:60001\n");
    assert_eq!(report.binary_matches, 1);
}

#[test]
fn marked_encodings_are_searched_as_text() {
    let tree_fixture = TestTree::new();
    let utf16 = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let little: Vec<u8> =
        utf16("\u{feff}eins\nnädle\n").into_iter().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = utf16("\u{feff}nädle\n").into_iter().flat_map(u16::to_be_bytes).collect();
    tree_fixture.file("little", little);
    tree_fixture.file("big", big);
    tree_fixture.file("mark", "\u{feff}nädle\n");
    tree_fixture.file("latin", b"n\xe4dle \xff needle\n");
    assert_eq!(
        text_of(&tree_fixture.scope(), "^nädle"),
        "big:1:nädle\nlittle:2:nädle\nmark:1:nädle\n"
    );
    assert_eq!(text_of(&tree_fixture.scope(), "needle"), "latin:1:n\u{fffd}dle \u{fffd} needle\n");
}

#[test]
fn a_large_utf16_file_is_read_to_its_end() {
    let tree_fixture = TestTree::new();
    let text = format!("\u{feff}{}needle\n", "filler line\n".repeat(50_000));
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    tree_fixture.file("large", bytes);
    assert_eq!(text_of(&tree_fixture.scope(), "needle"), "large:50001:needle\n");
}

#[test]
fn both_line_ends_are_ends_of_lines() {
    let tree_fixture =
        TestTree::with(&[("crlf", "one\r\ntwo\r\n"), ("lf", "one\ntwo\n"), ("last", "one")]);
    assert_eq!(text_of(&tree_fixture.scope(), "one$"), "crlf:1:one\nlast:1:one\nlf:1:one\n");
    assert_eq!(text_of(&tree_fixture.scope(), r"\r$"), "crlf:1:one\ncrlf:2:two\n");
}

#[test]
fn a_long_line_is_cut_around_the_match_and_says_so() {
    let tree_fixture = TestTree::new();
    let line = "x".repeat(3_000_000) + "needle" + &"y".repeat(100) + "\n";
    tree_fixture.file("min.js", &line);
    let request = GrepRequest { line_bytes: 40, ..GrepRequest::new("needle") };
    let report = find(&tree_fixture.scope(), &request);
    let line = &report.files[0].lines[0];
    assert_eq!(&line.text[line.spans[0].clone()], "needle");
    assert_eq!((line.text.len(), line.omitted_before, line.omitted_after), (40, 2_999_990, 76));
    assert_eq!(
        report.text(),
        "min.js:1:[… 2999990 bytes …]xxxxxxxxxxneedleyyyyyyyyyyyyyyyyyyyyyyyy[… 76 bytes …]\n"
    );
}

#[test]
fn a_named_link_is_followed_inside_and_shown_where_it_leads() {
    let tree_fixture = TestTree::with(&[("real/a.txt", "needle\n")]);
    tree_fixture.link("real", "directory");
    tree_fixture.link("real/a.txt", "file");
    tree_fixture.link("../outside/secret", "out");
    assert_eq!(text_of(&tree_fixture.scope(), "needle"), "real/a.txt:1:needle\n");
    assert_eq!(text_of(&tree_fixture.at("directory"), "needle"), "real/a.txt:1:needle\n");
    assert_eq!(text_of(&tree_fixture.at("file"), "needle"), "real/a.txt:1:needle\n");
    match refused(&tree_fixture.at("out"), &GrepRequest::new("needle")) {
        Error::Path(error) => assert!(matches!(error.problem(), Problem::Escapes(_)), "{error}"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_line_too_long_to_be_held_is_reported_and_what_is_before_it_is_found() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("a", "needle\n".to_owned() + &"x".repeat(20 << 20) + "\nneedle\n");
    tree_fixture.file("b", "needle\n");
    let report = find(&tree_fixture.scope(), &GrepRequest::new("needle"));
    assert_eq!(report.text(), "a:1:needle\nb:1:needle\n");
    assert_eq!(report.unreadable.total, 1);
    let reason = &report.unreadable.first[0].reason;
    assert!(reason.starts_with("too large to be searched to its end"), "{reason}");
}
