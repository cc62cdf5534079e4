//! The scan: the present tree as lists of directories, reading only what changed.
//!
//! The scan knows the names of the last one. A directory whose change key is the same has the same names, so it is
//! not listed again: each file costs one `fstatat`, and each directory an `openat2` and an `fstat`, which are shared by
//! a few threads ([`unchanged`]). Ignore rules are asked for new names only, unless a file of rules changed.
//!
//! A file whose key changed is opened, looked at, read, and looked at again. If it changed meanwhile it is read
//! again, at most [`MAX_TRIES`] times, and then left out as torn. What is read is stored at once, unsynced.
//!
//! Everything is opened by name in an open directory without following links or crossing mount points, so a tree
//! that is changed meanwhile gives a snapshot that mixes two moments at worst.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrel_fsroot::{Directory, FileKind, Metadata, Problem, Root};
use carrel_search::PresentRuleFiles;

use crate::change_key::ChangeKey;
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::scan_cache::{Known, KnownDirectory, ScanCache, State};
use crate::scan_level::{Level, Place, list, look, name_of, rule_keys};
use crate::scan_options::{
    Ignored, MAX_ENTRIES, ScanError, ScanLimits, ScanOptions, Scanned, Totals,
};
use crate::segment::MAX_CONTENT;
use crate::tree::{Omission, begin_list, put_entry};
use crate::unchanged::unchanged;

/// The depth beyond which directories are left out, which bounds open directories and the stack.
const MAX_DEPTH: usize = 192;

/// The readings of a file that is changed meanwhile.
const MAX_TRIES: usize = 3;

/// The permission bits that are recorded of a file: set-user-id would let restored content run as another user.
const FILE_MODE: u32 = 0o777;

/// The permission bits that are recorded of a directory.
pub(crate) const DIRECTORY_MODE: u32 = 0o3777;

/// Scans a workspace, and stores what is new. What is `held` is taken although ignore rules exclude it.
pub(crate) fn scan(
    root: &Root,
    options: &ScanOptions,
    held: &BTreeSet<PathBuf>,
    cache: &mut ScanCache,
    objects: &mut Objects,
) -> Result<Scanned, ScanError> {
    let device = root.identity()?.device;
    if cache.device != device {
        *cache = ScanCache { device, ..ScanCache::default() };
    }
    let limits = ScanLimits {
        file_bytes: options.limits.file_bytes.min(MAX_CONTENT),
        total_bytes: options.limits.total_bytes,
    };
    if cache.options != (options.ignored, limits) {
        cache.options = (options.ignored, limits);
        cache.top.forget_lists();
    }
    let directory = root.directory(Path::new("."))?;
    let mut scan = Scan {
        options,
        held,
        limits,
        objects,
        unchanged: unchanged(&directory, options, held, &cache.top),
        totals: Totals::default(),
        entries: 0,
        left_out: Vec::new(),
        files_read: 0,
        cache_changes: 0,
    };
    let is_unchanged = scan.unchanged.remove(Path::new(""));
    let key = if is_unchanged { cache.top.key } else { ChangeKey::of(&directory.metadata()?) };
    let top = Place { path: PathBuf::new(), key, is_ignored: false, is_unchanged };
    let opened = OnceCell::from(directory);
    let top = scan.directory(opened, top, None, &mut cache.top, Judge::NewNames)?;
    scan.totals.directories -= 1;
    Ok(Scanned {
        top,
        totals: scan.totals,
        left_out: scan.left_out,
        files_read: scan.files_read,
        cache_changes: scan.cache_changes,
    })
}

/// The names for which ignore rules are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    NewNames,
    /// A file of rules changed here or above.
    AllNames,
}

/// What became of an entry since the last scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    Same,
    Changed,
    Gone,
}

struct Scan<'a> {
    options: &'a ScanOptions,
    held: &'a BTreeSet<PathBuf>,
    limits: ScanLimits,
    objects: &'a mut Objects,
    /// The directories that were just looked at, and are as the last scan found them.
    unchanged: HashSet<PathBuf>,
    totals: Totals,
    entries: u64,
    left_out: Vec<(PathBuf, Omission)>,
    files_read: u64,
    cache_changes: u64,
}

impl Scan<'_> {
    /// Scans a directory, and returns the id of its list.
    fn directory(
        &mut self,
        opened: OnceCell<Directory>,
        place: Place,
        above: Option<&Level<'_>>,
        known: &mut KnownDirectory,
        mut judge: Judge,
    ) -> Result<ObjectId, ScanError> {
        self.totals.directories += 1;
        let Place { path, key, is_ignored, is_unchanged } = place;
        let depth = above.map_or(0, |above| above.depth + 1);
        let (present, rules) = (PresentRuleFiles::default(), OnceCell::new());
        let mut level =
            Level { opened, path, is_ignored, is_unchanged, depth, above, present, rules };
        if !is_unchanged && (!known.is_settled || known.key != key) {
            let is_settled = key.is_settled(SystemTime::now());
            list(level.directory()?, known)?;
            known.key = key;
            known.is_settled = is_settled;
            self.cache_changes += 1;
        }
        for child in &known.children {
            level.present.note(&child.name);
        }
        if !is_unchanged {
            let rule_keys = rule_keys(level.directory()?, &known.children);
            if rule_keys != known.rule_keys {
                known.rule_keys = rule_keys;
                judge = Judge::AllNames;
            }
        }
        // Taken, so that a scan that fails halfway leaves no list that does not fit.
        let before = known.list.take();
        let mut changed = before.is_none();
        for round in 0..MAX_TRIES {
            if !self.children(&level, known, (judge, round), &mut changed)? {
                break;
            }
            // The next scan lists the directory again, and so does this one: it may have got another name here.
            known.is_settled = false;
            changed = true;
            list(level.directory()?, known)?;
        }
        let list = match before {
            Some(list) if !changed => list,
            _ => self.put_list(known)?,
        };
        known.list = Some(list);
        Ok(list)
    }

    /// Looks at the children of a directory; in later rounds at the ones that were not seen in the first. Returns whether
    /// one was gone.
    fn children(
        &mut self,
        level: &Level<'_>,
        known: &mut KnownDirectory,
        (judge, round): (Judge, usize),
        changed: &mut bool,
    ) -> Result<bool, ScanError> {
        let mut gone = false;
        for child in &mut known.children {
            let is_new = matches!(child.state, State::Unknown);
            if round > 0 && !is_new {
                continue;
            }
            if judge == Judge::AllNames || is_new {
                let is_ignored = level.ignores(child);
                *changed |= is_ignored != child.is_ignored;
                child.is_ignored = is_ignored;
            }
            match self.visit_again(level, child, judge)? {
                Visit::Same => {}
                Visit::Changed => *changed = true,
                Visit::Gone => {
                    child.state = State::Unknown;
                    gone = true;
                }
            }
        }
        Ok(gone)
    }

    fn put_list(&mut self, known: &KnownDirectory) -> Result<ObjectId, ScanError> {
        let nodes: Vec<_> =
            known.children.iter().filter_map(|child| Some((&child.name, child.node()?))).collect();
        let mut list = begin_list(nodes.len());
        for (name, node) in nodes {
            put_entry(&mut list, name, &node);
        }
        Ok(self.objects.put(&list)?)
    }

    /// Looks at an entry until it is what it was taken for. One that is another thing each time is torn, and not
    /// missing: a restore would delete it.
    fn visit_again(
        &mut self,
        level: &Level<'_>,
        child: &mut Known,
        judge: Judge,
    ) -> Result<Visit, ScanError> {
        for _ in 0..MAX_TRIES {
            match self.visit(level, child, judge)? {
                Visit::Gone => {}
                visited @ (Visit::Same | Visit::Changed) => return Ok(visited),
            }
            match look(level, child) {
                Ok(metadata) => child.is_directory = metadata.kind == FileKind::Directory,
                Err(error) if error.is_not_found() => return Ok(Visit::Gone),
                Err(_) => {}
            }
            child.state = State::Unknown;
            child.is_ignored = level.ignores(child);
        }
        Ok(self.leave_out(level, child, Omission::Torn))
    }

    fn visit(
        &mut self,
        level: &Level<'_>,
        child: &mut Known,
        judge: Judge,
    ) -> Result<Visit, ScanError> {
        if matches!(child.state, State::Repository) {
            return Ok(Visit::Same);
        }
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(ScanError::TooManyEntries);
        }
        let is_left_alone = child.is_ignored && self.options.ignored == Ignored::LeftAlone;
        if is_left_alone && !self.holds(level, child) {
            return Ok(self.leave_out(level, child, Omission::Ignored));
        }
        if child.is_directory {
            return self.visit_directory(level, child, judge);
        }
        if let Some(visited) = self.pass(level, child) {
            return Ok(visited);
        }
        let metadata = match look(level, child) {
            Ok(metadata) => metadata,
            Err(error) => return Ok(self.failed(level, child, &error)),
        };
        match metadata.kind {
            FileKind::File => self.visit_file(level, child, &metadata),
            FileKind::Link => Ok(self.visit_link(level, child, &metadata)),
            // It has become a directory since it was listed.
            FileKind::Directory => Ok(Visit::Gone),
            FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Unknown => {
                Ok(self.leave_out(level, child, Omission::Special))
            }
        }
    }

    /// Passes over a file or link that was just looked at.
    fn pass(&mut self, level: &Level<'_>, child: &mut Known) -> Option<Visit> {
        if !level.is_unchanged {
            return None;
        }
        match &child.state {
            State::File { key, .. } => {
                let size = key.size;
                if let Some(reason) = self.refuses(size) {
                    return Some(self.leave_out(level, child, reason));
                }
                self.count_file(size);
            }
            State::Link { .. } => self.totals.links += 1,
            // Listed again, or never looked at.
            State::Unknown | State::Repository | State::Directory { .. } | State::LeftOut(_) => {
                return None;
            }
        }
        Some(Visit::Same)
    }

    fn holds(&self, level: &Level<'_>, child: &Known) -> bool {
        !self.held.is_empty() && self.held.contains(&level.path.join(&child.name))
    }

    fn leave_out(&mut self, level: &Level<'_>, child: &mut Known, reason: Omission) -> Visit {
        match reason {
            Omission::Ignored => self.totals.ignored += 1,
            Omission::TooLarge
            | Omission::OverTotal
            | Omission::Special
            | Omission::Unreadable
            | Omission::Torn
            | Omission::Mount
            | Omission::TooDeep
            | Omission::Repository => self.totals.left_out += 1,
        }
        self.left_out.push((level.path.join(&child.name), reason));
        let state = State::LeftOut(reason);
        if child.state == state {
            return Visit::Same;
        }
        child.state = state;
        Visit::Changed
    }

    /// Decides what becomes of an entry that could not be looked at.
    fn failed(
        &mut self,
        level: &Level<'_>,
        child: &mut Known,
        error: &carrel_fsroot::Error,
    ) -> Visit {
        match error.problem() {
            Problem::NotFound
            | Problem::NotADirectory
            | Problem::IsADirectory
            | Problem::Link
            | Problem::LinkLoop
            | Problem::NotRegular(_)
            | Problem::Contended => Visit::Gone,
            Problem::CrossesMount => self.leave_out(level, child, Omission::Mount),
            Problem::PermissionDenied | Problem::Io | Problem::NameTooLong => {
                self.leave_out(level, child, Omission::Unreadable)
            }
            problem @ (Problem::Escapes(_)
            | Problem::Sensitive
            | Problem::Nul
            | Problem::NoName
            | Problem::Exists
            | Problem::NotEmpty
            | Problem::TooLarge { .. }
            | Problem::DiskFull
            | Problem::KernelTooOld) => {
                tracing::warn!(%problem, "an entry could not be looked at");
                self.leave_out(level, child, Omission::Unreadable)
            }
        }
    }

    fn visit_directory(
        &mut self,
        level: &Level<'_>,
        child: &mut Known,
        judge: Judge,
    ) -> Result<Visit, ScanError> {
        if level.depth >= MAX_DEPTH {
            return Ok(self.leave_out(level, child, Omission::TooDeep));
        }
        let (path, is_ignored) = (level.path.join(&child.name), child.is_ignored);
        let (opened, mode, place) = match &child.state {
            State::Directory { mode, directory } if self.unchanged.remove(&path) => {
                let place = Place { path, key: directory.key, is_ignored, is_unchanged: true };
                (OnceCell::new(), *mode, place)
            }
            _ => {
                let directory = level.directory().and_then(|above| above.look_up(name_of(child)));
                let opened = directory.and_then(|opened| Ok((opened.metadata()?, opened)));
                let (metadata, directory) = match opened {
                    Ok(opened) => opened,
                    Err(error) => return Ok(self.failed(level, child, &error)),
                };
                let key = ChangeKey::of(&metadata);
                let place = Place { path, key, is_ignored, is_unchanged: false };
                (OnceCell::from(directory), metadata.mode & DIRECTORY_MODE, place)
            }
        };
        let (known_mode, mut known) = match std::mem::replace(&mut child.state, State::Unknown) {
            State::Directory { mode, directory } => (Some(mode), directory),
            _ => (None, Box::default()),
        };
        let before = known.list;
        let list = match self.directory(opened, place, Some(level), &mut known, judge) {
            Ok(list) => list,
            Err(ScanError::Workspace(error)) => {
                self.totals.directories -= 1;
                return Ok(self.failed(level, child, &error));
            }
            Err(error) => return Err(error),
        };
        child.state = State::Directory { mode, directory: known };
        let is_same = known_mode == Some(mode) && before == Some(list);
        Ok(if is_same { Visit::Same } else { Visit::Changed })
    }

    fn visit_link(&mut self, level: &Level<'_>, child: &mut Known, metadata: &Metadata) -> Visit {
        self.totals.links += 1;
        let found = ChangeKey::of(metadata);
        if matches!(&child.state, State::Link { key, .. } if *key == found) {
            return Visit::Same;
        }
        match level.directory().and_then(|directory| directory.read_link(name_of(child))) {
            Ok(target) => {
                child.state = State::Link { key: found, target };
                Visit::Changed
            }
            Err(error) => {
                self.totals.links -= 1;
                self.failed(level, child, &error)
            }
        }
    }

    fn visit_file(
        &mut self,
        level: &Level<'_>,
        child: &mut Known,
        metadata: &Metadata,
    ) -> Result<Visit, ScanError> {
        if let Some(reason) = self.refuses(metadata.size) {
            return Ok(self.leave_out(level, child, reason));
        }
        let found = ChangeKey::of(metadata);
        if let State::File { key, is_settled: true, .. } = &child.state
            && *key == found
            && self.trusts(level, child)
        {
            self.count_file(found.size);
            return Ok(Visit::Same);
        }
        self.read_file(level, child)
    }

    fn count_file(&mut self, size: u64) {
        self.totals.files += 1;
        self.totals.bytes += size;
    }

    fn refuses(&self, size: u64) -> Option<Omission> {
        if size > self.limits.file_bytes {
            Some(Omission::TooLarge)
        } else if self.totals.bytes.saturating_add(size) > self.limits.total_bytes {
            Some(Omission::OverTotal)
        } else {
            None
        }
    }

    fn trusts(&self, level: &Level<'_>, child: &Known) -> bool {
        self.options.trust.includes(|| level.path.join(&child.name))
    }

    fn read_file(&mut self, level: &Level<'_>, child: &mut Known) -> Result<Visit, ScanError> {
        self.files_read += 1;
        // What a process changes through a mapping after this reading does not show in the key, so it counts for nothing.
        let is_trusted = self.trusts(level, child);
        for _ in 0..MAX_TRIES {
            // Before the reading: a change within the same tick may follow it.
            let begun = SystemTime::now();
            let opened =
                level.directory().and_then(|directory| directory.open_file(name_of(child)));
            let (file, metadata) = match opened {
                Ok(opened) => opened,
                Err(error) => return Ok(self.failed(level, child, &error)),
            };
            if let Some(reason) = self.refuses(metadata.size) {
                return Ok(self.leave_out(level, child, reason));
            }
            let key = ChangeKey::of(&metadata);
            let Ok(content) = read_if_unchanged(&file, &key) else {
                return Ok(self.leave_out(level, child, Omission::Unreadable));
            };
            let Some(content) = content else { continue };
            let id = self.objects.put(&content)?;
            self.count_file(key.size);
            let is_settled = is_trusted && key.is_settled(begun);
            let state = State::File { key, mode: metadata.mode & FILE_MODE, id, is_settled };
            let before = child.node();
            self.cache_changes += u64::from(child.state != state);
            child.state = state;
            return Ok(if child.node() == before { Visit::Same } else { Visit::Changed });
        }
        Ok(self.leave_out(level, child, Omission::Torn))
    }
}

/// Reads a file; `None` if it was changed meanwhile.
pub(crate) fn read_if_unchanged(
    mut file: &File,
    key: &ChangeKey,
) -> std::io::Result<Option<Vec<u8>>> {
    let size = usize::try_from(key.size).unwrap_or(usize::MAX);
    // One byte more, so that the read that finds the end does not grow the buffer.
    let mut content = Vec::with_capacity(size.saturating_add(1));
    file.by_ref().take(key.size + 1).read_to_end(&mut content)?;
    let is_same = content.len() == size && ChangeKey::of_open(&file.metadata()?) == *key;
    Ok(is_same.then_some(content))
}
