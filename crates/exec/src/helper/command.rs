//! The last steps before a command's program runs, in the process that becomes it.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use carrel_domain::ByteSize;
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit, fchdir, setrlimit, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::protocol::{Descriptors, Report, Start, Step, to_json};
use crate::spec::{CommandSpec, Limits};

/// Becomes the command. Returns only if that fails, after saying so in `failure`.
///
/// `failure` is closed by the `exec` that succeeds, which is how the init learns of it.
pub(super) fn execute(
    start: &Start,
    descriptors: &Descriptors<OwnedFd>,
    failure: OwnedFd,
) -> ExitCode {
    let (step, error) = match prepare(descriptors, start.limits) {
        Err(failed) => failed,
        Ok(_inherited) => (Step::Execute, replace_process(start)),
    };
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    // If the init is gone, so is everybody who wants to know.
    let _ = std::fs::File::from(failure).write_all(&to_json(&Report::Failed { step, errno }));
    ExitCode::FAILURE
}

/// Gives the process what the command expects. All other descriptors are closed by `exec`.
fn prepare(
    descriptors: &Descriptors<OwnedFd>,
    limits: Limits,
) -> Result<Vec<OwnedFd>, (Step, io::Error)> {
    fchdir(&descriptors.directory).map_err(|errno| (Step::Directory, errno.into()))?;
    let placed = place(descriptors).map_err(|error| (Step::Prepare, error))?;
    // Last, so that they hold for the program and not for what prepares it.
    limit(limits).map_err(|errno| (Step::Prepare, errno.into()))?;
    Ok(placed)
}

fn limit(limits: Limits) -> Result<(), Errno> {
    let cpu = limits.cpu.map(|time| time.as_secs().max(1));
    let data = limits.data.map(ByteSize::as_u64);
    for (resource, value) in [(Resource::Data, data), (Resource::Cpu, cpu)] {
        if value.is_some() {
            setrlimit(resource, Rlimit { current: value, maximum: value })?;
        }
    }
    Ok(())
}

fn place(descriptors: &Descriptors<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    // A session of its own: a signal to its process group reaches no helper.
    setsid()?;
    dup2_stdin(&descriptors.stdin)?;
    dup2_stdout(&descriptors.stdout)?;
    dup2_stderr(&descriptors.stderr)?;
    let numbers = CommandSpec::FIRST_INHERITED.cast_signed()..;
    let inherited =
        descriptors.inherited.iter().zip(numbers).map(|(fd, number)| place_at(fd, number));
    let inherited = inherited.collect::<io::Result<_>>()?;
    carrel_sandbox::unblock_all_signals()?;
    Ok(inherited)
}

/// Copies a descriptor to a number that is free, for the command to inherit.
fn place_at(descriptor: &OwnedFd, number: i32) -> io::Result<OwnedFd> {
    let placed = fcntl_dupfd_cloexec(descriptor, number)?;
    if placed.as_raw_fd() != number {
        return Err(Errno::BUSY.into());
    }
    fcntl_setfd(&placed, FdFlags::empty())?;
    Ok(placed)
}

/// Looks the program up in the `PATH` of the command's own environment and executes it.
#[expect(clippy::disallowed_methods, reason = "this is where commands are executed")]
fn replace_process(start: &Start) -> io::Error {
    let Some((program, arguments)) = start.argv.split_first() else {
        return Errno::INVAL.into();
    };
    let environment = start.environment.iter().map(|(name, value)| (name, value));
    Command::new(program).args(arguments).env_clear().envs(environment).exec()
}
