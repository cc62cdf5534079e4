//! No bytes make the readers of journals panic, and their paths stay in the workspace.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| carrel_snapshot::fuzzing::journal(bytes));
