//! The files of a scope with their metadata, by the ignore rules of every search.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_fsroot::{Directory, Entry, FileKind, Metadata};

use crate::budget::{Budget, Cancel, Halt};
use crate::error::Error;
use crate::ignore_rules::Rules;
use crate::node::{Node, PathFilter};
use crate::read_failure::ReadFailures;
use crate::scope::{Scope, ScopeTarget};
use crate::tree_watch::WatchedTree;
use crate::visitor::{Batch, Collector, Visitor};
use crate::walk::walk;

/// The most files of a list; more belong to generated trees that an ignore file should name.
pub const MAX_SOURCE_FILES: usize = 500_000;

/// The time after which a list is given up.
const LIST_TIME: Duration = Duration::from_mins(1);

/// The files of a scope, in path order.
#[derive(Clone, Debug, Default)]
pub struct FileList {
    /// The files, relative to the workspace's root.
    pub files: Vec<SourceFile>,
    /// Directories and files that could not be read.
    pub unreadable: ReadFailures,
    /// There are more files, or the time was over.
    pub is_cut: bool,
}

impl FileList {
    /// Adds the files of a later part of the tree.
    pub(crate) fn append(&mut self, later: Self) {
        self.files.extend(later.files);
        self.unreadable.merge(later.unreadable);
        self.is_cut |= later.is_cut;
    }
}

/// A regular file of a list.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are a path and its metadata")]
pub struct SourceFile {
    pub path: PathBuf,
    pub metadata: Metadata,
}

/// Lists the regular files that a search of the scope would visit and `accepts` takes. A scope that is a
/// single file is listed without asking `accepts`.
pub fn source_files(
    scope: &Scope<'_>,
    accepts: impl Fn(&Path) -> bool + Sync,
    cancel: &Cancel,
) -> Result<FileList, Error> {
    let path = scope.resolved_path();
    match scope.open()? {
        ScopeTarget::Directory(directory) => {
            files_below(scope, (path, directory), accepts, None, cancel)
        }
        ScopeTarget::File(_, metadata) => {
            Ok(FileList { files: vec![SourceFile { path, metadata }], ..FileList::default() })
        }
    }
}

/// Lists the files below an open directory, which is watched if there is a watch.
pub(crate) fn files_below(
    scope: &Scope<'_>,
    (path, directory): (PathBuf, Directory),
    accepts: impl Fn(&Path) -> bool + Sync,
    watch: Option<&WatchedTree>,
    cancel: &Cancel,
) -> Result<FileList, Error> {
    let budget = &Budget::new(cancel, LIST_TIME);
    let mut list = FileList::default();
    let visitor = ListVisitor { accepts, watch, budget };
    let first = Node::root(scope, path, directory, &visitor, &mut list.unreadable)?;
    let (mut list, end) = walk(scope, first, &visitor, list, budget);
    list.is_cut = end.is_some();
    match end {
        Some(Halt::Cancelled) => Err(Error::Cancelled),
        Some(Halt::TimeUp | Halt::Enough) | None => Ok(list),
    }
}

struct ListVisitor<'a, F> {
    accepts: F,
    watch: Option<&'a WatchedTree>,
    budget: &'a Budget,
}

impl<F: Fn(&Path) -> bool + Sync> PathFilter for ListVisitor<'_, F> {
    fn accepts(&self, path: &Path, kind: FileKind) -> bool {
        match kind {
            FileKind::Directory => true,
            FileKind::File => (self.accepts)(path),
            FileKind::Link
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device
            | FileKind::Unknown => false,
        }
    }

    fn opened(&self, path: &Path, directory: &Directory) {
        if let Some(watch) = self.watch {
            watch.add(path, directory);
        }
    }

    fn found_repository(&self, path: &Path, directory: &Directory) {
        if let Some(watch) = self.watch {
            watch.add_repository(path, directory);
        }
    }

    fn read_rules(&self, path: &Path, rules: Option<&Arc<Rules>>) {
        if let Some(watch) = self.watch {
            watch.set_rules(path, rules);
        }
    }
}

#[derive(Default)]
struct ListBatch {
    files: Vec<SourceFile>,
    unreadable: ReadFailures,
}

impl Batch for ListBatch {}

impl<F: Fn(&Path) -> bool + Sync> Visitor for ListVisitor<'_, F> {
    type Scratch = ();
    type Batch = ListBatch;

    fn scratch(&self) {}

    fn visit(
        &self,
        (): &mut (),
        node: &Node,
        entries: &[Entry],
    ) -> Result<(ListBatch, usize), Halt> {
        self.budget.check()?;
        let mut found = ListBatch::default();
        for entry in entries {
            let path = node.path_of(entry);
            match node.with_directory(|directory| directory.link_metadata(Path::new(&entry.name))) {
                Ok(metadata) => found.files.push(SourceFile { path, metadata }),
                // It vanished since its directory was listed.
                Err(error) if error.is_not_found() => {}
                Err(error) => found.unreadable.add_error(path, &error),
            }
        }
        Ok((found, entries.len()))
    }
}

impl<F: Fn(&Path) -> bool + Sync> Collector<ListVisitor<'_, F>> for FileList {
    fn take(&mut self, found: ListBatch, (): &mut ()) -> Result<ControlFlow<()>, Halt> {
        self.unreadable.merge(found.unreadable);
        let room = MAX_SOURCE_FILES - self.files.len();
        let is_full = found.files.len() > room;
        self.files.extend(found.files.into_iter().take(room));
        Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn unreadable(&mut self) -> &mut ReadFailures {
        &mut self.unreadable
    }
}
