//! A tree to search: text like source code, in as many files and bytes as a real project has.
//!
//! `benches/` uses it too, so that both speak about the same work.

use std::io;
use std::path::{Path, PathBuf};

pub(crate) const FILES: usize = 6500;
pub(crate) const BYTES: usize = 83_000_000;

/// What one line of every fiftieth file has.
pub(crate) const NEEDLE: &str = "needle_in_haystack";

const FILES_PER_DIRECTORY: usize = 13;
const DIRECTORIES_PER_DIRECTORY: usize = 10;

/// Builds a tree with so many of the [`FILES`], which have their share of the [`BYTES`]. The same
/// number always gives the same tree.
pub(crate) fn build(tree: &Path, files: usize) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    for file in 0..files {
        let directory = directory_of(tree, file / FILES_PER_DIRECTORY);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(format!("file_{file}.rs")), text(&mut random, file))?;
    }
    std::fs::write(tree.join(".gitignore"), "target/\n*.log\n/build\n")
}

/// Returns the directory of this number: the numbers are written in a tree of tens.
fn directory_of(tree: &Path, number: usize) -> PathBuf {
    let mut path = tree.to_owned();
    let mut rest = number;
    loop {
        path.push(format!("part_{}", rest % DIRECTORIES_PER_DIRECTORY));
        rest /= DIRECTORIES_PER_DIRECTORY;
        if rest == 0 {
            return path;
        }
    }
}

/// Returns text like source code, sizes spread as in real trees.
fn text(random: &mut fastrand::Rng, file: usize) -> String {
    let average = BYTES / FILES;
    let spread = [average / 8, average / 4, average / 2, average, average * 2, average * 17 / 8];
    let size = spread[file % spread.len()];
    let mut text = String::with_capacity(size + 100);
    while text.len() < size {
        text.push_str(&" ".repeat(4 * random.usize(0..4)));
        for _ in 0..random.usize(1..9) {
            let word: String = (0..random.usize(2..12)).map(|_| random.lowercase()).collect();
            text.push_str(&word);
            text.push(if random.bool() { ' ' } else { '_' });
        }
        text.push('\n');
    }
    if file.is_multiple_of(50) {
        text.push_str("let value = ");
        text.push_str(NEEDLE);
        text.push_str("(1);\n");
    }
    text
}
