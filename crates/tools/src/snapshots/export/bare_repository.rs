//! The bare repository that snapshots are exported to, through the `git` program on the host.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use carrel_domain::{ByteSize, Code, Failure};
use carrel_exec::{CaptureLimits, CommandSpec, ExitStatus, LazySpawner, Outcome, Output, Stdin};
use carrel_fsroot::Root;
use tokio_util::sync::CancellationToken;

/// Ids of commits, of some ten thousand snapshots.
const CAPTURE: CaptureLimits = CaptureLimits { head: ByteSize::mib(4), tail: ByteSize::kib(4) };

/// Git's own words about an error.
const MAX_SHOWN: usize = 2000;

/// Keeps git from reading anything but the repository.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Objects go into a pack however few they are, and no program of the repository runs.
const SETTINGS: [&str; 6] =
    ["-c", "fastimport.unpackLimit=0", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"];

pub(super) struct BareRepository<'a> {
    path: PathBuf,
    spawner: &'a LazySpawner,
}

impl<'a> BareRepository<'a> {
    /// Opens a repository for a branch. It is made if nothing is there or an empty directory, and then the branch is the
    /// one that a clone checks out.
    pub(super) async fn open_or_create(
        path: &Path,
        branch: &str,
        spawner: &'a LazySpawner,
    ) -> Result<Self, Failure> {
        let repository = Self { path: path.to_owned(), spawner };
        repository.check_branch(branch).await?;
        let is_empty = match Root::open(path) {
            Err(error) if error.is_not_found() => true,
            opened => opened?.list_at_most(Path::new("."), 0)?.is_some(),
        };
        if is_empty {
            let path = repository.path.as_os_str();
            let first = format!("--initial-branch={branch}");
            let words = ["init", "--bare", "--quiet", &first, "--"].map(OsString::from);
            let made = repository.run(words.into_iter().chain([path.to_owned()]), Stdin::Empty);
            repository.succeeded(&made.await?, "make the repository")?;
            return Ok(repository);
        }
        let asked = repository.git(&["rev-parse", "--is-bare-repository"], Stdin::Empty).await?;
        let is_bare = asked.end == ExitStatus::Exited(0) && asked.stdout.head == b"true\n";
        if !is_bare {
            let message = format!(
                "{} is no bare git repository; name one, or a directory that is empty or not there yet",
                path.display()
            );
            return Err(Failure::argument("git", message));
        }
        Ok(repository)
    }

    /// Refuses a name that no branch can have.
    async fn check_branch(&self, branch: &str) -> Result<(), Failure> {
        let reference = format!("refs/heads/{branch}");
        let checked = self.git(&["check-ref-format", &reference], Stdin::Empty).await?;
        if checked.end == ExitStatus::Exited(0) && !branch.starts_with('-') {
            return Ok(());
        }
        let message =
            format!("{branch:?} cannot be the name of a branch of git; give another with --branch");
        Err(Failure::argument("branch", message))
    }

    /// Reads a stream, and returns the ids that it asks for.
    pub(super) async fn import(
        &self,
        stream: OwnedFd,
        branch: &str,
    ) -> Result<Vec<String>, Failure> {
        let words = ["fast-import", "--quiet", "--done", "--date-format=raw"];
        let outcome = self.git(&words, Stdin::Opened(stream)).await?;
        if outcome.stderr.to_text(MAX_SHOWN).contains("Not updating refs/heads/") {
            let message = format!(
                "the branch {branch} of {} has other commits; give another with --branch",
                self.path.display()
            );
            return Err(Failure::new(Code::AlreadyExists, message).with("branch", branch));
        }
        let ids = outcome.stdout.to_text(usize::MAX);
        self.succeeded(&outcome, "import the snapshots")?;
        Ok(ids.lines().map(str::to_owned).collect())
    }

    async fn git(&self, words: &[&str], stdin: Stdin) -> Result<Outcome, Failure> {
        let mut place = OsString::from("--git-dir=");
        place.push(&self.path);
        let words = SETTINGS.iter().chain(words).map(OsString::from);
        self.run(std::iter::once(place).chain(words), stdin).await
    }

    async fn run(
        &self,
        words: impl Iterator<Item = OsString>,
        stdin: Stdin,
    ) -> Result<Outcome, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Code::SpawnFailed, format!("git could not be run: {error}"))
        };
        let argv = std::iter::once(OsString::from("git")).chain(words).collect();
        let directory = OwnedFd::from(Root::open(Path::new("/"))?);
        let environment = ENVIRONMENT.map(|(name, value)| (name.into(), value.into())).to_vec();
        let spec = CommandSpec {
            environment,
            stdin,
            output: Output::Separate { stdout: CAPTURE, stderr: CAPTURE },
            ..CommandSpec::new(argv, directory)
        };
        let spawner = self.spawner.get().map_err(|error| failed(&error))?;
        // On the heap, because the future is large.
        let outcome = Box::pin(spawner.run(spec, &CancellationToken::new())).await;
        outcome.map_err(|error| failed(&error))
    }

    fn succeeded(&self, outcome: &Outcome, what: &str) -> Result<(), Failure> {
        if outcome.end == ExitStatus::Exited(0) {
            return Ok(());
        }
        let said = outcome.stderr.to_text(MAX_SHOWN);
        let message = format!("git could not {what} in {}: {}", self.path.display(), said.trim());
        Err(Failure::new(Code::Io, message))
    }
}
