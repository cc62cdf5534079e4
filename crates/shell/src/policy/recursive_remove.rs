//! Rule `recursive_remove`: `rm -r` and `find -delete` on trees outside the workspace.

use super::Finding;
use crate::command_line::{Cause, Command, Meaning, Word};
use crate::judge::Context;
use crate::path::{base_name, normalize};
use std::path::Path;

pub(super) const RULE: &str = "recursive_remove";

const OUTSIDE: &str = "it removes a tree by an absolute path outside the own workspace; give the \
                       path relative to the workspace";
const UNKNOWN: &str = "it may remove a tree that is not written out; start the path with `./`, and \
                       put `--` before names when no option is meant to follow";

pub(super) fn check(command: &Command, context: &Context<'_>) -> Option<Finding> {
    match base_name(command.name()?) {
        "rm" => remove(command, context),
        "find" => find_delete(command, context),
        _ => None,
    }
}

fn remove(command: &Command, context: &Context<'_>) -> Option<Finding> {
    let arguments = command.arguments();
    let recursive = arguments.iter().take_while(|word| !is_end(word)).any(is_recursive);
    let unknown: Vec<&Word> = arguments.iter().filter(|word| may_be_anything(word)).collect();
    if recursive {
        return targets(arguments)
            .find_map(|word| outside(word, context))
            .or_else(|| found(&unknown));
    }
    // Without the option, a computed word before `--` may still expand to it.
    let options: Vec<&Word> = arguments
        .iter()
        .take_while(|word| !is_end(word))
        .filter(|word| may_be_anything(word) || may_be_option(word))
        .collect();
    let splits = options.iter().any(|word| word.splits());
    let leaves = targets(arguments).any(|word| outside(word, context).is_some());
    if !options.is_empty() && (splits || leaves || unknown.len() > 1) {
        found(&options)
    } else {
        None
    }
}

fn found(words: &[&Word]) -> Option<Finding> {
    words.first().map(|word| Finding::new(RULE, UNKNOWN).at(word.position))
}

fn is_end(word: &Word) -> bool {
    word.literal() == Some("--")
}

fn is_recursive(word: &Word) -> bool {
    let Some(text) = word.known_start() else { return false };
    match text.strip_prefix("--") {
        // Long options may be abbreviated.
        Some(long) => !long.is_empty() && "recursive".starts_with(long),
        None => text.starts_with('-') && text.contains(['r', 'R']),
    }
}

fn may_be_anything(word: &Word) -> bool {
    word.known_start().is_none()
}

/// Returns whether a computed word starts like an option, so that any letter may follow.
fn may_be_option(word: &Word) -> bool {
    word.literal().is_none() && word.known_start().is_some_and(|text| text.starts_with('-'))
}

fn targets(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let end = arguments.iter().position(is_end).unwrap_or(arguments.len());
    arguments.iter().enumerate().filter_map(move |(index, word)| {
        let option = word.known_start().is_some_and(|text| text.starts_with('-')) && index <= end;
        (!option).then_some(word)
    })
}

fn outside(word: &Word, context: &Context<'_>) -> Option<Finding> {
    let prefix = word.prefix();
    if !prefix.starts_with('/') || is_inside(word, prefix, context.workspace) {
        return None;
    }
    Some(Finding::new(RULE, OUTSIDE).at(word.position))
}

fn is_inside(word: &Word, prefix: &str, workspace: Option<&Path>) -> bool {
    let Some(workspace) = workspace else { return false };
    let certain = match &word.meaning {
        Meaning::Literal(_) => prefix,
        // The rest after a glob or brace is in the source; the rest after a variable may be anything.
        Meaning::Computed { cause: Cause::Glob | Cause::Brace, splits: false, .. } => {
            if word.source.contains("..") {
                return false;
            }
            // The last component of the prefix continues in the computed part.
            prefix.rsplit_once('/').map_or("", |(directory, _)| directory)
        }
        Meaning::Computed { .. } => return false,
    };
    normalize(Path::new("/"), certain)
        .starts_with(normalize(Path::new("/"), &workspace.to_string_lossy()))
}

fn find_delete(command: &Command, context: &Context<'_>) -> Option<Finding> {
    let arguments = command.arguments();
    if !arguments.iter().any(|word| word.literal() == Some("-delete")) {
        return None;
    }
    let starts = crate::wrapper::find_starts(arguments);
    let leaving = starts.iter().find_map(|word| outside(word, context));
    let unknown: Vec<&Word> = starts.iter().filter(|word| may_be_anything(word)).collect();
    leaving.or_else(|| found(&unknown))
}
