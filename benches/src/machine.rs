//! What the figures were taken on.

use std::path::Path;

use crate::Fault;

/// Describes the machine in one line of Markdown.
pub(crate) fn describe(scratch: &Path) -> Result<String, Fault> {
    let cores = std::thread::available_parallelism()?;
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_string_lossy();
    let model = cpu_model()?;
    let disk = file_system(scratch)?;
    Ok(format!("Machine: {cores} cores ({model}), Linux {kernel}, {disk}.\n\n"))
}

fn cpu_model() -> Result<String, Fault> {
    let text = std::fs::read_to_string("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(':')).map(|(_, model)| model.trim());
    Ok(model.unwrap_or("unknown processor").to_owned())
}

/// Names the file system that holds a directory, and how it is mounted.
fn file_system(directory: &Path) -> Result<String, Fault> {
    let directory = std::fs::canonicalize(directory)?;
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let holds = |line: &&str| fields(line).is_some_and(|[point, ..]| directory.starts_with(point));
    // Of two mounts on one place the later one is seen.
    let line = mounts.lines().filter(holds).max_by_key(|line| fields(line).map(|f| f[0].len()));
    let [_, kind, options] = line.and_then(fields).ok_or("no file system holds the directory")?;
    Ok(format!("{kind} ({options})"))
}

/// Takes mount point, kind and options from a line.
fn fields(line: &str) -> Option<[&str; 3]> {
    let mut fields = line.split(' ').skip(1);
    Some([fields.next()?, fields.next()?, fields.next()?])
}
