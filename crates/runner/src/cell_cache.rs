//! Which cells are kept, and for how long.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use carrel_domain::{Network, WorkspaceAccess, sync};
use carrel_sandbox::GitDirectory;
use tokio::sync::OnceCell;

use crate::request::Grants;
use crate::sandbox_cell::Room;

/// How many cells are kept for later commands.
const MAX_CELLS: usize = 256;

/// How long a cell is kept that no command runs in, and whose commands left no temporary files.
const KEPT_FOR: Duration = Duration::from_mins(1);

/// What makes one cell different from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) workspace: PathBuf,
    pub(crate) access: WorkspaceAccess,
    pub(crate) network: Network,
    pub(crate) repository: GitDirectory,
    pub(crate) grants: Grants,
}

/// The cells that are there or being made. Each is made once, however many commands want it at the same
/// time.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    slots: HashMap<Key, Arc<Slot>>,
    /// Whether somebody lets go of those that are not used.
    watched: bool,
}

/// The place of a cell.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) room: OnceCell<Arc<Room>>,
    /// When it was last asked for.
    used: Mutex<Instant>,
}

impl Slot {
    fn new() -> Self {
        Self { room: OnceCell::new(), used: Mutex::new(Instant::now()) }
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        sync::lock(&self.used)
    }

    /// Tells whether there is a cell that no command runs in.
    fn is_idle(&self) -> bool {
        self.room.get().is_some_and(|room| Arc::strong_count(room) == 1)
    }

    /// Tells whether nobody would miss the cell: it was not used for a while, and there is nothing in it that
    /// a later command could look for.
    fn is_unused(&self) -> bool {
        let idle = self.room.get().filter(|_| self.is_idle());
        idle.is_some_and(|room| self.used().elapsed() > KEPT_FOR && !room.has_files())
    }

    fn is_gone(&self) -> bool {
        self.room.get().is_some_and(|room| room.is_gone())
    }
}

impl Rooms {
    /// Returns the place for a cell. One whose cell is gone is replaced.
    pub(crate) fn slot(&self, key: &Key) -> Arc<Slot> {
        let mut kept = sync::lock(&self.0);
        if let Some(slot) = kept.slots.get(key).filter(|slot| !slot.is_gone()) {
            *slot.used() = Instant::now();
            return Arc::clone(slot);
        }
        if !std::mem::replace(&mut kept.watched, true) {
            tokio::spawn(let_go_of_unused(Arc::downgrade(&self.0)));
        }
        if kept.slots.len() >= MAX_CELLS {
            let idle = kept.slots.iter().filter(|(_, slot)| slot.is_idle());
            let longest = idle.min_by_key(|(_, slot)| *slot.used()).map(|(key, _)| key.clone());
            let longest = longest.and_then(|key| kept.slots.remove(&key));
            // Its temporary files are removed with it.
            longest.map(|slot| tokio::task::spawn_blocking(|| drop(slot)));
        }
        let slot = Arc::new(Slot::new());
        kept.slots.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// Takes out the cells of a workspace that no command runs in.
    pub(crate) fn take_idle(&self, workspace: &Path) -> Vec<Arc<Slot>> {
        let mut kept = sync::lock(&self.0);
        let taken = kept.slots.extract_if(|key, slot| key.workspace == workspace && slot.is_idle());
        taken.map(|(_, slot)| slot).collect()
    }

    /// Finds a cell of the same workspace whose loopback is to be shared.
    pub(crate) fn companion(&self, key: &Key) -> Option<Arc<Room>> {
        if key.network != Network::Loopback {
            return None;
        }
        let kept = sync::lock(&self.0);
        let shares =
            |other: &Key| other.network == Network::Loopback && other.workspace == key.workspace;
        let sharing = kept.slots.iter().filter(|(other, _)| shares(other));
        let made = sharing.filter_map(|(_, slot)| slot.room.get());
        made.filter(|room| !room.is_gone()).map(Arc::clone).next()
    }
}

/// Lets go of cells that nobody has used for a while, until there are none.
async fn let_go_of_unused(kept: Weak<Mutex<Kept>>) {
    loop {
        tokio::time::sleep(KEPT_FOR / 4).await;
        let Some(kept) = kept.upgrade() else { return };
        // Looking for temporary files, and removing directories for them, waits for the disk.
        let swept = tokio::task::spawn_blocking(move || {
            let (unused, any) = {
                let mut kept = sync::lock(&kept);
                let unused = kept.slots.extract_if(|_, slot| slot.is_gone() || slot.is_unused());
                let unused: Vec<_> = unused.collect();
                kept.watched = !kept.slots.is_empty();
                (unused, kept.watched)
            };
            drop(unused);
            any
        });
        if !swept.await.unwrap_or(false) {
            return;
        }
    }
}
