//! Watching over a command until nothing of it is left.

use std::collections::HashSet;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use carrel_sandbox::{Enclosure, Listener, Refused, SignalQueue, usage_of_children};
use rustix::event::PollFlags;
use rustix::process::{Pid, WaitStatus};

use super::init::{END, Origin, report};
use super::sample::Disk;
use super::terminal::Ends;
use super::{children, ready, sample, tree};
use crate::outcome::{Cost, End, Excess};
use crate::protocol::{MAX_CONTROL_BYTES, Order, Report, to_json};
use crate::socket;
use crate::spec::Watch;

/// How long a tree may take to end by itself after its main process, before it counts as left
/// running. Something like `tee` behind a process substitution finishes its work in this time.
const SETTLE: Duration = Duration::from_millis(50);

/// How long an init waits for the server to close its end when everything is said.
const LINGER: Duration = Duration::from_millis(20);

/// How many different refused calls are reported. A command that tries more is not looking for help.
const MAX_REFUSED: usize = 16;

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
pub(super) struct Main {
    pid: Pid,
    end: Option<End>,
}

impl Main {
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, end: None }
    }

    /// Remembers how it ended, if it is the one that did.
    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.pid {
            self.end = Some(End::of(status));
        }
    }
}

/// The init of a command that was started.
pub(super) struct Supervisor {
    pub(super) control: OwnedFd,
    pub(super) signals: SignalQueue,
    pub(super) main: Main,
    pub(super) grace: Duration,
    pub(super) watch: Watch,
    pub(super) enclosure: Enclosure,
    pub(super) refusals: Refusals,
    /// The command's terminal, until the server has it: nothing here may keep it open.
    pub(super) terminal: Option<Ends>,
}

/// The system calls that the command was refused.
pub(super) struct Refusals {
    pub(super) listener: Option<Listener>,
    pub(super) origin: Origin,
    pub(super) seen: Vec<Refused>,
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

impl Supervisor {
    /// Sees the command to its end. `news` closes when its program runs.
    pub(super) fn supervise(mut self, news: OwnedFd) {
        if self.see_to_the_end(news).is_err() {
            // Nothing is known about the tree except that it must not survive.
            self.kill();
        }
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
