//! The state of the git repositories of a workspace: branch, and work that would be lost.
//!
//! Git obeys the configuration of a repository, and much of it names programs: filters, signature
//! checks, transports, monitors. A hostile repository could run them with the server's rights. So git
//! never reads that configuration. It gets a git directory of the server's own (`view`), with a minimal
//! configuration and links to the repository's objects, references and index. What git cannot tell that
//! way counts as unsaved work.

mod fingerprint;
mod repositories;
mod view;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrel_domain::{ByteSize, message_of};
use carrel_exec::{CaptureLimits, CommandSpec, ExitStatus, LazySpawner, Limits, Output, Stdin};
use carrel_fsroot::Root;
use futures_util::future::BoxFuture;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::error::Error;
use crate::workspaces::Workspaces;
pub use fingerprint::Fingerprint;
use repositories::FoundRepository;
pub(crate) use view::VIEWS;
use view::{StorageFormat, View};

/// The time for all git commands about one workspace.
const DEADLINE: Duration = Duration::from_secs(30);

/// The most output of a git command that is read.
const CAPTURE: CaptureLimits = CaptureLimits { head: ByteSize::mib(1), tail: ByteSize::kib(1) };

/// The limits of a git command: the repository may be hostile.
const LIMITS: Limits =
    Limits { data: Some(ByteSize::gib(1)), cpu: Some(Duration::from_secs(30)), ..Limits::NONE };

const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// The state of one repository of a workspace, as far as git could tell without reading its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GitState {
    /// The work tree, relative to the workspace.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// The branch, or the commit of a detached head.
    pub branch: Option<String>,
    /// The number of files that differ from the last commit or are untracked.
    pub changed_files: usize,
    /// The number of commits on no remote.
    pub unpushed_commits: usize,
    /// The number of stashes.
    pub stashes: usize,
    /// The reason why git could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl GitState {
    fn unknown(path: &Path, error: Option<String>) -> Self {
        let path = path.to_owned();
        Self { path, branch: None, changed_files: 0, unpushed_commits: 0, stashes: 0, error }
    }

    /// Describes the work that would be lost with the work tree. An unknown state counts as lost.
    pub fn unsaved(&self) -> Vec<String> {
        let at = self.path.display();
        let counted = [
            (self.changed_files, "changed file", "changed files"),
            (self.unpushed_commits, "commit on no remote", "commits on no remote"),
            (self.stashes, "stashed change", "stashed changes"),
        ];
        let mut reasons: Vec<String> = counted
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| {
                format!("{count} {} in {at}", if count == 1 { one } else { many })
            })
            .collect();
        reasons.extend(self.error.iter().map(|error| format!("git cannot tell in {at} ({error})")));
        reasons
    }
}

impl Workspaces {
    /// Returns the state of every repository in a workspace.
    pub fn repositories<'a>(
        &'a self,
        workspace: &'a Root,
        spawner: &'a LazySpawner,
    ) -> BoxFuture<'a, Result<Vec<GitState>, Error>> {
        Box::pin(self.find_repositories(workspace, spawner))
    }

    async fn find_repositories(
        &self,
        workspace: &Root,
        spawner: &LazySpawner,
    ) -> Result<Vec<GitState>, Error> {
        let until = Instant::now() + DEADLINE;
        let files = workspace.try_clone().map_err(Error::files("could not open the workspace"))?;
        let mut states = Vec::new();
        for found in blocking(move || repositories::repositories(&files)).await? {
            let FoundRepository { path, git_directory } = found;
            let state = self.state(workspace, &path, git_directory, spawner, until).await;
            states.push(state.unwrap_or_else(|reason| GitState::unknown(&path, Some(reason))));
        }
        Ok(states)
    }

    async fn state(
        &self,
        workspace: &Root,
        path: &Path,
        git_directory: Result<Root, String>,
        spawner: &LazySpawner,
        until: Instant,
    ) -> Result<GitState, String> {
        let worktree = workspace.open_root(path).map_err(|error| error.to_string())?;
        let repository = self.open_repository(worktree, git_directory?, spawner, until).await?;
        let query = repository.query();
        let status = query.git(&STATUS, Stdin::Empty).await?;
        let unpushed = query.git(&UNPUSHED, Stdin::Empty).await?;
        let stashes = query.git(&["stash", "list"], Stdin::Empty).await?;
        Ok(GitState {
            branch: branch(&status),
            changed_files: status.lines().filter(|line| !line.starts_with('#')).count(),
            unpushed_commits: unpushed.trim().parse().map_err(|_| "no count of commits")?,
            stashes: stashes.lines().count(),
            ..GitState::unknown(path, None)
        })
    }

    async fn open_repository<'a>(
        &self,
        worktree: Root,
        git_directory: Root,
        spawner: &'a LazySpawner,
        until: Instant,
    ) -> Result<OpenRepository<'a>, String> {
        let query = GitQuery { spawner, worktree: &worktree, view: None, until };
        let view = self.view(git_directory, &query).await?;
        Ok(OpenRepository { worktree, view, spawner, until })
    }

    /// Makes a view in the storage format of the repository. Git parses the configuration from stdin as
    /// plain data: nothing in it takes effect.
    async fn view(&self, git_directory: Root, query: &GitQuery<'_>) -> Result<View, String> {
        let config = git_directory.read(Path::new("config"), MAX_CONFIG_BYTES);
        let config = config.map_err(|error| error.to_string())?;
        let list =
            query.git(&["config", "--file", "-", "--list", "-z"], Stdin::Bytes(config)).await?;
        let format = StorageFormat::parse(&list)?;
        let inner = self.inner.clone();
        let made = blocking(move || {
            View::make(inner, &git_directory, &format)
                .map_err(Error::files("could not look at the repository"))
        });
        made.await.map_err(|error| message_of(&error))
    }
}

/// Submodules are found as repositories of their own.
const STATUS: [&str; 5] =
    ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=all"];

/// Tags come with a clone; stashes are counted apart.
const UNPUSHED: [&str; 7] = [
    "rev-list",
    "--count",
    "--exclude=refs/stash",
    "--exclude=refs/tags/*",
    "--all",
    "--not",
    "--remotes",
];

/// A repository that git looks at through a view.
struct OpenRepository<'a> {
    worktree: Root,
    view: View,
    spawner: &'a LazySpawner,
    until: Instant,
}

impl OpenRepository<'_> {
    fn query(&self) -> GitQuery<'_> {
        let Self { worktree, view, spawner, until } = self;
        GitQuery { spawner, worktree, view: Some(view.path()), until: *until }
    }
}

#[derive(Clone)]
struct GitQuery<'a> {
    spawner: &'a LazySpawner,
    worktree: &'a Root,
    view: Option<PathBuf>,
    until: Instant,
}

impl GitQuery<'_> {
    /// Returns git's output as text.
    async fn git(&self, arguments: &[&str], stdin: Stdin) -> Result<String, String> {
        let output = self.output(arguments, stdin, CAPTURE).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Returns git's output. Its error messages are dropped: they may quote files that the repository
    /// links to.
    async fn output(
        &self,
        arguments: &[&str],
        stdin: Stdin,
        capture: CaptureLimits,
    ) -> Result<Vec<u8>, String> {
        let mut argv: Vec<OsString> = vec!["git".into(), "--no-optional-locks".into()];
        argv.extend(arguments.iter().map(OsString::from));
        let directory = self.worktree.as_fd().try_clone_to_owned();
        let spec = CommandSpec {
            environment: self.environment(),
            stdin,
            output: Output::Separate { stdout: capture, stderr: CAPTURE },
            limits: LIMITS,
            deadline: Some(self.until.saturating_duration_since(Instant::now())),
            ..CommandSpec::new(argv, directory.map_err(|error| error.to_string())?)
        };
        let spawner = self.spawner.get().map_err(|error| error.to_string())?;
        // On the heap, because several questions are asked at the same time.
        let outcome = Box::pin(spawner.run(spec, &CancellationToken::new())).await;
        let outcome = outcome.map_err(|error| error.to_string())?;
        match outcome.end {
            _ if outcome.timed_out() => Err("it takes too long".to_owned()),
            ExitStatus::Exited(0) if outcome.stdout.omitted() == 0 => {
                Ok([outcome.stdout.head, outcome.stdout.tail].concat())
            }
            ExitStatus::Exited(0) => Err("it has too much to say".to_owned()),
            ExitStatus::Exited(status) => Err(format!("git {} ended with {status}", arguments[0])),
            ExitStatus::Signaled(_) | ExitStatus::Lost => {
                Err(format!("git {} was ended", arguments[0]))
            }
        }
    }

    /// Returns an environment without system and user configuration, prompts and transports.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let fixed = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_WORK_TREE", "."),
        ];
        let view = self.view.as_deref().unwrap_or(Path::new("/nonexistent"));
        let view = ("GIT_DIR".into(), view.into());
        fixed.into_iter().map(|(name, value)| (name.into(), value.into())).chain([view]).collect()
    }
}

fn branch(status: &str) -> Option<String> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    match value("# branch.head ") {
        Some("(detached)") | None => value("# branch.oid ").map(str::to_owned),
        Some(branch) => Some(branch.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsaved_work_is_listed_in_words() {
        let here = GitState::unknown(Path::new("."), None);
        assert!(here.unsaved().is_empty());
        let some = GitState { changed_files: 2, stashes: 1, unpushed_commits: 3, ..here };
        let reasons =
            ["2 changed files in .", "3 commits on no remote in .", "1 stashed change in ."];
        assert_eq!(some.unsaved(), reasons);
        let unknown = GitState::unknown(Path::new("repos/a"), Some("no git".into()));
        assert_eq!(unknown.unsaved(), ["git cannot tell in repos/a (no git)"]);
    }

    #[test]
    fn the_branch_is_a_name_or_a_commit() {
        assert_eq!(branch("# branch.oid abc\n# branch.head main\n").as_deref(), Some("main"));
        assert_eq!(branch("# branch.oid abc\n# branch.head (detached)\n").as_deref(), Some("abc"));
        assert_eq!(branch(""), None);
    }
}
