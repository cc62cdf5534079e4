//! Denials by resource limits: memory, processes, file size, open files, CPU time and disk space.

use std::time::Duration;

use carrel_domain::{ByteSize, Tier};

use super::{Denial, DenialClass, DenialContext};
use crate::plan::Plan;

/// The largest values that `policy.toml` accepts; no line is suggested beyond them.
const MAX_SIZE: u64 = 16 << 40;
const MAX_PROCESSES: u64 = 1 << 22;
const MAX_OPEN_FILES: u64 = 1 << 20;
const MAX_TIME: Duration = Duration::from_hours(30 * 24);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Memory,
    Processes,
    FileSize,
    OpenFiles,
    Cpu,
    Disk,
    /// A shortage of the whole machine, which is no limit of a command.
    Machine,
}

/// Error phrases in lower case, with the error and the limit.
const ERROR_PHRASES: [(&str, &str, Limit); 22] = [
    ("cannot allocate memory", "ENOMEM", Limit::Memory),
    ("memory exhausted", "ENOMEM", Limit::Memory),
    ("out of memory", "ENOMEM", Limit::Memory),
    ("memoryerror", "ENOMEM", Limit::Memory),
    ("std::bad_alloc", "ENOMEM", Limit::Memory),
    ("memory allocation of ", "ENOMEM", Limit::Memory),
    ("fork: retry", "EAGAIN", Limit::Processes),
    ("cannot fork", "EAGAIN", Limit::Processes),
    ("can't start new thread", "EAGAIN", Limit::Processes),
    ("unable to create native thread", "EAGAIN", Limit::Processes),
    ("failed to spawn thread", "EAGAIN", Limit::Processes),
    ("file size limit exceeded", "EFBIG", Limit::FileSize),
    ("file too large", "EFBIG", Limit::FileSize),
    ("too many open files in system", "ENFILE", Limit::Machine),
    ("too many open files", "EMFILE", Limit::OpenFiles),
    ("cpu time limit exceeded", "SIGXCPU", Limit::Cpu),
    ("cputime limit exceeded", "SIGXCPU", Limit::Cpu),
    ("no space left on device", "ENOSPC", Limit::Disk),
    ("disk quota exceeded", "EDQUOT", Limit::Disk),
    ("quota exceeded", "EDQUOT", Limit::Disk),
    ("resource temporarily unavailable", "EAGAIN", Limit::Processes),
    (" eagain", "EAGAIN", Limit::Processes),
];

/// Words that tell a failed fork from a read that would have blocked, both of which are `EAGAIN`.
const STARTING: [&str; 7] = ["fork", "clone", "thread", "spawn", "exec", "make", "pthread_create"];

/// Explains a line of stderr that reports a limit which is in force for this command.
pub(super) fn denial(plan: &Plan, line: &str, context: DenialContext<'_>) -> Option<Denial> {
    let small = line.to_ascii_lowercase();
    let (_, errno, limit) = ERROR_PHRASES.iter().find(|(words, ..)| small.contains(words))?;
    let limits = context.limits;
    let is_counted = context.cgroup.processes || plan.tier == Tier::Full;
    let is_start = STARTING.iter().any(|word| small.contains(word));
    Some(match limit {
        // Some runtimes limit their heap themselves.
        Limit::Memory if small.contains("heap") => return None,
        // The kernel limits inotify watches, also with `ENOSPC`.
        Limit::Disk if small.contains("watch") => return None,
        Limit::Processes if !is_counted || !is_start => return None,
        Limit::Machine => return None,
        Limit::Memory => of_size("memory", limits.memory, errno),
        Limit::FileSize => of_size("file_size", limits.file_size, errno),
        Limit::Processes => of_count("processes", limits.processes, MAX_PROCESSES, errno),
        Limit::OpenFiles => of_count("open_files", limits.open_files, MAX_OPEN_FILES, errno),
        Limit::Cpu => of_time("cpu", limits.cpu, errno),
        Limit::Disk => Denial::inferred(DenialClass::Limits, "limit: disk", "workspace", errno)
            .hinting("the disk or the quota of the workspace is full; remove files or raise it"),
    })
}

fn of_size(key: &str, size: ByteSize, errno: &str) -> Denial {
    let more = twice(size.as_u64(), MAX_SIZE).map(|more| format!("\"{}\"", written(more)));
    about(key, written(size.as_u64()), more, errno)
}

fn of_count(key: &str, count: u64, most: u64, errno: &str) -> Denial {
    about(key, count.to_string(), twice(count, most).map(|more| more.to_string()), errno)
}

fn of_time(key: &str, time: Duration, errno: &str) -> Denial {
    let more = twice(time.as_secs(), MAX_TIME.as_secs()).map(|more| format!("\"{more}s\""));
    about(key, format!("{}s", time.as_secs()), more, errno)
}

fn about(key: &str, value: String, more: Option<String>, errno: &str) -> Denial {
    let denial = Denial::inferred(DenialClass::Limits, format!("limit: {key}"), value, errno);
    match more {
        Some(more) => denial.allowed_by(format!("limits.{key} = {more}")),
        None => denial.hinting("it is as high as policy.toml takes it"),
    }
}

/// Doubles a limit up to `most`; `None` if it is there already.
fn twice(value: u64, most: u64) -> Option<u64> {
    let doubled = value.saturating_mul(2).clamp(1, most);
    (doubled > value).then_some(doubled)
}

/// Formats a size for `policy.toml`, rounded up to a whole KiB.
fn written(bytes: u64) -> String {
    let kib = bytes.div_ceil(1 << 10);
    let units = [("TiB", 30), ("GiB", 20), ("MiB", 10)];
    let fits = |(_, shift): &&(&str, u32)| kib > 0 && kib.trailing_zeros() >= *shift;
    match units.iter().find(fits) {
        Some((unit, shift)) => format!("{}{unit}", kib >> shift),
        None => format!("{kib}KiB"),
    }
}
