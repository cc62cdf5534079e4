//! Thousands of starts through one server leave nothing behind. `CARREL_SOAK=1` makes it ten
//! thousand for each tier.
//!
//! The server is the process of the test, and everything that it has is looked at: each test needs
//! a process of its own, as `cargo nextest` gives it.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_config::{Environment, OperatorPolicy, TierChoice};
use carrel_domain::Tier;
use carrel_exec::LazySpawner;
use carrel_runner::{
    CommandForm, RunRequest, Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle,
};
use pretty_assertions::assert_eq;
use rustix::process::geteuid;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::test_environment::{Process, descendants, groups_of, is_soak};

/// How many commands run at once.
const AT_ONCE: usize = 100;

/// How many workspaces they run in.
const WORKSPACES: usize = 5;

/// Everything that could leak, as seen from outside.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    descriptors: usize,
    /// The descriptors of helpers that we may look at, and their mounts.
    helpers: Vec<(Option<usize>, usize)>,
    zombies: usize,
    groups: usize,
    scratch: usize,
    mounts: usize,
}

impl Traces {
    fn look(state: &Path) -> Self {
        let own = std::process::id();
        let below = descendants(own.cast_signed());
        let count = |path: String| std::fs::read_dir(path).ok().map(Iterator::count);
        let mounts = |pid: i32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/mountinfo"));
            text.unwrap_or_default().lines().count()
        };
        let of_helper =
            |process: &Process| (count(format!("/proc/{}/fd", process.pid)), mounts(process.pid));
        let mut helpers: Vec<_> =
            below.iter().filter(|one| one.is_running()).map(of_helper).collect();
        helpers.sort_unstable();
        Self {
            descriptors: count("/proc/self/fd".to_owned()).unwrap(),
            helpers,
            zombies: below.iter().filter(|process| !process.is_running()).count(),
            groups: groups_of(own).len(),
            scratch: tree_size(&state.join("scratch")),
            mounts: mounts(own.cast_signed()),
        }
    }

    /// Waits until what is on its interface out is gone, and returns what is left.
    async fn settle(state: &Path, is_settled: impl Fn(&Self) -> bool) -> Self {
        let begun = Instant::now();
        loop {
            let traces = Self::look(state);
            if is_settled(&traces) || begun.elapsed() > crate::DEADLINE {
                return traces;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Counts what is in a directory, at any depth.
fn tree_size(directory: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| 1 + if path.is_dir() { tree_size(&path) } else { 0 }).sum()
}

fn runner(tier: Tier) -> Runner {
    Runner::new(RunnerOptions {
        spawner: LazySpawner::new(env!("CARGO_BIN_EXE_carrel").into()),
        policy: OperatorPolicy::default(),
        environment: Environment::from_pairs([("PATH", "/usr/bin:/bin")]),
        sandbox: SandboxMode::Enforced(TierChoice::Only(tier)),
        disabled: Vec::new(),
        mode: RunnerMode::Server,
        events: carrel_tools::AuditLog::none(),
    })
}

fn workspace(home: &Path, number: usize, tier: Tier) -> Arc<WorkspaceHandle> {
    let workspace = home.join(format!("workspace{number}"));
    std::fs::create_dir(&workspace).unwrap();
    if tier == Tier::Landlock && geteuid().is_root() {
        chown(&workspace, Some(2_000_000_000), Some(2_000_000_000)).unwrap();
    }
    Arc::new(WorkspaceHandle::for_directory(&workspace, &home.join("state")).unwrap())
}

async fn run(runner: Runner, workspace: Arc<WorkspaceHandle>, line: &str) {
    let request = RunRequest::new(CommandForm::Line(line.to_owned()));
    let completed = runner.run(&workspace, request, &CancellationToken::new()).await.unwrap();
    assert!(completed.outcome.succeeded(), "{completed:?}");
}

async fn leaves_nothing(tier: Tier) {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let state = home.path().join("state");
    let runner = runner(tier);
    let workspaces: Vec<_> =
        (0..WORKSPACES).map(|number| workspace(home.path(), number, tier)).collect();
    for workspace in &workspaces {
        run(runner.clone(), Arc::clone(workspace), "true").await;
    }
    // Some things are kept for later commands; how many is settled by as many at once.
    start(&runner, &workspaces, AT_ONCE).await;
    // The spawner and the cells.
    let before = Traces::settle(&state, |now| now.helpers.len() == 1 + WORKSPACES).await;
    let starts = if is_soak() { 10_000 } else { 500 };
    let begun = Instant::now();
    start(&runner, &workspaces, starts).await;
    eprintln!("{starts} starts in tier {tier}: {:?}", begun.elapsed());
    let after = Traces::settle(&state, |now| *now == before).await;
    assert_eq!(after, before);
    drop((runner, workspaces));
    let is_gone =
        |now: &Traces| (now.helpers.len(), now.zombies, now.groups, now.scratch) == (0, 0, 0, 0);
    let after = Traces::settle(&state, is_gone).await;
    assert!(is_gone(&after), "{after:?}");
    assert!(after.descriptors < before.descriptors, "{after:?}");
    assert_eq!(after.mounts, before.mounts);
}

/// Runs so many commands, as many at once as may be.
async fn start(runner: &Runner, workspaces: &[Arc<WorkspaceHandle>], starts: usize) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut commands = JoinSet::new();
    for number in 0..starts {
        let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
        let (runner, workspace) = (runner.clone(), Arc::clone(&workspaces[number % WORKSPACES]));
        commands.spawn(async move {
            // Some leave processes and files behind.
            let line = match number % 10 {
                0 => "echo x > $TMPDIR/$$; rm $TMPDIR/$$; setsid true & true",
                _ => "true",
            };
            run(runner, workspace, line).await;
            drop(slot);
        });
    }
    commands.join_all().await;
}

#[tokio::test]
async fn hundreds_of_starts_in_tier_full_leave_nothing_behind() {
    leaves_nothing(Tier::Full).await;
}

#[tokio::test]
async fn hundreds_of_starts_in_tier_landlock_leave_nothing_behind() {
    leaves_nothing(Tier::Landlock).await;
}

#[tokio::test]
async fn a_hundred_first_commands_at_once_share_what_they_need() {
    for tier in [Tier::Full, Tier::Landlock] {
        let home = tempfile::tempdir().unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let (runner, workspace) = (runner(tier), workspace(home.path(), 0, tier));
        let begun = Instant::now();
        let mut commands = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (runner, workspace) = (runner.clone(), Arc::clone(&workspace));
            commands.spawn(async move { run(runner, workspace, "true").await });
        }
        commands.join_all().await;
        eprintln!("{AT_ONCE} first commands in tier {tier}: {:?}", begun.elapsed());
        let scratch = home.path().join("state/scratch");
        let cells = || std::fs::read_dir(&scratch).unwrap().count();
        let begun = Instant::now();
        while cells() > 1 && begun.elapsed() < crate::DEADLINE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(cells(), 1, "{tier}");
    }
}

#[tokio::test]
async fn a_command_pays_for_its_own_memory_alone() {
    let home = tempfile::tempdir().unwrap();
    let (runner, workspace) = (runner(Tier::Full), workspace(home.path(), 0, Tier::Full));
    let peak = async |line: &str| {
        let request = RunRequest::new(CommandForm::Line(line.to_owned()));
        let completed = runner.run(&workspace, request, &CancellationToken::new()).await.unwrap();
        assert_eq!(completed.limit, None);
        completed.outcome.cost.peak_memory.as_u64()
    };
    let alone = peak("true").await;
    // Its files stay in the memory of the machine when it is over.
    let writer = peak("head -c 200M /dev/zero > file").await;
    let after = peak("true").await;
    eprintln!("true: {alone}, after one that wrote 200 MiB and used {writer}: {after}");
    assert!(after < alone + (20 << 20), "{after} instead of {alone}");
}
