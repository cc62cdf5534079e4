//! Detection, plans and reports.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests lay out workspaces from outside, and fail by panicking"
)]

/// Runs whose process ended before the results of its tests.
mod aborts;
/// Validity of cached profiles.
mod caching;
/// Recordings of the lines that each test runs.
mod coverage;
/// Guarantees of the reference systems, row by row.
mod expectations;
/// Lays out workspaces.
mod fixture;
/// Hostile project files and outputs.
mod hostile;
/// The project of a file.
mod nearest;
/// Command lines for parts of projects.
mod plans;
/// Each fixture's projects, as snapshots.
mod profiles;
/// The table of real projects.
mod real_projects;
/// Loads recorded outcomes of real tools.
mod recorded;
/// Reports of real tools, as snapshots.
mod reports;
/// Command lines that run a recorded failure again.
mod reruns;
