//! Which of the visible files a search for text opens.

use std::path::Path;

use carrel_fsroot::FileKind;
use ignore::overrides::Override;
use ignore::types::{Types, TypesBuilder};

use crate::error::Error;
use crate::glob_pattern::{MAX_GLOBS, compile_filter};
use crate::near::near;
use crate::node::Wanted;
use crate::request::GrepRequest;

/// Which of the visible files a search for text opens.
#[derive(Debug)]
pub(crate) struct Filter {
    globs: Override,
    types: Types,
}

impl Filter {
    pub(crate) fn new(request: &GrepRequest, place: &Path) -> Result<Self, Error> {
        let globs = compile_filter(&request.globs, place)?;
        Ok(Self { globs, types: select(&request.types)? })
    }
}

impl Wanted for Filter {
    fn wants(&self, path: &Path, kind: FileKind) -> bool {
        match kind {
            // Only a glob that leaves a directory out can keep the walk from entering it.
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
            let near = near(name, known.iter().map(ignore::types::FileTypeDef::name));
            return Err(Error::UnknownType { name: name.clone(), near });
        }
        builder.select(name);
    }
    builder.build().map_err(|error| Error::Glob {
        glob: names.join(" "),
        place: 1,
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_is_told_what_is_near() {
        let error = select(&["rsut".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("unknown file type `rsut`") && error.contains("rust"), "{error}");
        let error = select(&["all".to_owned()]).unwrap_err();
        assert!(matches!(error, Error::UnknownType { .. }));
    }

    #[test]
    fn types_choose_files() {
        let types = select(&["rust".to_owned(), "py".to_owned()]).unwrap();
        for (path, ignored) in [("a/b.rs", false), ("a.py", false), ("a.js", true)] {
            assert_eq!(types.matched(path, false).is_ignore(), ignored, "{path}");
        }
    }
}
