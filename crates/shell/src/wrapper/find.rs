//! The commands of `find … -exec` and its variants.

use super::{Inner, Looked, as_command, computed};
use crate::command_line::{Command, Word};

/// The most words that `{}` is expanded to; with more start directories its value counts as unknown.
const MAX_STARTS: usize = 8;

pub(super) fn executed(command: &Command) -> Looked {
    let mut inner = Vec::new();
    let mut rest = command.arguments();
    let starts = starts(rest);
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let Some("-exec" | "-execdir" | "-ok" | "-okdir") = word.literal() else { continue };
        let Some(end) = after.iter().position(ends) else {
            return Err(computed(command, Some(word)));
        };
        let (words, beyond) = after.split_at(end);
        inner.push(run(command, words, &starts));
        rest = beyond;
    }
    Ok(inner)
}

/// Returns whether a word ends the command of `-exec`. A `+` ends it only after `{}`; without one the command
/// looks shorter than it is, but then `find` itself fails.
fn ends(word: &Word) -> bool {
    matches!(word.literal(), Some(";" | "+"))
}

pub(crate) fn starts(arguments: &[Word]) -> Vec<Word> {
    let option = |word: &&Word| matches!(word.literal(), Some("-H" | "-L" | "-P"));
    let expression = |word: &Word| {
        word.literal().is_some_and(|text| text.starts_with('-') || matches!(text, "(" | "!" | ")"))
    };
    let starts = arguments.iter().skip_while(option).take_while(|word| !expression(word));
    let starts: Vec<Word> = starts.cloned().collect();
    if starts.is_empty() { vec![Word::new_literal(".", 0)] } else { starts }
}

fn run(command: &Command, words: &[Word], starts: &[Word]) -> Inner {
    let write_out = |word: &Word| match word.literal() {
        Some(text) if text.contains("{}") => found(text, word, starts),
        _ => vec![word.clone()],
    };
    let words: Vec<Word> = words.iter().flat_map(write_out).collect();
    as_command(command, &words)
}

/// Returns one word for each start directory, with which a found path begins.
fn found(text: &str, word: &Word, starts: &[Word]) -> Vec<Word> {
    let (before, _) = text.split_once("{}").unwrap_or((text, ""));
    let input = |prefix: &str, splits| Word::input(prefix, splits, &word.source, word.position);
    if !before.is_empty() {
        return vec![input(before, false)];
    }
    if starts.len() > MAX_STARTS {
        return vec![input("", true)];
    }
    starts.iter().map(|start| input(start.prefix(), start.splits())).collect()
}
