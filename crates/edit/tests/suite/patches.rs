//! Applying patches.

use carrel_edit::Document;
use carrel_edit::patch::{AppliedHunk, ApplyError, Patch, apply, apply_all, parse};
use pretty_assertions::assert_eq;

/// Applies hunks to a text, and returns what it is then and where they were.
fn applied(text: &str, hunks: &str) -> Result<(String, Vec<AppliedHunk>), ApplyError> {
    let patch = parse(&format!("--- a/f\n+++ b/f\n{hunks}")).unwrap();
    let applied = apply(&patch.files[0], Some(&Document::from_text(text)))?;
    Ok((applied.document.unwrap().text().to_owned(), applied.hunks))
}

fn text_after(text: &str, hunks: &str) -> String {
    applied(text, hunks).unwrap().0
}

fn error_of(text: &str, hunks: &str) -> String {
    applied(text, hunks).unwrap_err().to_string()
}

/// Applies an update in an envelope.
fn updated(text: &str, update: &str) -> Result<String, ApplyError> {
    let patch = format!("*** Begin Patch\n*** Update File: f\n{update}*** End Patch\n");
    let patch = parse(&patch).unwrap();
    let applied = apply(&patch.files[0], Some(&Document::from_text(text)))?;
    Ok(applied.document.unwrap().text().to_owned())
}

fn numbered(from: usize, to: usize) -> String {
    (from..=to).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat()
}

#[test]
fn hunks_are_made_where_they_say() {
    let cases = [
        ("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n"),
        ("a\nb\n", "@@ -2,0 +3,2 @@\n+c\n+d\n", "a\nb\nc\nd\n"),
        ("a\nb\n", "@@ -0,0 +1 @@\n+x\n", "x\na\nb\n"),
        ("x\nx\nx\n", "@@ -2 +2 @@\n-x\n+y\n", "x\ny\nx\n"),
        ("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n"),
        ("a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a"),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
    ];
    for (text, hunks, want) in cases {
        assert_eq!(text_after(text, hunks), want, "{hunks}");
    }
}

#[test]
fn line_endings_and_the_end_of_the_file_are_kept_if_the_patch_does_not_mention_them() {
    let cases = [
        ("a\r\nb\r\nc\r\n", "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+x\r\n", "a\nx\n"),
        ("a\r\nb\nc\r\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\r\nx\nc\r\n"),
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a\nx"),
        ("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+x\n", "a\nb\nx"),
        ("a\r\n", "@@ -1,0 +2 @@\n+x\n", "a\r\nx\r\n"),
        ("a\nb  \n", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "x\nb  \n"),
    ];
    for (text, hunks, want) in cases {
        assert_eq!(text_after(text, hunks), want, "{hunks:?}");
    }
}

#[test]
fn a_hunk_that_moved_is_found_by_its_lines_and_so_are_those_after_it() {
    let text = format!("new\nnew\n{}", numbered(1, 30));
    let hunks = "@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n@@ -20,3 +20,3 @@\n 20\n-21\n+x\n 22\n";
    let (after, placed) = applied(&text, hunks).unwrap();
    assert_eq!(after, text.replace("\n5\n", "\nfive\n").replace("\n21\n", "\nx\n"));
    let place = |line, offset| AppliedHunk { line, offset: Some(offset), fuzz: 0 };
    assert_eq!(placed, [place(6, 2), place(22, 2)]);
}

#[test]
fn the_nearest_position_is_taken_and_a_tie_is_refused() {
    let text = format!("x\ny\n{}x\ny\n", numbered(1, 10));
    let near_the_end = text_after(&text, "@@ -9,2 +9,2 @@\n x\n-y\n+z\n");
    assert_eq!(near_the_end, format!("x\ny\n{}x\nz\n", numbered(1, 10)));
    assert_eq!(
        error_of(&text, "@@ -7,2 +7,2 @@\n x\n-y\n+z\n"),
        "f: hunk 1: it matches at several positions, among them lines 1 and 13; add context"
    );
}

#[test]
fn context_is_dropped_only_if_a_single_position_matches() {
    let hunk = "@@ -1,5 +1,5 @@\n wrong\n b\n-c\n+x\n d\n wrong\n";
    let (after, placed) = applied("a\nb\nc\nd\ne\n", hunk).unwrap();
    assert_eq!(after, "a\nb\nx\nd\ne\n");
    assert_eq!(placed, [AppliedHunk { line: 2, offset: Some(0), fuzz: 1 }]);
    let twice = "a\nb\nc\nd\ne\nb\nc\nd\n";
    assert_eq!(
        error_of(twice, hunk),
        "f: hunk 1: line 1 does not match: the patch has \"wrong\", the file has \"a\""
    );
}

#[test]
fn an_error_names_the_hunk_and_the_line_that_does_not_match() {
    let text = numbered(1, 20);
    let good = "@@ -1,2 +1,2 @@\n-1\n+one\n 2\n";
    let cases = [
        (
            "@@ -10,4 +10,4 @@\n 10\n 11\n-twelve\n+12\n 13\n",
            "f: hunk 2: line 12 does not match: the patch has \"twelve\", the file has \"12\"",
        ),
        (
            "@@ -19,3 +19,3 @@\n 19\n 20\n-21\n",
            "f: hunk 2: the file ends at line 20, before \"21\" of the patch",
        ),
        (
            "@@ -1,1 +1,1 @@\n-1\n+x\n",
            "f: hunk 2: line 3 does not match: the patch has \"1\", the file has \"3\"",
        ),
        (
            "@@ @@\n-none\n+x\n",
            "f: hunk 2: its first line \"none\" is not in the file after the hunk before",
        ),
        ("@@ -90,0 +91 @@\n+x\n", "f: hunk 2: the file ends at line 20, before \"x\" of the patch"),
    ];
    for (hunk, want) in cases {
        assert_eq!(error_of(&text, &format!("{good}{hunk}")), want);
    }
}

#[test]
fn envelope_hunks_are_matched_by_anchors_and_lines() {
    let text =
        "class A:\n    def f():\n        return 1\n\nclass B:\n    def f():\n        return 1\n";
    let change = "-        return 1\n+        return 2\n";
    let after = updated(text, &format!("@@ class B:\n@@     def f():\n{change}")).unwrap();
    assert_eq!(
        after,
        text.replace("B:\n    def f():\n        return 1", "B:\n    def f():\n        return 2")
    );
    let refused = updated(text, &format!("@@\n{change}")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "f: hunk 1: it matches at several positions, among them lines 3 and 7; add context"
    );
    let at_end = updated(text, &format!("@@\n{change}*** End of File\n")).unwrap();
    assert_eq!(at_end, after);
    let refused = updated(text, &format!("@@ class C:\n{change}")).unwrap_err();
    assert_eq!(refused.to_string(), "f: hunk 1: the anchor line \"class C:\" was not found");
    assert_eq!(updated("a\r\n", "+b\n").unwrap(), "a\r\nb\r\n");
}

/// The paths and texts of some files.
type Files<'a> = &'a [(&'a str, &'a str)];

fn all(patch: &str, files: Files<'_>) -> Result<Vec<(String, Option<String>)>, String> {
    let patch: Patch = parse(patch).unwrap();
    let read = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| Document::from_text(*text))
    };
    let changes = apply_all(&patch, read).map_err(|error| error.to_string())?;
    let text = |document: Option<std::sync::Arc<Document>>| document.map(|it| it.text().to_owned());
    Ok(changes
        .into_iter()
        .map(|change| (change.operation.path().to_owned(), text(change.after)))
        .collect())
}

#[test]
fn a_file_that_occurs_again_is_taken_as_it_was_left() {
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\n";
    let changes = all(patch, &[("f", "a\n")]).unwrap();
    assert_eq!(changes, [("f".into(), Some("b\n".into())), ("f".into(), Some("c\n".into()))]);
}

#[test]
fn files_must_be_there_or_not_as_the_patch_says() {
    let create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n";
    let delete = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    let rename = "diff --git a/f b/g\nrename from f\nrename to g\n";
    let cases: [(&str, Files<'_>, &str); 5] = [
        (create, &[("f", "")], "f: the file exists already"),
        (delete, &[], "f: there is no such file"),
        (
            delete,
            &[("f", "a\nb\n")],
            "f: the patch removes the file, but 1 of its lines would be left",
        ),
        (rename, &[("f", "a"), ("g", "b")], "g: the file exists already"),
        (rename, &[], "f: there is no such file"),
    ];
    for (patch, files, want) in cases {
        assert_eq!(all(patch, files).unwrap_err(), want);
    }
    assert_eq!(all(create, &[]).unwrap(), [("f".to_owned(), Some("a\n".to_owned()))]);
    assert_eq!(all(delete, &[("f", "a\n")]).unwrap(), [("f".to_owned(), None)]);
    let twice = format!("{delete}{create}");
    let changes = all(&twice, &[("f", "a\n")]).unwrap();
    assert_eq!(changes, [("f".to_owned(), None), ("f".to_owned(), Some("a\n".to_owned()))]);
}

#[test]
fn a_patch_that_is_made_to_be_slow_ends() {
    let line = "same\n".repeat(50_000);
    let hunk = format!("@@ -1 +1 @@\n{}-other\n", " same\n".repeat(40_000));
    assert!(error_of(&line, &hunk).starts_with("f: hunk 1: "));
}
