//! The JSON report of Mocha. A document without the `stats` object is output of the tests and not a
//! report.

use serde_json::Value;

use crate::parse::formats::node_crash;
use crate::parse::{Failure, Finding, ParseContext, TestResults, text};

const ENDED_EARLY: &str = "the process ended with status 0 before the results of all tests, for example by process.exit()";

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults::default();
    let report = text::json(&context.report()).filter(|report| report["stats"].is_object());
    let Some(report) = report else {
        let exited = context.succeeded() && !context.truncated;
        let early = exited.then(|| Finding::error(ENDED_EARLY));
        parsed.crashed(node_crash::crash(context).or(early));
        return parsed;
    };
    let number = |key: &str| report["stats"][key].as_u64().unwrap_or(0);
    parsed.counts.passed = number("passes");
    parsed.counts.skipped = number("pending");
    parsed.counts.failed = number("failures");
    let failures = report["failures"].as_array().into_iter().flatten();
    parsed.failures = failures.map(|test| failure(context, test)).collect();
    parsed
}

fn failure(context: &ParseContext<'_>, test: &Value) -> Failure {
    let name = test["fullTitle"].as_str().unwrap_or_default();
    let file = test["file"].as_str().map(|file| context.file(file));
    let error = &test["err"];
    let trace = error["stack"].as_str().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or(trace);
    let location = text::stack_location(context, trace);
    let line = location.filter(|(found, _)| Some(found) == file.as_ref()).map(|(_, line)| line);
    let failure = context.failure(test_behind(name), file, line, message);
    Failure { name: name.to_owned(), diff: compared(error).or(failure.diff), ..failure }
}

/// Returns the test to select for a failed hook, whose title names it.
fn test_behind(title: &str) -> String {
    let hook = title.split_once(" hook for \"");
    let parts = hook.and_then(|(front, test)| {
        Some((front.rsplit_once(" \"").map_or("", |(parent, _)| parent), test.strip_suffix('"')?))
    });
    parts.map_or_else(
        || title.to_owned(),
        |(parent, test)| format!("{parent} {test}").trim().to_owned(),
    )
}

fn compared(error: &Value) -> Option<String> {
    let expected = error["expected"].as_str()?;
    let actual = error["actual"].as_str()?;
    let marked = |sign: char, text: &str| {
        text.lines().map(|line| format!("{sign} {line}")).collect::<Vec<_>>().join("\n")
    };
    let both = format!("- expected\n+ actual\n{}\n{}", marked('-', expected), marked('+', actual));
    Some(text::truncated(&both))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_hook_is_rerun_through_its_test() {
        assert_eq!(
            test_behind("outer inner \"before each\" hook for \"does it\""),
            "outer inner does it"
        );
        assert_eq!(test_behind("\"before all\" hook for \"does it\""), "does it");
        assert_eq!(test_behind("plain title"), "plain title");
    }
}
