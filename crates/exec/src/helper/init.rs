//! The init of a command: its parent, and the parent of everything it leaves behind.
//!
//! An init is a child subreaper (`PR_SET_CHILD_SUBREAPER`): a process whose parent ends becomes its
//! child, even if it called `setsid` or was forked twice. So an init without children knows that the whole
//! tree has ended, and it does not end before.
//!
//! A cell keeps one init *spare* from the second command on: forked, in its process namespace, with its
//! filter and its stack, waiting on a socket for a request. Most of starting a command is then done
//! before it is requested. The spare also decodes the cell's last request once, because the pages that
//! this touches are still shared with the cell, and copying them would delay the next command.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use carrel_sandbox::{Cell, Listener, SignalQueue, SignalScope, VforkStack};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
};

use super::supervisor::{Denials, Main, Supervisor};
use super::terminal::TerminalPair;
use super::{command, poll};
use crate::protocol::{Descriptors, MAX_INLINE_BYTES, Report, Request, Start, Step, to_json};
use crate::socket;

/// The signal that the kernel sends an init when the spawner dies.
pub(super) const PARENT_DIED: Signal = Signal::USR1;

/// Starts the command and supervises it until its last process has ended.
pub(super) fn run(
    start: &Start,
    descriptors: Descriptors<OwnedFd>,
    signals: SignalQueue,
    origin: ForkParent,
) {
    match prepare(&origin) {
        Ok(prepared) => run_prepared(start, descriptors, signals, origin, prepared),
        Err(error) => refuse(&descriptors.control, Step::Fork, &error),
    }
}

/// Prepares for a command, waits for one and supervises it.
///
/// Ends if its cell has ended or does not need it any more. A spare that cannot prepare ends too, and its
/// cell forks another when it needs one. In a cell of one command there is no other, so it waits for the
/// request and reports the failure.
pub(super) fn run_spare(spare: Spare, signals: SignalQueue, origin: ForkParent) {
    let Spare { requests, last_request } = spare;
    let prepared = prepare(&origin);
    if prepared.is_err() && !origin.cell().is_some_and(Cell::shares_mounts_with_command) {
        return;
    }
    fault_in_pages(&last_request);
    drop(last_request);
    let command = wait_for_command(&requests, &signals, &origin);
    drop(requests);
    match (command, prepared) {
        (Ok(Some((start, descriptors))), Ok(prepared)) => {
            run_prepared(&start, descriptors, signals, origin, prepared);
        }
        (Ok(Some((_, descriptors))), Err(error)) => {
            refuse(&descriptors.control, Step::Fork, &error);
        }
        (Ok(None) | Err(_), _) => {}
    }
}

pub(super) struct Spare {
    pub(super) requests: OwnedFd,
    /// The cell's last request, or empty.
    pub(super) last_request: Vec<u8>,
}

/// Decodes a request as the next one will be decoded, so that the copy-on-write faults happen now.
fn fault_in_pages(request: &[u8]) {
    if let Ok(Request::Start(start)) = Request::decode(request) {
        let _ = command::c_strings(&start);
    }
}

type Command = (Box<Start>, Descriptors<OwnedFd>);

fn wait_for_command(
    requests: &OwnedFd,
    signals: &SignalQueue,
    origin: &ForkParent,
) -> io::Result<Option<Command>> {
    loop {
        let [requested, _] = poll::wait([requests.as_fd(), signals.as_fd()], None)?;
        if requested {
            break;
        }
        if signals.take()?.contains(&PARENT_DIED) && !origin.is_alive()? {
            return Ok(None);
        }
    }
    let Some(mut packet) = socket::receive(requests, MAX_INLINE_BYTES)? else { return Ok(None) };
    match Request::from_packet(&mut packet)? {
        Request::Start(start) => {
            // A directory that the cell has opened comes last.
            let opens = origin.cell().is_some_and(Cell::opens_directories);
            let opened = if opens { packet.descriptors.pop() } else { None };
            let mut descriptors = Descriptors::from_received(packet.descriptors, &start.options)?;
            descriptors.directory = opened.or(descriptors.directory);
            Ok(Some((start, descriptors)))
        }
        Request::Cell(_) | Request::Overlay(_) | Request::Kill { .. } => Ok(None),
    }
}

fn run_prepared(
    start: &Start,
    mut descriptors: Descriptors<OwnedFd>,
    signals: SignalQueue,
    origin: ForkParent,
    prepared: Prepared,
) {
    let (main, prepared) = match begin(start, &mut descriptors, &origin, prepared) {
        Ok(begun) => begun,
        Err((step, error)) => return refuse(&descriptors.control, step, &error),
    };
    // The command's ends of its pipes must not stay open here.
    drop(prepared.exec_errors_far);
    let (control, _held) = descriptors.into_supervised();
    Supervisor {
        control,
        signals,
        main: Main::new(main),
        grace: start.options.grace,
        sampled: start.options.sampled,
        scope: prepared.scope,
        denials: Denials { listener: prepared.listener, origin, seen: Vec::new() },
        report_start_at: None,
        terminal: prepared.terminal,
    }
    .supervise(prepared.exec_errors);
}

/// Opens the terminal if there is one, and forks the process that becomes the command.
fn begin(
    start: &Start,
    descriptors: &mut Descriptors<OwnedFd>,
    origin: &ForkParent,
    mut prepared: Prepared,
) -> Result<(Pid, Prepared), (Step, io::Error)> {
    let during = |step| move |error: io::Error| (step, error);
    if let Some(size) = start.options.terminal {
        let ends = TerminalPair::open(size).map_err(during(Step::Terminal))?;
        descriptors.standard = Some(ends.standard().map_err(during(Step::Terminal))?);
        prepared.terminal = Some(ends);
    }
    let Prepared { vfork_stack, exec_errors_far, .. } = &mut prepared;
    let main =
        vfork_stack.vfork(|| command::execute(start, descriptors, origin.cell(), exec_errors_far));
    Ok((main.map_err(during(Step::Fork))?, prepared))
}

/// The process that an init was forked from.
pub(super) enum ForkParent {
    Spawner(Pid),
    Cell(Box<Cell>),
}

impl ForkParent {
    pub(super) fn of(cell: Option<(Box<Cell>, OwnedFd)>, spawner: Pid) -> Self {
        cell.map_or(Self::Spawner(spawner), |(cell, _)| Self::Cell(cell))
    }

    pub(super) fn cell(&self) -> Option<&Cell> {
        match self {
            Self::Spawner(_) => None,
            Self::Cell(cell) => Some(cell),
        }
    }

    pub(super) fn is_alive(&self) -> io::Result<bool> {
        match self {
            Self::Spawner(pid) => Ok(getppid() == Some(*pid)),
            Self::Cell(cell) => cell.is_alive(),
        }
    }
}

/// Reports to the server that the command could not be started.
pub(super) fn refuse(control: &OwnedFd, step: Step, error: &io::Error) {
    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    report(control, &Report::Failed { step, errno });
}

/// The parts of an init before there is a command.
struct Prepared {
    scope: SignalScope,
    listener: Option<Listener>,
    /// Receives the error of a process that did not become the command.
    exec_errors: OwnedFd,
    exec_errors_far: OwnedFd,
    vfork_stack: VforkStack,
    terminal: Option<TerminalPair>,
}

/// Makes this process a subreaper that ends with the process that it was forked from.
fn prepare(origin: &ForkParent) -> io::Result<Prepared> {
    set_child_subreaper(Some(getpid()))?;
    let (scope, listener) =
        origin.cell().map_or(Ok((SignalScope::unrestricted(), None)), Cell::supervise)?;
    set_parent_process_death_signal(Some(PARENT_DIED))?;
    // That process may have died before the signal was set.
    if !origin.is_alive()? {
        return Err(Errno::SRCH.into());
    }
    let (exec_errors, exec_errors_far) = socket::pair()?;
    Ok(Prepared {
        scope,
        listener,
        exec_errors,
        exec_errors_far,
        vfork_stack: VforkStack::prepare()?,
        terminal: None,
    })
}

pub(super) fn report(control: &OwnedFd, report: &Report) {
    // If the server has ended, the control socket reads end of file next.
    let _ = socket::send(control, &to_json(report), &[]);
}
