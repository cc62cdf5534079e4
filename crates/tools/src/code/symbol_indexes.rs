//! The symbol indexes of a server: one for each workspace, built on first use and shared by all sessions.
//!
//! A question first brings the index up to date, for at most [`ANSWER_TIME`]. If files are still pending then, the
//! answer says so, and the rest is parsed in the background. An index that was built is kept on disk beside the
//! workspace, so that another process or a later server need not build it again.
//!
//! The workspace's directories are watched from the first question on, so that later ones look only at what has
//! changed. Language servers share the watch. It ends [`WATCH_TIME`] after the last question.
//!
//! Indexes together stay within [`MAX_BYTES`]: the ones that were asked longest ago are dropped from memory first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use carrel_audit::Interface;
use carrel_code::{IndexError, IndexView, Refreshed, SymbolIndex};
use carrel_domain::{Code, Failure, sync};
use carrel_search::{Cancel, TreeWatch};
use tracing::{debug, warn};

use crate::named_workspace::NamedWorkspace;
use crate::tool_context::{Progress, ToolContext};

/// The time that an answer waits for pending files.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The same on the command line, where the process ends with the answer and nothing goes on in the background.
const COMMAND_LINE_TIME: Duration = Duration::from_mins(10);

/// The time after which work in the background lets questions have their turn.
const SLICE: Duration = Duration::from_millis(250);

/// The interval of progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// The memory of all indexes of a server together.
const MAX_BYTES: usize = 1 << 30;

/// The time without a question after which a workspace is watched no longer.
const WATCH_TIME: Duration = Duration::from_mins(10);

/// Files that have to be parsed before an index is worth writing to disk.
const WORTH_KEEPING: usize = 32;

/// The largest index that is read back.
const MAX_STORED_BYTES: u64 = 512 << 20;

/// The symbol indexes of a server.
#[derive(Debug, Default)]
pub struct SymbolIndexes {
    /// By the paths of their workspaces.
    open: Mutex<BTreeMap<PathBuf, Arc<OpenIndex>>>,
    /// The time that an answer waits for pending files, after which nothing parses them; none for the usual time and
    /// the background.
    only_within: Option<Duration>,
}

#[derive(Debug, Default)]
struct OpenIndex {
    /// Read from disk on first use, without holding up questions about other workspaces.
    index: OnceLock<SymbolIndex>,
    watch: Arc<TreeWatch>,
    /// A task ends the watch.
    is_ending_watch: AtomicBool,
    asked: Mutex<Option<Instant>>,
    /// Pending files are parsed in the background.
    is_building: AtomicBool,
    /// Files that were parsed since the index was written to disk.
    unsaved: Mutex<usize>,
}

/// The way in which changed files are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watching {
    Yes,
    /// By a walk, as for a process that ends with its answer.
    No,
}

/// An index that was brought up to date for a question.
#[derive(Debug)]
pub(super) struct FreshIndex {
    open: Arc<OpenIndex>,
    pub(super) refreshed: Refreshed,
    /// The time that the pending files will take, about.
    pub(super) remaining: Duration,
}

impl FreshIndex {
    pub(super) fn view(&self) -> IndexView<'_> {
        self.open.index.get_or_init(SymbolIndex::new).view()
    }
}

impl SymbolIndexes {
    /// Returns indexes that are built only while an answer waits, for this long.
    pub fn built_within(answer_time: Duration) -> Self {
        Self { only_within: Some(answer_time), ..Self::default() }
    }

    fn of(&self, workspace: &NamedWorkspace) -> Arc<OpenIndex> {
        let mut all = sync::lock(&self.open);
        let open = all.entry(workspace.path().to_owned()).or_default();
        *sync::lock(&open.asked) = Some(Instant::now());
        Arc::clone(open)
    }

    /// Drops the indexes that were asked longest ago until the rest is within the memory of all. The last one stays.
    fn evict(&self, most: usize) {
        let mut all = sync::lock(&self.open);
        while all.len() > 1 && all.values().map(|open| open.memory()).sum::<usize>() > most {
            let oldest = all.iter().min_by_key(|(_, open)| *sync::lock(&open.asked));
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { return };
            all.remove(&oldest);
        }
    }

    /// Returns the watch of a workspace, which ends by itself.
    pub(crate) fn watch(&self, workspace: &NamedWorkspace) -> Arc<TreeWatch> {
        let open = self.of(workspace);
        end_watch_when_unused(&open);
        Arc::clone(&open.watch)
    }

    /// Calls `use_index` with the index as it is, for a question about one file.
    pub(super) fn with<T>(
        &self,
        workspace: &NamedWorkspace,
        use_index: impl FnOnce(&SymbolIndex) -> T,
    ) -> T {
        use_index(self.of(workspace).index(workspace))
    }
}

/// Brings the index of the call's workspace up to date on the calling thread, which may block.
pub(super) fn refresh(
    context: &ToolContext,
    workspace: &Arc<NamedWorkspace>,
    cancel: &Cancel,
) -> Result<FreshIndex, Failure> {
    let open = context.toolbox.symbols.of(workspace);
    let is_command_line = context.options.interface == Interface::Cli;
    let usual = if is_command_line { COMMAND_LINE_TIME } else { ANSWER_TIME };
    let time = context.toolbox.symbols.only_within.unwrap_or(usual);
    let progress = context.options.progress.as_deref();
    if !is_command_line {
        end_watch_when_unused(&open);
    }
    let watching = if is_command_line { Watching::No } else { Watching::Yes };
    let fresh = open.refresh_for(workspace, (time, watching), cancel, progress)?;
    context.toolbox.symbols.evict(MAX_BYTES);
    if context.toolbox.symbols.only_within.is_some() {
        return Ok(fresh);
    }
    if fresh.refreshed.pending > 0 {
        build_in_background(&fresh.open, workspace);
    } else if is_command_line {
        fresh.open.save(workspace);
    } else {
        save_in_background(&fresh.open, workspace);
    }
    Ok(fresh)
}

impl OpenIndex {
    fn index(&self, workspace: &NamedWorkspace) -> &SymbolIndex {
        self.index.get_or_init(|| stored(workspace).unwrap_or_default())
    }

    fn memory(&self) -> usize {
        self.index.get().map_or(0, SymbolIndex::memory)
    }

    /// Parses what is pending until nothing is, or the time is over.
    fn refresh_for(
        self: &Arc<Self>,
        workspace: &NamedWorkspace,
        (time, watching): (Duration, Watching),
        cancel: &Cancel,
        progress: Option<&dyn Progress>,
    ) -> Result<FreshIndex, Failure> {
        let begun = Instant::now();
        let mut parsed = 0;
        loop {
            let until = (Instant::now() + PROGRESS_EVERY).min(begun + time);
            let refreshed = self.refresh_until(workspace, watching, until, cancel)?;
            parsed += refreshed.parsed;
            let Refreshed { pending, .. } = refreshed;
            if pending > 0
                && let Some(progress) = progress
            {
                report(progress, parsed, parsed + pending);
            }
            if pending == 0 || begun.elapsed() >= time {
                let each = begun.elapsed() / u32::try_from(parsed.max(1)).unwrap_or(u32::MAX);
                let remaining = each * u32::try_from(pending).unwrap_or(u32::MAX);
                return Ok(FreshIndex { open: Arc::clone(self), refreshed, remaining });
            }
        }
    }

    fn refresh_until(
        &self,
        workspace: &NamedWorkspace,
        watching: Watching,
        until: Instant,
        cancel: &Cancel,
    ) -> Result<Refreshed, Failure> {
        let (index, files) = (self.index(workspace), workspace.files());
        let refreshed = match watching {
            Watching::Yes => index.refresh_watched(files, &self.watch, until, cancel),
            Watching::No => index.refresh(files, until, cancel),
        };
        let refreshed = refreshed.map_err(|IndexError::Walk(error)| Failure::from(error))?;
        if cancel.is_cancelled() {
            return Err(Failure::new(Code::Cancelled, "the call was cancelled"));
        }
        *sync::lock(&self.unsaved) += refreshed.parsed;
        Ok(refreshed)
    }

    /// Writes the index to disk if enough of it is new.
    fn save(&self, workspace: &NamedWorkspace) {
        let unsaved = std::mem::take(&mut *sync::lock(&self.unsaved));
        if unsaved < WORTH_KEEPING {
            *sync::lock(&self.unsaved) += unsaved;
            return;
        }
        if let Err(error) = workspace.handle().write_symbol_index(&self.index(workspace).to_bytes())
        {
            warn!(%error, "could not keep a symbol index; it is built again when it is needed");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of files, far below 2^52")]
fn report(progress: &dyn Progress, done: usize, total: usize) {
    progress.report(done as f64, Some(total as f64), "indexing symbols");
}

/// Returns the index of a workspace from disk, if there is one.
fn stored(workspace: &NamedWorkspace) -> Option<SymbolIndex> {
    let bytes = workspace.handle().read_symbol_index(MAX_STORED_BYTES).ok()??;
    let stored = SymbolIndex::of_bytes(&bytes);
    stored.inspect_err(|error| debug!(%error, "a stored symbol index is built again")).ok()
}

/// Parses pending files on a thread of its own until none are left. It ends with the workspace.
fn build_in_background(open: &Arc<OpenIndex>, workspace: &Arc<NamedWorkspace>) {
    if open.is_building.swap(true, Ordering::Relaxed) {
        return;
    }
    let (open, workspace) = (Arc::downgrade(open), Arc::downgrade(workspace));
    tokio::task::spawn_blocking(move || {
        while let (Some(open), Some(workspace)) = (open.upgrade(), workspace.upgrade()) {
            let until = Instant::now() + SLICE;
            let refreshed = open.refresh_until(&workspace, Watching::Yes, until, &Cancel::new());
            if !matches!(refreshed, Ok(Refreshed { pending: 1.., parsed: 1.., .. })) {
                open.save(&workspace);
                break;
            }
        }
        if let Some(open) = open.upgrade() {
            open.is_building.store(false, Ordering::Relaxed);
        }
    });
}

/// Ends the watch of a workspace some time after the last question. It needs a runtime, as all in the background.
fn end_watch_when_unused(open: &Arc<OpenIndex>) {
    if open.is_ending_watch.swap(true, Ordering::Relaxed) {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        open.is_ending_watch.store(false, Ordering::Relaxed);
        return;
    };
    let open = Arc::downgrade(open);
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(WATCH_TIME).await;
            let Some(open) = open.upgrade() else { return };
            if open.watch.end_if_unused_for(WATCH_TIME) {
                open.is_ending_watch.store(false, Ordering::Relaxed);
                return;
            }
        }
    });
}

fn save_in_background(open: &Arc<OpenIndex>, workspace: &Arc<NamedWorkspace>) {
    if *sync::lock(&open.unsaved) < WORTH_KEEPING {
        return;
    }
    let (open, workspace) = (Arc::clone(open), Arc::clone(workspace));
    tokio::task::spawn_blocking(move || open.save(&workspace));
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the workspaces are the test's own")]
mod tests {
    use super::*;
    use carrel_domain::WorkspaceAccess;
    use carrel_runner::WorkspaceHandle;
    use pretty_assertions::assert_eq;
    use std::path::Path;

    use crate::workspace_list::WorkspaceEntry;

    fn workspace(top: &Path, name: &str) -> NamedWorkspace {
        let path = top.join(name);
        std::fs::create_dir(&path).unwrap();
        let functions: String =
            (0..200).fold(String::new(), |text, n| text + &format!("fn {name}_{n}() {{}}\n"));
        std::fs::write(path.join("lib.rs"), functions).unwrap();
        let handle = WorkspaceHandle::for_directory(&path, &top.join("state")).unwrap();
        let access = WorkspaceAccess::ReadWrite;
        NamedWorkspace::new(WorkspaceEntry { name: name.to_owned(), path, access }, handle)
    }

    /// Brings the index of a workspace up to date, and returns the files that had to be parsed.
    fn ask(indexes: &SymbolIndexes, workspace: &NamedWorkspace) -> usize {
        let open = indexes.of(workspace);
        let until = Instant::now() + Duration::from_mins(1);
        let refreshed =
            open.refresh_until(workspace, Watching::Yes, until, &Cancel::new()).unwrap();
        assert_eq!((refreshed.files, refreshed.pending), (1, 0));
        refreshed.parsed
    }

    #[test]
    fn the_index_that_was_asked_longest_ago_is_dropped_first_and_built_again() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let all = ["one", "two", "six"].map(|name| workspace(&top, name));
        let indexes = SymbolIndexes::default();
        for workspace in &all {
            assert_eq!(ask(&indexes, workspace), 1);
        }
        // The first one is asked again, so that the second one is the oldest.
        ask(&indexes, &all[0]);
        let names = || sync::lock(&indexes.open).keys().cloned().collect::<Vec<_>>();
        let total: usize = sync::lock(&indexes.open).values().map(|open| open.memory()).sum();
        indexes.evict(total);
        assert_eq!(names().len(), 3);
        indexes.evict(total - 1);
        assert_eq!(names(), [top.join("one"), top.join("six")]);
        indexes.evict(0);
        assert_eq!(names(), [top.join("one")]);
        assert_eq!(ask(&indexes, &all[1]), 1);
    }
}
