//! Wrappers that precede the command they run: `env`, `timeout`, `xargs` and the like.

use super::options::{Given, WrapperOptions, read};
use super::{Inner, Looked, as_command, computed};
use crate::command_line::{Assignment, Command, Word};

const NONE: WrapperOptions =
    WrapperOptions { plain: "", valued: "", attached: "", long: "", long_valued: "" };

/// The wrappers with their options and the number of operands before the command.
const WRAPPERS: [(&str, WrapperOptions, usize); 11] = [
    (
        "env",
        WrapperOptions {
            plain: "i0v",
            valued: "uC",
            long: "ignore-environment null debug",
            long_valued: "unset chdir",
            ..NONE
        },
        0,
    ),
    (
        "timeout",
        WrapperOptions {
            plain: "vfp",
            valued: "sk",
            long: "foreground preserve-status verbose",
            long_valued: "signal kill-after",
            ..NONE
        },
        1,
    ),
    // The old form `-5` is a plain option of digits.
    (
        "nice",
        WrapperOptions { plain: "0123456789", valued: "n", long_valued: "adjustment", ..NONE },
        0,
    ),
    ("nohup", NONE, 0),
    ("stdbuf", WrapperOptions { valued: "ioe", long_valued: "input output error", ..NONE }, 0),
    ("time", WrapperOptions { plain: "pvaq", valued: "fo", ..NONE }, 0),
    ("command", WrapperOptions { plain: "pvV", ..NONE }, 0),
    ("builtin", NONE, 0),
    ("exec", WrapperOptions { plain: "cl", valued: "a", ..NONE }, 0),
    ("setsid", WrapperOptions { plain: "cfw", long: "ctty fork wait", ..NONE }, 0),
    ("coproc", NONE, 0),
];

pub(super) fn wrapped(name: &str, command: &Command) -> Looked {
    let Some((_, options, leading)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) else {
        return Ok(Vec::new());
    };
    let (given, rest) = read(options, command)?;
    let looks_up = |(option, ..): &(&str, _, _)| matches!(*option, "v" | "V");
    if name == "command" && given.iter().any(looks_up) {
        return Ok(Vec::new());
    }
    let (assignments, rest) = if name == "env" { assigned(rest) } else { (Vec::new(), rest) };
    let skipped = rest.get(..*leading).unwrap_or(rest);
    if let Some(word) = skipped.iter().find(|word| word.splits()) {
        return Err(computed(command, Some(word)));
    }
    let Some(words) =
        rest.get(*leading..).filter(|words| !words.is_empty() || !assignments.is_empty())
    else {
        return Ok(Vec::new());
    };
    let Inner::Command(inner) = as_command(command, words) else { return Ok(Vec::new()) };
    Ok(vec![Inner::Command(Command { assignments, ..inner })])
}

/// Splits off the words `NAME=value` that `env` turns into variables.
fn assigned(words: &[Word]) -> (Vec<Assignment>, &[Word]) {
    let name = |word: &Word| word.known_start()?.split_once('=').map(|(name, _)| name.to_owned());
    let assignments: Vec<_> = words
        .iter()
        .map_while(|word| Some(Assignment { name: name(word)?, position: word.position }))
        .collect();
    let rest = words.get(assignments.len()..).unwrap_or_default();
    (assignments, rest)
}

const XARGS: WrapperOptions = WrapperOptions {
    plain: "0rtpxo",
    valued: "dEInPsaL",
    attached: "eil",
    long: "null no-run-if-empty verbose interactive exit open-tty",
    long_valued: "arg-file delimiter max-args max-procs max-lines max-chars replace eof",
};

/// Returns the command that `xargs` runs, with computed words for the arguments from its input.
pub(super) fn fed(command: &Command) -> Looked {
    let (given, rest) = read(&XARGS, command)?;
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let mut words = rest.to_vec();
    match given.iter().rfind(|(name, ..)| matches!(*name, "I" | "i" | "replace")) {
        None => words.push(Word::input("", true, "…", command.position)),
        Some(option) => {
            let mark = mark_of(option).ok_or_else(|| computed(command, option.1))?;
            words = words.iter().map(|word| filled(word, mark)).collect();
        }
    }
    Ok(vec![as_command(command, &words)])
}

/// Returns the replacement string of `-I`, unless it is computed.
fn mark_of<'a>((_, next, attached): &Given<'a>) -> Option<&'a str> {
    match (next, *attached) {
        (Some(word), _) => word.literal(),
        (None, "") => Some("{}"),
        (None, mark) => Some(mark),
    }
}

fn filled(word: &Word, mark: &str) -> Word {
    match word.literal().and_then(|text| text.split_once(mark)) {
        Some((prefix, _)) if !mark.is_empty() => {
            Word::input(prefix, false, &word.source, word.position)
        }
        _ => word.clone(),
    }
}
