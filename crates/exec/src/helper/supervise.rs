//! Watching over a command until nothing of it is left.

use std::collections::HashSet;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use carrel_sandbox::{DeniedCall, Listener, SignalQueue, SignalScope, usage_of_children};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, WaitStatus};

use super::init::{END, Origin, report};
use super::sample::Disk;
use super::terminal::Ends;
use super::{children, ready, sample, tree};
use crate::outcome::{ExceededLimit, ExitStatus, ResourceUsage};
use crate::protocol::{MAX_CONTROL_BYTES, Order, Report, to_json};
use crate::socket;
use crate::spec::SampledLimits;

/// How long a tree may take to end by itself after its main process, before it counts as left
/// running. Something like `tee` behind a process substitution finishes its work in this time.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a command has to end before the server is told that it has begun. Telling takes this
/// process some time on the processor that the command was started on; one that is over sooner is
/// told of as a whole. Nobody sees a command's output before this, so it is short.
const UNTOLD: Duration = Duration::from_millis(1);

/// How long an init waits for the server to close its end when everything is said.
const LINGER: Duration = Duration::from_millis(20);

/// More than a process has to say that does not become its command.
const MAX_NEWS_BYTES: usize = 256;

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
    Excess(ExceededLimit),
}

/// The process of the command itself.
pub(super) struct Main {
    pid: Pid,
    end: Option<ExitStatus>,
}

impl Main {
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, end: None }
    }

    /// Remembers how it ended, if it is the one that did.
    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.pid {
            self.end = Some(ExitStatus::of(status));
        }
    }
}

/// The init of a command that was started.
pub(super) struct Supervisor {
    pub(super) control: OwnedFd,
    pub(super) signals: SignalQueue,
    pub(super) main: Main,
    pub(super) grace: Duration,
    pub(super) watch: SampledLimits,
    pub(super) enclosure: SignalScope,
    pub(super) refusals: Refusals,
    /// When the server is to be told that the program runs; none when it has been.
    pub(super) tell_at: Option<Instant>,
    /// The command's terminal, until the server has it: nothing here may keep it open.
    pub(super) terminal: Option<Ends>,
}

/// The system calls that the command was refused.
pub(super) struct Refusals {
    pub(super) listener: Option<Listener>,
    pub(super) origin: Origin,
    pub(super) seen: Vec<DeniedCall>,
}

impl Refusals {
    /// Answers the calls that wait.
    fn answer(&mut self) {
        let (Some(listener), Origin::Cell(cell)) = (&mut self.listener, &self.origin) else {
            return;
        };
        match listener.deny_pending(&cell.plan().seccomp) {
            Ok(Some(refused)) => {
                let same = |seen: &DeniedCall| {
                    (&seen.call, &seen.detail) == (&refused.call, &refused.detail)
                };
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
        let not_executed = not_executed(&news)?;
        drop(news);
        let cause = match not_executed {
            Some(why) => {
                socket::send(&self.control, &why, &[])?;
                Cause::NotExecuted
            }
            None => self.wait_for_cause()?,
        };
        let left_running = match cause {
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
        let end = self.main.end.unwrap_or(ExitStatus::Lost);
        let cost = ResourceUsage::from(usage_of_children()?);
        let refused = mem::take(&mut self.refusals.seen);
        report(&self.control, &Report::Ended { end, cost, left_running, refused, excess });
        // The kernel lets the server run where this process does, as soon as it sleeps: ending takes
        // longer than the server needs to read this and close its end.
        let _ = ready::wait([self.control.as_fd()], Instant::now().checked_add(LINGER));
        Ok(())
    }

    /// Waits until the tree has to end. The server knows then that the program ran.
    fn wait_for_cause(&mut self) -> io::Result<Cause> {
        // A terminal is what somebody waits for.
        let wait = if self.terminal.is_some() { Duration::ZERO } else { UNTOLD };
        self.tell_at = Instant::now().checked_add(wait);
        let cause = self.watch_over();
        self.report_start();
        cause
    }

    fn watch_over(&mut self) -> io::Result<Cause> {
        let cell = self.refusals.origin.cell();
        let place = cell.map_or(Path::new("/"), |cell| cell.plan().workspace.as_path());
        let disk = self.watch.disk.and_then(|room| Disk::begin(place, room).ok());
        let mut look_at = self.next_look();
        loop {
            self.reap()?;
            if self.main.end.is_some() {
                return Ok(Cause::MainEnded);
            }
            let until = self.tell_at.into_iter().chain(look_at).min();
            match self.next(until)? {
                Event::Stop => return Ok(Cause::Stopped),
                Event::Kill => return Ok(Cause::Killed),
                Event::Abandoned => return Ok(Cause::Abandoned),
                Event::Child | Event::Timeout => {}
            }
            if is_past(self.tell_at) {
                self.report_start();
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

    /// Tells the server, once, that the program runs, and hands over its terminal.
    fn report_start(&mut self) {
        if self.tell_at.take().is_none() {
            return;
        }
        let report = to_json(&Report::Started { pid: self.main.pid.as_raw_pid() });
        let terminal = self.terminal.take();
        let ends = terminal.as_ref().map(Ends::in_order);
        // Without a server the next thing to be read is the end of the control socket.
        let _ = socket::send(&self.control, &report, ends.as_ref().map_or(&[], |ends| ends));
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

/// Returns what a process that did not become the command has said. It has ended, or its program runs:
/// either way nothing more comes.
fn not_executed(news: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut said = [0; MAX_NEWS_BYTES];
    match recv(news, &mut said, RecvFlags::DONTWAIT) {
        // The program is being loaded, and closes its end with that, or has.
        Err(Errno::AGAIN) | Ok((0, _)) => Ok(None),
        Ok((length, _)) => Ok(Some(said[..length].to_vec())),
        Err(errno) => Err(errno.into()),
    }
}

fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
}
