//! Unified diffs, with or without the headers of git.

use super::error::{LineProblem, ParseError};
use super::header::{Header, at_names, is_binary_note};
use super::parse::{Cursor, push_file};
use super::{FilePatch, Operation, hunk};

/// What may stand where no file section is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    /// Anything: a message above the patch, or below its signature.
    Prose,
    /// Only what tools put there. Anything else is a line of a hunk that lost its sign.
    Sections,
}

/// Reads all sections.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<FilePatch>, ParseError> {
    let mut files = Vec::new();
    let mut between = Between::Prose;
    while let Some(line) = cursor.peek() {
        if line.starts_with("diff --git ") {
            let header = Header::parse_git(cursor)?;
            push_file(&mut files, section(cursor, &header)?)?;
            between = Between::Sections;
        } else if at_names(cursor) {
            let header = Header::parse_plain(cursor)?;
            push_file(&mut files, section(cursor, &header)?)?;
            between = Between::Sections;
        } else {
            between = pass(cursor, line, between)?;
            cursor.advance();
        }
    }
    Ok(files)
}

/// Passes a line that belongs to no section.
fn pass(cursor: &Cursor<'_>, line: &str, between: Between) -> Result<Between, ParseError> {
    if is_binary_note(line) {
        return Err(ParseError::Binary { path: line.to_owned() });
    }
    if line.starts_with("@@ -") {
        return Err(cursor.error(LineProblem::HunkWithoutFile));
    }
    match between {
        Between::Prose => Ok(Between::Prose),
        Between::Sections if line == hunk::SIGNATURE => Ok(Between::Prose),
        Between::Sections if is_separator(line) => Ok(Between::Sections),
        Between::Sections => Err(cursor.error(LineProblem::NoSign)),
    }
}

fn is_separator(line: &str) -> bool {
    const STARTS: [&str; 5] = ["diff ", "Index: ", "===", "Only in ", "```"];
    line.trim().is_empty() || STARTS.iter().any(|start| line.starts_with(start))
}

/// Reads the hunks below a header.
fn section(cursor: &mut Cursor<'_>, header: &Header) -> Result<FilePatch, ParseError> {
    let operation = header.operation().ok_or_else(|| cursor.error_before(LineProblem::NoName))?;
    let mut hunks = Vec::new();
    while cursor.peek().is_some_and(|line| line.starts_with("@@")) {
        hunks.push(hunk::parse(cursor)?);
    }
    let mode = header.mode;
    let only_hunks = matches!(operation, Operation::Modify { .. }) && mode.is_none();
    if only_hunks && hunks.is_empty() {
        return Err(cursor.error_before(LineProblem::NoHunks));
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
            format!("{sign}{}{}", line.text, if line.ended { "" } else { "\\" })
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
    fn git_sections_say_what_happens_to_files() {
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
    fn carriage_returns_of_the_whole_patch_are_taken_off() {
        let text = "--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-b\r\n+c\r\n";
        assert_eq!(shape(text), [(modify("f"), None, vec!["-b|+c".to_owned()])]);
    }

    #[test]
    fn what_is_no_patch_is_refused_with_its_line() {
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
