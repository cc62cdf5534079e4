//! Denials of files: paths from error messages, matched against the plan.

use std::path::{Path, PathBuf};

use carrel_domain::Tier;

use super::policy_line::{self, PolicyKey};
use super::stderr_message::{FileError, Intent, StderrMessage};
use super::visibility::{self, ReadOnlyKind, Visibility};
use super::{Denial, DenialClass, DenialContext, normal};
use crate::plan::Plan;

/// The version of Landlock that lets files move between directories at all.
const LANDLOCK_MOVES: u32 = 2;

const HOOKS: &str = "git hooks run outside the sandbox later, so commands cannot change them";
const PERHAPS: &str = "commands can read it and not change it; if this was about reading, the \
                       file's own permissions forbid it";

/// Returns the denials that explain a message; none if the plan did not cause the error.
pub(super) fn denials(
    plan: &Plan,
    message: &StderrMessage,
    context: DenialContext<'_>,
) -> Vec<Denial> {
    let start = plan.workspace.join(context.directory);
    let paths: Vec<PathBuf> = message.paths.iter().map(|path| normal(&start.join(path))).collect();
    match message.error {
        FileError::CrossDevice => across(plan, &paths).into_iter().collect(),
        FileError::Busy => paths.iter().filter_map(|path| mounted(plan, path)).collect(),
        FileError::Access | FileError::NotPermitted | FileError::ReadOnly | FileError::Missing => {
            let judge = |path: &PathBuf| judge(plan, message, context, path);
            paths.iter().filter_map(judge).collect()
        }
    }
}

fn judge(
    plan: &Plan,
    message: &StderrMessage,
    context: DenialContext<'_>,
    path: &Path,
) -> Option<Denial> {
    let StderrMessage { error, intent, .. } = *message;
    match visibility::visibility(plan, path) {
        // The sandbox permits it, so the error is the command's own.
        Visibility::Writable { .. } => None,
        Visibility::Hidden => hidden(plan, error, intent, context, path),
        Visibility::ReadOnly { top, kind } => {
            let denial =
                Denial::inferred(DenialClass::Files, rule(&top, kind), text(path), error.name());
            read_only(plan, error, intent, kind).map(|suggest| match suggest {
                Suggest::Line => {
                    policy_line::suggest(denial, plan, PolicyKey::Writable, path, context)
                }
                Suggest::Hint(hint) => denial.hinting(hint),
            })
        }
    }
}

fn hidden(
    plan: &Plan,
    error: FileError,
    intent: Intent,
    context: DenialContext<'_>,
    path: &Path,
) -> Option<Denial> {
    let by_the_plan = match error {
        FileError::Access => true,
        // In tier `landlock` the host's own file system gave these errors.
        FileError::Missing | FileError::ReadOnly => plan.tier == Tier::Full,
        FileError::NotPermitted | FileError::CrossDevice | FileError::Busy => false,
    };
    let key = if intent == Intent::Write { PolicyKey::Writable } else { PolicyKey::Readable };
    by_the_plan.then(|| {
        let denial = Denial::inferred(DenialClass::Files, "not visible", text(path), error.name());
        policy_line::suggest(denial, plan, key, path, context)
    })
}

enum Suggest {
    /// A policy line, unless the path is one for which none may be suggested.
    Line,
    Hint(&'static str),
}

/// Returns the remedy if an error comes from read-only access, and `None` if it has another cause.
fn read_only(plan: &Plan, error: FileError, intent: Intent, kind: ReadOnlyKind) -> Option<Suggest> {
    let writes = intent == Intent::Write;
    match (error, kind) {
        (FileError::Missing | FileError::CrossDevice | FileError::Busy, _) => None,
        (FileError::NotPermitted, _) if !writes => None,
        (FileError::Access, _) if intent == Intent::Read => None,
        (_, ReadOnlyKind::Hooks) => Some(Suggest::Hint(HOOKS)),
        (_, ReadOnlyKind::Workspace) => {
            Some(Suggest::Hint("this workspace is open for reading only"))
        }
        (_, ReadOnlyKind::System) => Some(Suggest::Hint("the host's own files are read-only")),
        (_, ReadOnlyKind::Generated) if !writes => None,
        (_, ReadOnlyKind::Generated) => {
            Some(Suggest::Hint("this part of the sandbox is made by Carrel"))
        }
        (FileError::NotPermitted, ReadOnlyKind::Granted) => {
            Some(Suggest::Hint("only its owner may do this"))
        }
        (FileError::ReadOnly, ReadOnlyKind::Granted) if plan.tier == Tier::Landlock => {
            Some(Suggest::Hint("it is read-only on the host too"))
        }
        (_, ReadOnlyKind::Granted) if writes => Some(Suggest::Line),
        (_, ReadOnlyKind::Granted) => Some(Suggest::Hint(PERHAPS)),
    }
}

fn rule(top: &Path, kind: ReadOnlyKind) -> String {
    match kind {
        ReadOnlyKind::Hooks => "git hooks are read-only".to_owned(),
        ReadOnlyKind::Workspace => "read-only: workspace".to_owned(),
        ReadOnlyKind::System | ReadOnlyKind::Granted | ReadOnlyKind::Generated => {
            format!("read-only: {}", text(top))
        }
    }
}

/// Explains `EBUSY`: a mount point cannot be renamed or removed.
fn mounted(plan: &Plan, path: &Path) -> Option<Denial> {
    let git = plan.workspace.join(".git");
    let (rule, hint) = match path {
        _ if !visibility::is_mounted(plan, path) => return None,
        path if path == git => (
            ".git stays in place",
            "what is inside can be changed, but .git itself cannot be moved or removed",
        ),
        path if path == git.join("hooks") => ("git hooks are read-only", HOOKS),
        _ => ("mounted", "it is mounted here, so it cannot be moved or removed"),
    };
    Some(
        Denial::inferred(DenialClass::Files, rule, text(path), FileError::Busy.name())
            .hinting(hint),
    )
}

/// Explains `EXDEV`: files cannot be moved or linked between mounts, or at all by Landlock 1.
fn across(plan: &Plan, paths: &[PathBuf]) -> Option<Denial> {
    let [from, to] = paths else { return None };
    let object = format!("{} -> {}", text(from), text(to));
    let top = |path| match visibility::visibility(plan, path) {
        Visibility::Writable { top } | Visibility::ReadOnly { top, .. } => Some(top),
        Visibility::Hidden => None,
    };
    let first = top(from)?;
    let second = top(to)?;
    let denial = |rule: String| {
        let denial =
            Denial::inferred(DenialClass::Files, rule, &object, FileError::CrossDevice.name());
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
