//! Reading, listing and writing through the endpoint to workspace files.

use std::ffi::OsString;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::Identifier;
use carrel_fsroot::{Durability, MAX_READ_BYTES, Root, WriteOptions};

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::plain;
use crate::report::{Budget, Row};

const NESTED: &str = "crates/workspace/src/hooks/environment/run.rs";
const LISTED_ENTRIES: usize = 100;

/// One directory, reached by its path and through an open root.
struct Sides<'a> {
    ground: &'a Ground,
    path: PathBuf,
    root: &'a Root,
}

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let identifier = Identifier::parse("FILES-1")?;
    let path = ground.create(&identifier)?.path;
    let workspace = ground.wait(ground.workspaces.open(&identifier))?;
    let sides = Sides { ground, path, root: workspace.files() };
    Ok(vec![
        sides.read("read 100 KB", "large.txt", 100_000)?,
        sides.read("read 1 KB, five directories deep", NESTED, 1000)?,
        sides.list()?,
        sides.write_synced("1 KB", 1000)?,
        sides.write_synced("1 MB", 1_000_000)?,
        sides.write_buffered("1 KB", 1000)?,
    ])
}

impl Sides<'_> {
    fn read(&self, work: &str, name: &str, size: usize) -> Result<Row, Fault> {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
        std::fs::write(&path, vec![b'x'; size])?;
        let pair = interleave(
            self.ground.pace.fast,
            || timed(|| std::fs::read(&path)),
            || timed(|| self.root.read(Path::new(name), MAX_READ_BYTES)),
        )?;
        Ok(Row::new(format!("{work}; `std::fs::read`"), pair, Budget::None))
    }

    fn list(&self) -> Result<Row, Fault> {
        let path = self.path.join("listed");
        std::fs::create_dir(&path)?;
        for index in 0..LISTED_ENTRIES {
            std::fs::write(path.join(format!("entry-{index}")), b"")?;
        }
        let pair = interleave(
            self.ground.pace.fast,
            || timed(|| plain_list(&path)),
            || timed(|| self.root.list(Path::new("listed"))),
        )?;
        let work =
            format!("list {LISTED_ENTRIES} entries with kinds, sorted; `read_dir` and a sort");
        Ok(Row::new(work, pair, Budget::None))
    }

    fn write_synced(&self, size: &str, bytes: usize) -> Result<Row, Fault> {
        let pair = self.write(self.ground.pace.slow, bytes, Durability::Synced, |path, text| {
            plain::replace_synced(path, text)
        })?;
        let work = format!("atomic write of {size}; write, fsync, rename, directory fsync");
        Ok(Row::new(work, pair, Budget::Ratio(2.0)))
    }

    fn write_buffered(&self, size: &str, bytes: usize) -> Result<Row, Fault> {
        let pair =
            self.write(self.ground.pace.slow, bytes, Durability::Buffered, |path, text| {
                plain::replace_buffered(path, text)
            })?;
        let work = format!("atomic write of {size}, buffered; write, rename");
        Ok(Row::new(work, pair, Budget::None))
    }

    /// Replaces one file again and again, as edits do. Each side has a directory of its own.
    fn write(
        &self,
        rounds: usize,
        bytes: usize,
        durability: Durability,
        plainly: impl Fn(&Path, &[u8]) -> io::Result<()>,
    ) -> Result<crate::measure::Pair, Fault> {
        let (ours, theirs) =
            (format!("carrel-{durability:?}-{bytes}"), format!("plain-{durability:?}-{bytes}"));
        for name in [&ours, &theirs] {
            std::fs::create_dir(self.path.join(name))?;
        }
        let contents = vec![b'x'; bytes];
        let path = self.path.join(theirs).join("file.txt");
        let name = Path::new(&ours).join("file.txt");
        let options = WriteOptions { durability, ..WriteOptions::default() };
        interleave(
            rounds,
            || timed(|| plainly(&path, &contents)),
            || timed(|| self.root.write(&name, &contents, options)),
        )
    }
}

/// Lists a directory with kinds, in order.
pub(crate) fn plain_list(path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let entries = std::fs::read_dir(path)?
        .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(entries)
}
