//! Rule `program_lookup`: assignments to variables that decide which program a name stands for.

use super::Finding;
use crate::command_line::Command;
use crate::judge::Context;

pub(super) const RULE: &str = "program_lookup";

/// Variables that can replace a listed program, or code in it, by another.
const VARIABLES: [&str; 6] =
    ["PATH", "BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"];

pub(super) fn check(command: &Command, _: &Context<'_>) -> Option<Finding> {
    let assignment = command
        .assignments
        .iter()
        .find(|assignment| VARIABLES.contains(&assignment.name.as_str()))?;
    let message = format!(
        "`{}` decides which program a name stands for and is set by the server; run the program \
         through `npx`, `uv run`, `python -m` or a script of the project",
        assignment.name
    );
    Some(Finding::new(RULE, message).at(assignment.position))
}
