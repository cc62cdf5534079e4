//! What a session has read, so that nothing is overwritten that nobody has seen.
//!
//! An entry is the hash of what was read, not a time: a file that was written again with the same
//! contents is still known, and one that changed within the same instant is not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, hex};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Files that a session is remembered to have read. The one that was read longest ago is forgotten
/// first; it then has to be read again.
const MAX_ENTRIES: usize = 10_000;

/// A hash of the contents of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ContentHash([u8; 32]);

impl ContentHash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// Returns the first 16 hexadecimal digits, which are enough to tell versions of a file apart.
    pub(crate) fn short(self) -> String {
        hex::encode(&self.0[..8])
    }
}

impl std::fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.short())
    }
}

/// Which lines of a file were shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// All of it.
    Whole,
    /// Lines from the first number to the second, both counted, of as many as the third says.
    Lines(usize, usize, usize),
}

/// What a change needs to have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any part: the change names what it replaces.
    Part,
    /// Everything: the change replaces all of it.
    Whole,
}

/// A file of a workspace, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FileKey {
    pub(crate) workspace: String,
    pub(crate) path: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    hash: ContentHash,
    /// Lines that were shown, sorted and apart from each other; none if all were.
    seen: Option<Vec<(usize, usize)>>,
    lines: usize,
    at: u64,
}

/// What a session has read.
#[derive(Debug, Default)]
pub(crate) struct ReadTracker {
    entries: HashMap<FileKey, Entry>,
    clock: u64,
}

impl ReadTracker {
    /// Returns everything that was read, to be remembered elsewhere.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self.entries.iter().collect::<Vec<_>>())
    }

    /// Remembers what was remembered elsewhere. What cannot be understood has to be read again.
    pub(crate) fn from_json(value: serde_json::Value) -> Self {
        let entries: Vec<(FileKey, Entry)> = serde_json::from_value(value).unwrap_or_default();
        let clock = entries.iter().map(|(_, entry)| entry.at).max().unwrap_or(0);
        Self { entries: entries.into_iter().collect(), clock }
    }

    /// Remembers what was shown of a file.
    pub(crate) fn saw(&mut self, key: FileKey, hash: ContentHash, seen: &Seen) {
        self.clock += 1;
        let at = self.clock;
        let known = self.entries.remove(&key).filter(|entry| entry.hash == hash);
        let entry = match (seen, known) {
            (Seen::Whole, _) => Entry { hash, seen: None, lines: 0, at },
            (_, Some(Entry { seen: None, lines, .. })) => Entry { hash, seen: None, lines, at },
            (Seen::Lines(first, last, lines), known) => {
                let mut ranges = known.and_then(|entry| entry.seen).unwrap_or_default();
                add(&mut ranges, (*first, *last));
                let whole = ranges == [(1, *lines)];
                Entry { hash, seen: (!whole).then_some(ranges), lines: *lines, at }
            }
        };
        self.entries.insert(key, entry);
        self.forget();
    }

    /// Remembers that the session itself changed a file. What it had seen of the rest, it still has.
    pub(crate) fn changed(&mut self, key: &FileKey, hash: ContentHash) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            (entry.hash, entry.at) = (hash, self.clock);
        }
    }

    /// Remembers a file under another name.
    pub(crate) fn moved(&mut self, old: &FileKey, new: FileKey) {
        if let Some(entry) = self.entries.remove(old) {
            self.entries.insert(new, entry);
        }
    }

    /// Forgets a file that is no longer there.
    pub(crate) fn gone(&mut self, key: &FileKey) {
        self.entries.remove(key);
    }

    /// Returns what was read of a file, and refuses a change to one that was not.
    pub(crate) fn read_before<'a>(
        &self,
        key: &FileKey,
        doing: &'a str,
        shown: &'a str,
    ) -> Result<ReadBefore<'a>, Failure> {
        match self.entries.get(key) {
            Some(entry) => Ok(ReadBefore { entry: entry.clone(), doing, shown }),
            None => Err(refusal(Code::NotRead, doing, shown, "Read it first")),
        }
    }

    fn forget(&mut self) {
        if self.entries.len() > MAX_ENTRIES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| self.entries.remove(&key));
        }
    }
}

/// What a session had read of a file when it began to change it.
#[derive(Debug)]
pub(crate) struct ReadBefore<'a> {
    entry: Entry,
    doing: &'a str,
    shown: &'a str,
}

impl ReadBefore<'_> {
    /// Refuses the change if the file has changed since it was read, or too little of it was read.
    pub(crate) fn must_be(&self, hash: ContentHash, need: Need) -> Result<(), Failure> {
        let refuse = |code, reason: &str| Err(refusal(code, self.doing, self.shown, reason));
        if self.entry.hash != hash {
            return refuse(
                Code::ChangedSinceRead,
                "it has changed since it was read; Read it again",
            );
        }
        match (&self.entry.seen, need) {
            (None, _) | (Some(_), Need::Part) => Ok(()),
            (Some(ranges), Need::Whole) => {
                let read = ranges.iter().map(|(first, last)| format!("{first}–{last}"));
                let read = read.collect::<Vec<_>>().join(", ");
                let lines = self.entry.lines;
                let reason = format!("only lines {read} of {lines} were read; Read the rest first");
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

/// Adds a range to others and joins those that touch.
fn add(ranges: &mut Vec<(usize, usize)>, new: (usize, usize)) {
    ranges.push(new);
    ranges.sort_unstable();
    let mut joined: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for &(first, last) in ranges.iter() {
        match joined.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    *ranges = joined;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn key() -> FileKey {
        FileKey::new("w", Path::new("a"))
    }

    fn check(tracker: &ReadTracker, text: &str, need: Need) -> Result<(), String> {
        let hash = ContentHash::of(text.as_bytes());
        let read = tracker.read_before(&key(), "overwrite", "a");
        read.and_then(|read| read.must_be(hash, need)).map_err(|failure| failure.message)
    }

    #[test]
    fn a_file_is_known_by_what_was_read_and_not_by_its_time() {
        let mut tracker = ReadTracker::default();
        assert_eq!(
            check(&tracker, "x", Need::Part).unwrap_err(),
            "refusing to overwrite a: Read it first"
        );
        tracker.saw(key(), ContentHash::of(b"x"), &Seen::Whole);
        assert_eq!(check(&tracker, "x", Need::Whole), Ok(()));
        assert_eq!(
            check(&tracker, "y", Need::Part).unwrap_err(),
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
        tracker.saw(key(), hash, &Seen::Lines(1, 10, 30));
        assert_eq!(check(&tracker, "x", Need::Part), Ok(()));
        assert_eq!(
            check(&tracker, "x", Need::Whole).unwrap_err(),
            "refusing to overwrite a: only lines 1–10 of 30 were read; Read the rest first"
        );
        tracker.saw(key(), hash, &Seen::Lines(21, 30, 30));
        tracker.saw(key(), hash, &Seen::Lines(9, 20, 30));
        assert_eq!(check(&tracker, "x", Need::Whole), Ok(()));
        tracker.saw(key(), hash, &Seen::Lines(1, 2, 30));
        assert_eq!(check(&tracker, "x", Need::Whole), Ok(()), "what was seen stays seen");
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let mut tracker = ReadTracker::default();
        for number in 0..=MAX_ENTRIES {
            let key = FileKey::new("w", Path::new(&number.to_string()));
            tracker.saw(key, ContentHash::of(b"x"), &Seen::Whole);
        }
        assert_eq!(tracker.entries.len(), MAX_ENTRIES);
    }
}
