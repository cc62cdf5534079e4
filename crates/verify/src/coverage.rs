//! Coverage: the lines that each test of a project runs.
//!
//! A [`Recording`] is read from the rows that the recorders of [`crate::plan::plan_coverage`] leave, whichever tool
//! measured. It answers one question in both directions of its index: the tests that run a line. A line with the count
//! zero was compiled and not run, and is never covered.
//!
//! Recorders run inside the sandbox beside the tests, which could write the same rows. A recording is therefore as
//! trustworthy as the tests: bounded, checked for form, and used for nothing but answers.

mod line_hits;
mod reader;
mod recording;

pub use line_hits::{LineHits, LineRun};
pub use reader::{RecordingPlace, read_recording};
pub use recording::{
    CoveringTest, HitCounts, MAX_COVERED_FILES, MAX_RECORDED_TESTS, Recording, TestName,
};
