//! Selection of files by globs and by file types, beyond what ignore rules leave out.

use std::path::Path;

use carrel_fsroot::FileKind;
use ignore::overrides::Override;
use ignore::types::{Types, TypesBuilder};

use crate::error::Error;
use crate::glob_pattern::{MAX_GLOBS, compile_filter};
use crate::node::PathFilter;
use crate::request::GrepRequest;
use crate::suggestion::similar_names;

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
}
