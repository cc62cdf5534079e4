//! No bytes make the reader of segments panic, and content that it returns has its id.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| carrel_snapshot::fuzzing::segment(bytes));
