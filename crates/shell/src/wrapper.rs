//! Wrappers: commands that run other commands, such as `env`, `timeout`, `xargs`, `find -exec`, `sh -c` and
//! `eval`. The commands that they run are found and judged like commands of the text.
//!
//! The options of each wrapper are listed. An option that is not listed, and a command that is computed or
//! read from a pipe, make the text not understood, since the wrapped command cannot be found with certainty.
//! A script in a file passes: its contents are not part of the text, and the sandbox decides about them.

mod find;
mod options;
mod prefix;
mod shell;

use crate::command_line::{Command, CommandLine, CommandOrigin, Word};
use crate::parse::{MAX_COMMANDS, parse_nested};
use crate::parse_error::{ParseError, Reason, shortened};

pub(crate) use find::starts as find_starts;

const MAX_WRAPPERS: usize = 16;

enum Inner {
    Command(Command),
    Text(String),
}

type Looked = Result<Vec<Inner>, ParseError>;

/// Adds the commands that wrappers run, recursively, for a text that is nested in `depth` wrappers.
///
/// Works through a queue instead of recursion. `timeout 5 env sh -c 'rm x'` adds `env sh -c 'rm x'`, then
/// `sh -c 'rm x'`, then the parsed text `rm x`. An error in one command does not stop the others.
pub(crate) fn look_through(line: &mut CommandLine, problem: &mut Option<ParseError>, depth: usize) {
    let mut queue: Vec<(usize, Command)> =
        line.commands.iter().rev().map(|command| (depth, command.clone())).collect();
    while let Some((depth, command)) = queue.pop() {
        match look(&command, depth) {
            Err(found) => note(problem, found),
            Ok(inner) => {
                for inner in inner {
                    add(line, problem, &mut queue, inner, (depth + 1, command.position));
                }
            }
        }
    }
}

fn note(problem: &mut Option<ParseError>, found: ParseError) {
    problem.get_or_insert(found);
}

fn add(
    line: &mut CommandLine,
    problem: &mut Option<ParseError>,
    queue: &mut Vec<(usize, Command)>,
    inner: Inner,
    (depth, position): (usize, usize),
) {
    match inner {
        Inner::Command(command) => {
            line.commands.push(command.clone());
            queue.push((depth, command));
        }
        Inner::Text(text) => {
            let nested = parse_nested(&text, depth).unwrap_or_else(|nested| {
                note(problem, ParseError::new(position, nested.reason));
                *nested.partial
            });
            adopt(line, nested, position);
        }
    }
    if line.commands.len() > MAX_COMMANDS {
        queue.clear();
        let reason = Reason::TooManyCommands { limit: MAX_COMMANDS };
        note(problem, ParseError::new(position, reason));
    }
}

/// Adds the commands of a nested text, at the position of the wrapper.
fn adopt(line: &mut CommandLine, nested: CommandLine, position: usize) {
    let wrapped = |command| Command { position, origin: CommandOrigin::Wrapped, ..command };
    line.commands.extend(nested.commands.into_iter().map(wrapped));
    line.backticks.extend(nested.backticks.iter().map(|_| position));
    line.newlines.extend(nested.newlines.iter().map(|_| position));
}

fn look(command: &Command, depth: usize) -> Looked {
    let Some(first) = command.words.first() else { return Ok(Vec::new()) };
    let Some(name) = first.literal() else {
        let reason = Reason::ComputedCommand { source_text: shortened(&first.source) };
        return Err(ParseError::new(first.position, reason));
    };
    let inner = inner_of(crate::path::base_name(name), command)?;
    if !inner.is_empty() && depth >= MAX_WRAPPERS {
        let reason = Reason::TooDeep { limit: MAX_WRAPPERS };
        return Err(ParseError::new(first.position, reason));
    }
    Ok(inner)
}

fn inner_of(name: &str, command: &Command) -> Looked {
    match name {
        "sh" | "bash" | "dash" | "zsh" | "ksh" => shell::script_of(command),
        "eval" => shell::evaluated(command),
        "trap" => shell::trapped(command),
        "source" | "." => shell::sourced(command),
        "mapfile" | "readarray" => shell::callback(command),
        "find" => find::executed(command),
        "xargs" => prefix::fed(command),
        _ => prefix::wrapped(name, command),
    }
}

fn computed(command: &Command, word: Option<&Word>) -> ParseError {
    let wrapper = command.name().map(shortened).unwrap_or_default();
    let position = word.map_or(command.position, |word| word.position);
    ParseError::new(position, Reason::ComputedWrapped { wrapper })
}

fn as_command(outer: &Command, words: &[Word]) -> Inner {
    Inner::Command(Command {
        words: words.to_vec(),
        position: outer.position,
        origin: CommandOrigin::Wrapped,
        ..Command::default()
    })
}
