//! Denials: explanations of failures that the sandbox caused, with the rule and the remedy.
//!
//! There are two sources. System calls that the filter denied were reported by the kernel and are exact.
//! Denials of files, networks and limits give no such report; they are inferred from the messages that the
//! command wrote to stderr, matched against the plan. A line such as
//!
//! ```text
//! cat: /home/ann/.ssh/id_rsa: No such file or directory
//! ```
//!
//! becomes a denial if the plan hides the path: rule `not visible`, object `/home/ann/.ssh/id_rsa`, errno
//! `ENOENT`, and here a hint instead of a policy line, because the path holds credentials.
//!
//! Two rules keep this safe. The host is never consulted: a denial follows from the plan alone, so it tells
//! a command nothing about files outside its sandbox. And stderr is untrusted: a command can print any
//! message, so an inferred denial proves nothing, and no policy line is ever suggested for credentials,
//! devices, system files, services or other workspaces ([`policy_line`]). An operator who copies a
//! suggested line into `policy.toml` cannot be tricked into opening those.
//!
//! The work is bounded: at most 256 KiB of stderr are scanned, lines above 4 KiB are skipped, and a result
//! has at most [`MAX_DENIALS`] denials, [`MAX_PER_RULE`] for each rule.

mod files;
mod limits;
mod message_paths;
mod network;
mod policy_line;
mod stderr_message;
mod syscalls;
#[cfg(test)]
mod tests;
mod visibility;

use std::path::{Path, PathBuf};

use carrel_domain::{Network, ResourceLimits};
use serde::Serialize;

use crate::guarantee::CgroupLimits;
use crate::plan::Plan;
use crate::seccomp::DeniedCall;

/// The most denials in a result. A reader with more has seen enough to act.
pub const MAX_DENIALS: usize = 32;

/// The most denials of one rule, so that a long list of files does not crowd out other rules.
const MAX_PER_RULE: usize = 6;

/// The part of stderr that is scanned, from its end, where programs report their last error.
const MAX_SCANNED_BYTES: usize = 256 << 10;

/// The longest line that is scanned for an error message.
const MAX_LINE_BYTES: usize = 4 << 10;

/// An operation that the sandbox denied to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// The rule that denied it, such as `not visible` or `read-only: /usr`.
    pub rule: String,
    /// The path, host, limit or system call that was denied.
    pub object: String,
    /// The name of the error that the command got, such as `EACCES`.
    pub errno: String,
    /// The certainty of the denial, by its source.
    pub source: Certainty,
    /// The number of denied calls, or of messages about the object.
    pub count: u64,
    /// The line for the operator's `policy.toml` that would allow the operation, if one may be suggested.
    pub allow: Option<String>,
    /// Further advice, such as the reason why there is no such line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The network that would have allowed the operation, if a network would.
    #[serde(skip)]
    pub network: Option<Network>,
    /// The class of the object.
    #[serde(skip)]
    pub class: DenialClass,
}

/// The class of a denied object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DenialClass {
    /// A host, or a socket that a wider network would allow.
    Network,
    /// A path.
    Files,
    /// A resource limit.
    Limits,
    /// A system call that no network would allow.
    SystemCalls,
}

/// The certainty of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The kernel reported it.
    Exact,
    /// It was inferred from the plan and the command's stderr.
    Inferred,
}

/// The facts about a command besides its plan.
#[derive(Clone, Copy, Debug)]
pub struct DenialContext<'a> {
    /// The start directory, relative to the workspace; relative paths in messages are resolved in it.
    pub directory: &'a Path,
    /// The directory whose other children belong to other tenants and to the server; none for a
    /// workspace that an operator named.
    pub root: Option<&'a Path>,
    /// The resource limits of the command.
    pub limits: ResourceLimits,
    /// The most network that the same request could have had.
    pub network_cap: Network,
    /// The limits that a control group enforces for all processes of the command together.
    pub cgroup: CgroupLimits,
}

/// Returns the denials of a finished command, from the system calls that the filter reported and the
/// retained part of its stderr.
///
/// The result has at most [`MAX_DENIALS`] entries without duplicates: exact ones first, then inferred
/// ones, each in the order in which they happened.
pub fn explain(
    plan: &Plan,
    refused: &[DeniedCall],
    stderr: &str,
    context: DenialContext<'_>,
) -> Vec<Denial> {
    let inferred = infer(plan, stderr, context);
    let outside = inferred.iter().any(network::leaves_the_machine);
    let mut denials = Denials::default();
    for one in refused {
        denials.add(syscalls::denial(plan, one, outside, context.network_cap));
    }
    for one in inferred {
        denials.add(one);
    }
    denials.0
}

fn infer(plan: &Plan, stderr: &str, context: DenialContext<'_>) -> Vec<Denial> {
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_SCANNED_BYTES));
    let mut denials = Denials::default();
    let mut previous = String::new();
    for line in stderr[start..].lines().filter(|line| line.len() <= MAX_LINE_BYTES) {
        if denials.is_full() {
            break;
        }
        let line = without_colors(line);
        if let Some(denial) = network::denial(plan, &line, context.network_cap) {
            denials.add(denial);
        } else if let Some(denial) = limits::denial(plan, &line, context) {
            denials.add(denial);
        } else if let Some(message) = stderr_message::read(&line, &previous) {
            for denial in files::denials(plan, &message, context) {
                denials.add(denial);
            }
        }
        if is_content(&line) {
            previous = line;
        }
    }
    denials.0
}

/// Returns whether a line is a message itself and not the heading of the next one.
fn is_content(line: &str) -> bool {
    !matches!(line.trim(), "" | "Caused by:")
}

/// Removes ANSI escape sequences.
fn without_colors(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

/// A list of denials without duplicates, within its bounds.
#[derive(Default)]
struct Denials(Vec<Denial>);

impl Denials {
    fn add(&mut self, denial: Denial) {
        if let Some(known) = self.0.iter_mut().find(|known| known.covers(&denial)) {
            known.count += denial.count;
            return;
        }
        let alike = self.0.iter().filter(|known| known.rule == denial.rule).count();
        if alike < MAX_PER_RULE && !self.is_full() {
            self.0.push(denial);
        }
    }

    fn is_full(&self) -> bool {
        self.0.len() >= MAX_DENIALS
    }
}

impl Denial {
    fn inferred(
        class: DenialClass,
        rule: impl Into<String>,
        object: impl Into<String>,
        errno: &str,
    ) -> Self {
        Self {
            rule: rule.into(),
            object: object.into(),
            errno: errno.to_owned(),
            source: Certainty::Inferred,
            count: 1,
            allow: None,
            hint: None,
            network: None,
            class,
        }
    }

    fn allowed_by(self, line: String) -> Self {
        Self { allow: Some(line), ..self }
    }

    fn hinting(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns whether another denial adds nothing: it is equal, or about a path below this one that the
    /// policy line of this one allows too.
    fn covers(&self, other: &Self) -> bool {
        let is_path =
            self.object.starts_with('/') && (self.allow.is_some() || other.allow.is_none());
        let object = self.object == other.object
            || is_path && Path::new(&other.object).starts_with(&self.object);
        self.rule == other.rule && self.errno == other.errno && object
    }
}

/// Resolves `.` and `..` in an absolute path lexically.
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
