//! Commands that run other commands, looked through.

mod find;
mod options;
mod prefix;
mod shell;

use crate::error::{ParseError, Reason, shortened};
use crate::parse::{MAX_COMMANDS, parse_nested};
use crate::script::{Command, CommandLine, CommandOrigin, Word};

pub(crate) use find::starts as find_starts;

/// Bounds how many wrappers may stand around a command.
const MAX_WRAPPERS: usize = 16;

/// Something that a command runs.
enum Inner {
    /// A command given as words.
    Command(Command),
    /// Shell text given as one word.
    Text(String),
}

type Looked = Result<Vec<Inner>, ParseError>;

/// Adds the commands that the found ones run, `depth` wrappers below the given text.
pub(crate) fn look_through(
    script: &mut CommandLine,
    problem: &mut Option<ParseError>,
    depth: usize,
) {
    let mut queue: Vec<(usize, Command)> =
        script.commands.iter().rev().map(|command| (depth, command.clone())).collect();
    while let Some((depth, command)) = queue.pop() {
        match look(&command, depth) {
            Err(found) => note(problem, found),
            Ok(inner) => {
                for inner in inner {
                    add(script, problem, &mut queue, inner, (depth + 1, command.position));
                }
            }
        }
    }
}

fn note(problem: &mut Option<ParseError>, found: ParseError) {
    problem.get_or_insert(found);
}

fn add(
    script: &mut CommandLine,
    problem: &mut Option<ParseError>,
    queue: &mut Vec<(usize, Command)>,
    inner: Inner,
    (depth, position): (usize, usize),
) {
    match inner {
        Inner::Command(command) => {
            script.commands.push(command.clone());
            queue.push((depth, command));
        }
        Inner::Text(text) => {
            let nested = parse_nested(&text, depth).unwrap_or_else(|nested| {
                note(problem, ParseError::new(position, nested.reason));
                *nested.found
            });
            adopt(script, nested, position);
        }
    }
    if script.commands.len() > MAX_COMMANDS {
        queue.clear();
        let reason = Reason::TooManyCommands { limit: MAX_COMMANDS };
        note(problem, ParseError::new(position, reason));
    }
}

/// Takes over what a nested text holds, at the place of the command that runs it.
fn adopt(script: &mut CommandLine, nested: CommandLine, position: usize) {
    let wrapped = |command| Command { position, origin: CommandOrigin::Wrapped, ..command };
    script.commands.extend(nested.commands.into_iter().map(wrapped));
    script.backticks.extend(nested.backticks.iter().map(|_| position));
    script.newlines.extend(nested.newlines.iter().map(|_| position));
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

/// Returns the problem of a wrapper that runs what is not written out.
fn computed(command: &Command, word: Option<&Word>) -> ParseError {
    let wrapper = command.name().map(shortened).unwrap_or_default();
    let position = word.map_or(command.position, |word| word.position);
    ParseError::new(position, Reason::ComputedWrapped { wrapper })
}

/// Returns words that a wrapper runs, as a command of its own.
fn as_command(outer: &Command, words: &[Word]) -> Inner {
    Inner::Command(Command {
        words: words.to_vec(),
        position: outer.position,
        origin: CommandOrigin::Wrapped,
        ..Command::default()
    })
}
