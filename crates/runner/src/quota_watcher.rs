//! The quota of a workspace while commands and tools write to it.
//!
//! The only exact count is a walk over the whole tree, 350 ms for 200,000 files. Asking the file system
//! for its free space takes microseconds, and what a workspace has grown by is at most what the disk has
//! lost. So a watcher remembers usage and free space of the last walk, and walks again only when the
//! disk has since lost more than the workspace had left, or when the last walk is long ago: other
//! tenants may free space while this workspace fills it. Walks take at most a tenth of the time.
//!
//! Two users share this. While a command runs, [`QuotaWatcher::watch`] samples every 50 ms and reports
//! an overrun, upon which the command is killed. Before a tool writes a single file,
//! [`QuotaWatcher::claim`] or [`QuotaWatcher::reserve`] check that it fits.
//!
//! A tree that changes under the walk cannot be counted. One that does so for half a second counts as
//! over its quota, so that a command cannot hide by renaming its directories all the time.

use std::path::Path;
use std::time::{Duration, Instant};

use carrel_fsroot::{Problem, Root, Space};
use tokio_util::sync::CancellationToken;

use carrel_workspace::{Amount, Error, Exceeded, Quota, blocking};

/// The pace of a watch.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The interval of samples.
    sample_every: Duration,
    /// The longest time between two walks. Free space alone proves nothing where others free some of it.
    walk_at_least_every: Duration,
}

/// The pace while a command runs.
const PACE_OF_COMMANDS: Pace =
    Pace { sample_every: Duration::from_millis(50), walk_at_least_every: Duration::from_secs(5) };

/// The pace while a session runs, which is idle most of the time and writes caches only. At the pace of a
/// command, one in a tree of 200,000 files would take 7 % of a core for as long as it lives.
const PACE_OF_SESSIONS: Pace =
    Pace { sample_every: Duration::from_secs(1), walk_at_least_every: Duration::from_mins(2) };

/// The pause after a walk, as a multiple of its duration.
const WALK_SHARE: u32 = 10;

/// The longest time between two walks for single writes. Commands, which write faster, have a watcher of
/// their own.
const WALK_FOR_WRITES_EVERY: Duration = Duration::from_mins(1);

/// The most walks before a write over a tree that changes under each of them.
const MAX_RECOUNTS: usize = 3;

/// The time after which a tree that changes under every walk counts as over its quota.
const MAX_CONTENDED: Duration = Duration::from_millis(500);

/// Watches the disk usage of a workspace.
#[derive(Debug)]
pub struct QuotaWatcher {
    directory: Root,
    /// Other directories that count towards the quota: temporary files.
    further: Vec<Root>,
    quota: Quota,
    used: Amount,
    /// Reserved for files that are still to be written, which no walk finds.
    reserved: Amount,
    space: Space,
    walked: Instant,
    walk_took: Duration,
    /// The first of the walks under which the tree has changed since.
    contended_since: Option<Instant>,
    /// Set while a command may have written since the last walk.
    expects_changes: bool,
    pace: Pace,
}

/// A walk by another component, whose result the watcher takes over.
#[derive(Clone, Copy, Debug)]
pub struct UsageWalk {
    begun: Instant,
    /// The free space before the walk, so that writes during it are not overlooked.
    space: Space,
}

impl QuotaWatcher {
    /// Returns a watcher for a workspace whose usage is known.
    pub fn new(directory: Root, quota: Quota, used: Amount) -> Result<Self, Error> {
        Ok(Self {
            space: space_of(&directory)?,
            directory,
            further: Vec::new(),
            quota,
            used,
            reserved: Amount::default(),
            walked: Instant::now(),
            walk_took: Duration::ZERO,
            contended_since: None,
            expects_changes: false,
            pace: PACE_OF_COMMANDS,
        })
    }

    /// Looks less often, for a process that lives long and writes little.
    #[must_use]
    pub(crate) fn at_the_pace_of_a_session(mut self) -> Self {
        self.pace = PACE_OF_SESSIONS;
        self
    }

    /// Adds another directory on the same disk.
    #[must_use]
    pub fn with(mut self, directory: Root) -> Self {
        self.further.push(directory);
        self
    }

    /// Checks once, and walks only if free space does not suffice as a proof. Counting stops when a limit
    /// is passed.
    fn sample(&mut self) -> Result<Option<Exceeded>, Error> {
        let space = space_of(&self.directory)?;
        if !self.may_exceed(space) && !self.is_due() {
            return Ok(None);
        }
        let begun = Instant::now();
        let Some((used, unreadable)) = self.count()? else {
            let since = *self.contended_since.get_or_insert(begun);
            let exceeded = self.quota.check(self.used, true).err();
            return Ok(exceeded.filter(|_| since.elapsed() >= MAX_CONTENDED));
        };
        self.contended_since = None;
        self.end_walk(UsageWalk { begun, space }, used);
        Ok(self.quota.check(used, unreadable).err())
    }

    /// Returns an upper bound of the usage without walking, if it is within the quota and the last walk is
    /// recent enough; otherwise `None`, and a walk is needed. `changed` says that there were writes since:
    /// then the last walk serves only while another one would exceed its share of the time.
    pub fn still_fits(&self, changed: bool) -> Result<Option<Amount>, Error> {
        let estimate = self.estimate(space_of(&self.directory)?);
        let fits = self.quota.check(estimate, false).is_ok();
        let outdated = changed && self.walked.elapsed() >= self.walk_took * WALK_SHARE;
        Ok((fits && !outdated && !self.is_due()).then_some(estimate))
    }

    /// Begins a walk by another component.
    pub fn begin_walk(&self) -> Result<UsageWalk, Error> {
        Ok(UsageWalk { begun: Instant::now(), space: space_of(&self.directory)? })
    }

    /// Takes over the result of that walk.
    pub fn end_walk(&mut self, walk: UsageWalk, used: Amount) {
        (self.used, self.space) = (used, walk.space);
        (self.walked, self.walk_took) = (Instant::now(), walk.begun.elapsed());
    }

    /// Notes that a command has written, or is about to.
    pub fn expect_changes(&mut self) {
        self.expects_changes = true;
    }

    /// Adds `more` to the usage, or returns the limit that it would pass. Walks only if free space does not suffice as a
    /// proof.
    pub(crate) fn claim(&mut self, more: Amount) -> Result<Option<Exceeded>, Error> {
        let exceeded = self.check_room(more)?;
        if exceeded.is_none() {
            self.used = self.used.plus(more);
        }
        Ok(exceeded)
    }

    /// Reserves `more` for later writes, or returns the limit that it would pass. A reservation survives walks.
    pub(crate) fn reserve(&mut self, more: Amount) -> Result<Option<Exceeded>, Error> {
        let exceeded = self.check_room(more)?;
        if exceeded.is_none() {
            self.reserved = self.reserved.plus(more);
        }
        Ok(exceeded)
    }

    pub(crate) fn use_reserved(&mut self, amount: Amount) {
        self.release(amount);
        self.used = self.used.plus(amount);
    }

    pub(crate) fn release(&mut self, amount: Amount) {
        self.reserved = self.reserved.minus(amount);
    }

    fn check_room(&mut self, more: Amount) -> Result<Option<Exceeded>, Error> {
        let space = space_of(&self.directory)?;
        let estimate = self.estimate(space).plus(more);
        if !self.is_walk_due_for_writes()
            && let Ok(()) = self.quota.check(estimate, false)
        {
            return Ok(None);
        }
        let begun = Instant::now();
        for _ in 0..MAX_RECOUNTS {
            let Some((used, unreadable)) = self.count()? else { continue };
            self.end_walk(UsageWalk { begun, space }, used);
            self.expects_changes = false;
            return Ok(self.quota.check(used.plus(self.reserved).plus(more), unreadable).err());
        }
        Ok(self.quota.check(estimate, true).err())
    }

    /// Returns the usage if this workspace took all that the disk has lost since the last walk.
    fn estimate(&self, space: Space) -> Amount {
        self.used.plus(self.reserved).plus(self.lost_since_walk(space))
    }

    fn lost_since_walk(&self, space: Space) -> Amount {
        Amount {
            bytes: self.space.bytes.saturating_sub(space.bytes),
            files: self.space.inodes.saturating_sub(space.inodes),
        }
    }

    fn is_walk_due_for_writes(&self) -> bool {
        let since = self.walked.elapsed();
        let after_changes = self.expects_changes && since >= self.walk_took * WALK_SHARE;
        after_changes || since >= WALK_FOR_WRITES_EVERY.max(self.walk_took * WALK_SHARE)
    }

    /// Walks, and returns the usage and whether parts could not be read; `None` if the tree changed under
    /// the walk.
    fn count(&self) -> Result<Option<(Amount, bool)>, Error> {
        let mut used = Amount::default();
        let mut unreadable = false;
        for directory in std::iter::once(&self.directory).chain(&self.further) {
            let usage = match directory.usage(Path::new("."), self.quota.counting_limit()) {
                Err(error) if error.problem() == Problem::Contended => return Ok(None),
                usage => usage.map_err(Error::files("could not count the workspace"))?,
            };
            used = used.plus(Amount { bytes: usage.bytes, files: usage.inodes });
            unreadable |= usage.unreadable > 0;
        }
        Ok(Some((used, unreadable)))
    }

    fn may_exceed(&self, space: Space) -> bool {
        let lost = self.lost_since_walk(space);
        let bytes_left = self.quota.bytes.as_u64().saturating_sub(self.used.bytes);
        let files_left = self.quota.files.map(|limit| limit.saturating_sub(self.used.files));
        let full = lost.bytes > bytes_left || files_left.is_some_and(|left| lost.files > left);
        // Bounds the walks where other tenants write to the same disk.
        full && self.walked.elapsed() >= self.walk_took * WALK_SHARE
    }

    fn is_due(&self) -> bool {
        self.walked.elapsed() >= self.pace.walk_at_least_every.max(self.walk_took * WALK_SHARE)
    }

    /// Watches until the quota is passed or `stop` is cancelled. After an error the workspace is no longer
    /// watched, so its writers must be stopped.
    pub async fn watch(mut self, stop: &CancellationToken) -> Result<Option<Exceeded>, Error> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(None),
                () = tokio::time::sleep(self.pace.sample_every) => {}
            }
            let (watcher, found) = blocking(move || {
                let found = self.sample()?;
                Ok::<_, Error>((self, found))
            })
            .await?;
            if found.is_some() {
                return Ok(found);
            }
            self = watcher;
        }
    }
}

fn space_of(directory: &Root) -> Result<Space, Error> {
    directory.space().map_err(Error::files("could not read the free space"))
}
