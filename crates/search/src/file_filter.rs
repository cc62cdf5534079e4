//! Selection of files by globs and by file types, beyond what ignore rules leave out. An unknown
//! type gets suggestions by edit distance.

use std::path::Path;

use carrel_domain::suggest;
use carrel_fsroot::FileKind;
use ignore::overrides::Override;
use ignore::types::{Types, TypesBuilder};

use crate::glob_pattern::compile_filter;
use crate::node::PathFilter;
use crate::{Error, GrepRequest, MAX_GLOBS};

/// Bounds the suggestions for an unknown file type.
const MAX_SUGGESTIONS: usize = 5;

/// Maximum number of edits between a name and a suggestion.
const MAX_DISTANCE: usize = 2;

/// Longer names are not compared, so that a hostile one costs nothing.
const MAX_NAME_BYTES: usize = 64;

/// The globs and file types of a request, compiled.
#[derive(Debug)]
pub(crate) struct FileFilter {
    globs: Override,
    types: Types,
}

impl FileFilter {
    pub(crate) fn new(request: &GrepRequest, directory: &Path) -> Result<Self, Error> {
        let globs = compile_filter(&request.globs, directory)?;
        Ok(Self { globs, types: select(&request.types)? })
    }
}

impl PathFilter for FileFilter {
    fn accepts(&self, path: &Path, kind: FileKind) -> bool {
        match kind {
            // A positive glob is about files, so only a negated one excludes a directory.
            FileKind::Directory => !self.globs.matched(path, true).is_ignore(),
            FileKind::File => {
                !self.globs.matched(path, false).is_ignore()
                    && !self.types.matched(path, false).is_ignore()
            }
            FileKind::Link
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device
            | FileKind::Unknown => false,
        }
    }
}

fn select(names: &[String]) -> Result<Types, Error> {
    if names.is_empty() {
        return Ok(Types::empty());
    }
    if names.len() > MAX_GLOBS {
        return Err(Error::TooMany { what: "file types", limit: MAX_GLOBS });
    }
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let known = builder.definitions();
    for name in names {
        if !known.iter().any(|definition| definition.name() == name) {
            let similar = similar_names(name, known.iter().map(ignore::types::FileTypeDef::name));
            return Err(Error::UnknownType { name: name.clone(), similar });
        }
        builder.select(name);
    }
    builder.build().map_err(|error| Error::Glob {
        glob: names.join(" "),
        position: 1,
        reason: error.to_string(),
    })
}

/// Returns the words within [`MAX_DISTANCE`] of `word`, and prefixes and extensions of it, the
/// nearest first.
pub(crate) fn similar_names<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Vec<String> {
    if word.is_empty() || word.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let mut found: Vec<(usize, &str)> = words
        .filter_map(|other| {
            let distance = suggest::distance(&word, other)?;
            let begins = other.starts_with(&word) || word.starts_with(other);
            (distance <= MAX_DISTANCE.min(word.len() - 1) || begins).then_some((distance, other))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(MAX_SUGGESTIONS).map(|(_, other)| other.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_gets_suggestions() {
        let error = select(&["rsut".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("unknown file type `rsut`") && error.contains("rust"), "{error}");
        let error = select(&["all".to_owned()]).unwrap_err();
        assert!(matches!(error, Error::UnknownType { .. }));
    }

    #[test]
    fn types_select_files_by_name() {
        let types = select(&["rust".to_owned(), "py".to_owned()]).unwrap();
        for (path, ignored) in [("a/b.rs", false), ("a.py", false), ("a.js", true)] {
            assert_eq!(types.matched(path, false).is_ignore(), ignored, "{path}");
        }
    }

    #[test]
    fn the_nearest_name_comes_first() {
        let words = ["rust", "ruby", "python", "py", "js", "json", "typescript"];
        assert_eq!(similar_names("rsut", words.into_iter()), ["rust"]);
        assert_eq!(similar_names("pyton", words.into_iter()), ["python", "py"]);
        assert_eq!(similar_names("Rusty", words.into_iter()), ["rust", "ruby"]);
        assert_eq!(similar_names("type", words.into_iter()), ["typescript"]);
        assert_eq!(similar_names("", words.into_iter()), Vec::<String>::new());
        assert_eq!(similar_names("zzzz", words.into_iter()), Vec::<String>::new());
    }
}
