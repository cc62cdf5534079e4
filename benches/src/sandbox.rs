//! Sandboxed commands, against plain ones and against other sandboxes with the same restrictions.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use carrel_config::{Environment, OperatorPolicy, TierChoice};
use carrel_domain::{Network, Tier};
use carrel_exec::{Captured, LazySpawner};
use carrel_runner::{
    CommandForm, RunRequest, Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle,
};
use carrel_sandbox::{Reporting, SeccompFilter};
use rustix::io::{FdFlags, fcntl_setfd};
use tokio_util::sync::CancellationToken;

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::report::{Budget, Row};
use crate::say;

const TRUE: [&str; 1] = ["/bin/true"];
const SHELL: [&str; 3] = ["/bin/bash", "-c", "true"];

/// Whoever a workspace belongs to when this runs as root and a tier must not.
const SOMEBODY: u32 = 2_000_000_000;

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let full = Walled::make(ground, Tier::Full)?;
    let landlock = Walled::make(ground, Tier::Landlock)?;
    let rounds = ground.pace.slow;
    let plain = |argv: &'static [&str]| move || timed(|| run_plainly(argv));
    let mut rows = vec![
        Row::new(
            "run `true`, tier `full`; plain is posix_spawn with both pipes",
            interleave(rounds, plain(&TRUE), || timed(|| full.run(ground, &TRUE)))?,
            Budget::Ratio(2.8),
        ),
        Row::new(
            "run `bash -c true`, tier `full`",
            interleave(rounds, plain(&SHELL), || timed(|| full.run(ground, &SHELL)))?,
            Budget::None,
        ),
        Row::new(
            "run `true`, tier `landlock`",
            interleave(rounds, plain(&TRUE), || timed(|| landlock.run(ground, &TRUE)))?,
            Budget::Ratio(1.9),
        ),
        Row::new(
            "run `bash -c true`, tier `landlock`",
            interleave(rounds, plain(&SHELL), || timed(|| landlock.run(ground, &SHELL)))?,
            Budget::None,
        ),
    ];
    rows.extend(against_bubblewrap(ground, &full)?);
    rows.extend(against_firejail(ground, &full)?);
    Ok(rows)
}

fn against_bubblewrap(ground: &Ground, full: &Walled) -> Result<Vec<Row>, Fault> {
    let Some(program) = installed("bwrap") else { return Ok(Vec::new()) };
    let filter = ground.directory("bubblewrap")?.join("filter");
    std::fs::write(
        &filter,
        SeccompFilter::standard(Tier::Full, Network::None).assemble(Reporting::Silent).to_bytes(),
    )?;
    let rounds = ground.pace.slow;
    let run = |argv: &[OsString]| timed(|| run_other_with(argv, File::open(&filter)?.into()));
    let lower = bubblewrap(&program, &full.workspace, &["/etc".into()], &[]);
    let (places, copies) = (full.mounts(ground)?, full.copies(ground)?);
    let same = || {
        let copies = Given::open(&copies)?;
        run(&bubblewrap(&program, &full.workspace, &places, &copies))
    };
    let mut rows = vec![Row::new(
        "run `true`, tier `full`; plain is bubblewrap with all of `/etc` and no toolchains",
        interleave(rounds, || run(&lower), || timed(|| full.run(ground, &TRUE)))?,
        Budget::Ratio(0.5),
    )];
    let Some(carrel) = beside("carrel") else {
        say("carrel is not built beside this program, `carrel exec` is left out");
        return Ok(rows);
    };
    let workspace = full.workspace.clone().into_os_string();
    let once: Vec<OsString> = [
        carrel.into(),
        "exec".into(),
        "--workspace".into(),
        workspace,
        "--".into(),
        TRUE[0].into(),
    ]
    .into();
    rows.push(Row::new(
        "`carrel exec -- true`, process start included; plain is bubblewrap with the same sandbox",
        interleave(rounds, same, || timed(|| run_other(&once)))?,
        Budget::Ratio(1.0),
    ));
    rows.push(Row::new(
        "`carrel exec -- true`; plain is bubblewrap with all of `/etc` and no toolchains",
        interleave(rounds, || run(&lower), || timed(|| run_other(&once)))?,
        Budget::None,
    ));
    Ok(rows)
}

fn against_firejail(ground: &Ground, full: &Walled) -> Result<Vec<Row>, Fault> {
    let Some(program) = installed("firejail") else { return Ok(Vec::new()) };
    let jailed: Vec<OsString> =
        [program.as_os_str(), "--quiet".as_ref(), "--noprofile".as_ref(), "--net=none".as_ref()]
            .into_iter()
            .chain(["--".as_ref(), TRUE[0].as_ref()])
            .map(Into::into)
            .collect();
    let rounds = ground.pace.slow / 4;
    Ok(vec![Row::new(
        "run `true`, tier `full`; plain is firejail without a profile or a network",
        interleave(rounds, || timed(|| run_other(&jailed)), || timed(|| full.run(ground, &TRUE)))?,
        Budget::None,
    )])
}

/// A running Carrel with one workspace.
struct Walled {
    runner: Runner,
    desk: WorkspaceHandle,
    workspace: PathBuf,
}

impl Walled {
    fn make(ground: &Ground, tier: Tier) -> Result<Self, Fault> {
        let home = ground.directory(&format!("walled-{tier}"))?;
        let workspace = home.join("workspace");
        std::fs::create_dir_all(&workspace)?;
        if tier == Tier::Landlock && rustix::process::geteuid().is_root() {
            chown(&workspace, Some(SOMEBODY), Some(SOMEBODY))?;
        }
        let runner = Runner::new(RunnerOptions {
            spawner: LazySpawner::new(std::env::current_exe()?),
            policy: OperatorPolicy::default(),
            environment: Environment::process(),
            sandbox: SandboxMode::Enforced(TierChoice::Only(tier)),
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: carrel_tools::AuditLog::none(),
        });
        let desk = WorkspaceHandle::for_directory(&workspace, &home.join("state"))?;
        Ok(Self { runner, desk, workspace })
    }

    fn run(&self, ground: &Ground, argv: &[&str]) -> Result<(), Fault> {
        self.output_of(ground, argv).map(drop)
    }

    fn output_of(&self, ground: &Ground, argv: &[&str]) -> Result<String, Fault> {
        let argv = argv.iter().map(Into::into).collect();
        let request = RunRequest::new(CommandForm::Argv(argv));
        let cancel = CancellationToken::new();
        let completed = ground.wait(self.runner.run(&self.desk, request, &cancel))?;
        if !completed.outcome.succeeded() {
            return Err("a walled command failed".into());
        }
        let Captured { head, tail, .. } = completed.outcome.stdout;
        Ok(String::from_utf8_lossy(&[head, tail].concat()).into_owned())
    }

    /// Returns what of the host is mounted for a command beside `/usr` and its workspace, found by looking.
    fn mounts(&self, ground: &Ground) -> Result<Vec<PathBuf>, Fault> {
        let seen = self.output_of(ground, &["cut", "-d ", "-f5", "/proc/self/mountinfo"])?;
        let elsewhere = ["/dev", "/proc", "/tmp", "/var/tmp", "/usr"];
        let is_place = |path: &&Path| {
            // `/etc` is made, and what is in it comes one by one.
            let made = ["/", "/etc"].map(Path::new).contains(path);
            let apart = made || path.starts_with(&self.workspace);
            !apart && !elsewhere.iter().any(|known| path.starts_with(known)) && path.exists()
        };
        Ok(seen.lines().map(Path::new).filter(is_place).map(Into::into).collect())
    }

    /// Returns the small files of the host that a command sees copies of, found by looking.
    fn copies(&self, ground: &Ground) -> Result<Vec<PathBuf>, Fault> {
        let mounts = self.mounts(ground)?;
        let seen = self.output_of(ground, &["find", "/etc", "-xdev", "-type", "f"])?;
        let files = seen.lines().map(PathBuf::from);
        Ok(files.filter(|path| path.exists() && !mounts.contains(path)).collect())
    }
}

/// A file that a program reads from a descriptor it is given.
struct Given {
    file: File,
    path: PathBuf,
}

impl Given {
    /// Opens files for the next program that is started.
    fn open(paths: &[PathBuf]) -> Result<Vec<Self>, Fault> {
        let opened = paths.iter().map(|path| {
            let file = File::open(path)?;
            fcntl_setfd(&file, FdFlags::empty())?;
            Ok(Self { file, path: path.clone() })
        });
        opened.collect()
    }
}

fn run_plainly(argv: &[&str]) -> Result<(), Fault> {
    let output =
        Command::new(argv[0]).args(&argv[1..]).env_clear().stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err("the plain command failed".into()) }
}

fn run_other(argv: &[OsString]) -> Result<(), Fault> {
    run_other_with(argv, Stdio::null())
}

fn run_other_with(argv: &[OsString], stdin: Stdio) -> Result<(), Fault> {
    let output = Command::new(&argv[0]).args(&argv[1..]).stdin(stdin).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// The sandbox of tier `full`, as far as bubblewrap has them, with some places of the host to be read and
/// copies of some files. It reads the filter for system calls from stdin.
fn bubblewrap(
    program: &Path,
    workspace: &Path,
    places: &[PathBuf],
    copies: &[Given],
) -> Vec<OsString> {
    let words = "--unshare-all --die-with-parent --new-session --cap-drop ALL --clearenv \
                 --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib \
                 --symlink usr/lib64 /lib64 --symlink usr/sbin /sbin \
                 --dev /dev --proc /proc --tmpfs /tmp --hostname carrel --seccomp 0";
    let mut argv = vec![program.as_os_str().to_owned()];
    argv.extend(words.split_whitespace().map(Into::into));
    for place in places {
        argv.extend(["--ro-bind".into(), place.into(), place.into()]);
    }
    for Given { file, path } in copies {
        let number = file.as_raw_fd().to_string();
        argv.extend(["--file".into(), number.into(), path.into()]);
    }
    argv.extend(["--bind".into(), workspace.into(), workspace.into()]);
    argv.extend(["--chdir".into(), workspace.into(), TRUE[0].into()]);
    argv
}

/// Finds a program on the search path.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|directory| directory.join(name));
    let found = found.into_iter().find(|program| program.is_file());
    if found.is_none() {
        say(&format!("{name} is not installed, its rows are left out"));
    }
    found
}

/// Finds a program that was built beside this one.
pub(crate) fn beside(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name(name);
    program.is_file().then_some(program)
}
