//! An index as bytes, so that a server that starts again need not parse everything anew.
//!
//! The bytes are a cache: each file's change key is in them, and is compared with the tree before the first answer.
//! A version that is not the current one, a wrong checksum or any other defect makes them void, and the index is built
//! again.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_fsroot::Identity;

use super::file_entry::{Indexed, IndexedSymbol, Postings, StoredSymbol, get, put};
use super::names::Names;
use super::{ChangeKey, FileEntry, Outcome, State, SymbolIndex};
use crate::language::Language;

/// The start of the bytes. The number changes with their format, and with the tables of definitions, so that
/// symbols which an older version did not know are found after an upgrade.
const MAGIC: &[u8; 16] = b"carrel-symbols-2";

/// The length of the checksum.
const CHECKSUM: usize = blake3::OUT_LEN;

/// Why the bytes of an index are void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredIndexError {
    /// They are of another version, or of something else.
    #[error("the stored index is of another version")]
    Version,
    /// They are incomplete or changed.
    #[error("the stored index is damaged")]
    Damaged,
}

impl SymbolIndex {
    /// Returns the index as bytes. Files that are not parsed are left out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let view = self.view();
        let mut bytes = MAGIC.to_vec();
        let state = &*view.state;
        number(&mut bytes, state.names.len());
        for id in 0..state.names.len() {
            text(&mut bytes, state.names.text(u32::try_from(id).unwrap_or(u32::MAX)).as_bytes());
        }
        let parsed = state.files.iter().filter_map(|(path, entry)| match &entry.outcome {
            Outcome::Parsed { content, has_error } => Some((path, entry, content, *has_error)),
            Outcome::NoRoom { .. } | Outcome::Skipped(_) => None,
        });
        let parsed: Vec<_> = parsed.collect();
        number(&mut bytes, parsed.len());
        for (path, entry, content, has_error) in parsed {
            text(&mut bytes, path.as_os_str().as_bytes());
            text(&mut bytes, entry.language.as_str().as_bytes());
            key(&mut bytes, &entry.key);
            let content_hash = entry.content;
            bytes.push(u8::from(has_error) | u8::from(content_hash.is_some()) << 1);
            long(&mut bytes, content_hash.unwrap_or(0));
            number(&mut bytes, content.symbols.len());
            for symbol in &content.symbols {
                symbol.stored().iter().for_each(|field| put(&mut bytes, *field));
            }
            postings(&mut bytes, &content.uses);
            postings(&mut bytes, &content.comment_words);
        }
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    /// Reads an index from its bytes.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, StoredIndexError> {
        let body = bytes.strip_prefix(MAGIC).ok_or(StoredIndexError::Version)?;
        let end = body.len().checked_sub(CHECKSUM).ok_or(StoredIndexError::Damaged)?;
        let (body, checksum) = body.split_at(end);
        if blake3::hash(&bytes[..bytes.len() - CHECKSUM]).as_bytes() != checksum {
            return Err(StoredIndexError::Damaged);
        }
        let state = Reader { rest: body }.state().ok_or(StoredIndexError::Damaged)?;
        Ok(Self { state: state.into(), ..Self::default() })
    }
}

fn number(bytes: &mut Vec<u8>, value: usize) {
    put(bytes, u32::try_from(value).unwrap_or(u32::MAX));
}

fn text(bytes: &mut Vec<u8>, value: &[u8]) {
    number(bytes, value.len());
    bytes.extend_from_slice(value);
}

fn long(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn time(bytes: &mut Vec<u8>, value: SystemTime) {
    let since = value.duration_since(UNIX_EPOCH).unwrap_or_default();
    long(bytes, since.as_secs());
    put(bytes, since.subsec_nanos());
}

fn key(bytes: &mut Vec<u8>, key: &ChangeKey) {
    long(bytes, key.identity.device);
    long(bytes, key.identity.inode);
    long(bytes, key.size);
    time(bytes, key.modified);
    time(bytes, key.changed);
}

fn postings(bytes: &mut Vec<u8>, postings: &Postings) {
    let (names, offsets, lines) = postings.parts();
    number(bytes, names.len());
    names.iter().chain(offsets).for_each(|value| put(bytes, *value));
    text(bytes, lines);
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn state(mut self) -> Option<State> {
        let mut names = Names::default();
        for _ in 0..self.number()? {
            let name = self.text()?;
            names.intern(std::str::from_utf8(&name).ok()?);
        }
        let mut state = State { names, ..State::default() };
        for _ in 0..self.number()? {
            let path = PathBuf::from(OsString::from_vec(self.text()?));
            let entry = self.entry()?;
            state.bytes += entry.bytes(&path);
            state.files.insert(path, entry);
        }
        self.rest.is_empty().then_some(state)
    }

    fn entry(&mut self) -> Option<FileEntry> {
        let language = self.text()?;
        let language = Language::of_name(std::str::from_utf8(&language).ok()?)?;
        let key = self.key()?;
        let flags = *self.bytes(1)?.first()?;
        let hash = self.long()?;
        let symbols = (0..self.number()?).map(|_| self.symbol()).collect::<Option<Vec<_>>>()?;
        let (uses, comment_words) = (self.postings()?, self.postings()?);
        let content = Indexed { symbols: symbols.into(), uses, comment_words };
        Some(FileEntry {
            language,
            key,
            content: (flags & 2 != 0).then_some(hash),
            outcome: Outcome::Parsed { content, has_error: flags & 1 != 0 },
        })
    }

    fn symbol(&mut self) -> Option<IndexedSymbol> {
        let mut fields = StoredSymbol::default();
        for field in &mut fields {
            if self.rest.is_empty() {
                return None;
            }
            *field = get(&mut self.rest);
        }
        IndexedSymbol::of_stored(&fields)
    }

    fn postings(&mut self) -> Option<Postings> {
        let count = self.number()?;
        // Each number takes a byte at least, so that a wrong count ends here.
        (count <= self.rest.len()).then_some(())?;
        let mut take =
            |count: usize| -> Vec<u32> { (0..count).map(|_| get(&mut self.rest)).collect() };
        let (names, offsets) = (take(count), take(count));
        let lines = self.text()?;
        Some(Postings::of_parts(names, offsets, lines))
    }

    fn key(&mut self) -> Option<ChangeKey> {
        let identity = Identity { device: self.long()?, inode: self.long()? };
        Some(ChangeKey {
            identity,
            size: self.long()?,
            modified: self.time()?,
            changed: self.time()?,
        })
    }

    fn time(&mut self) -> Option<SystemTime> {
        let seconds = self.long()?;
        let nanos = get(&mut self.rest);
        UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
    }

    fn number(&mut self) -> Option<usize> {
        (!self.rest.is_empty()).then(|| get(&mut self.rest) as usize)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.number()?;
        self.bytes(length).map(<[u8]>::to_vec)
    }

    fn long(&mut self) -> Option<u64> {
        let bytes = self.bytes(size_of::<u64>())?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}
