//! Control groups: limits for all processes of a command together.
//!
//! Each command has a group of its own, below the group that Carrel runs in. Making and removing one
//! costs more than most of starting a process, so a few that are empty are kept for later commands
//! where the kernel can forget what they have seen. Groups that a killed server left behind are
//! removed by the next one.

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

/// The number of the next group, over all that this process makes.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// How many empty groups are kept.
const MAX_IDLE: usize = 16;

/// How much memory a group may still hold when it is used again: files that earlier commands wrote
/// stay in memory, and would count as used by the next one.
const MAX_KEPT_MEMORY: ByteSize = ByteSize::mib(4);

/// Where groups can be made.
#[derive(Debug)]
pub struct Cgroups {
    layout: Layout,
    /// What names this process and no later one with its id.
    server: String,
    idle: Arc<Mutex<Vec<Made>>>,
    /// Whether groups that nobody uses any more were removed.
    swept: Once,
}

/// The group of one command. It is free for another one when this is dropped.
#[derive(Debug)]
pub struct Cgroup {
    /// None only while it is dropped.
    made: Option<Made>,
    idle: Arc<Mutex<Vec<Made>>>,
}

/// A group, in each hierarchy that it takes. It is removed when this is dropped.
#[derive(Debug)]
struct Made {
    parts: Vec<Part>,
    limits: (ByteSize, u64),
    /// What was counted before the command that it is used for.
    before: Counts,
}

#[derive(Debug)]
struct Part {
    controller: Controller,
    directory: PathBuf,
    /// The file that a process writes zero to in order to join.
    door: OwnedFd,
    /// Files that are used for every command, with their names.
    kept: Vec<(&'static str, OwnedFd)>,
}

impl Part {
    fn new(controller: Controller, directory: PathBuf) -> io::Result<Self> {
        let door = open(&directory.join(controller.door()), OFlags::WRONLY)?;
        let keep = |&(name, access)| Ok((name, open(&directory.join(name), access)?));
        let kept = controller.kept().iter().map(keep).collect::<io::Result<_>>()?;
        Ok(Self { controller, directory, door, kept })
    }

    fn kept(&self, name: &str) -> Option<&OwnedFd> {
        self.kept.iter().find(|(kept, _)| *kept == name).map(|(_, file)| file)
    }

    /// Reads one of its files in as few calls as possible.
    fn read(&self, name: &str) -> Option<String> {
        let mut text = [0; MAX_SETTING_BYTES];
        let length = match self.kept(name) {
            Some(file) => pread(file, &mut text, 0),
            None => {
                rustix::io::read(open(&self.directory.join(name), OFlags::RDONLY).ok()?, &mut text)
            }
        };
        String::from_utf8(text[..length.ok()?].to_vec()).ok()
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        match self.kept(name) {
            Some(file) => pwrite(file, text.as_bytes(), 0)?,
            None => rustix::io::write(
                open(&self.directory.join(name), OFlags::WRONLY)?,
                text.as_bytes(),
            )?,
        };
        Ok(())
    }
}

/// How often something happened in a group since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    kills: u64,
    refused_processes: u64,
}

/// What the processes of a group did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupReport {
    /// The most memory that they used at any one moment.
    pub peak_memory: Option<ByteSize>,
    /// Whether one of them was killed for want of memory.
    pub out_of_memory: bool,
    /// Whether they were refused another process.
    pub out_of_processes: bool,
}

impl Cgroups {
    /// Tells whether looking for groups may move this process to another one, and so has to come before
    /// it starts others, which would stay behind.
    ///
    /// A controller that is used in version 1 is not offered in version 2, which alone takes a move.
    pub fn may_move() -> bool {
        !layout::uses_version_1()
    }

    /// Looks where groups can be made.
    pub fn find() -> Self {
        Self::new(Layout::find())
    }

    /// Groups that can be made nowhere.
    pub fn none(why: &str) -> Self {
        Self::new(Layout::none(why))
    }

    fn new(layout: Layout) -> Self {
        let server = name_of(std::process::id()).unwrap_or_default();
        Self { layout, server, idle: Arc::default(), swept: Once::new() }
    }

    /// Returns which limits a group can hold.
    pub fn grouped(&self) -> CgroupLimits {
        CgroupLimits {
            memory: self.layout.has(Controller::Memory),
            processes: self.layout.has(Controller::Processes),
        }
    }

    /// Says in a few words where groups are made, or why nowhere.
    pub fn describe(&self) -> String {
        self.layout.describe()
    }

    /// Returns a group for one command. Without a controller there is none for what it would limit.
    ///
    /// The first call removes groups that nobody uses any more.
    pub fn make(&self, memory: ByteSize, processes: u64) -> io::Result<Cgroup> {
        self.swept.call_once(|| self.layout.directories().for_each(remove_stale));
        let limits = (memory, processes);
        let made = match self.take_idle(limits)? {
            Some(made) => made,
            None => self.make_new(limits)?,
        };
        Ok(Cgroup { made: Some(made), idle: Arc::clone(&self.idle) })
    }

    fn take_idle(&self, limits: (ByteSize, u64)) -> io::Result<Option<Made>> {
        let idle = sync::lock(&self.idle).pop();
        let Some(mut made) = idle.filter(Made::is_light) else { return Ok(None) };
        made.use_again(limits)?;
        Ok(Some(made))
    }

    fn make_new(&self, limits: (ByteSize, u64)) -> io::Result<Made> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.server);
        let mut made = Made { parts: Vec::new(), limits, before: Counts::default() };
        for (controller, directory) in self.layout.parts() {
            let directory = directory.join(&name);
            make_directory(&directory)?;
            made.parts.push(Part::new(controller, directory.clone()).inspect_err(|_| {
                // Nothing refers to it yet; the next server removes it otherwise.
                let _ = remove(&directory);
            })?);
        }
        made.limit()?;
        Ok(made)
    }
}

impl Made {
    fn limit(&self) -> io::Result<()> {
        let (memory, processes) = self.limits;
        for part in &self.parts {
            for (file, value) in part.controller.settings(memory, processes) {
                part.write(file, &value)?;
            }
        }
        Ok(())
    }

    /// Forgets the command that it was used for.
    fn use_again(&mut self, limits: (ByteSize, u64)) -> io::Result<()> {
        for part in &self.parts {
            if let Some(file) = part.controller.peak() {
                part.write(file, "0")?;
            }
        }
        if self.limits != limits {
            self.limits = limits;
            self.limit()?;
        }
        Ok(())
    }

    /// Tells whether next to nothing is left of earlier commands.
    fn is_light(&self) -> bool {
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
        let (mut peak, mut counts) = (None, Counts::default());
        for part in &self.parts {
            part.controller.read(&mut peak, &mut counts, &|file| part.read(file));
        }
        (peak, counts)
    }
}

impl Cgroup {
    /// Returns the files that a process writes zero to in order to join.
    pub fn doors(&self) -> io::Result<Vec<OwnedFd>> {
        let parts = self.made.iter().flat_map(|made| &made.parts);
        parts.map(|part| part.door.try_clone()).collect()
    }

    /// Says what the processes of its command did, when they are gone.
    pub fn report(&mut self) -> CgroupReport {
        let Some(made) = &mut self.made else { return CgroupReport::default() };
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
        let Some(made) = self.made.take().filter(Made::is_reusable) else { return };
        let mut idle = sync::lock(&self.idle);
        if idle.len() < MAX_IDLE {
            idle.push(made);
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for Part { directory, .. } in &self.parts {
            // Its last process may not have been taken off the books yet; the next server cleans up.
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

/// Room for a file of a control group: a number, or a few lines of them.
const MAX_SETTING_BYTES: usize = 4 << 10;

/// How much of a file of any length is read at once.
const READ_BYTES: usize = 16 << 10;

/// Reads a file of the kernel's, which does not say how long it is.
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

/// Removes the groups of servers that are gone. One that still has processes stays.
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
        // A server has many.
        let server = servers.entry(pid).or_insert_with(|| name_of(pid));
        let is_gone = *server != Some(format!("{pid}-{started}"));
        if is_gone && let Err(error) = remove(&entry.path()) {
            warn!(%error, group = ?entry.path(), "could not remove an old control group");
        }
    }
}

/// Names a process by its id and the time at which it started; none if it is gone.
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
    fn two_in_one_process_do_not_take_each_others_names() {
        let (first, second) = (Cgroups::find(), Cgroups::find());
        let made = [&first, &second].map(|groups| groups.make(ByteSize::mib(64), 16).unwrap());
        let [one, other] = made.each_ref().map(|group| group.made.as_ref().unwrap());
        let places = |made: &Made| -> Vec<PathBuf> {
            made.parts.iter().map(|part| part.directory.clone()).collect()
        };
        if first.grouped() == CgroupLimits::default() {
            eprintln!("no control groups can be made here: {}", first.describe());
            return;
        }
        assert_ne!(places(one), places(other));
    }
}
