//! Checks that failed because they may not write: a missing lock file, a script that changes files.

use crate::parse::{CouldNotRunReason, ParseContext, text};
use crate::plan::TreeAccess;
use crate::tool::ProjectTool;

/// Messages of the system about a file that may not be written: of a read-only mount, and of Landlock.
const DENIED: [&str; 6] =
    ["Read-only file system", "EROFS", "os error 30", "Permission denied", "EACCES", "os error 13"];

/// Exit status of a shell for a program that may not be executed, which Landlock's message resembles.
const NOT_EXECUTABLE: i32 = 126;

/// Returns the reason if a check failed because the tree is read-only.
///
/// Output of a tool that has findings may quote such a message, so it counts only without any.
pub(super) fn reason(context: &ParseContext<'_>, has_findings: bool) -> Option<CouldNotRunReason> {
    if context.succeeded() || context.invocation.access == TreeAccess::ReadWrite {
        return None;
    }
    let cargo = matches!(
        context.invocation.tool,
        ProjectTool::Clippy | ProjectTool::CargoCheck | ProjectTool::Rustfmt
    );
    if cargo && context.stderr.contains("--locked was passed to prevent this") {
        let hint = "run `cargo generate-lockfile`, or the tests once".to_owned();
        return Some(CouldNotRunReason::LockFile { file: "Cargo.lock".to_owned(), hint });
    }
    if has_findings || context.exit() == Some(NOT_EXECUTABLE) {
        return None;
    }
    let mut lines = context.stderr.lines().chain(context.stdout.lines());
    let line = lines.find(|line| DENIED.iter().any(|words| line.contains(words)))?;
    Some(CouldNotRunReason::ReadOnlyTree { message: text::truncated(line.trim()) })
}
