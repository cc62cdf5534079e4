//! A tree of files like source code, of which some change from time to time.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::Fault;
use crate::pace::RecordedTree;

const FILES_PER_DIRECTORY: usize = 8;
const GROUPS: usize = 20;

/// Files that change between two snapshots.
pub(crate) const FEW: usize = 10;

/// A tree on disk.
pub(crate) struct SourceTree {
    pub(crate) path: PathBuf,
    files: usize,
    sizes: RangeInclusive<usize>,
    bytes: u64,
    random: fastrand::Rng,
}

impl SourceTree {
    /// Builds a tree in an empty directory. The same one is always built for the same measures.
    pub(crate) fn build(path: &Path, measures: RecordedTree) -> Result<Self, Fault> {
        let RecordedTree { files, average_bytes } = measures;
        let sizes = 200..=2 * average_bytes - 200;
        let random = fastrand::Rng::with_seed(3);
        let mut tree = Self { path: path.to_owned(), files, sizes, bytes: 0, random };
        for number in 0..files {
            let file = path.join(name_of(number));
            std::fs::create_dir_all(file.parent().unwrap_or(path))?;
            let content = tree.content();
            tree.bytes += content.len() as u64;
            std::fs::write(file, content)?;
        }
        tree.settle()?;
        Ok(tree)
    }

    /// Writes new content to a few files, which are not replaced, and returns their names.
    pub(crate) fn change_few(&mut self) -> Result<Vec<PathBuf>, Fault> {
        let mut numbers = Vec::new();
        while numbers.len() < FEW {
            let number = self.random.usize(..self.files);
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let names: Vec<_> = numbers.into_iter().map(name_of).collect();
        for name in &names {
            let content = self.content();
            std::fs::write(self.path.join(name), content)?;
        }
        Ok(names)
    }

    /// Waits for the disk, so that what was written before does not count for what is measured next.
    pub(crate) fn settle(&self) -> Result<(), Fault> {
        Ok(rustix::fs::syncfs(std::fs::File::open(&self.path)?)?)
    }

    /// Says how large the tree is.
    pub(crate) fn size(&self) -> String {
        format!("{} files, {} MB", self.files, self.bytes / 1_000_000)
    }

    /// Returns text that shrinks about as much as source code does.
    fn content(&mut self) -> Vec<u8> {
        let length = self.random.usize(self.sizes.clone());
        let mut content = Vec::with_capacity(length + 16);
        while content.len() < length {
            let word = self.random.u32(..3000);
            let word = format!("{:x} ", word.wrapping_mul(2_654_435_761));
            content.extend_from_slice(word.as_bytes());
            if self.random.u8(..) < 30 {
                content.extend_from_slice(b";\n        let ");
            }
        }
        content
    }
}

fn name_of(number: usize) -> PathBuf {
    let directory = number / FILES_PER_DIRECTORY;
    format!("p{}/d{directory}/file{number}.rs", directory % GROUPS).into()
}
