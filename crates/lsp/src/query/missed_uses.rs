//! Uses of a symbol that a server's own search has missed.
//!
//! After a file of another crate has changed, rust-analyzer 1.95 finds no reference inside of macros such as
//! `assert_eq!` any more, says nothing, and renames without them. It still knows what each name means when it is asked
//! about the place. So the other places with the name are asked about, one by one: the ones that mean the symbol are uses
//! that were missed, and a server that has missed one is replaced.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::time::Instant;

use super::Target;
use super::locations::Location;
use crate::fault::{Fault, QueryError, blocking};
use crate::position::Range;
use crate::protocol::{self, Lenient};
use crate::server::LanguageServer;
use crate::stamp::ReadFile;

/// Places that a server is asked about. A name that more places have is a common word.
const MAX_ASKED: usize = 60;

/// The lines of Rust that no reference is in.
const COMMENT: &str = "//";

/// The outcome of a look for missed uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MissedUses {
    These(Vec<Location>),
    /// So many places have the name that they were not asked about.
    TooMany(usize),
}

/// A place with a name: its file and byte offset.
type Occurrence = (PathBuf, usize);

/// The definitions of a place, as the server writes them.
#[derive(Debug, Default)]
struct Definitions {
    places: BTreeSet<(String, Range)>,
    /// The place is none of them itself.
    is_use: bool,
}

impl LanguageServer {
    /// Looks for uses of the symbol at a position that are not among the known ones. Nothing is missed by a server that
    /// is trusted to search.
    pub(super) async fn missed_uses(
        &self,
        target: &Target,
        known: &BTreeSet<Occurrence>,
        until: Instant,
    ) -> Result<MissedUses, Fault> {
        let nothing = MissedUses::These(Vec::new());
        if !self.definition.misses_uses {
            return Ok(nothing);
        }
        let text = &self.document(&target.path)?.text;
        let Some(name) = identifier_at(text, target.offset).map(str::to_owned) else {
            return Ok(nothing);
        };
        let mut others = self.occurrences(name.clone()).await?;
        others.retain(|place| !known.contains(place));
        others.retain(|(path, offset)| {
            *path != target.path || !(*offset..=offset + name.len()).contains(&target.offset)
        });
        if others.len() > MAX_ASKED {
            return Ok(MissedUses::TooMany(others.len()));
        }
        if others.is_empty() {
            return Ok(nothing);
        }
        let meant = self.definitions(&target.path, target.offset, until).await?;
        let mut missed = Vec::new();
        for (path, offset) in others {
            let found = self.definitions(&path, offset, until).await?;
            if found.is_use && found.places.iter().any(|one| meant.places.contains(one)) {
                missed.push((path, offset));
            }
        }
        self.located(missed, name.len()).await.map(MissedUses::These)
    }

    /// Finds a name in the sources that the server knows, comments aside.
    async fn occurrences(&self, name: String) -> Result<Vec<Occurrence>, Fault> {
        let files = self.files.try_clone().map_err(QueryError::from)?;
        let (known, _) = self.documents.known();
        let definition = self.definition;
        let work = move || {
            let sources = known.keys().filter(|path| definition.is_source(path));
            let found = sources.filter_map(|path| {
                let text = ReadFile::read(&files, path).ok()?.into_text()?;
                let offsets = words(&text, &name).map(|offset| (path.clone(), offset));
                Some(offsets.collect::<Vec<_>>())
            });
            Ok::<_, QueryError>(found.flatten().collect())
        };
        Ok(blocking(work).await?)
    }

    async fn definitions(
        &self,
        path: &Path,
        offset: usize,
        until: Instant,
    ) -> Result<Definitions, Fault> {
        let read = self.read([path.to_owned()].into()).await?;
        let Some(text) = read.get(path).and_then(|read| read.text()) else {
            return Ok(Definitions::default());
        };
        let position = self.index(text).position(offset);
        let uri = self.documents.uri(path);
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        let result = self.request("textDocument/definition", &params, until).await?;
        let found = Lenient::read(result, protocol::Location::read).items;
        let places: BTreeSet<_> = found.into_iter().map(|one| (one.uri, one.range)).collect();
        let is_use = places.iter().all(|(of, range)| *of != uri || range.start != position);
        Ok(Definitions { places, is_use })
    }

    async fn located(
        &self,
        places: Vec<Occurrence>,
        length: usize,
    ) -> Result<Vec<Location>, Fault> {
        let read = self.read(places.iter().map(|(path, _)| path.clone()).collect()).await?;
        let located = places.into_iter().filter_map(|(path, offset)| {
            let text = read.get(&path)?.text()?;
            let index = self.index(text);
            let (start, end) = (index.position(offset), index.position(offset + length));
            let range = index.text_range(Range { start, end })?;
            Some(Location::Inside { path, range })
        });
        Ok(located.collect())
    }
}

/// Returns the identifier around an offset.
fn identifier_at(text: &str, offset: usize) -> Option<&str> {
    let offset = text.floor_char_boundary(offset);
    let start = text[..offset]
        .rfind(|c| !is_part(c))
        .map_or(0, |last| last + text[last..].chars().next().map_or(1, char::len_utf8));
    let end = text[offset..].find(|c| !is_part(c)).map_or(text.len(), |length| offset + length);
    (start < end).then(|| &text[start..end])
}

/// Returns the offsets of a whole word, but for those in lines that are comments.
fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let (before, after) = (&text[..*offset], &text[offset + word.len()..]);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        let line = before.rsplit('\n').next().unwrap_or_default();
        is_whole && !line.trim_start().starts_with(COMMENT)
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn whole_words_outside_of_comments_are_found() {
        let text = "fn one() {}\n// one\n  /// one\nlet none = one + one_more; // two one\n";
        let found: Vec<_> = words(text, "one").collect();
        assert_eq!(found, [3, 40, 63]);
    }

    #[test]
    fn the_identifier_around_an_offset_is_the_whole_one() {
        let text = "(\u{e9}t\u{e9}_1+b)";
        for (offset, name) in [
            (1, Some("\u{e9}t\u{e9}_1")),
            (2, Some("\u{e9}t\u{e9}_1")),
            (8, Some("\u{e9}t\u{e9}_1")),
            (9, Some("b")),
            (11, None),
        ] {
            assert_eq!(identifier_at(text, offset), name, "{offset}");
        }
    }
}
