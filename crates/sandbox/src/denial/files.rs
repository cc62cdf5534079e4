//! Paths that a command could not use, held against what the plan shows.

use std::path::{Path, PathBuf};

use carrel_domain::Tier;

use super::complaint::{Complaint, Error, Intent};
use super::grant::{self, Wanted};
use super::view::{self, Kind, Place};
use super::{Denial, Situation, normal};
use crate::plan::Plan;

/// The version of Landlock that lets files move between directories at all.
const LANDLOCK_MOVES: u32 = 2;

const HOOKS: &str = "git hooks run outside the sandbox later, so commands cannot change them";
const PERHAPS: &str = "commands can read it and not change it; if this was about reading, the \
                       file's own permissions forbid it";

/// Explains a message, if the plan has something to do with it.
pub(super) fn denials(plan: &Plan, complaint: &Complaint, situation: Situation<'_>) -> Vec<Denial> {
    let start = plan.workspace.join(situation.directory);
    let paths: Vec<PathBuf> =
        complaint.paths.iter().map(|path| normal(&start.join(path))).collect();
    match complaint.error {
        Error::CrossDevice => across(plan, &paths).into_iter().collect(),
        Error::Busy => paths.iter().filter_map(|path| mounted(plan, path)).collect(),
        Error::Access | Error::NotPermitted | Error::ReadOnly | Error::Missing => {
            let judge = |path: &PathBuf| judge(plan, complaint, situation, path);
            paths.iter().filter_map(judge).collect()
        }
    }
}

fn judge(
    plan: &Plan,
    complaint: &Complaint,
    situation: Situation<'_>,
    path: &Path,
) -> Option<Denial> {
    let Complaint { error, intent, .. } = *complaint;
    match view::place(plan, path) {
        // An ordinary matter between the command and its own files.
        Place::Writable { .. } => None,
        Place::Hidden => hidden(plan, error, intent, situation, path),
        Place::ReadOnly { top, kind } => {
            let denial = Denial::inferred(rule(&top, kind), text(path), error.name());
            read_only(plan, error, intent, kind).map(|suggest| match suggest {
                Suggest::Line => grant::suggest(denial, plan, Wanted::Writable, path, situation),
                Suggest::Hint(hint) => denial.hinting(hint),
            })
        }
    }
}

fn hidden(
    plan: &Plan,
    error: Error,
    intent: Intent,
    situation: Situation<'_>,
    path: &Path,
) -> Option<Denial> {
    let by_the_plan = match error {
        Error::Access => true,
        // Where there is no root of their own, the host itself says so.
        Error::Missing | Error::ReadOnly => plan.tier == Tier::Full,
        Error::NotPermitted | Error::CrossDevice | Error::Busy => false,
    };
    let wanted = if intent == Intent::Write { Wanted::Writable } else { Wanted::Readable };
    by_the_plan.then(|| {
        let denial = Denial::inferred("not visible", text(path), error.name());
        grant::suggest(denial, plan, wanted, path, situation)
    })
}

enum Suggest {
    /// A line of the policy, as far as there can be one.
    Line,
    /// Only words.
    Hint(&'static str),
}

/// Decides whether something that can only be read explains an error, and what would help.
fn read_only(plan: &Plan, error: Error, intent: Intent, kind: Kind) -> Option<Suggest> {
    let writes = intent == Intent::Write;
    match (error, kind) {
        (Error::Missing | Error::CrossDevice | Error::Busy, _) => None,
        (Error::NotPermitted, _) if !writes => None,
        (Error::Access, _) if intent == Intent::Read => None,
        (_, Kind::Hooks) => Some(Suggest::Hint(HOOKS)),
        (_, Kind::Workspace) => Some(Suggest::Hint("this workspace is open for reading only")),
        (_, Kind::System) => Some(Suggest::Hint("the host's own files are read-only")),
        (_, Kind::Made) if !writes => None,
        (_, Kind::Made) => Some(Suggest::Hint("this part of the sandbox is made by Carrel")),
        (Error::NotPermitted, Kind::Granted) => Some(Suggest::Hint("only its owner may do this")),
        (Error::ReadOnly, Kind::Granted) if plan.tier == Tier::Landlock => {
            Some(Suggest::Hint("it is read-only on the host too"))
        }
        (_, Kind::Granted) if writes => Some(Suggest::Line),
        (_, Kind::Granted) => Some(Suggest::Hint(PERHAPS)),
    }
}

fn rule(top: &Path, kind: Kind) -> String {
    match kind {
        Kind::Hooks => "git hooks are read-only".to_owned(),
        Kind::Workspace => "read-only: workspace".to_owned(),
        Kind::System | Kind::Granted | Kind::Made => format!("read-only: {}", text(top)),
    }
}

/// Explains why something cannot be renamed or removed.
fn mounted(plan: &Plan, path: &Path) -> Option<Denial> {
    let git = plan.workspace.join(".git");
    let (rule, hint) = match path {
        _ if !view::is_mounted(plan, path) => return None,
        path if path == git => (
            ".git stays in place",
            "what is inside can be changed, but .git itself cannot be moved or removed",
        ),
        path if path == git.join("hooks") => ("git hooks are read-only", HOOKS),
        _ => ("mounted", "it is mounted here, so it cannot be moved or removed"),
    };
    Some(Denial::inferred(rule, text(path), Error::Busy.name()).hinting(hint))
}

/// Explains why something cannot be moved or linked from one place to another.
fn across(plan: &Plan, paths: &[PathBuf]) -> Option<Denial> {
    let [from, to] = paths else { return None };
    let object = format!("{} -> {}", text(from), text(to));
    let top = |path| match view::place(plan, path) {
        Place::Writable { top } | Place::ReadOnly { top, .. } => Some(top),
        Place::Hidden => None,
    };
    let (first, second) = (top(from)?, top(to)?);
    let denial = |rule: String| {
        let denial = Denial::inferred(rule, &object, Error::CrossDevice.name());
        denial.hinting("copy it, then remove the original")
    };
    if first != second {
        let names = format!("separate trees: {} and {}", text(&first), text(&second));
        return Some(denial(names));
    }
    let fixed = (1..LANDLOCK_MOVES).contains(&plan.landlock.version);
    (fixed && from.parent() != to.parent())
        .then(|| denial("Landlock 1 keeps files in their directories".to_owned()))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
