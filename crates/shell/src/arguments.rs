//! The path-like arguments of a program that is started without a shell.
//!
//! The check works on text alone: it follows no link and asks no file system, so it tells a slip
//! from honest use before the start and nothing more. Links, and what a program does with names
//! that its arguments do not show, are the business of the kernel.

use std::path::Path;

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use crate::error::shortened;
use crate::path::{base_name, candidates, is_harmless_device, normalize};

/// Where a program starts.
#[derive(Clone, Copy, Debug)]
pub struct WorkingDirectory<'a> {
    /// The absolute path of the workspace.
    pub workspace: &'a Path,
    /// The directory in which the program starts, relative to the workspace.
    pub directory: &'a Path,
}

/// An argument that leads out of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("argument {index} {escape}: {}", shortened(value))]
pub struct Violation {
    /// Which argument; 0 is the program.
    pub index: usize,
    /// The whole argument.
    pub value: String,
    /// How it leaves.
    pub escape: Escape,
}

/// How an argument leaves the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Escape {
    /// An absolute path outside.
    #[error("is an absolute path outside the workspace; give it relative to the workspace")]
    Absolute,
    /// A relative path that climbs out.
    #[error("climbs out of the workspace with `..`")]
    Climbs,
    /// A home directory, which nothing expands without a shell.
    #[error("names a home directory; give the path relative to the workspace")]
    Home,
    /// A program given by a path outside.
    #[error("names a program outside the workspace; give its bare name")]
    Program,
}

impl Coded for Violation {
    fn code(&self) -> Code {
        Code::SandboxViolation
    }

    fn detail(&self) -> Value {
        let reason = match self.escape {
            Escape::Absolute => "absolute",
            Escape::Climbs => "climbs",
            Escape::Home => "home",
            Escape::Program => "program",
        };
        json!({ "argument": self.index, "value": self.value, "reason": reason })
    }
}

/// Checks the program and every argument; returns the first that leaves the workspace.
pub fn check<S: AsRef<str>>(argv: &[S], place: &WorkingDirectory<'_>) -> Result<(), Violation> {
    let pattern = pattern_operand(argv);
    for (index, argument) in argv.iter().enumerate() {
        let value = argument.as_ref();
        if Some(index) == pattern {
            continue;
        }
        let parts = if index == 0 { vec![value] } else { candidates(value) };
        let escape = parts.iter().find_map(|part| escape(part, place));
        if let Some(escape) = escape {
            let absolute = escape == Escape::Absolute;
            let escape = if index == 0 && absolute { Escape::Program } else { escape };
            return Err(Violation { index, value: value.to_owned(), escape });
        }
    }
    Ok(())
}

fn escape(part: &str, place: &WorkingDirectory<'_>) -> Option<Escape> {
    if part.starts_with('~') {
        return Some(Escape::Home);
    }
    let workspace = normalize(Path::new("/"), &place.workspace.to_string_lossy());
    let directory = workspace.join(place.directory);
    let path = normalize(&directory, part);
    if path.starts_with(&workspace) || is_harmless_device(&path) {
        return None;
    }
    Some(if part.starts_with('/') { Escape::Absolute } else { Escape::Climbs })
}

/// Programs whose first operand is a pattern or script, which may well look like `/a/d`.
const PATTERN_PROGRAMS: [&str; 7] = ["sed", "awk", "gawk", "mawk", "grep", "egrep", "rg"];

/// Returns the index of an argument that is a pattern rather than a path.
///
/// Options make the place of the pattern uncertain, so only letters without a value may precede it.
fn pattern_operand<S: AsRef<str>>(argv: &[S]) -> Option<usize> {
    let program = argv.first()?.as_ref();
    if !PATTERN_PROGRAMS.contains(&base_name(program)) {
        return None;
    }
    let plain = |text: &str| {
        text.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|c| "nErilvqsowHIR".contains(c))
        })
    };
    let mut index = 1;
    while plain(argv.get(index)?.as_ref()) {
        index += 1;
    }
    let first = argv.get(index)?.as_ref();
    match first {
        "-e" => Some(index + 1),
        _ if first.starts_with('-') => None,
        _ => Some(index),
    }
}
