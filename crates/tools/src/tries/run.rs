//! The run of a candidate: a command, a patch, or a turn of an agent.

use std::time::{Duration, Instant};

use carrel_domain::{ByteSize, Code, Failure, NetworkRequest};
use carrel_exec::{CaptureLimits, LogFile, Output, Stdin};
use carrel_runner::{CommandForm, Completed, RunRequest};
use carrel_shell::Preset;
use carrel_trial::{CommandRules, Ran, Reason, Run, Spec};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::fault_point::FaultPoint;
use super::host::OpenFork;
use crate::registry::Registry;
use crate::session::Session;
use crate::shell::exit_code;
use carrel_domain::ToolSelection;

/// The variable with the number of the candidate.
const CANDIDATE: &str = "CARREL_CANDIDATE";

/// The variable with the id of the try.
const TRY: &str = "CARREL_TRY";

/// Bounds the whole outputs of one kind on disk, of all candidates together.
const MAX_LOGS: ByteSize = ByteSize::mib(64);

/// The end of an output that the record keeps.
pub(super) const KEPT_OUTPUT: usize = 4 * 1024;

/// The output that is kept while a command runs; the last line of it is the score.
const CAPTURED: CaptureLimits =
    CaptureLimits { head: ByteSize::bytes(0), tail: ByteSize::bytes(KEPT_OUTPUT as u64) };

/// A command of a candidate.
pub(super) struct CandidateCommand<'a> {
    pub(super) line: &'a str,
    pub(super) number: u8,
    pub(super) id: &'a str,
    pub(super) stdin: Stdin,
    pub(super) log: std::fs::File,
    pub(super) time: Duration,
}

/// The end of a run that says more than its exit status: why the candidate cannot win.
pub(super) type Finished = (Ran, Option<(Reason, String)>);

/// Returns the part of the bound on outputs that one candidate has.
pub(super) fn log_limit(spec: &Spec) -> ByteSize {
    ByteSize::bytes(MAX_LOGS.as_u64() / (spec.runs.len() as u64).max(1))
}

/// Returns the network that the commands of a try ask for, below the cap of its caller's token.
pub fn network_of(spec: &Spec) -> NetworkRequest {
    let cap = NetworkRequest { token: spec.network_cap, ..NetworkRequest::default() };
    NetworkRequest::of(spec.network).within(cap)
}

pub(super) fn preset(rules: CommandRules) -> Preset {
    match rules {
        CommandRules::Open => Preset::Open,
        CommandRules::Denylist => Preset::Denylist,
        CommandRules::Allowlist => Preset::Allowlist,
    }
}

/// Runs a command in a fork until its last process has ended.
pub(super) async fn command(
    fork: &OpenFork,
    spec: &Spec,
    command: CandidateCommand<'_>,
    stop: &CancellationToken,
) -> Result<Completed, Failure> {
    let runner = &fork.toolbox.runner;
    let mut request = RunRequest::new(CommandForm::Line(command.line.to_owned()));
    request.preset = preset(spec.rules);
    request.network = network_of(spec).within(fork.toolbox.network);
    request.limits.lifetime = Some(command.time);
    request.environment = vec![
        (CANDIDATE.into(), command.number.to_string().into()),
        (TRY.into(), command.id.into()),
    ];
    request.stdin = command.stdin;
    request.output = Output::Combined(CAPTURED);
    request.log = Some(LogFile { file: Some(command.log), limit: log_limit(spec) });
    let (asked, started) = oneshot::channel();
    request.started = Some(asked);
    let notice = async {
        if started.await.is_ok() {
            FaultPoint::InRun.reach(runner.environment());
        }
    };
    let handle = fork.workspace().handle();
    let (completed, ()) = tokio::join!(runner.run(handle, request, stop), notice);
    Ok(completed?)
}

/// Returns the end of an output as the record keeps it.
pub(super) fn tail(fork: &OpenFork, completed: &Completed) -> String {
    let mut text = completed.outcome.stdout.to_text(KEPT_OUTPUT);
    fork.toolbox.mask(&mut text);
    text
}

/// Returns how the run of a command ended, and why its candidate cannot win.
pub(super) fn judged(fork: &OpenFork, completed: &Completed, limit: Duration) -> Finished {
    let exit = exit_code(completed);
    let millis = u64::try_from(completed.outcome.wall.as_millis()).unwrap_or(u64::MAX);
    let ran = Ran { exit: Some(exit), millis, output: tail(fork, completed) };
    let failed = match (completed.outcome.timed_out(), exit) {
        (true, _) => {
            let message = format!("its run took longer than the {} s that it had", limit.as_secs());
            Some((Reason::OutOfTime, message))
        }
        (false, 0) => None,
        (false, exit) => {
            let limit = completed.limit.map(|limit| format!(", at a limit: {}", json!(limit)));
            let message = format!("its run ended with {exit}{}", limit.unwrap_or_default());
            Some((Reason::RunFailed, message))
        }
    };
    (ran, failed)
}

/// Applies a patch in a fork, as the tool `ApplyPatch` does.
pub(super) async fn patch(fork: &OpenFork, spec: &Spec, text: String) -> Result<Finished, Failure> {
    let begun = Instant::now();
    let registry = Registry::new(fork.toolbox.clone(), ToolSelection::ALL);
    let options = fork.context(spec, CancellationToken::new()).options;
    let mut arguments = serde_json::Map::new();
    arguments.insert("patch".to_owned(), text.into());
    let response = registry.call(&Session::new("try"), "ApplyPatch", arguments, options).await;
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut output = response.text();
    output.truncate(output.floor_char_boundary(KEPT_OUTPUT));
    let failed = response.is_error.then(|| {
        let first = output.lines().next().unwrap_or_default();
        (Reason::PatchFailed, format!("its patch does not apply: {first}"))
    });
    Ok((Ran { exit: None, millis, output }, failed))
}

/// Refuses a text that is no patch, before anything is done.
pub(super) fn check_patch(name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Failure::new(Code::PatchInvalid, format!("the patch {name} is not UTF-8 text"))
    })?;
    let parsed = carrel_edit::patch::parse(text);
    parsed.map(drop).map_err(|error| {
        Failure::new(Code::PatchInvalid, format!("{name} is no patch: {error}")).with("patch", name)
    })
}

/// Returns the standard input of a run.
pub(super) fn stdin(run: &Run, input: Option<Vec<u8>>) -> Stdin {
    match (run, input) {
        (Run::Agent { .. }, Some(prompt)) => Stdin::Bytes(prompt),
        (Run::Command { .. } | Run::Patch { .. } | Run::Agent { .. }, _) => Stdin::Empty,
    }
}
