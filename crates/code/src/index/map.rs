//! The map of a repository: its most connected symbols.
//!
//! Files are the nodes of a graph. A file that uses a name points to the files that define it, the more the more often it
//! uses it and the fewer files define it. A method counts where the name of its type stands too, since half of all methods
//! are called like those of a standard library, and a private definition counts within its directory. Uses in the file
//! of the definition count only where that file is in focus. The rank of a file is that of a reader who follows these
//! edges at random and now and then starts anew, at the files in focus if there are any; the rank of a symbol is what
//! flows to its file over its name.
#![expect(clippy::cast_precision_loss, reason = "counts of names, far below 2^52")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::file_entry::Indexed;
use super::names::NameId;
use super::{Definition, State};
use crate::language::Language;
use crate::symbol::SymbolKind;

/// The steps of the random reader; the ranks of repositories hardly change after these.
const STEPS: usize = 24;

/// The part of the reader's steps that follow an edge.
const FOLLOWED: f64 = 0.85;

/// A name that more files define tells nothing about any of them: `new`, `run`, `main`.
const MAX_DEFINERS: usize = 4;

/// A lower-case name of no type that a larger part of the files use is a word of the language or its library: `format`,
/// `test`.
const MAX_USED_SHARE: f64 = 0.25;

/// In fewer files a share says nothing.
const MIN_FILES_FOR_SHARE: usize = 20;

/// Shorter names are mostly local.
const MIN_NAME_BYTES: usize = 3;

/// The factor for names that begin with an underscore, which are private by habit.
const PRIVATE_FACTOR: f64 = 0.1;

/// The factor for names of several words, which seldom mean two things.
const COMPOUND_FACTOR: f64 = 4.0;

/// The factor for names that the request mentions.
const MENTIONED_FACTOR: f64 = 10.0;

/// The factor for uses in the files in focus.
const FOCUS_FACTOR: f64 = 20.0;

/// Directories of code that others wrote, with the factor of its symbols.
const VENDORED: [&str; 7] =
    ["deps", "extern", "external", "third_party", "third-party", "thirdparty", "vendor"];
const VENDORED_FACTOR: f64 = 0.05;

/// Directories of tests, with the factor of their symbols.
const TESTS: [&str; 4] = ["spec", "test", "testing", "tests"];
const TEST_FACTOR: f64 = 0.3;

/// A question for the most connected symbols.
#[derive(Clone, Debug, Default)]
pub struct MapRequest {
    /// Files or directories whose neighbourhood is asked for; the whole repository if there are none.
    pub focus: Vec<PathBuf>,
    /// Names that matter to the caller.
    pub mentioned: Vec<String>,
    /// The most symbols.
    pub limit: usize,
}

/// A symbol of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The symbol.
    pub definition: Definition,
    /// Comparable within one answer; the higher, the more connected.
    pub rank: f64,
    /// The number of files that use its name.
    pub used_by: usize,
}

type File<'a> = (&'a Path, Language, &'a Indexed);

/// A use of a name: the file that defines it, the symbol there, and the weight.
struct Edge {
    to: usize,
    symbol: usize,
    weight: f64,
}

pub(super) fn rank(state: &State, request: &MapRequest) -> Vec<MapEntry> {
    let files: Vec<File<'_>> =
        state.parsed().filter(|(_, language, _)| language.is_program()).collect();
    if files.is_empty() {
        return Vec::new();
    }
    let in_focus: Vec<bool> = files
        .iter()
        .map(|(path, _, _)| request.focus.iter().any(|focus| path.starts_with(focus)))
        .collect();
    let edges = edges(state, &files, &in_focus, &request.mentioned);
    let ranks = ranks(&edges, &in_focus);
    let mut symbols: HashMap<(usize, usize), (f64, usize)> = HashMap::new();
    for (from, edges) in edges.iter().enumerate() {
        let total: f64 = edges.iter().map(|edge| edge.weight).sum();
        for edge in edges {
            let entry = symbols.entry((edge.to, edge.symbol)).or_default();
            entry.0 += ranks[from] * edge.weight / total;
            entry.1 += usize::from(edge.to != from);
        }
    }
    // Of two symbols to which as much flows, the one that more files use says more about the repository.
    for ((file, _), (rank, used_by)) in &mut symbols {
        let factor = if in_focus[*file] { 1.0 } else { place_factor(files[*file].0) };
        *rank *= factor * (*used_by as f64).max(1.0).sqrt();
    }
    let mut ranked: Vec<_> = symbols.into_iter().collect();
    // Equal ranks are in path and line order.
    ranked.sort_by(|one, other| other.1.0.total_cmp(&one.1.0).then(one.0.cmp(&other.0)));
    ranked.truncate(request.limit);
    let entry = |((file, symbol), (rank, used_by)): ((usize, usize), (f64, usize))| MapEntry {
        definition: state.definition(files[file], symbol),
        rank,
        used_by,
    };
    ranked.into_iter().map(entry).collect()
}

fn place_factor(file: &Path) -> f64 {
    let is_below = |names: &[&str]| {
        let mut above = file.parent().into_iter().flat_map(Path::components);
        above.any(|part| part.as_os_str().to_str().is_some_and(|part| names.contains(&part)))
    };
    let vendored = if is_below(&VENDORED) { VENDORED_FACTOR } else { 1.0 };
    if is_below(&TESTS) { vendored * TEST_FACTOR } else { vendored }
}

fn is_ranked(kind: SymbolKind) -> bool {
    !matches!(
        kind,
        SymbolKind::Impl
            | SymbolKind::Field
            | SymbolKind::Variant
            | SymbolKind::Module
            | SymbolKind::Variable
    )
}

/// Tells whether a use of a name in one file can mean a definition in another.
fn can_mean(files: &[File<'_>], from: usize, (to, index): (usize, usize)) -> bool {
    let (user_path, user_language, user) = files[from];
    let (path, language, content) = files[to];
    let symbol = &content.symbols[index];
    if from == to {
        return true;
    }
    if !user_language.is_related(language) {
        return false;
    }
    if !symbol.is_exported && user_path.parent() != path.parent() {
        return false;
    }
    let container = symbol.receiver().or_else(|| {
        let parent = symbol.parent().filter(|_| symbol.kind == SymbolKind::Method)?;
        Some(content.symbols[parent].name)
    });
    container.is_none_or(|container| user.uses.names.binary_search(&container).is_ok())
}

/// Returns the definitions of each name that few files define.
fn definers(files: &[File<'_>]) -> HashMap<NameId, Vec<(usize, usize)>> {
    let mut definers: HashMap<NameId, Vec<(usize, usize)>> = HashMap::new();
    for (file, (_, _, content)) in files.iter().enumerate() {
        for (index, symbol) in content.symbols.iter().enumerate() {
            if is_ranked(symbol.kind) {
                definers.entry(symbol.name).or_default().push((file, index));
            }
        }
    }
    definers.retain(|_, places| {
        let has_body = |(file, index): &(usize, usize)| files[*file].2.symbols[*index].has_body;
        // A function counts where it is defined, not where a header declares it.
        if places.iter().any(has_body) {
            let is_callable =
                |(file, index): &(usize, usize)| files[*file].2.symbols[*index].kind.is_callable();
            places.retain(|place| has_body(place) || !is_callable(place));
        }
        places.len() <= MAX_DEFINERS
    });
    definers
}

fn edges(
    state: &State,
    files: &[File<'_>],
    in_focus: &[bool],
    mentioned: &[String],
) -> Vec<Vec<Edge>> {
    let definers = definers(files);
    let users = users(files);
    let factors: HashMap<NameId, f64> = definers
        .iter()
        .map(|(name, places)| {
            let text = state.names.text(*name);
            let share = users.get(name).copied().unwrap_or(0) as f64 / files.len() as f64;
            let is_type = |(file, index): &(usize, usize)| {
                files[*file].2.symbols[*index].kind.has_methods()
                    || files[*file].2.symbols[*index].kind == SymbolKind::Type
            };
            let is_common = share > MAX_USED_SHARE
                && files.len() >= MIN_FILES_FOR_SHARE
                && text.starts_with(char::is_lowercase)
                && !places.iter().any(is_type);
            (*name, if is_common { 0.0 } else { name_factor(text, mentioned) })
        })
        .collect();
    let of_file = |(from, (_, _, content)): (usize, &File<'_>)| {
        let mut edges = Vec::new();
        for (at, name) in content.uses.names.iter().enumerate() {
            let Some(places) = definers.get(name) else { continue };
            let factor = factors.get(name).copied().unwrap_or(0.0);
            if factor == 0.0 {
                continue;
            }
            // A file that defines a name itself means its own, and the definition is no use of it.
            let defined = places.iter().filter(|(file, _)| *file == from).count();
            let own = defined > 0;
            let count = content.uses.lines_at(at).count().saturating_sub(defined);
            if count == 0 || (own && !in_focus[from]) {
                continue;
            }
            let focus = if in_focus[from] { FOCUS_FACTOR } else { 1.0 };
            let weight = factor * focus * (count as f64).sqrt() / places.len() as f64;
            let meant = places
                .iter()
                .filter(|place| (!own || place.0 == from) && can_mean(files, from, **place));
            edges.extend(meant.map(|(to, symbol)| Edge {
                to: *to,
                symbol: *symbol,
                weight: if own { weight * 0.1 } else { weight },
            }));
        }
        edges
    };
    files.iter().enumerate().map(of_file).collect()
}

/// Returns the number of files that use each name.
fn users(files: &[File<'_>]) -> HashMap<NameId, usize> {
    let mut users = HashMap::new();
    for (_, _, content) in files {
        content.uses.names.iter().for_each(|name| *users.entry(*name).or_default() += 1);
    }
    users
}

fn name_factor(name: &str, mentioned: &[String]) -> f64 {
    if name.len() < MIN_NAME_BYTES {
        return 0.0;
    }
    let mut factor = 1.0;
    if name.starts_with('_') {
        factor *= PRIVATE_FACTOR;
    }
    let mut words = 0;
    crate::words::of_name(name, |_| words += 1);
    if words > 2 {
        factor *= COMPOUND_FACTOR;
    }
    if mentioned.iter().any(|wanted| wanted == name) {
        factor *= MENTIONED_FACTOR;
    }
    factor
}

fn ranks(edges: &[Vec<Edge>], in_focus: &[bool]) -> Vec<f64> {
    let focused = in_focus.iter().filter(|focus| **focus).count();
    let start: Vec<f64> = match focused {
        0 => vec![1.0 / edges.len() as f64; edges.len()],
        count => {
            in_focus.iter().map(|focus| if *focus { 1.0 / count as f64 } else { 0.0 }).collect()
        }
    };
    let totals: Vec<f64> =
        edges.iter().map(|edges| edges.iter().map(|edge| edge.weight).sum()).collect();
    let mut ranks = start.clone();
    for _ in 0..STEPS {
        let mut next: Vec<f64> = start.iter().map(|start| start * (1.0 - FOLLOWED)).collect();
        let mut lost = 0.0;
        for (from, edges) in edges.iter().enumerate() {
            if edges.is_empty() {
                lost += ranks[from];
                continue;
            }
            for edge in edges {
                next[edge.to] += FOLLOWED * ranks[from] * edge.weight / totals[from];
            }
        }
        // A file that uses nothing sends its reader back to the start.
        next.iter_mut().zip(&start).for_each(|(rank, start)| *rank += FOLLOWED * lost * start);
        ranks = next;
    }
    ranks
}
