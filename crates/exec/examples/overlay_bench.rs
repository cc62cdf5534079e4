//! Times the parts of a fork against those of an ordinary workspace, in one run and alternating:
//! `cargo run --release -p carrel-exec --example overlay_bench [ROUNDS]`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for its author")]
#![expect(clippy::disallowed_methods, reason = "it makes its own directories")]

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use carrel_domain::{Network, Tier, WorkspaceAccess};
use carrel_exec::{Cell, CommandSpec, Directory, OverlayMount, Spawner};
use carrel_sandbox::{
    GitDirectory, Host, OverlayDirectories, OverlayPlan, Owner, Plan, Policy, UserRange,
    WorkspaceSource,
};
use tokio_util::sync::CancellationToken;

const STEPS: [&str; 8] = [
    "overlay: request to root",
    "fork: cell",
    "fork: first true",
    "fork: second true",
    "fork: unmount after the cell",
    "workspace: cell",
    "workspace: first true",
    "workspace: second true",
];

fn main() -> ExitCode {
    if let Some(code) = carrel_exec::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    let rounds = std::env::args().nth(1).map_or(50, |rounds| rounds.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut times = runtime.block_on(measure(rounds));
    for (step, times) in STEPS.iter().zip(&mut times) {
        times.sort_unstable();
        let [tenth, median] = [times[times.len() / 10], times[times.len() / 2]];
        println!("{step:30} median {median:>10.1?}  tenth {tenth:>10.1?}");
    }
    ExitCode::SUCCESS
}

async fn measure(rounds: usize) -> Vec<Vec<Duration>> {
    let home = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    for name in ["base", "fork", "scratch/tmp", "scratch/shm"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    let spawner = Spawner::start(&std::env::current_exe().unwrap()).unwrap();
    let mut times = vec![Vec::new(); STEPS.len()];
    for round in 0..rounds {
        // In turns, so that neither profits from the other.
        if round % 2 == 0 {
            workspace(&spawner, &home, &mut times).await;
        }
        fork(&spawner, &home, round, &mut times).await;
        if round % 2 == 1 {
            workspace(&spawner, &home, &mut times).await;
        }
    }
    times
}

async fn fork(spawner: &Spawner, home: &Path, round: usize, times: &mut [Vec<Duration>]) {
    let layers = home.join(format!("layers-{round}"));
    fs::create_dir(&layers).unwrap();
    let scratch = open(&home.join("scratch"));
    let plan = plan(home, "fork", WorkspaceSource::Overlay);
    let mut since = Instant::now();
    let mut note =
        |step: usize| times[step].push(std::mem::replace(&mut since, Instant::now()).elapsed());
    let fork = mount(spawner, home, &layers).await;
    note(0);
    let cell = spawner.cell(plan, &fork, scratch.as_fd(), None).await.unwrap();
    note(1);
    run(&cell).await;
    note(2);
    run(&cell).await;
    note(3);
    drop(cell);
    fork.end().await.unwrap();
    note(4);
}

async fn workspace(spawner: &Spawner, home: &Path, times: &mut [Vec<Duration>]) {
    let (base, scratch) = (open(&home.join("base")), open(&home.join("scratch")));
    let plan = plan(home, "base", WorkspaceSource::Directory);
    let mut since = Instant::now();
    let mut note =
        |step: usize| times[step].push(std::mem::replace(&mut since, Instant::now()).elapsed());
    let cell = spawner.cell(plan, base.as_fd(), scratch.as_fd(), None).await.unwrap();
    note(5);
    run(&cell).await;
    note(6);
    run(&cell).await;
    note(7);
    let gone = cell.gone();
    drop(cell);
    gone.await;
}

async fn mount(spawner: &Spawner, home: &Path, layers: &Path) -> OverlayMount {
    let plan = plan(home, "fork", WorkspaceSource::Overlay);
    let plan = OverlayPlan::new(&plan, home.join("base"), layers.to_owned()).unwrap();
    let [lower, layers, target] =
        [&home.join("base"), layers, &home.join("fork")].map(|path: &Path| open(path));
    let directories =
        OverlayDirectories { lower: lower.as_fd(), layers: layers.as_fd(), target: target.as_fd() };
    spawner.overlay(plan, directories).await.unwrap()
}

async fn run(cell: &Cell) {
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let inside = Directory::Inside(PathBuf::new());
    let spec = CommandSpec { environment, ..CommandSpec::starting_in(vec!["true".into()], inside) };
    let outcome = cell.run(spec, &CancellationToken::new()).await.unwrap();
    assert!(outcome.succeeded(), "{outcome:?}");
}

fn plan(home: &Path, name: &str, workspace_source: WorkspaceSource) -> Plan {
    let metadata = fs::metadata(home.join("base")).unwrap();
    let policy = Policy {
        workspace: home.join(name),
        owner: Owner { user: metadata.uid(), group: metadata.gid() },
        workspace_source,
        access: WorkspaceAccess::ReadWrite,
        git_directory: GitDirectory::Absent,
        scratch: home.join("scratch"),
        home: None,
        readable: Vec::new(),
        writable: Vec::new(),
        hidden: Vec::new(),
        network: Network::None,
        users: UserRange::default(),
    };
    Plan::new(&policy, &Host::probe(), Tier::Full).unwrap()
}

fn open(path: &Path) -> OwnedFd {
    fs::File::open(path).unwrap().into()
}
