//! The projects that language servers read: crates that cargo has fetched, one of them for its C.

use std::path::{Path, PathBuf};

use carrel_code::Language;

use super::sources;
use crate::Fault;
use crate::measure::with_warm_up;

/// A project that a language server is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerProject {
    C,
    Rust,
}

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// What stands before a parenthesis without being called.
const KEYWORDS: [&str; 11] =
    ["fn", "for", "if", "in", "match", "mut", "return", "sizeof", "switch", "while", "defined"];

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

    /// Returns the name of the crate, and what its directory begins with.
    const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::C => ("tree-sitter", "tree-sitter-0."),
            Self::Rust => ("ignore", "ignore-0."),
        }
    }

    /// Returns the file that the questions are about, which is one of the longest.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::C => "src/query.c",
            Self::Rust => "src/walk.rs",
        }
    }

    /// Copies the project; returns what it is, or none if cargo has not fetched it.
    pub(super) fn build(self, top: &Path) -> Result<Option<String>, Fault> {
        let Some(from) = self.fetched()? else { return Ok(None) };
        copy(&from, top)?;
        match self {
            Self::C => std::fs::write(top.join("compile_flags.txt"), "-std=c11\n-Iinclude\n")?,
            Self::Rust => {
                let manifest = top.join("Cargo.toml");
                let text = std::fs::read_to_string(&manifest)?;
                std::fs::write(manifest, library_alone(&text))?;
            }
        }
        let lines = std::fs::read_to_string(top.join(self.file()))?.lines().count();
        let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Some(format!("{} of {name}, {lines} lines", self.file())))
    }

    fn fetched(self) -> Result<Option<PathBuf>, Fault> {
        let (_, prefix) = self.name();
        let Some(top) = sources::crates() else { return Ok(None) };
        let mut found = Vec::new();
        for registry in std::fs::read_dir(top)? {
            for entry in std::fs::read_dir(registry?.path())? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(prefix) && path.join(self.file()).is_file() {
                    found.push(path);
                }
            }
        }
        Ok(found.into_iter().max())
    }

    /// Returns calls in the file, from its beginning to its end, as many as so many rounds need or all.
    pub(super) fn places(self, top: &Path, rounds: usize) -> Result<Vec<Place>, Fault> {
        let text = std::fs::read_to_string(top.join(self.file()))?;
        let all = calls(&text);
        let wanted = with_warm_up(rounds).clamp(1, all.len().max(1));
        Ok((0..wanted).filter_map(|number| all.get(number * all.len() / wanted).copied()).collect())
    }
}

/// Copies the sources of a crate, without its tests, examples and benchmarks.
fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    const LEFT_OUT: [&str; 4] = ["benches", "examples", "tests", "target"];
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if path.is_dir() {
            if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                std::fs::create_dir_all(to.join(&name))?;
                copy(&path, &to.join(&name))?;
            }
        } else if path.is_file() && (Language::of_path(&path).is_some() || name == "Cargo.lock") {
            std::fs::copy(&path, to.join(&name))?;
        }
    }
    Ok(())
}

/// Returns a manifest without the parts that need what cargo may not have fetched.
fn library_alone(manifest: &str) -> String {
    const LEFT_OUT: [&str; 4] = ["[[example", "[[test", "[[bench", "[dev-dependencies"];
    let mut is_kept = true;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_kept = !LEFT_OUT.iter().any(|left_out| line.starts_with(left_out));
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Returns the places of names before a parenthesis, outside of comments of lines.
fn calls(text: &str) -> Vec<Place> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if !code.is_ascii() || code.trim_start().starts_with(['*', '#']) {
            continue;
        }
        for (at, _) in code.match_indices('(') {
            let begin = code[..at].rfind(|c| !is_part(c)).map_or(0, |before| before + 1);
            let name = &code[begin..at];
            if name.starts_with(|c: char| c.is_ascii_lowercase()) && !KEYWORDS.contains(&name) {
                found.push(Place { line: number + 1, column: begin + 1 });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_names_before_parentheses() {
        let text = "// call(this)\nif (one(two (3)) && Some(four())) {\n  * five()\n    six(7); // eight(9)\n";
        let place = |line, column| Place { line, column };
        assert_eq!(calls(text), [place(2, 5), place(2, 26), place(4, 5)]);
    }

    #[test]
    fn a_manifest_keeps_what_the_library_needs() {
        let manifest = "[package]\nname = \"a\"\n\n[[test]]\nname = \"t\"\n\n[dependencies.b]\nversion = \"1\"\n\n[dev-dependencies.c]\nversion = \"2\"\n\n[lib]\npath = \"src/lib.rs\"\n";
        let kept = "[package]\nname = \"a\"\n\n[dependencies.b]\nversion = \"1\"\n\n[lib]\npath = \"src/lib.rs\"\n";
        assert_eq!(library_alone(manifest), kept);
    }
}
