//! Output of `cargo test`: JSON messages of the compiler, then the text of the standard test
//! harness.
//!
//! The harness has no stable machine-readable format. It prints one block per test binary to
//! standard output, while cargo names the binaries on standard error; the two are matched by their
//! order. A block without its result line means that the binary crashed or exited, also with status
//! 0. The harness prints a test only when it has ended, unless tests run one at a time, so the test
//! at fault is often unknown: the failure then stands for the binary, and its selector has no name.
//! A second run, one test at a time, names the test ([`crate::plan::plan_one_at_a_time`]).

use crate::parse::formats::cargo::{self, TestBinary};
use crate::parse::formats::rustc;
use crate::parse::{Counts, Failure, ParseContext, TestResults, text};
use crate::paths;
use crate::plan::Selector;

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let messages = cargo::read(context);
    let build_errors = messages.errors();
    let blocks = blocks(&context.stdout);
    let runs = binary_runs(&context.stderr, &messages.binaries);
    let mut parsed = TestResults { build_errors, ..TestResults::default() };
    if messages.failed && parsed.build_errors.is_empty() {
        parsed.build_errors = rustc::errors(context);
    }
    for (index, block) in blocks.iter().enumerate() {
        parsed.counts.add(block.counts);
        let run = run_of(&runs, &blocks, index);
        parsed.failures.extend(block.failures.iter().map(|(name, output)| {
            panicked(context, name, output, Some(selector(context, run, name)))
        }));
        if block.ended {
            continue;
        }
        // Output may have been dropped between the two ends that were kept.
        if context.truncated || !context.ended_by_itself() {
            parsed.unreadable = true;
        } else {
            parsed.counts.errors += 1;
            parsed.failures.push(crashed(context, run, block));
        }
    }
    parsed
}

#[derive(Debug, Default)]
struct Block<'a> {
    counts: Counts,
    failures: Vec<(&'a str, String)>,
    ended: bool,
    /// Test that was announced and has no result.
    running: Option<&'a str>,
}

fn blocks(stdout: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in stdout.lines() {
        if is_start(line) {
            if let Some(block) = blocks.last_mut().filter(|block| !block.ended) {
                finish(block, &std::mem::take(&mut lines), None);
            }
            blocks.push(Block::default());
            lines.clear();
        } else if let (Some(block), Some(result)) =
            (blocks.last_mut(), line.strip_prefix("test result: "))
        {
            if !block.ended {
                finish(block, &std::mem::take(&mut lines), Some(result));
            }
        } else {
            lines.push(line);
        }
    }
    if let Some(block) = blocks.last_mut().filter(|block| !block.ended) {
        finish(block, &lines, None);
    }
    blocks
}

/// Recognises `running 5 tests`.
fn is_start(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    count.is_some_and(|(count, rest)| count.parse::<u64>().is_ok() && matches!(rest, "" | "s"))
}

fn finish<'a>(block: &mut Block<'a>, lines: &[&'a str], result: Option<&str>) {
    block.ended = result.is_some();
    let names: Vec<&str> = match result {
        Some(result) => {
            block.counts = counts(result);
            failed_names(lines)
        }
        None => unfinished(block, lines),
    };
    block.failures = names.iter().map(|name| (*name, output_of(lines, name, &names))).collect();
}

/// Counts the results of a block without a result line, and returns the names of failed tests.
fn unfinished<'a>(block: &mut Block<'a>, lines: &[&'a str]) -> Vec<&'a str> {
    let mut failed = Vec::new();
    let tests = lines.iter().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    for (name, result) in tests {
        match result.split_whitespace().next() {
            Some("ok") => block.counts.passed += 1,
            Some("ignored" | "ignored,") => block.counts.skipped += 1,
            Some("FAILED") => {
                block.counts.failed += 1;
                failed.push(name);
            }
            // Output of the test itself may follow on the same line.
            _ => block.running = Some(name),
        }
    }
    failed
}

/// Reads `FAILED. 1 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.09s`.
fn counts(result: &str) -> Counts {
    let number = |word: &str| {
        let part = result.split(['.', ';']).map(str::trim).find(|part| part.ends_with(word));
        part.and_then(|part| part.split(' ').next()?.parse().ok()).unwrap_or(0)
    };
    Counts {
        passed: number(" passed"),
        failed: number(" failed"),
        skipped: number(" ignored"),
        errors: 0,
    }
}

/// Returns the names in the final list, in which they are printed without additions.
fn failed_names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let Some(start) = lines.iter().rposition(|line| *line == "failures:") else {
        return Vec::new();
    };
    lines[start + 1..].iter().map_while(|line| line.strip_prefix("    ")).collect()
}

fn output_of(lines: &[&str], name: &str, names: &[&str]) -> String {
    let header = |name: &str| format!("---- {name} stdout ----");
    let Some(start) = lines.iter().position(|line| *line == header(name)) else {
        return String::new();
    };
    let ends = |line: &&str| {
        **line == *"failures:"
            || names.iter().any(|other| *other != name && **line == *header(other))
    };
    let end = lines[start + 1..].iter().position(ends).map_or(lines.len(), |at| start + 1 + at);
    lines[start + 1..end].join("\n")
}

/// A run of a test binary, as cargo announces it.
#[derive(Debug, Default)]
struct BinaryRun<'a> {
    /// Arguments that cargo prints for a failed binary, such as `-p one --lib`.
    failed: Option<&'a str>,
    binary: Option<&'a TestBinary>,
    is_doc: bool,
    /// Line with the exit status or signal.
    cause: Option<&'a str>,
    /// Test whose thread overflowed its stack.
    overflowed: Option<&'a str>,
}

fn binary_runs<'a>(stderr: &'a str, binaries: &'a [TestBinary]) -> Vec<BinaryRun<'a>> {
    let mut runs: Vec<BinaryRun<'a>> = Vec::new();
    for line in stderr.lines() {
        let trimmed = line.trim_start();
        if line.starts_with("     Running ") || trimmed.starts_with("Doc-tests ") {
            let path = trimmed.rsplit_once('(').map(|(_, path)| path.trim_end_matches(')'));
            let file = path.map(paths::name);
            let binary = binaries.iter().find(|binary| Some(binary.file.as_str()) == file);
            let is_doc = trimmed.starts_with("Doc-tests ");
            runs.push(BinaryRun { binary, is_doc, ..BinaryRun::default() });
            continue;
        }
        let Some(run) = runs.last_mut() else { continue };
        if trimmed.starts_with("error: test failed, to rerun pass `")
            || trimmed.starts_with("error: doctest failed, to rerun pass `")
        {
            run.failed = trimmed.split('`').nth(1);
        } else if trimmed.starts_with("process didn't exit successfully") {
            run.cause = Some(trimmed);
        } else if let Some(rest) = line.strip_prefix("thread '")
            && rest.ends_with("has overflowed its stack")
        {
            run.overflowed = rest.split('\'').next();
        }
    }
    runs
}

/// Returns the run of a block.
///
/// Binaries without the standard harness print no block. If the numbers differ for that reason, the
/// failed binaries are matched with the failed blocks instead.
fn run_of<'a, 'b>(
    runs: &'b [BinaryRun<'a>],
    blocks: &[Block<'_>],
    index: usize,
) -> Option<&'b BinaryRun<'a>> {
    if runs.len() == blocks.len() {
        return runs.get(index);
    }
    let bad = |block: &&Block<'_>| !block.failures.is_empty() || !block.ended;
    let failed: Vec<&BinaryRun<'_>> = runs.iter().filter(|run| run.failed.is_some()).collect();
    let same = failed.len() == blocks.iter().filter(bad).count();
    let before = blocks[..index].iter().filter(bad).count();
    failed.get(before).copied().filter(|_| same && bad(&&blocks[index]))
}

fn selector(context: &ParseContext<'_>, run: Option<&BinaryRun<'_>>, name: &str) -> Selector {
    let all = context.selector(name);
    let Some(run) = run else { return all };
    let Some(failed) = run.failed else {
        let doc = run.is_doc.then(|| "--doc".to_owned());
        let package = run.binary.map(|binary| binary.package.clone());
        let target = run.binary.map(|binary| binary.target.clone()).or(doc);
        return Selector { package, target, ..all };
    };
    let words: Vec<&str> = failed.split(' ').collect();
    let (package, rest) = match words.as_slice() {
        ["-p", package, rest @ ..] => (Some((*package).to_owned()), rest),
        rest => (None, rest),
    };
    let target = (!rest.is_empty()).then(|| rest.join(" "));
    Selector { package, target, ..all }
}

/// Creates a failure from the output of a test: location and message of the panic.
pub(super) fn panicked(
    context: &ParseContext<'_>,
    name: &str,
    output: &str,
    rerun: Option<Selector>,
) -> Failure {
    let mut lines = output.lines();
    let head = lines.find(|line| line.starts_with("thread '") && line.contains(" panicked at "));
    let message = match head {
        Some(_) => lines.collect::<Vec<_>>().join("\n"),
        None => output.trim().to_owned(),
    };
    let panicked = head.and_then(|head| head.split(" panicked at ").nth(1));
    let panicked = panicked.map(|rest| rest.trim_end_matches(':')).and_then(text::location);
    let unpanicked = "note: test did not panic as expected at ";
    let unpanicked = output.lines().find_map(|line| line.strip_prefix(unpanicked));
    let location = unpanicked.and_then(text::location).or(panicked);
    let location = location.map(|(path, line, _)| (context.file(path), line));
    let (file, line) = location.unzip();
    Failure { rerun, ..context.failure(name.to_owned(), file, line, &message) }
}

/// Creates the failure of a binary that ended early: a crash, an abort, a call of `exit`.
fn crashed(context: &ParseContext<'_>, run: Option<&BinaryRun<'_>>, block: &Block<'_>) -> Failure {
    let cause = run.and_then(|run| run.cause);
    let running = block.running.or_else(|| run.and_then(|run| run.overflowed));
    let rerun = selector(context, run, running.unwrap_or_default());
    let name = running.map_or_else(|| binary_name(&rerun), str::to_owned);
    Failure::ended_early(&name, rerun, cause)
}

/// Returns the name of a failure that stands for a whole binary.
fn binary_name(part: &Selector) -> String {
    let parts = [part.package.as_deref(), part.target.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    format!("test binary {}", parts.join(" ")).trim_end().to_owned()
}
