//! Running a command through the spawner.

use std::fs::File;
use std::process::{Command, Stdio};

use carrel_exec::{CaptureLimits, CommandSpec, Output, Spawner};
use tokio_util::sync::CancellationToken;

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::report::{Budget, Row};

const PROGRAM: &str = "/bin/true";

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let program = std::env::current_exe()?;
    let spawner = ground.wait(async { Spawner::start(&program) })?;
    let pair = interleave(
        ground.pace.slow,
        || timed(run_plainly),
        || {
            let spec = specification()?;
            timed(|| run_through(ground, &spawner, spec))
        },
    )?;
    // The budget belongs to the sandbox, which is not part of this row.
    let work = "run `true` through the running spawner; `Command::output`";
    Ok(vec![Row::new(work, pair, Budget::None)])
}

fn run_plainly() -> Result<(), Fault> {
    let output = Command::new(PROGRAM).env_clear().stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err("the plain command failed".into()) }
}

fn run_through(ground: &Ground, spawner: &Spawner, spec: CommandSpec) -> Result<(), Fault> {
    let outcome = ground.wait(spawner.run(spec, &CancellationToken::new()))?;
    if outcome.succeeded() { Ok(()) } else { Err("the command through the spawner failed".into()) }
}

/// Asks for two pipes, as plain `output` does.
fn specification() -> Result<CommandSpec, Fault> {
    let limits = CaptureLimits::default();
    let output = Output::Separate { stdout: limits, stderr: limits };
    let directory = File::open("/")?.into();
    Ok(CommandSpec { output, ..CommandSpec::new(vec![PROGRAM.into()], directory) })
}
