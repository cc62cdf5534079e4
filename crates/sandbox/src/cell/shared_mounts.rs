//! Parts of a root directory that all cells have in common.
//!
//! Most of what a cell is made of is the same for every workspace: what commands see of `/etc` and `/dev`.
//! The process that cells are copied from makes these parts once, mounted nowhere, and each cell copies
//! them with one call. Kernels before 6.15 mount nothing in what is itself mounted nowhere; there, each
//! cell makes its own.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::directory_builder::{DirectoryBuilder, with_public_umask};
use super::root::{make, usage};
use super::{SetupError, SetupStep, StepContext};
use crate::mounts::{DetachedMount, MountAccess};
use crate::plan::{BindSource, CommandUser, FileAccess, Plan, RootEntry};

/// The directories that are such parts, and what can be done with what is directly in them.
const TOPS: [(&str, MountAccess); 2] = [("/etc", MountAccess::Read), ("/dev", MountAccess::Nodes)];

/// How long parts are good for. The files that are copied into them may be changed on the host.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// The parts that are at hand, if this kernel can have any.
#[derive(Debug, Default)]
pub struct SharedMounts {
    made: Option<SharedDirectories>,
    refused: bool,
}

impl SharedMounts {
    /// Sees to it that there are parts for a plan, as far as there can be.
    pub fn prepare(&mut self, plan: &Plan) {
        let is_good = |made: &SharedDirectories| made.since.elapsed() < GOOD_FOR && made.fits(plan);
        if self.refused || self.made.as_ref().is_some_and(is_good) {
            return;
        }
        self.made = None;
        if let CommandUser::Mapped { .. } = plan.run_as {
            // A cell that finds none fails for the same reason, and says so, or does without.
            let made = with_public_umask(|| SharedDirectories::make(plan));
            self.refused = made.is_err();
            self.made = made.ok();
        }
    }

    /// Returns the parts, if they are for this plan.
    pub(super) fn for_plan(&self, plan: &Plan) -> Option<&SharedDirectories> {
        self.made.as_ref().filter(|made| made.fits(plan))
    }
}

/// Parts that were made for the plan of some workspace.
#[derive(Debug)]
pub(super) struct SharedDirectories {
    pub(super) tops: Vec<SharedDirectory>,
    since: Instant,
}

/// A directory with what is in it.
#[derive(Debug)]
pub(super) struct SharedDirectory {
    pub(super) path: &'static Path,
    pub(super) tree: DetachedMount,
    nodes: HashMap<PathBuf, RootEntry>,
}

impl SharedDirectories {
    fn make(plan: &Plan) -> Result<Self, SetupError> {
        let tops =
            TOPS.iter().map(|(path, usage)| SharedDirectory::make(Path::new(path), *usage, plan));
        Ok(Self { tops: tops.collect::<Result<_, _>>()?, since: Instant::now() })
    }

    fn fits(&self, plan: &Plan) -> bool {
        self.tops.iter().all(|top| top.fits(plan))
    }
}

impl SharedDirectory {
    fn make(path: &'static Path, usage: MountAccess, plan: &Plan) -> Result<Self, SetupError> {
        let tree = DetachedMount::memory().during(SetupStep::Root)?;
        let mut directory_builder = DirectoryBuilder::below(
            path,
            tree.as_fd().try_clone_to_owned().during(SetupStep::Root)?,
        );
        let mut nodes = HashMap::new();
        for node in below(plan, path) {
            add(&tree, &mut directory_builder, path, node)?;
            nodes.insert(node.path().to_owned(), node.clone());
        }
        tree.limit_alone(usage).during_with(SetupStep::Root, path)?;
        Ok(Self { path, tree, nodes })
    }

    /// Tells whether a plan has the same things in this directory, but for what files say and for what
    /// each cell mounts.
    fn fits(&self, plan: &Plan) -> bool {
        let is_there = |node: &RootEntry| {
            let there = self.nodes.get(node.path());
            there == Some(node)
                || matches!((there, node), (Some(RootEntry::File { .. }), RootEntry::File { .. }))
        };
        below(plan, self.path).count() == self.nodes.len() && below(plan, self.path).all(is_there)
    }

    /// Tells whether a thing is complete as it is here.
    pub(super) fn has(&self, node: &RootEntry) -> bool {
        !is_of_cell(node) && self.nodes.get(node.path()) == Some(node)
    }
}

/// Returns what a plan has in a directory.
pub(super) fn below<'a>(plan: &'a Plan, top: &Path) -> impl Iterator<Item = &'a RootEntry> {
    plan.tree.iter().filter(move |node| node.path() != top && node.path().starts_with(top))
}

/// Tells whether every cell mounts its own where a thing is.
fn is_of_cell(node: &RootEntry) -> bool {
    match node {
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
    directory_builder: &mut DirectoryBuilder,
    top: &Path,
    node: &RootEntry,
) -> Result<(), SetupError> {
    match node {
        node if is_of_cell(node) => directory_builder.directory(node.path()),
        RootEntry::Bind { path, access: FileAccess::Device, .. }
            if make_device(directory_builder, path).is_ok() =>
        {
            Ok(())
        }
        RootEntry::Bind { path, access, .. } => {
            let piece = DetachedMount::of(path).during_with(SetupStep::Find, path)?;
            piece.limit(usage(*access)).during_with(SetupStep::Root, path)?;
            make(directory_builder, node, Some(&piece))?;
            let place = path.strip_prefix(top).unwrap_or(path);
            piece.attach_below(tree.as_fd(), place).during_with(SetupStep::Root, path)
        }
        node => make(directory_builder, node, None),
    }
}

/// Makes a device like that of the host, which takes no mount of its own.
fn make_device(directory_builder: &mut DirectoryBuilder, path: &Path) -> io::Result<()> {
    let status = rustix::fs::stat(path)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::CharacterDevice {
        return Err(rustix::io::Errno::INVAL.into());
    }
    directory_builder.device(path, status.st_mode, status.st_rdev)
}
