//! What is left of a finished command.

use std::borrow::Cow;
use std::time::Duration;

use crate::parse::report::CouldNotRunReason;
use crate::parse::text;
use crate::paths;
use crate::plan::{Invocation, Selector};

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Termination {
    /// By itself, with a status.
    Exited(i32),
    /// By a signal.
    Signal(i32),
    /// It was stopped because it took longer than this.
    TimedOut(Duration),
    /// It never began, because there is no such program.
    NotFound,
    /// It never began, for another reason.
    NotStarted(String),
}

/// A file that a command left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactFile {
    /// Its name in the private directory, or its path relative to the workspace.
    pub name: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// What is left of a finished command.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// How it ended.
    pub termination: Termination,
    /// What it printed.
    pub stdout: &'a [u8],
    /// What it printed about errors.
    pub stderr: &'a [u8],
    /// Whether a part of what it printed is missing.
    pub truncated: bool,
    /// The files it left behind.
    pub artifacts: &'a [ArtifactFile],
    /// The absolute path of the workspace, as the command saw it.
    pub workspace: &'a str,
}

/// An outcome as the parsers see it.
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
        *self.termination == Termination::Exited(0)
    }

    pub(crate) fn exit(&self) -> Option<i32> {
        match self.termination {
            Termination::Exited(status) => Some(*status),
            Termination::Signal(_)
            | Termination::TimedOut(_)
            | Termination::NotFound
            | Termination::NotStarted(_) => None,
        }
    }

    /// Says why a command did not come to its end.
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

    /// Returns the files that were left behind, with their contents as text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        self.artifacts.iter().map(|file| (file.name.as_str(), text::plain(&file.contents)))
    }

    /// Returns the one report that was left in a file, or else what was printed.
    pub(crate) fn report(&self) -> Cow<'_, str> {
        match self.files().next() {
            Some((_, text)) => text,
            None => Cow::Borrowed(&self.stdout),
        }
    }

    pub(crate) fn has_files(&self) -> bool {
        self.artifacts.iter().any(|file| !file.contents.is_empty())
    }

    /// Writes a file's name relative to the workspace. One that lies elsewhere stays as it is.
    pub(crate) fn file(&self, name: &str) -> String {
        let name = name.strip_prefix("file://").unwrap_or(name);
        let inside = name.strip_prefix(self.workspace).and_then(|rest| rest.strip_prefix('/'));
        match inside {
            Some(inside) => paths::resolve(paths::TOP, inside).unwrap_or_else(|| inside.to_owned()),
            None if name.starts_with('/') => name.to_owned(),
            None => paths::resolve(&self.invocation.base, name).unwrap_or_else(|| name.to_owned()),
        }
    }

    /// Tells whether a file, as [`ParseContext::file`] returns it, is one of the user's own.
    pub(crate) fn is_user_code(name: &str) -> bool {
        let foreign = ["node_modules", "site-packages", ".venv", "venv"];
        !name.starts_with(['/', '<'])
            && !name.starts_with("node:")
            && !name.split('/').any(|part| foreign.contains(&part))
    }

    /// Makes the selector of a test by its name alone.
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
