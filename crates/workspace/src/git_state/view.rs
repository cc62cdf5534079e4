//! A git directory of the server's own that links to the contents of another, without its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Durability, FileKind, Root, WriteOptions};

use crate::workspaces::RootInner;

pub(crate) const VIEWS: &str = "views";

/// The entries that a view links to. `HEAD` is copied, because git does not read a linked one; everything
/// else, also of future versions of git, is left out.
const LINKED: [&str; 8] =
    ["objects", "refs", "packed-refs", "index", "logs", "info", "shallow", "reftable"];

const SPLIT_INDEX: &str = "sharedindex.";

const MAX_SPLIT_INDEX: usize = 16;

const MAX_HEAD_BYTES: u64 = 4096;

/// The storage format of objects and references: the only settings that a view copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StorageFormat {
    objects: Option<String>,
    references: Option<String>,
}

impl StorageFormat {
    /// Parses the output of `git config --list -z`.
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

pub(super) struct View {
    inner: Arc<RootInner>,
    name: PathBuf,
}

impl View {
    pub(super) fn make(
        inner: Arc<RootInner>,
        git_directory: &Root,
        format: &StorageFormat,
    ) -> Result<Self, carrel_fsroot::Error> {
        let name = Path::new(VIEWS).join(format!("{:032x}", fastrand::u128(..)));
        // Removed again if anything below fails.
        let view = Self { inner, name };
        let own = &view.inner.root.own;
        own.create_directories(&view.name, 0o700)?;
        for name in linked_names(git_directory)? {
            own.create_link(&git_directory.path().join(&name), &view.name.join(&name))?;
        }
        let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
        let head = git_directory.read(Path::new("HEAD"), MAX_HEAD_BYTES)?;
        own.write(&view.name.join("HEAD"), &head, options)?;
        own.write(&view.name.join("config"), format.config().as_bytes(), options)?;
        Ok(view)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.inner.root.own.path().join(&self.name)
    }
}

fn linked_names(git_directory: &Root) -> Result<Vec<String>, carrel_fsroot::Error> {
    let split = git_directory.list(Path::new("."))?.into_iter().filter_map(|entry| {
        let name = entry.name.into_string().ok()?;
        name.starts_with(SPLIT_INDEX).then_some(name)
    });
    let mut names: Vec<String> = LINKED.iter().map(ToString::to_string).collect();
    names.extend(split.take(MAX_SPLIT_INDEX));
    names.retain(|name| {
        let kind = git_directory.link_metadata(Path::new(name)).map(|metadata| metadata.kind);
        matches!(kind, Ok(FileKind::File | FileKind::Directory))
    });
    Ok(names)
}

impl Drop for View {
    fn drop(&mut self) {
        // A leftover has only links; clean-up removes it.
        let _ = self.inner.root.own.remove_tree(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_storage_format_is_taken_over() {
        let list = "core.hookspath\n/evil\0extensions.objectformat\nsha256\0filter.x.clean\nevil\0";
        let format = StorageFormat::parse(list).unwrap();
        assert_eq!(
            format.config(),
            "[core]\nrepositoryformatversion = 1\nbare = false\n[extensions]\nobjectformat = sha256\n"
        );
        assert!(StorageFormat::parse("extensions.refstorage\nevil\0").is_err());
        assert_eq!(StorageFormat::parse("").unwrap(), StorageFormat::default());
    }
}
