//! A git directory of our own that shows the contents of another, without its configuration.

use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, FileKind, Root, WriteOptions};

use super::Ask;

/// Where views are made, below the server's own directory.
pub(crate) const VIEWS: &str = "views";

/// Entries of a git directory that configure something, or belong to other work
/// trees. `HEAD` is copied: git does not read one that is a link.
const LEFT_OUT: [&str; 8] =
    ["config", "config.worktree", "hooks", "modules", "worktrees", "commondir", "gitdir", "HEAD"];

/// Bounds what is read of a `HEAD`.
const MAX_HEAD_BYTES: u64 = 4096;

/// How a repository stores objects and references: the only settings that are taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    objects: Option<String>,
    references: Option<String>,
}

impl Format {
    /// Asks git to read the two settings from the file alone. Includes are not followed.
    pub(super) async fn read(ask: &Ask<'_>, git_directory: &Root) -> Result<Self, String> {
        let config = git_directory.path().join("config");
        let file = config.to_str().ok_or("its path is not text")?;
        let list = ask.git(&["config", "--file", file, "--list", "-z"]).await?;
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
pub(super) struct View<'a> {
    own: &'a Root,
    name: PathBuf,
    path: PathBuf,
}

impl<'a> View<'a> {
    pub(super) fn make(
        own: &'a Root,
        git_directory: &Root,
        format: &Format,
    ) -> Result<Self, String> {
        let name = Path::new(VIEWS).join(format!("{:032x}", fastrand::u128(..)));
        let view = Self { own, path: own.path().join(&name), name };
        view.fill(git_directory, format).map_err(|error| error.to_string())?;
        Ok(view)
    }

    fn fill(&self, git_directory: &Root, format: &Format) -> Result<(), carrel_fsroot::Error> {
        self.own.create_directories(&self.name, 0o700)?;
        for entry in git_directory.list(Path::new("."))? {
            let plain = matches!(entry.kind, FileKind::File | FileKind::Directory);
            if plain && !LEFT_OUT.iter().any(|name| entry.name == *name) {
                let target = git_directory.path().join(&entry.name);
                self.own.create_link(&target, &self.name.join(&entry.name))?;
            }
        }
        let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
        let head = git_directory.read(Path::new("HEAD"), MAX_HEAD_BYTES)?;
        self.own.write(&self.name.join("HEAD"), &head, options)?;
        self.own.write(&self.name.join("config"), format.config().as_bytes(), options)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        // A leftover holds nothing but links; gc removes it.
        let _ = self.own.remove_tree(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_storage_format_is_taken_over() {
        let format = Format { objects: Some("sha256".into()), references: None };
        assert_eq!(
            format.config(),
            "[core]\nrepositoryformatversion = 1\nbare = false\n[extensions]\nobjectformat = sha256\n"
        );
    }
}
