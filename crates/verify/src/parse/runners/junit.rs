//! Reports in the `JUnit` format, with quick-xml.
//!
//! The format has no schema that all runners follow; only `<testcase>` and the elements for its
//! status are read. Reports are untrusted. Input is bounded by the size of artifacts, no tree is
//! built, and references are resolved only if they are numeric or one of the five predefined: a
//! document type definition is skipped, so entities cannot be defined or expanded. A malformed
//! document yields the cases before the error and is marked incomplete, which excludes the verdict
//! `passed`.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::parse::{Failure, ParseContext, TestResults, text};
use crate::paths;
use crate::plan::Selector;
use crate::tool::ProjectTool;

#[derive(Debug, Default)]
pub(super) struct TestCase {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
    pub(super) status: CaseStatus,
    pub(super) message: String,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CaseStatus {
    #[default]
    Passed,
    Failed,
    Error,
    Skipped,
}

/// Reads the test cases of a document, up to its end or to the first error. Also returns false if
/// the document is malformed, ends too early, or announces more tests than it contains, so that
/// cases may be missing.
fn cases(document: &str) -> (Vec<TestCase>, bool) {
    let mut reader = Reader::from_str(document);
    reader.config_mut().expand_empty_elements = true;
    // Runners forget to escape `&` in messages.
    reader.config_mut().allow_dangling_amp = true;
    let mut collector = CaseCollector::default();
    let mut depth = 0_usize;
    let complete = loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                depth += 1;
                collector.start(&element);
            }
            Ok(Event::End(element)) => {
                depth = depth.saturating_sub(1);
                collector.end(element.name().as_ref());
            }
            Ok(Event::Text(text)) => collector.text(&text),
            Ok(Event::CData(text)) => collector.text(&text),
            Ok(Event::GeneralRef(reference)) => collector.reference(&reference),
            // A document type definition is skipped, so it cannot define entities.
            Ok(
                Event::Empty(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_),
            ) => {}
            Ok(Event::Eof) => break depth == 0 && !collector.is_short,
            Err(_) => break false,
        }
    };
    (collector.cases, complete)
}

#[derive(Default)]
struct CaseCollector {
    cases: Vec<TestCase>,
    open: Option<TestCase>,
    /// Announced number of tests of each open suite, and the number of cases before it.
    suites: Vec<(Option<usize>, usize)>,
    /// True if a suite announced more tests than it contained.
    is_short: bool,
    /// True inside of `<failure>` and similar elements, whose text explains the status.
    in_explanation: bool,
}

impl CaseCollector {
    fn start(&mut self, element: &BytesStart<'_>) {
        let name = element.name();
        if name.as_ref() == "testcase" {
            self.open = Some(begin(element));
        } else if name.as_ref() == "testsuite" {
            let announced = attribute(element, "tests").and_then(|count| count.parse().ok());
            self.suites.push((announced, self.cases.len()));
        } else if let (Some(case), Some(status)) = (&mut self.open, status(name.as_ref())) {
            case.status = status;
            case.message = attribute(element, "message").unwrap_or_default();
            self.in_explanation = true;
        }
    }

    fn end(&mut self, name: &str) {
        if name == "testcase" {
            self.cases.extend(self.open.take());
        } else if name == "testsuite" {
            let (announced, before) = self.suites.pop().unwrap_or_default();
            let contained = self.cases.len() - before;
            self.is_short |= announced.is_some_and(|announced| contained < announced);
        } else if status(name).is_some() {
            self.in_explanation = false;
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(case) = self.open.as_mut().filter(|_| self.in_explanation) {
            case.text.push_str(text);
        }
    }

    /// Resolves numeric and the five predefined references; any other one stays as it is.
    fn reference(&mut self, reference: &BytesRef<'_>) {
        match (reference.resolve_char_ref(), resolve_predefined_entity(reference)) {
            (Ok(Some(character)), _) => self.text(character.encode_utf8(&mut [0; 4])),
            (_, Some(text)) => self.text(text),
            _ => self.text(&format!("&{};", &**reference)),
        }
    }
}

/// Returns the value of an attribute, as written if it contains invalid references.
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    let found = attributes.with_checks(false).flatten().find(|found| found.key.as_ref() == name)?;
    Some(unescape(&found.value).unwrap_or(Cow::Borrowed(&found.value)).into_owned())
}

fn begin(element: &BytesStart<'_>) -> TestCase {
    // CTest writes the status into this attribute and its output elsewhere.
    let status = match attribute(element, "status").as_deref() {
        Some("fail") => CaseStatus::Failed,
        Some("notrun" | "disabled") => CaseStatus::Skipped,
        _ => CaseStatus::Passed,
    };
    TestCase {
        class: attribute(element, "classname").unwrap_or_default(),
        name: attribute(element, "name").unwrap_or_default(),
        file: attribute(element, "file"),
        line: attribute(element, "line").and_then(|line| line.parse().ok()),
        status,
        ..TestCase::default()
    }
}

fn status(element: &str) -> Option<CaseStatus> {
    match element {
        "failure" | "flakyFailure" | "rerunFailure" => Some(CaseStatus::Failed),
        "error" => Some(CaseStatus::Error),
        "skipped" => Some(CaseStatus::Skipped),
        _ => None,
    }
}

/// Reads the report files of a run: the counts of all cases, and the cases that failed, each with
/// the name of its file.
pub(super) fn failed_cases<'a>(
    context: &ParseContext<'a>,
) -> (TestResults, Vec<(&'a str, TestCase)>) {
    let mut parsed = TestResults { unreadable: !context.has_files(), ..TestResults::default() };
    let mut failed = Vec::new();
    for (report, document) in context.files() {
        let (cases, complete) = cases(&document);
        parsed.unreadable |= !complete;
        for case in cases {
            match case.status {
                CaseStatus::Passed => parsed.counts.passed += 1,
                CaseStatus::Skipped => parsed.counts.skipped += 1,
                CaseStatus::Failed => parsed.counts.failed += 1,
                CaseStatus::Error => parsed.counts.errors += 1,
            }
            if matches!(case.status, CaseStatus::Failed | CaseStatus::Error) {
                failed.push((report, case));
            }
        }
    }
    (parsed, failed)
}

/// Reads the reports of runners without a reader of their own.
pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let (mut parsed, failed) = failed_cases(context);
    parsed.failures = failed.iter().map(|(report, case)| failure(context, report, case)).collect();
    if context.invocation.tool == ProjectTool::Maven {
        let crashed = crashed_classes(&context.stdout);
        parsed.counts.errors += crashed.len() as u64;
        parsed.failures.extend(crashed.into_iter().map(|class| {
            let rerun = Selector { target: Some(class.to_owned()), ..context.selector("*") };
            Failure::ended_early(class, rerun, Some("the forked virtual machine ended"))
        }));
    }
    if !context.has_files() && !context.succeeded() {
        parsed.build_errors = crate::parse::formats::compiler_errors(context);
    }
    parsed
}

fn failure(context: &ParseContext<'_>, report: &str, case: &TestCase) -> Failure {
    let java = matches!(context.invocation.tool, ProjectTool::Maven | ProjectTool::Gradle);
    let (file, line) = match (&case.file, java) {
        (Some(file), _) => (Some(context.file(file)), case.line),
        (None, true) => java_location(report, case),
        (None, false) => (None, case.line),
    };
    let message = if case.message.is_empty() { case.text.trim() } else { case.message.trim() };
    let target = (!case.class.is_empty()).then(|| case.class.clone());
    let failure = context.failure(case.name.clone(), file, line, message);
    Failure {
        name: if java { format!("{}.{}", case.class, case.name) } else { case.name.clone() },
        diff: text::diff(&case.text).or(failure.diff),
        rerun: failure.rerun.map(|rerun| Selector { target, ..rerun }),
        ..failure
    }
}

/// Returns the classes below `[ERROR] Crashed tests:` of Surefire, which prints them several times.
fn crashed_classes(output: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let mut lines = output.lines();
    while lines.any(|line| line.trim_end() == "[ERROR] Crashed tests:") {
        let classes = lines.by_ref().map_while(|line| {
            let class = line.strip_prefix("[ERROR] ")?.trim();
            let is_class = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$');
            (!class.is_empty() && class.chars().all(is_class)).then_some(class)
        });
        for class in classes {
            if !found.contains(&class) {
                found.push(class);
            }
        }
    }
    found
}

/// Returns the line of the test's class in the trace and the file in which it is by convention.
fn java_location(report: &str, case: &TestCase) -> (Option<String>, Option<u64>) {
    let simple = case.class.rsplit('.').next().unwrap_or(&case.class);
    let outer = simple.split('$').next().unwrap_or(simple);
    let location = case.text.lines().find_map(|line| {
        let inner = line.trim().strip_suffix(')')?.rsplit_once('(')?.1;
        let (file, line) = inner.split_once(':')?;
        (file.split('.').next() == Some(outer)).then_some((file, line.parse().ok()?))
    });
    let Some((file, line)) = location else { return (None, None) };
    let module = report.split("target/surefire").next().unwrap_or_default();
    let module =
        module.split("build/test-results").next().unwrap_or_default().trim_end_matches('/');
    let module = if module.is_empty() { paths::TOP } else { module };
    let language = if paths::extension(file) == "kt" { "kotlin" } else { "java" };
    let package = case.class.strip_suffix(simple).unwrap_or_default().replace('.', "/");
    (Some(paths::join(module, &format!("src/test/{language}/{package}{file}"))), Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(document: &str) -> TestCase {
        let (mut cases, complete) = cases(document);
        assert!(complete && cases.len() == 1, "{document}");
        cases.remove(0)
    }

    #[test]
    fn attributes_text_and_references_are_decoded() {
        let case = only(
            "<?xml version='1.0'?><!-- a > b --><suite><testcase name=\"x > &quot;y&#10;\" line='7'>\
             <failure message='a &lt; b'>1 &amp; 2 &#x33; & <![CDATA[<raw>]]></failure></testcase></suite>",
        );
        assert_eq!((case.name.as_str(), case.line), ("x > \"y\n", Some(7)));
        assert_eq!((case.message.as_str(), case.text.as_str()), ("a < b", "1 & 2 3 & <raw>"));
        assert_eq!(case.status, CaseStatus::Failed);
    }

    #[test]
    fn classes_of_crashed_virtual_machines_are_listed_once() {
        let output = "[ERROR] Process Exit Code: 0\n[ERROR] Crashed tests:\n[ERROR] com.a.FirstTest\n\
            [ERROR] com.a.SecondTest\n[ERROR] \tat org.x.Y(Y.java:1)\n[ERROR] Crashed tests:\n\
            [ERROR] com.a.FirstTest\n";
        assert_eq!(crashed_classes(output), ["com.a.FirstTest", "com.a.SecondTest"]);
    }

    #[test]
    fn entities_of_a_document_type_are_never_expanded() {
        let case = only(
            "<!DOCTYPE s [<!ENTITY a 'boom'><!ENTITY b '&a;&a;'>]>\
             <s><testcase name='&b;'><error>&b;</error></testcase></s>",
        );
        assert_eq!((case.name.as_str(), case.text.as_str()), ("&b;", "&b;"));
    }

    #[test]
    fn a_malformed_or_truncated_document_is_incomplete() {
        for document in
            ["<s><testcase/>", "<s><testcase/></t>", "<s><testcase/></s><", "<s a='", "<s"]
        {
            assert!(!cases(document).1, "{document}");
        }
        let short = "<testsuites><testsuite tests='2'><testcase/></testsuite></testsuites>";
        assert!(!cases(short).1);
        let nested = "<testsuite tests='2'><testsuite tests='2'><testcase/><testcase/></testsuite>\
            </testsuite>";
        assert!(cases(nested).1);
        for document in ["", "\u{0}", "<s/>", "<s><testcase/></s>"] {
            assert!(cases(document).1, "{document}");
        }
        assert_eq!(cases("<s><testcase/><testcase").0.len(), 1);
    }
}
