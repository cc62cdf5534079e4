//! The table of settings.

use std::time::Duration;

use carrel_domain::ByteSize;

use super::kind::Kind::{self, Choice, Count, Paths, Size, Time, ToolchainChoice, Variables};

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The dotted path from the top of the file.
    pub(crate) path: &'static str,
    /// What a value must be.
    pub(crate) kind: Kind,
    /// What holds when the file says nothing, as it would be written.
    pub(crate) default: &'static str,
    /// What the setting does, in one line.
    pub(crate) about: &'static str,
}

/// Settings that stand together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// What stands above them in the file; nothing for those at the top.
    pub(crate) header: Option<&'static str>,
    /// What they are about.
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
}

/// Returns every setting.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().flat_map(|section| section.keys)
}

/// The words for tiers.
pub(crate) const TIERS: &[&str] = &["auto", "full", "landlock"];
/// The words for networks.
pub(crate) const NETWORKS: &[&str] = &["none", "loopback", "full"];
/// The words for what happens to changed files that run later.
pub(crate) const TRUSTS: &[&str] = &["restore", "report"];

/// A deadline that a command can meet, and one that any clock can add up.
const TIME: Kind = Time { min: Duration::from_secs(1), max: Duration::from_hours(30 * 24) };
/// Less than this starts no interpreter.
const MIN_MEMORY: ByteSize = ByteSize::mib(16);
/// Room for a line of output and a small file.
const MIN_FILE: ByteSize = ByteSize::kib(4);
/// More than any machine has, and far from where sizes overflow.
const MAX_SIZE: ByteSize = ByteSize::gib(16 << 10);
/// Room for a shell, a pipeline and Carrel's own init.
const MIN_PROCESSES: u64 = 8;
/// The kernel's own upper bound of process ids.
const MAX_PROCESSES: u64 = 1 << 22;
/// Room for the standard streams and the files of a small program.
const MIN_OPEN_FILES: u64 = 16;
/// The kernel's usual upper bound, `fs.nr_open`.
const MAX_OPEN_FILES: u64 = 1 << 20;
/// Below are the accounts of people and services, and `nobody`.
pub(crate) const MIN_UID: u64 = 1 << 16;
/// Above, programs that read ids as signed numbers go wrong.
pub(crate) const MAX_UID: u64 = (1 << 31) - 1;

macro_rules! keys {
    ($($header:expr, $purpose:literal {
        $($name:ident = $path:literal, $kind:expr, $default:literal, $about:literal;)+
    })+) => {
        $($(pub(crate) const $name: Key =
            Key { path: $path, kind: $kind, default: $default, about: $about };)+)+

        /// Every section, in the order of the guide.
        pub(crate) const SECTIONS: &[Section] = &[
            $(Section { header: $header, about: $purpose, keys: &[$($name),+] }),+
        ];
    };
}

keys! {
    None, "Above the first `[table]`." {
        TIER = "tier", Choice(TIERS), "\"auto\"",
            "The tier of the sandbox. `auto`: the strongest that this machine supports. `full`: namespaces, Landlock and seccomp, or no command runs. `landlock`: Landlock and seccomp only, even where more is possible.";
        NETWORK = "network", Choice(NETWORKS), "\"none\"",
            "The network of a command whose request names none: nothing, the workspace's own loopback, or the host's network.";
        NETWORK_LIMIT = "network_limit", Choice(NETWORKS), "\"full\"",
            "The most network that a request may have. At least `network`.";
        READABLE = "readable", Paths, "[]",
            "Further files and directories that every command may read and run, beside the system's and the toolchains'.";
        WRITABLE = "writable", Paths, "[]",
            "Further files and directories that every command may read and change. Files that one workspace leaves there are visible to all others and to the operator.";
        PATH = "path", Paths, "[]",
            "Further directories for the front of `PATH`. Commands may read them too.";
        TOOLCHAINS = "toolchains", ToolchainChoice, "\"auto\"",
            "The operator's toolchains that commands may read: `\"auto\"` for all that are detected, a list of names, or `[]` for none. See [below](#toolchains).";
        TRUST = "trust", Choice(TRUSTS), "\"restore\"",
            "The reaction to a command that changes a file which would later run outside the sandbox, such as a git hook or an editor's task: the change is undone and reported, or only reported.";
    }
    Some("environment"), "Variables for every command." {
        ENVIRONMENT = "environment", Variables, "{}",
            "Names and values. They win over those of toolchains; variables of a request win over them. Every command can read them, so do not put secrets here.";
    }
    Some("limits"), "The resources of one command. Nothing is unlimited. A request can lower a limit but not raise one, except the deadline." {
        LIMIT_WALL = "limits.wall", TIME, "\"2m\"",
            "The deadline of a command whose request names none.";
        LIMIT_WALL_LIMIT = "limits.wall_limit", TIME, "\"1h\"",
            "The longest deadline that a request may have. If it is not written, `limits.wall` where that is longer than an hour.";
        LIMIT_CPU = "limits.cpu", TIME, "\"10m\"",
            "CPU time.";
        LIMIT_MEMORY = "limits.memory", Size { min: MIN_MEMORY, max: MAX_SIZE }, "\"2GiB\"",
            "Memory of all its processes together; of each process where the kernel has no memory controller.";
        LIMIT_PROCESSES = "limits.processes", Count { min: MIN_PROCESSES, max: MAX_PROCESSES }, "256",
            "Processes and threads that exist at once.";
        LIMIT_FILE_SIZE = "limits.file_size", Size { min: MIN_FILE, max: MAX_SIZE }, "\"512MiB\"",
            "The size of any file that it writes.";
        LIMIT_OPEN_FILES = "limits.open_files", Count { min: MIN_OPEN_FILES, max: MAX_OPEN_FILES }, "1024",
            "File descriptors that one process may have open.";
        LIMIT_LOG = "limits.log", Size { min: MIN_FILE, max: MAX_SIZE }, "\"64MiB\"",
            "Output that is kept in the log.";
    }
    Some("uids"), "Used only when Carrel runs as root: the user ids that commands have on the host, one for each workspace. No account, and no other program that assigns ids, may use them." {
        UID_FIRST = "uids.first", Count { min: MIN_UID, max: MAX_UID }, "2000000000",
            "The first id.";
        UID_COUNT = "uids.count", Count { min: 1, max: MAX_UID }, "65536",
            "The number of ids. The last one is at most 2147483647.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::document::Document;
    use std::collections::HashSet;

    #[test]
    fn every_key_is_described_once_and_stands_below_its_header() {
        let mut paths = HashSet::new();
        for section in SECTIONS {
            for key in section.keys {
                assert!(paths.insert(key.path), "{}", key.path);
                assert!(key.about.ends_with('.'), "{}", key.path);
                let first = key.path.split('.').next();
                assert!(section.header.is_none() || section.header == first, "{}", key.path);
            }
        }
    }

    #[test]
    fn every_default_is_toml() {
        for key in all() {
            let text = format!("{} = {}", key.path, key.default);
            assert!(Document::parse(&text).is_ok(), "{text}");
        }
    }
}
