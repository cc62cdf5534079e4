//! One file of an index: its symbols, and where each name and each word of a comment stands in it.

use std::collections::BTreeMap;

use crate::index::names::{NameId, Names};
use crate::language::Language;
use crate::symbol::{Symbol, SymbolKind};
use crate::symbols::{WordSink, collect};
use crate::syntax::{SyntaxError, SyntaxTree};
use crate::words;

/// The longest name that is kept; longer ones are generated.
const MAX_NAME_BYTES: usize = 128;

/// A parsed file before its names have ids, as a worker makes it.
#[derive(Debug)]
pub(crate) struct ParsedFile {
    symbols: Vec<Symbol>,
    pub(crate) has_error: bool,
    uses: BTreeMap<Box<str>, Vec<u32>>,
    comment_words: BTreeMap<Box<str>, Vec<u32>>,
}

/// Collects names and words with their lines.
#[derive(Debug, Default)]
struct Words {
    uses: BTreeMap<Box<str>, Vec<u32>>,
    comment_words: BTreeMap<Box<str>, Vec<u32>>,
}

impl WordSink for Words {
    fn name(&mut self, text: &str, row: usize) {
        if !text.is_empty() && text.len() <= MAX_NAME_BYTES {
            add(&mut self.uses, text, line_of(row));
        }
    }

    fn comment(&mut self, text: &str, row: usize) {
        for (offset, part) in text.lines().enumerate() {
            let line = line_of(row + offset);
            words::of_text(part, |word| add(&mut self.comment_words, word, line));
        }
    }
}

fn line_of(row: usize) -> u32 {
    u32::try_from(row + 1).unwrap_or(u32::MAX)
}

fn add(map: &mut BTreeMap<Box<str>, Vec<u32>>, text: &str, line: u32) {
    match map.get_mut(text) {
        Some(lines) => lines.push(line),
        None => {
            map.insert(text.into(), vec![line]);
        }
    }
}

impl ParsedFile {
    /// Parses a source and collects what an index keeps of it.
    pub(crate) fn of(language: Language, source: &str) -> Result<Self, SyntaxError> {
        let tree = SyntaxTree::parse(language, source)?;
        let mut found = Words::default();
        let symbols = collect(&tree, source, &mut found);
        let Words { uses, comment_words } = found;
        Ok(Self { symbols: symbols.symbols, has_error: symbols.has_error, uses, comment_words })
    }

    /// Returns the symbols, the uses of names and the words of comments with ids for names.
    pub(crate) fn indexed(self, names: &mut Names) -> Indexed {
        let symbols = self.symbols.iter().map(|symbol| IndexedSymbol::of(symbol, names)).collect();
        let uses = Postings::of(self.uses, names);
        let comment_words = Postings::of(self.comment_words, names);
        Indexed { symbols, uses, comment_words }
    }
}

/// The content of a file as an index keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) symbols: Box<[IndexedSymbol]>,
    /// Names of the program, definitions included.
    pub(crate) uses: Postings,
    pub(crate) comment_words: Postings,
}

impl Indexed {
    /// Returns the memory in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.symbols.len() * size_of::<IndexedSymbol>()
            + self.uses.bytes()
            + self.comment_words.bytes()
    }

    /// Passes each name on, some more than once.
    pub(crate) fn each_name(&self, mut take: impl FnMut(NameId)) {
        for symbol in &self.symbols {
            take(symbol.name);
            symbol.receiver().into_iter().for_each(&mut take);
        }
        self.uses.names.iter().chain(&self.comment_words.names).copied().for_each(take);
    }

    /// Gives each name its new id. New ids are in the order of the old ones, so that lists of names stay sorted.
    pub(crate) fn renumber(&mut self, new_ids: &[NameId]) {
        let renumber = |name: &mut NameId| {
            *name = new_ids.get(*name as usize).copied().unwrap_or(*name);
        };
        for symbol in &mut self.symbols {
            renumber(&mut symbol.name);
            // No receiver has a number that is no name's.
            renumber(&mut symbol.receiver);
        }
        self.uses.names.iter_mut().chain(&mut self.comment_words.names).for_each(renumber);
    }

    /// Returns the innermost symbol whose lines contain this one.
    pub(crate) fn enclosing(&self, line: u32) -> Option<usize> {
        let before = self.symbols.partition_point(|symbol| symbol.first <= line);
        let mut next = before.checked_sub(1);
        // Symbols are in the order of the source, so that those around a line are the last one that begins before
        // it, or around that one.
        while let Some(index) = next {
            let symbol = &self.symbols[index];
            if symbol.last >= line {
                return Some(index);
            }
            next = symbol.parent();
        }
        None
    }

    /// Returns the number of symbols around this one.
    pub(crate) fn depth(&self, index: usize) -> usize {
        std::iter::successors(self.symbols[index].parent(), |at| self.symbols[*at].parent()).count()
    }

    /// Returns the names from the outermost symbol to this one.
    pub(crate) fn path<'n>(&self, index: usize, names: &'n Names) -> Vec<&'n str> {
        let mut path = Vec::new();
        let mut next = Some(index);
        while let Some(index) = next {
            let symbol = &self.symbols[index];
            path.push(names.text(symbol.name));
            path.extend(symbol.receiver().map(|receiver| names.text(receiver)));
            next = symbol.parent();
        }
        path.reverse();
        path
    }
}

/// The fields of a symbol on disk.
pub(crate) type StoredSymbol = [u32; 12];

/// Stands for no parent and no receiver.
const NONE: u32 = u32::MAX;

/// A symbol of an index, in 48 bytes. Bytes count from the start of the file, lines from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexedSymbol {
    pub(crate) name: NameId,
    receiver: NameId,
    parent: u32,
    pub(crate) kind: SymbolKind,
    /// The first and the last line, with the comments above.
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// The line of the name.
    pub(crate) line: u32,
    /// The first line of the body, or the last line.
    pub(crate) body_line: u32,
    /// The start of the comments above, of the definition, and of its body or its end.
    pub(crate) start: u32,
    pub(crate) head: u32,
    pub(crate) signature_end: u32,
    pub(crate) has_body: bool,
    pub(crate) is_exported: bool,
}

impl IndexedSymbol {
    fn of(symbol: &Symbol, names: &mut Names) -> Self {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let signature_end = match &symbol.body {
            Some(body) if body.start > symbol.name_range.start => body.start,
            _ => symbol.definition.end,
        };
        Self {
            name: names.intern(&symbol.name),
            receiver: symbol.receiver.as_deref().map_or(NONE, |receiver| names.intern(receiver)),
            parent: symbol.parent.map_or(NONE, short),
            kind: symbol.kind,
            first: short(symbol.lines.0),
            last: short(symbol.lines.1),
            line: short(symbol.line),
            body_line: short(symbol.body_line),
            start: short(symbol.whole.start),
            head: short(symbol.head),
            signature_end: short(signature_end),
            has_body: symbol.body.is_some(),
            is_exported: symbol.is_exported,
        }
    }

    /// Returns the fields for a file on disk.
    pub(crate) fn stored(&self) -> StoredSymbol {
        let kind = SymbolKind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0);
        [
            self.name,
            self.receiver,
            self.parent,
            u32::try_from(kind).unwrap_or(0),
            self.first,
            self.last,
            self.line,
            self.body_line,
            self.start,
            self.head,
            self.signature_end,
            u32::from(self.has_body) | u32::from(self.is_exported) << 1,
        ]
    }

    /// Puts the fields together again; none if there is no such kind.
    pub(crate) fn of_stored(fields: &StoredSymbol) -> Option<Self> {
        let [
            name,
            receiver,
            parent,
            kind,
            first,
            last,
            line,
            body_line,
            start,
            head,
            signature_end,
            flags,
        ] = *fields;
        let kind = *SymbolKind::ALL.get(kind as usize)?;
        Some(Self {
            name,
            receiver,
            parent,
            kind,
            first,
            last,
            line,
            body_line,
            start,
            head,
            signature_end,
            has_body: flags & 1 != 0,
            is_exported: flags & 2 != 0,
        })
    }

    pub(crate) fn parent(&self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }

    pub(crate) fn receiver(&self) -> Option<NameId> {
        (self.receiver != NONE).then_some(self.receiver)
    }
}

/// The lines of names in a file: the names in order, and for each the number of its lines and the distances
/// between them, in as few bytes as each needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    pub(crate) names: Box<[NameId]>,
    /// For each name, where its lines begin.
    offsets: Box<[u32]>,
    lines: Box<[u8]>,
}

impl Postings {
    fn of(found: BTreeMap<Box<str>, Vec<u32>>, names: &mut Names) -> Self {
        let mut with_ids: Vec<_> =
            found.into_iter().map(|(name, lines)| (names.intern(&name), lines)).collect();
        with_ids.sort_unstable_by_key(|(id, _)| *id);
        let mut ids = Vec::with_capacity(with_ids.len());
        let mut offsets = Vec::with_capacity(with_ids.len());
        let mut bytes = Vec::new();
        for (id, lines) in with_ids {
            ids.push(id);
            offsets.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            put(&mut bytes, u32::try_from(lines.len()).unwrap_or(u32::MAX));
            let mut before = 0;
            for line in lines {
                // A walk visits names in the order of the source.
                put(&mut bytes, line.saturating_sub(before));
                before = line;
            }
        }
        Self { names: ids.into(), offsets: offsets.into(), lines: bytes.into() }
    }

    fn bytes(&self) -> usize {
        (self.names.len() + self.offsets.len()) * size_of::<u32>() + self.lines.len()
    }

    /// Returns the lines of a name, one for each time it stands there.
    pub(crate) fn lines(&self, name: NameId) -> Lines<'_> {
        match self.names.binary_search(&name) {
            Ok(place) => self.lines_at(place),
            Err(_) => Lines { rest: &[], left: 0, line: 0 },
        }
    }

    /// Returns the lines of the name at this place of the list.
    pub(crate) fn lines_at(&self, place: usize) -> Lines<'_> {
        let start = self.offsets.get(place).map_or(self.lines.len(), |start| *start as usize);
        let mut rest = self.lines.get(start..).unwrap_or_default();
        let left = get(&mut rest);
        Lines { rest, left, line: 0 }
    }

    /// Returns the parts for a file on disk.
    pub(crate) fn parts(&self) -> (&[NameId], &[u32], &[u8]) {
        (&self.names, &self.offsets, &self.lines)
    }

    /// Puts the parts together again.
    pub(crate) fn of_parts(names: Vec<NameId>, offsets: Vec<u32>, lines: Vec<u8>) -> Self {
        Self { names: names.into(), offsets: offsets.into(), lines: lines.into() }
    }
}

/// The lines of a name.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    left: u32,
    line: u32,
}

impl Iterator for Lines<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        self.line = self.line.saturating_add(get(&mut self.rest));
        Some(self.line)
    }
}

/// Appends a number, seven bits in each byte.
pub(crate) fn put(bytes: &mut Vec<u8>, number: u32) {
    let mut number = number;
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes a number off the front. Too short an input reads as zeros.
pub(crate) fn get(bytes: &mut &[u8]) -> u32 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn numbers_come_back_from_their_bytes() {
        let numbers = [0, 1, 127, 128, 300, 65_535, u32::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            put(&mut bytes, number);
        }
        let mut rest = bytes.as_slice();
        assert_eq!(numbers.map(|_| get(&mut rest)), numbers);
        assert_eq!(get(&mut rest), 0);
    }

    #[test]
    fn a_file_has_the_lines_of_each_name_and_the_symbol_around_a_line() {
        let source = "/// Counts apples.\nfn count(a: u8) {\n    a + a\n}\n\nfn b() { count(1) }\n";
        let mut names = Names::default();
        let file = ParsedFile::of(Language::Rust, source).unwrap().indexed(&mut names);
        let lines = |name: &str| -> Vec<u32> { file.uses.lines(names.id(name).unwrap()).collect() };
        assert_eq!(lines("count"), [2, 6]);
        assert_eq!(lines("a"), [2, 3, 3]);
        let words: Vec<u32> = file.comment_words.lines(names.id("apple").unwrap()).collect();
        assert_eq!(words, [1]);
        let at = |line| file.enclosing(line).map(|index| file.path(index, &names).join("::"));
        assert_eq!([at(1), at(4), at(6)].map(Option::unwrap_or_default), ["count", "count", "b"]);
        assert_eq!(at(5), None);
    }
}
