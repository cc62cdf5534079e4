//! Parsing of command lines, and verdicts of the presets.
//!
//! - `reference`: the numbered hostile and honest cases of the reference, with our verdicts.
//! - `operations`: every blocked operation in many spellings.
//! - `wrappers`: commands that run other commands.
//! - `parsing`: the commands that are found, and text that is not understood.
//! - `argv`: path-like arguments without a shell.
//! - `random`: arbitrary and mutated text.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail loudly")]

mod argv;
mod operations;
mod parsing;
mod random;
mod reference;
mod wrappers;

use std::path::Path;

use carrel_shell::{Context, Preset, Verdict, judge};

/// The workspace of every case.
const WORKSPACE: &str = "/srv/w/one";

fn verdict(text: &str, preset: Preset) -> Verdict {
    judge(text, preset, &Context { workspace: Some(Path::new(WORKSPACE)) })
}

/// Returns the rule that the allowlist refuses a text by, or `allow`.
fn rule(text: &str) -> &'static str {
    verdict(text, Preset::Allowlist).refusal().map_or("allow", |refusal| refusal.rule)
}

/// Returns the rule that the denylist refuses a text by, or `allow`.
fn denied(text: &str) -> &'static str {
    verdict(text, Preset::Denylist).refusal().map_or("allow", |refusal| refusal.rule)
}

/// Compares the allowlist's answer on every row, and shows all that differ at once.
#[track_caller]
fn table(rows: &[(&str, &str, &str)]) {
    let wrong: Vec<_> = rows
        .iter()
        .filter(|(_, text, want)| rule(text) != *want)
        .map(|(id, text, want)| (id, text, want, verdict(text, Preset::Allowlist).refusal))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
