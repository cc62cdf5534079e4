//! Why something failed inside a sandbox, in words that say what to do about it.
//!
//! System calls are explained exactly: the kernel reported them. Everything else is inferred from
//! what the command itself wrote to stderr, held against the plan. The host is never looked at: a
//! denial says what the sandbox shows, and nothing about what exists outside it. What a command
//! writes is its own choice, so an inferred denial proves nothing and no line is suggested that
//! would open what must stay shut: secrets, devices, the system, other workspaces.

mod error_message;
mod files;
mod limits;
mod message_paths;
mod network;
mod policy_line;
mod syscalls;
#[cfg(test)]
mod tests;
mod visibility;

use std::path::{Path, PathBuf};

use carrel_domain::ResourceLimits;
use serde::Serialize;

use crate::guarantee::CgroupLimits;
use crate::plan::Plan;
use crate::seccomp::DeniedCall;

/// How many denials a result carries. Whoever runs into more has seen enough to act.
pub const MAX_DENIALS: usize = 32;

/// How many of them one rule may give, so that a long list of files does not crowd out the rest.
const MAX_PER_RULE: usize = 6;

/// How much of stderr is read, from its end, where programs say why they gave up.
const MAX_SCANNED_BYTES: usize = 256 << 10;

/// The longest line that is taken for a message of an error.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Something that a command was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// What denied it, such as `not visible` or `read-only: /usr`.
    pub rule: String,
    /// What was denied, such as a path, a host or a system call.
    pub object: String,
    /// The name of the error that the command got, such as `EACCES`.
    pub errno: String,
    /// How it is known.
    pub source: Certainty,
    /// The line for the operator's `policy.toml` that would allow it.
    pub allow: Option<String>,
    /// What else there is to say, such as why there is no such line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How a denial is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The kernel reported it.
    Exact,
    /// It follows from the plan and from what the command wrote.
    Inferred,
}

/// What is known of a command besides its plan.
#[derive(Clone, Copy, Debug)]
pub struct DenialContext<'a> {
    /// Where it started, relative to the workspace.
    pub directory: &'a Path,
    /// The directory whose other children belong to other tenants and to the server; none for a
    /// workspace that an operator named.
    pub root: Option<&'a Path>,
    /// What it may use.
    pub limits: ResourceLimits,
    /// Which limits hold for all its processes together.
    pub cgroup: CgroupLimits,
}

/// Explains what a command was denied.
///
/// `stderr` is what was kept of it. The result has at most [`MAX_DENIALS`] entries, each once:
/// first what is exact, then what is inferred, each in the order in which it happened.
pub fn explain(
    plan: &Plan,
    refused: &[DeniedCall],
    stderr: &str,
    context: DenialContext<'_>,
) -> Vec<Denial> {
    let inferred = infer(plan, stderr, context);
    let outside = inferred.iter().any(network::is_about_the_outside);
    let mut denials = Denials::default();
    for one in refused {
        denials.add(syscalls::denial(plan, one, outside));
    }
    for one in inferred {
        denials.add(one);
    }
    denials.0
}

/// Reads stderr line by line.
fn infer(plan: &Plan, stderr: &str, context: DenialContext<'_>) -> Vec<Denial> {
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_SCANNED_BYTES));
    let mut denials = Denials::default();
    let mut previous = String::new();
    for line in stderr[start..].lines().filter(|line| line.len() <= MAX_LINE_BYTES) {
        if denials.is_full() {
            break;
        }
        let line = without_colors(line);
        if let Some(denial) = network::denial(plan, &line) {
            denials.add(denial);
        } else if let Some(denial) = limits::denial(plan, &line, context) {
            denials.add(denial);
        } else if let Some(error_message) = error_message::read(&line, &previous) {
            for denial in files::denials(plan, &error_message, context) {
                denials.add(denial);
            }
        }
        if is_content(&line) {
            previous = line;
        }
    }
    denials.0
}

/// Returns whether a line says something itself, rather than announcing the next one.
fn is_content(line: &str) -> bool {
    !matches!(line.trim(), "" | "Caused by:")
}

/// Takes escape sequences out that set colours.
fn without_colors(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

/// Denials, each once and not too many.
#[derive(Default)]
struct Denials(Vec<Denial>);

impl Denials {
    fn add(&mut self, denial: Denial) {
        let known = self.0.iter().any(|known| known.covers(&denial));
        let alike = self.0.iter().filter(|known| known.rule == denial.rule).count();
        if !known && alike < MAX_PER_RULE && !self.is_full() {
            self.0.push(denial);
        }
    }

    fn is_full(&self) -> bool {
        self.0.len() >= MAX_DENIALS
    }
}

impl Denial {
    fn inferred(rule: impl Into<String>, object: impl Into<String>, errno: &str) -> Self {
        Self {
            rule: rule.into(),
            object: object.into(),
            errno: errno.to_owned(),
            source: Certainty::Inferred,
            allow: None,
            hint: None,
        }
    }

    fn allowed_by(self, line: String) -> Self {
        Self { allow: Some(line), ..self }
    }

    fn hinting(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns whether another one says nothing new: the same, or about a path below this one that
    /// the line of this one allows too.
    fn covers(&self, other: &Self) -> bool {
        let is_path =
            self.object.starts_with('/') && (self.allow.is_some() || other.allow.is_none());
        let object = self.object == other.object
            || is_path && Path::new(&other.object).starts_with(&self.object);
        self.rule == other.rule && self.errno == other.errno && object
    }
}

/// Takes `.` and `..` out of an absolute path, by its text alone.
fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(name) => normal.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}
