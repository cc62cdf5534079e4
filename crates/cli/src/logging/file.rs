//! The log file of `--logs-root`, rotated at 10 MiB with four old files kept, one JSON object for each
//! line.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use carrel_domain::{Clock as _, SystemClock, sync};

use crate::output;

const MAX_BYTES: u64 = 10 << 20;

const KEPT: u32 = 4;

/// A log file. The first failed write is reported on stderr and ends logging to the file; the program
/// goes on.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
}

impl LogFile {
    pub(super) fn open(root: &Path) -> Self {
        let path = root.join("log").join("carrel.log");
        let open = make(&path).map_err(|error| complain(&path, &error)).ok();
        Self { path, open: Mutex::new(open) }
    }

    /// Appends a line, with the time.
    pub(super) fn write(&self, line: &str) {
        let mut open = sync::lock(&self.open);
        let Some(there) = open.as_mut() else { return };
        if let Err(error) = self.append(there, line) {
            complain(&self.path, &error);
            *open = None;
        }
    }

    fn append(&self, open: &mut Open, line: &str) -> io::Result<()> {
        if open.bytes >= MAX_BYTES {
            self.rotate()?;
            *open = make(&self.path)?;
        }
        let rest = line.strip_prefix('{').unwrap_or(line);
        let line = format!("{{\"at\":\"{}\",{rest}\n", SystemClock.now());
        open.file.write_all(line.as_bytes())?;
        open.bytes += line.len() as u64;
        Ok(())
    }

    /// Renames each rotated file to the next number and drops the last.
    #[expect(clippy::disallowed_methods, reason = "the operator's own file, in no workspace")]
    fn rotate(&self) -> io::Result<()> {
        let name = |number: u32| self.path.with_extension(format!("log.{number}"));
        for number in (1..KEPT).rev() {
            match std::fs::rename(name(number), name(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, name(1))
    }
}

#[expect(clippy::disallowed_methods, reason = "the operator's own file, in no workspace")]
fn make(path: &Path) -> io::Result<Open> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let file = File::options().create(true).append(true).open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Open { file, bytes })
}

fn complain(path: &Path, error: &io::Error) {
    output::note(&format!("the log file {} cannot be written: {error}", path.display()));
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at what was written")]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_kept_up_to_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let log = LogFile::open(directory.path());
        for _ in 0..=KEPT + 1 {
            log.open.lock().unwrap().as_mut().unwrap().bytes = MAX_BYTES;
            log.write("{\"level\":\"info\"}");
        }
        let mut names: Vec<_> = std::fs::read_dir(directory.path().join("log"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let kept = ["carrel.log", "carrel.log.1", "carrel.log.2", "carrel.log.3", "carrel.log.4"];
        assert_eq!(names, kept);
        let line = std::fs::read_to_string(directory.path().join("log/carrel.log")).unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["level"], "info");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_no_reason_to_stop() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("log"), "in the way").unwrap();
        LogFile::open(directory.path()).write("{}");
    }
}
