//! The rules of the presets: blocked operations, and the list of allowed names.
//!
//! A blocked operation is recognised by the name of a command ([`operations`]) or by a check of its words:
//! recursive removal outside the workspace, world-writable modes, devices, and variables that decide which
//! program a name stands for. The denylist uses only the operations that are marked for it, by name. The
//! allowlist refuses all of them and every name that is not on its list.
//!
//! A rule that depends on a word treats a computed word as the worst that it could be: `rm -rf $X` is
//! refused because `$X` may be `/`, and the message says how to write it so that it passes (`./$X`).

mod allowlist;
mod device;
mod operations;
mod program_lookup;
mod recursive_remove;
mod world_writable;

use crate::command_line::{Command, CommandLine, CommandOrigin};
use crate::judge::Context;
use crate::parse_error::shortened;
use crate::path::base_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) rule: &'static str,
    /// The reason, and what would pass instead.
    pub(crate) message: String,
    /// The byte offset of the word, if the rule is about one.
    pub(crate) position: Option<usize>,
}

impl Finding {
    fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), position: None }
    }

    fn at(self, position: usize) -> Self {
        Self { position: Some(position), ..self }
    }
}

/// Returns the first blocked operation of the table with the command that performs it.
pub(crate) fn blocked<'a>(
    commands: &'a [Command],
    context: &Context<'_>,
) -> Option<(&'a Command, Finding)> {
    operations::OPERATIONS
        .iter()
        .find_map(|operation| first(commands, |command| operation.found(command, context)))
}

/// Returns the first operation that the denylist refuses, by the command's name alone.
pub(crate) fn denied(commands: &[Command]) -> Option<(&Command, Finding)> {
    let denied = |command: &Command| {
        let mut operations = operations::OPERATIONS.iter().filter(|operation| operation.denied);
        operations.find_map(|operation| operation.found(command, &Context::default()))
    };
    first(commands, denied)
}

/// Returns the first command that is given by the path of its program.
pub(crate) fn by_path(commands: &[Command]) -> Option<(&Command, Finding)> {
    first(commands, |command| {
        let name = command.name().filter(|name| name.contains('/'))?;
        Some(Finding::new("path", by_name(name)))
    })
}

/// Returns the first command whose name is not on the list.
pub(crate) fn unlisted(line: &CommandLine) -> Option<(&Command, Finding)> {
    first(&line.commands, |command| {
        let name = command.name()?;
        if allowlist::is_allowed(name) || is_function(name, command, line) {
            return None;
        }
        let advice = allowlist::advice(name);
        let message = format!("`{}` is not on the list of commands; {advice}", shortened(name));
        Some(Finding::new("not_listed", message))
    })
}

fn first(
    commands: &[Command],
    rule: impl Fn(&Command) -> Option<Finding>,
) -> Option<(&Command, Finding)> {
    commands.iter().find_map(|command| Some((command, rule(command)?)))
}

fn by_name(path: &str) -> String {
    let base = base_name(path);
    let passes = if allowlist::is_allowed(base) {
        format!("`{}` passes", shortened(base))
    } else {
        format!("`bash {}` passes for a script", shortened(path))
    };
    format!("a program is named, not given by its path; {passes}")
}

/// Returns whether the text itself has defined a function of this name before the command.
fn is_function(name: &str, command: &Command, line: &CommandLine) -> bool {
    let undefines = |command: &Command| command.name() == Some("unset");
    command.origin == CommandOrigin::Written
        && !line.commands.iter().any(undefines)
        && line.functions.iter().any(|f| f.name == name && f.end <= command.position)
}
