//! `carrel run` and `carrel check`, with the tracker that is built in and plain commands as agents.

/// What a workflow file means, and what is wrong with it.
mod check;
/// The Codex app server as it is installed, with a model that follows a script.
mod codex;
/// Issues from their first day to their last.
mod course;
/// `kill -9` at random moments.
mod crash;
/// Everything in a database, and several conductors that have one.
mod database;
/// The API of a conductor.
mod interface;
/// Items of the acceptance list that only the whole program shows.
mod items;
/// Work that is saved nowhere else when its issue is closed.
mod kept;
/// Agents that make progress, and agents that only talk.
mod progress;
/// The recipes of the guide for hooks.
mod recipes;
/// What a terminal does to it.
mod screen;
/// What it answers over HTTP.
mod seen;
/// Ends in an orderly way.
mod stopping;
/// Carrel's own tools for agents.
mod tools;
/// What a collector of traces is sent.
mod traces;
/// Calls of trackers.
mod webhooks;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{Run, TestRoot, eventually};

pub(crate) use tools::fixture as tools_fixture;

/// A data directory, a root for workspaces, and a directory that agents may write to.
pub(crate) struct ConductorFixture {
    pub(crate) fixture: TestRoot,
    /// Where everything is kept, if not in the data directory.
    database: Option<String>,
}

/// A `carrel run` that goes on.
struct Running {
    child: Child,
    log: PathBuf,
}

impl ConductorFixture {
    fn new() -> Self {
        let fixture = TestRoot::new();
        std::fs::create_dir(fixture.path("outside")).unwrap();
        Self { fixture, database: None }
    }

    /// The same with everything in a database.
    fn on(self, url: &str) -> Self {
        Self { database: Some(url.to_owned()), ..self }
    }

    /// An fixture whose workflow file has these lines.
    pub(crate) fn with(lines: &str) -> Self {
        let fixture = Self::new();
        fixture.write(lines);
        fixture
    }

    fn write(&self, lines: &str) {
        let root = self.fixture.root();
        let outside = self.fixture.path("outside");
        let lines = lines.replace("OUTSIDE", &outside.display().to_string());
        let text = format!(
            "---\ntracker: {{kind: local}}\npolling: {{interval_ms: 100}}\nworkspace: {{root: {}}}\n{lines}\n---\nDo {{{{ issue.identifier }}}}.",
            root.display()
        );
        std::fs::write(self.fixture.path("WORKFLOW.md"), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.fixture.bare(arguments);
        command.envs(self.database.iter().map(|url| ("DATABASE_URL", url)));
        command
    }

    pub(crate) fn issue(&self, title: &str) {
        let run = Run::of(self.command(&["issue", "new", "--title", title]));
        assert_eq!(run.code, 0, "{}", run.stderr);
    }

    fn shift(&self, issue: &str, state: &str) {
        let run = Run::of(self.command(&["issue", "move", issue, state]));
        assert_eq!(run.code, 0, "{}", run.stderr);
    }

    fn state(&self, issue: &str) -> String {
        self.state_or_error(issue).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the state of an issue, or what the command said instead.
    fn state_or_error(&self, issue: &str) -> Result<String, String> {
        let run = Run::of(self.command(&["issue", "show", issue, "--json"]));
        let shown: Result<Value, _> = serde_json::from_str(&run.stdout);
        let state = shown.ok().and_then(|shown| Some(shown["state"].as_str()?.to_owned()));
        state.ok_or(run.stderr)
    }

    pub(crate) fn once(&self) -> Run {
        Run::of(self.command(&["run", "--once", "--json"]))
    }

    fn start(&self) -> Running {
        self.start_with(&[])
    }

    fn start_with(&self, more: &[&str]) -> Running {
        self.start_in(more, |_| {})
    }

    /// Starts it in an environment with more in it.
    fn start_in(&self, more: &[&str], change: impl FnOnce(&mut Command)) -> Running {
        let log = self.fixture.path("run.log");
        let file = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let mut command = self.command(&[&["run"], more].concat());
        change(&mut command);
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Running { child, log }
    }

    fn workspace(&self, issue: &str) -> PathBuf {
        self.fixture.root().join(issue)
    }

    /// What agents and hooks wrote outside their workspaces.
    fn notes(&self, name: &str) -> String {
        std::fs::read_to_string(self.fixture.path("outside").join(name)).unwrap_or_default()
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        kill_process(process, signal).unwrap();
    }

    /// Asks it to end, and returns its exit code.
    fn end(mut self) -> i32 {
        self.signal(Signal::TERM);
        self.wait()
    }

    fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until something is so, and shows the log when it never is.
    fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let shown = std::panic::AssertUnwindSafe(|| eventually(what, condition));
        if let Err(panic) = std::panic::catch_unwind(shown) {
            eprintln!("{}", self.log());
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
