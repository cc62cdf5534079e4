//! A git directory of our own that shows the contents of another, without its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Durability, FileKind, Root, WriteOptions};

use crate::workspaces::Inner;

/// Where views are made, below the server's own directory.
pub(crate) const VIEWS: &str = "views";

/// What a view shows of a git directory. `HEAD` is copied, because git does not read
/// one that is a link; everything else, known or yet to come, is left out.
const SHOWN: [&str; 8] =
    ["objects", "refs", "packed-refs", "index", "logs", "info", "shallow", "reftable"];

/// How the names of the parts of a split index begin.
const SPLIT_INDEX: &str = "sharedindex.";

/// How many parts of a split index are shown.
const MAX_SPLIT_INDEX: usize = 16;

/// Bounds what is read of a `HEAD`.
const MAX_HEAD_BYTES: u64 = 4096;

/// How a repository stores objects and references: the only settings that are taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    objects: Option<String>,
    references: Option<String>,
}

impl Format {
    /// Reads the two settings from what `git config --list -z` prints.
    pub(super) fn parse(list: &str) -> Result<Self, String> {
        let setting = |name: &str, known: &[&str]| {
            let prefix = format!("extensions.{name}\n");
            let value = list.split('\0').rev().find_map(|entry| entry.strip_prefix(&prefix));
            match value {
                Some(value) if !known.contains(&value) => Err(format!("unknown {name}")),
                value => Ok(value.map(str::to_owned)),
            }
        };
        Ok(Self {
            objects: setting("objectformat", &["sha1", "sha256"])?,
            references: setting("refstorage", &["files", "reftable"])?,
        })
    }

    fn config(&self) -> String {
        let core = "[core]\nrepositoryformatversion = 1\nbare = false\n".to_owned();
        let extensions = [("objectformat", &self.objects), ("refstorage", &self.references)];
        let lines = extensions.into_iter().filter_map(|(name, value)| {
            Some(format!("[extensions]\n{name} = {}\n", value.as_deref()?))
        });
        [core].into_iter().chain(lines).collect()
    }
}

/// A view that exists until it is dropped.
pub(super) struct View {
    inner: Arc<Inner>,
    name: PathBuf,
}

impl View {
    /// Makes a view of a git directory.
    pub(super) fn make(
        inner: Arc<Inner>,
        git_directory: &Root,
        format: &Format,
    ) -> Result<Self, carrel_fsroot::Error> {
        let name = Path::new(VIEWS).join(format!("{:032x}", fastrand::u128(..)));
        let view = Self { inner, name };
        view.fill(git_directory, format)?;
        Ok(view)
    }

    fn fill(&self, git_directory: &Root, format: &Format) -> Result<(), carrel_fsroot::Error> {
        let own = &self.inner.root.own;
        own.create_directories(&self.name, 0o700)?;
        for name in shown_names(git_directory)? {
            own.create_link(&git_directory.path().join(&name), &self.name.join(&name))?;
        }
        let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
        let head = git_directory.read(Path::new("HEAD"), MAX_HEAD_BYTES)?;
        own.write(&self.name.join("HEAD"), &head, options)?;
        own.write(&self.name.join("config"), format.config().as_bytes(), options)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.inner.root.own.path().join(&self.name)
    }
}

fn shown_names(git_directory: &Root) -> Result<Vec<String>, carrel_fsroot::Error> {
    let split = git_directory.list(Path::new("."))?.into_iter().filter_map(|entry| {
        let name = entry.name.into_string().ok()?;
        name.starts_with(SPLIT_INDEX).then_some(name)
    });
    let mut names: Vec<String> = SHOWN.iter().map(ToString::to_string).collect();
    names.extend(split.take(MAX_SPLIT_INDEX));
    names.retain(|name| {
        let kind = git_directory.link_metadata(Path::new(name)).map(|metadata| metadata.kind);
        matches!(kind, Ok(FileKind::File | FileKind::Directory))
    });
    Ok(names)
}

impl Drop for View {
    fn drop(&mut self) {
        // A leftover holds nothing but links; gc removes it.
        let _ = self.inner.root.own.remove_tree(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_storage_format_is_taken_over() {
        let list = "core.hookspath\n/evil\0extensions.objectformat\nsha256\0filter.x.clean\nevil\0";
        let format = Format::parse(list).unwrap();
        assert_eq!(
            format.config(),
            "[core]\nrepositoryformatversion = 1\nbare = false\n[extensions]\nobjectformat = sha256\n"
        );
        assert!(Format::parse("extensions.refstorage\nevil\0").is_err());
        assert_eq!(Format::parse("").unwrap(), Format::default());
    }
}
