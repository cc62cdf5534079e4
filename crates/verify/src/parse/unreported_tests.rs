//! Detection of test files that exited before their tests were reported.
//!
//! Node counts a file that exits with status 0 and reports no test as one passed test. For helper
//! files and plain scripts that is right, but a file with tests does the same if it calls
//! `process.exit()` too early. The source of each such file is examined: if it calls a function of
//! `node:test` that defines tests, under any name and also through a module of its own, the file is
//! counted as broken and the verdict becomes `failed`.

use std::path::Path;

use carrel_fsroot::Root;

use crate::parse::{Finding, MAX_ARTIFACT_BYTES, Severity, TestReport, Verdict};
use crate::paths;

const ENDED_EARLY: &str = "exited before its tests were reported, for example by process.exit()";

const MODULE: &str = "node:test";

/// Functions of `node:test` that define tests.
const CALLS: [&str; 4] = ["test", "it", "describe", "suite"];

/// Members of these functions that define tests as well.
const VARIANTS: [&str; 3] = ["only", "skip", "todo"];

/// Bounds the modules that are looked into for one file.
const MAX_MODULES: usize = 20;

/// Examines the silent files of a report, and counts a file with tests as an error.
pub fn check_unreported_files(report: &mut TestReport, root: &Root) {
    let read = |path: &str| {
        let bytes = root.read(Path::new(path), MAX_ARTIFACT_BYTES).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    for file in std::mem::take(&mut report.silent) {
        let Some(text) = read(&file) else { continue };
        let through_module = || {
            let directory = paths::parent(&file).unwrap_or(paths::TOP);
            let modules = local_modules(&text, directory);
            let uses = |path: &String| read(path).is_some_and(|text| text.contains(MODULE));
            CALLS.iter().any(|name| calls(&text, name)) && modules.iter().any(uses)
        };
        if has_tests(&text) || through_module() {
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
    text.match_indices(MODULE).any(|(at, _)| {
        // `require('node:test')('name', …)` and `require('node:test').test('name', …)`.
        let after = text[at + MODULE.len()..].trim_start_matches(['\'', '"', '`', ')']);
        let at_once = after.starts_with('(') || CALLS.iter().any(|name| member_call(after, name));
        at_once || bound_names(&text[..at]).iter().any(|bound| bound.is_called(text))
    })
}

/// A local name for `node:test` or for one of its functions.
#[derive(Debug, PartialEq, Eq)]
enum Bound<'a> {
    /// The module, which is also the function `test`.
    Module(&'a str),
    Function(&'a str),
}

impl Bound<'_> {
    fn is_called(&self, text: &str) -> bool {
        match self {
            Self::Function(name) => calls(text, name),
            Self::Module(name) => {
                calls(text, name)
                    || uses(text, name).any(|after| CALLS.iter().any(|n| member_call(after, n)))
            }
        }
    }
}

/// Returns the names that the statement before the module's name binds.
fn bound_names(before: &str) -> Vec<Bound<'_>> {
    let keywords = ["import", "const", "let", "var"];
    let start = keywords.iter().filter_map(|word| before.rfind(&format!("{word} "))).max();
    let start = start.or_else(|| before.rfind("import{"));
    let Some(statement) = start.map(|start| &before[start..]) else { return Vec::new() };
    // `require(` and `import(` of a dynamic import end the names, as does `from`.
    let ends = ["require(", " from", "}from", "= await", "= import("];
    let end = ends.iter().filter_map(|end| statement.find(end)).min().unwrap_or(statement.len());
    let names = &statement[..statement.len().min(end + 1)];
    let names = names.trim_start_matches(|c: char| c.is_alphabetic());
    let (outside, inside) = match names.split_once('{') {
        Some((outside, rest)) => (outside, rest.split('}').next().unwrap_or_default()),
        None => (names, ""),
    };
    let word = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
    let modules = outside.split(word).filter(|name| !matches!(*name, "" | "as" | "from"));
    let functions = inside.split(',').filter_map(|item| {
        let mut names = item.split(word).filter(|name| !matches!(*name, "" | "as" | "type"));
        let imported = names.next()?;
        let local = names.next().unwrap_or(imported);
        match imported {
            "default" => Some(Bound::Module(local)),
            imported if CALLS.contains(&imported) => Some(Bound::Function(local)),
            _ => None,
        }
    });
    modules.map(Bound::Module).chain(functions).collect()
}

/// Returns true if a text calls a function such as `it(` or `it.only(`, but not `submit(` or
/// `.it(`.
fn calls(text: &str, name: &str) -> bool {
    uses(text, name).any(|after| {
        after.starts_with('(') || VARIANTS.iter().any(|variant| member_call(after, variant))
    })
}

/// Returns the text after each use of a name.
fn uses<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let length = name.len();
    text.match_indices(name).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        let whole = before.is_none_or(|c| !c.is_alphanumeric() && !"_$.".contains(c));
        whole.then(|| &text[at + length..])
    })
}

fn member_call(after: &str, member: &str) -> bool {
    let rest = after.strip_prefix('.').and_then(|rest| rest.strip_prefix(member));
    rest.is_some_and(|rest| {
        rest.starts_with('(')
            || VARIANTS.iter().any(|variant| {
                rest.strip_prefix('.')
                    .and_then(|rest| rest.strip_prefix(variant))
                    .is_some_and(|rest| rest.starts_with('('))
            })
    })
}

/// Returns the files that a script may mean by its relative imports.
fn local_modules(text: &str, directory: &str) -> Vec<String> {
    let names = text.split(['\'', '"', '`']).filter(|name| {
        (name.starts_with("./") || name.starts_with("../")) && !name.contains(char::is_whitespace)
    });
    let paths = names.filter_map(|name| paths::resolve(directory, name)).take(MAX_MODULES);
    let endings = ["", ".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.ts"];
    paths.flat_map(|path| endings.map(|ending| format!("{path}{ending}"))).collect()
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
            "require('node:test').describe('a', () => {});",
            "import * as runner from 'node:test';\nrunner.test('a', () => {});",
            "import {test as check} from 'node:test';\ncheck('a', () => {});",
            "import{it}from'node:test';it('a')",
            "import t, { mock } from 'node:test';\nt.describe.skip('a');",
            "const check = require(\"node:test\");\ncheck('a', () => {});",
            "const { describe: group,\n  it: check } = require('node:test');\ngroup('a', () => {});",
            "const { test: t } = await import('node:test');\nt('a');",
            "let u = 1; const t = (await import('node:test')).default;\nt('a');",
        ] {
            assert!(has_tests(text), "{text}");
        }
        for text in [
            "require('assert')(true);\ntest('a');",
            "import { mock } from 'node:test';\nexport const submit = (x) => attest(x);",
            "import { after } from 'node:test';\n/x/.test('y');",
            "import t from 'node:test';\nt.mock.fn();\nt.before(() => {});",
            "// uses node:test\nexport const a = 1;",
            "",
        ] {
            assert!(!has_tests(text), "{text}");
        }
    }

    #[test]
    fn relative_imports_are_resolved_below_the_workspace() {
        let found = local_modules("import { test } from '../helper.mjs'; import '../../x'", "a/b");
        assert!(found.contains(&"a/helper.mjs".to_owned()), "{found:?}");
        assert!(local_modules("import '../../../x'", "a/b").is_empty());
    }
}
