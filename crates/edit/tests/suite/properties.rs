//! Arbitrary text, edits and patches.

use carrel_edit::diff::{Diff, Options};
use carrel_edit::patch::{apply, apply_all, parse};
use carrel_edit::replace::{self, Edit, Request};
use carrel_edit::{Document, Selection, Window, WindowBudget};
use proptest::prelude::*;

/// Text of a few words, so that lines repeat, with any endings.
fn text() -> impl Strategy<Value = String> {
    let word =
        prop::sample::select(vec!["", "a", "b", " b", "c\r", "é", "\r", "-- ", "@@", "+x", "\\"]);
    let ending = prop::sample::select(vec!["\n", "\r\n"]);
    let line = (word.clone(), ending).prop_map(|(word, ending)| format!("{word}{ending}"));
    (prop::collection::vec(line, 0..24), word).prop_map(|(lines, tail)| lines.concat() + tail)
}

/// Text whose lines all end in the same way.
fn plain_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["\n", "a\n", "b\n", "c d\n", "é\n"]);
    prop::collection::vec(line, 0..24).prop_map(|lines| lines.concat())
}

fn with_returns(text: &str) -> String {
    text.replace('\n', "\r\n")
}

fn edited(document: &Document, edits: &[Edit]) -> Option<Document> {
    Some(replace::apply(document, &Request::new("f", edits)).ok()?.document)
}

fn patched(old: &str, patch: &str) -> Option<String> {
    let patch = parse(patch).unwrap();
    let applied = apply(&patch.files[0], Some(&Document::from_text(old))).unwrap();
    applied.document.map(|document| document.text().to_owned())
}

proptest! {
    #[test]
    fn an_edit_changes_no_bytes_outside_its_range(
        before in any::<Vec<u8>>(),
        after in any::<Vec<u8>>(),
        new in "[a-z\r\n]{0,12}",
    ) {
        // No part of it is in the bytes around it, except by a chance that never comes.
        let needle = "<one place>";
        let bytes = [&before, needle.as_bytes(), &after].concat();
        let document = Document::decode(bytes);
        if document.text().contains(needle) {
            let changed = edited(&document, &[Edit::once(needle, new)]).unwrap();
            let changed = changed.encode();
            prop_assert!(changed.starts_with(&before));
            prop_assert!(changed.ends_with(&after));
        }
    }

    #[test]
    fn a_line_range_moves_no_other_line(
        text in text(),
        start in 1..30_usize,
        length in 0..5_usize,
        new in "[a-c\r\n]{0,12}",
    ) {
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let document = Document::from_text(text.as_str());
        let edit = Edit::lines(start, start + length, new);
        if let Some(changed) = edited(&document, &[edit]) {
            let before = lines[..(start - 1).min(lines.len())].concat();
            let after = lines[(start + length).min(lines.len())..].concat();
            prop_assert!(changed.text().starts_with(&before));
            prop_assert!(changed.text().ends_with(&after));
        }
    }

    #[test]
    fn edits_of_a_file_with_carriage_returns_are_those_of_one_without(
        text in plain_text(),
        old in "[ab\n]{1,4}",
        new in "[xy\n]{0,4}",
    ) {
        let edits = [Edit::everywhere(old, new)];
        let plain = edited(&Document::from_text(text.as_str()), &edits);
        let returns = edited(&Document::from_text(with_returns(&text)), &edits);
        let want = plain.map(|document| with_returns(document.text()));
        prop_assert_eq!(returns.map(|document| document.text().to_owned()), want);
    }

    #[test]
    fn a_diff_that_is_applied_gives_the_new_text(
        old in text(),
        new in text(),
        context in 1..4_usize,
    ) {
        let diff = Diff::between(&old, &new, Options { context, ..Options::EXACT });
        if old != new {
            let patch = diff.with_names(Some("f"), Some("f"));
            prop_assert_eq!(patched(&old, &patch), Some(new), "{}", patch);
        }
    }

    #[test]
    fn a_diff_without_carriage_returns_fits_a_file_with_them(
        old in plain_text(),
        new in plain_text(),
    ) {
        if old != new && !old.is_empty() {
            let diff = Diff::between(&old, &new, Options::EXACT);
            let patch = diff.with_names(Some("f"), Some("f"));
            prop_assert_eq!(patched(&with_returns(&old), &patch), Some(with_returns(&new)));
        }
    }

    #[test]
    fn windows_one_after_the_other_show_every_line(text in text(), bytes in 1..60_usize) {
        let document = Document::from_text(text.as_str());
        let budget = WindowBudget { bytes, line_characters: 100 };
        let mut shown = String::new();
        let mut next = Some(1);
        while let Some(offset) = next {
            let selection = Selection::From { offset, limit: None };
            let window = Window::within(&document, selection, budget).unwrap();
            shown.push_str(&window.text);
            next = window.next_offset;
        }
        let lines = carrel_edit::lines(&text).enumerate();
        let want = lines.map(|(at, line)| format!("{}\t{}\n", at + 1, line.text));
        let want = want.collect::<Vec<_>>().concat();
        prop_assert_eq!(shown, want);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn no_patch_makes_the_parser_or_the_engine_panic(
        (start, end) in prop::sample::select(vec![
            ("", ""),
            ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n", ""),
            ("*** Begin Patch\n*** Update File: f\n", "*** End Patch\n"),
        ]),
        pieces in prop::collection::vec(patch_piece(), 0..12),
        file in text(),
    ) {
        if let Ok(patch) = parse(&format!("{start}{}{end}", pieces.concat())) {
            let _ = apply_all(&patch, |_| Some(Document::from_text(file.as_str())));
            let _ = apply_all(&patch, |_| None);
        }
    }
}

fn patch_piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "diff --git a/f b/f\n",
        "--- a/f\n+++ b/f\n",
        "--- /dev/null\n+++ b/f\n",
        "rename from f\nrename to g\n",
        "new file mode 100644\n",
        "deleted file mode 100644\n",
        "--- \"a/\\303\\274\"\n",
        "@@ -1,3 +1,3 @@\n",
        "@@ -0,0 +1 @@\n",
        "@@ -18446744073709551615,18446744073709551615 +1 @@\n",
        "@@ -18446744073709551615,0 +1 @@\n",
        "@@\n",
        "@@ a\n",
        " a\n",
        " b\n",
        "-a\n",
        "+x\n",
        "\n",
        "\\ No newline at end of file\n",
        "\r\n",
        "*** Begin Patch\n",
        "*** Update File: f\n",
        "*** Add File: g\n",
        "*** Move to: h\n",
        "*** End of File\n",
        "*** End Patch\n",
        "-- \n",
        "é",
    ])
}
