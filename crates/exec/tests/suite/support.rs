//! What most tests begin with.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use carrel_exec::{CommandSpec, Outcome, Spawner};
use tokio_util::sync::CancellationToken;

/// Long enough for a machine that is busy with other things.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) fn spawner() -> Spawner {
    // `make test-as-user` copies the program beside the tests.
    let beside = std::env::current_exe().unwrap().with_file_name("carrel-spawner");
    let built = Path::new(env!("CARGO_BIN_EXE_carrel-spawner"));
    Spawner::start(if beside.is_file() { &beside } else { built }).unwrap()
}

pub(crate) fn directory(path: impl AsRef<Path>) -> OwnedFd {
    File::open(path).unwrap().into()
}

pub(crate) fn command(argv: &[&str]) -> CommandSpec {
    let argv = argv.iter().map(OsString::from).collect();
    let environment = vec![("PATH".into(), PATH.into())];
    CommandSpec { environment, ..CommandSpec::new(argv, directory("/")) }
}

pub(crate) fn shell(script: &str) -> CommandSpec {
    command(&["sh", "-c", script])
}

pub(crate) fn variable(name: &str, value: &str) -> (OsString, OsString) {
    (name.into(), value.into())
}

/// Runs a command with a spawner of its own.
pub(crate) async fn run(spec: CommandSpec) -> Outcome {
    spawner().run(spec, &CancellationToken::new()).await.unwrap()
}

pub(crate) fn stdout(outcome: &Outcome) -> String {
    outcome.stdout.to_text(usize::MAX)
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < STOP_TIMEOUT, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the largest resident size of this process so far, in KiB.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
