//! Watching a workspace while something writes to it.

use std::path::Path;
use std::time::{Duration, Instant};

use carrel_fsroot::{Problem, Root, Space};
use tokio_util::sync::CancellationToken;

use carrel_workspace::Error;
use carrel_workspace::blocking;
use carrel_workspace::{Amount, Exceeded, Quota};

/// How often free space is looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// A walk happens at least this often: others may free space while the workspace
/// fills it, so that the free space alone tells nothing.
const WALK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// Walking takes at most one part in this many of the time.
const WALK_SHARE: u32 = 10;

/// A walk before a single write happens at least this often, for what nobody has told about:
/// commands, which write faster, are watched on their own.
const WALK_FOR_WRITES_EVERY: Duration = Duration::from_mins(1);

/// How often a tree that changes under the walk is counted again before a write.
const MAX_RECOUNTS: usize = 3;

/// A tree that changes under every walk for so long keeps itself from being counted.
const MAX_CONTENDED: Duration = Duration::from_millis(500);

/// Tells when a workspace grows beyond its quota, without walking it all the time.
///
/// Looking at the free space of the file system costs microseconds. The tree is
/// walked only when the space lost since the last walk could be more than the
/// workspace had left, or when the last walk is long ago.
#[derive(Debug)]
pub struct QuotaWatcher {
    directory: Root,
    /// More that counts towards the quota.
    also: Vec<Root>,
    quota: Quota,
    used: Amount,
    /// What is set aside for files that are still to come, which no walk finds.
    reserved: Amount,
    space: Space,
    walked: Instant,
    walk_took: Duration,
    /// Since when every walk has found the tree changing under it.
    contended_since: Option<Instant>,
    /// Whether somebody else may have written since the last walk.
    expects_changes: bool,
}

/// A walk that somebody else does.
#[derive(Clone, Copy, Debug)]
pub struct UsageWalk {
    begun: Instant,
    /// What was free when it began, so that whatever is written meanwhile is not overlooked.
    space: Space,
}

/// A workspace that has grown beyond its quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// What is used; counting stopped when the limit was passed.
    pub used: Amount,
    /// Which limit was passed.
    pub exceeded: Exceeded,
}

impl QuotaWatcher {
    /// Begins to watch a workspace that uses `used` now.
    pub fn new(directory: Root, quota: Quota, used: Amount) -> Result<Self, Error> {
        let space = space_of(&directory)?;
        let walked = Instant::now();
        Ok(Self {
            directory,
            also: Vec::new(),
            quota,
            used,
            reserved: Amount::default(),
            space,
            walked,
            walk_took: Duration::ZERO,
            contended_since: None,
            expects_changes: false,
        })
    }

    /// Counts what is in another directory of the same disk as well.
    #[must_use]
    pub fn with(mut self, directory: Root) -> Self {
        self.also.push(directory);
        self
    }

    /// Looks once, and walks only if it has to.
    pub fn sample(&mut self) -> Result<Option<Overrun>, Error> {
        let space = space_of(&self.directory)?;
        if !self.may_exceed(space) && !self.is_due() {
            return Ok(None);
        }
        let begun = Instant::now();
        let Some((used, unreadable)) = self.count()? else {
            let since = *self.contended_since.get_or_insert(begun);
            let exceeded = self.quota.check(self.used, true).err();
            let exceeded = exceeded.filter(|_| since.elapsed() >= MAX_CONTENDED);
            return Ok(exceeded.map(|exceeded| Overrun { used: self.used, exceeded }));
        };
        self.contended_since = None;
        self.used = used;
        self.space = space;
        self.walked = Instant::now();
        self.walk_took = begun.elapsed();
        let exceeded = self.quota.check(self.used, unreadable).err();
        Ok(exceeded.map(|exceeded| Overrun { used: self.used, exceeded }))
    }

    /// Returns what may be used at most since the last walk, if that is within the quota and the walk will
    /// do. After changes it does so only for as long as another would take too much of the time: what the
    /// disk has lost tells little while others free some of it.
    pub fn still_fits(&self, changed: bool) -> Result<Option<Amount>, Error> {
        let estimate = self.estimate(space_of(&self.directory)?);
        let fits = self.quota.check(estimate, false).is_ok();
        let outdated = changed && self.walked.elapsed() >= self.walk_took * WALK_SHARE;
        Ok((fits && !outdated && !self.is_due()).then_some(estimate))
    }

    /// Says that somebody else begins to walk the workspace.
    pub fn begin_walk(&self) -> Result<UsageWalk, Error> {
        Ok(UsageWalk { begun: Instant::now(), space: space_of(&self.directory)? })
    }

    /// Says what that walk has found.
    pub fn end_walk(&mut self, walk: UsageWalk, used: Amount) {
        (self.used, self.space) = (used, walk.space);
        (self.walked, self.walk_took) = (Instant::now(), walk.begun.elapsed());
    }

    /// Says that somebody else has written, or is about to.
    pub fn expect_changes(&mut self) {
        self.expects_changes = true;
    }

    /// Takes room for so much more, or says that there is none. It walks only if it has to.
    pub fn room_for(&mut self, more: Amount) -> Result<Option<Overrun>, Error> {
        let overrun = self.look_for_room(more)?;
        if overrun.is_none() {
            self.used = self.used.plus(more);
        }
        Ok(overrun)
    }

    /// Does the same for what is written later: it stays taken whatever a walk finds until then.
    pub(crate) fn reserve(&mut self, more: Amount) -> Result<Option<Overrun>, Error> {
        let overrun = self.look_for_room(more)?;
        if overrun.is_none() {
            self.reserved = self.reserved.plus(more);
        }
        Ok(overrun)
    }

    /// Says that so much of what is set aside was written.
    pub(crate) fn has_used(&mut self, amount: Amount) {
        self.give_back(amount);
        self.used = self.used.plus(amount);
    }

    /// Gives back what is set aside.
    pub(crate) fn give_back(&mut self, amount: Amount) {
        self.reserved = self.reserved.minus(amount);
    }

    fn look_for_room(&mut self, more: Amount) -> Result<Option<Overrun>, Error> {
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
            (self.used, self.space, self.expects_changes) = (used, space, false);
            (self.walked, self.walk_took) = (Instant::now(), begun.elapsed());
            let exceeded = self.quota.check(used.plus(self.reserved).plus(more), unreadable).err();
            return Ok(exceeded.map(|exceeded| Overrun { used, exceeded }));
        }
        let exceeded = self.quota.check(estimate, true).err();
        Ok(exceeded.map(|exceeded| Overrun { used: estimate, exceeded }))
    }

    /// Returns what is used if all that the disk has lost since the last walk was taken here.
    fn estimate(&self, space: Space) -> Amount {
        self.used.plus(self.reserved).plus(Amount {
            bytes: self.space.bytes.saturating_sub(space.bytes),
            files: self.space.inodes.saturating_sub(space.inodes),
        })
    }

    fn is_walk_due_for_writes(&self) -> bool {
        let since = self.walked.elapsed();
        let after_changes = self.expects_changes && since >= self.walk_took * WALK_SHARE;
        after_changes || since >= WALK_FOR_WRITES_EVERY.max(self.walk_took * WALK_SHARE)
    }

    /// Counts what there is, and says whether some of it could not be counted. There is no answer
    /// when the tree changed under the walk; the next look counts again.
    fn count(&self) -> Result<Option<(Amount, bool)>, Error> {
        let (mut used, mut unreadable) = (Amount { bytes: 0, files: 0 }, false);
        for directory in std::iter::once(&self.directory).chain(&self.also) {
            let usage = match directory.usage(Path::new("."), self.quota.counting_limit()) {
                Err(error) if error.problem() == Problem::Contended => return Ok(None),
                usage => usage.map_err(Error::files("could not count the workspace"))?,
            };
            used.bytes = used.bytes.saturating_add(usage.bytes);
            used.files = used.files.saturating_add(usage.inodes);
            unreadable |= usage.unreadable > 0;
        }
        Ok(Some((used, unreadable)))
    }

    fn may_exceed(&self, space: Space) -> bool {
        let lost_bytes = self.space.bytes.saturating_sub(space.bytes);
        let lost_inodes = self.space.inodes.saturating_sub(space.inodes);
        let room = self.quota.bytes.as_u64().saturating_sub(self.used.bytes);
        let files_left = self.quota.files.map(|limit| limit.saturating_sub(self.used.files));
        let full = lost_bytes > room || files_left.is_some_and(|left| lost_inodes > left);
        // Where other tenants write to the same disk, this keeps the walks affordable.
        full && self.walked.elapsed() >= self.walk_took * WALK_SHARE
    }

    fn is_due(&self) -> bool {
        let pause = WALK_AT_LEAST_EVERY.max(self.walk_took * WALK_SHARE);
        self.walked.elapsed() >= pause
    }

    /// Watches until the quota is passed or `stop` is cancelled. After an error nobody
    /// watches any more, so whatever writes has to be stopped.
    pub async fn watch(mut self, stop: &CancellationToken) -> Result<Option<Overrun>, Error> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(None),
                () = tokio::time::sleep(SAMPLE_EVERY) => {}
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
    directory.space().map_err(Error::files("could not look at the free space"))
}
