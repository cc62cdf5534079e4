//! Output of `cargo test`: JSON messages of the compiler, then the text of the standard test
//! harness.
//!
//! The harness has no stable machine-readable format. It prints one block per test binary to
//! standard output, while cargo names the binaries on standard error; the two are matched by their
//! order. A block without its result line means that the binary crashed, which is reported as a
//! failure.

use crate::parse::formats::{cargo, rustc};
use crate::parse::{Counts, Failure, ParseContext, TestResults, text};
use crate::plan::Selector;

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let messages = cargo::read(context);
    let build_errors = messages.errors();
    let blocks = blocks(&context.stdout);
    let targets = targets(&context.stderr);
    let mut parsed = TestResults { build_errors, ..TestResults::default() };
    if messages.failed && parsed.build_errors.is_empty() {
        parsed.build_errors = rustc::errors(context);
    }
    for (index, block) in blocks.iter().enumerate() {
        parsed.counts.add(block.counts);
        let target = target_of(&targets, &blocks, index);
        parsed.failures.extend(block.failures.iter().map(|(name, output)| {
            panicked(context, name, output, Some(selector(context, target, name)))
        }));
        if !block.ended {
            parsed.counts.errors += 1;
            parsed.failures.push(crashed(context, target, block));
        }
    }
    parsed
}

#[derive(Debug, Default)]
struct Block<'a> {
    counts: Counts,
    failures: Vec<(&'a str, String)>,
    ended: bool,
    /// Last test that was printed without a result.
    last: Option<&'a str>,
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
    if let Some(result) = result {
        block.counts = counts(result);
    }
    let unfinished =
        lines.iter().rev().find_map(|line| line.strip_prefix("test ")?.split(" ... ").next());
    block.last = unfinished;
    let names: Vec<&str> = failed_names(lines);
    block.failures = names.iter().map(|name| (*name, output_of(lines, name, &names))).collect();
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

/// Returns the arguments that cargo prints for each failed binary, such as `-p one --lib`; `None` for
/// a binary that passed.
fn targets(stderr: &str) -> Vec<Option<&str>> {
    let mut targets = Vec::new();
    for line in stderr.lines() {
        let trimmed = line.trim_start();
        if line.starts_with("     Running ") || trimmed.starts_with("Doc-tests ") {
            targets.push(None);
        } else if (trimmed.starts_with("error: test failed, to rerun pass `")
            || trimmed.starts_with("error: doctest failed, to rerun pass `"))
            && let Some(target) = targets.last_mut()
        {
            *target = trimmed.split('`').nth(1);
        }
    }
    targets
}

/// Returns the arguments that select the binary of a block.
///
/// Binaries without the standard harness print no block. If the numbers differ for that reason, the
/// failed binaries are matched with the failed blocks instead.
fn target_of<'a>(
    targets: &[Option<&'a str>],
    blocks: &[Block<'_>],
    index: usize,
) -> Option<&'a str> {
    if targets.len() == blocks.len() {
        return targets[index];
    }
    let bad = |block: &&Block<'_>| !block.failures.is_empty() || !block.ended;
    let failed: Vec<&str> = targets.iter().copied().flatten().collect();
    let same = failed.len() == blocks.iter().filter(bad).count();
    let before = blocks[..index].iter().filter(bad).count();
    failed.get(before).copied().filter(|_| same && bad(&&blocks[index]))
}

fn selector(context: &ParseContext<'_>, target: Option<&str>, name: &str) -> Selector {
    let words: Vec<&str> = target.map(|target| target.split(' ').collect()).unwrap_or_default();
    let (package, rest) = match words.as_slice() {
        ["-p", package, rest @ ..] => (Some((*package).to_owned()), rest),
        rest => (None, rest),
    };
    let target = (!rest.is_empty()).then(|| rest.join(" "));
    Selector { package, target, ..context.selector(name) }
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
fn crashed(context: &ParseContext<'_>, target: Option<&str>, block: &Block<'_>) -> Failure {
    let cause = context
        .stderr
        .lines()
        .find(|line| line.trim_start().starts_with("process didn't exit successfully"));
    let message = format!(
        "the test binary ended before its result: {}",
        cause.unwrap_or("the reason is unknown").trim()
    );
    let name = block.last.or(target).unwrap_or("test binary");
    let rerun = block.last.map(|name| selector(context, target, name));
    Failure { name: name.to_owned(), file: None, line: None, message, diff: None, rerun }
}
