//! Detection of test files that exited before their tests were reported.
//!
//! Node counts a file that exits with status 0 and reports no test as one passed test. For helper
//! files and plain scripts that is right, but a file with tests does the same if it calls
//! `process.exit()` too early. The source of each such file is examined: if it uses `node:test` and
//! defines tests, the file is counted as broken and the verdict becomes `failed`.

use std::path::Path;

use carrel_fsroot::Root;

use crate::parse::{Finding, MAX_ARTIFACT_BYTES, Severity, TestReport, Verdict};

const ENDED_EARLY: &str = "exited before its tests were reported, for example by process.exit()";

const CALLS: [&str; 4] = ["test", "it", "describe", "suite"];

/// Examines the silent files of a report, and counts a file with tests as an error.
pub fn check_unreported_files(report: &mut TestReport, root: &Root) {
    for file in std::mem::take(&mut report.silent) {
        let Ok(text) = root.read(Path::new(&file), MAX_ARTIFACT_BYTES) else { continue };
        if has_tests(&String::from_utf8_lossy(&text)) {
            report.verdict = Verdict::Failed;
            report.counts.passed = report.counts.passed.saturating_sub(1);
            report.counts.errors += 1;
            let finding = Finding::new(Severity::Error, ENDED_EARLY);
            report.build_errors.push(finding.at(file, None, None));
        }
    }
}

/// Returns true if a script defines tests for Node's test runner.
fn has_tests(text: &str) -> bool {
    let at_once = ["node:test')(", "node:test\")("];
    text.contains("node:test")
        && (CALLS.iter().any(|name| calls(text, name))
            || at_once.iter().any(|call| text.contains(call)))
}

/// Returns true if a text calls a function such as `it(` or `it.only(`, but not `submit(` or
/// `.it(`.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = &text[at + name.len()..];
        let called = ["(", ".only(", ".skip(", ".todo("].iter().any(|call| after.starts_with(call));
        called && before.is_none_or(|c| !c.is_alphanumeric() && !"_$.".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_tests_when_it_calls_the_runner() {
        for text in [
            "import test from 'node:test';\ntest('a', () => {});",
            "import { it, describe } from \"node:test\";\ndescribe('a', () => it('b'));",
            "const { test } = require('node:test');\nawait test.only('a');",
            "require('node:test')('a', () => {});",
        ] {
            assert!(has_tests(text), "{text}");
        }
        for text in [
            "require('assert')(true);\ntest('a');",
            "import { mock } from 'node:test';\nexport const submit = (x) => attest(x);",
            "import { after } from 'node:test';\n/x/.test('y');",
            "",
        ] {
            assert!(!has_tests(text), "{text}");
        }
    }
}
