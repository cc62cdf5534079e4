//! Makefile targets, as scripts of the projects in the same directory.

use crate::paths;
use crate::profile::{Profile, args};
use crate::project_reader::ProjectReader;

/// Names that make looks for, in its order.
pub(crate) const NAMES: &str = "GNUmakefile makefile Makefile";

const MAX_TARGETS: usize = 200;

/// Adds the targets to the projects of a directory; a script of the same name takes precedence.
pub(crate) fn add_targets(reader: &ProjectReader<'_>, directory: &str, profiles: &mut [Profile]) {
    let Some(file) = reader.first(directory, NAMES) else { return };
    let Some(text) = reader.text(&file) else { return };
    for target in targets(&text) {
        for profile in profiles.iter_mut() {
            if profile.scripts.iter().all(|known| known.name != target) {
                profile.add_script(&target, "", &file, args(&["make", &target]));
            }
        }
    }
}

/// Returns the names of targets, in file order.
pub(crate) fn targets(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((names, rest)) = line.split_once(':') else { continue };
        // `a := b` and `a ::= b` are assignments; a recipe starts with a tab.
        if line.starts_with(['\t', ' ', '#', '.']) || rest.trim_start_matches(':').starts_with('=')
        {
            continue;
        }
        for name in names.split_whitespace() {
            if is_plain(name) && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found.truncate(MAX_TARGETS);
    found
}

/// Returns false for patterns, variables and file names.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    paths::extension(name).is_empty() && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_targets_are_listed() {
        let text = "CC := gcc\nX ::= y\n.PHONY: all test\nall: build\nbuild lint: main.o\n\tcc -o x: y\n%.o: %.c\n$(OUT): z\nmain.o: main.c\ntest:\n";
        assert_eq!(targets(text), ["all", "build", "lint", "test"]);
    }
}
