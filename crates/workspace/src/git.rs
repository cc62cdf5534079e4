//! What git says about a workspace, without running anything its repository configured.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::ByteSize;
use carrel_exec::{CaptureLimits, CommandSpec, End, Output};
use carrel_fsroot::{FileKind, Root};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::hooks::Hooks;

/// How long one question to git may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// How much of git's answers is read.
const LIMITS: CaptureLimits = CaptureLimits { head: ByteSize::mib(1), tail: ByteSize::kib(1) };

/// Settings that could run a program, switched off whatever the repository says.
const SWITCHED_OFF: [&str; 5] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "diff.external=",
    "credential.helper=",
];

/// What git says about one repository of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GitState {
    /// Where it is, relative to the workspace.
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
    /// Lists what would be lost with the work tree. What cannot be known counts as lost.
    pub fn unsaved(&self) -> Vec<String> {
        let at = self.path.display();
        let counted = [
            (self.changed_files, "changed files"),
            (self.unpushed_commits, "commits on no remote"),
            (self.stashes, "stashed changes"),
        ];
        let mut reasons: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what} in {at}"))
            .collect();
        reasons.extend(self.error.iter().map(|error| format!("git cannot tell in {at} ({error})")));
        reasons
    }
}

impl Hooks {
    /// Asks git about the repositories of a workspace: its top, and each directory in `repos/`.
    pub async fn repositories(&self, workspace: &Root) -> Result<Vec<GitState>, Error> {
        let mut states = Vec::new();
        for path in repositories_in(workspace) {
            let failed = |error: String| GitState { error: Some(error), ..empty(&path) };
            let directory = workspace
                .open_root(&path)
                .map_err(Error::files("could not open the repository"))?;
            states.push(self.state(&path, &directory).await.unwrap_or_else(failed));
        }
        Ok(states)
    }

    async fn state(&self, path: &Path, repository: &Root) -> Result<GitState, String> {
        let filters = self.filters(repository).await?;
        let ask = async |arguments: &[&str]| self.git(repository, &filters, arguments).await;
        let status =
            ask(&["status", "--porcelain=v2", "--branch", "--ignore-submodules=none"]).await?;
        let unpushed = ask(&["rev-list", "--count", "--all", "--not", "--remotes"]).await?;
        let stashes = ask(&["stash", "list"]).await?;
        Ok(GitState {
            branch: branch(&status),
            changed_files: status.lines().filter(|line| !line.starts_with('#')).count(),
            unpushed_commits: unpushed
                .trim()
                .parse()
                .map_err(|_| "no count of commits".to_owned())?,
            stashes: stashes.lines().count(),
            ..empty(path)
        })
    }

    /// Lists the content filters of a repository: `git status` would run them on changed files.
    async fn filters(&self, repository: &Root) -> Result<Vec<String>, String> {
        let names = self.git(repository, &[], &["config", "--list", "--name-only", "-z"]).await?;
        Ok(names
            .split('\0')
            .filter(|name| name.to_ascii_lowercase().starts_with("filter."))
            .map(|name| format!("{name}="))
            .collect())
    }

    async fn git(
        &self,
        repository: &Root,
        extra: &[String],
        arguments: &[&str],
    ) -> Result<String, String> {
        let mut argv: Vec<OsString> = vec!["git".into(), "--no-optional-locks".into()];
        for setting in SWITCHED_OFF.iter().copied().chain(extra.iter().map(String::as_str)) {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(arguments.iter().map(OsString::from));
        let directory =
            repository.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        let spec = CommandSpec {
            environment: environment(repository),
            output: Output::Separate { stdout: LIMITS, stderr: LIMITS },
            deadline: Some(DEADLINE),
            ..CommandSpec::new(argv, directory)
        };
        let spawner = self.spawner().await.map_err(|error| error.to_string())?;
        let outcome = spawner.run(spec, &CancellationToken::new()).await;
        let outcome = outcome.map_err(|error| error.to_string())?;
        match outcome.end {
            End::Exited(0) if outcome.stdout.omitted() == 0 => {
                Ok(String::from_utf8_lossy(&outcome.stdout.head).into_owned())
            }
            End::Exited(0) => Err("too much output".to_owned()),
            _ => Err(outcome.stderr.to_text(300).trim().replace('\n', "; ")),
        }
    }
}

fn empty(path: &Path) -> GitState {
    let path = path.to_owned();
    GitState { path, branch: None, changed_files: 0, unpushed_commits: 0, stashes: 0, error: None }
}

fn repositories_in(workspace: &Root) -> Vec<PathBuf> {
    let mut candidates = vec![PathBuf::from(".")];
    let cached = workspace.list(Path::new("repos")).unwrap_or_default();
    let directories = cached.iter().filter(|entry| entry.kind == FileKind::Directory);
    candidates.extend(directories.map(|entry| Path::new("repos").join(&entry.name)));
    candidates.retain(|path| workspace.link_metadata(&path.join(".git")).is_ok());
    candidates
}

/// Nothing of the operator's or the system's settings; no questions, no repository further up.
fn environment(repository: &Root) -> Vec<(OsString, OsString)> {
    let above = repository.path().parent().unwrap_or(Path::new("/"));
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // The repository belongs to the workspace, which was checked already.
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ];
    let ceiling = ("GIT_CEILING_DIRECTORIES".into(), above.into());
    fixed.into_iter().map(|(name, value)| (name.into(), value.into())).chain([ceiling]).collect()
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
        let state = GitState { changed_files: 2, stashes: 1, ..empty(Path::new(".")) };
        assert_eq!(state.unsaved(), ["2 changed files in .", "1 stashed changes in ."]);
        let unknown = GitState { error: Some("no git".into()), ..empty(Path::new("repos/a")) };
        assert_eq!(unknown.unsaved(), ["git cannot tell in repos/a (no git)"]);
        assert!(empty(Path::new(".")).unsaved().is_empty());
    }

    #[test]
    fn the_branch_is_a_name_or_a_commit() {
        assert_eq!(branch("# branch.oid abc\n# branch.head main\n").as_deref(), Some("main"));
        assert_eq!(branch("# branch.oid abc\n# branch.head (detached)\n").as_deref(), Some("abc"));
        assert_eq!(branch(""), None);
    }
}
