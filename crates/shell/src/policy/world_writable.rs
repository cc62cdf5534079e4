//! Rule `world_writable`: `chmod` with a mode that gives write access to all users.

use super::Finding;
use crate::command_line::{Command, Word};
use crate::judge::Context;
use crate::path::base_name;

pub(super) const RULE: &str = "world_writable";

const WRITABLE: &str = "it gives write access to every user; `u+w`, `755` and `644` pass";
const UNKNOWN: &str = "the mode is not written out; give it as a number or as letters";

pub(super) fn check(command: &Command, _: &Context<'_>) -> Option<Finding> {
    if base_name(command.name()?) != "chmod" {
        return None;
    }
    let mode = mode_of(command.arguments())?;
    let at = mode.position;
    match mode.literal() {
        None => Some(Finding::new(RULE, UNKNOWN).at(at)),
        Some(text) => gives_write_to_all(text).then(|| Finding::new(RULE, WRITABLE).at(at)),
    }
}

/// Returns the word that is the mode: the first that is not an option. `-w` and the like are modes, although
/// they look like options.
fn mode_of(arguments: &[Word]) -> Option<&Word> {
    let option = |word: &&Word| match word.literal() {
        Some(text) if text.starts_with("--") => true,
        Some(text) => {
            text.len() > 1
                && text.starts_with('-')
                && !text.contains(['r', 'w', 'x', 's', 't', 'X'])
        }
        None => false,
    };
    let copies = |word: &Word| {
        word.literal().is_some_and(|text| text.len() > 2 && "--reference".starts_with(text))
            || word.literal().is_some_and(|text| text.starts_with("--reference="))
    };
    if arguments.iter().any(copies) {
        return None;
    }
    arguments.iter().find(|word| !option(word))
}

fn gives_write_to_all(mode: &str) -> bool {
    let octal = mode.trim_start_matches(['=', '+']);
    if !octal.is_empty() && octal.bytes().all(|b| (b'0'..=b'7').contains(&b)) {
        return octal.bytes().next_back().is_some_and(|others| others & 0b010 != 0);
    }
    mode.split(',').any(clause_gives_write)
}

/// Returns whether a clause of a symbolic mode, such as `go+rw-x`, gives write access to others.
fn clause_gives_write(clause: &str) -> bool {
    let operator = |c: char| matches!(c, '+' | '-' | '=');
    let Some(at) = clause.find(operator) else { return false };
    let (who, mut actions) = clause.split_at(at);
    // Without letters before the operator the umask applies, and it may permit writing.
    let others = who.is_empty() || who.contains(['o', 'a']);
    while let Some(sign) = actions.chars().next() {
        let rest = actions.get(1..).unwrap_or_default();
        let end = rest.find(operator).unwrap_or(rest.len());
        let (letters, next) = rest.split_at(end);
        // `o=u` copies the owner's bits, which usually include write.
        let writes = letters.contains(['w', 'u', 'g']) || gives_octal(letters);
        if others && sign != '-' && writes {
            return true;
        }
        actions = next;
    }
    false
}

fn gives_octal(letters: &str) -> bool {
    let digit = letters.bytes().next_back();
    digit.is_some_and(|b| (b'0'..=b'7').contains(&b) && b & 0b010 != 0)
}
