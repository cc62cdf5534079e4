//! What git says about a workspace, without running anything its repository configured.
//!
//! Git obeys the configuration of a repository, and much of it names programs:
//! filters, signature checks, transports, monitors. So git is never shown that
//! configuration. It is given a git directory of the server's own, with a
//! configuration of our own and links to the objects, references and index of the
//! repository. What such a view cannot tell counts as unsaved.

mod repositories;
mod view;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrel_domain::{ByteSize, message_of};
use carrel_exec::{CaptureLimits, CommandSpec, ExitStatus, LazySpawner, Limits, Output, Stdin};
use carrel_fsroot::Root;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::error::Error;
use crate::workspaces::Workspaces;
pub(crate) use view::VIEWS;
use view::{Format, View};

/// How long all questions about one workspace may take together.
const DEADLINE: Duration = Duration::from_secs(30);

/// How much of git's answers is read.
const CAPTURE: CaptureLimits = CaptureLimits { head: ByteSize::mib(1), tail: ByteSize::kib(1) };

/// What git may use to answer one question about what a stranger may have filled.
const LIMITS: Limits =
    Limits { data: Some(ByteSize::gib(1)), cpu: Some(Duration::from_secs(30)), ..Limits::NONE };

/// Bounds what is read of a repository's configuration.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// What git says about one repository of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GitState {
    /// Where it is, relative to the workspace.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// The branch, or the commit when none is checked out.
    pub branch: Option<String>,
    /// How many files differ from the last commit or are unknown to git.
    pub changed_files: usize,
    /// How many commits are on no remote.
    pub unpushed_commits: usize,
    /// How many changes were put aside with `git stash`.
    pub stashes: usize,
    /// Why git could not be asked, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl GitState {
    fn unknown(path: &Path, error: Option<String>) -> Self {
        let path = path.to_owned();
        Self { path, branch: None, changed_files: 0, unpushed_commits: 0, stashes: 0, error }
    }

    /// Lists what would be lost with the work tree. What cannot be known counts as lost.
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
    /// Asks git about every repository in a workspace.
    pub async fn repositories(
        &self,
        workspace: &Root,
        spawner: &LazySpawner,
    ) -> Result<Vec<GitState>, Error> {
        let until = Instant::now() + DEADLINE;
        let files = workspace.try_clone().map_err(Error::files("could not open the workspace"))?;
        let mut states = Vec::new();
        for found in blocking(move || repositories::repositories(&files)).await? {
            let state = match found.git_directory {
                Ok(directory) => {
                    let worktree = workspace.open_root(&found.path);
                    match worktree.map_err(|error| error.to_string()) {
                        Ok(worktree) => {
                            let ask = Ask { spawner, worktree: &worktree, view: None, until };
                            self.state(&found.path, directory, ask).await
                        }
                        Err(reason) => Err(reason),
                    }
                }
                Err(reason) => Err(reason),
            };
            states
                .push(state.unwrap_or_else(|reason| GitState::unknown(&found.path, Some(reason))));
        }
        Ok(states)
    }

    async fn state(
        &self,
        path: &Path,
        git_directory: Root,
        ask: Ask<'_>,
    ) -> Result<GitState, String> {
        let view = self.view(git_directory, &ask).await?;
        let ask = Ask { view: Some(view.path()), ..ask };
        let status = ask.git(&STATUS, Stdin::Empty).await?;
        let unpushed = ask.git(&UNPUSHED, Stdin::Empty).await?;
        let stashes = ask.git(&["stash", "list"], Stdin::Empty).await?;
        Ok(GitState {
            branch: branch(&status),
            changed_files: status.lines().filter(|line| !line.starts_with('#')).count(),
            unpushed_commits: unpushed.trim().parse().map_err(|_| "no count of commits")?,
            stashes: stashes.lines().count(),
            ..GitState::unknown(path, None)
        })
    }

    /// Makes a view in the format of the repository, which git reads from its
    /// configuration as it would from any text: nothing in it takes effect.
    async fn view(&self, git_directory: Root, ask: &Ask<'_>) -> Result<View, String> {
        let config = git_directory.read(Path::new("config"), MAX_CONFIG_BYTES);
        let config = config.map_err(|error| error.to_string())?;
        let list =
            ask.git(&["config", "--file", "-", "--list", "-z"], Stdin::Bytes(config)).await?;
        let format = Format::parse(&list)?;
        let inner = self.inner.clone();
        let made = blocking(move || {
            View::make(inner, &git_directory, &format)
                .map_err(Error::files("could not look at the repository"))
        });
        made.await.map_err(|error| message_of(&error))
    }
}

/// Submodules are repositories of their own, and found as such.
const STATUS: [&str; 5] =
    ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=all"];

/// Tags come with a clone and are no work of their own; stashes are counted apart.
const UNPUSHED: [&str; 7] = [
    "rev-list",
    "--count",
    "--exclude=refs/stash",
    "--exclude=refs/tags/*",
    "--all",
    "--not",
    "--remotes",
];

/// A way to put questions to git in one work tree.
#[derive(Clone)]
struct Ask<'a> {
    spawner: &'a LazySpawner,
    worktree: &'a Root,
    view: Option<PathBuf>,
    until: Instant,
}

impl Ask<'_> {
    /// Returns what git prints. Its complaints are not passed on: they may quote
    /// files that the repository links to.
    async fn git(&self, arguments: &[&str], stdin: Stdin) -> Result<String, String> {
        let mut argv: Vec<OsString> = vec!["git".into(), "--no-optional-locks".into()];
        argv.extend(arguments.iter().map(OsString::from));
        let directory = self.worktree.as_fd().try_clone_to_owned();
        let spec = CommandSpec {
            environment: self.environment(),
            stdin,
            output: Output::Separate { stdout: CAPTURE, stderr: CAPTURE },
            limits: LIMITS,
            deadline: Some(self.until.saturating_duration_since(Instant::now())),
            ..CommandSpec::new(argv, directory.map_err(|error| error.to_string())?)
        };
        let spawner = self.spawner.get().map_err(|error| error.to_string())?;
        let outcome = spawner.run(spec, &CancellationToken::new()).await;
        let outcome = outcome.map_err(|error| error.to_string())?;
        match outcome.end {
            _ if outcome.timed_out() => Err("it takes too long".to_owned()),
            ExitStatus::Exited(0) if outcome.stdout.omitted() == 0 => {
                Ok(String::from_utf8_lossy(&outcome.stdout.head).into_owned())
            }
            ExitStatus::Exited(0) => Err("it has too much to say".to_owned()),
            ExitStatus::Exited(status) => Err(format!("git {} ended with {status}", arguments[0])),
            ExitStatus::Signaled(_) | ExitStatus::Lost => {
                Err(format!("git {} was ended", arguments[0]))
            }
        }
    }

    /// Nothing of the operator's or the system's settings; no questions, no transport.
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
