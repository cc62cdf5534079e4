//! Reports in the manner of `JUnit`.

use crate::parse::context::Context;
use crate::parse::report::{Counts, Failure};
use crate::parse::test::TestResults;
use crate::parse::text;
use crate::paths;
use crate::plan::Selector;
use crate::tool::ProjectTool;

use super::xml::{Attributes, Event, events};

/// One `<testcase>`.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
    pub(super) ending: Ending,
    /// The `message` attribute of what went wrong.
    pub(super) message: String,
    /// The text of what went wrong.
    pub(super) text: String,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ending {
    #[default]
    Passed,
    Failed,
    Error,
    Skipped,
}

/// Reads all tests of a document.
pub(super) fn cases(document: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut open: Option<Case> = None;
    let mut inside = false;
    for event in events(document) {
        match event {
            Event::Start { name: "testcase", attributes } => open = Some(begin(attributes)),
            Event::End("testcase") => cases.extend(open.take()),
            Event::Start { name, attributes } => {
                if let (Some(case), Some(ending)) = (&mut open, ending(name)) {
                    case.ending = ending;
                    case.message = attributes.get("message").unwrap_or_default();
                    inside = true;
                }
            }
            Event::End(name) => inside = inside && ending(name).is_none(),
            Event::Text(text) => {
                if let Some(case) = open.as_mut().filter(|_| inside) {
                    case.text.push_str(&text);
                }
            }
        }
    }
    cases
}

fn begin(attributes: Attributes<'_>) -> Case {
    let number = |name: &str| attributes.get(name).and_then(|value| value.parse().ok());
    // A runner of C++ tests says `fail` here and explains itself elsewhere.
    let ending = match attributes.get("status").as_deref() {
        Some("fail") => Ending::Failed,
        Some("notrun" | "disabled") => Ending::Skipped,
        _ => Ending::Passed,
    };
    Case {
        class: attributes.get("classname").unwrap_or_default(),
        name: attributes.get("name").unwrap_or_default(),
        file: attributes.get("file"),
        line: number("line"),
        ending,
        ..Case::default()
    }
}

fn ending(element: &str) -> Option<Ending> {
    match element {
        "failure" | "flakyFailure" | "rerunFailure" => Some(Ending::Failed),
        "error" => Some(Ending::Error),
        "skipped" => Some(Ending::Skipped),
        _ => None,
    }
}

/// Counts one test.
pub(super) fn count(counts: &mut Counts, ending: Ending) {
    match ending {
        Ending::Passed => counts.passed += 1,
        Ending::Failed => counts.failed += 1,
        Ending::Error => counts.errors += 1,
        Ending::Skipped => counts.skipped += 1,
    }
}

/// Reads the reports of runners that write nothing better.
pub(super) fn read(context: &Context<'_>) -> TestResults {
    let mut parsed = TestResults { unreadable: !context.has_files(), ..TestResults::default() };
    for (report, document) in context.files() {
        for case in cases(&document) {
            count(&mut parsed.counts, case.ending);
            match case.ending {
                Ending::Failed | Ending::Error => {
                    parsed.failures.push(failure(context, report, &case));
                }
                Ending::Passed | Ending::Skipped => {}
            }
        }
    }
    if parsed.unreadable && !context.succeeded() {
        parsed.build_errors = crate::parse::formats::compiler_errors(context);
    }
    parsed
}

fn failure(context: &Context<'_>, report: &str, case: &Case) -> Failure {
    let java = matches!(context.invocation.tool, ProjectTool::Maven | ProjectTool::Gradle);
    let (file, line) = match (&case.file, java) {
        (Some(file), _) => (Some(context.file(file)), case.line),
        (None, true) => java_place(report, case),
        (None, false) => (None, case.line),
    };
    let message = if case.message.is_empty() { case.text.trim() } else { case.message.trim() };
    let rerun = Selector {
        target: (!case.class.is_empty()).then(|| case.class.clone()),
        file: file.clone(),
        ..context.selector(case.name.clone())
    };
    let name = if java { format!("{}.{}", case.class, case.name) } else { case.name.clone() };
    Failure {
        name,
        file,
        line,
        diff: text::diff(&case.text).or_else(|| text::diff(message)),
        message: text::without_trace(message),
        rerun: Some(rerun),
    }
}

/// Finds the line of the test's own class in the trace, and the file that it has by convention.
fn java_place(report: &str, case: &Case) -> (Option<String>, Option<u64>) {
    let simple = case.class.rsplit('.').next().unwrap_or(&case.class);
    let outer = simple.split('$').next().unwrap_or(simple);
    let place = case.text.lines().find_map(|line| {
        let inner = line.trim().strip_suffix(')')?.rsplit_once('(')?.1;
        let (file, line) = inner.split_once(':')?;
        (file.split('.').next() == Some(outer)).then_some((file, line.parse().ok()?))
    });
    let Some((file, line)) = place else { return (None, None) };
    let module = report.split("target/surefire").next().unwrap_or_default();
    let module =
        module.split("build/test-results").next().unwrap_or_default().trim_end_matches('/');
    let module = if module.is_empty() { paths::TOP } else { module };
    let language = if paths::extension(file) == "kt" { "kotlin" } else { "java" };
    let package = case.class.strip_suffix(simple).unwrap_or_default().replace('.', "/");
    (Some(paths::join(module, &format!("src/test/{language}/{package}{file}"))), Some(line))
}
