//! The sources that are indexed.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use carrel_code::Language;
use serde_json::json;

use super::Caller;
use crate::Fault;
use crate::measure::{Samples, timed, with_warm_up};

/// Larger files are generated tables. The limit keeps trees like those that people write.
const MAX_FILE_BYTES: u64 = 300_000;

/// Words that are in the names of any collection of crates, and a pattern for lines with one of them.
pub(super) const QUERY: &str = "parse error position";
pub(super) const QUERY_PATTERN: &str = "parse|error|position";

/// A name with underscores that is a word of the language.
const NOT_RENAMED: &str = "macro_rules";

/// A tree of sources.
pub(super) struct Tree {
    pub(super) path: PathBuf,
    pub(super) files: usize,
    pub(super) bytes: u64,
    names: Vec<PathBuf>,
}

impl Tree {
    /// Copies so many bytes of fetched crates, again and again with other names if there are not so many; none if
    /// there are no crates.
    pub(super) fn build(top: &Path, bytes: u64) -> Result<Option<Self>, Fault> {
        let Some(all) = fetched()? else { return Ok(None) };
        let mut tree = Self { path: top.canonicalize()?, files: 0, bytes: 0, names: Vec::new() };
        for round in 0.. {
            for (from, name) in &all {
                if tree.bytes >= bytes {
                    rustix::fs::syncfs(std::fs::File::open(top)?)?;
                    return Ok(Some(tree));
                }
                tree.add(from, name, round)?;
            }
        }
        Ok(Some(tree))
    }

    fn add(&mut self, from: &Path, name: &Path, round: usize) -> Result<(), Fault> {
        let Ok(text) = String::from_utf8(std::fs::read(from)?) else { return Ok(()) };
        let text = if round == 0 { text } else { renamed(&text, round) };
        let name = Path::new(&format!("round-{round}")).join(name);
        let path = self.path.join(&name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
        std::fs::write(&path, &text)?;
        self.files += 1;
        self.bytes += text.len() as u64;
        self.names.push(name);
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a size is shown with one decimal")]
    pub(super) fn megabytes(&self) -> f64 {
        self.bytes as f64 / 1e6
    }

    /// Reads all files.
    pub(super) fn read(&self) -> io::Result<u64> {
        let read = |name| Ok(std::fs::read(self.path.join(name))?.len() as u64);
        self.names.iter().map(read).sum()
    }

    /// Walks over all entries, as a short program would.
    pub(super) fn walks(&self, rounds: usize) -> Result<Samples, Fault> {
        let times = (0..with_warm_up(rounds)).map(|_| timed(|| crate::tree::count(&self.path)));
        Ok(Samples::new(times.collect::<Result<_, _>>()?))
    }

    /// Returns the largest file, and the function in it that a search of the index finds first.
    pub(super) fn largest_function(&self, caller: &Caller<'_>) -> Result<(String, String), Fault> {
        let size =
            |name: &&PathBuf| std::fs::metadata(self.path.join(name)).map_or(0, |file| file.len());
        let rust = |name: &&PathBuf| Language::of_path(name) == Some(Language::Rust);
        let largest = self.names.iter().filter(rust).max_by_key(size).ok_or("no file")?;
        let file = largest.to_string_lossy().into_owned();
        let arguments = json!({ "query": "fn new", "path": file, "kind": "method" });
        let answer = caller.call("search_code", &arguments)?;
        let hits = answer.structured["hits"].as_array().cloned().unwrap_or_default();
        for hit in hits {
            let symbol = hit["symbol"].as_str().unwrap_or_default().to_owned();
            let read = json!({ "symbol": symbol, "file_path": file });
            if caller.call("read_symbol", &read).is_ok() {
                return Ok((file, symbol));
            }
        }
        Err(format!("{file} has no method").into())
    }
}

/// Returns the directory of the crates that cargo has fetched.
pub(super) fn crates() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.map(|home| home.join("registry/src")).filter(|top| top.is_dir())
}

/// Returns the sources of all fetched crates in path order, with their paths below the directory of crates.
fn fetched() -> Result<Option<Vec<(PathBuf, PathBuf)>>, Fault> {
    let Some(top) = crates() else { return Ok(None) };
    let mut found = Vec::new();
    let mut directories = VecDeque::from([top.clone()]);
    while let Some(directory) = directories.pop_front() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let (path, metadata) = (entry.path(), entry.metadata()?);
            if metadata.is_dir() {
                directories.push_back(path);
            } else if metadata.is_file()
                && metadata.len() <= MAX_FILE_BYTES
                && Language::of_path(&path).is_some_and(Language::is_program)
            {
                let name = path.strip_prefix(&top)?.to_owned();
                found.push((path, name));
            }
        }
    }
    found.sort();
    Ok((!found.is_empty()).then_some(found))
}

/// Gives the names of a source that consist of several words another one, so that they are new to an index.
fn renamed(text: &str, round: usize) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(before);
        out.push_str(word);
        let is_compound = word.trim_matches('_').contains('_')
            || word
                .chars()
                .zip(word.chars().skip(1))
                .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
        if is_compound && word != NOT_RENAMED && !word.starts_with(|c: char| c.is_ascii_digit()) {
            write!(out, "_{round}").expect("writing to a string cannot fail");
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_words_are_new_and_words_of_the_language_stay() {
        assert_eq!(
            renamed("fn read_all(r: FileReader) { macro_rules! x; self.r.__init__(0x_ff) }", 2),
            "fn read_all_2(r: FileReader_2) { macro_rules! x; self.r.__init__(0x_ff) }"
        );
    }
}
