//! The steps of a new process between fork and `exec`.
//!
//! In order: join the control groups, enter the working directory, place the descriptors in a new
//! session, set the rlimits, apply the last restrictions of the sandbox, execute. Restrictions come last
//! because they would forbid the steps before. A failed step is reported over a socket that a successful
//! `exec` closes.

use std::ffi::{CString, NulError, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use carrel_domain::ByteSize;
use carrel_sandbox::{Cell, execute as execute_program};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit, fchdir, getrlimit, ioctl_tiocsctty, setrlimit, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::command_spec::{CommandSpec, Limits};
use crate::protocol::{CellPath, Descriptors, Report, Standard, Start, Step, to_json};
use crate::socket;

/// The status of a process that did not become the command. The init reports the error instead.
const NOT_EXECUTED: u8 = 1;

/// Becomes the command. Returns only if that fails, after reporting over `exec_errors`, which a
/// successful `exec` closes.
pub(super) fn execute(
    start: &Start,
    descriptors: &Descriptors<OwnedFd>,
    cell: Option<&Cell>,
    exec_errors: &OwnedFd,
) -> u8 {
    let (step, error) = match prepare(start, descriptors, cell) {
        Err(failed) => failed,
        Ok(_inherited) => (Step::Execute, replace_process(start)),
    };
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    // Without an init there is no receiver either.
    let _ = socket::send(exec_errors, &to_json(&Report::Failed { step, errno }), &[]);
    NOT_EXECUTED
}

/// Prepares the process for the command. `exec` closes all other descriptors.
fn prepare(
    start: &Start,
    descriptors: &Descriptors<OwnedFd>,
    cell: Option<&Cell>,
) -> Result<Vec<OwnedFd>, (Step, io::Error)> {
    let during = |step| move |error: io::Error| (step, error);
    join(&descriptors.cgroups).map_err(during(Step::Prepare))?;
    enter(start, descriptors, cell).map_err(during(Step::Directory))?;
    let placed = place(start, descriptors).map_err(during(Step::Prepare))?;
    // Late, so that they do not apply to the preparation.
    limit(start.options.limits).map_err(|errno| (Step::Prepare, errno.into()))?;
    if let Some(cell) = cell {
        confine(cell, descriptors).map_err(during(Step::Confine))?;
    }
    Ok(placed)
}

/// Joins control groups. Zero stands for the writing thread.
fn join(groups: &[OwnedFd]) -> io::Result<()> {
    for group in groups {
        rustix::io::write(group, b"0")?;
    }
    Ok(())
}

fn enter(start: &Start, descriptors: &Descriptors<OwnedFd>, cell: Option<&Cell>) -> io::Result<()> {
    match (cell, &start.options.inside, &descriptors.directory) {
        // In a cell the directory was opened by the cell, inside the sandbox.
        (None, None, Some(directory)) | (Some(_), Some(_), Some(directory)) => {
            Ok(fchdir(directory)?)
        }
        (Some(cell), Some(CellPath(path)), None) => cell.enter_directory(path),
        _ => Err(Errno::INVAL.into()),
    }
}

/// Applies the restrictions that only the command's process gets.
fn confine(cell: &Cell, descriptors: &Descriptors<OwnedFd>) -> io::Result<()> {
    // A directory of the host would be an escape.
    let standard = descriptors.standard.iter().flat_map(Standard::in_order);
    for descriptor in standard.chain(&descriptors.inherited) {
        if FileType::from_raw_mode(fstat(descriptor)?.st_mode) == FileType::Directory {
            return Err(Errno::ISDIR.into());
        }
    }
    cell.confine()
}

fn limit(limits: Limits) -> Result<(), Errno> {
    let size = |size: Option<ByteSize>| size.map(ByteSize::as_u64);
    for (resource, value) in [
        (Resource::Data, size(limits.data)),
        (Resource::Cpu, limits.cpu.map(|time| time.as_secs().max(1))),
        (Resource::Fsize, size(limits.file_size)),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
        (Resource::Core, size(limits.core)),
    ] {
        if let Some(value) = value {
            // Only root may raise a limit above the server's own.
            let maximum = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            // `SIGXCPU` at the soft limit, `SIGKILL` at the hard one.
            let (current, maximum) = match resource {
                Resource::Cpu if maximum > value => (value, value + 1),
                _ => (maximum.min(value), maximum.min(value)),
            };
            setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?;
        }
    }
    Ok(())
}

fn place(start: &Start, descriptors: &Descriptors<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    let Some(Standard { stdin, stdout, stderr }) = &descriptors.standard else {
        return Err(Errno::INVAL.into());
    };
    // A new session: a signal to the command's process group reaches no helper.
    setsid()?;
    if start.options.terminal.is_some() {
        ioctl_tiocsctty(stdin)?;
    }
    dup2_stdin(stdin)?;
    dup2_stdout(stdout)?;
    dup2_stderr(stderr)?;
    let numbers = CommandSpec::FIRST_INHERITED.cast_signed()..;
    let inherited =
        descriptors.inherited.iter().zip(numbers).map(|(fd, number)| place_at(fd, number));
    let inherited = inherited.collect::<io::Result<_>>()?;
    carrel_sandbox::unblock_all_signals()?;
    Ok(inherited)
}

/// Duplicates a descriptor to a free number, without close-on-exec.
fn place_at(descriptor: &OwnedFd, number: i32) -> io::Result<OwnedFd> {
    let placed = fcntl_dupfd_cloexec(descriptor, number)?;
    if placed.as_raw_fd() != number {
        return Err(Errno::BUSY.into());
    }
    fcntl_setfd(&placed, FdFlags::empty())?;
    Ok(placed)
}

/// Looks the program up in the `PATH` of the command's own environment and executes it.
fn replace_process(start: &Start) -> io::Error {
    let Some(program) = start.argv.first() else { return Errno::INVAL.into() };
    let Ok((arguments, environment)) = c_strings(start) else { return Errno::INVAL.into() };
    let mut denied = None;
    for candidate in candidates(program, &start.environment) {
        let Ok(path) = CString::new(candidate) else { continue };
        let error = execute_program(&path, &arguments, &environment);
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {}
            // A later directory may have it; otherwise this is the error.
            io::ErrorKind::PermissionDenied => denied = Some(error),
            _ => return error,
        }
    }
    denied.unwrap_or_else(|| Errno::NOENT.into())
}

pub(super) fn c_strings(start: &Start) -> Result<(Vec<CString>, Vec<CString>), NulError> {
    let arguments = start.argv.iter().map(|argument| CString::new(argument.as_bytes()));
    let variables = start
        .environment
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
    Ok((arguments.collect::<Result<_, _>>()?, variables.collect::<Result<_, _>>()?))
}

/// Returns the paths to try: the program's own, or for a plain name those in the directories of `PATH`.
fn candidates(program: &OsStr, environment: &[(OsString, OsString)]) -> Vec<Vec<u8>> {
    let name = program.as_bytes();
    if name.contains(&b'/') {
        return vec![name.to_vec()];
    }
    let path = environment.iter().find(|(variable, _)| variable == "PATH");
    let directories = path.map(|(_, value)| value.as_bytes()).unwrap_or_default();
    let directories = directories.split(|byte| *byte == b':').filter(|part| !part.is_empty());
    directories.map(|directory| [directory, b"/", name].concat()).collect()
}
