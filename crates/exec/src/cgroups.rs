//! Control groups: limits on memory and processes of a whole command.
//!
//! Each command has a group of its own below the group that Carrel runs in. The command joins it before
//! `exec`, by writing to a file whose descriptor the server passes along, so that no process of it is
//! ever outside.
//!
//! Making and removing a group costs more than most of starting a process, so up to 16 empty ones are
//! kept for later commands. That works in version 1, where peak memory can be reset and other counters
//! are read as differences; in version 2 the peak cannot be reset before Linux 6.12, and each command gets a
//! new group.
//!
//! Groups carry the process id and start time of their server in their names. Those of a server that was
//! killed are removed with the first group that the next one makes.

mod layout;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};

use carrel_domain::{ByteSize, sync};
use carrel_sandbox::CgroupLimits;
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::{pread, pwrite};
use tracing::{debug, warn};

use layout::{Controller, Layout};

static NEXT: AtomicU64 = AtomicU64::new(0);

const MAX_IDLE: usize = 16;

/// The most memory that a reused group may still hold. Page cache of earlier commands stays charged to the
/// group, and would count as used by the next one.
const MAX_KEPT_MEMORY: ByteSize = ByteSize::mib(4);

/// The control groups of this server.
#[derive(Debug)]
pub struct Cgroups {
    layout: Layout,
    /// Names this process and no later one with its id.
    server: String,
    idle: Arc<Mutex<Vec<KernelGroup>>>,
    swept: Once,
}

/// The control group of one command. Dropping it frees the group for another command.
#[derive(Debug)]
pub struct Cgroup {
    /// None only during the drop.
    group: Option<KernelGroup>,
    idle: Arc<Mutex<Vec<KernelGroup>>>,
}

/// A group in the kernel, with a directory in each hierarchy. Removed when dropped.
#[derive(Debug)]
struct KernelGroup {
    parts: Vec<Part>,
    limits: (ByteSize, u64),
    before: Counts,
}

#[derive(Debug)]
struct Part {
    controller: Controller,
    directory: PathBuf,
    /// The file by which a process joins: writing zero adds the writer.
    join_file: OwnedFd,
    /// Files that every command uses, kept open. Saves five opens for each command.
    open_files: Vec<(&'static str, OwnedFd)>,
}

impl Part {
    fn new(controller: Controller, directory: PathBuf) -> io::Result<Self> {
        let join_file = open(&directory.join(controller.join_file()), OFlags::WRONLY)?;
        let keep = |&(name, access)| Ok((name, open(&directory.join(name), access)?));
        let open_files = controller.open_files().iter().map(keep).collect::<io::Result<_>>()?;
        Ok(Self { controller, directory, join_file, open_files })
    }

    fn open_file(&self, name: &str) -> Option<&OwnedFd> {
        self.open_files.iter().find(|(kept, _)| *kept == name).map(|(_, file)| file)
    }

    fn read(&self, name: &str) -> Option<String> {
        let mut text = [0; MAX_SETTING_BYTES];
        let length = match self.open_file(name) {
            Some(file) => pread(file, &mut text, 0),
            None => {
                rustix::io::read(open(&self.directory.join(name), OFlags::RDONLY).ok()?, &mut text)
            }
        };
        String::from_utf8(text[..length.ok()?].to_vec()).ok()
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        match self.open_file(name) {
            Some(file) => pwrite(file, text.as_bytes(), 0)?,
            None => rustix::io::write(
                open(&self.directory.join(name), OFlags::WRONLY)?,
                text.as_bytes(),
            )?,
        };
        Ok(())
    }
}

/// The counters of a group since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    kills: u64,
    refused_processes: u64,
}

/// The measurements of a group for one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupReport {
    /// The peak memory of all processes together, where the kernel has it.
    pub peak_memory: Option<ByteSize>,
    /// True if the kernel killed a process at the memory limit.
    pub out_of_memory: bool,
    /// True if a fork failed at the process limit.
    pub out_of_processes: bool,
}

impl Cgroups {
    /// Returns whether [`Cgroups::find`] may move this process to another group. It must then come before
    /// any child is started, which would stay behind.
    ///
    /// Only version 2 needs the move, and a controller that version 1 uses is not offered there.
    pub fn may_move() -> bool {
        !layout::uses_version_1()
    }

    /// Finds the hierarchies in which groups can be made.
    pub fn find() -> Self {
        Self::new(Layout::find())
    }

    /// Returns control groups that are unavailable, for this reason.
    pub fn none(why: &str) -> Self {
        Self::new(Layout::none(why))
    }

    fn new(layout: Layout) -> Self {
        let server = name_of(std::process::id()).unwrap_or_default();
        Self { layout, server, idle: Arc::default(), swept: Once::new() }
    }

    /// Returns the limits that groups can enforce here.
    pub fn enforced(&self) -> CgroupLimits {
        CgroupLimits {
            memory: self.layout.has(Controller::Memory),
            processes: self.layout.has(Controller::Processes),
        }
    }

    /// Describes the directories of groups, or the reason why there are none.
    pub fn describe(&self) -> String {
        self.layout.describe()
    }

    /// Returns a group for one command, with the limits that [`Cgroups::enforced`] names. The first call
    /// removes stale groups.
    pub fn make(&self, memory: ByteSize, processes: u64) -> io::Result<Cgroup> {
        self.swept.call_once(|| self.layout.directories().for_each(remove_stale));
        let limits = (memory, processes);
        let made = match self.take_idle(limits)? {
            Some(made) => made,
            None => self.make_new(limits)?,
        };
        Ok(Cgroup { group: Some(made), idle: Arc::clone(&self.idle) })
    }

    fn take_idle(&self, limits: (ByteSize, u64)) -> io::Result<Option<KernelGroup>> {
        let idle = sync::lock(&self.idle).pop();
        let Some(mut made) = idle.filter(KernelGroup::has_little_memory) else { return Ok(None) };
        made.reset(limits)?;
        Ok(Some(made))
    }

    fn make_new(&self, limits: (ByteSize, u64)) -> io::Result<KernelGroup> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.server);
        let mut made = KernelGroup { parts: Vec::new(), limits, before: Counts::default() };
        for (controller, directory) in self.layout.parts() {
            let directory = directory.join(&name);
            make_directory(&directory)?;
            made.parts.push(Part::new(controller, directory.clone()).inspect_err(|_| {
                // If this fails, the next server removes it.
                let _ = remove(&directory);
            })?);
        }
        made.limit()?;
        Ok(made)
    }
}

impl KernelGroup {
    fn limit(&self) -> io::Result<()> {
        let (memory, processes) = self.limits;
        for part in &self.parts {
            for (file, value) in part.controller.settings(memory, processes) {
                part.write(file, &value)?;
            }
        }
        Ok(())
    }

    /// Resets the peak and sets the limits for the next command.
    fn reset(&mut self, limits: (ByteSize, u64)) -> io::Result<()> {
        for part in &self.parts {
            if let Some(file) = part.controller.resettable_peak() {
                part.write(file, "0")?;
            }
        }
        if self.limits != limits {
            self.limits = limits;
            self.limit()?;
        }
        Ok(())
    }

    /// Returns whether earlier commands left little memory charged.
    fn has_little_memory(&self) -> bool {
        let used = |part: &Part| {
            let text = part.read(part.controller.usage()?)?;
            text.trim().parse().ok().map(ByteSize::bytes)
        };
        self.parts.iter().filter_map(used).all(|used| used <= MAX_KEPT_MEMORY)
    }

    fn is_reusable(&self) -> bool {
        self.parts.iter().all(|part| part.controller.is_reusable())
    }

    fn read(&self) -> (Option<ByteSize>, Counts) {
        let mut peak = None;
        let mut counts = Counts::default();
        for part in &self.parts {
            part.controller.read(&mut peak, &mut counts, &|file| part.read(file));
        }
        (peak, counts)
    }
}

impl Cgroup {
    /// Returns the files by which a process joins: writing zero adds the writer.
    pub fn join_files(&self) -> io::Result<Vec<OwnedFd>> {
        let parts = self.group.iter().flat_map(|made| &made.parts);
        parts.map(|part| part.join_file.try_clone()).collect()
    }

    /// Returns the measurements of the command, after its last process has ended.
    pub fn report(&mut self) -> CgroupReport {
        let Some(made) = &mut self.group else { return CgroupReport::default() };
        let (peak_memory, counts) = made.read();
        let before = std::mem::replace(&mut made.before, counts);
        CgroupReport {
            peak_memory,
            out_of_memory: counts.kills > before.kills,
            out_of_processes: counts.refused_processes > before.refused_processes,
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let Some(made) = self.group.take().filter(KernelGroup::is_reusable) else { return };
        let mut idle = sync::lock(&self.idle);
        if idle.len() < MAX_IDLE {
            idle.push(made);
        }
    }
}

impl Drop for KernelGroup {
    fn drop(&mut self) {
        for Part { directory, .. } in &self.parts {
            // The kernel may still account for its last process; the next server cleans up.
            if let Err(error) = remove(directory) {
                debug!(%error, ?directory, "could not remove a control group");
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "control groups are not workspace files")]
fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

#[expect(clippy::disallowed_methods, reason = "control groups are not workspace files")]
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// The most bytes of a control group file: a number, or a few lines of them.
const MAX_SETTING_BYTES: usize = 4 << 10;

/// The bytes of one read of a kernel file.
const READ_BYTES: usize = 16 << 10;

/// Reads a kernel file, whose metadata has no length.
fn read(path: &Path) -> Option<String> {
    let file = open(path, OFlags::RDONLY).ok()?;
    let mut text = Vec::new();
    loop {
        text.reserve(READ_BYTES);
        if rustix::io::read(&file, spare_capacity(&mut text)).ok()? == 0 {
            return String::from_utf8(text).ok();
        }
    }
}

fn open(path: &Path, access: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty())?)
}

/// Removes the groups of servers that have ended. One that still has processes stays.
#[expect(clippy::disallowed_methods, reason = "control groups are not workspace files")]
fn remove_stale(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut servers = HashMap::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let mut parts = name.to_str().unwrap_or_default().splitn(3, '-');
        let (Some(Ok(pid)), Some(started)) = (parts.next().map(str::parse), parts.next()) else {
            continue;
        };
        // Looked up once for each server, which has many groups.
        let server = servers.entry(pid).or_insert_with(|| name_of(pid));
        let is_gone = *server != Some(format!("{pid}-{started}"));
        if is_gone && let Err(error) = remove(&entry.path()) {
            warn!(%error, group = ?entry.path(), "could not remove an old control group");
        }
    }
}

/// Returns the id and start time of a process, which name it for ever; `None` if it has ended.
fn name_of(pid: u32) -> Option<String> {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")))?;
    let started = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?;
    Some(format!("{pid}-{started}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot be made says so")]
    fn two_servers_in_one_process_use_different_names() {
        let first = Cgroups::find();
        let second = Cgroups::find();
        let made = [&first, &second].map(|groups| groups.make(ByteSize::mib(64), 16).unwrap());
        let [one, other] = made.each_ref().map(|cgroup| cgroup.group.as_ref().unwrap());
        let directories = |made: &KernelGroup| -> Vec<PathBuf> {
            made.parts.iter().map(|part| part.directory.clone()).collect()
        };
        if first.enforced() == CgroupLimits::default() {
            eprintln!("no control groups can be made here: {}", first.describe());
            return;
        }
        assert_ne!(directories(one), directories(other));
    }
}
