//! The facts about a machine that plans are made from: kernel features, the server's user, and the
//! system files that every command may read.
//!
//! System files are an allowlist. Directories of programs and libraries are visible as a whole, because
//! every user of the host can read them; below `/etc` only named entries are, because the rest holds
//! password hashes, host keys and the settings of services.

use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::exact_path;
use rustix::fs::{FileType, Mode, Stat, lstat, readlinkat};
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::landlock;
use crate::policy::Owner;

/// Programs and libraries, readable by every user of the host as well.
const SYSTEM_DIRECTORIES: &str = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix";

/// The entries of `/etc` that ordinary programs read, separated by white space.
const ETC_ENTRIES: &str = "
    alternatives bash.bashrc ca-certificates ca-certificates.conf crypto-policies
    debian_version fonts gai.conf host.conf inputrc java-11-openjdk java-17-openjdk
    java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime
    lsb-release magic magic.mime maven mime.types nodejs ocamlfind.conf os-release perl php.d php.ini
    php/8.1/cli php/8.1/mods-available php/8.2/cli php/8.2/mods-available php/8.3/cli
    php/8.3/mods-available php/8.4/cli php/8.4/mods-available pki/ca-trust
    pki/tls/certs profile profile.d protocols python3 python3.10 python3.11 python3.12
    python3.13 services ssl/certs ssl/openssl.cnf terminfo timezone xattr.conf
";

/// The files of `/etc` that name users and hosts. A cell with a mount namespace has its own; without
/// one, commands read the host's.
const ETC_NAME_FILES: &str = "group hosts nsswitch.conf passwd hostname";

/// The devices that every command can use.
pub(crate) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The largest file that is copied into a root directory instead of mounted. All such files together
/// are far below the 4 MiB of its tmpfs.
pub(crate) const MAX_COPIED_BYTES: u64 = 64 << 10;

/// A path of the host that commands may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// The absolute path.
    #[serde(with = "exact_path")]
    pub path: PathBuf,
    /// The type of file, which decides whether it is mounted, copied or linked.
    pub kind: HostEntryKind,
}

/// The type of a [`HostEntry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostEntryKind {
    /// A directory, visible with all its contents.
    Directory,
    /// A file that is mounted.
    File,
    /// A regular file of at most 64 KiB that every user of the host can read; it is copied, because a
    /// copy costs less than a mount.
    SmallFile,
    /// A symbolic link with its target.
    Link(#[serde(with = "exact_path")] PathBuf),
}

/// The facts about a machine that plans are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The version of the Landlock ABI; zero if the kernel has none.
    pub landlock: u32,
    /// The user that Carrel runs as.
    pub server: Owner,
    /// The system files that every command may read.
    pub system: Vec<HostEntry>,
    /// The files of `/etc` that name users and hosts.
    pub name_files: Vec<HostEntry>,
    /// `/etc/resolv.conf`, if there is one. Commands see it with network `full` only.
    pub resolver: Option<HostEntry>,
}

impl Host {
    /// Probes the machine, with about sixty calls for metadata. Entries that do not exist are left out.
    pub fn probe() -> Self {
        let found = |top: &str, names: &str| -> Vec<HostEntry> {
            let paths = names.split_whitespace().map(|name| Path::new(top).join(name));
            paths.filter_map(|path| HostEntry::at(&path).ok()).collect()
        };
        let mut system = found("/", SYSTEM_DIRECTORIES);
        system.extend(found("/etc", ETC_ENTRIES));
        Self {
            landlock: landlock::version(),
            server: Owner { user: geteuid().as_raw(), group: getegid().as_raw() },
            system,
            name_files: found("/etc", ETC_NAME_FILES),
            resolver: found("/etc", "resolv.conf").pop(),
        }
    }

    /// Returns whether Carrel runs as root.
    pub fn is_root(&self) -> bool {
        self.server.user == 0
    }
}

impl HostEntry {
    /// Classifies the file at a path, without following a link.
    pub fn at(path: &Path) -> io::Result<Self> {
        let status = lstat(path)?;
        let kind = match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => HostEntryKind::Directory,
            FileType::Symlink => HostEntryKind::Link(link_target(path)?),
            _ if is_copied(&status) => HostEntryKind::SmallFile,
            _ => HostEntryKind::File,
        };
        Ok(Self { path: path.to_owned(), kind })
    }
}

/// Returns whether a file is copied into root directories: regular, readable by every user, not
/// executable, and small. The server may run as root, so the mode decides and not its own access.
pub(crate) fn is_copied(status: &Stat) -> bool {
    let mode = Mode::from_raw_mode(status.st_mode);
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
        && mode.contains(Mode::ROTH)
        && !mode.intersects(Mode::XUSR | Mode::XGRP | Mode::XOTH)
        && u64::try_from(status.st_size).is_ok_and(|size| size <= MAX_COPIED_BYTES)
}

fn link_target(path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let target = readlinkat(rustix::fs::CWD, path, Vec::new())?;
    Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_interpreters_are_visible_if_they_are_installed() {
        let visible: Vec<PathBuf> =
            Host::probe().system.into_iter().map(|entry| entry.path).collect();
        let settings = ["/etc/php/8.2/cli", "/etc/php/8.2/mods-available", "/etc/ocamlfind.conf"];
        for path in settings.map(Path::new).into_iter().filter(|path| lstat(*path).is_ok()) {
            assert!(visible.iter().any(|known| known == path), "{}", path.display());
        }
    }
}
