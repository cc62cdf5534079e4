//! The parent of one command and of everything the command leaves behind.
//!
//! An init does not end before its tree has: it is the process to which orphans are handed
//! (`PR_SET_CHILD_SUBREAPER`), so having no children means that nothing is left, whatever called
//! `setsid` or forked twice.

use std::collections::HashSet;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use carrel_sandbox::{Cell, Enclosure, Listener, Refused, SignalQueue, lend, usage_of_children};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitStatus, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
};

use super::sample::Disk;
use super::terminal::Ends;
use super::{children, command, ready, sample, tree};
use crate::outcome::{Cost, End, Excess};
use crate::protocol::{
    Descriptors, MAX_CONTROL_BYTES, MAX_INLINE_BYTES, Order, Report, Request, Start, Step, to_json,
};
use crate::socket;
use crate::spec::Watch;

/// What the kernel sends an init when the spawner dies.
pub(super) const END: Signal = Signal::USR1;

/// How long a tree may take to end by itself after its main process, before it counts as left
/// running. Something like `tee` behind a process substitution finishes its work in this time.
const SETTLE: Duration = Duration::from_millis(50);

/// How long an init waits for the server to close its end when everything is said.
const LINGER: Duration = Duration::from_millis(20);

/// How many different refused calls are reported. A command that tries more is not looking for help.
const MAX_REFUSED: usize = 16;

/// Starts the command and supervises it until nothing of it is left.
pub(super) fn run(
    start: &Start,
    descriptors: Descriptors<OwnedFd>,
    signals: SignalQueue,
    origin: Origin,
) -> ExitCode {
    match prepare(&origin) {
        Ok(prepared) => run_prepared(start, descriptors, signals, origin, prepared),
        Err(error) => {
            refuse(&descriptors.control, Step::Fork, &error);
            ExitCode::SUCCESS
        }
    }
}

/// Gets ready for a command before there is one, and supervises the one that it is then given.
///
/// A spare that is not needed any more, or whose cell is gone, ends; so does one that could not get
/// ready, and its cell finds out when it needs it.
pub(super) fn run_spare(requests: OwnedFd, signals: SignalQueue, origin: Origin) -> ExitCode {
    let command = prepare(&origin).and_then(|prepared| {
        Ok(wait_for_command(&requests, &signals, &origin)?.map(|command| (command, prepared)))
    });
    drop(requests);
    match command {
        Ok(Some(((start, descriptors), prepared))) => {
            run_prepared(&start, descriptors, signals, origin, prepared)
        }
        Ok(None) | Err(_) => ExitCode::SUCCESS,
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
            let descriptors = Descriptors::from_received(packet.descriptors, &start.terms)?;
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
) -> ExitCode {
    match begin(start, &mut descriptors, &origin, prepared) {
        Err((step, error)) => {
            refuse(&descriptors.control, step, &error);
            ExitCode::SUCCESS
        }
        Ok((main, Prepared { news, told, enclosure, listener, terminal })) => {
            // The command's ends of its pipes must not stay open here.
            drop(told);
            let (control, _held) = descriptors.into_supervised();
            let main = Main { pid: main, end: None };
            let refusals = Refusals { listener, origin, seen: Vec::new() };
            let (grace, watch) = (start.terms.grace, start.terms.watch);
            Init { control, signals, main, grace, watch, enclosure, refusals, terminal }
                .supervise(news)
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
    let main = lend(|| command::execute(start, descriptors, origin.cell(), &prepared.told));
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

    fn cell(&self) -> Option<&Cell> {
        match self {
            Self::Spawner(_) => None,
            Self::Cell(cell) => Some(cell),
        }
    }

    /// Returns whether the process is still there.
    fn is_there(&self) -> io::Result<bool> {
        match self {
            Self::Spawner(pid) => Ok(getppid() == Some(*pid)),
            Self::Cell(cell) => cell.is_there(),
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
    enclosure: Enclosure,
    /// What tells of refused system calls.
    listener: Option<Listener>,
    /// Where the command tells of itself before it is executed.
    news: OwnedFd,
    told: OwnedFd,
    terminal: Option<Ends>,
}

/// Makes this process the one that orphans go to, and one that ends with what it was copied from.
fn prepare(origin: &Origin) -> io::Result<Prepared> {
    set_child_subreaper(Some(getpid()))?;
    let (enclosure, listener) =
        origin.cell().map_or(Ok((Enclosure::none(), None)), Cell::supervise)?;
    set_parent_process_death_signal(Some(END))?;
    // It may have died before it could be asked for a signal.
    if !origin.is_there()? {
        return Err(Errno::SRCH.into());
    }
    let (news, told) = socket::pair()?;
    Ok(Prepared { enclosure, listener, news, told, terminal: None })
}

/// Tells the server something.
pub(super) fn report(control: &OwnedFd, report: &Report) {
    // Without a server the next thing to be read is the end of the control socket.
    let _ = socket::send(control, &to_json(report), &[]);
}

/// Something that makes an init act.
enum Event {
    /// A child may have ended.
    Child,
    /// The server wants the command stopped.
    Stop,
    /// The server wants it killed.
    Kill,
    /// The server or the spawner is gone.
    Abandoned,
    /// The time is over.
    Timeout,
}

/// Why the tree has to end.
enum Cause {
    /// The main process ended.
    MainEnded,
    /// The program could not be executed.
    NotExecuted,
    /// The server said so.
    Stopped,
    /// The server or the spawner is gone.
    Abandoned,
    /// The server wants it dead.
    Killed,
    /// Its processes use too much of something.
    Excess(Excess),
}

/// The process of the command itself.
struct Main {
    pid: Pid,
    end: Option<End>,
}

impl Main {
    /// Remembers how it ended, if it is the one that did.
    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.pid {
            self.end = Some(End::of(status));
        }
    }
}

struct Init {
    control: OwnedFd,
    signals: SignalQueue,
    main: Main,
    grace: Duration,
    watch: Watch,
    enclosure: Enclosure,
    refusals: Refusals,
    /// The command's terminal, until the server has it: nothing here may keep it open.
    terminal: Option<Ends>,
}

/// The system calls that the command was refused.
struct Refusals {
    listener: Option<Listener>,
    origin: Origin,
    seen: Vec<Refused>,
}

impl Refusals {
    /// Answers the calls that wait.
    fn answer(&mut self) {
        let (Some(listener), Origin::Cell(cell)) = (&mut self.listener, &self.origin) else {
            return;
        };
        match listener.answer(&cell.plan().seccomp) {
            Ok(Some(refused)) => {
                let same =
                    |seen: &Refused| (&seen.call, &seen.detail) == (&refused.call, &refused.detail);
                if self.seen.len() < MAX_REFUSED && !self.seen.iter().any(same) {
                    self.seen.push(refused);
                }
            }
            Ok(None) => {}
            // Whoever calls on is told that the call does not exist.
            Err(_) => self.listener = None,
        }
    }
}

impl Init {
    fn supervise(mut self, news: OwnedFd) -> ExitCode {
        if self.see_to_the_end(news).is_err() {
            // Nothing is known about the tree except that it must not survive.
            self.kill();
        }
        ExitCode::SUCCESS
    }

    fn see_to_the_end(&mut self, news: OwnedFd) -> io::Result<()> {
        let mut excess = None;
        let left_running = match self.wait_for_cause(news)? {
            Cause::MainEnded => self.end_the_rest()?,
            Cause::Stopped => {
                self.stop()?;
                0
            }
            Cause::Killed => {
                self.kill();
                0
            }
            Cause::Excess(of) => {
                self.kill();
                excess = Some(of);
                0
            }
            // The server has been told.
            Cause::NotExecuted => return self.end_or_kill(SETTLE),
            // The server is gone, or takes silence for the end of the spawner.
            Cause::Abandoned => {
                self.kill();
                return Ok(());
            }
        };
        let end = self.main.end.unwrap_or(End::Lost);
        let cost = Cost::from(usage_of_children()?);
        let refused = mem::take(&mut self.refusals.seen);
        report(&self.control, &Report::Ended { end, cost, left_running, refused, excess });
        // The kernel lets the server run where this process does, as soon as it sleeps: ending takes
        // longer than the server needs to read this and close its end.
        let _ = ready::wait([self.control.as_fd()], Instant::now().checked_add(LINGER));
        Ok(())
    }

    fn wait_for_cause(&mut self, news: OwnedFd) -> io::Result<Cause> {
        if let Some(cause) = self.wait_for_program(&news)? {
            return Ok(cause);
        }
        drop(news);
        self.report_start();
        let cell = self.refusals.origin.cell();
        let place = cell.map_or(Path::new("/"), |cell| cell.plan().workspace.as_path());
        let disk = self.watch.disk.and_then(|room| Disk::begin(place, room).ok());
        let mut look_at = self.next_look();
        loop {
            self.reap()?;
            if self.main.end.is_some() {
                return Ok(Cause::MainEnded);
            }
            match self.next(look_at)? {
                Event::Stop => return Ok(Cause::Stopped),
                Event::Kill => return Ok(Cause::Killed),
                Event::Abandoned => return Ok(Cause::Abandoned),
                Event::Child | Event::Timeout => {}
            }
            if is_past(look_at) {
                // What cannot be looked at now is looked at the next time.
                let hidden = || disk.as_ref().and_then(|disk| disk.look().ok().flatten());
                let found = sample::look(&self.watch).ok().flatten().or_else(hidden);
                if let Some(excess) = found {
                    return Ok(Cause::Excess(excess));
                }
                look_at = self.next_look();
            }
        }
    }

    /// Says when to look at what the tree uses; never if nobody wants to know.
    fn next_look(&self) -> Option<Instant> {
        if self.watch.is_empty() {
            return None;
        }
        Instant::now().checked_add(sample::SAMPLE_EVERY)
    }

    /// Tells the server that the program runs, and hands over its terminal.
    fn report_start(&mut self) {
        let report = to_json(&Report::Started { pid: self.main.pid.as_raw_pid() });
        let terminal = self.terminal.take();
        let ends = terminal.as_ref().map(Ends::in_order);
        // Without a server the next thing to be read is the end of the control socket.
        let _ = socket::send(&self.control, &report, ends.as_ref().map_or(&[], |ends| ends));
    }

    /// Waits until the program runs. Returns why it never will, if so.
    fn wait_for_program(&mut self, news: &OwnedFd) -> io::Result<Option<Cause>> {
        loop {
            let watched = [news.as_fd(), self.control.as_fd(), self.signals.as_fd()];
            let [told, ordered, _] = ready::wait(watched, None)?;
            if told {
                // Its end was closed by the execution of the program, unless there is something to say.
                let Some(packet) = socket::receive(news, MAX_CONTROL_BYTES)? else {
                    return Ok(None);
                };
                socket::send(&self.control, &packet.payload, &[])?;
                return Ok(Some(Cause::NotExecuted));
            }
            let event = if ordered { self.order()? } else { self.signal()? };
            match event {
                Event::Stop => return Ok(Some(Cause::Stopped)),
                Event::Kill => return Ok(Some(Cause::Killed)),
                Event::Abandoned => return Ok(Some(Cause::Abandoned)),
                // A child that has ended has also closed its end.
                Event::Child | Event::Timeout => {}
            }
        }
    }

    /// Ends what the main process left, and returns how many processes that were.
    fn end_the_rest(&mut self) -> io::Result<usize> {
        // A command that leaves nothing, as most do, costs no look at the process table.
        if self.ends_within(SETTLE)? {
            return Ok(0);
        }
        let left = tree::running(&HashSet::new())?.len();
        self.stop()?;
        Ok(left)
    }

    /// Asks the tree to end, waits for the grace and kills what is left.
    fn stop(&mut self) -> io::Result<()> {
        tree::terminate(self.enclosure)?;
        self.end_or_kill(self.grace)
    }

    /// Waits for the tree to end by itself and kills what is left.
    fn end_or_kill(&mut self, at_most: Duration) -> io::Result<()> {
        if !self.ends_within(at_most)? {
            self.kill();
        }
        Ok(())
    }

    /// Waits for the tree to end by itself, and returns whether it did. Nobody waits for a tree
    /// that is abandoned.
    fn ends_within(&mut self, at_most: Duration) -> io::Result<bool> {
        // A grace beyond what the clock can express has no end.
        let until = Instant::now().checked_add(at_most);
        while !self.reap()? {
            match self.next(until)? {
                Event::Timeout | Event::Kill | Event::Abandoned => return Ok(false),
                // Nor does one that keeps making children.
                Event::Child | Event::Stop if is_past(until) => return Ok(false),
                Event::Child | Event::Stop => {}
            }
        }
        Ok(true)
    }

    /// Kills the tree until nothing is left of it, whatever the server or the spawner do.
    fn kill(&mut self) {
        let Self { signals, main, .. } = self;
        children::kill_all(signals, self.enclosure, |pid, status| main.note(pid, status));
    }

    /// Takes the status of every child that has ended. Returns whether there are no children left.
    fn reap(&mut self) -> io::Result<bool> {
        children::reap(|pid, status| self.main.note(pid, status))
    }

    fn next(&mut self, until: Option<Instant>) -> io::Result<Event> {
        loop {
            let watched = [self.control.as_fd(), self.signals.as_fd()];
            let listener = self.refusals.listener.as_ref().map(AsFd::as_fd);
            let (events, call) = ready::wait_also(watched, listener, until)?;
            if call.contains(PollFlags::IN) {
                self.refusals.answer();
            } else if !call.is_empty() {
                // Nothing is left that could call.
                self.refusals.listener = None;
            }
            match events {
                [true, _] => return self.order(),
                [false, true] => return self.signal(),
                // A command that keeps calling does not stop the clock.
                [false, false] if call.is_empty() || is_past(until) => return Ok(Event::Timeout),
                [false, false] => {}
            }
        }
    }

    fn order(&self) -> io::Result<Event> {
        let Some(packet) = socket::receive(&self.control, MAX_CONTROL_BYTES)? else {
            return Ok(Event::Abandoned);
        };
        match serde_json::from_slice(&packet.payload)? {
            Order::Stop => Ok(Event::Stop),
            Order::Kill => Ok(Event::Kill),
        }
    }

    fn signal(&self) -> io::Result<Event> {
        let told = self.signals.take()?.contains(&END);
        // The command can send the signal too.
        let abandoned = told && !self.refusals.origin.is_there()?;
        Ok(if abandoned { Event::Abandoned } else { Event::Child })
    }
}

fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
}
