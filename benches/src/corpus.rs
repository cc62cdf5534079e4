//! The files that tools are given.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::Fault;
use crate::ground::Ground;
use crate::haystack;

pub(crate) const LARGE: &str = "large.txt";
pub(crate) const LARGE_BYTES: usize = 101_000;
pub(crate) const SMALL: &str = "small.txt";
pub(crate) const SMALL_BYTES: usize = 1000;
pub(crate) const EDITED: &str = "edited.txt";
pub(crate) const EDITED_BYTES: usize = 1_000_000;
pub(crate) const LISTED: &str = "listed";
pub(crate) const LISTED_ENTRIES: usize = 100;
pub(crate) const HAYSTACK: &str = "haystack";

/// Finds a hundred files or so of the haystack, by their names.
pub(crate) const SOME_NAMES: &str = "file_42*.rs";

/// Long enough that a large file is shown whole: an answer has room for 100 KB with line numbers.
const LONG_LINE: usize = 1000;

/// The two words between which edits go back and forth; each stands in a file once.
const WORDS: [&str; 2] = ["before_the_edit", "behind_the_edit"];

/// A directory with a file or a tree for every tool.
pub(crate) struct Corpus {
    pub(crate) path: PathBuf,
    /// How many files the haystack has.
    pub(crate) files: usize,
}

impl Corpus {
    pub(crate) fn build(ground: &Ground) -> Result<Self, Fault> {
        let path = ground.directory("corpus")?;
        let corpus = Self { path, files: ground.pace.searched_files };
        std::fs::write(corpus.path.join(LARGE), lines(LARGE_BYTES, LONG_LINE))?;
        std::fs::write(corpus.path.join(SMALL), lines(SMALL_BYTES, 50))?;
        corpus.add_edited(EDITED, EDITED_BYTES)?;
        let listed = corpus.path.join(LISTED);
        std::fs::create_dir(&listed)?;
        for index in 0..LISTED_ENTRIES {
            std::fs::write(listed.join(format!("entry-{index}")), b"")?;
        }
        haystack::build(&corpus.haystack(), corpus.files)?;
        // Otherwise the first row that syncs anything pays for the whole tree.
        rustix::fs::syncfs(std::fs::File::open(&corpus.path)?)?;
        Ok(corpus)
    }

    pub(crate) fn haystack(&self) -> PathBuf {
        self.path.join(HAYSTACK)
    }

    /// Makes a file whose middle line an [`Edits`] changes.
    pub(crate) fn add_edited(&self, name: &str, bytes: usize) -> Result<PathBuf, Fault> {
        let mut text = lines(bytes / 2, 60);
        writeln!(text, "let word = {};", WORDS[0])?;
        let rest = lines(bytes - text.len(), 60);
        let path = self.path.join(name);
        std::fs::write(&path, text + &rest)?;
        Ok(path)
    }

    /// Says how much there is to search.
    pub(crate) fn size(&self) -> String {
        let megabytes = haystack::BYTES * self.files / haystack::FILES / 1_000_000;
        format!("{} files, {megabytes} MB", self.files)
    }
}

/// Edits of one file that take each other back.
#[derive(Default)]
pub(crate) struct Edits(usize);

impl Edits {
    /// Returns the text to replace and the text to put there.
    pub(crate) fn next(&mut self) -> (&'static str, &'static str) {
        self.0 += 1;
        (WORDS[(self.0 + 1) % 2], WORDS[self.0 % 2])
    }
}

/// Returns numbered lines of this length, exactly so many bytes in all.
fn lines(bytes: usize, length: usize) -> String {
    let mut text = String::with_capacity(bytes + length);
    let mut number = 0;
    while text.len() < bytes {
        let _ = writeln!(text, "{number:08} {:x<width$}", "", width = length - 10);
        number += 1;
    }
    text.truncate(bytes - 1);
    text + "\n"
}

/// Runs a program that is on the search path, and returns the lines that it prints, sorted.
pub(crate) fn lines_of(argv: &[&str], directory: &Path) -> Result<Vec<String>, Fault> {
    Ok(sorted(&String::from_utf8(run(argv, directory)?)?))
}

/// Runs a program that is on the search path.
pub(crate) fn run(argv: &[&str], directory: &Path) -> Result<Vec<u8>, Fault> {
    let mut command = std::process::Command::new(argv[0]);
    command.args(&argv[1..]).current_dir(directory).stdin(std::process::Stdio::null());
    let output = command.output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// Returns the lines of a text in order.
pub(crate) fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
