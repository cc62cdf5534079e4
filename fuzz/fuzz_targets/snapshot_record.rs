//! No bytes make the reader of snapshots panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| carrel_snapshot::fuzzing::record(bytes));
