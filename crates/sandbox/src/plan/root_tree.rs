//! The root directory of commands in tier `full`, as a list of entries.
//!
//! The list is ordered: an entry may cover earlier ones, and the workspace comes last so that it is
//! visible wherever it lies, even below `/tmp`. System files are read-only bind mounts or copies; users,
//! groups and host names are generated so that a command sees only itself; `/tmp`, `/var/tmp` and
//! `/dev/shm` are directories of the scratch directory; the home directory has a fixed path, so that tools which
//! remember it find it again wherever the workspace lies.
//!
//! Two mounts protect what runs outside the sandbox later: `.git` is mounted on itself, so that a command
//! cannot rename it away and put another repository in its place, and `.git/hooks` is mounted read-only.
//! Directories above a workspace that lies below a writable directory are mounted on themselves for the
//! same reason.

use std::path::{Path, PathBuf};

use carrel_domain::{Network, WorkspaceAccess, exact_path};
use serde::{Deserialize, Serialize};

use super::{CommandUser, FileAccess, HOST_NAME};
use crate::host::{DEVICES, Host, HostEntry, HostEntryKind};
use crate::policy::{GitDirectory, Owner, Policy, WorkspaceSource};

/// The path of the global git configuration in the root directory.
pub(super) const GIT_SETTINGS: &str = "/etc/carrel/gitconfig";

const TEMPORARY: &str = "/tmp";
const LASTING: &str = "/var/tmp";

/// Mount points of the home directory, in the order of preference.
const HOMES: [&str; 3] = ["/home/carrel", "/run/home/carrel", "/var/home/carrel"];

/// The global git configuration of commands. A repository's own settings override it.
pub const GIT_SETTINGS_TEXT: &str = "[user]\n\tname = Carrel\n\temail = carrel@localhost\n\
    [init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n";

/// One entry of the root directory. Missing parent directories are created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootEntry {
    /// An empty directory.
    Directory(#[serde(with = "exact_path")] PathBuf),
    /// A symbolic link.
    Link {
        /// The path of the link.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// The target of the link.
        #[serde(with = "exact_path")]
        target: PathBuf,
    },
    /// A generated file.
    File {
        /// The path of the file.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// The contents of the file.
        text: String,
    },
    /// A copy of a small system file at the same path, as it is when the directory is built. A copy costs
    /// less than a mount, and the mount table is copied for each command; copies removed a third of it.
    Copy(#[serde(with = "exact_path")] PathBuf),
    /// A bind mount.
    Bind {
        /// The mount point.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// The file or directory that is mounted.
        source: BindSource,
        /// The access of commands to it.
        access: FileAccess,
    },
    /// The host's `/proc`, which every command covers with one of its own process namespace.
    Proc(#[serde(with = "exact_path")] PathBuf),
    /// A new devpts instance.
    DevPts(#[serde(with = "exact_path")] PathBuf),
}

impl RootEntry {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Directory(path)
            | Self::Copy(path)
            | Self::Proc(path)
            | Self::DevPts(path)
            | Self::Link { path, .. }
            | Self::File { path, .. }
            | Self::Bind { path, .. } => path,
        }
    }
}

/// The source of a [`RootEntry::Bind`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindSource {
    /// A system path, which every user of the host can read.
    System(#[serde(with = "exact_path")] PathBuf),
    /// A path of the host that the operator has granted. Mapped users have the rights of its owner.
    Granted(#[serde(with = "exact_path")] PathBuf),
    /// The workspace directory.
    Workspace,
    /// The tree of a fork, which is mounted at the workspace's path in the namespaces that the cell joins.
    Overlay,
    /// A directory in the scratch directory.
    Scratch(#[serde(with = "exact_path")] PathBuf),
    /// The directory that is already at the mount point. A mount on itself cannot be renamed or removed.
    InPlace,
    /// The same for a directory above the workspace, without its submounts: granted paths mounted in it
    /// keep their own access.
    Ancestor,
}

/// Lists the entries of the root directory in the order in which they are built.
pub(crate) fn own_root(policy: &Policy, host: &Host, run_as: CommandUser) -> Vec<RootEntry> {
    let mut entries: Vec<RootEntry> = host.system.iter().map(system_entry).collect();
    entries.extend(user_files(policy, run_as));
    entries.extend(network_files(policy, host));
    entries.extend(devices());
    entries.push(RootEntry::Proc("/proc".into()));
    entries
        .extend(["/run", "/var/lib", "/var/cache"].map(|path| RootEntry::Directory(path.into())));
    entries.push(bind_scratch(TEMPORARY, "tmp"));
    entries.push(bind_scratch(LASTING, "tmp"));
    entries.extend(home(policy));
    entries.extend(policy.readable.iter().map(|path| bind_granted(path, FileAccess::Read)));
    entries.extend(policy.writable.iter().map(|path| bind_granted(path, FileAccess::Change)));
    entries.extend(workspace(policy));
    entries
}

/// Lists the entries that are the same in every root directory.
pub(crate) fn system(host: &Host) -> Vec<RootEntry> {
    host.system.iter().map(system_entry).chain(devices()).collect()
}

fn system_entry(entry: &HostEntry) -> RootEntry {
    match &entry.kind {
        HostEntryKind::Link(target) => {
            RootEntry::Link { path: entry.path.clone(), target: target.clone() }
        }
        HostEntryKind::SmallFile => RootEntry::Copy(entry.path.clone()),
        HostEntryKind::Directory | HostEntryKind::File => {
            bind_system(&entry.path, FileAccess::Read)
        }
    }
}

fn bind(path: &Path, source: BindSource, access: FileAccess) -> RootEntry {
    RootEntry::Bind { path: path.to_owned(), source, access }
}

fn bind_system(path: &Path, access: FileAccess) -> RootEntry {
    bind(path, BindSource::System(path.to_owned()), access)
}

fn bind_granted(path: &Path, access: FileAccess) -> RootEntry {
    bind(path, BindSource::Granted(path.to_owned()), access)
}

fn bind_scratch(path: &str, name: &str) -> RootEntry {
    bind(path.as_ref(), BindSource::Scratch(name.into()), FileAccess::Change)
}

/// Returns the mount point of the home directory: the first that neither holds the workspace or a granted path,
/// which would have to be mounted in it, nor lies in one, which would cover it.
pub(super) fn home_mount(policy: &Policy) -> &'static str {
    let others = [&policy.workspace].into_iter().chain(&policy.readable).chain(&policy.writable);
    let others: Vec<&PathBuf> = others.collect();
    let is_free = |mount: &&&str| {
        others.iter().all(|other| !other.starts_with(mount) && !Path::new(mount).starts_with(other))
    };
    HOMES.iter().find(is_free).unwrap_or(&HOMES[0])
}

/// The home directory. Its source is open to Carrel only, so no command can put a link in its place.
fn home(policy: &Policy) -> Option<RootEntry> {
    let source = BindSource::Granted(policy.home.clone()?);
    Some(bind(home_mount(policy).as_ref(), source, FileAccess::Change))
}

/// User and group databases with three users: root, the command's own, and the overflow user 65534.
fn user_files(policy: &Policy, run_as: CommandUser) -> Vec<RootEntry> {
    let Owner { user, group } = match run_as {
        CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => owner,
        CommandUser::Mapped { inside, .. } => inside,
    };
    let home = policy.home.as_ref().map_or(&*policy.workspace, |_| Path::new(home_mount(policy)));
    let home = home.to_string_lossy().replace([':', '\n'], "_");
    let passwd = format!(
        "root:x:0:0:root:/root:/usr/sbin/nologin\n\
         carrel:x:{user}:{group}:Carrel:{home}:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    );
    let groups = format!("root:x:0:\ncarrel:x:{group}:\nnogroup:x:65534:\n");
    vec![
        text("/etc/passwd", passwd),
        text("/etc/group", groups),
        text("/etc/hostname", format!("{HOST_NAME}\n")),
        text(GIT_SETTINGS, GIT_SETTINGS_TEXT),
    ]
}

fn network_files(policy: &Policy, host: &Host) -> Vec<RootEntry> {
    let names =
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";
    let mut entries = vec![text("/etc/nsswitch.conf", names)];
    match policy.network {
        Network::None | Network::Loopback => entries.push(text(
            "/etc/hosts",
            format!("127.0.0.1 localhost {HOST_NAME}\n::1 localhost {HOST_NAME}\n"),
        )),
        // A bind mount follows the link: its target below `/run` is not visible otherwise.
        Network::Full => {
            let paths = ["/etc/hosts", "/etc/resolv.conf"].map(Path::new);
            let known = |path: &&Path| {
                let entries = host.name_files.iter().chain(&host.resolver);
                entries.map(|entry| entry.path.as_path()).any(|known| known == *path)
            };
            entries.extend(
                paths
                    .iter()
                    .filter(|path| known(path))
                    .map(|path| bind_system(path, FileAccess::Read)),
            );
        }
    }
    entries
}

fn devices() -> Vec<RootEntry> {
    let mut entries: Vec<RootEntry> = DEVICES
        .into_iter()
        .map(|name| bind_system(&Path::new("/dev").join(name), FileAccess::Device))
        .collect();
    entries.push(RootEntry::DevPts("/dev/pts".into()));
    entries.push(bind_scratch("/dev/shm", "shm"));
    for (path, target) in [
        ("/dev/ptmx", "pts/ptmx"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        entries.push(RootEntry::Link { path: path.into(), target: target.into() });
    }
    entries
}

/// The workspace with its protected directories; last in the list, so that no other entry covers it.
fn workspace(policy: &Policy) -> Vec<RootEntry> {
    let access = match policy.access {
        WorkspaceAccess::ReadWrite => FileAccess::Change,
        WorkspaceAccess::ReadOnly => FileAccess::Read,
    };
    let git = policy.workspace.join(".git");
    let mut entries = vec![RootEntry::Directory(policy.workspace.clone())];
    // A link, since a second mount would make two devices of one tree. The directory that has it is fixed below.
    entries.extend(
        alias(policy).map(|path| RootEntry::Link {
            path: path.to_owned(),
            target: policy.workspace.clone(),
        }),
    );
    // A command could rename the parents of a workspace that lies in a directory it can change.
    let inside = |path: &&Path| {
        [TEMPORARY, LASTING].map(Path::new).iter().any(|top| path.starts_with(top) && path != top)
    };
    let above: Vec<&Path> = policy.workspace.ancestors().skip(1).take_while(inside).collect();
    let fixed = above.into_iter().rev();
    entries.extend(fixed.map(|path| bind(path, BindSource::Ancestor, FileAccess::Read)));
    let source = match policy.workspace_source {
        WorkspaceSource::Directory => BindSource::Workspace,
        WorkspaceSource::Overlay => BindSource::Overlay,
    };
    entries.push(bind(&policy.workspace, source, access));
    match policy.git_directory {
        GitDirectory::Absent => {}
        GitDirectory::WithoutHooks => entries.push(bind(&git, BindSource::InPlace, access)),
        GitDirectory::WithHooks => {
            entries.push(bind(&git, BindSource::InPlace, access));
            entries.push(bind(&git.join("hooks"), BindSource::InPlace, FileAccess::Read));
        }
    }
    entries
}

/// Returns the second path of the workspace, unless a link there would be seen outside of the sandbox or hide a grant.
fn alias(policy: &Policy) -> Option<&Path> {
    let path = policy.alias.as_deref()?;
    let others = policy.readable.iter().chain(&policy.writable).chain([&policy.workspace]);
    let is_free = |other: &PathBuf| !path.starts_with(other) && !other.starts_with(path);
    others.into_iter().all(is_free).then_some(path)
}

fn text(path: &str, text: impl Into<String>) -> RootEntry {
    RootEntry::File { path: path.into(), text: text.into() }
}
