//! The last steps before a command's program runs, in the process that becomes it.

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

use crate::protocol::{Descriptors, Inside, Report, Standard, Start, Step, to_json};
use crate::socket;
use crate::spec::{CommandSpec, Limits};

/// The status of a process that did not become the command. Nobody sees it.
const NOT_EXECUTED: u8 = 1;

/// Becomes the command. Returns only if that fails, after saying so in `news`.
///
/// `news` is closed by the `exec` that succeeds, which is how the init learns of it.
pub(super) fn execute(
    start: &Start,
    descriptors: &Descriptors<OwnedFd>,
    cell: Option<&Cell>,
    news: &OwnedFd,
) -> u8 {
    let (step, error) = match prepare(start, descriptors, cell) {
        Err(failed) => failed,
        Ok(_inherited) => (Step::Execute, replace_process(start)),
    };
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    // If the init is gone, so is everybody who wants to know.
    let _ = socket::send(news, &to_json(&Report::Failed { step, errno }), &[]);
    NOT_EXECUTED
}

/// Gives the process what the command expects and takes away the rest. All other descriptors are
/// closed by `exec`.
fn prepare(
    start: &Start,
    descriptors: &Descriptors<OwnedFd>,
    cell: Option<&Cell>,
) -> Result<Vec<OwnedFd>, (Step, io::Error)> {
    let during = |step| move |error: io::Error| (step, error);
    join(&descriptors.groups).map_err(during(Step::Prepare))?;
    enter(start, descriptors, cell).map_err(during(Step::Directory))?;
    let placed = place(start, descriptors).map_err(during(Step::Prepare))?;
    // Late, so that they hold for the program and not for what prepares it.
    limit(start.terms.limits).map_err(|errno| (Step::Prepare, errno.into()))?;
    if let Some(cell) = cell {
        confine(cell, descriptors).map_err(during(Step::Confine))?;
    }
    Ok(placed)
}

/// Joins control groups. Each file takes the id of a thread, and zero is the one that writes.
fn join(groups: &[OwnedFd]) -> io::Result<()> {
    for group in groups {
        rustix::io::write(group, b"0")?;
    }
    Ok(())
}

fn enter(start: &Start, descriptors: &Descriptors<OwnedFd>, cell: Option<&Cell>) -> io::Result<()> {
    match (cell, &start.terms.inside, &descriptors.directory) {
        // What a cell opened is inside.
        (None, None, Some(directory)) | (Some(_), Some(_), Some(directory)) => {
            Ok(fchdir(directory)?)
        }
        (Some(cell), Some(Inside(path)), None) => cell.enter_directory(path),
        _ => Err(Errno::INVAL.into()),
    }
}

/// Takes away what a command must not have.
fn confine(cell: &Cell, descriptors: &Descriptors<OwnedFd>) -> io::Result<()> {
    // A directory of the host would be a way out.
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
            // Nobody but an administrator may have more than the server itself has.
            let maximum = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            // At the lower one a process is told, at the higher one it is killed.
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
    // A session of its own: a signal to its process group reaches no helper.
    setsid()?;
    if start.terms.terminal.is_some() {
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
fn replace_process(start: &Start) -> io::Error {
    let Some(program) = start.argv.first() else { return Errno::INVAL.into() };
    let Ok((arguments, environment)) = words(start) else { return Errno::INVAL.into() };
    let mut denied = None;
    for candidate in candidates(program, &start.environment) {
        let Ok(path) = CString::new(candidate) else { continue };
        let error = execute_program(&path, &arguments, &environment);
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {}
            // It may be elsewhere too; if not, this is what there is to say.
            io::ErrorKind::PermissionDenied => denied = Some(error),
            _ => return error,
        }
    }
    denied.unwrap_or_else(|| Errno::NOENT.into())
}

/// Returns arguments and variables in the form that the kernel takes.
pub(super) fn words(start: &Start) -> Result<(Vec<CString>, Vec<CString>), NulError> {
    let arguments = start.argv.iter().map(|argument| CString::new(argument.as_bytes()));
    let variables = start
        .environment
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
    Ok((arguments.collect::<Result<_, _>>()?, variables.collect::<Result<_, _>>()?))
}

/// Lists where a program may be: at its path, or for a plain name in the directories of `PATH`.
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
