//! Copies of a base, for hosts whose kernels mount no overlay for an ordinary user.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use carrel_fsroot::{CopyMethod, Error, FileKind, Identity, Metadata, Root};

use crate::overlay::Attributes;
use crate::tree::{self, open};

/// The permission bits that are copied: all but set-user-id.
const MODE: u32 = 0o3777;

/// The rights that a directory has while entries are put into it.
const PRIVATE: u32 = 0o700;

/// The options of a copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions<'a> {
    /// The most entries that are copied. It bounds memory.
    pub entries: usize,
    /// Ends the copy when it is set.
    pub cancelled: &'a AtomicBool,
}

/// A complete copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The regular files, each inode counted once.
    pub files: u64,
    /// The directories.
    pub directories: u64,
    /// The symbolic links.
    pub links: u64,
    /// The bytes of the files, holes included.
    pub bytes: u64,
    /// The means by which contents were copied.
    pub method: CopyMethod,
    /// Sockets, FIFOs and devices, which are not copied.
    pub left_out: Vec<(PathBuf, FileKind)>,
}

/// Why a base could not be copied. The target has a part of it, and is removed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// An entry could not be copied.
    #[error("could not copy {}", path.display())]
    Entry {
        /// The entry.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Error,
    },
    /// There are too many entries.
    #[error("the workspace has more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// The copy was cancelled.
    #[error("the copy was cancelled")]
    Cancelled,
}

/// Copies everything below a base into an empty directory: contents with their holes, modes but for set-user-id, times,
/// owners where the process may set them, attributes of programs, links, and hard links among the files.
pub fn copy(base: &Root, target: &Root, options: CopyOptions<'_>) -> Result<Copied, CopyError> {
    let mut copying = Copying {
        base,
        target,
        options,
        entries: 0,
        pending: vec![PathBuf::new()],
        names: HashMap::new(),
        directories: Vec::new(),
        copied: Copied::default(),
    };
    while let Some(path) = copying.pending.pop() {
        copying.directory(&path)?;
    }
    copying.finish_directories()?;
    Ok(copying.copied)
}

struct Copying<'a> {
    base: &'a Root,
    target: &'a Root,
    options: CopyOptions<'a>,
    entries: usize,
    pending: Vec<PathBuf>,
    /// The first path of each file with several.
    names: HashMap<Identity, PathBuf>,
    /// In the order in which they were made: parents first.
    directories: Vec<(PathBuf, Metadata)>,
    copied: Copied,
}

fn at(path: &Path) -> impl FnOnce(Error) -> CopyError {
    let path = path.to_owned();
    |source| CopyError::Entry { path, source }
}

impl Copying<'_> {
    fn directory(&mut self, path: &Path) -> Result<(), CopyError> {
        let from = open(self.base, path).map_err(at(path))?;
        let to = open(self.target, path).map_err(at(path))?;
        let limit = self.options.entries;
        let left = limit - self.entries;
        let entries = from.list_at_most(Path::new("."), left).map_err(at(path))?;
        let entries = entries.ok_or(CopyError::TooManyEntries { limit })?;
        self.entries += entries.len();
        for entry in entries {
            if self.options.cancelled.load(Ordering::Relaxed) {
                return Err(CopyError::Cancelled);
            }
            let name = Path::new(&entry.name);
            let below = path.join(name);
            self.entry(&from, &to, name, &below)?;
        }
        Ok(())
    }

    fn entry(&mut self, from: &Root, to: &Root, name: &Path, path: &Path) -> Result<(), CopyError> {
        // It may have vanished since it was listed.
        let Some(found) = tree::metadata(from, name).map_err(at(path))? else { return Ok(()) };
        match found.kind {
            FileKind::Directory => {
                to.create_directory(name, PRIVATE).map_err(at(path))?;
                copy_attributes(from, to, name).map_err(at(path))?;
                self.copied.directories += 1;
                self.directories.push((path.to_owned(), found));
                self.pending.push(path.to_owned());
            }
            FileKind::Link => {
                let target = from.read_link(name).map_err(at(path))?;
                to.create_link(&target, name).map_err(at(path))?;
                copy_owner(to, name, &found).map_err(at(path))?;
                to.set_entry_modified(name, found.modified).map_err(at(path))?;
                self.copied.links += 1;
            }
            FileKind::File => self.file(from, to, name, path, &found)?,
            kind @ (FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Unknown) => {
                self.copied.left_out.push((path.to_owned(), kind));
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        from: &Root,
        to: &Root,
        name: &Path,
        path: &Path,
        found: &Metadata,
    ) -> Result<(), CopyError> {
        if found.links > 1 {
            if let Some(first) = self.names.get(&found.identity) {
                let directory = open(self.target, tree::parent(first)).map_err(at(first))?;
                return directory.hard_link_into(tree::name(first), to, name).map_err(at(path));
            }
            self.names.insert(found.identity, path.to_owned());
        }
        let source = from.open_entry_file(name).map_err(at(path))?;
        let file = to.create_entry_file(name, 0o600).map_err(at(path))?;
        let copied = self.copied.method.copy(&source, &file, self.options.cancelled);
        if !copied.map_err(|error| at(path)(Error::of_io(path, error)))? {
            return Err(CopyError::Cancelled);
        }
        let finish = || -> Result<(), Error> {
            copy_attributes(from, to, name)?;
            copy_owner(to, name, found)?;
            to.set_entry_mode(name, found.mode & MODE)?;
            to.set_entry_modified(name, found.modified)
        };
        finish().map_err(at(path))?;
        self.copied.files += 1;
        self.copied.bytes += found.size;
        Ok(())
    }

    /// Gives the directories their modes and times, the deepest first.
    fn finish_directories(&mut self) -> Result<(), CopyError> {
        for (path, found) in self.directories.iter().rev() {
            let name = tree::name(path);
            let finish = || -> Result<(), Error> {
                let parent = open(self.target, tree::parent(path))?;
                copy_owner(&parent, name, found)?;
                parent.set_entry_mode(name, found.mode & MODE)?;
                parent.set_entry_modified(name, found.modified)
            };
            finish().map_err(at(path))?;
        }
        Ok(())
    }
}

fn copy_attributes(from: &Root, to: &Root, name: &Path) -> Result<(), Error> {
    for attribute in Attributes::of_plain(from, name)?.plain {
        to.set_entry_attribute(name, &attribute)?;
    }
    Ok(())
}

/// Gives a new entry the owner of the original, if it does not have it and this process may.
fn copy_owner(to: &Root, name: &Path, found: &Metadata) -> Result<(), Error> {
    let made = to.link_metadata(name)?;
    if (made.uid, made.gid) == (found.uid, found.gid) {
        return Ok(());
    }
    match to.set_entry_owner(name, found.uid, found.gid) {
        Err(error) if error.problem() == carrel_fsroot::Problem::PermissionDenied => Ok(()),
        set => set,
    }
}
