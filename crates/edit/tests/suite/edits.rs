//! Replacing text and lines.

use carrel_edit::Document;
use carrel_edit::replace::{
    Edit, EditError, EditOrder, EditProblem, EditedDocument, Limits, MAX_LISTED_MATCHES, Request,
    apply,
};
use pretty_assertions::assert_eq;

fn outcome(text: &str, edits: &[Edit]) -> Result<EditedDocument, EditError> {
    apply(&Document::from_text(text), &Request::new("f.txt", edits))
}

fn edited(text: &str, edits: &[Edit]) -> String {
    outcome(text, edits).unwrap().document.text().to_owned()
}

fn error_of(text: &str, edits: &[Edit]) -> String {
    outcome(text, edits).unwrap_err().to_string()
}

fn strict(text: &str, edits: &[Edit]) -> Result<EditedDocument, EditProblem> {
    let request = Request { limits: Limits::STRICT, ..Request::new("f.txt", edits) };
    apply(&Document::from_text(text), &request).map_err(|error| error.problem)
}

fn numbered(from: usize, to: usize) -> String {
    (from..=to).map(|n| format!("line {n}.\n")).collect::<Vec<_>>().concat()
}

#[test]
fn a_text_that_occurs_once_is_replaced() {
    let cases = [
        ("one two three", Edit::once("two", "2"), "one 2 three"),
        ("one two three", Edit::once(" two", ""), "one three"),
        ("a b a", Edit::everywhere("a", "aa"), "aa b aa"),
        ("aaa", Edit::everywhere("aa", "b"), "ba"),
        ("a\r\nb\r\nc\r\n", Edit::once("a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", Edit::once("b", "b\nc"), "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", Edit::once("a\r\nb", "a\nb"), "a\nb\r\n"),
        ("a\nb\n", Edit::once("a\r\nb", "x\r\ny"), "x\ny\n"),
        ("a\nb\n", Edit::once("a", "x\r\ny"), "x\ny\nb\n"),
        ("x\r\ny\nz\n", Edit::once("y\nz", "y\nnew\nz"), "x\r\ny\nnew\nz\n"),
        ("one\ntwo\n", Edit::once("2\ttwo", "2\t2"), "one\n2\n"),
    ];
    for (text, edit, want) in cases {
        assert_eq!(edited(text, std::slice::from_ref(&edit)), want, "{edit:?}");
    }
}

#[test]
fn errors_name_the_problem_and_its_position() {
    let cases = [
        ("abc", Edit::once("", "x"), "old_string must be non-empty"),
        ("abc", Edit::once("x", "y"), "old_string not found in f.txt"),
        (
            "abc",
            Edit::once("b", "b"),
            "nothing would change in f.txt: the new text is the same as the old",
        ),
        (
            "a a a",
            Edit::once("a", "b"),
            "old_string matched 3 times in f.txt; add context to make it unique or set \
             replace_all=true; it is at line 1",
        ),
        (
            "fn main() {\n}\n",
            Edit::once("fn mian", "x"),
            "old_string not found in f.txt; the closest is line 1: \"fn main() {\", with \"ai\" where \
             old_string has \"ia\"",
        ),
        (
            "fn f() {\n\treturn 1;\n}\n",
            Edit::once("fn f() {\n    return 1;\n}", "x"),
            "old_string not found in f.txt; line 1 matches except for white space: line 2 is \
             \"\\treturn 1;\"",
        ),
        (
            "a\r\nb\r\n",
            Edit::once("a\nb", "a\r\nb"),
            "nothing would change in f.txt: the new text is the same as the old",
        ),
        (
            "a\n",
            Edit::lines(1, 1, "a\n"),
            "nothing would change in f.txt: the new text is the same as the old",
        ),
    ];
    for (text, edit, want) in cases {
        assert_eq!(error_of(text, std::slice::from_ref(&edit)), want, "{edit:?}");
    }
    assert_eq!(error_of("a", &[]), "there are no edits");
    let many = vec![Edit::once("a", "b"); 201];
    assert_eq!(error_of("a", &many), "there are 201 edits, at most 200 are allowed at once");
}

#[test]
fn the_lines_of_many_matches_are_given_as_data() {
    let text = numbered(1, 30);
    let error = outcome(&text, &[Edit::once("line", "x")]).unwrap_err();
    let EditProblem::MultiMatch { count, lines, .. } = error.problem else { panic!("{error}") };
    assert_eq!((count, lines), (30, (1..=MAX_LISTED_MATCHES).collect()));
}

#[test]
fn copied_line_numbers_are_removed_and_reported() {
    let edits = [Edit::once("     2\ttwo\n     3\tthree\n", "     2\t2\n     3\t3\n")];
    let outcome = outcome("one\ntwo\nthree\n", &edits).unwrap();
    assert_eq!(outcome.document.text(), "one\n2\n3\n");
    let applied = outcome.applied[0];
    assert_eq!((applied.replacements, applied.line, applied.prefixes_removed), (1, 2, true));
}

#[test]
fn texts_are_replaced_in_order_and_line_ranges_against_the_original() {
    let steps = [Edit::once("a", "b c"), Edit::once("c", "d")];
    assert_eq!(edited("a\n", &steps), "b d\n");
    let mixed =
        [Edit::lines(1, 1, "a\nb\nc\n"), Edit::lines(3, 3, "three\n"), Edit::once("2", "two")];
    assert_eq!(edited("1\n2\n3\n4\n", &mixed), "a\nb\nc\ntwo\nthree\n4\n");
    let edits = [Edit::once("a", "b"), Edit::once("b", "a")];
    let together = Request { order: EditOrder::Original, ..Request::new("f", &edits) };
    let swapped = apply(&Document::from_text("a b"), &together).unwrap();
    assert_eq!(swapped.document.text(), "b a");
    assert_eq!(swapped.replacements(), 2);
}

#[test]
fn a_list_is_made_in_whole_or_not_at_all_and_the_failing_edit_is_named() {
    let edits = [Edit::once("a", "b"), Edit::once("x", "y")];
    assert_eq!(error_of("a\n", &edits), "edit 2: old_string not found in f.txt");
    let edits = [Edit::lines(2, 3, "x\n"), Edit::lines(3, 4, "y\n")];
    assert_eq!(error_of("1\n2\n3\n4\n", &edits), "edits 1 and 2 overlap");
    let edits = [Edit::lines(2, 2, "x\n"), Edit::once("1\n2", "y")];
    assert_eq!(error_of("1\n2\n3\n", &edits), "edits 2 and 1 overlap");
}

#[test]
fn strict_limits_keep_edits_small() {
    let text = numbered(1, 60);
    let find = strict(&text, &[Edit::once(numbered(1, 10), "x")]).unwrap_err();
    assert_eq!(find, EditProblem::FindTooLarge { limit: Limits::STRICT.find });
    assert_eq!(
        find.to_string(),
        "old_string is too large: at most 8 lines and 500 characters are allowed; name a shorter \
         piece"
    );
    let replace = strict(&text, &[Edit::once("line 1.", numbered(1, 40))]).unwrap_err();
    assert_eq!(replace, EditProblem::ReplaceTooLarge { limit: Limits::STRICT.replace });
    let finds = |count: usize| -> Vec<_> {
        (1..=count).map(|n| Edit::once(format!("line {n}."), format!("row {n}."))).collect()
    };
    assert!(strict(&text, &finds(32)).is_ok());
    let batch = strict(&text, &finds(33)).unwrap_err();
    assert_eq!(batch, EditProblem::BatchTooLarge { limit: Limits::STRICT.batch });
    let block = [Edit::lines(1, 60, numbered(100, 190))];
    assert!(strict(&text, &block).is_ok(), "a single line range is the way for large blocks");
    let blocks = [Edit::lines(1, 30, "x\n"), Edit::lines(40, 50, "y\n")];
    assert!(matches!(strict(&text, &blocks), Err(EditProblem::BatchTooLarge { .. })));
}

#[test]
fn a_text_that_would_explode_is_refused_before_it_is_made() {
    let text = "a".repeat(100_000);
    let edits = [Edit::everywhere("a", "x\n".repeat(1_000_000))];
    assert_eq!(error_of(&text, &edits), "f.txt would have more than 67108864 bytes");
}

#[test]
fn every_character_of_a_long_line_can_be_replaced() {
    let text = format!("a\r\n{}", "x".repeat(100_000));
    let outcome = outcome(&text, &[Edit::everywhere("x", "\n")]).unwrap();
    assert_eq!(outcome.replacements(), 100_000);
    assert_eq!(outcome.document.line_facts().crlf, 100_001);
}

#[test]
fn an_unencodable_character_is_refused() {
    let document = Document::decode(b"caf\xE9\n".to_vec());
    let edit = |new| apply(&document, &Request::new("f", &[Edit::once("café", new)]));
    assert_eq!(edit("thé").unwrap().document.encode(), &b"th\xE9\n"[..]);
    assert_eq!(
        edit("茶").unwrap_err().to_string(),
        "the file is stored as ISO 8859-1, which has no character `茶`"
    );
}

#[test]
fn a_text_that_doubles_again_and_again_is_refused_at_the_edit_that_goes_too_far() {
    let doubling = vec![Edit::everywhere("a", "aa"); 40];
    let refused = outcome("a", &doubling).unwrap_err();
    // One replacement, then two, then four: the twentieth edit would be beyond a million in all.
    let limit = Limits::GENEROUS.replacements;
    let want = EditError { edit: Some(20), problem: EditProblem::TooManyReplacements { limit } };
    assert_eq!(refused, want);
    let longer = vec![Edit::everywhere("a", "a".repeat(1000)); 40];
    let limits = Limits { result_bytes: 500_000, ..Limits::GENEROUS };
    let request = Request { limits, ..Request::new("f.txt", &longer) };
    let refused = apply(&Document::from_text("a"), &request).unwrap_err();
    assert_eq!(refused.to_string(), "edit 2: f.txt would have more than 500000 bytes");
}

#[test]
fn a_text_that_occurs_too_often_is_counted_to_the_end() {
    let limits = Limits { replacements: 3, ..Limits::GENEROUS };
    let text = "a\n".repeat(50);
    let refused = |edit: Edit| {
        let edits = [edit];
        let request = Request { limits, ..Request::new("f.txt", &edits) };
        apply(&Document::from_text(text.as_str()), &request).unwrap_err().problem
    };
    assert_eq!(refused(Edit::everywhere("a", "b")), EditProblem::TooManyReplacements { limit: 3 });
    let lines = (1..=MAX_LISTED_MATCHES).collect();
    let path = "f.txt".to_owned();
    assert_eq!(refused(Edit::once("a", "b")), EditProblem::MultiMatch { path, count: 50, lines });
}
