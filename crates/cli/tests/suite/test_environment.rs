//! Where the suites of `carrel exec` run their commands: as whom, and behind which sandbox.

use std::fmt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde_json::Value;

/// An ordinary user that every system has.
const NOBODY: u32 = 65534;

/// The owner of a workspace that an administrator prepares for tier `landlock`.
const SOMEBODY: u32 = 2_000_000_000;

/// The variable that asks for the long runs.
const SOAK: &str = "CARREL_SOAK";

/// Tells whether the long runs are wanted.
pub(crate) fn is_soak() -> bool {
    std::env::var_os(SOAK).is_some()
}

/// Who starts `carrel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The administrator.
    Root,
    /// An ordinary user.
    User,
}

/// A home, a state directory and a workspace of their own.
pub(crate) struct TestEnvironment {
    directory: tempfile::TempDir,
    pub(crate) caller: Caller,
    pub(crate) tier: &'static str,
}

impl TestEnvironment {
    /// One for each caller that this process can be and each tier.
    pub(crate) fn all() -> Vec<Self> {
        let callers: &[Caller] = if geteuid().is_root() {
            &[Caller::Root, Caller::User]
        } else {
            eprintln!("not root: nothing is tried as the administrator");
            &[Caller::User]
        };
        let tiers = ["full", "landlock"];
        let pairs = callers.iter().flat_map(|caller| tiers.map(|tier| (*caller, tier)));
        pairs.map(|(caller, tier)| Self::new(caller, tier)).collect()
    }

    /// Tries something in all of them at once: most of the time is spent waiting.
    pub(crate) fn each(check: impl Fn(&Self) + Sync) {
        let labs = Self::all();
        std::thread::scope(|scope| {
            for test_env in &labs {
                scope.spawn(|| check(test_env));
            }
        });
    }

    /// One in the best tier, as whoever runs the tests.
    pub(crate) fn usual() -> Self {
        let caller = if geteuid().is_root() { Caller::Root } else { Caller::User };
        Self::new(caller, "full")
    }

    pub(crate) fn new(caller: Caller, tier: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let test_env = Self { directory, caller, tier };
        for name in ["home", "state", "workspace"] {
            std::fs::create_dir(test_env.path(name)).unwrap();
            test_env.give_to_caller(&test_env.path(name));
        }
        test_env.prepare(&test_env.workspace());
        test_env
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// Hands a file to whoever starts `carrel`.
    pub(crate) fn give_to_caller(&self, path: &Path) {
        if geteuid().is_root() && self.caller == Caller::User {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Makes a directory a workspace that commands of the tier can work in.
    fn prepare(&self, workspace: &Path) {
        if self.caller == Caller::Root && self.tier == "landlock" {
            chown(workspace, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        }
    }

    /// Writes a file into the workspace, for its owner.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        self.own(&path);
    }

    /// Hands a path of the workspace, with everything above it, to the owner of the workspace.
    pub(crate) fn own(&self, path: &Path) {
        let workspace = self.workspace();
        // Further up are directories of everybody's.
        assert!(path.starts_with(&workspace), "{} is not in the workspace", path.display());
        let owner = std::fs::metadata(&workspace).unwrap();
        for path in path.ancestors().take_while(|path| *path != workspace) {
            chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }

    /// Makes a workspace of a root, with a quota.
    pub(crate) fn managed(&self, quota: &str) -> PathBuf {
        let root = self.path("root");
        std::fs::create_dir(&root).unwrap();
        self.give_to_caller(&root);
        let mut command = self.carrel();
        command.args(["workspace", "create", "X", "--quota", quota, "--root"]).arg(&root);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{self}: {output:?}");
        let workspace = root.join("X");
        self.prepare(&workspace);
        workspace
    }

    /// Writes a policy file and returns the options that name it.
    pub(crate) fn policy(&self, text: &str) -> [String; 2] {
        let path = self.path("policy.toml");
        std::fs::write(&path, text).unwrap();
        self.give_to_caller(&path);
        ["--policy".to_owned(), path.display().to_string()]
    }

    /// `carrel` as the caller, in an environment with nothing of ours.
    pub(crate) fn carrel(&self) -> Command {
        let mut command = if geteuid().is_root() && self.caller == Caller::User {
            let mut command = Command::new("setpriv");
            let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
            command.args([&user, &group, "--clear-groups"]).arg(reachable_program());
            command
        } else {
            Command::new(env!("CARGO_BIN_EXE_carrel"))
        };
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    /// `carrel exec` in the workspace and the tier of this environment.
    pub(crate) fn exec<S: AsRef<str>>(&self, options: &[S]) -> Command {
        let mut command = self.carrel();
        command.args(["exec", "--tier", self.tier, "--workspace"]).arg(self.workspace());
        command.args(options.iter().map(AsRef::as_ref));
        command
    }

    /// `carrel exec` in another workspace.
    pub(crate) fn exec_in(&self, workspace: &Path, options: &[&str]) -> Command {
        let mut command = self.carrel();
        command.args(["exec", "--tier", self.tier, "--workspace"]).arg(workspace).args(options);
        command
    }

    /// Runs `carrel exec --json OPTIONS…`, where the options hold the command too.
    pub(crate) fn run<S: AsRef<str>>(&self, options: &[S]) -> Done {
        let mut command = self.exec(&["--json"]);
        command.args(options.iter().map(AsRef::as_ref));
        Done::of(command)
    }

    /// Runs a line for the shell.
    pub(crate) fn line(&self, line: &str) -> Done {
        self.run(&["-c", line])
    }

    /// Runs a line for the shell in another workspace.
    pub(crate) fn line_in(&self, workspace: &Path, line: &str) -> Done {
        let mut command = self.carrel();
        command.args(["exec", "--json", "--tier", self.tier, "--workspace"]).arg(workspace);
        command.args(["-c", line]);
        Done::of(command)
    }

    /// The scratch directories that are there.
    pub(crate) fn scratch(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("state/carrel/scratch"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    /// Tells whether a limit holds for all processes of a command together.
    pub(crate) fn enforces(&self, name: &str) -> bool {
        let sandbox = &self.run(&["--", "true"]).json["sandbox"];
        sandbox["enforced"].as_array().unwrap().iter().any(|one| one == name)
    }
}

impl fmt::Display for TestEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "as {:?}, tier {}", self.caller, self.tier)
    }
}

/// Returns the program where an ordinary user can read it.
fn reachable_program() -> &'static Path {
    static COPY: OnceLock<(Option<tempfile::TempDir>, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_carrel"));
        let passes = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o1 != 0;
        if program.ancestors().all(passes) {
            return (None, program.to_owned());
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let copy = directory.path().join("carrel");
        std::fs::copy(program, &copy).unwrap();
        (Some(directory), copy)
    });
    path
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    /// What was printed on stdout; null if that is nothing.
    pub(crate) json: Value,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Done {
    pub(crate) fn of(mut command: Command) -> Self {
        let begun = Instant::now();
        let output = command.output().unwrap();
        Self::from_output(&output, begun.elapsed())
    }

    pub(crate) fn from_output(output: &Output, took: Duration) -> Self {
        let json = match output.stdout.as_slice() {
            b"" => Value::Null,
            bytes => serde_json::from_slice(bytes).unwrap(),
        };
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code().unwrap_or(-1), json, stderr, took }
    }

    pub(crate) fn stdout(&self) -> &str {
        self.json["stdout"].as_str().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The error object, which is the last line of stderr.
    pub(crate) fn error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(last).expect(&self.stderr);
        value["error"].clone()
    }

    /// Tells whether a limit was named, as the one that ended the command or in a denial.
    pub(crate) fn names_limit(&self, name: &str) -> bool {
        let rule = format!("limit: {name}");
        let denials = self.json["denials"].as_array().unwrap();
        self.json["limit"] == name || denials.iter().any(|denial| denial["rule"] == rule.as_str())
    }
}

/// The argument of a `sleep` that nobody else has, by which it is found among all processes.
#[derive(Clone, Debug)]
pub(crate) struct Mark(pub(crate) String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("1000.{:07}{next:04}", std::process::id()))
    }

    /// Returns the running processes of commands that carry the mark.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let carries = |process: &Process| {
            let text = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let program = text.split('\0').next().unwrap_or_default();
            let is_ours = ["carrel", "setpriv"].iter().any(|name| program.ends_with(name));
            text.contains(&self.0) && !is_ours && process.is_running()
        };
        processes().into_iter().filter(carries).map(|process| process.pid).collect()
    }
}

/// A process as `/proc` shows it. The start time tells it from a later one with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) state: char,
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before may hold anything.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let parent = fields.get(1)?.parse().ok()?;
        let started = fields.get(19)?.parse().ok()?;
        Some(Self { pid, parent, state: fields.first()?.chars().next()?, started })
    }

    /// Tells whether it runs: a zombie does not.
    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    /// Tells whether the same process still runs.
    pub(crate) fn still_runs(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started && now.is_running())
    }
}

/// Returns all processes.
pub(crate) fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    entries.filter_map(|name| Process::read(name.to_str()?.parse().ok()?)).collect()
}

/// Returns everything below a process.
pub(crate) fn descendants(pid: i32) -> Vec<Process> {
    let all = processes();
    let mut found: Vec<Process> = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        let below = all.iter().filter(|process| process.parent == parent);
        let new: Vec<_> = below.filter(|process| !found.contains(process)).cloned().collect();
        next.extend(new.iter().map(|process| process.pid));
        found.extend(new);
    }
    found
}

/// Returns the control groups that a process made for its commands.
pub(crate) fn groups_of(server: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = vec![PathBuf::from("/sys/fs/cgroup")];
    let prefix = format!("{server}-");
    while let Some(directory) = next.pop() {
        // Groups of others come and go.
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            let name = path.file_name().unwrap().to_string_lossy();
            let is_home = directory.file_name().is_some_and(|name| name == "carrel");
            if is_home && name.starts_with(&prefix) {
                found.push(path.clone());
            }
            if !path.is_symlink() {
                next.push(path);
            }
        }
    }
    found
}

/// Returns the largest resident size that a process has had so far, in KiB.
pub(crate) fn peak_memory(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Returns what a directory holds on disk, in bytes.
pub(crate) fn allocated(directory: &Path) -> u64 {
    let mut bytes = 0;
    let mut next = vec![directory.to_owned()];
    while let Some(directory) = next.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                next.push(path);
            }
        }
    }
    bytes
}
