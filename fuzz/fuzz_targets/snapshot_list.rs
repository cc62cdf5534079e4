//! No bytes make the reader of lists panic, and what it returns is written as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| carrel_snapshot::fuzzing::list(bytes));
