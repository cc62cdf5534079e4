//! Directory listings, several levels deep and in pages.
//!
//! A listing is depth-first on one thread: parents come before their contents, and a page ends
//! after `limit` entries, so most of the tree is never read. The offset of the next page counts
//! entries, which are read again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::budget::{Budget, Halt};
use crate::node::{ExpandedDirectory, Node, PathFilter};
use crate::render::shown;
use crate::{
    Cancel, DEFAULT_TIME, Error, ReadFailures, Scope, Sensitive, Truncation, TruncationReason,
};
use carrel_fsroot::{Entry, FileKind, Metadata, Root};

/// Bounds the depth of a listing; greater depths are reduced to it.
pub const MAX_LIST_DEPTH: usize = 64;

/// Entries returned by a request that sets no limit.
pub const DEFAULT_LIST_LIMIT: usize = 1000;

/// A request for a directory listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// Number of levels; 1 is the directory alone, and 0 counts as 1.
    pub depth: usize,
    /// Number of entries to skip.
    pub offset: u64,
    /// Maximum number of entries.
    pub limit: usize,
    /// Time limit; the report then contains the entries read so far.
    pub time: Duration,
    /// The metadata to return for each entry.
    pub detail: Detail,
}

/// The metadata that is returned for each entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Name, kind and link target, which need no system call except for links.
    #[default]
    Kinds,
    /// Also size and modification time, which need a system call for each entry.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// Path relative to the workspace's root.
    pub path: PathBuf,
    /// Kind of the entry itself; a link is not followed.
    pub kind: FileKind,
    /// Size and time, with [`Detail::Sizes`].
    pub metadata: Option<EntryMetadata>,
    /// Target, if the entry is a link.
    pub target: Option<LinkTarget>,
}

/// Size in bytes and modification time of an entry; those of a link are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines both fields")]
pub struct EntryMetadata {
    pub size: u64,
    pub modified: SystemTime,
}

/// The target of a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTarget {
    /// The path as the link contains it.
    pub path: PathBuf,
    /// Kind of the target; `None` if it does not exist or is outside of the workspace.
    pub kind: Option<FileKind>,
}

/// The entries of a directory, parents before their contents, in path order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListReport {
    /// The entries of this page.
    pub entries: Vec<ListEntry>,
    /// The reason for the end of the page; `None` if it is the last one.
    pub truncation: Option<Truncation>,
    /// Directories and entries that could not be read.
    pub unreadable: ReadFailures,
}

impl ListReport {
    /// Formats the entries as text, one on each line: directories end in `/`, links show their
    /// target.
    pub fn text(&self) -> String {
        self.entries.iter().map(ListEntry::text).collect()
    }
}

impl ListEntry {
    fn text(&self) -> String {
        let path = shown(&self.path);
        match (&self.target, self.kind) {
            (Some(target), _) => {
                let note = if target.kind.is_some() { "" } else { " (no target in the workspace)" };
                format!("{path} -> {}{note}\n", shown(&target.path))
            }
            (None, FileKind::Directory) => format!("{path}/\n"),
            (None, _) => format!("{path}\n"),
        }
    }
}

/// Lists a directory in path order, on the calling thread. A scope that is a file is an error.
pub fn list(
    scope: &Scope<'_>,
    request: &ListRequest,
    cancel: &Cancel,
) -> Result<ListReport, Error> {
    let budget = Budget::new(cancel, request.time);
    let directory = scope.open_directory()?;
    let mut lister = Lister { scope, request, seen: 0, report: ListReport::default() };
    let unreadable = &mut lister.report.unreadable;
    let first = Node::root(scope, scope.resolved_path(), directory, &AllPaths, unreadable)?;
    match lister.list(first, &budget) {
        Err(Halt::Cancelled) => return Err(Error::Cancelled),
        Err(Halt::TimeUp | Halt::Enough) => lister.truncate(TruncationReason::Time),
        Ok(()) => {}
    }
    Ok(lister.report)
}

struct AllPaths;

impl PathFilter for AllPaths {
    fn accepts(&self, _: &Path, _: FileKind) -> bool {
        true
    }
}

struct Lister<'a> {
    scope: &'a Scope<'a>,
    request: &'a ListRequest,
    seen: u64,
    report: ListReport,
}

impl Lister<'_> {
    fn list(&mut self, first: ExpandedDirectory, budget: &Budget) -> Result<(), Halt> {
        let depth = self.request.depth.clamp(1, MAX_LIST_DEPTH);
        let level = |listed: ExpandedDirectory| (listed.node, listed.entries.into_iter());
        let mut levels = vec![level(first)];
        while let Some((node, entries)) = levels.last_mut() {
            let Some(entry) = entries.next() else {
                levels.pop();
                continue;
            };
            budget.check()?;
            let node = Arc::clone(node);
            if !self.add(&node, &entry) {
                self.truncate(TruncationReason::Limit);
                return Ok(());
            }
            if entry.kind == FileKind::Directory && node.depth() + 1 < depth {
                let unreadable = &mut self.report.unreadable;
                let below = node.enter(&entry.name, self.scope, &AllPaths, unreadable);
                levels.extend(below.map(level));
            }
        }
        Ok(())
    }

    /// Adds an entry to the page; returns false if the page is full.
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
            Err(error) => self.report.unreadable.add_error(node.path_of(entry), &error),
        }
        true
    }

    fn truncate(&mut self, reason: TruncationReason) {
        self.report.truncation = Some(Truncation { reason, next_offset: self.seen });
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
    let (kind, metadata) = match detail {
        Detail::Kinds => (entry.kind, None),
        Detail::Sizes => {
            let Metadata { kind, size, modified, .. } =
                node.with_directory(|directory| directory.link_metadata(name))?;
            (kind, Some(EntryMetadata { size, modified }))
        }
    };
    let target = match kind {
        FileKind::Link => {
            let points_to = node.with_directory(|directory| directory.read_link(name))?;
            Some(target(scope, &path, points_to))
        }
        FileKind::File
        | FileKind::Directory
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::Device
        | FileKind::Unknown => None,
    };
    Ok(ListEntry { path, kind, metadata, target })
}

/// Returns the target of a link, resolved beneath the root: one outside of it has no kind.
fn target(scope: &Scope<'_>, link: &Path, target: PathBuf) -> LinkTarget {
    let metadata = match scope.sensitive {
        Sensitive::Shown => Root::metadata(scope.root, link),
        Sensitive::Hidden => scope.root.browse().metadata(link),
    };
    LinkTarget { path: target, kind: metadata.ok().map(|metadata| metadata.kind) }
}
