//! A check of the path-like arguments of a program that is started without a shell.
//!
//! [`check`] is lexical: it follows no link and uses no file system. [`check_links`] then judges the links among
//! the arguments by the place to which they lead, which its caller looks up. Both catch mistakes before the
//! program starts and nothing more. Links that change later, and paths that do not appear in arguments, are left
//! to the sandbox.

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use crate::parse_error::shortened;
use crate::path::{base_name, candidates, is_harmless_device, normalize};

/// The working directory of a program, against which relative arguments are resolved.
#[derive(Clone, Copy, Debug)]
pub struct WorkingDirectory<'a> {
    /// The absolute path of the workspace.
    pub workspace: &'a Path,
    /// The start directory, relative to the workspace.
    pub directory: &'a Path,
}

/// An argument that leads out of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("argument {index} {escape}: {}", shortened(value))]
pub struct Violation {
    /// The index of the argument; 0 is the program.
    pub index: usize,
    /// The whole argument.
    pub value: String,
    /// The way in which it leaves.
    pub escape: Escape,
}

/// The way in which an argument leaves the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Escape {
    /// An absolute path outside.
    #[error("is an absolute path outside the workspace; give it relative to the workspace")]
    Absolute,
    /// A relative path that climbs out by `..`.
    #[error("climbs out of the workspace with `..`")]
    Climbs,
    /// A path that starts with `~`, which is not expanded without a shell.
    #[error("names a home directory; give the path relative to the workspace")]
    Home,
    /// A program given by a path outside.
    #[error("names a program outside the workspace; give its bare name")]
    Program,
    /// A path inside with a link that leads outside.
    #[error("leads outside the workspace through a link")]
    Link,
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
            Escape::Link => "link",
        };
        json!({ "argument": self.index, "value": self.value, "reason": reason })
    }
}

/// Checks the program and every argument, and returns the first that leaves the workspace.
///
/// An argument is split into the parts that a program may take for a path, such as the value after `=`. The
/// devices `/dev/null`, `/dev/stdin` and their like pass, and so does the pattern of `grep`, `sed` or `awk`,
/// which may look like an absolute path.
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
    let directory = place.workspace.join(place.directory);
    if is_allowed(&normalize(&directory, part), place) {
        return None;
    }
    Some(if part.starts_with('/') { Escape::Absolute } else { Escape::Climbs })
}

/// Returns whether a normalized path lies in the workspace or is a device that any command may use.
fn is_allowed(path: &Path, place: &WorkingDirectory<'_>) -> bool {
    let workspace = normalize(Path::new("/"), &place.workspace.to_string_lossy());
    path.starts_with(workspace) || is_harmless_device(path)
}

/// The places to which links lead.
pub trait LinkTargets {
    /// Returns the path outside to which a path of the workspace leads, relative to the workspace; `None` if it
    /// stays inside or does not exist.
    fn outside(&self, path: &Path) -> Option<PathBuf>;

    /// Returns whether commands may run the program at a path outside, which they would find by its name.
    fn may_run(&self, program: &Path) -> bool;
}

/// Checks arguments that [`check`] has passed, and returns the first that leads outside through a link.
///
/// The program itself may be a link to one of the system, as in a virtual environment of Python.
pub fn check_links<S: AsRef<str>>(
    argv: &[S],
    place: &WorkingDirectory<'_>,
    targets: &impl LinkTargets,
) -> Result<(), Violation> {
    let pattern = pattern_operand(argv);
    for (index, argument) in argv.iter().enumerate() {
        let value = argument.as_ref();
        let is_bare_name = index == 0 && !value.contains('/');
        if Some(index) == pattern || is_bare_name {
            continue;
        }
        let parts = if index == 0 { vec![value] } else { candidates(value) };
        let leads_outside = |part: &&str| {
            let target = inside(part, place).and_then(|path| targets.outside(&path));
            target.is_some_and(|target| {
                let target = normalize(Path::new("/"), &target.to_string_lossy());
                let is_program = index == 0 && targets.may_run(&target);
                !is_program && !is_allowed(&target, place)
            })
        };
        if parts.iter().any(leads_outside) {
            return Err(Violation { index, value: value.to_owned(), escape: Escape::Link });
        }
    }
    Ok(())
}

/// Returns a path relative to the workspace, with `..` and links as they are.
fn inside(part: &str, place: &WorkingDirectory<'_>) -> Option<PathBuf> {
    let path = Path::new(part);
    if path.is_absolute() {
        return path.strip_prefix(place.workspace).ok().map(Path::to_owned);
    }
    Some(place.directory.join(path))
}

/// Replaces another path of the workspace in an argument by the one that commands see. `alias` is the path
/// through links by which the operator named the workspace.
pub fn respelled(argument: &str, alias: &Path, workspace: &Path) -> String {
    let real = |part: &str| {
        let below = Path::new(part).strip_prefix(alias).ok().filter(|_| alias != workspace)?;
        let path =
            if below == Path::new("") { workspace.to_owned() } else { workspace.join(below) };
        let before = argument.strip_suffix(part)?;
        Some(format!("{before}{}", path.to_string_lossy()))
    };
    candidates(argument).into_iter().find_map(real).unwrap_or_else(|| argument.to_owned())
}

/// Programs whose first operand is a pattern or script, which may look like the path `/a/d`.
const PATTERN_PROGRAMS: [&str; 7] = ["sed", "awk", "gawk", "mawk", "grep", "egrep", "rg"];

/// Returns the index of the argument that is a pattern and not a path.
///
/// An option with a value would make its position uncertain, so only letters without a value may precede it.
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
