//! The rules of the presets.

mod device;
mod lookup;
mod mode;
mod names;
mod operations;
mod remove;

use crate::error::shortened;
use crate::judge::Context;
use crate::path::base_name;
use crate::script::{Command, CommandLine, CommandOrigin};

pub use names::allowed_names;

/// A rule that a command breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) rule: &'static str,
    /// Why, and what would pass.
    pub(crate) message: String,
    /// Where, when that is not the start of the command.
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

/// Returns the first blocked operation of the table, and the command that performs it.
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

/// Returns the first command that the list does not hold.
pub(crate) fn unlisted(script: &CommandLine) -> Option<(&Command, Finding)> {
    first(&script.commands, |command| {
        let name = command.name()?;
        if names::is_allowed(name) || is_function(name, command, script) {
            return None;
        }
        let advice = names::advice(name);
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

/// Returns what would pass instead of a path.
fn by_name(path: &str) -> String {
    let base = base_name(path);
    let passes = if names::is_allowed(base) {
        format!("`{}` passes", shortened(base))
    } else {
        format!("`bash {}` passes for a script", shortened(path))
    };
    format!("a program is named, not given by its path; {passes}")
}

/// Tells whether the text itself has defined the name before.
fn is_function(name: &str, command: &Command, script: &CommandLine) -> bool {
    let undefines = |command: &Command| command.name() == Some("unset");
    command.origin == CommandOrigin::Written
        && !script.commands.iter().any(undefines)
        && script.functions.iter().any(|f| f.name == name && f.end <= command.position)
}
