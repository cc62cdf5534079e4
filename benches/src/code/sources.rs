//! The sources that are indexed, and the projects that language servers read.

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

/// Returns the sources of all fetched crates in path order, with their paths below the directory of crates.
fn fetched() -> Result<Option<Vec<(PathBuf, PathBuf)>>, Fault> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let Some(top) = home.map(|home| home.join("registry/src")).filter(|top| top.is_dir()) else {
        return Ok(None);
    };
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

/// A project that a language server is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerProject {
    C,
    Rust,
}

/// The files of a project, and the functions in each.
const PROJECT_FILES: usize = 40;
const FUNCTIONS: usize = 50;

impl ServerProject {
    pub(super) const ALL: [Self; 2] = [Self::C, Self::Rust];

    pub(super) const fn server(self) -> &'static str {
        match self {
            Self::C => "clangd",
            Self::Rust => "rust-analyzer",
        }
    }

    pub(super) const fn language(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Rust => "rust",
        }
    }

    /// Writes files whose functions call those of the file before.
    pub(super) fn build(self, top: &Path) -> Result<(), Fault> {
        let source = top.join("src");
        std::fs::create_dir(&source)?;
        match self {
            Self::C => std::fs::write(top.join("compile_flags.txt"), "-std=c11\n")?,
            Self::Rust => {
                let manifest = "[package]\nname = \"bench-project\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
                std::fs::write(top.join("Cargo.toml"), manifest)?;
                let modules = (0..PROJECT_FILES).map(|file| format!("pub mod part_{file};\n"));
                std::fs::write(source.join("lib.rs"), modules.collect::<String>())?;
            }
        }
        for file in 0..PROJECT_FILES {
            let before = file.saturating_sub(1);
            let mut text = match self {
                Self::C => format!("#include \"part_{before}.h\"\n#include \"part_{file}.h\"\n"),
                Self::Rust => format!("use crate::part_{before} as before;\n\n"),
            };
            let mut header = String::from("#pragma once\n");
            for number in 0..FUNCTIONS {
                let name = format!("work_{file}_{number}");
                let called = format!("work_{before}_{number}");
                match self {
                    Self::C => {
                        writeln!(header, "int {name}(int count);")?;
                        writeln!(
                            text,
                            "int {name}(int count) {{ return count ? {called}(count - 1) : 0; }}"
                        )?;
                    }
                    Self::Rust => writeln!(
                        text,
                        "pub fn {name}(count: u32) -> u32 {{ if count > 0 {{ before::{called}(count - 1) }} else {{ 0 }} }}"
                    )?,
                }
            }
            let name = match self {
                Self::C => format!("part_{file}.c"),
                Self::Rust => format!("part_{file}.rs"),
            };
            std::fs::write(source.join(name), text)?;
            if matches!(self, Self::C) {
                std::fs::write(source.join(format!("part_{file}.h")), header)?;
            }
        }
        Ok(())
    }

    /// Returns the file, the line and the column of a call, both counted from 1.
    pub(super) const fn question(self) -> (&'static str, usize, usize) {
        match self {
            // `int work_7_3(int count) { return count ? work_6_3(…`
            Self::C => ("src/part_7.c", 6, 42),
            // `pub fn work_7_3(count: u32) -> u32 { if count > 0 { before::work_6_3(…`
            Self::Rust => ("src/part_7.rs", 6, 61),
        }
    }
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

    #[test]
    fn a_question_is_about_a_call_of_another_file() {
        for project in ServerProject::ALL {
            let directory = tempfile::tempdir().unwrap();
            project.build(directory.path()).unwrap();
            let (file, line, column) = project.question();
            let text = std::fs::read_to_string(directory.path().join(file)).unwrap();
            let line = text.lines().nth(line - 1).unwrap();
            assert!(line[column - 1..].starts_with("work_6_3("), "{line}");
        }
    }
}
