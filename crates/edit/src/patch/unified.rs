//! Parser for unified diffs, with or without git headers.
//!
//! Before the first section and after a mail signature anything may stand, such as a commit
//! message. Between sections only the lines that tools put there are skipped: any other line most
//! likely belongs to a hunk and lost its sign, and skipping it would apply half of a change.

use super::error::{LineProblem, ParseError};
use super::file_header::{FileHeader, at_names, is_binary_note};
use super::parse::{PatchReader, push_file};
use super::{FilePatch, Operation, hunk};

/// The lines that are accepted outside of sections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutsideSection {
    /// Any text: a message above the patch or below its signature.
    Prose,
    /// Only blank lines, code fences and the lines that diff tools print.
    Separators,
}

pub(super) fn parse(reader: &mut PatchReader<'_>) -> Result<Vec<FilePatch>, ParseError> {
    let mut files = Vec::new();
    let mut outside = OutsideSection::Prose;
    while let Some(line) = reader.peek() {
        if line.starts_with("diff --git ") || at_names(reader) {
            let header = FileHeader::parse(reader)?;
            push_file(&mut files, section(reader, &header)?)?;
            outside = OutsideSection::Separators;
        } else {
            outside = skip_line(reader, line, outside)?;
            reader.advance();
        }
    }
    Ok(files)
}

fn skip_line(
    reader: &PatchReader<'_>,
    line: &str,
    outside: OutsideSection,
) -> Result<OutsideSection, ParseError> {
    if is_binary_note(line) {
        return Err(ParseError::Binary { path: line.to_owned() });
    }
    if line.starts_with("@@ -") {
        return Err(reader.error(LineProblem::HunkWithoutFile));
    }
    match outside {
        OutsideSection::Prose => Ok(OutsideSection::Prose),
        OutsideSection::Separators if line == hunk::SIGNATURE => Ok(OutsideSection::Prose),
        OutsideSection::Separators if is_separator(line) => Ok(OutsideSection::Separators),
        OutsideSection::Separators => Err(reader.error(LineProblem::NoSign)),
    }
}

fn is_separator(line: &str) -> bool {
    const STARTS: [&str; 5] = ["diff ", "Index: ", "===", "Only in ", "```"];
    line.trim().is_empty() || STARTS.iter().any(|start| line.starts_with(start))
}

fn section(reader: &mut PatchReader<'_>, header: &FileHeader) -> Result<FilePatch, ParseError> {
    let operation = header.operation().ok_or_else(|| reader.error_before(LineProblem::NoName))?;
    let mut hunks = Vec::new();
    while reader.peek().is_some_and(|line| line.starts_with("@@")) {
        hunks.push(hunk::parse(reader)?);
    }
    let mode = header.mode;
    let only_hunks = matches!(operation, Operation::Modify { .. }) && mode.is_none();
    if only_hunks && hunks.is_empty() {
        return Err(reader.error_before(LineProblem::NoHunks));
    }
    Ok(FilePatch { operation, mode, hunks })
}

#[cfg(test)]
mod tests {
    use super::super::{HunkLine, Patch, Sign, parse};
    use super::*;
    use pretty_assertions::assert_eq;

    fn shape(text: &str) -> Vec<(Operation, Option<u32>, Vec<String>)> {
        let Patch { files } = parse(text).unwrap();
        let shown = |line: &HunkLine| {
            let sign = match line.sign {
                Sign::Context => ' ',
                Sign::Remove => '-',
                Sign::Add => '+',
            };
            format!("{sign}{}{}", line.text, if line.terminated { "" } else { "\\" })
        };
        let hunks = |file: &FilePatch| {
            let hunks = file.hunks.iter();
            hunks.map(|hunk| hunk.lines.iter().map(shown).collect::<Vec<_>>().join("|")).collect()
        };
        files.iter().map(|file| (file.operation.clone(), file.mode, hunks(file))).collect()
    }

    fn modify(path: &str) -> Operation {
        Operation::Modify { path: path.to_owned() }
    }

    #[test]
    fn git_headers_determine_the_operation() {
        let text = "From: someone\n\nA message\n--- not a header\n\n\
            diff --git a/new b/new\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/new\n\
            @@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
            diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n\
            @@ -1 +0,0 @@\n-x\n\
            diff --git a/p q b/r s\nsimilarity index 90%\nrename from p q\nrename to r s\n\
            diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
            diff --git a/empty b/empty\nnew file mode 100644\nindex 0000..e69de29\n\
            diff --git a/c b/d\ncopy from c\ncopy to d\n";
        let want = [
            (Operation::Create { path: "new".into() }, Some(0o100_755), vec!["+x\\".to_owned()]),
            (Operation::Delete { path: "old".into() }, None, vec!["-x".into()]),
            (Operation::Rename { from: "p q".into(), to: "r s".into() }, None, vec![]),
            (modify("run"), Some(0o100_755), vec![]),
            (Operation::Create { path: "empty".into() }, Some(0o100_644), vec![]),
            (Operation::Copy { from: "c".into(), to: "d".into() }, None, vec![]),
        ];
        assert_eq!(shape(text), want);
    }

    #[test]
    fn hunks_end_by_their_counts_and_where_those_are_wrong_by_the_next_header() {
        let cases: [(&str, &[&str]); 8] = [
            ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", &[" a|-b|+c"]),
            // A removed line that looks like a header.
            (
                "@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n@@ -9 +9 @@\n-x\n+y\n",
                &[" a|--- b|+++ c", "-x|+y"],
            ),
            ("@@ -1,9 +1,9 @@\n a\n-b\n\n@@ -20 +20 @@\n-x\n+y\n", &[" a|-b", "-x|+y"]),
            ("@@ -1 +1 @@\n a\n-b\n\n+c\n", &[" a|-b| |+c"]),
            ("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", &[" a| |-b|+c"]),
            ("@@ -1 +1 @@\n-b\n+c\n-- \n2.40.0\n", &["-b|+c"]),
            ("@@ @@\n a\n-b\n```\n", &[" a|-b"]),
            ("@@ -1 +1 @@\n-b\r\n+c\r\n", &["-b\r|+c\r"]),
        ];
        for (hunks, want) in cases {
            let want: Vec<_> = want.iter().map(|&hunk| hunk.to_owned()).collect();
            let text = format!("--- a/f\n+++ b/f\n{hunks}");
            assert_eq!(shape(&text), [(modify("f"), None, want)], "{hunks}");
        }
    }

    #[test]
    fn counts_that_are_too_large_do_not_swallow_the_next_file() {
        let text = "--- f\n+++ f\n@@ -1,9 +1,9 @@\n-b\n+c\n--- g\n+++ g\n@@ -1 +1 @@\n-x\n+y\n";
        let want = [
            (modify("f"), None, vec!["-b|+c".to_owned()]),
            (modify("g"), None, vec!["-x|+y".into()]),
        ];
        assert_eq!(shape(text), want);
    }

    #[test]
    fn carriage_returns_on_every_line_are_removed() {
        let text = "--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-b\r\n+c\r\n";
        assert_eq!(shape(text), [(modify("f"), None, vec!["-b|+c".to_owned()])]);
    }

    #[test]
    fn an_invalid_patch_is_refused_with_its_line() {
        let cases = [
            ("@@ -1 +1 @@\n-a\n+b\n", 1, LineProblem::HunkWithoutFile),
            ("--- a/f\n+++ b/f\n", 2, LineProblem::NoHunks),
            ("--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-a\nb\n", 5, LineProblem::NoSign),
            ("--- a/f\n+++ b/f\n@@ -1 +1\n-a\n", 3, LineProblem::HunkHeader),
            ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n", 3, LineProblem::EmptyHunk),
            ("--- \"a\n+++ b\n", 1, LineProblem::Name),
            ("--- /dev/null\n+++ /dev/null\n", 2, LineProblem::NoName),
        ];
        for (text, line, problem) in cases {
            assert_eq!(parse(text), Err(ParseError::Line { line, problem }), "{text}");
        }
        assert_eq!(parse("hello\n"), Err(ParseError::Empty));
    }

    #[test]
    fn binary_patches_are_refused_by_the_name_of_their_file() {
        for change in ["GIT binary patch\nliteral 3\n", "Binary files a/x and b/x differ\n"] {
            let text = format!("diff --git a/x b/x\nindex 1..2 100644\n{change}");
            assert_eq!(parse(&text), Err(ParseError::Binary { path: "x".into() }));
        }
    }
}
