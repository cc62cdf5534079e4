//! Listing a directory, some levels deep.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{Entry, FileKind, Root};
use serde::Serialize;

use crate::cancel::{Budget, Cancel, Halt};
use crate::error::Error;
use crate::node::{Expanded, Node, Wanted, vanished};
use crate::render::shown;
use crate::report::{Truncation, TruncationReason};
use crate::request::DEFAULT_TIME;
use crate::scope::{Scope, Sensitive};
use crate::unreadable::{ReadFailure, ReadFailures};

/// The deepest listing; a deeper one is cut down to it.
pub const MAX_LIST_DEPTH: usize = 64;

/// How many entries are returned unless the caller says otherwise.
pub const DEFAULT_LIST_LIMIT: usize = 1000;

/// How deep to list, and how many entries to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// How many levels to list; 1 lists the directory alone, 0 counts as 1.
    pub depth: usize,
    /// How many entries to leave out.
    pub offset: u64,
    /// How many entries to return.
    pub limit: usize,
    /// How long the listing may go on.
    pub time: Duration,
    /// How much is said about each entry.
    pub detail: Detail,
}

/// How much is said about an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What the directory itself says: its name and kind, and where it points.
    #[default]
    Kinds,
    /// Its size and time too, for which each entry is looked at.
    Sizes,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self {
            depth: 1,
            offset: 0,
            limit: DEFAULT_LIST_LIMIT,
            time: DEFAULT_TIME,
            detail: Detail::default(),
        }
    }
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListEntry {
    /// Where it is, relative to the workspace's root.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// What it is; a link is a link, wherever it points.
    #[serde(serialize_with = "crate::json::kind")]
    pub kind: FileKind,
    /// What was asked for with [`Detail::Sizes`].
    #[serde(flatten)]
    pub measured: Option<EntryMetadata>,
    /// Where it points, if it is a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<LinkTarget>,
}

/// What is known about an entry that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EntryMetadata {
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed.
    #[serde(serialize_with = "crate::json::time")]
    pub modified: SystemTime,
}

/// Where a link points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkTarget {
    /// The path that the link holds.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// What is there; absent when nothing is, or when it leads out of the workspace.
    #[serde(serialize_with = "crate::json::optional_kind")]
    pub kind: Option<FileKind>,
}

/// The entries of a directory, parents before what they hold, in the order of paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListReport {
    /// The entries of this page.
    pub entries: Vec<ListEntry>,
    /// Where the page was cut; absent when it holds everything from the offset on.
    pub truncation: Option<Truncation>,
    /// What could not be read.
    pub unreadable: ReadFailures,
}

impl ListReport {
    /// Returns the entries as text, one on each line: directories end in `/`, links show where
    /// they point.
    pub fn text(&self) -> String {
        self.entries.iter().map(ListEntry::text).collect()
    }
}

impl ListEntry {
    fn text(&self) -> String {
        let path = shown(&self.path);
        match (&self.target, self.kind) {
            (Some(target), _) => {
                let note = if target.kind.is_some() { "" } else { " (leads nowhere in here)" };
                format!("{path} -> {}{note}\n", shown(&target.path))
            }
            (None, FileKind::Directory) => format!("{path}/\n"),
            (None, _) => format!("{path}\n"),
        }
    }
}

/// Lists a directory in the order of paths.
pub fn list(
    scope: &Scope<'_>,
    request: &ListRequest,
    cancel: &Cancel,
) -> Result<ListReport, Error> {
    let budget = Budget::new(cancel, request.time);
    let directory = scope.open_directory()?;
    let mut lister = Lister { scope, request, seen: 0, report: ListReport::empty() };
    let mut unreadable = Vec::new();
    let first = Node::first(scope, scope.place(), directory, &Everything, &mut unreadable)?;
    lister.note(unreadable);
    match lister.list(first, &budget) {
        Err(Halt::Cancelled) => return Err(Error::Cancelled),
        Err(Halt::TimeUp | Halt::Enough) => lister.cut(TruncationReason::Time),
        Ok(()) => {}
    }
    Ok(lister.report)
}

struct Everything;

impl Wanted for Everything {
    fn wants(&self, _: &Path, _: FileKind) -> bool {
        true
    }
}

struct Lister<'a> {
    scope: &'a Scope<'a>,
    request: &'a ListRequest,
    seen: u64,
    report: ListReport,
}

/// What is left of a directory.
struct Level {
    node: Arc<Node>,
    entries: std::vec::IntoIter<Entry>,
}

impl From<Expanded> for Level {
    fn from(expanded: Expanded) -> Self {
        Self { node: expanded.node, entries: expanded.entries.into_iter() }
    }
}

impl Lister<'_> {
    fn list(&mut self, first: Expanded, budget: &Budget) -> Result<(), Halt> {
        let depth = self.request.depth.clamp(1, MAX_LIST_DEPTH);
        let mut levels = vec![Level::from(first)];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                levels.pop();
                continue;
            };
            budget.check()?;
            let node = Arc::clone(&level.node);
            if !self.add(&node, &entry) {
                self.cut(TruncationReason::Limit);
                return Ok(());
            }
            if entry.kind == FileKind::Directory && node.depth() + 1 < depth {
                let mut unreadable = Vec::new();
                let below = node.enter(&entry.name, self.scope, &Everything, &mut unreadable);
                levels.extend(below.map(Level::from));
                self.note(unreadable);
            }
        }
        Ok(())
    }

    /// Takes an entry; `false` when the page is full.
    fn add(&mut self, node: &Node, entry: &Entry) -> bool {
        if self.seen < self.request.offset {
            self.seen += 1;
            return true;
        }
        if self.report.entries.len() >= self.request.limit {
            return false;
        }
        self.seen += 1;
        match describe(self.scope, node, entry, self.request.detail) {
            Ok(listed) => self.report.entries.push(listed),
            Err(error) if vanished(error.problem()) => {}
            Err(error) => self.note(vec![ReadFailure::of(node.path_of(entry), &error)]),
        }
        true
    }

    fn note(&mut self, unreadable: Vec<ReadFailure>) {
        self.report.unreadable.extend(unreadable);
    }

    fn cut(&mut self, reason: TruncationReason) {
        self.report.truncation = Some(Truncation { reason, next_offset: self.seen });
    }
}

impl ListReport {
    fn empty() -> Self {
        Self { entries: Vec::new(), truncation: None, unreadable: ReadFailures::default() }
    }
}

fn describe(
    scope: &Scope<'_>,
    node: &Node,
    entry: &Entry,
    detail: Detail,
) -> Result<ListEntry, carrel_fsroot::Error> {
    let name = Path::new(&entry.name);
    let path = node.path_of(entry);
    let (kind, measured) = match detail {
        Detail::Kinds => (entry.kind, None),
        Detail::Sizes => {
            let metadata = node.using(|directory| directory.link_metadata(name))?;
            let size = metadata.size;
            let modified = metadata.modified;
            (metadata.kind, Some(EntryMetadata { size, modified }))
        }
    };
    let target = match kind {
        FileKind::Link => {
            let points_to = node.using(|directory| directory.read_link(name))?;
            Some(target(scope, &path, points_to))
        }
        FileKind::File
        | FileKind::Directory
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::Device
        | FileKind::Unknown => None,
    };
    Ok(ListEntry { path, kind, measured, target })
}

/// Looks where a link leads; the way is resolved beneath the root, so an outward one leads nowhere.
fn target(scope: &Scope<'_>, link: &Path, target: PathBuf) -> LinkTarget {
    let metadata = match scope.sensitive {
        Sensitive::Shown => Root::metadata(scope.root, link),
        Sensitive::Hidden => scope.root.browse().metadata(link),
    };
    LinkTarget { path: target, kind: metadata.ok().map(|metadata| metadata.kind) }
}
