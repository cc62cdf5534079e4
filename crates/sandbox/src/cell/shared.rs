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

use super::ground::{Ground, for_all_to_see};
use super::root::{make, usage};
use super::{During, Failure, Step};
use crate::mounts::{Detached, Use};
use crate::plan::{Identity, Node, Plan, Reach, Source};

/// The directories that are such parts, and what can be done with what is directly in them.
const TOPS: [(&str, Use); 2] = [("/etc", Use::Read), ("/dev", Use::Nodes)];

/// How long parts are good for. The files that are copied into them may be changed on the host.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// The parts that are at hand, if this kernel can have any.
#[derive(Debug, Default)]
pub struct Parts {
    made: Option<Shared>,
    refused: bool,
}

impl Parts {
    /// Sees to it that there are parts for a plan, as far as there can be.
    pub fn prepare(&mut self, plan: &Plan) {
        let is_good = |made: &Shared| made.since.elapsed() < GOOD_FOR && made.fits(plan);
        if self.refused || self.made.as_ref().is_some_and(is_good) {
            return;
        }
        self.made = None;
        if let Identity::Own { .. } = plan.identity {
            // A cell that finds none fails for the same reason, and says so, or does without.
            let made = for_all_to_see(|| Shared::make(plan));
            self.refused = made.is_err();
            self.made = made.ok();
        }
    }

    /// Returns the parts, if they are for this plan.
    pub(super) fn for_plan(&self, plan: &Plan) -> Option<&Shared> {
        self.made.as_ref().filter(|made| made.fits(plan))
    }
}

/// Parts that were made for the plan of some workspace.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tops: Vec<Top>,
    since: Instant,
}

/// A directory with what is in it.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) path: &'static Path,
    pub(super) tree: Detached,
    nodes: HashMap<PathBuf, Node>,
}

impl Shared {
    fn make(plan: &Plan) -> Result<Self, Failure> {
        let tops = TOPS.iter().map(|(path, usage)| Top::make(Path::new(path), *usage, plan));
        Ok(Self { tops: tops.collect::<Result<_, _>>()?, since: Instant::now() })
    }

    fn fits(&self, plan: &Plan) -> bool {
        self.tops.iter().all(|top| top.fits(plan))
    }
}

impl Top {
    fn make(path: &'static Path, usage: Use, plan: &Plan) -> Result<Self, Failure> {
        let tree = Detached::memory().during(Step::Root)?;
        let mut ground = Ground::below(path, tree.as_fd().try_clone_to_owned().during(Step::Root)?);
        let mut nodes = HashMap::new();
        for node in below(plan, path) {
            add(&tree, &mut ground, path, node)?;
            nodes.insert(node.path().to_owned(), node.clone());
        }
        tree.limit_alone(usage).during_with(Step::Root, path)?;
        Ok(Self { path, tree, nodes })
    }

    /// Tells whether a plan has the same things in this directory, but for what files say and for what
    /// each cell mounts.
    fn fits(&self, plan: &Plan) -> bool {
        let is_there = |node: &Node| {
            let there = self.nodes.get(node.path());
            there == Some(node)
                || matches!((there, node), (Some(Node::File { .. }), Node::File { .. }))
        };
        below(plan, self.path).count() == self.nodes.len() && below(plan, self.path).all(is_there)
    }

    /// Tells whether a thing is complete as it is here.
    pub(super) fn has(&self, node: &Node) -> bool {
        !is_of_cell(node) && self.nodes.get(node.path()) == Some(node)
    }
}

/// Returns what a plan has in a directory.
pub(super) fn below<'a>(plan: &'a Plan, top: &Path) -> impl Iterator<Item = &'a Node> {
    plan.tree.iter().filter(move |node| node.path() != top && node.path().starts_with(top))
}

/// Tells whether every cell mounts its own where a thing is.
fn is_of_cell(node: &Node) -> bool {
    match node {
        Node::Bind { source, .. } => !matches!(source, Source::System(_)),
        Node::Terminals(_) | Node::Processes(_) => true,
        Node::Directory(_) | Node::Link { .. } | Node::File { .. } | Node::Copy(_) => false,
    }
}

fn add(tree: &Detached, ground: &mut Ground, top: &Path, node: &Node) -> Result<(), Failure> {
    match node {
        node if is_of_cell(node) => ground.directory(node.path()),
        Node::Bind { path, reach: Reach::Device, .. } if make_device(ground, path).is_ok() => {
            Ok(())
        }
        Node::Bind { path, reach, .. } => {
            let piece = Detached::of(path).during_with(Step::Find, path)?;
            piece.limit(usage(*reach)).during_with(Step::Root, path)?;
            make(ground, node, Some(&piece))?;
            let place = path.strip_prefix(top).unwrap_or(path);
            piece.attach_below(tree.as_fd(), place).during_with(Step::Root, path)
        }
        node => make(ground, node, None),
    }
}

/// Makes a device like that of the host, which takes no mount of its own.
fn make_device(ground: &mut Ground, path: &Path) -> io::Result<()> {
    let status = rustix::fs::stat(path)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::CharacterDevice {
        return Err(rustix::io::Errno::INVAL.into());
    }
    ground.device(path, status.st_mode, status.st_rdev)
}
