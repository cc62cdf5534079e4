//! Events of `cargo nextest run` in the libtest JSON format, one object on each line.
//!
//! The format is experimental and enabled by an environment variable of the plan. Compiler errors
//! are not part of it and are read from the text of cargo.

use serde_json::Value;

use crate::parse::formats::rustc;
use crate::parse::{ParseContext, TestResults};
use crate::plan::Selector;

use super::libtest::panicked;

const NO_TESTS: i32 = 4;

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut parsed =
        TestResults { no_tests: context.exit() == Some(NO_TESTS), ..TestResults::default() };
    for line in context.stdout.lines().filter(|line| line.starts_with('{')) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        if event["type"] != "test" {
            continue;
        }
        match event["event"].as_str() {
            Some("ok") => parsed.counts.passed += 1,
            Some("ignored") => parsed.counts.skipped += 1,
            Some("failed" | "timeout") => {
                parsed.counts.failed += 1;
                let full = event["name"].as_str().unwrap_or_default();
                let output = event["stdout"].as_str().unwrap_or_default();
                let selector = selector(context, full);
                let name = selector.name.clone();
                parsed.failures.push(panicked(context, &name, &inner(output), Some(selector)));
            }
            _ => {}
        }
    }
    if parsed.counts.run() == 0 && !context.succeeded() && !parsed.no_tests {
        parsed.build_errors = rustc::errors(context);
    }
    parsed
}

/// Splits `package::binary$path::of::test`.
fn selector(context: &ParseContext<'_>, full: &str) -> Selector {
    let Some((binary, name)) = full.split_once('$') else { return context.selector(full) };
    let (package, binary) = match binary.split_once("::") {
        Some((package, binary)) => (Some(package.to_owned()), Some(binary.to_owned())),
        None => (Some(binary.to_owned()), None),
    };
    Selector { package, target: binary, ..context.selector(name) }
}

/// Removes the harness output around a test that failed without a panic.
fn inner(output: &str) -> String {
    let Some(start) = output.find("\n---- ") else { return output.to_owned() };
    let body = output[start + 1..].lines().skip(1).take_while(|line| *line != "failures:");
    body.collect::<Vec<_>>().join("\n")
}
