//! Trackers against servers on loopback that speak as the real ones do.
//!
//! `fake` is the server, `fixture` what it serves; a file for each provider says how that one answers.
//! `logs` hears what is written down. `contract` is what every tracker promises, `rules` what only one
//! of them does; `tools` is what agents may do with them. `local` is the tracker that is built in, on a
//! real file; `files` opens trackers as workflow files name them, and `real` asks a real one.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod asana;
mod contract;
mod fake;
mod files;
mod github;
mod gitlab;
mod jira;
mod linear;
mod local;
mod logs;
mod real;
mod records;
mod rules;
mod tools;
