//! The parent of one command and of everything the command leaves behind.
//!
//! An init does not end before its tree has: it is the process to which orphans are handed
//! (`PR_SET_CHILD_SUBREAPER`), so having no children means that nothing is left, whatever called
//! `setsid` or forked twice.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use carrel_sandbox::{Cell, Listener, SignalQueue, SignalScope, VforkStack};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
};

use super::supervise::{Main, Refusals, Supervisor};
use super::terminal::Ends;
use super::{command, ready};
use crate::protocol::{Descriptors, MAX_INLINE_BYTES, Report, Request, Start, Step, to_json};
use crate::socket;

/// What the kernel sends an init when the spawner dies.
pub(super) const END: Signal = Signal::USR1;

/// Starts the command and supervises it until nothing of it is left.
pub(super) fn run(
    start: &Start,
    descriptors: Descriptors<OwnedFd>,
    signals: SignalQueue,
    origin: Origin,
) {
    match prepare(&origin) {
        Ok(prepared) => run_prepared(start, descriptors, signals, origin, prepared),
        Err(error) => refuse(&descriptors.control, Step::Fork, &error),
    }
}

/// Gets ready for a command before there is one, and supervises the one that it is then given.
///
/// A spare that is not needed any more, or whose cell is gone, ends; so does one that could not get
/// ready, and its cell finds out when it needs it. The only one that a cell can have says why.
pub(super) fn run_spare(spare: Spare, signals: SignalQueue, origin: Origin) {
    let Spare { requests, last } = spare;
    let prepared = prepare(&origin);
    if prepared.is_err() && !origin.cell().is_some_and(Cell::shares_mounts_with_command) {
        return;
    }
    rehearse(&last);
    drop(last);
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

/// A copy of a cell that is to be ready for a command.
pub(super) struct Spare {
    /// Where the command comes from.
    pub(super) requests: OwnedFd,
    /// The cell's last request, if there was one.
    pub(super) last: Vec<u8>,
}

/// Reads a request as the next one is going to be read. The memory that it takes is still shared with
/// the cell until it is written to, and to copy it then would hold the command up.
fn rehearse(last: &[u8]) {
    if let Ok(Request::Start(start)) = Request::decode(last) {
        let _ = command::words(&start);
    }
}

type Command = (Box<Start>, Descriptors<OwnedFd>);

fn wait_for_command(
    requests: &OwnedFd,
    signals: &SignalQueue,
    origin: &Origin,
) -> io::Result<Option<Command>> {
    loop {
        let [requested, _] = ready::wait([requests.as_fd(), signals.as_fd()], None)?;
        if requested {
            break;
        }
        if signals.take()?.contains(&END) && !origin.is_there()? {
            return Ok(None);
        }
    }
    let Some(mut packet) = socket::receive(requests, MAX_INLINE_BYTES)? else { return Ok(None) };
    match Request::from_packet(&mut packet)? {
        Request::Start(start) => {
            // What the cell has opened comes last.
            let opens = origin.cell().is_some_and(Cell::opens_directories);
            let opened = if opens { packet.descriptors.pop() } else { None };
            let mut descriptors = Descriptors::from_received(packet.descriptors, &start.terms)?;
            descriptors.directory = opened.or(descriptors.directory);
            Ok(Some((start, descriptors)))
        }
        Request::Cell(_) | Request::End { .. } => Ok(None),
    }
}

fn run_prepared(
    start: &Start,
    mut descriptors: Descriptors<OwnedFd>,
    signals: SignalQueue,
    origin: Origin,
    prepared: Prepared,
) {
    match begin(start, &mut descriptors, &origin, prepared) {
        Err((step, error)) => refuse(&descriptors.control, step, &error),
        Ok((main, Prepared { news, told, enclosure, listener, terminal, vfork_stack: _kept })) => {
            // The command's ends of its pipes must not stay open here.
            drop(told);
            let (control, _held) = descriptors.into_supervised();
            let refusals = Refusals { listener, origin, seen: Vec::new() };
            let (grace, watch) = (start.terms.grace, start.terms.watch);
            Supervisor {
                control,
                signals,
                main: Main::new(main),
                grace,
                watch,
                enclosure,
                refusals,
                tell_at: None,
                terminal,
            }
            .supervise(news);
        }
    }
}

/// Makes everything that the command needs, and the process that becomes it.
fn begin(
    start: &Start,
    descriptors: &mut Descriptors<OwnedFd>,
    origin: &Origin,
    mut prepared: Prepared,
) -> Result<(Pid, Prepared), (Step, io::Error)> {
    let during = |step| move |error: io::Error| (step, error);
    if let Some(size) = start.terms.terminal {
        let ends = Ends::open(size).map_err(during(Step::Terminal))?;
        descriptors.standard = Some(ends.standard().map_err(during(Step::Terminal))?);
        prepared.terminal = Some(ends);
    }
    let Prepared { vfork_stack, told, .. } = &mut prepared;
    let main = vfork_stack.vfork(|| command::execute(start, descriptors, origin.cell(), told));
    Ok((main.map_err(during(Step::Fork))?, prepared))
}

/// What an init was copied from.
pub(super) enum Origin {
    /// The spawner.
    Spawner(Pid),
    /// A cell.
    Cell(Box<Cell>),
}

impl Origin {
    /// Names what a process was copied from: a cell, or the spawner with this id.
    pub(super) fn of(cell: Option<(Box<Cell>, OwnedFd)>, spawner: Pid) -> Self {
        cell.map_or(Self::Spawner(spawner), |(cell, _)| Self::Cell(cell))
    }

    pub(super) fn cell(&self) -> Option<&Cell> {
        match self {
            Self::Spawner(_) => None,
            Self::Cell(cell) => Some(cell),
        }
    }

    /// Returns whether the process is still there.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        match self {
            Self::Spawner(pid) => Ok(getppid() == Some(*pid)),
            Self::Cell(cell) => cell.is_alive(),
        }
    }
}

/// Tells the server that there will be no command.
pub(super) fn refuse(control: &OwnedFd, step: Step, error: &io::Error) {
    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    report(control, &Report::Failed { step, errno });
}

/// What an init has before there is a command.
struct Prepared {
    enclosure: SignalScope,
    /// What tells of refused system calls.
    listener: Option<Listener>,
    /// Where the command tells of itself before it is executed.
    news: OwnedFd,
    told: OwnedFd,
    vfork_stack: VforkStack,
    terminal: Option<Ends>,
}

/// Makes this process the one that orphans go to, and one that ends with what it was copied from.
fn prepare(origin: &Origin) -> io::Result<Prepared> {
    set_child_subreaper(Some(getpid()))?;
    let (enclosure, listener) =
        origin.cell().map_or(Ok((SignalScope::unrestricted(), None)), Cell::supervise)?;
    set_parent_process_death_signal(Some(END))?;
    // It may have died before it could be asked for a signal.
    if !origin.is_there()? {
        return Err(Errno::SRCH.into());
    }
    let (news, told) = socket::pair()?;
    Ok(Prepared {
        enclosure,
        listener,
        news,
        told,
        vfork_stack: VforkStack::prepare()?,
        terminal: None,
    })
}

/// Tells the server something.
pub(super) fn report(control: &OwnedFd, report: &Report) {
    // Without a server the next thing to be read is the end of the control socket.
    let _ = socket::send(control, &to_json(report), &[]);
}
