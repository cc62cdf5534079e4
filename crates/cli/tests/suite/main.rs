//! The `carrel` command as its users meet it: real processes, real hooks, real kills.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests drive the program from outside, and fail by panicking"
)]

/// `docs/architecture.md` against the manifests.
mod architecture;
/// Everything about a tree of files, compared before and after.
mod audit;
/// `carrel code`: every command on a small project, for people and as JSON.
mod code;
/// A collector of traces.
mod collector;
/// What each command prints, and how it fails.
mod commands;
/// Completion in a shell, and manual pages.
mod completion;
/// The conductor, from the outside.
mod conductor;
/// Definitions of tools: groups, and what they cost.
mod definitions;
/// Denials in the texts of every interface.
mod denials;
/// What holds on this machine.
mod doctor;
/// Attempts to get out of the sandbox.
mod escape;
/// What the operator hears of each call.
mod events;
/// `carrel exec` as its users meet it.
mod exec;
/// What a hostile workspace leaves for later.
mod forged;
/// Forks of a workspace, their frozen base, and promotion.
mod forks;
/// The home of commands beside the work tree.
mod homes;
/// Every rule about hooks.
mod hooks;
/// Paths that try to leave, through every tool and every session.
mod hostile_paths;
/// Files to begin with.
mod init;
/// The three ways to the tools: stdin, HTTP and the command line.
mod interfaces;
/// The tracker that is built in.
mod issues;
/// `kill -9` at random moments, and what the next start finds.
mod kill;
/// Log lines and error objects, which are interface.
mod lines;
/// Links to a workspace, in one, and out of one.
mod links;
/// Thousands of starts through one server.
mod load;
/// Resources and prompts of MCP, with attacks.
mod mcp_resources;
/// Long calls as tasks of MCP.
mod mcp_tasks;
/// The schema of the database.
mod migrate;
/// Typical mistakes on the command line, and the way out that is said.
mod mistakes;
/// The network as a cap: attempts to ask for more than the operator allows.
mod network_cap;
/// What a preset says about a command line.
mod policy;
/// Progress of long work.
mod progress_display;
/// Real projects pass their tests behind the sandbox.
mod projects;
/// `--read-only`, proven by the file system.
mod read_only;
/// What the systems before this one promised, lacked and got wrong.
mod reference;
/// Commands that take whatever they can get.
mod resources;
/// `carrel mcp` from its start to its end.
mod servers;
/// `carrel serve` and its clients.
mod service;
/// Which root and which hooks apply.
mod settings;
/// Snapshots as commits of git.
mod snapshot_export;
/// `carrel snapshot`, and undo.
mod snapshots;
/// `kill -9` of Carrel's processes while commands run.
mod survival;
/// Terminals.
mod terminal;
/// Where commands of `carrel exec` run in tests.
mod test_environment;
/// The `console` blocks of README and the guides, typed as printed.
mod transcripts;
/// Candidates in forks, and the best of them promoted.
mod tries;
/// The event of every refusal, once, whatever it came through.
mod violations;
/// Several processes that write the same files.
mod writers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a condition may take to come true on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Returns the directory that holds the workspace's manifest.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A root, a home and a workflow file of their own.
pub(crate) struct TestRoot {
    directory: tempfile::TempDir,
}

impl TestRoot {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("home")).unwrap();
        Self { directory }
    }

    /// A fixture whose workflow file has these lines below `hooks:`.
    fn with_hooks(hooks: &str) -> Self {
        let fixture = Self::new();
        fixture.write_hooks(hooks);
        fixture
    }

    fn write_hooks(&self, hooks: &str) {
        let hooks = hooks.replace('\n', "\n  ");
        let root = self.root();
        let text = format!("---\nworkspace:\n  root: {}\nhooks:\n  {hooks}\n---\n", root.display());
        std::fs::write(self.path("WORKFLOW.md"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// `carrel workspace ARGUMENTS` with the fixture's workflow file, or its root where there is none.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(&[&["workspace"], arguments].concat());
        let file = self.path("WORKFLOW.md");
        if file.exists() {
            command.arg("--config").arg(file);
        } else {
            command.arg("--root").arg(self.root());
        }
        command
    }

    /// `carrel ARGUMENTS` in an environment with nothing of ours.
    fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carrel"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments))
    }

    /// Runs with `--json` and expects success; returns what was printed.
    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap()
    }

    fn trash(&self) -> usize {
        std::fs::read_dir(self.root().join(".carrel/trash")).map_or(0, Iterator::count)
    }
}

/// A command that is over.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(mut command: Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        Self {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// The error object, which is the last line of stderr.
    fn error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(last).expect(&self.stderr);
        value["error"].clone()
    }
}

/// Waits until something is so, and fails loudly when it never is.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Tells whether a process that wrote its number into a file is still there.
fn is_running(pid_file: &Path) -> bool {
    let text = std::fs::read_to_string(pid_file).unwrap_or_default();
    let Ok(number) = text.trim().parse::<i32>() else { return false };
    let process = rustix::process::Pid::from_raw(number).unwrap();
    rustix::process::test_kill_process(process).is_ok()
}
