//! The hierarchies of control groups, version 1 and version 2.
//!
//! Version 2 has one hierarchy; a group with processes of its own cannot limit groups below it, so the
//! server moves itself to a leaf first. Version 1 has one hierarchy for each controller.

use std::path::{Path, PathBuf};

use carrel_domain::ByteSize;
use rustix::fs::OFlags;

use super::{Counts, make_directory, read, write};

/// The directory of the commands' groups, below the server's own group.
const HOME: &str = "carrel";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    /// Memory, version 1.
    Memory,
    /// Processes, version 1.
    Processes,
    /// Both, version 2.
    Unified,
}

impl Controller {
    /// Returns the file by which a thread joins. In version 1, joining a whole process takes a lock that
    /// costs milliseconds.
    pub(super) fn join_file(self) -> &'static str {
        match self {
            Self::Memory | Self::Processes => "tasks",
            Self::Unified => "cgroup.procs",
        }
    }

    pub(super) fn settings(self, memory: ByteSize, processes: u64) -> Vec<(&'static str, String)> {
        let bytes = memory.as_u64().to_string();
        match self {
            Self::Memory => vec![("memory.limit_in_bytes", bytes)],
            Self::Processes => vec![("pids.max", processes.to_string())],
            Self::Unified => vec![
                ("memory.max", bytes),
                ("memory.swap.max", "0".to_owned()),
                ("memory.oom.group", "1".to_owned()),
                ("pids.max", processes.to_string()),
            ],
        }
    }

    /// Returns the file with the peak memory, if it can be reset.
    pub(super) fn resettable_peak(self) -> Option<&'static str> {
        match self {
            Self::Memory => Some("memory.max_usage_in_bytes"),
            Self::Processes | Self::Unified => None,
        }
    }

    /// Returns the file with the memory in use.
    pub(super) fn usage(self) -> Option<&'static str> {
        match self {
            Self::Memory => Some("memory.usage_in_bytes"),
            Self::Processes => None,
            Self::Unified => Some("memory.current"),
        }
    }

    /// Returns the files to keep open for a group that serves many commands, with their access.
    pub(super) fn open_files(self) -> &'static [(&'static str, OFlags)] {
        match self {
            Self::Memory => &[
                ("memory.usage_in_bytes", OFlags::RDONLY),
                ("memory.max_usage_in_bytes", OFlags::RDWR),
                ("memory.oom_control", OFlags::RDONLY),
            ],
            Self::Processes => &[("pids.events", OFlags::RDONLY)],
            Self::Unified => &[],
        }
    }

    /// Returns whether a group can serve several commands, because its peak can be reset.
    pub(super) fn is_reusable(self) -> bool {
        self != Self::Unified
    }

    pub(super) fn read(
        self,
        peak: &mut Option<ByteSize>,
        counts: &mut Counts,
        file: &dyn Fn(&str) -> Option<String>,
    ) {
        let size = |name| file(name)?.trim().parse().ok().map(ByteSize::bytes);
        let counted = |name, key| file(name).map_or(0, |text| count(&text, key));
        match self {
            Self::Memory => {
                *peak = size("memory.max_usage_in_bytes");
                counts.kills = counted("memory.oom_control", "oom_kill");
            }
            Self::Processes => counts.refused_processes = counted("pids.events", "max"),
            Self::Unified => {
                *peak = size("memory.peak");
                counts.kills = counted("memory.events", "oom_kill");
                counts.refused_processes = counted("pids.events", "max");
            }
        }
    }
}

/// Returns the number of a name in lines of names and numbers.
fn count(text: &str, key: &str) -> u64 {
    let line = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(line).unwrap_or(0)
}

#[derive(Debug)]
pub(super) struct Layout {
    parts: Vec<(Controller, PathBuf)>,
    /// The controllers that are missing, with the reason.
    missing: Vec<String>,
}

impl Layout {
    pub(super) fn none(why: &str) -> Self {
        Self { parts: Vec::new(), missing: vec![why.to_owned()] }
    }

    /// Tries version 2 first, then version 1.
    pub(super) fn find() -> Self {
        let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        let own = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let mut layout = Self { parts: Vec::new(), missing: Vec::new() };
        match unified(&mounts, &own) {
            Ok(directory) => layout.parts.push((Controller::Unified, directory)),
            Err(why) => {
                layout.missing.push(format!("version 2: {why}"));
                for (controller, name) in
                    [(Controller::Memory, "memory"), (Controller::Processes, "pids")]
                {
                    match separate(&mounts, &own, name) {
                        Ok(directory) => layout.parts.push((controller, directory)),
                        Err(why) => layout.missing.push(format!("version 1, {name}: {why}")),
                    }
                }
            }
        }
        layout
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = (Controller, &Path)> {
        self.parts.iter().map(|(controller, directory)| (*controller, directory.as_path()))
    }

    pub(super) fn directories(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|(_, directory)| directory.as_path())
    }

    pub(super) fn has(&self, wanted: Controller) -> bool {
        let fits = |controller| controller == wanted || controller == Controller::Unified;
        self.parts.iter().any(|(controller, _)| fits(*controller))
    }

    pub(super) fn describe(&self) -> String {
        let found = self.parts.iter().map(|(controller, directory)| {
            let what = match controller {
                Controller::Memory => "memory (version 1)",
                Controller::Processes => "processes (version 1)",
                Controller::Unified => "memory and processes (version 2)",
            };
            format!("{what} in {}", directory.display())
        });
        found.chain(self.missing.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

/// Makes the directory of groups in version 2, and moves the server to a leaf beside it.
fn unified(mounts: &str, own: &str) -> Result<PathBuf, String> {
    let group = below(&mount_of(mounts, "cgroup2", None)?, path_of(own, "")?);
    let offered = read(&group.join("cgroup.controllers")).unwrap_or_default();
    if !["memory", "pids"].iter().all(|name| offered.split_whitespace().any(|one| one == *name)) {
        return Err(format!("{} offers no memory and pids controllers", group.display()));
    }
    let server = group.join("carrel-server");
    let home = group.join(HOME);
    let ready = make(&server)
        .and_then(|()| write(&server.join("cgroup.procs"), "0"))
        .and_then(|()| write(&group.join("cgroup.subtree_control"), "+memory +pids"))
        .and_then(|()| make(&home))
        .and_then(|()| write(&home.join("cgroup.subtree_control"), "+memory +pids"))
        .and_then(|()| check_writable(&home));
    ready.map(|()| home).map_err(|error| format!("{}: {error}", group.display()))
}

/// Makes the directory of groups for one controller of version 1.
fn separate(mounts: &str, own: &str, controller: &str) -> Result<PathBuf, String> {
    let group = below(&mount_of(mounts, "cgroup", Some(controller))?, path_of(own, controller)?);
    let home = group.join(HOME);
    let ready = make(&home).and_then(|()| check_writable(&home));
    ready.map(|()| home).map_err(|error| format!("{}: {error}", group.display()))
}

/// Checks that groups can be made: an existing directory may belong to another user.
fn check_writable(home: &Path) -> std::io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    Ok(accessat(CWD, home, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

fn make(directory: &Path) -> std::io::Result<()> {
    match make_directory(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

fn below(mount: &Path, path: &str) -> PathBuf {
    mount.join(path.trim_start_matches('/'))
}

/// Returns the mount point of a file system type, with a given controller if there is one.
fn mount_of(mounts: &str, kind: &str, controller: Option<&str>) -> Result<PathBuf, String> {
    let mounted = |line: &str| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = system.split(' ');
        let fits = fields.next()? == kind
            && controller.is_none_or(|name| {
                fields.nth(1).is_some_and(|options| options.split(',').any(|one| one == name))
            });
        fits.then(|| mount.split(' ').nth(4).map(PathBuf::from))?
    };
    let missing = || format!("no {} is mounted", controller.unwrap_or(kind));
    mounts.lines().find_map(mounted).ok_or_else(missing)
}

/// Returns whether this process is in version 1 groups for memory and processes.
pub(super) fn uses_version_1() -> bool {
    let own = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    ["memory", "pids"].iter().all(|controller| path_of(&own, controller).is_ok())
}

/// Returns the group of this process for a controller; an empty name is version 2.
fn path_of<'a>(own: &'a str, controller: &str) -> Result<&'a str, String> {
    let path = |line: &'a str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let fits = fields.next()?.split(',').any(|one| one == controller);
        fits.then(|| fields.next())?
    };
    own.lines().find_map(path).ok_or_else(|| "this process is in no group".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
25 30 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
26 30 0:24 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids
27 30 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const OWN: &str = "8:pids:/\n4:memory:/a/b\n0::/c\n";

    #[test]
    fn hierarchies_are_found_by_controller() {
        let found = |kind, controller| mount_of(MOUNTS, kind, controller);
        assert_eq!(found("cgroup", Some("pids")), Ok("/sys/fs/cgroup/pids".into()));
        assert_eq!(found("cgroup2", None), Ok("/sys/fs/cgroup/unified".into()));
        assert_eq!(found("cgroup", Some("cpu")), Err("no cpu is mounted".to_owned()));
        assert_eq!((path_of(OWN, "memory"), path_of(OWN, "")), (Ok("/a/b"), Ok("/c")));
    }

    #[test]
    fn events_are_counted_by_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!((count(text, "oom_kill"), count(text, "max")), (3, 0));
    }
}
