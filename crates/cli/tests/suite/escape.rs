//! Attempts to get out of the sandbox, each made by a real process under `carrel exec`.
//!
//! A test is named after the layer that stops the attempt, and lies in a module named after the
//! tier. Where that says anything, the same probe first succeeds outside, so that a refusal inside
//! is the sandbox's and no mistake of the probe. Files that must not be reached are open to
//! everybody as far as their modes go, for the same reason.
//!
//! Run by root, every test is made twice: with Carrel as root, and with Carrel as an ordinary user.
//! Run by an ordinary user, the second half is all there is.

/// Single system calls, those of other calling conventions included.
mod calls;
/// Files that are not of the workspace.
mod files;
/// What git would run later, outside.
mod git;
/// Users, capabilities and set-user-id files.
mod identity;
/// What Carrel itself has open and in its environment.
mod inherited;
/// The kernel's own files: devices, `/sys`, settings.
mod machine;
/// Sockets of every kind.
mod network;
/// Processes outside.
mod processes;
/// The operator's terminal.
mod terminal;

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::Run;

/// The ordinary user that Carrel runs as when the tests run as root.
const NOBODY: u32 = 65534;

/// The owner of workspaces of root's Carrel in tier `landlock`, which must not be root.
const OWNER: u32 = 2_000_000_001;

/// The system's own interpreter: every command can see it, whatever its home is.
const PYTHON: &str = "/usr/bin/python3";

/// What every probe begins with: a interface to make any system call and to note what came of it.
const PRELUDE: &str = include_str!("escape/probes/prelude.py");

/// Text that nothing inside may ever see.
const CANARY: &str = "canary-7c31f0";

/// Who Carrel runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Root,
    Ordinary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Full,
    Landlock,
}

impl Tier {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Landlock => "landlock",
        }
    }
}

/// A workspace, a home and a state directory that belong to one user, with the user's Carrel.
struct Scenario {
    directory: tempfile::TempDir,
    who: Who,
    tier: Tier,
}

/// Makes a scenario for every user that Carrel can run as, and says loudly where the kernel cannot.
fn scenes(tier: Tier) -> Vec<Scenario> {
    let users: &[Who] =
        if geteuid().is_root() { &[Who::Root, Who::Ordinary] } else { &[Who::Ordinary] };
    let scenes = users.iter().map(|who| Scenario::new(*who, tier));
    let (possible, not): (Vec<_>, Vec<_>) = scenes.partition(Scenario::is_possible);
    for scenario in not {
        carrel_skip::unavailable(&format!("tier {} for {:?}", tier.name(), scenario.who));
    }
    possible
}

impl Scenario {
    fn new(who: Who, tier: Tier) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scenario = Self { directory, who, tier };
        // Sandboxes, not modes, are what is tried here.
        open_to_all(scenario.directory.path());
        for name in ["home", "state", "workspace"] {
            scenario.make_directory(name);
        }
        scenario.give(&scenario.workspace());
        scenario.install();
        scenario
    }

    /// Puts the program where every user finds it.
    fn install(&self) {
        let (built, link) = (env!("CARGO_BIN_EXE_carrel"), self.path("carrel"));
        if std::fs::hard_link(built, &link).is_err() {
            std::fs::copy(built, &link).unwrap();
        }
    }

    /// Asks the kernel, not Carrel, whether it has what the tier needs.
    fn is_possible(&self) -> bool {
        match self.tier {
            Tier::Full => {
                let mut probe = self.host("unshare");
                probe.args(["--user", "--map-current-user", "--mount", "true"]);
                probe.stderr(Stdio::null()).status().unwrap().success()
            }
            Tier::Landlock => {
                // With this flag `landlock_create_ruleset` returns the version.
                let probe = "attempt('version', lambda: call(444, None, 0, 1))";
                self.outside(probe, &json!({}))["version"] == "done"
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// The user whom the kernel takes a command for; Carrel's where it gives each one its own.
    fn command_user(&self) -> u32 {
        match (self.who, self.tier) {
            (Who::Root, Tier::Landlock) => OWNER,
            (Who::Root, Tier::Full) => 0,
            (Who::Ordinary, _) => self.carrel_user(),
        }
    }

    fn carrel_user(&self) -> u32 {
        match self.who {
            Who::Root => 0,
            Who::Ordinary if geteuid().is_root() => NOBODY,
            Who::Ordinary => geteuid().as_raw(),
        }
    }

    /// Makes a directory of Carrel's user that everybody may enter.
    fn make_directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        own(&path, self.carrel_user());
        open_to_all(&path);
        path
    }

    /// Makes a file of the command's user that everybody may read and change.
    fn make_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        set_mode(&path, 0o666);
        own(&path, self.command_user());
        path
    }

    /// Makes a path, and all that is below it, the command user's own.
    fn give(&self, path: &Path) {
        own(path, self.command_user());
        if !path.is_symlink() && path.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                self.give(&entry.unwrap().path());
            }
        }
    }

    /// A program outside the sandbox, as Carrel's user, with nothing in its environment.
    fn host(&self, program: impl AsRef<Path>) -> Command {
        self.host_as(self.carrel_user(), program)
    }

    fn host_as(&self, user: u32, program: impl AsRef<Path>) -> Command {
        let mut command = if geteuid().as_raw() == user {
            Command::new(program.as_ref())
        } else {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.arg("--clear-groups").arg(program.as_ref());
            command
        };
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.workspace())
            .stdin(Stdio::null());
        command
    }

    /// `carrel ARGUMENTS` as its user.
    fn carrel(&self, arguments: &[&str]) -> Command {
        let mut command = self.host(self.path("carrel"));
        command.args(arguments);
        command
    }

    /// `carrel exec OPTIONS --json -- ARGV` in the workspace.
    fn exec_command(&self, options: &[&str], argv: &[&str]) -> Command {
        let mut command = self.carrel(&["exec", "--json", "--tier", self.tier.name()]);
        command.arg("--workspace").arg(self.workspace()).args(options).arg("--").args(argv);
        command
    }

    fn exec(&self, options: &[&str], argv: &[&str]) -> Answer {
        Answer::of(self.exec_command(options, argv))
    }

    /// Runs a line of bash inside.
    fn line(&self, line: &str) -> Answer {
        self.exec(&[], &["bash", "-c", line])
    }

    /// Makes a probe inside; returns what it saw.
    fn inside(&self, probe: &str, given: &Value) -> Value {
        self.inside_with(&[], probe, given)
    }

    fn inside_with(&self, options: &[&str], probe: &str, given: &Value) -> Value {
        let text = whole(probe);
        self.exec(options, &[PYTHON, "-c", &text, &given.to_string()]).seen()
    }

    /// Makes the same probe outside, as the command's user.
    fn outside(&self, probe: &str, given: &Value) -> Value {
        self.outside_as(self.command_user(), probe, given)
    }

    fn outside_as(&self, user: u32, probe: &str, given: &Value) -> Value {
        let mut command = if geteuid().is_root() {
            // A control that has root's rights has them over mounts of its own only.
            let mut command = self.host_as(0, "unshare");
            command.args(["--mount", "--uts", "setpriv"]);
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.args(["--clear-groups", PYTHON]);
            command
        } else {
            self.host_as(user, PYTHON)
        };
        command.args(["-c", &whole(probe), &given.to_string()]);
        let run = Run::of(command);
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str(&run.stdout).expect(&run.stdout)
    }

    /// Tells whether `doctor` promises something in this tier.
    fn promises(&self, guarantee: &str) -> bool {
        let run = Run::of(self.carrel(&["doctor", "--json", "--tier", self.tier.name()]));
        let diagnosis: Value = serde_json::from_str(&run.stdout).expect(&run.stderr);
        let all = diagnosis["guarantees"].as_array().unwrap();
        let found = all.iter().find(|one| one["name"] == guarantee).expect(guarantee);
        found["holds"].as_bool().unwrap()
    }

    /// Which names there are, at any depth below a directory outside.
    fn names_below(&self, name: &str) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut rest = vec![self.path(name)];
        while let Some(path) = rest.pop() {
            for entry in std::fs::read_dir(&path).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    rest.push(path.clone());
                }
                found.insert(path);
            }
        }
        found
    }
}

fn whole(probe: &str) -> String {
    format!("{PRELUDE}\n{probe}\nprint(json.dumps(seen))\n")
}

fn open_to_all(path: &Path) {
    set_mode(path, 0o777);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn own(path: &Path, user: u32) {
    if geteuid().is_root() && !path.is_symlink() {
        chown(path, Some(user), Some(user)).unwrap();
    }
}

/// What `carrel exec --json` said.
struct Answer(Value);

impl Answer {
    fn of(command: Command) -> Self {
        let run = Run::of(command);
        Self(serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr)))
    }

    fn stdout(&self) -> &str {
        self.0["stdout"].as_str().unwrap()
    }

    fn stderr(&self) -> &str {
        self.0["stderr"].as_str().unwrap()
    }

    /// What a probe printed.
    fn seen(&self) -> Value {
        serde_json::from_str(self.stdout()).unwrap_or_else(|_| panic!("{:#}", self.0))
    }

    /// The system calls that the kernel reported as refused by the filter.
    fn refused_by_seccomp(&self) -> BTreeSet<&str> {
        let denials = self.0["denials"].as_array().unwrap().iter();
        let exact = denials.filter(|denial| denial["source"] == "exact");
        let seccomp =
            exact.filter(|denial| denial["rule"].as_str().unwrap().starts_with("seccomp"));
        let objects = seccomp.map(|denial| denial["object"].as_str().unwrap());
        objects.map(|object| object.split('(').next().unwrap()).collect()
    }
}
