//! The read tracker: content hashes of the files that a session has read.
//!
//! An agent may only change a file that it has read and that has not changed since. Without this rule it
//! would overwrite the work of people and of other agents from memory. `Edit` names the text that it
//! replaces, so reading any part is enough; `Write` replaces everything, so every line must have been read,
//! possibly in several calls whose ranges are joined here. The lines of a patch that the file has prove as
//! much, so `ApplyPatch` needs no read.
//!
//! Every reply that shows lines of a file as they are counts as reading these lines
//! ([`crate::shown_lines`]), and so does the refusal of an edit, which shows the lines that it would change.
//!
//! Files are compared by content hash, not by time: a file that was rewritten with the same content still
//! counts as read, and one that changed within the clock's resolution does not. The path is resolved before
//! it becomes a key, so that links and `..` lead to the same entry. When the session itself changes a file,
//! its entry gets the new hash, its ranges follow their lines, and edits can follow each other without another
//! read.
//!
//! A caller can also name the hash of the content that it knows, which a reply to an earlier request had
//! (`expected_hash`). That stands for having read all of it, and is how a client works that has no session.
//!
//! The tracker is part of the session. `carrel tool` saves it between processes; an entry that cannot be
//! read back only means that the file has to be read again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure, hex};
use carrel_edit::diff::LineChange;
use serde::{Deserialize, Serialize};

use crate::line_ranges::LineRanges;

/// Bounds the memory of a session. The entry that was used longest ago is dropped first; its file then has
/// to be read again.
const MAX_ENTRIES: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ContentHash([u8; 32]);

impl ContentHash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    pub(crate) const fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns the first 16 hexadecimal digits, enough to distinguish versions of a file in replies.
    pub(crate) fn short(self) -> String {
        hex::encode(&self.0[..8])
    }
}

impl std::fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.short())
    }
}

/// The part of a file that a call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadExtent {
    /// The whole file.
    Whole,
    /// First line, last line (inclusive) and total number of lines.
    Lines(usize, usize, usize),
}

/// The part of a file that must have been read before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredExtent {
    /// Any part, because the change names the text that it replaces.
    Part,
    /// Every line, because the change replaces all of them.
    Whole,
}

/// A file of a workspace by its resolved path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct FileKey {
    pub(crate) workspace: String,
    pub(crate) path: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    hash: ContentHash,
    /// Lines that were read; none if the whole file was.
    seen: Option<LineRanges>,
    lines: usize,
    at: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ReadTracker {
    entries: HashMap<FileKey, Entry>,
    clock: u64,
}

impl ReadTracker {
    /// Returns all entries, for [`ReadTracker::from_json`] in another process.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self.entries.iter().collect::<Vec<_>>())
    }

    pub(crate) fn from_json(value: serde_json::Value) -> Self {
        let entries: Vec<(FileKey, Entry)> = serde_json::from_value(value).unwrap_or_default();
        let clock = entries.iter().map(|(_, entry)| entry.at).max().unwrap_or(0);
        Self { entries: entries.into_iter().collect(), clock }
    }

    /// Records that a part of a file was read. Earlier parts count only if the file has the same hash.
    pub(crate) fn record_read(&mut self, key: FileKey, hash: ContentHash, extent: &ReadExtent) {
        self.clock += 1;
        let at = self.clock;
        let known = self.entries.remove(&key).filter(|entry| entry.hash == hash);
        let entry = match (extent, known) {
            (ReadExtent::Whole, _) => Entry { hash, seen: None, lines: 0, at },
            (_, Some(Entry { seen: None, lines, .. })) => Entry { hash, seen: None, lines, at },
            (ReadExtent::Lines(first, last, lines), known) => {
                let mut ranges = known.and_then(|entry| entry.seen).unwrap_or_default();
                ranges.add((*first, *last));
                Entry { hash, seen: not_all(ranges, *lines), lines: *lines, at }
            }
        };
        self.entries.insert(key, entry);
        self.drop_oldest();
    }

    /// Records a change by the session. Lines that were read are followed to their new numbers, and new ones
    /// count as read. Of a version before that was not the recorded one no line counts.
    pub(crate) fn record_change(&mut self, key: &FileKey, change: &FileChange<'_>) {
        self.clock += 1;
        let known = self.entries.remove(key).filter(|entry| entry.hash == change.before);
        let seen = match known {
            Some(Entry { seen: None, .. }) => None,
            known => {
                let ranges = known.and_then(|entry| entry.seen).unwrap_or_default();
                not_all(ranges.after(change.changes), change.lines)
            }
        };
        if seen.as_ref().is_some_and(LineRanges::is_empty) {
            return;
        }
        let entry = Entry { hash: change.after, seen, lines: change.lines, at: self.clock };
        self.entries.insert(key.clone(), entry);
        self.drop_oldest();
    }

    /// Records a change by a formatter, if the version before it is the recorded one. The ranges that were
    /// read stay: its reply shows the changes.
    pub(crate) fn record_reformat(
        &mut self,
        key: &FileKey,
        before: ContentHash,
        after: ContentHash,
    ) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.hash == before) {
            entry.hash = after;
            entry.at = self.clock;
        }
    }

    pub(crate) fn rename(&mut self, old: &FileKey, new: FileKey) {
        if let Some(entry) = self.entries.remove(old) {
            self.entries.insert(new, entry);
        }
    }

    pub(crate) fn forget_file(&mut self, key: &FileKey) {
        self.entries.remove(key);
    }

    /// Returns the entry of a file, or the refusal of a change to a file that was not read. `doing` and `shown`
    /// are the verb and the path of later refusals.
    pub(crate) fn read_before<'a>(
        &self,
        key: &FileKey,
        doing: &'a str,
        shown: &'a str,
    ) -> Result<ReadRecord<'a>, Failure> {
        match self.entries.get(key) {
            Some(entry) => Ok(ReadRecord { known: Known::Read(entry.clone()), doing, shown }),
            None => Err(refusal(Code::NotRead, doing, shown, "Read it first")),
        }
    }

    fn drop_oldest(&mut self) {
        if self.entries.len() > MAX_ENTRIES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| self.entries.remove(&key));
        }
    }
}

/// A change of a file by the session.
#[derive(Debug)]
pub(crate) struct FileChange<'a> {
    pub(crate) before: ContentHash,
    pub(crate) after: ContentHash,
    pub(crate) changes: &'a [LineChange],
    /// Number of lines after the change.
    pub(crate) lines: usize,
}

/// Returns the lines that were read, or none if they are all.
fn not_all(ranges: LineRanges, lines: usize) -> Option<LineRanges> {
    (lines > 0 && !ranges.covers(lines)).then_some(ranges)
}

#[derive(Debug)]
pub(crate) struct ReadRecord<'a> {
    known: Known,
    doing: &'a str,
    shown: &'a str,
}

/// The caller's knowledge of a file.
#[derive(Debug)]
enum Known {
    /// The session has read it.
    Read(Entry),
    /// The caller named the hash of the content that it knows.
    Expected(String),
}

impl<'a> ReadRecord<'a> {
    /// Makes the record of a file whose hash the caller named.
    pub(crate) fn expected(hash: &str, doing: &'a str, shown: &'a str) -> Self {
        Self { known: Known::Expected(hash.trim().to_owned()), doing, shown }
    }

    /// Refuses the change if the file has another hash than at its reading, or too little of it was read.
    pub(crate) fn check(&self, hash: ContentHash, need: RequiredExtent) -> Result<(), Failure> {
        let refuse = |code, reason: &str| Err(refusal(code, self.doing, self.shown, reason));
        let is_current = match &self.known {
            Known::Read(entry) => entry.hash == hash,
            Known::Expected(expected) => hash.short() == *expected,
        };
        if !is_current {
            return refuse(
                Code::ChangedSinceRead,
                "it has changed since it was read; Read it again",
            );
        }
        match (&self.known, need) {
            (Known::Expected(_) | Known::Read(Entry { seen: None, .. }), _)
            | (Known::Read(Entry { seen: Some(_), .. }), RequiredExtent::Part) => Ok(()),
            (Known::Read(Entry { seen: Some(ranges), lines, .. }), RequiredExtent::Whole) => {
                let reason =
                    format!("only lines {ranges} of {lines} were read; Read the rest first");
                refuse(Code::NotRead, &reason)
            }
        }
    }
}

fn refusal(code: Code, doing: &str, shown: &str, reason: &str) -> Failure {
    Failure::new(code, format!("refusing to {doing} {shown}: {reason}")).with("path", shown)
}

impl FileKey {
    pub(crate) fn new(workspace: &str, path: &Path) -> Self {
        Self { workspace: workspace.to_owned(), path: path.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn key() -> FileKey {
        FileKey::new("w", Path::new("a"))
    }

    fn check(tracker: &ReadTracker, text: &str, need: RequiredExtent) -> Result<(), String> {
        let hash = ContentHash::of(text.as_bytes());
        let read = tracker.read_before(&key(), "overwrite", "a");
        read.and_then(|read| read.check(hash, need)).map_err(|failure| failure.message)
    }

    #[test]
    fn a_file_is_compared_by_hash_and_not_by_time() {
        let mut tracker = ReadTracker::default();
        assert_eq!(
            check(&tracker, "x", RequiredExtent::Part).unwrap_err(),
            "refusing to overwrite a: Read it first"
        );
        tracker.record_read(key(), ContentHash::of(b"x"), &ReadExtent::Whole);
        assert_eq!(check(&tracker, "x", RequiredExtent::Whole), Ok(()));
        assert_eq!(
            check(&tracker, "y", RequiredExtent::Part).unwrap_err(),
            "refusing to overwrite a: it has changed since it was read; Read it again"
        );
        let other = FileKey::new("v", Path::new("a"));
        assert_eq!(
            tracker.read_before(&other, "edit", "a").unwrap_err().code,
            Code::NotRead,
            "another workspace"
        );
    }

    #[test]
    fn a_part_unlocks_an_edit_and_all_parts_together_an_overwrite() {
        let mut tracker = ReadTracker::default();
        let hash = ContentHash::of(b"x");
        tracker.record_read(key(), hash, &ReadExtent::Lines(1, 10, 30));
        assert_eq!(check(&tracker, "x", RequiredExtent::Part), Ok(()));
        assert_eq!(
            check(&tracker, "x", RequiredExtent::Whole).unwrap_err(),
            "refusing to overwrite a: only lines 1–10 of 30 were read; Read the rest first"
        );
        tracker.record_read(key(), hash, &ReadExtent::Lines(21, 30, 30));
        tracker.record_read(key(), hash, &ReadExtent::Lines(9, 20, 30));
        assert_eq!(check(&tracker, "x", RequiredExtent::Whole), Ok(()));
        tracker.record_read(key(), hash, &ReadExtent::Lines(1, 2, 30));
        assert_eq!(
            check(&tracker, "x", RequiredExtent::Whole),
            Ok(()),
            "a range that was read stays read"
        );
    }

    #[test]
    fn the_hash_of_the_content_stands_for_having_read_it() {
        let hash = ContentHash::of(b"x");
        let check = |expected: &str, need| {
            let record = ReadRecord::expected(expected, "overwrite", "a");
            record.check(hash, need).map_err(|failure| (failure.code, failure.message))
        };
        assert_eq!(check(&hash.short(), RequiredExtent::Whole), Ok(()));
        assert_eq!(check(&format!(" {}\n", hash.short()), RequiredExtent::Part), Ok(()));
        let changed = "refusing to overwrite a: it has changed since it was read; Read it again";
        for wrong in ["", "0", &hash.short()[1..], &ContentHash::of(b"y").short()] {
            let refused = check(wrong, RequiredExtent::Part);
            assert_eq!(refused, Err((Code::ChangedSinceRead, changed.to_owned())), "{wrong:?}");
        }
    }

    #[test]
    fn a_change_moves_the_lines_that_were_read_with_their_text() {
        let mut tracker = ReadTracker::default();
        let (before, after) = (ContentHash::of(b"x"), ContentHash::of(b"y"));
        tracker.record_read(key(), before, &ReadExtent::Lines(1, 10, 30));
        tracker.record_read(key(), before, &ReadExtent::Lines(21, 30, 30));
        // Ten lines more after the fifth: the ten that were not read are 21 to 30 now.
        let changes = [LineChange { old: 5..5, new: 5..15 }];
        let change = FileChange { before, after, changes: &changes, lines: 40 };
        tracker.record_change(&key(), &change);
        assert_eq!(
            check(&tracker, "y", RequiredExtent::Whole).unwrap_err(),
            "refusing to overwrite a: only lines 1–20, 31–40 of 40 were read; Read the rest first"
        );
        tracker.record_read(key(), after, &ReadExtent::Lines(11, 20, 40));
        assert!(check(&tracker, "y", RequiredExtent::Whole).is_err());
        tracker.record_read(key(), after, &ReadExtent::Lines(21, 30, 40));
        assert_eq!(check(&tracker, "y", RequiredExtent::Whole), Ok(()));
    }

    #[test]
    fn a_change_of_an_unknown_version_makes_only_its_own_lines_known() {
        let mut tracker = ReadTracker::default();
        tracker.record_read(key(), ContentHash::of(b"old"), &ReadExtent::Whole);
        let changes = [LineChange { old: 4..5, new: 4..6 }];
        let (before, after) = (ContentHash::of(b"x"), ContentHash::of(b"y"));
        let change = FileChange { before, after, changes: &changes, lines: 9 };
        tracker.record_change(&key(), &change);
        assert_eq!(check(&tracker, "y", RequiredExtent::Part), Ok(()));
        assert_eq!(
            check(&tracker, "y", RequiredExtent::Whole).unwrap_err(),
            "refusing to overwrite a: only lines 5–6 of 9 were read; Read the rest first"
        );
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let mut tracker = ReadTracker::default();
        for number in 0..=MAX_ENTRIES {
            let key = FileKey::new("w", Path::new(&number.to_string()));
            tracker.record_read(key, ContentHash::of(b"x"), &ReadExtent::Whole);
        }
        assert_eq!(tracker.entries.len(), MAX_ENTRIES);
    }
}
