//! Files that Node takes for a test that passed, because they ended well and reported none.
//!
//! Helpers do that, and scripts that only assert. A file with tests does it when it is ended early.

use std::path::Path;

use carrel_fsroot::Root;

use crate::parse::artifacts::MAX_ARTIFACT_BYTES;
use crate::parse::finding::{Finding, Severity};
use crate::parse::report::{TestReport, Verdict};

const ENDED_EARLY: &str =
    "ended before its tests were reported; a call of process.exit() does that";

/// What defines a test.
const CALLS: [&str; 4] = ["test", "it", "describe", "suite"];

/// Looks at the silent files of a report, and counts those that have tests as broken.
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

/// Tells whether a script has tests for Node's own runner.
fn has_tests(text: &str) -> bool {
    let at_once = ["node:test')(", "node:test\")("];
    text.contains("node:test")
        && (CALLS.iter().any(|name| calls(text, name))
            || at_once.iter().any(|call| text.contains(call)))
}

/// Tells whether a function is called that has a name of its own, such as `it(` or `it.only(`.
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
