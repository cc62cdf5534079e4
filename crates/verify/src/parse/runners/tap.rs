//! The TAP report of Node's test runner.
//!
//! Nested tests are indented and reported before their parent. A suite, and a test that failed only
//! because of its subtests, are not counted themselves. A file that fails while it is loaded is
//! reported as a test with the name of the file, and becomes a build error. A file that passes
//! without any test inside is recorded as silent; [`super::super::unreported_tests`] examines it. A
//! test or suite that is announced and has no result was ended with its process.

use crate::parse::formats::node_crash;
use crate::parse::{Failure, Finding, ParseContext, TestResults, text};
use crate::plan::ANCESTOR;

const INDENT: usize = 4;

/// Skip reason of tests that do not match a name pattern.
const FILTERED: &str = "test name does not match pattern";

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let report = context.report();
    if !report.contains("TAP version") {
        let no_tests = context.stderr.contains("Could not find '");
        let mut parsed = TestResults { no_tests, ..TestResults::default() };
        parsed.crashed(node_crash::crash(context));
        return parsed;
    }
    let lines: Vec<&str> = report.lines().collect();
    // The plan line is written at the end, so without it the runner was killed.
    let unreadable = !lines.iter().any(|line| line.starts_with("1.."));
    let parsed = TestResults { unreadable, ..TestResults::default() };
    let mut reader = Reader {
        context,
        ancestors: Vec::new(),
        open: Vec::new(),
        nested: false,
        comments: Vec::new(),
        parsed,
    };
    let mut at = 0;
    while at < lines.len() {
        at += reader.line(&lines[at..]);
    }
    if !unreadable {
        reader.fail_open_tests();
    }
    reader.parsed
}

struct Reader<'a, 'b> {
    context: &'a ParseContext<'b>,
    ancestors: Vec<(usize, String)>,
    /// Announced tests without a result, outermost first.
    open: Vec<Vec<(usize, String)>>,
    /// True if subtests of the next test were reported.
    nested: bool,
    /// Comments since the last test: the output of the file.
    comments: Vec<String>,
    parsed: TestResults,
}

impl Reader<'_, '_> {
    /// Reads a line and its YAML block; returns the number of lines consumed.
    fn line(&mut self, lines: &[&str]) -> usize {
        let line = lines[0];
        let depth = (line.len() - line.trim_start().len()) / INDENT;
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("# Subtest: ") {
            self.ancestors.retain(|(level, _)| *level < depth);
            self.ancestors.push((depth, unescape(name)));
            self.open.push(self.ancestors.clone());
            self.nested = self.nested && depth > 0;
            return 1;
        }
        if let Some(comment) = line.strip_prefix('#') {
            self.comments.push(comment.trim_start_matches(' ').to_owned());
            return 1;
        }
        let failed = line.starts_with("not ok ");
        if !failed && !line.starts_with("ok ") {
            return 1;
        }
        let details = details(&lines[1..]);
        self.test(line, depth, failed, details);
        1 + details.len()
    }

    fn test(&mut self, line: &str, depth: usize, failed: bool, details: &[&str]) {
        let (_, title) = line.split_once(" - ").unwrap_or_default();
        let (title, directive) = directive(title);
        let suite = field(details, "type").as_deref() == Some("suite");
        let parent = field(details, "failureType").as_deref() == Some("subtestsFailed");
        self.close(depth, &unescape(title));
        let comments = std::mem::take(&mut self.comments);
        let nested = std::mem::replace(&mut self.nested, depth > 0);
        match (directive, failed) {
            (Some(reason), _) if reason.contains(FILTERED) => {}
            (Some(_), _) => self.parsed.counts.skipped += 1,
            (None, _) if suite || parent => {}
            (None, false) => {
                self.parsed.counts.passed += 1;
                if depth == 0 && !nested && is_script(title) {
                    self.parsed.silent.push(self.context.file(title));
                }
            }
            (None, true) if is_file(self.context, title, details) => {
                self.parsed.counts.errors += 1;
                let finding = broken_file(self.context, title, &comments.join("\n"));
                self.parsed.build_errors.push(finding);
            }
            (None, true) => {
                self.parsed.counts.failed += 1;
                let failure = self.failure(title, depth, details);
                self.parsed.failures.push(failure);
            }
        }
    }

    fn close(&mut self, depth: usize, title: &str) {
        let is_same = |path: &Vec<(usize, String)>| {
            path.last().is_some_and(|(level, name)| *level == depth && name == title)
        };
        if let Some(at) = self.open.iter().rposition(is_same) {
            self.open.remove(at);
        }
    }

    /// Reports the innermost announced tests without a result.
    fn fail_open_tests(&mut self) {
        let open = std::mem::take(&mut self.open);
        let has_inner = |path: &Vec<(usize, String)>| {
            open.iter().any(|other| other.len() > path.len() && other.starts_with(path))
        };
        for path in open.iter().filter(|path| !has_inner(path)) {
            let names: Vec<&str> = path.iter().map(|(_, name)| name.as_str()).collect();
            let name = names.join(ANCESTOR);
            self.parsed.counts.errors += 1;
            let cause = Some("for example by process.exit()");
            let rerun = self.context.selector(&*name);
            self.parsed.failures.push(Failure::ended_early(&name, rerun, cause));
        }
    }

    fn failure(&self, title: &str, depth: usize, details: &[&str]) -> Failure {
        let above = self.ancestors.iter().filter(|(level, _)| *level < depth);
        let names: Vec<&str> = above.map(|(_, name)| name.as_str()).collect();
        let title = unescape(title);
        let name = [names, vec![title.as_str()]].concat().join(ANCESTOR);
        let location = field(details, "location");
        let location = location.as_deref().and_then(text::location);
        let file = location.map(|(path, ..)| self.context.file(path));
        let message = field(details, "error").unwrap_or_default();
        let thrown =
            field(details, "stack").and_then(|stack| text::stack_location(self.context, &stack));
        let thrown = thrown.filter(|(found, _)| Some(found) == file.as_ref()).map(|(_, line)| line);
        let line = thrown.or_else(|| location.map(|(_, line, _)| line));
        let failure = self.context.failure(name, file, line, &message);
        Failure { message: text::truncated(&message), ..failure }
    }
}

/// Returns the YAML block that follows a test.
fn details<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    match lines.first() {
        Some(first) if first.trim() == "---" => {
            let end = lines.iter().position(|line| line.trim() == "...").unwrap_or(lines.len() - 1);
            &lines[..=end]
        }
        _ => &[],
    }
}

/// Returns a field of the block: a plain, quoted or indented scalar.
fn field(details: &[&str], name: &str) -> Option<String> {
    let indent = details.first().map(|line| line.len() - line.trim_start().len())?;
    let at = details.iter().position(|line| {
        line.get(indent..)
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(':'))
    })?;
    let value = details[at].get(indent + name.len() + 1..)?.trim();
    if value != "|-" {
        let quoted = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        return Some(quoted.map_or_else(|| value.to_owned(), |inner| inner.replace("''", "'")));
    }
    let deeper =
        |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
    let block = details[at + 1..].iter().take_while(deeper);
    let block: Vec<&str> = block.map(|line| line.get(indent + 2..).unwrap_or_default()).collect();
    Some(block.join("\n"))
}

/// Splits `title # SKIP reason`.
fn directive(title: &str) -> (&str, Option<&str>) {
    let found = [" # SKIP", " # TODO"].iter().find_map(|mark| title.split_once(mark));
    found.map_or((title, None), |(title, reason)| (title, Some(reason)))
}

/// Returns true if a title may be a file name, which Node reports if a file has no tests.
fn is_script(title: &str) -> bool {
    let extension = title.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["js", "cjs", "mjs", "ts", "cts", "mts"].contains(&extension)
}

/// Returns true if a failed test stands for a file that could not be loaded.
fn is_file(context: &ParseContext<'_>, title: &str, details: &[&str]) -> bool {
    let location = field(details, "location");
    let location = location.as_deref().and_then(text::location);
    field(details, "exitCode").is_some()
        || location
            .is_some_and(|(path, ..)| path == title || context.file(path) == context.file(title))
}

fn broken_file(context: &ParseContext<'_>, title: &str, comments: &str) -> Finding {
    let file = context.file(title);
    match node_crash::crash_in(context, comments) {
        Some(finding) if finding.file.is_some() => finding,
        Some(finding) => finding.at(file, None, None),
        None => Finding::error("the file could not be run").at(file, None, None),
    }
}

fn unescape(name: &str) -> String {
    name.replace("\\#", "#").replace("\\\\", "\\")
}
