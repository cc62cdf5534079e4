//! Events of `go test -json`, one object on each line.
//!
//! Lines that are not JSON come from the compiler. A failed subtest also fails its parents and its
//! package, so only the innermost failures are reported. A package that failed while tests were
//! running was ended by one of them: by `os.Exit`, `log.Fatal` or a panic in another goroutine. One
//! running test is named; several are not told apart, and the failure then stands for the package.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::parse::formats::compiler_lines;
use crate::parse::{Failure, Finding, ParseContext, Severity, TestResults, text};
use crate::paths;
use crate::plan::Selector;

type Outputs = BTreeMap<(String, String), String>;

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut outputs = Outputs::new();
    let mut failed: Vec<(String, String)> = Vec::new();
    let mut running: Vec<(String, String)> = Vec::new();
    let mut parsed = TestResults::default();
    let mut build_output = String::new();
    for line in context.stdout.lines() {
        let event =
            if line.starts_with('{') { serde_json::from_str::<Value>(line).ok() } else { None };
        let Some(event) = event else {
            build_output.push_str(line);
            build_output.push('\n');
            continue;
        };
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let key = (text("Package"), text("Test"));
        if !key.1.is_empty() {
            match event["Action"].as_str() {
                Some("run" | "cont") => running.push(key.clone()),
                Some("pause" | "pass" | "fail" | "skip") => running.retain(|test| *test != key),
                _ => {}
            }
        }
        match (event["Action"].as_str(), key.1.is_empty()) {
            (Some("output"), _) => outputs.entry(key).or_default().push_str(&text("Output")),
            (Some("build-output"), _) => build_output.push_str(&text("Output")),
            (Some("pass"), false) => parsed.counts.passed += 1,
            (Some("skip"), false) => parsed.counts.skipped += 1,
            (Some("fail"), _) => failed.push(key),
            _ => {}
        }
    }
    let output = format!("{build_output}{}", context.stderr);
    parsed.build_errors = build_errors(context, &output);
    for (package, test) in &failed {
        // Only innermost failures count.
        let below = |other: &(String, String)| {
            other.0 == *package
                && other.1 != *test
                && (test.is_empty() || other.1.starts_with(&format!("{test}/")))
        };
        let printed = outputs.get(&(package.clone(), test.clone())).map_or("", String::as_str);
        if failed.iter().any(below) {
            continue;
        }
        let interrupted: Vec<&str> = innermost(&running, package);
        if test.is_empty() && !interrupted.is_empty() {
            parsed.counts.errors += 1;
            parsed.failures.push(ended_early(context, package, &interrupted, &outputs));
        } else if test.is_empty() {
            package_failure(context, package, printed, &mut parsed);
        } else {
            parsed.counts.failed += 1;
            parsed.failures.push(failure(context, package, test, printed));
        }
    }
    parsed
}

/// Returns the running tests of a package that have no running subtest.
fn innermost<'a>(running: &'a [(String, String)], package: &str) -> Vec<&'a str> {
    let tests = running.iter().filter(|test| test.0 == package).map(|test| test.1.as_str());
    let tests: Vec<&str> = tests.collect();
    let has_subtest = |test: &&str| {
        let prefix = format!("{test}/");
        tests.iter().any(|other| other.starts_with(&prefix))
    };
    tests.iter().filter(|test| !has_subtest(test)).copied().collect()
}

fn ended_early(
    context: &ParseContext<'_>,
    package: &str,
    interrupted: &[&str],
    outputs: &Outputs,
) -> Failure {
    let of_package =
        |name: &str| Selector { package: Some(package.to_owned()), ..context.selector(name) };
    let [test] = interrupted else {
        let cause = format!("one of {} brought it down", interrupted.join(", "));
        return Failure::ended_early(package, of_package(""), Some(&cause));
    };
    let printed = outputs.get(&(package.to_owned(), (*test).to_owned()));
    let found = failure(context, package, test, printed.map_or("", String::as_str));
    let cause = Some(found.message.as_str()).filter(|cause| !cause.is_empty());
    let early = Failure::ended_early(&found.name, of_package(test), cause);
    Failure { file: found.file, line: found.line, ..early }
}

/// Reports a package that failed without a failed test: it was not built, or crashed outside of
/// tests.
fn package_failure(
    context: &ParseContext<'_>,
    package: &str,
    printed: &str,
    parsed: &mut TestResults,
) {
    let unbuilt = printed.contains("[build failed]") || printed.contains("[setup failed]");
    if unbuilt {
        if parsed.build_errors.is_empty() {
            let message = format!("{package}: {}", text::truncated(printed.trim()));
            parsed.build_errors.push(Finding::new(Severity::Error, message));
        }
        return;
    }
    parsed.counts.errors += 1;
    let mut failure = failure(context, package, "", printed);
    package.clone_into(&mut failure.name);
    failure.rerun = None;
    parsed.failures.push(failure);
}

fn failure(context: &ParseContext<'_>, package: &str, test: &str, printed: &str) -> Failure {
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        ["=== ", "--- ", "FAIL\t", "PASS", "exit status "].iter().any(|mark| line.starts_with(mark))
            || line == "FAIL"
    };
    let lines: Vec<&str> = printed.lines().filter(|line| !is_frame(line)).collect();
    let trace = lines.iter().position(|line| line.starts_with("goroutine ")).unwrap_or(lines.len());
    let (lines, trace) = lines.split_at(trace);
    let location = lines.iter().find_map(|line| go_location(line));
    let (file, row) = match location {
        Some((file, row, _)) => (Some(file_of(context, package, file)), Some(row)),
        None => panic_location(context, trace).unzip(),
    };
    let mut rest = lines.iter().skip_while(|line| line.trim().is_empty());
    let headline = rest.next().map(|line| line.trim()).unwrap_or_default();
    let first = go_location(headline).map_or(headline, |(_, _, rest)| rest);
    let body = rest.copied().collect::<Vec<_>>().join("\n");
    let message =
        if body.trim().is_empty() { first.to_owned() } else { format!("{first}\n{body}") };
    Failure {
        name: if test.is_empty() { package.to_owned() } else { format!("{package}/{test}") },
        file,
        line: row,
        diff: text::diff(&lines.join("\n")),
        message: text::truncated(&message),
        rerun: Some(Selector { package: Some(package.to_owned()), ..context.selector(test) }),
    }
}

/// Returns the first location of user code in the trace of a panic: `\t/w/a_test.go:9 +0x2e`.
fn panic_location(context: &ParseContext<'_>, trace: &[&str]) -> Option<(String, u64)> {
    trace.iter().find_map(|line| {
        let (path, row, _) = text::location(line.trim().split(" +0x").next()?)?;
        let file = context.file(path);
        (path.starts_with('/') && ParseContext::is_user_code(&file)).then_some((file, row))
    })
}

/// Splits `probe_test.go:7: message`.
fn go_location(line: &str) -> Option<(&str, u64, &str)> {
    let (file, rest) = line.trim_start().split_once(".go:")?;
    let (row, message) = rest.split_once(':')?;
    let length = line.trim_start().len() - rest.len() - 1;
    let path = &line.trim_start()[..length];
    (!file.contains(' ')).then_some((path, row.parse().ok()?, message.trim_start()))
}

/// Returns the path of a file that a test printed without its directory.
fn file_of(context: &ParseContext<'_>, package: &str, file: &str) -> String {
    if file.contains('/') {
        return context.file(file);
    }
    let module = context.invocation.module.as_deref().unwrap_or_default();
    let below = package.strip_prefix(module).filter(|_| !module.is_empty());
    match below.map(|below| below.trim_start_matches('/')) {
        Some("") => paths::join(&context.invocation.directory, file),
        Some(below) => paths::join(&context.invocation.directory, &format!("{below}/{file}")),
        None => file.to_owned(),
    }
}

fn build_errors(context: &ParseContext<'_>, output: &str) -> Vec<Finding> {
    // The compiler prints its errors below a line `# package`. If no package could be loaded there
    // are only lines with a location.
    let grouped = output.lines().any(|line| line.starts_with("# "));
    let unloaded = context.stdout.is_empty() && !context.succeeded();
    if grouped || unloaded { compiler_lines::read_text(context, output) } else { Vec::new() }
}
