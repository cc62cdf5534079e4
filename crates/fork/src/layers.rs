//! The layers of a fork: directories of the server that an overlay over the base is mounted with.
//!
//! ```text
//! NAME/           0700, of the server
//!   upper/        owner, group and mode of the base; what the fork changed
//!   work/         0700, owner and group of the base; the kernel's
//!   boot          the boot in which the layers were made; written last
//! ```
//!
//! Forks are mounted `volatile`: nothing is synced, and the kernel leaves a mark in `work` that refuses a second
//! mount, since after a crash the upper layer may have anything. In the same boot nothing is lost from memory, so
//! the mark can be removed. In another boot the layers are not to be trusted.

use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, Error, Root, Usage, UsageLimit, WriteOptions};

use crate::tree;

const UPPER: &str = "upper";
const WORK: &str = "work";
const BOOT: &str = "boot";

/// The directory that the kernel keeps in `work`, with temporary files and the mark of a volatile mount.
const KERNEL_WORK: &str = "work";

const PRIVATE: u32 = 0o700;

/// Bounds the text of a boot's identity, which has 37 bytes.
const MAX_BOOT_BYTES: u64 = 256;

/// Why the layers of a fork could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// A file operation failed.
    #[error("could not use the layers of the fork")]
    Files(#[from] Error),
    /// The layers would not be on the file system of the base, or on another mount of it, so nothing could be promoted.
    #[error("the layers of a fork must be on the mounted file system of its base")]
    OtherFileSystem,
    /// The layers were not made completely, or are damaged. They are removed.
    #[error("the layers of the fork are not complete")]
    Incomplete,
}

/// The state of layers that are to be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// They can be mounted.
    Ready,
    /// They were made before the last boot, and may have lost anything: they are to be discarded.
    OtherBoot,
}

/// The layers of a fork.
#[derive(Debug)]
pub struct Layers {
    directory: Root,
}

impl Layers {
    /// Makes the layers of a new fork under a free name in a directory of the server, on the file system of the base.
    pub fn create(parent: &Root, name: &Path, base: &Root) -> Result<Self, LayersError> {
        let metadata = base.own_metadata()?;
        if !tree::are_together(parent, base)? {
            return Err(LayersError::OtherFileSystem);
        }
        parent.create_directory(name, PRIVATE)?;
        let directory = parent.open_root_strict(name)?;
        for (layer, mode) in [(UPPER, metadata.mode), (WORK, PRIVATE)] {
            let layer = Path::new(layer);
            directory.create_directory(layer, PRIVATE)?;
            let made = directory.link_metadata(layer)?;
            if (made.uid, made.gid) != (metadata.uid, metadata.gid) {
                directory.set_entry_owner(layer, metadata.uid, metadata.gid)?;
            }
            directory.set_entry_mode(layer, mode)?;
        }
        let options = WriteOptions {
            durability: Durability::Buffered,
            new_mode: Some(0o600),
            ..WriteOptions::default()
        };
        directory.write(Path::new(BOOT), &this_boot()?, options)?;
        Ok(Self { directory })
    }

    /// Opens the layers of a fork.
    pub fn open(parent: &Root, name: &Path) -> Result<Self, LayersError> {
        let layers = Self { directory: complete(parent.open_root_strict(name))? };
        layers.boot()?;
        layers.upper()?;
        layers.work()?;
        Ok(layers)
    }

    /// Returns the directory that holds the layers.
    pub fn directory(&self) -> &Root {
        &self.directory
    }

    /// Opens the upper layer.
    pub fn upper(&self) -> Result<Root, LayersError> {
        self.layer(UPPER)
    }

    /// Opens the work directory.
    pub fn work(&self) -> Result<Root, LayersError> {
        self.layer(WORK)
    }

    fn layer(&self, name: &str) -> Result<Root, LayersError> {
        complete(self.directory.open_root_strict(Path::new(name)))
    }

    /// Returns the real paths of the upper layer and of the work directory, for mounting.
    pub fn paths(&self) -> (PathBuf, PathBuf) {
        let path = self.directory.path();
        (path.join(UPPER), path.join(WORK))
    }

    /// Returns whether layers can be mounted, also again. It changes nothing, so they may be mounted now.
    pub fn readiness(&self) -> Result<Readiness, LayersError> {
        Ok(if self.boot()? == this_boot()? { Readiness::Ready } else { Readiness::OtherBoot })
    }

    /// Makes layers that were mounted before, and are not mounted now, ready for another mount.
    pub fn prepare(&self) -> Result<Readiness, LayersError> {
        if self.boot()? != this_boot()? {
            return Ok(Readiness::OtherBoot);
        }
        // The mark is in it, and what the kernel did not clean up; the next mount makes it again. Its mode is 000,
        // which the removal changes.
        match self.work()?.remove_tree(Path::new(KERNEL_WORK)) {
            Err(error) if error.is_not_found() => {}
            removed => removed?,
        }
        Ok(Readiness::Ready)
    }

    fn boot(&self) -> Result<Vec<u8>, LayersError> {
        complete(self.directory.read_strict(Path::new(BOOT), MAX_BOOT_BYTES))
    }

    /// Returns the bytes and files that the fork takes on disk.
    pub fn usage(&self, limit: UsageLimit) -> Result<Usage, LayersError> {
        Ok(self.directory.usage(Path::new(UPPER), limit)?)
    }

    /// Removes the layers of a fork, complete or not, of any modes. Missing ones are fine.
    pub fn remove(parent: &Root, name: &Path) -> Result<(), LayersError> {
        match parent.remove_tree(name) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed?),
        }
    }
}

fn complete<T>(found: Result<T, Error>) -> Result<T, LayersError> {
    match found {
        Err(error) if error.is_not_found() => Err(LayersError::Incomplete),
        found => Ok(found?),
    }
}

/// Returns the kernel's identity of this boot.
fn this_boot() -> Result<Vec<u8>, Error> {
    Root::open(Path::new("/proc/sys/kernel/random"))?.read(Path::new("boot_id"), MAX_BOOT_BYTES)
}
