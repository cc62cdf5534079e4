//! The root directory that the commands of one workspace see.

use std::path::{Path, PathBuf};

use carrel_domain::{Network, WorkspaceAccess, exact_path};
use serde::{Deserialize, Serialize};

use super::{HOST_NAME, Identity, Reach};
use crate::host::{DEVICES, Host, Visible, VisibleKind};
use crate::policy::{Owner, Policy, Repository};

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
pub enum Node {
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
        source: Source,
        /// What can be done with it.
        reach: Reach,
    },
    /// The processes of the host, which every command covers with its own.
    Processes(#[serde(with = "exact_path")] PathBuf),
    /// Pseudo-terminals of their own.
    Terminals(#[serde(with = "exact_path")] PathBuf),
}

impl Node {
    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Directory(path)
            | Self::Copy(path)
            | Self::Processes(path)
            | Self::Terminals(path)
            | Self::Link { path, .. }
            | Self::File { path, .. }
            | Self::Bind { path, .. } => path,
        }
    }
}

/// What a [`Node::Bind`] shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
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
    Itself,
    /// The same, for a directory above the workspace. What is mounted in it, which was granted, keeps
    /// its own limits.
    Above,
}

/// Lists the root directory in the order in which it is built.
pub(crate) fn own_root(policy: &Policy, host: &Host, identity: Identity) -> Vec<Node> {
    let mut nodes: Vec<Node> = host.system.iter().map(shown).collect();
    nodes.extend(identity_files(policy, identity));
    nodes.extend(network_files(policy, host));
    nodes.extend(devices());
    nodes.push(Node::Processes("/proc".into()));
    nodes.extend(["/run", "/var/lib", "/var/cache"].map(|path| Node::Directory(path.into())));
    nodes.push(scratch(TEMPORARY, "tmp"));
    nodes.push(scratch(LASTING, "tmp"));
    nodes.extend(policy.readable.iter().map(|path| granted(path, Reach::Read)));
    nodes.extend(policy.writable.iter().map(|path| granted(path, Reach::Change)));
    nodes.extend(workspace(policy));
    nodes
}

/// Lists the parts of the system that are in every such directory.
pub(crate) fn system(host: &Host) -> Vec<Node> {
    host.system.iter().map(shown).chain(devices()).collect()
}

fn shown(entry: &Visible) -> Node {
    match &entry.kind {
        VisibleKind::Link(target) => {
            Node::Link { path: entry.path.clone(), target: target.clone() }
        }
        VisibleKind::SmallFile => Node::Copy(entry.path.clone()),
        VisibleKind::Directory | VisibleKind::File => of_system(&entry.path, Reach::Read),
    }
}

fn of_system(path: &Path, reach: Reach) -> Node {
    Node::Bind { path: path.to_owned(), source: Source::System(path.to_owned()), reach }
}

fn granted(path: &Path, reach: Reach) -> Node {
    Node::Bind { path: path.to_owned(), source: Source::Granted(path.to_owned()), reach }
}

fn scratch(path: &str, name: &str) -> Node {
    let source = Source::Scratch(name.into());
    Node::Bind { path: path.into(), source, reach: Reach::Change }
}

/// Users and groups: nobody but the command's own, the administrator and nobody.
fn identity_files(policy: &Policy, identity: Identity) -> Vec<Node> {
    let Owner { user, group } = match identity {
        Identity::Server(owner) | Identity::Other(owner) => owner,
        Identity::Own { inside, .. } => inside,
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

fn network_files(policy: &Policy, host: &Host) -> Vec<Node> {
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
                let entries = host.identity.iter().chain(&host.resolver);
                entries.map(|entry| entry.path.as_path()).any(|known| known == *path)
            };
            nodes.extend(
                paths.iter().filter(|path| known(path)).map(|path| of_system(path, Reach::Read)),
            );
        }
    }
    nodes
}

fn devices() -> Vec<Node> {
    let mut nodes: Vec<Node> = DEVICES
        .into_iter()
        .map(|name| of_system(&Path::new("/dev").join(name), Reach::Device))
        .collect();
    nodes.push(Node::Terminals("/dev/pts".into()));
    nodes.push(scratch("/dev/shm", "shm"));
    for (path, target) in [
        ("/dev/ptmx", "pts/ptmx"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        nodes.push(Node::Link { path: path.into(), target: target.into() });
    }
    nodes
}

/// The workspace last, so that it is seen wherever it lies.
fn workspace(policy: &Policy) -> Vec<Node> {
    let reach = match policy.access {
        WorkspaceAccess::ReadWrite => Reach::Change,
        WorkspaceAccess::ReadOnly => Reach::Read,
    };
    let bind = |path: PathBuf, source, reach| Node::Bind { path, source, reach };
    let git = policy.workspace.join(".git");
    let hooks = git.join("hooks");
    let mut nodes = vec![Node::Directory(policy.workspace.clone())];
    // Below a directory that commands can change, what is above the workspace could be renamed away.
    let inside = |path: &&Path| {
        [TEMPORARY, LASTING].map(Path::new).iter().any(|top| path.starts_with(top) && path != top)
    };
    let above: Vec<&Path> = policy.workspace.ancestors().skip(1).take_while(inside).collect();
    let fixed = above.into_iter().rev();
    nodes.extend(fixed.map(|path| bind(path.to_owned(), Source::Above, Reach::Read)));
    nodes.push(bind(policy.workspace.clone(), Source::Workspace, reach));
    match policy.repository {
        Repository::Absent => {}
        Repository::WithoutHooks => nodes.push(bind(git, Source::Itself, reach)),
        Repository::WithHooks => {
            nodes.push(bind(git, Source::Itself, reach));
            nodes.push(bind(hooks, Source::Itself, Reach::Read));
        }
    }
    nodes
}

fn text(path: &str, text: impl Into<String>) -> Node {
    Node::File { path: path.into(), text: text.into() }
}
