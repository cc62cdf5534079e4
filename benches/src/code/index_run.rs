//! An index that a process of its own builds, and what that takes.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use carrel_code::SymbolIndex;
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
        let Told { cold, cpu, warm, loaded, early, late, entries } = told;
        let [cold, cpu, loaded] = [cold, cpu, loaded].map(Duration::from_micros);
        let warm = Samples::new(warm.into_iter().map(Duration::from_micros).collect());
        Ok(Self { cold, cpu, warm, loaded, early, late, entries })
    }
}

/// Builds an index if the arguments ask for it, in place of everything else.
pub(crate) fn run_helper(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != HELPER {
        return None;
    }
    let directory = arguments.next()?;
    let told = build(Path::new(&directory))
        .and_then(|told| Ok(std::io::stdout().lock().write_all(&serde_json::to_vec(&told)?)?));
    match told {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(fault) => {
            crate::say(&fault.to_string());
            Some(ExitCode::FAILURE)
        }
    }
}

fn build(directory: &Path) -> Result<Told, Fault> {
    let root = Root::open(&directory.canonicalize()?)?;
    let index = SymbolIndex::new();
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
    let bytes = index.to_bytes();
    let loaded = timed(|| SymbolIndex::of_bytes(&bytes))?;
    let statistics = index.view().statistics();
    let entries = (statistics.symbols + statistics.uses) as u64;
    if entries == 0 {
        return Err("the index has nothing in it".into());
    }
    let [cold, cpu, loaded] = [cold, cpu, loaded].map(micros);
    Ok(Told { cold, cpu, warm, loaded, early, late, entries })
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
