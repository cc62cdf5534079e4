//! The lines of the audit log and of its rotated file, in order, also while a writer appends and rotates.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(super) struct LogReader {
    path: PathBuf,
    /// The rotated file, until its end.
    rotated: Option<BufReader<File>>,
    current: Option<BufReader<File>>,
    /// A line whose end is not written yet.
    partial: Vec<u8>,
}

impl LogReader {
    /// Opens the log; a file that does not exist yet is looked for with each read.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        // The current file first: if a writer rotates in between, both names lead to the same file.
        let current = open(&path)?;
        let rotated = open(&path.with_added_extension("1"))?;
        let same = match (&current, &rotated) {
            (Some(current), Some(rotated)) => inode(current)? == inode(rotated)?,
            _ => false,
        };
        let rotated = rotated.filter(|_| !same).map(BufReader::new);
        let current = current.map(BufReader::new);
        Ok(Self { path, rotated, current, partial: Vec::new() })
    }

    /// Returns the next whole line without its end, or `None` if there is none yet.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(rotated) = &mut self.rotated {
            if let Some(line) = read_line(rotated, &mut self.partial)? {
                return Ok(Some(line));
            }
            self.rotated = None;
            self.partial.clear();
        }
        loop {
            if let Some(current) = &mut self.current
                && let Some(line) = read_line(current, &mut self.partial)?
            {
                return Ok(Some(line));
            }
            // At the end: another file at the path means that this one was rotated.
            let Some(next) = open(&self.path)? else { return Ok(None) };
            if let Some(current) = &mut self.current {
                if inode(current.get_ref())? == inode(&next)? {
                    return Ok(None);
                }
                // Lines that were written between the last read and the rotation.
                if let Some(line) = read_line(current, &mut self.partial)? {
                    return Ok(Some(line));
                }
            }
            self.partial.clear();
            self.current = Some(BufReader::new(next));
        }
    }
}

fn read_line(file: &mut BufReader<File>, partial: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    file.read_until(b'\n', partial)?;
    if partial.pop_if(|last| *last == b'\n').is_none() {
        return Ok(None);
    }
    Ok(Some(std::mem::take(partial)))
}

fn inode(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

#[expect(clippy::disallowed_methods, reason = "the operator's own log")]
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
