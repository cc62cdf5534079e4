//! Measures Carrel against the same work done plainly, as ratios in one run.
//!
//! Every row does one piece of work twice, with `std` alone and through Carrel, round by round on
//! the same machine and disk. The table goes to stdout as Markdown, progress to stderr.
//!
//! ```text
//! carrel-bench [--quick] [--large] [--only GROUP] [DIRECTORY]
//! ```
//!
//! `DIRECTORY` is where scratch files are made, on the disk to be measured; what is made is
//! removed at the end. `--quick` takes few rounds and small trees, to see that everything runs;
//! `--large` adds a symbol index of 1 GB of sources, and snapshots and forks of 105,000 files, which take minutes;
//! `--only` measures one of the groups `lifecycle`, `files`, `commands`, `sandbox`, `tools`, `code`, `queue`, `rest`,
//! `snapshots`, `forks`, `usage` and `removal`.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other side of each comparison is plain std, and the figures are about it"
)]

mod canned;
mod code;
mod commands;
mod corpus;
mod crowd;
mod files;
mod forks;
mod ground;
#[path = "../../crates/search/examples/compare/haystack.rs"]
mod haystack;
mod lifecycle;
mod machine;
mod mcp;
mod measure;
mod pace;
mod placement;
mod plain;
mod queue;
mod removal;
mod report;
mod rest;
mod sandbox;
mod scratch;
mod server;
mod snapshots;
mod source_tree;
mod tools;
mod tree;
mod usage;
mod wire;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use corpus::Corpus;
use ground::Ground;
use pace::Pace;
use report::Row;
use scratch::Scratch;

/// What stops a run: nothing is measured around an error.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What measures one group of rows.
type Group = fn(&Ground) -> Result<Vec<Row>, Fault>;

/// Scratch files go here unless a directory is given, so that they are on the disk of the sources.
const DEFAULT_DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench");

/// Those that delete much come last; see [`removal`].
const GROUPS: [(&str, Group); 12] = [
    ("lifecycle", lifecycle::rows),
    ("files", files::rows),
    ("commands", commands::rows),
    ("sandbox", sandbox::rows),
    ("tools", tool_rows),
    ("code", code::rows),
    ("queue", queue::rows),
    ("rest", rest::rows),
    ("snapshots", snapshots::rows),
    ("forks", forks::rows),
    ("usage", usage::rows),
    ("removal", removal::rows),
];

/// Measures the tools in this process and over both transports, on the same files.
fn tool_rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let corpus = Corpus::build(ground)?;
    let mut rows = tools::rows(ground, &corpus)?;
    rows.extend(mcp::rows(ground, &corpus)?);
    Ok(rows)
}

fn main() -> ExitCode {
    // The spawner is this same program; it must not start a single thread.
    if let Some(code) = carrel_exec::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    // As the servers do whose work is measured here.
    carrel_sandbox::limit_malloc_arenas();
    if let Some(code) = code::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    match run(std::env::args_os().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            say(&format!("the benchmark stopped: {fault}"));
            ExitCode::FAILURE
        }
    }
}

/// What is asked on the command line.
struct Request {
    pace: Pace,
    /// The one group to measure; all of them if none.
    only: Option<String>,
    directory: PathBuf,
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), Fault> {
    let request = parse(arguments)?;
    let begun = Instant::now();
    let scratch = Scratch::make(&request.directory)?;
    let ground = Ground::prepare(scratch.path(), request.pace)?;
    let mut text = machine::describe(scratch.path())?;
    let mut rows = Vec::new();
    for (name, group) in GROUPS {
        if request.only.as_deref().is_none_or(|only| only == name) {
            say(&format!("measuring {name} …"));
            rows.extend(group(&ground)?);
        }
    }
    text += &report::table(&rows);
    text += &report::verdict(&rows);
    io::stdout().lock().write_all(text.as_bytes())?;
    drop(ground);
    scratch.remove()?;
    say(&format!("done in {} s", begun.elapsed().as_secs()));
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Request, Fault> {
    let (mut pace, mut only, mut directory) = (Pace::FULL, None, None);
    let mut is_large = false;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--quick") => pace = Pace::QUICK,
            Some("--large") => is_large = true,
            Some("--only") => only = Some(group_named(arguments.next())?),
            Some(option) if option.starts_with('-') => {
                return Err(
                    format!("unknown option {option}; known are --quick, --large, --only").into()
                );
            }
            _ if directory.is_some() => return Err("only one directory can be measured".into()),
            _ => directory = Some(PathBuf::from(argument)),
        }
    }
    if is_large {
        pace.indexed_megabytes = Pace::LARGE_INDEXES;
        pace.recorded_trees = Pace::LARGE_TREES;
    }
    let directory = directory.unwrap_or_else(|| Path::new(DEFAULT_DIRECTORY).to_owned());
    Ok(Request { pace, only, directory })
}

fn group_named(name: Option<OsString>) -> Result<String, Fault> {
    let name = name.and_then(|name| name.into_string().ok()).unwrap_or_default();
    let known = GROUPS.map(|(name, _)| name);
    if known.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(format!("--only takes one of {}", known.join(", ")).into())
}

/// Says how far the run is. Nobody may be listening.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
