//! What projects are, what is run in them, and what it said.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests lay out workspaces from outside, and fail by panicking"
)]

/// When a profile is kept.
mod caching;
/// What the reference systems promise, row by row.
mod expectations;
/// Lays out workspaces.
mod fixture;
/// Files and outputs that nobody wrote in good faith.
mod hostile;
/// Which project a file belongs to.
mod nearest;
/// Command lines for parts of projects.
mod plans;
/// Each fixture's projects, as snapshots.
mod profiles;
/// Loads what real tools left behind.
mod recorded;
/// What real tools left behind, read, as snapshots.
mod reports;
/// From a recorded failure back to the words that run it.
mod reruns;
