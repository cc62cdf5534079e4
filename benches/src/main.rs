//! Measures Carrel against the same work done plainly, as ratios in one run.
//!
//! Every row does one piece of work twice, with `std` alone and through Carrel, round by round on
//! the same machine and disk. The table goes to stdout as Markdown, progress to stderr.
//!
//! ```text
//! carrel-bench [--quick] [DIRECTORY]
//! ```
//!
//! `DIRECTORY` is where scratch files are made, on the disk to be measured; what is made is
//! removed at the end. `--quick` takes few rounds and small trees, to see that everything runs.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the other side of each comparison is plain std, and the figures are about it"
)]

mod commands;
mod files;
mod ground;
mod lifecycle;
mod machine;
mod measure;
mod pace;
mod plain;
mod removal;
mod report;
mod sandbox;
mod scratch;
mod tree;
mod usage;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

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
const GROUPS: [(&str, Group); 6] = [
    ("lifecycle", lifecycle::rows),
    ("files", files::rows),
    ("commands", commands::rows),
    ("sandbox", sandbox::rows),
    ("usage", usage::rows),
    ("removal", removal::rows),
];

fn main() -> ExitCode {
    // The spawner is this same program; it must not start a single thread.
    if let Some(code) = carrel_exec::run_helper(std::env::args_os().skip(1)) {
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

fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), Fault> {
    let (pace, directory) = parse(arguments)?;
    let begun = Instant::now();
    let scratch = Scratch::make(&directory)?;
    let ground = Ground::prepare(scratch.path(), pace)?;
    let mut text = machine::describe(scratch.path())?;
    let mut rows = Vec::new();
    for (name, group) in GROUPS {
        say(&format!("measuring {name} …"));
        rows.extend(group(&ground)?);
    }
    text += &report::table(&rows);
    text += &report::verdict(&rows);
    io::stdout().lock().write_all(text.as_bytes())?;
    drop(ground);
    scratch.remove()?;
    say(&format!("done in {} s", begun.elapsed().as_secs()));
    Ok(())
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Result<(Pace, PathBuf), Fault> {
    let (mut pace, mut directory) = (Pace::FULL, None);
    for argument in arguments {
        match argument.to_str() {
            Some("--quick") => pace = Pace::QUICK,
            Some(option) if option.starts_with('-') => {
                return Err(format!("unknown option {option}; known is --quick").into());
            }
            _ if directory.is_some() => return Err("only one directory can be measured".into()),
            _ => directory = Some(PathBuf::from(argument)),
        }
    }
    Ok((pace, directory.unwrap_or_else(|| Path::new(DEFAULT_DIRECTORY).to_owned())))
}

/// Says how far the run is. Nobody may be listening.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
