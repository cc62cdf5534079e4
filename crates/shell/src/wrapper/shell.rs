//! Shell text in arguments and input: `sh -c`, `eval`, `trap`, and scripts on standard input.

use super::{Inner, Looked, computed};
use crate::command_line::{Cause, Command, Meaning, Operator, Word};

/// Returns the script of a shell, if it is part of the text.
///
/// A script in a file passes, and the sandbox decides about it. A script that another command writes into a
/// pipe is an error.
pub(super) fn script_of(command: &Command) -> Looked {
    let mut words = command.arguments().iter();
    let mut inline = false;
    let mut informs = false;
    let mut operand = None;
    while let Some(word) = words.next() {
        let Some(text) = word.known_start().filter(|text| text.starts_with(['-', '+'])) else {
            operand = Some(word);
            break;
        };
        if word.literal().is_none() {
            return Err(computed(command, Some(word)));
        }
        match text {
            "--" | "-" => {
                operand = words.next();
                break;
            }
            "--rcfile" | "--init-file" => drop(words.next()),
            "--version" | "--help" => informs = true,
            _ if text.starts_with("--") => {}
            _ => {
                inline |= text.starts_with('-') && text.contains('c');
                if text.ends_with(['o', 'O']) {
                    words.next();
                }
            }
        }
    }
    match operand {
        Some(word) if inline => literal_text(command, word),
        Some(word) => script_file(command, word),
        None if informs => Ok(Vec::new()),
        None if inline => Err(computed(command, None)),
        None => from_input(command),
    }
}

fn literal_text(command: &Command, word: &Word) -> Looked {
    let text = word.literal().ok_or_else(|| computed(command, Some(word)))?;
    Ok(vec![Inner::Text(text.to_owned())])
}

fn script_file(command: &Command, word: &Word) -> Looked {
    match word.meaning {
        Meaning::Computed { splits: true, .. }
        | Meaning::Computed {
            cause: Cause::ProcessSubstitution | Cause::Brace | Cause::Input,
            ..
        } => Err(computed(command, Some(word))),
        Meaning::Literal(ref text) if is_standard_input(text) => from_input(command),
        Meaning::Literal(_) | Meaning::Computed { .. } => Ok(Vec::new()),
    }
}

fn is_standard_input(text: &str) -> bool {
    matches!(text, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

fn from_input(command: &Command) -> Looked {
    let given = command.redirections.iter().rfind(|redirection| {
        matches!(
            redirection.operator,
            Operator::Read | Operator::HereDocument | Operator::HereString
        )
    });
    match given.and_then(|given| Some((given.operator, given.target.as_ref()?))) {
        Some((Operator::HereDocument | Operator::HereString, word)) => literal_text(command, word),
        Some((_, word)) => script_file(command, word),
        None => Err(computed(command, None)),
    }
}

pub(super) fn evaluated(command: &Command) -> Looked {
    let text = |word| Word::literal(word).ok_or_else(|| computed(command, Some(word)));
    let texts: Vec<&str> = operands(command).iter().map(text).collect::<Result<_, _>>()?;
    Ok(vec![Inner::Text(texts.join(" "))])
}

fn operands(command: &Command) -> &[Word] {
    match command.arguments() {
        [first, rest @ ..] if first.literal() == Some("--") => rest,
        words => words,
    }
}

pub(super) fn trapped(command: &Command) -> Looked {
    match operands(command) {
        // A lone word resets a signal, and so does `-`; the options only print.
        [] => Ok(Vec::new()),
        [word, ..] if matches!(word.literal(), Some("-" | "-l" | "-p" | "-lp")) => Ok(Vec::new()),
        [word] if word.literal().is_some() => Ok(Vec::new()),
        [word, ..] => literal_text(command, word),
    }
}

/// Accepts `source` with a file. A file that is computed as a substitution would hide commands.
pub(super) fn sourced(command: &Command) -> Looked {
    command.arguments().first().map_or(Ok(Vec::new()), |word| script_file(command, word))
}

/// Accepts `mapfile` without a callback (`-C`), which would be a command in an argument.
pub(super) fn callback(command: &Command) -> Looked {
    let sets = |word: &&Word| {
        word.known_start().is_none_or(|text| text.starts_with('-') && text.contains('C'))
    };
    match command.arguments().iter().find(sets) {
        Some(word) => Err(computed(command, Some(word))),
        None => Ok(Vec::new()),
    }
}
