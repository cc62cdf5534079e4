//! The report of pytest, in the family that names files.

use crate::parse::context::Context;
use crate::parse::finding::{Finding, Severity};
use crate::parse::report::Failure;
use crate::parse::test::TestResults;
use crate::parse::text;
use crate::plan::Selector;

use super::junit::{Case, Ending, cases, count};

/// How far the explanation is moved to the right behind its mark.
const INDENT: usize = 7;

/// What pytest answers when nothing was collected.
const NO_TESTS: i32 = 5;

/// What pytest says of a `conftest.py` that it cannot import, before it gives up.
const BROKEN_SETTINGS: &str = "ImportError while loading conftest ";

pub(super) fn read(context: &Context<'_>) -> TestResults {
    let no_tests = context.exit() == Some(NO_TESTS);
    let mut parsed =
        TestResults { no_tests, unreadable: !context.has_files(), ..TestResults::default() };
    for (_, document) in context.files() {
        for case in cases(&document) {
            count(&mut parsed.counts, case.ending);
            match case.ending {
                Ending::Error if case.message == "collection failure" => {
                    parsed.build_errors.push(not_collected(context, &case));
                }
                Ending::Failed | Ending::Error => parsed.failures.push(failure(context, &case)),
                Ending::Passed | Ending::Skipped => {}
            }
        }
    }
    if parsed.unreadable && context.stderr.starts_with(BROKEN_SETTINGS) {
        let case = Case { text: context.stderr.to_string(), ..Case::default() };
        parsed.build_errors.push(not_collected(context, &case));
    }
    parsed
}

fn failure(context: &Context<'_>, case: &Case) -> Failure {
    let node = node(case);
    let file = case.file.as_deref().map(|file| context.file(file));
    // The report counts the line of the definition from 0.
    let line = own_places(context, &case.text)
        .find_map(|(found, line)| (Some(found) == file).then_some(line))
        .or_else(|| case.line.map(|line| line + 1));
    Failure {
        name: node.clone(),
        line,
        diff: explained(&case.text).or_else(|| text::diff(&case.message)),
        message: text::bounded(&case.message),
        rerun: Some(Selector { file: file.clone(), ..context.selector(node) }),
        file,
    }
}

/// Puts the node's identifier together, which the report has in pieces:
/// `a.test_b.TestC` and `test_d` of `a/test_b.py` are `a/test_b.py::TestC::test_d`.
fn node(case: &Case) -> String {
    let Some(file) = &case.file else { return format!("{}::{}", case.class, case.name) };
    let module = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
    let classes = case.class.strip_prefix(&module).unwrap_or_default();
    let classes = classes.split('.').filter(|class| !class.is_empty());
    let mut node = file.clone();
    for part in classes.chain([case.name.as_str()]) {
        node.push_str("::");
        node.push_str(part);
    }
    node
}

/// Finds each `file.py:12: Error` of the user's own code, the last one first.
fn own_places(context: &Context<'_>, text: &str) -> impl Iterator<Item = (String, u64)> {
    text.lines().rev().filter_map(|line| {
        let (place, _) = line.split_once(": ")?;
        let (path, row, _) = text::place(place)?;
        let file = context.file(path);
        (Context::is_own(&file) && !path.contains(' ')).then_some((file, row))
    })
}

/// Returns the lines that pytest marks as the explanation, when there are several.
fn explained(text: &str) -> Option<String> {
    let marked = text.lines().filter_map(|line| line.strip_prefix('E'));
    let lines: Vec<&str> = marked.map(|line| line.get(INDENT..).unwrap_or_default()).collect();
    (lines.len() > 1).then(|| text::bounded(&lines.join("\n")))
}

fn not_collected(context: &Context<'_>, case: &Case) -> Finding {
    let marked = case.text.lines().rev().filter_map(|line| line.strip_prefix("E "));
    let message = marked.map(str::trim).find(|line| line.contains("Error"));
    let message = message.unwrap_or_else(|| case.text.lines().next_back().unwrap_or_default());
    let file = case.file.as_deref().map(|file| context.file(file));
    let place =
        python_place(context, &case.text).or_else(|| own_places(context, &case.text).next());
    let finding = Finding::new(Severity::Error, text::bounded(message));
    match (place, file) {
        (Some((file, line)), _) => finding.at(file, Some(line), None),
        (None, Some(file)) => finding.at(file, None, None),
        (None, None) => finding,
    }
}

/// Finds the last `File "x.py", line 12` of the user's own code.
pub(super) fn python_place(context: &Context<'_>, text: &str) -> Option<(String, u64)> {
    text.lines().rev().find_map(|line| {
        let rest = line.split_once("File \"")?.1;
        let (path, rest) = rest.split_once("\", line ")?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        let file = context.file(path);
        Context::is_own(&file).then_some((file, digits.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_put_together_from_its_pieces() {
        let case = |class: &str, name: &str| Case {
            class: class.to_owned(),
            name: name.to_owned(),
            file: Some("a/test_b.py".to_owned()),
            ..Case::default()
        };
        assert_eq!(node(&case("a.test_b", "test_d[x::y]")), "a/test_b.py::test_d[x::y]");
        assert_eq!(node(&case("a.test_b.T.U", "test_d")), "a/test_b.py::T::U::test_d");
    }
}
