//! The parts of root directories that all cells share: `/etc` and `/dev`.
//!
//! They took most of the system calls of a new cell and are the same for every workspace. The spawner
//! builds them once as detached mounts, and each cell copies both with one call each. Device entries are
//! created in the shared `/dev` instead of bind-mounted, which saves a mount per device.
//!
//! Kernels before 6.15 cannot attach a mount to a detached one. There, and if anything else fails, each
//! cell builds its own parts, and errors are reported by that cell.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::directory_builder::{DirectoryBuilder, with_public_umask};
use super::root::{make, system_mount};
use super::{SetupError, SetupStep, StepContext};
use crate::mounts::{DetachedMount, MountAccess};
use crate::plan::{BindSource, CommandUser, FileAccess, Plan, RootEntry};

/// The shared directories with the access to their own files, without the mounts in them.
const DIRECTORIES: [(&str, MountAccess); 2] =
    [("/etc", MountAccess::Read), ("/dev", MountAccess::Nodes)];

/// The age at which shared directories are rebuilt, since the host's files that were copied into them may
/// have changed.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The shared directories that are ready, if the kernel supports them.
#[derive(Debug, Default)]
pub struct SharedMounts {
    ready: Option<SharedDirectories>,
    unsupported: bool,
}

impl SharedMounts {
    /// Builds the shared directories for a plan, unless they are ready and recent. A failure is
    /// remembered and not tried again; cells then build their own.
    pub fn prepare(&mut self, plan: &Plan) {
        let is_usable =
            |ready: &SharedDirectories| ready.since.elapsed() < MAX_AGE && ready.fits(plan);
        if self.unsupported || self.ready.as_ref().is_some_and(is_usable) {
            return;
        }
        self.ready = None;
        if let CommandUser::Mapped { .. } = plan.run_as {
            // A cell without shared directories builds its own, and reports the error if it persists.
            let made = with_public_umask(|| SharedDirectories::make(plan));
            self.unsupported = made.is_err();
            self.ready = made.ok();
        }
    }

    /// Returns the shared directories if they have the entries of this plan.
    pub(super) fn for_plan(&self, plan: &Plan) -> Option<&SharedDirectories> {
        self.ready.as_ref().filter(|made| made.fits(plan))
    }
}

/// Shared directories, built for the plan of one workspace.
#[derive(Debug)]
pub(super) struct SharedDirectories {
    pub(super) directories: Vec<SharedDirectory>,
    since: Instant,
}

/// A detached mount of one directory with all its entries.
#[derive(Debug)]
pub(super) struct SharedDirectory {
    pub(super) path: &'static Path,
    pub(super) tree: DetachedMount,
    entries: HashMap<PathBuf, RootEntry>,
}

impl SharedDirectories {
    fn make(plan: &Plan) -> Result<Self, SetupError> {
        let directories = DIRECTORIES
            .iter()
            .map(|(path, usage)| SharedDirectory::make(Path::new(path), *usage, plan));
        Ok(Self { directories: directories.collect::<Result<_, _>>()?, since: Instant::now() })
    }

    fn fits(&self, plan: &Plan) -> bool {
        self.directories.iter().all(|directory| directory.fits(plan))
    }
}

impl SharedDirectory {
    fn make(path: &'static Path, usage: MountAccess, plan: &Plan) -> Result<Self, SetupError> {
        let tree = DetachedMount::tmpfs().during(SetupStep::Root)?;
        let mut builder = DirectoryBuilder::below(
            path,
            tree.as_fd().try_clone_to_owned().during(SetupStep::Root)?,
        );
        let mut entries = HashMap::new();
        for entry in below(plan, path) {
            add(&tree, &mut builder, path, entry)?;
            entries.insert(entry.path().to_owned(), entry.clone());
        }
        tree.limit_alone(usage).during_with(SetupStep::Root, path)?;
        Ok(Self { path, tree, entries })
    }

    /// Returns whether a plan has the same entries in this directory, except for the contents of
    /// generated files and for entries that each cell mounts itself.
    fn fits(&self, plan: &Plan) -> bool {
        let is_there = |entry: &RootEntry| {
            let there = self.entries.get(entry.path());
            there == Some(entry)
                || matches!((there, entry), (Some(RootEntry::File { .. }), RootEntry::File { .. }))
        };
        below(plan, self.path).count() == self.entries.len() && below(plan, self.path).all(is_there)
    }

    /// Returns whether an entry needs nothing more from the cell.
    pub(super) fn has(&self, entry: &RootEntry) -> bool {
        !is_mounted_by_cell(entry) && self.entries.get(entry.path()) == Some(entry)
    }
}

/// Returns the entries of a plan below a directory.
pub(super) fn below<'a>(plan: &'a Plan, top: &Path) -> impl Iterator<Item = &'a RootEntry> {
    plan.tree.iter().filter(move |entry| entry.path() != top && entry.path().starts_with(top))
}

/// Returns whether each cell mounts its own source on this entry.
fn is_mounted_by_cell(entry: &RootEntry) -> bool {
    match entry {
        RootEntry::Bind { source, .. } => !matches!(source, BindSource::System(_)),
        RootEntry::DevPts(_) | RootEntry::Proc(_) => true,
        RootEntry::Directory(_)
        | RootEntry::Link { .. }
        | RootEntry::File { .. }
        | RootEntry::Copy(_) => false,
    }
}

fn add(
    tree: &DetachedMount,
    builder: &mut DirectoryBuilder,
    top: &Path,
    entry: &RootEntry,
) -> Result<(), SetupError> {
    match entry {
        entry if is_mounted_by_cell(entry) => builder.directory(entry.path()),
        RootEntry::Bind { path, access: FileAccess::Device, .. }
            if create_device(builder, path).is_ok() =>
        {
            Ok(())
        }
        RootEntry::Bind { path, access, .. } => {
            let mount = system_mount(path, *access)?;
            make(builder, entry, Some(&mount))?;
            let relative = path.strip_prefix(top).unwrap_or(path);
            mount.attach_below(tree.as_fd(), relative).during_with(SetupStep::Root, path)
        }
        entry => make(builder, entry, None),
    }
}

/// Creates a device entry with the mode and number of the host's.
fn create_device(builder: &mut DirectoryBuilder, path: &Path) -> io::Result<()> {
    let status = rustix::fs::stat(path)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::CharacterDevice {
        return Err(rustix::io::Errno::INVAL.into());
    }
    builder.device(path, status.st_mode, status.st_rdev)
}
