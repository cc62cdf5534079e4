//! Rule `device`: devices as arguments or targets of redirections.

use std::path::Path;

use super::Finding;
use crate::command_line::{Cause, Command, Meaning, Operator, Redirection, Word};
use crate::judge::Context;
use crate::path::{base_name, candidates, is_harmless_device, normalize};

pub(super) const RULE: &str = "device";

const DEVICE: &str = "it names a device; of `/dev`, `null`, `stdin`, `stdout`, `stderr`, `tty` and \
                      `fd/N` pass";
const UNKNOWN: &str = "the target of a redirection is not written out and could be a device; start \
                       it with `./` or a directory";

const PRINTERS: [&str; 2] = ["echo", "printf"];

pub(super) fn check(command: &Command, context: &Context<'_>) -> Option<Finding> {
    let prints = command.name().is_some_and(|name| PRINTERS.contains(&base_name(name)));
    let arguments = if prints { &[] } else { command.arguments() };
    let redirected =
        command.redirections.iter().find_map(|redirection| target(redirection, context));
    redirected.or_else(|| arguments.iter().find_map(|word| argument(word, context)))
}

fn target(redirection: &Redirection, context: &Context<'_>) -> Option<Finding> {
    match redirection.operator {
        Operator::Close | Operator::HereDocument | Operator::HereString => return None,
        Operator::Read | Operator::Write | Operator::Duplicate => {}
    }
    let word = redirection.target.as_ref()?;
    let named = names_device(word.prefix(), word, context);
    let unknown = match &word.meaning {
        Meaning::Literal(_) => false,
        // These stand for a pipe, the home directory, a match in the working directory, or a number.
        Meaning::Computed { cause, prefix, .. } => {
            prefix.is_empty()
                && match cause {
                    Cause::ProcessSubstitution | Cause::Tilde | Cause::Glob | Cause::Arithmetic => {
                        false
                    }
                    Cause::Variable | Cause::Substitution | Cause::Brace | Cause::Input => true,
                }
        }
    };
    if named {
        return Some(Finding::new(RULE, DEVICE).at(word.position));
    }
    unknown.then(|| Finding::new(RULE, UNKNOWN).at(word.position))
}

fn argument(word: &Word, context: &Context<'_>) -> Option<Finding> {
    let parts = candidates(word.prefix());
    let named = parts.iter().any(|part| names_device(part, word, context));
    named.then(|| Finding::new(RULE, DEVICE).at(word.position))
}

fn names_device(part: &str, word: &Word, context: &Context<'_>) -> bool {
    // Text with white space is a sentence and not a path.
    if part.contains(char::is_whitespace) {
        return false;
    }
    let directory = context.workspace.unwrap_or(Path::new("/"));
    if !part.starts_with('/') && (context.workspace.is_none() || !part.contains("..")) {
        return false;
    }
    let path = normalize(directory, part);
    if word.literal().is_none() {
        return path.starts_with("/dev") || may_become_device(part);
    }
    path.starts_with("/dev") && !is_harmless_device(&path)
}

/// Returns whether a path of which only the start is known may continue to `/dev`.
fn may_become_device(start: &str) -> bool {
    let Some(first) = start.strip_prefix('/').map(|rest| rest.trim_start_matches('/')) else {
        return false;
    };
    !first.contains('/') && "dev".starts_with(first)
}
