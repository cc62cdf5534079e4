//! The options between a wrapper and the command that it runs.

use super::computed;
use crate::command_line::{Command, Word};
use crate::parse_error::{ParseError, Reason, shortened};

pub(super) struct WrapperOptions {
    /// Letters that take no value.
    pub(super) plain: &'static str,
    /// Letters that take a value, attached or as the next word.
    pub(super) valued: &'static str,
    /// Letters that take a value only when it is attached.
    pub(super) attached: &'static str,
    /// Long names that take no value, separated by spaces.
    pub(super) long: &'static str,
    /// Long names that take a value.
    pub(super) long_valued: &'static str,
}

/// An option as given: its letter or long name, its value as the next word, and its attached value.
pub(super) type Given<'a> = (&'a str, Option<&'a Word>, &'a str);

/// Parses the options of a command; returns them and the words after them.
pub(super) fn read<'a>(
    options: &WrapperOptions,
    command: &'a Command,
) -> Result<(Vec<Given<'a>>, &'a [Word]), ParseError> {
    let mut given = Vec::new();
    let mut rest = command.arguments();
    while let Some((word, after)) = rest.split_first() {
        let Some(start) = word.known_start() else { return Ok((given, rest)) };
        if !start.starts_with('-') {
            return Ok((given, rest));
        }
        let Some(text) = word.literal() else { return Err(computed(command, Some(word))) };
        rest = after;
        match text {
            "--" => return Ok((given, rest)),
            "-" => {}
            _ => {
                let (name, value, needs_next) =
                    one(options, text).ok_or_else(|| unknown(command, word))?;
                let next = if needs_next { Some(next_value(command, rest)?) } else { None };
                rest = rest.get(usize::from(needs_next)..).unwrap_or_default();
                given.push((name, next, value));
            }
        }
    }
    Ok((given, rest))
}

fn next_value<'a>(command: &Command, rest: &'a [Word]) -> Result<&'a Word, ParseError> {
    let next = rest.first();
    next.filter(|next| !next.splits()).ok_or_else(|| computed(command, next))
}

fn unknown(command: &Command, word: &Word) -> ParseError {
    let wrapper = command.name().map(shortened).unwrap_or_default();
    let reason = Reason::WrapperOption { wrapper, option: shortened(&word.source) };
    ParseError::new(word.position, reason)
}

/// Parses one word of options. Returns the name of its last option, the attached value, and whether the value
/// is the next word.
fn one<'a>(options: &WrapperOptions, text: &'a str) -> Option<(&'a str, &'a str, bool)> {
    if let Some(long) = text.strip_prefix("--") {
        let listed = |names: &str, name| names.split_whitespace().any(|listed| listed == name);
        return match long.split_once('=') {
            Some((name, value)) => {
                listed(options.long_valued, name).then_some((name, value, false))
            }
            None if listed(options.long, long) => Some((long, "", false)),
            None => listed(options.long_valued, long).then_some((long, "", true)),
        };
    }
    let letters = text.strip_prefix('-')?;
    for (at, letter) in letters.char_indices() {
        let (name, rest) = letters.get(at..)?.split_at_checked(letter.len_utf8())?;
        if options.attached.contains(letter) {
            return Some((name, rest, false));
        }
        if options.valued.contains(letter) {
            return Some((name, rest, rest.is_empty()));
        }
        if !options.plain.contains(letter) {
            return None;
        }
        if rest.is_empty() {
            return Some((name, "", false));
        }
    }
    None
}
