//! The table of a policy file's settings.

use std::time::Duration;

use carrel_domain::{ByteSize, Code};

use super::operator_policy::Trust;
use super::toolchain;
use crate::schema::DefaultValue::{Computed, Literal};
use crate::schema::ValueKind::{
    AutoOrNames, Choice, Count, Flag, Paths, Servers, Size, Time, Variables,
};
use crate::schema::{Syntax, ValueKind, settings};

const TIERS: &[&str] = &["auto", "full", "landlock"];

/// From a second to 30 days, which every clock can add up.
const TIME: ValueKind = Time { min: Duration::from_secs(1), max: MAX_TIME };
const MAX_TIME: Duration = Duration::from_hours(30 * 24);
/// An interpreter does not start with less.
const MIN_MEMORY: ByteSize = ByteSize::mib(16);
/// Enough for a line of output and a small file.
const MIN_FILE: ByteSize = ByteSize::kib(4);
/// 16 TiB: more than any machine has, and far from an overflow.
const MAX_SIZE: ByteSize = ByteSize::gib(16 << 10);
/// Enough for a shell, a pipeline and Carrel's init.
const MIN_PROCESSES: u64 = 8;
/// The kernel's upper bound of process ids.
const MAX_PROCESSES: u64 = 1 << 22;
/// Enough for the standard streams and the files of a small program.
const MIN_OPEN_FILES: u64 = 16;
/// The kernel's usual upper bound, `fs.nr_open`.
const MAX_OPEN_FILES: u64 = 1 << 20;
/// Each has processes, memory and a view of a workspace.
const MAX_SERVERS: u64 = 64;
/// Each has a record in memory.
const MAX_SNAPSHOTS: u64 = 10_000;
/// Ids below belong to accounts of people and services; 65534 is the overflow id.
pub(crate) const MIN_UID: u64 = 1 << 16;
/// Programs that read ids as signed 32-bit numbers fail above.
pub(crate) const MAX_UID: u64 = (1 << 31) - 1;

settings! {
    Syntax::Toml, Code::PolicyInvalid;
    None, "Above the first `[table]`." {
        TIER = "tier", Choice(TIERS), Literal("\"auto\""), None,
            "The tier of the sandbox. `auto`: the strongest that this machine supports. `full`: namespaces, Landlock and seccomp, or no command runs. `landlock`: Landlock and seccomp only, even where more is possible.";
        NETWORK = "network", ValueKind::NETWORK, Literal("\"none\""), None,
            "The network of a command that neither asks for one nor belongs to a workspace or server with one: nothing, the workspace's own loopback, or the host's network.";
        NETWORK_LIMIT = "network_limit", ValueKind::NETWORK, Computed("`--network` of the command line; else `loopback` in tier `full`, `none` in tier `landlock`, and at least `network`"), None,
            "The most network that any command gets. At least `network`. What `--network`, a workspace, a token, a task's step and a request name can only lower it.";
        READABLE = "readable", Paths, Literal("[]"), None,
            "Further files and directories that every command may read and run, beside the system's and the toolchains'.";
        WRITABLE = "writable", Paths, Literal("[]"), None,
            "Further files and directories that every command may read and change. Files that one workspace leaves there are visible to all others and to the operator.";
        PATH = "path", Paths, Literal("[]"), None,
            "Further directories for the front of `PATH`. Commands may read them too.";
        TOOLCHAINS = "toolchains", AutoOrNames(toolchain::names), Literal("\"auto\""), None,
            "The operator's toolchains that commands may read: `\"auto\"` for all that are detected, a list of names, or `[]` for none. See [below](#toolchains).";
        TRUST = "trust", Choice(Trust::NAMES), Literal("\"restore\""), None,
            "The reaction to a command that changes a file which would later run outside the sandbox, such as a git hook or an editor's task: the change is undone and reported, or only reported.";
    }
    Some("environment"), "Variables for every command." {
        ENVIRONMENT = "environment", Variables, Literal("{}"), None,
            "Names and values. They win over those of toolchains; variables of a request win over them. Every command can read them, so do not put secrets here.";
    }
    Some("limits"), "The resources of one command. Nothing is unlimited, except the time of a session. A request can lower a limit but not raise one, except the deadline." {
        LIMIT_WALL = "limits.wall", TIME, Literal("\"2m\""), None,
            "The deadline of a command whose request names none.";
        LIMIT_WALL_LIMIT = "limits.wall_limit", TIME, Literal("\"1h\""), None,
            "The longest deadline that a request may have. If it is not written, `limits.wall` where that is longer than an hour.";
        LIMIT_CPU = "limits.cpu", TIME, Literal("\"10m\""), None,
            "CPU time.";
        LIMIT_MEMORY = "limits.memory", Size { min: MIN_MEMORY, max: MAX_SIZE }, Literal("\"2GiB\""), None,
            "Memory of all its processes together; of each process where the kernel has no memory controller.";
        LIMIT_SESSION_MEMORY = "limits.session_memory", Size { min: MIN_MEMORY, max: MAX_SIZE }, Literal("\"3GiB\""), None,
            "The same for a process that serves a workspace for long, such as a language server, which has neither a deadline nor a limit of CPU time.";
        LIMIT_PROCESSES = "limits.processes", Count { min: MIN_PROCESSES, max: MAX_PROCESSES }, Literal("256"), None,
            "Processes and threads that exist at once.";
        LIMIT_FILE_SIZE = "limits.file_size", Size { min: MIN_FILE, max: MAX_SIZE }, Literal("\"512MiB\""), None,
            "The size of any file that it writes.";
        LIMIT_OPEN_FILES = "limits.open_files", Count { min: MIN_OPEN_FILES, max: MAX_OPEN_FILES }, Literal("1024"), None,
            "File descriptors that one process may have open.";
        LIMIT_LOG = "limits.log", Size { min: MIN_FILE, max: MAX_SIZE }, Literal("\"64MiB\""), None,
            "Output that is kept in the log.";
    }
    Some("language_servers"), "Programs that answer questions about source code, in the sandbox. No file of a workspace changes these settings. See [below](#language-servers)." {
        SERVERS_MOST = "language_servers.most", Count { min: 1, max: MAX_SERVERS }, Literal("8"), None,
            "Servers that run at a time, in the whole process. One more ends the one that was used least recently.";
        SERVERS_MEMORY = "language_servers.memory", Size { min: MIN_MEMORY, max: MAX_SIZE }, Literal("\"8GiB\""), None,
            "The memory that the running servers are expected to use together; beyond it the one that was used least recently is ended. Each has `limits.session_memory` as its own limit.";
        SERVERS_IDLE = "language_servers.idle", TIME, Literal("\"10m\""), None,
            "The time without a question after which a server is ended.";
        SERVERS_PROGRAMS = "language_servers.programs", Paths, Literal("[]"), None,
            "Directories in which servers are looked for before all others. Commands may read them.";
        SERVERS_TABLE = "language_servers.servers", Servers, Literal("{}"), None,
            "Further servers, and changes of built-in ones, by name.";
    }
    Some("snapshots"), "Snapshots that Carrel takes by itself, and what is kept of them. They are apart from those that somebody asked for. One of a tree that did not change is not taken again." {
        SNAPSHOT_TASKS = "snapshots.tasks", Flag, Literal("true"), None,
            "Take one before each task of the queue that may write.";
        SNAPSHOT_TURNS = "snapshots.turns", Flag, Literal("true"), None,
            "Take one before each turn of an agent of `carrel run`.";
        SNAPSHOT_COMMANDS = "snapshots.commands", Flag, Literal("false"), None,
            "Take one before each command of an agent or a client. Without it a call can ask for one with `snapshot`.";
        SNAPSHOT_KEEP = "snapshots.keep", Count { min: 1, max: MAX_SNAPSHOTS }, Literal("50"), None,
            "The most that are kept in a workspace.";
        SNAPSHOT_KEEP_FOR = "snapshots.keep_for", TIME, Literal("\"7d\""), None,
            "The age up to which they are kept. The newest one always is.";
        SNAPSHOT_KEEP_BYTES = "snapshots.keep_bytes", Size { min: MIN_MEMORY, max: MAX_SIZE }, Literal("\"1GiB\""), None,
            "The most bytes that they may add to the store of a workspace.";
    }
    Some("forks"), "Forks of workspaces, which keep their bases frozen." {
        FORKS_IDLE = "forks.idle", ValueKind::TimeOrOff { max: MAX_TIME }, Literal("\"1h\""), None,
            "The time without a use after which a server and `carrel workspace gc` end a fork. Its work becomes a snapshot of its base first. 0 keeps forks until they are promoted or removed.";
    }
    Some("uids"), "Used only when Carrel runs as root: the user ids that commands have on the host, one for each workspace. No account, and no other program that assigns ids, may use them." {
        UID_FIRST = "uids.first", Count { min: MIN_UID, max: MAX_UID }, Literal("2000000000"), None,
            "The first id.";
        UID_COUNT = "uids.count", Count { min: 1, max: MAX_UID }, Literal("65536"), None,
            "The number of ids. The last one is at most 2147483647.";
    }
}
