//! An index that a process of its own builds, and what that takes.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use carrel_code::{MAX_INDEX_BYTES, SkipReason, SymbolIndex};
use carrel_fsroot::Root;
use carrel_search::{Cancel, TreeWatch};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::measure::{Samples, timed};

/// The word by which this program is asked to build an index.
const HELPER: &str = "index-helper";

/// How often an index is brought up to date when nothing has changed.
const WARM_ROUNDS: usize = 9;

/// Longer than any index takes.
const DEADLINE: Duration = Duration::from_hours(1);

/// Figures of an index.
pub(crate) struct IndexRun {
    /// From nothing to all files.
    pub(crate) cold: Duration,
    /// CPU time of that.
    pub(crate) cpu: Duration,
    /// A look for changes when no file has changed.
    pub(crate) warm: Samples,
    /// Reading the index from its bytes.
    pub(crate) loaded: Duration,
    /// Memory before the index and with it.
    pub(crate) early: u64,
    pub(crate) late: u64,
    /// Definitions, and uses of names.
    pub(crate) entries: u64,
    /// Files in the index and their bytes, and files for which it had no room.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) left_out: u64,
}

/// What the process tells, in microseconds and bytes.
#[derive(Debug, Deserialize, Serialize)]
struct Told {
    cold: u64,
    cpu: u64,
    warm: Vec<u64>,
    loaded: u64,
    early: u64,
    late: u64,
    entries: u64,
    files: u64,
    bytes: u64,
    left_out: u64,
}

impl IndexRun {
    /// Builds the index of a directory.
    pub(crate) fn of(directory: &Path) -> Result<Self, Fault> {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.arg(HELPER).arg(directory).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let told: Told = serde_json::from_slice(&output.stdout)?;
        let Told { cold, cpu, warm, loaded, early, late, entries, files, bytes, left_out } = told;
        let [cold, cpu, loaded] = [cold, cpu, loaded].map(Duration::from_micros);
        let warm = Samples::new(warm.into_iter().map(Duration::from_micros).collect());
        Ok(Self { cold, cpu, warm, loaded, early, late, entries, files, bytes, left_out })
    }

    /// Returns the size of the index: nothing if it has all files of the tree.
    pub(crate) fn part(&self) -> String {
        if self.left_out == 0 {
            return String::new();
        }
        let Self { files, left_out, .. } = self;
        let megabytes = self.megabytes();
        format!(
            " ({files} of them, {megabytes:.1} MB, in the index, {left_out} left out: it is full)"
        )
    }

    /// Returns the megabytes of source for each second of CPU time. Files that were left out count for nothing.
    pub(crate) fn rate(&self) -> f64 {
        self.megabytes() / self.cpu.as_secs_f64()
    }

    #[expect(clippy::cast_precision_loss, reason = "a size is shown with one decimal")]
    fn megabytes(&self) -> f64 {
        self.bytes as f64 / 1e6
    }
}

/// Builds an index if the arguments ask for it, in place of everything else.
pub(crate) fn run_helper(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != HELPER {
        return None;
    }
    let directory = arguments.next()?;
    let told = build(Path::new(&directory), MAX_INDEX_BYTES)
        .and_then(|told| Ok(std::io::stdout().lock().write_all(&serde_json::to_vec(&told)?)?));
    match told {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(fault) => {
            crate::say(&fault.to_string());
            Some(ExitCode::FAILURE)
        }
    }
}

fn build(directory: &Path, capacity: usize) -> Result<Told, Fault> {
    let root = Root::open(&directory.canonicalize()?)?;
    let index = SymbolIndex::with_capacity(capacity);
    let watch = TreeWatch::new();
    let until = Instant::now() + DEADLINE;
    let refresh = || index.refresh_watched(&root, &watch, until, &Cancel::new());
    let (early, cpu_before) = (resident()?, cpu_time());
    let cold = timed(refresh)?;
    let cpu = cpu_time().saturating_sub(cpu_before);
    let late = resident()?;
    let mut warm = Vec::new();
    for _ in 0..WARM_ROUNDS {
        warm.push(micros(timed(refresh)?));
    }
    let stored = index.to_bytes();
    let loaded = timed(|| SymbolIndex::of_bytes(&stored))?;
    let view = index.view();
    let files = view.files(Path::new(""));
    let skipped = view.skipped().into_iter();
    let left_out = skipped.filter(|(_, reason)| *reason == SkipReason::NoRoom).count();
    let mut bytes = 0;
    for (path, _) in &files {
        bytes += root.metadata(path)?.size;
    }
    let statistics = view.statistics();
    let entries = (statistics.symbols + statistics.uses) as u64;
    if entries == 0 {
        return Err("the index has nothing in it".into());
    }
    let [cold, cpu, loaded] = [cold, cpu, loaded].map(micros);
    let [files, left_out] = [files.len(), left_out].map(|count| count as u64);
    Ok(Told { cold, cpu, warm, loaded, early, late, entries, files, bytes, left_out })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the memory that this process has in use.
fn resident() -> Result<u64, Fault> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    Ok(kibibytes.ok_or("the kernel does not tell the memory in use")? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_room_are_counted_and_their_bytes_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let text = "def read_all(path):\n    return path\n".repeat(50);
        for number in 0..60 {
            let text = text.replace("read_all", &format!("read_{number}"));
            std::fs::write(directory.path().join(format!("f{number:02}.py")), text).unwrap();
        }
        let size = |told: &Told| (told.files, told.left_out);
        let all = build(directory.path(), MAX_INDEX_BYTES).unwrap();
        assert_eq!(size(&all), (60, 0));
        let few = build(directory.path(), 64 << 10).unwrap();
        assert!(few.files > 0 && few.left_out > 0, "{few:?}");
        assert_eq!(few.files + few.left_out, 60);
        assert!(few.bytes * 60 <= all.bytes * (few.files + 1), "{few:?} of {all:?}");
    }

    #[test]
    fn a_rate_is_that_of_the_indexed_files() {
        let second = Duration::from_secs(1);
        let mut run = IndexRun {
            cold: second,
            cpu: second * 2,
            warm: Samples::new(vec![second]),
            loaded: second,
            early: 1,
            late: 2,
            entries: 3,
            files: 40,
            bytes: 9_000_000,
            left_out: 60,
        };
        assert_eq!(format!("{:.2}", run.rate()), "4.50");
        assert_eq!(run.part(), " (40 of them, 9.0 MB, in the index, 60 left out: it is full)");
        run.left_out = 0;
        assert_eq!(run.part(), "");
    }
}
