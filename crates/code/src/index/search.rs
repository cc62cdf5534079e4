//! Search for symbols by words: BM25 over several fields.
//!
//! A symbol is a document with five fields: its name, the path of its file, its signature, the comment above it, and
//! its body. Every answer counts the frequencies of the query's words anew, over what the index holds at that
//! time, so that a rebuilt index gives the same answers as one that followed each change.
#![expect(clippy::cast_precision_loss, reason = "counts of names, far below 2^52")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_domain::suggest;

use super::file_entry::{Indexed, IndexedSymbol, Postings};
use super::names::{NameId, Names};
use super::{Definition, State};
use crate::language::Language;
use crate::symbol::{NamePath, SymbolKind};
use crate::words;

/// The most words of a query; further ones are left out.
const MAX_QUERY_WORDS: usize = 16;

/// The most hits.
pub const MAX_HITS: usize = 100;

/// The parameters of BM25.
const SATURATION: f64 = 1.5;
const LENGTH_WEIGHT: f64 = 0.75;

/// The weights of a word in each field.
const NAME_WEIGHT: f64 = 6.0;
const PATH_WEIGHT: f64 = 1.5;
const SIGNATURE_WEIGHT: f64 = 2.0;
const COMMENT_WEIGHT: f64 = 2.0;
const BODY_WEIGHT: f64 = 1.0;

/// The factor for a symbol whose name or name path is the query.
const EXACT_FACTOR: f64 = 3.0;

/// The factor for keys, headings and selectors, which are asked for less often than code.
const DATA_FACTOR: f64 = 0.5;

/// The factor for a definition without a body, and for the members of a type.
const MINOR_FACTOR: f64 = 0.8;

/// The edit distance up to which a name is suggested in place of an unknown one.
const MAX_DISTANCE: usize = 3;

/// The names that are suggested in place of an unknown one.
const MAX_NEAR: usize = 5;

/// A search for symbols.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// The words.
    pub query: String,
    /// Only files below this directory, or this file; all if it is empty.
    pub below: PathBuf,
    /// Only symbols of these kinds; all if there are none.
    pub kinds: Vec<SymbolKind>,
    /// Only files of this language.
    pub language: Option<Language>,
    /// The most hits, up to [`MAX_HITS`].
    pub limit: usize,
}

/// A symbol that fits a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The symbol.
    pub definition: Definition,
    /// The better, the higher; comparable within one answer.
    pub score: f64,
}

/// For each name, the words of the query that it has, as bits.
struct WordsOfNames {
    bits: Vec<u16>,
    count: usize,
}

impl WordsOfNames {
    fn of(names: &Names, query: &[String]) -> Self {
        let mut bits = vec![0; names.len()];
        for (place, word) in query.iter().enumerate() {
            for name in names.with_word(word) {
                bits[*name as usize] |= 1 << place;
            }
        }
        Self { bits, count: query.len() }
    }

    fn of_name(&self, name: NameId) -> u16 {
        self.bits.get(name as usize).copied().unwrap_or(0)
    }

    /// Calls `take` with each word of the query that a name has.
    fn each(&self, name: NameId, mut take: impl FnMut(usize)) {
        let bits = self.of_name(name);
        if bits != 0 {
            (0..self.count).filter(|place| bits & (1 << place) != 0).for_each(&mut take);
        }
    }
}

/// The weighted frequencies of the query's words in one symbol.
type Frequencies = [f64; MAX_QUERY_WORDS];

struct Candidate<'a> {
    file: (&'a Path, Language, &'a Indexed),
    index: usize,
    frequencies: Frequencies,
}

pub(super) fn search(state: &State, request: &SearchRequest) -> Vec<SearchHit> {
    let mut query = words::of_query(&request.query);
    query.truncate(MAX_QUERY_WORDS);
    if query.is_empty() {
        return Vec::new();
    }
    let words = WordsOfNames::of(&state.names, &query);
    let mut candidates = Vec::new();
    let (mut symbols, mut lines) = (0_usize, 0_usize);
    for file in state.parsed() {
        let (path, language, content) = file;
        if !path.starts_with(&request.below)
            || request.language.is_some_and(|wanted| wanted != language)
        {
            continue;
        }
        symbols += content.symbols.len();
        lines += content.symbols.iter().map(length).sum::<usize>();
        collect(&words, &query, file, &mut candidates);
    }
    let average = (lines as f64 / symbols.max(1) as f64).max(1.0);
    let rarity = rarity(&candidates, symbols, query.len());
    let is_name = !request.query.trim().contains(char::is_whitespace);
    let exact = NamePath::parse(&request.query).filter(|_| is_name);
    let mut scored: Vec<(f64, Candidate<'_>)> = candidates
        .into_iter()
        .filter(|candidate| {
            let kind = candidate.file.2.symbols[candidate.index].kind;
            request.kinds.is_empty() || request.kinds.contains(&kind)
        })
        .map(|candidate| (score(state, &candidate, &rarity, average, exact.as_ref()), candidate))
        .collect();
    // Equal scores are in path and line order.
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.truncate(request.limit.clamp(1, MAX_HITS));
    let hit = |(score, candidate): (f64, Candidate<'_>)| SearchHit {
        definition: state.definition(candidate.file, candidate.index),
        score,
    };
    scored.into_iter().map(hit).collect()
}

fn length(symbol: &IndexedSymbol) -> usize {
    (symbol.last.saturating_sub(symbol.first) + 1) as usize
}

/// Adds the symbols of a file that have a word of the query.
fn collect<'a>(
    words: &WordsOfNames,
    query: &[String],
    file: (&'a Path, Language, &'a Indexed),
    candidates: &mut Vec<Candidate<'a>>,
) {
    let (path, _, content) = file;
    let mut found: HashMap<usize, Frequencies> = HashMap::new();
    let mut add = |index: usize, place: usize, weight: f64| {
        found.entry(index).or_insert([0.0; MAX_QUERY_WORDS])[place] += weight;
    };
    for (index, symbol) in content.symbols.iter().enumerate() {
        words.each(symbol.name, |place| add(index, place, NAME_WEIGHT));
    }
    each_line(words, &content.uses, |line, place| {
        let Some(index) = content.enclosing(line) else { return };
        let symbol = &content.symbols[index];
        let weight = if line < symbol.body_line { SIGNATURE_WEIGHT } else { BODY_WEIGHT };
        add(index, place, weight);
    });
    each_line(words, &content.comment_words, |line, place| {
        let Some(index) = content.enclosing(line) else { return };
        let symbol = &content.symbols[index];
        // The comment above, or a documentation string at the start of the body.
        let weight = if line <= symbol.body_line { COMMENT_WEIGHT } else { BODY_WEIGHT };
        add(index, place, weight);
    });
    if found.is_empty() {
        return;
    }
    let in_path = words_in_path(path, query);
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable_by_key(|(index, _)| *index);
    for (index, mut frequencies) in found {
        for (frequency, in_path) in frequencies.iter_mut().zip(&in_path) {
            *frequency += if *in_path { PATH_WEIGHT } else { 0.0 };
        }
        candidates.push(Candidate { file, index, frequencies });
    }
}

fn each_line(words: &WordsOfNames, postings: &Postings, mut take: impl FnMut(u32, usize)) {
    for (at, name) in postings.names.iter().enumerate() {
        if words.of_name(*name) == 0 {
            continue;
        }
        for line in postings.lines_at(at) {
            words.each(*name, |place| take(line, place));
        }
    }
}

fn words_in_path(path: &Path, query: &[String]) -> Vec<bool> {
    let mut found = vec![false; query.len()];
    words::of_text(&path.to_string_lossy(), |word| {
        if let Some(place) = query.iter().position(|wanted| wanted == word) {
            found[place] = true;
        }
    });
    found
}

/// Returns how much each word tells: the fewer symbols have it, the more.
fn rarity(candidates: &[Candidate<'_>], symbols: usize, count: usize) -> Vec<f64> {
    let having = |place: usize| {
        candidates.iter().filter(|candidate| candidate.frequencies[place] > 0.0).count()
    };
    let of = |place: usize| {
        let having = having(place) as f64;
        (1.0 + (symbols as f64 - having + 0.5) / (having + 0.5)).ln()
    };
    (0..count).map(of).collect()
}

fn score(
    state: &State,
    candidate: &Candidate<'_>,
    rarity: &[f64],
    average: f64,
    exact: Option<&NamePath>,
) -> f64 {
    let (path, language, content) = candidate.file;
    let symbol = &content.symbols[candidate.index];
    let relative = length(symbol) as f64 / average;
    let norm = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * relative.min(4.0);
    let saturation = SATURATION * norm;
    let sum: f64 = candidate
        .frequencies
        .iter()
        .zip(rarity)
        .map(|(frequency, rarity)| rarity * frequency / (frequency + saturation))
        .sum();
    let is_exact = exact
        .is_some_and(|exact| exact.matches_in(&content.path(candidate.index, &state.names), path));
    let mut factor = if is_exact { EXACT_FACTOR } else { 1.0 };
    if !language.is_program() {
        factor *= DATA_FACTOR;
    }
    if symbol.kind.is_member() || (symbol.kind.is_callable() && !symbol.has_body) {
        factor *= MINOR_FACTOR;
    }
    sum * factor
}

pub(super) fn near(state: &State, name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = Vec::new();
    for (_, _, content) in state.parsed() {
        for symbol in &content.symbols {
            let known = state.names.text(symbol.name);
            let same = known.to_lowercase();
            let distance = if same == lower {
                0
            } else if same.contains(&lower) {
                1
            } else if known.len().abs_diff(name.len()) <= MAX_DISTANCE {
                suggest::distance(&same, &lower).map_or(usize::MAX, |edits| edits + 1)
            } else {
                continue;
            };
            if distance <= MAX_DISTANCE {
                near.push((distance, known));
            }
        }
    }
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MAX_NEAR).map(|(_, name)| name.to_owned()).collect()
}
