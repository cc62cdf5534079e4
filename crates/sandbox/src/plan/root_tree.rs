//! The root directory that the commands of one workspace see.

use std::path::{Path, PathBuf};

use carrel_domain::{Network, WorkspaceAccess, exact_path};
use serde::{Deserialize, Serialize};

use super::{CommandUser, FileAccess, HOST_NAME};
use crate::host::{DEVICES, Host, HostEntry, HostEntryKind};
use crate::policy::{GitDirectory, Owner, Policy};

/// Where git finds its settings for all repositories.
pub(super) const GIT_SETTINGS: &str = "/etc/carrel/gitconfig";

/// Where commands keep temporary files, and where those that should last longer.
const TEMPORARY: &str = "/tmp";
const LASTING: &str = "/var/tmp";

/// Git settings for all repositories. A repository's own settings win.
pub const GIT_SETTINGS_TEXT: &str = "[user]\n\tname = Carrel\n\temail = carrel@localhost\n\
    [init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n";

/// One thing in the root directory. Directories above it are made as needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootEntry {
    /// An empty directory.
    Directory(#[serde(with = "exact_path")] PathBuf),
    /// A symbolic link.
    Link {
        /// Where it is.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// What it says.
        #[serde(with = "exact_path")]
        target: PathBuf,
    },
    /// A file with this text.
    File {
        /// Where it is.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// A small file of the system, as it is when the directory is built, at its own place. To copy it
    /// takes less than to mount it, and each mount is copied for each command.
    Copy(#[serde(with = "exact_path")] PathBuf),
    /// Something of the host.
    Bind {
        /// Where it is seen.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// What is seen.
        source: BindSource,
        /// What can be done with it.
        access: FileAccess,
    },
    /// The processes of the host, which every command covers with its own.
    Proc(#[serde(with = "exact_path")] PathBuf),
    /// Pseudo-terminals of their own.
    DevPts(#[serde(with = "exact_path")] PathBuf),
}

impl RootEntry {
    /// Returns where it is.
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

/// What a [`RootEntry::Bind`] shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindSource {
    /// A part of the system, which everybody on the host can read.
    System(#[serde(with = "exact_path")] PathBuf),
    /// A path of the host that the operator has granted. Where commands have a user of their own,
    /// what its owner may do is what they may do.
    Granted(#[serde(with = "exact_path")] PathBuf),
    /// The workspace.
    Workspace,
    /// A directory of the scratch directory.
    Scratch(#[serde(with = "exact_path")] PathBuf),
    /// What is at the same place already, as a mount of its own that cannot be renamed away.
    InPlace,
    /// The same, for a directory above the workspace. What is mounted in it, which was granted, keeps
    /// its own limits.
    Ancestor,
}

/// Lists the root directory in the order in which it is built.
pub(crate) fn own_root(policy: &Policy, host: &Host, run_as: CommandUser) -> Vec<RootEntry> {
    let mut nodes: Vec<RootEntry> = host.system.iter().map(shown).collect();
    nodes.extend(user_files(policy, run_as));
    nodes.extend(network_files(policy, host));
    nodes.extend(devices());
    nodes.push(RootEntry::Proc("/proc".into()));
    nodes.extend(["/run", "/var/lib", "/var/cache"].map(|path| RootEntry::Directory(path.into())));
    nodes.push(scratch(TEMPORARY, "tmp"));
    nodes.push(scratch(LASTING, "tmp"));
    nodes.extend(policy.readable.iter().map(|path| granted(path, FileAccess::Read)));
    nodes.extend(policy.writable.iter().map(|path| granted(path, FileAccess::Change)));
    nodes.extend(workspace(policy));
    nodes
}

/// Lists the parts of the system that are in every such directory.
pub(crate) fn system(host: &Host) -> Vec<RootEntry> {
    host.system.iter().map(shown).chain(devices()).collect()
}

fn shown(entry: &HostEntry) -> RootEntry {
    match &entry.kind {
        HostEntryKind::Link(target) => {
            RootEntry::Link { path: entry.path.clone(), target: target.clone() }
        }
        HostEntryKind::SmallFile => RootEntry::Copy(entry.path.clone()),
        HostEntryKind::Directory | HostEntryKind::File => of_system(&entry.path, FileAccess::Read),
    }
}

fn of_system(path: &Path, access: FileAccess) -> RootEntry {
    RootEntry::Bind { path: path.to_owned(), source: BindSource::System(path.to_owned()), access }
}

fn granted(path: &Path, access: FileAccess) -> RootEntry {
    RootEntry::Bind { path: path.to_owned(), source: BindSource::Granted(path.to_owned()), access }
}

fn scratch(path: &str, name: &str) -> RootEntry {
    let source = BindSource::Scratch(name.into());
    RootEntry::Bind { path: path.into(), source, access: FileAccess::Change }
}

/// Users and groups: nobody but the command's own, the administrator and nobody.
fn user_files(policy: &Policy, run_as: CommandUser) -> Vec<RootEntry> {
    let Owner { user, group } = match run_as {
        CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => owner,
        CommandUser::Mapped { inside, .. } => inside,
    };
    let home = policy.workspace.to_string_lossy().replace([':', '\n'], "_");
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
    let mut nodes = vec![text("/etc/nsswitch.conf", names)];
    match policy.network {
        Network::None | Network::Loopback => nodes.push(text(
            "/etc/hosts",
            format!("127.0.0.1 localhost {HOST_NAME}\n::1 localhost {HOST_NAME}\n"),
        )),
        // A link is followed: what it leads to is often not visible otherwise.
        Network::Full => {
            let paths = ["/etc/hosts", "/etc/resolv.conf"].map(Path::new);
            let known = |path: &&Path| {
                let entries = host.name_files.iter().chain(&host.resolver);
                entries.map(|entry| entry.path.as_path()).any(|known| known == *path)
            };
            nodes.extend(
                paths
                    .iter()
                    .filter(|path| known(path))
                    .map(|path| of_system(path, FileAccess::Read)),
            );
        }
    }
    nodes
}

fn devices() -> Vec<RootEntry> {
    let mut nodes: Vec<RootEntry> = DEVICES
        .into_iter()
        .map(|name| of_system(&Path::new("/dev").join(name), FileAccess::Device))
        .collect();
    nodes.push(RootEntry::DevPts("/dev/pts".into()));
    nodes.push(scratch("/dev/shm", "shm"));
    for (path, target) in [
        ("/dev/ptmx", "pts/ptmx"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        nodes.push(RootEntry::Link { path: path.into(), target: target.into() });
    }
    nodes
}

/// The workspace last, so that it is seen wherever it lies.
fn workspace(policy: &Policy) -> Vec<RootEntry> {
    let access = match policy.access {
        WorkspaceAccess::ReadWrite => FileAccess::Change,
        WorkspaceAccess::ReadOnly => FileAccess::Read,
    };
    let bind = |path: PathBuf, source, access| RootEntry::Bind { path, source, access };
    let git = policy.workspace.join(".git");
    let hooks = git.join("hooks");
    let mut nodes = vec![RootEntry::Directory(policy.workspace.clone())];
    // Below a directory that commands can change, what is above the workspace could be renamed away.
    let inside = |path: &&Path| {
        [TEMPORARY, LASTING].map(Path::new).iter().any(|top| path.starts_with(top) && path != top)
    };
    let above: Vec<&Path> = policy.workspace.ancestors().skip(1).take_while(inside).collect();
    let fixed = above.into_iter().rev();
    nodes.extend(fixed.map(|path| bind(path.to_owned(), BindSource::Ancestor, FileAccess::Read)));
    nodes.push(bind(policy.workspace.clone(), BindSource::Workspace, access));
    match policy.git_directory {
        GitDirectory::Absent => {}
        GitDirectory::WithoutHooks => nodes.push(bind(git, BindSource::InPlace, access)),
        GitDirectory::WithHooks => {
            nodes.push(bind(git, BindSource::InPlace, access));
            nodes.push(bind(hooks, BindSource::InPlace, FileAccess::Read));
        }
    }
    nodes
}

fn text(path: &str, text: impl Into<String>) -> RootEntry {
    RootEntry::File { path: path.into(), text: text.into() }
}
