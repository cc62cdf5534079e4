//! No text makes the parser of command lines or a preset panic, and what an allowed
//! line contains is always listed.
#![no_main]

use carrel_shell::{Context, Preset, judge, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let understood = parse(text).is_ok();
    let verdict = judge(text, Preset::Allowlist, &Context::default());
    assert!(understood || !verdict.is_allowed(), "what is not understood was allowed");
    judge(text, Preset::Denylist, &Context::default());
});
