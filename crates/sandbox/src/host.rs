//! What a machine has that commands may see.

use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::exact_path;
use rustix::fs::{FileType, Mode, Stat, lstat, readlinkat};
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::landlock;
use crate::policy::Owner;

/// Programs and libraries: all of it readable by everyone on the host as well.
const SYSTEM_DIRECTORIES: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"];

/// What programs read below `/etc`. Anything else there, such as password hashes, host keys and
/// the settings of services, is not visible.
const ETC_ENTRIES: [&str; 43] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "magic.mime",
    "maven",
    "mime.types",
    "nodejs",
    "os-release",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xattr.conf",
];

/// Files below `/etc` that a namespace replaces with its own, and that commands see as they are
/// where there is none.
const ETC_NAME_FILES: [&str; 5] = ["group", "hosts", "nsswitch.conf", "passwd", "hostname"];

/// The devices that every program may count on.
pub(crate) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// How long a file may be that is copied for commands. All such files together are far from filling
/// the room that a root directory has.
pub(crate) const MAX_COPIED_BYTES: u64 = 64 << 10;

/// Something that commands may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// Where it is.
    #[serde(with = "exact_path")]
    pub path: PathBuf,
    /// What it is.
    pub kind: HostEntryKind,
}

/// What something is that commands may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostEntryKind {
    /// A directory with all that it holds.
    Directory,
    /// A file.
    File,
    /// A file with little in it that everybody on the host can read.
    SmallFile,
    /// A symbolic link, with what it says.
    Link(#[serde(with = "exact_path")] PathBuf),
}

/// The facts about a machine that plans are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The version of Landlock; zero for none.
    pub landlock: u32,
    /// Who Carrel runs as.
    pub server: Owner,
    /// What every command may read.
    pub system: Vec<HostEntry>,
    /// What names users and hosts.
    pub name_files: Vec<HostEntry>,
    /// Where names of hosts are looked up, if there is such a file.
    pub resolver: Option<HostEntry>,
}

impl Host {
    /// Looks at the machine. That takes about fifty calls for metadata.
    pub fn probe() -> Self {
        let etc = |names: &[&str]| -> Vec<HostEntry> {
            names
                .iter()
                .filter_map(|name| HostEntry::at(&Path::new("/etc").join(name)).ok())
                .collect()
        };
        let mut system: Vec<HostEntry> = SYSTEM_DIRECTORIES
            .iter()
            .filter_map(|path| HostEntry::at(Path::new(path)).ok())
            .collect();
        system.extend(etc(&ETC_ENTRIES));
        Self {
            landlock: landlock::version(),
            server: Owner { user: geteuid().as_raw(), group: getegid().as_raw() },
            system,
            name_files: etc(&ETC_NAME_FILES),
            resolver: etc(&["resolv.conf"]).pop(),
        }
    }

    /// Returns whether Carrel runs as the user who may do everything.
    pub fn is_root(&self) -> bool {
        self.server.user == 0
    }
}

impl HostEntry {
    /// Looks at what is there.
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

/// Tells whether a file is one that is copied for commands. Whoever copies it may be able to read what
/// they may not.
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
