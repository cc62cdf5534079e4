//! `find … -exec`.

use super::{Inner, Looked, as_command, computed};
use crate::script::{Command, Meaning, Word};

/// Bounds the words that `{}` is written out to; beyond it the value counts as unknown.
const MAX_STARTS: usize = 8;

/// Returns the commands that `find` runs for what it finds.
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

/// A lone `+` ends a list as well; one that does not only makes a command look shorter than it is
/// when no `{}` stands before it, and then `find` itself refuses.
fn ends(word: &Word) -> bool {
    matches!(word.literal(), Some(";" | "+"))
}

/// Returns the places where the search starts.
pub(crate) fn starts(arguments: &[Word]) -> Vec<Word> {
    let option = |word: &&Word| matches!(word.literal(), Some("-H" | "-L" | "-P"));
    let expression = |word: &Word| {
        word.literal().is_some_and(|text| text.starts_with('-') || matches!(text, "(" | "!" | ")"))
    };
    let places = arguments.iter().skip_while(option).take_while(|word| !expression(word));
    let places: Vec<Word> = places.cloned().collect();
    if places.is_empty() { vec![Word::new_literal(".", 0)] } else { places }
}

fn run(command: &Command, words: &[Word], starts: &[Word]) -> Inner {
    let write_out = |word: &Word| match word.literal() {
        Some(text) if text.contains("{}") => found(text, word, starts),
        _ => vec![word.clone()],
    };
    let words: Vec<Word> = words.iter().flat_map(write_out).collect();
    as_command(command, &words)
}

/// Returns one word for each place from which the found name may come.
fn found(text: &str, word: &Word, starts: &[Word]) -> Vec<Word> {
    let (before, _) = text.split_once("{}").unwrap_or((text, ""));
    let input = |prefix: &str, splits| Word::input(prefix, splits, &word.source, word.position);
    if !before.is_empty() {
        return vec![input(before, false)];
    }
    if starts.len() > MAX_STARTS {
        return vec![input("", true)];
    }
    let from = |start: &Word| match &start.meaning {
        Meaning::Literal(text) => input(text, false),
        Meaning::Computed { prefix, splits, .. } => input(prefix, *splits),
    };
    starts.iter().map(from).collect()
}
