//! The outcome of a finished command, as the readers of reports see it.

use std::borrow::Cow;
use std::time::Duration;

use crate::parse::{CouldNotRunReason, Failure, text};
use crate::paths;
use crate::plan::{Invocation, Selector};

/// Signals with which a process brings itself down: `SIGILL`, `SIGTRAP`, `SIGABRT`, `SIGBUS`,
/// `SIGFPE`, `SIGSEGV` and `SIGSYS`.
const CRASH_SIGNALS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];

/// The end of a command: an exit status, a signal, the time limit, or a failure to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the variants")]
pub enum Termination {
    Exited(i32),
    Signal(i32),
    TimedOut(Duration),
    NotFound,
    NotStarted(String),
}

/// A report file that a command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the contents are those of the file")]
pub struct ArtifactFile {
    /// Name in the artifact directory, or path relative to the workspace.
    pub name: String,
    pub contents: Vec<u8>,
}

/// The output, report files and end of a finished command. Everything in it is untrusted.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other fields are named after the streams")]
pub struct Outcome<'a> {
    pub termination: Termination,
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
    /// True if output was dropped because it exceeded the capture limit.
    pub truncated: bool,
    pub artifacts: &'a [ArtifactFile],
    /// Absolute path of the workspace inside of the sandbox.
    pub workspace: &'a str,
}

/// An outcome with its output as text, without terminal escapes.
#[derive(Debug)]
pub(crate) struct ParseContext<'a> {
    pub(crate) invocation: &'a Invocation,
    pub(crate) termination: &'a Termination,
    pub(crate) stdout: Cow<'a, str>,
    pub(crate) stderr: Cow<'a, str>,
    pub(crate) truncated: bool,
    artifacts: &'a [ArtifactFile],
    workspace: &'a str,
}

impl<'a> ParseContext<'a> {
    pub(crate) fn new(invocation: &'a Invocation, outcome: &'a Outcome<'a>) -> Self {
        Self {
            invocation,
            termination: &outcome.termination,
            stdout: text::plain(outcome.stdout),
            stderr: text::plain(outcome.stderr),
            truncated: outcome.truncated,
            artifacts: outcome.artifacts,
            workspace: outcome.workspace.trim_end_matches('/'),
        }
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.exit() == Some(0)
    }

    pub(crate) fn exit(&self) -> Option<i32> {
        if let Termination::Exited(status) = self.termination { Some(*status) } else { None }
    }

    /// Returns true if the command ended by itself, also by a crash, so that a missing result is the
    /// fault of a test. A time limit, a cancellation and the kernel's memory killer are not.
    pub(crate) fn ended_by_itself(&self) -> bool {
        match self.termination {
            Termination::Exited(_) => true,
            Termination::Signal(signal) => CRASH_SIGNALS.contains(signal),
            Termination::TimedOut(_) | Termination::NotFound | Termination::NotStarted(_) => false,
        }
    }

    /// Returns the reason why a command did not end by itself.
    pub(crate) fn interruption(&self) -> Option<CouldNotRunReason> {
        match self.termination {
            Termination::Exited(_) | Termination::NotFound => None,
            Termination::Signal(signal) => Some(CouldNotRunReason::Signal { signal: *signal }),
            Termination::TimedOut(after) => {
                Some(CouldNotRunReason::TimedOut { seconds: after.as_secs() })
            }
            Termination::NotStarted(message) => Some(CouldNotRunReason::NotStarted {
                program: self.invocation.argv.first().cloned().unwrap_or_default(),
                message: message.clone(),
            }),
        }
    }

    /// Returns the report files with their contents as text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        self.artifacts.iter().map(|file| (file.name.as_str(), text::plain(&file.contents)))
    }

    /// Returns the first report file, or else standard output.
    pub(crate) fn report(&self) -> Cow<'_, str> {
        match self.files().next() {
            Some((_, text)) => text,
            None => Cow::Borrowed(&self.stdout),
        }
    }

    pub(crate) fn has_files(&self) -> bool {
        self.artifacts.iter().any(|file| !file.contents.is_empty())
    }

    /// Returns a file name relative to the workspace; names outside of it stay as they are.
    pub(crate) fn file(&self, name: &str) -> String {
        let name = name.strip_prefix("file://").unwrap_or(name);
        let inside = name.strip_prefix(self.workspace).and_then(|rest| rest.strip_prefix('/'));
        match inside {
            Some(inside) => paths::resolve(paths::TOP, inside).unwrap_or_else(|| inside.to_owned()),
            None if name.starts_with('/') => name.to_owned(),
            None => paths::resolve(&self.invocation.base, name).unwrap_or_else(|| name.to_owned()),
        }
    }

    /// Returns true unless a file, as returned by [`Self::file`], belongs to dependencies or the
    /// runtime.
    pub(crate) fn is_user_code(name: &str) -> bool {
        let foreign = ["node_modules", "site-packages", ".venv", "venv"];
        !name.starts_with(['/', '<'])
            && !name.starts_with("node:")
            && !name.split('/').any(|part| foreign.contains(&part))
    }

    /// Creates the failure of a test that can be run again by its name and file.
    pub(crate) fn failure(
        &self,
        name: String,
        file: Option<String>,
        line: Option<u64>,
        message: &str,
    ) -> Failure {
        Failure {
            rerun: Some(Selector { file: file.clone(), ..self.selector(name.clone()) }),
            name,
            file,
            line,
            message: text::without_trace(message),
            diff: text::diff(message),
        }
    }

    /// Creates the selector of a test by its name alone.
    pub(crate) fn selector(&self, name: impl Into<String>) -> Selector {
        Selector {
            tool: self.invocation.tool,
            directory: self.invocation.directory.clone(),
            package: None,
            target: None,
            file: None,
            name: name.into(),
        }
    }
}
