//! The supervision of a running command by its init.
//!
//! The init waits for four sources at once: the server's orders, the end of children, the parent-death
//! signal, and denied system calls, which it answers and records. A tree ends for one of several causes;
//! in every case the init kills what is left and only then reports the outcome. If supervision itself
//! fails, the tree is killed.
//!
//! The report that the program runs is delayed by a millisecond. Sending it would take this process to
//! the processor that the new program wants to run on; a command that ends sooner is reported at its end
//! only. Live output starts with the report, so the delay is short.

use std::collections::HashSet;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use carrel_sandbox::{
    DeniedCall, Listener, SignalQueue, SignalScope, signal_process_group, usage_of_children,
};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, pidfd_open};

use super::init::{ForkParent, PARENT_DIED, report};
use super::terminal::TerminalPair;
use super::usage_sampler::UnlinkedFilesWatch;
use super::{children, poll, process_tree, usage_sampler};
use crate::command_spec::SampledLimits;
use crate::outcome::{ExceededLimit, ExitStatus};
use crate::protocol::{MAX_CONTROL_BYTES, Order, Report, to_json};
use crate::socket;

/// The time in which the rest of a tree may end after its main process before it counts as left running.
/// A `tee` behind a process substitution finishes its work in this time.
const EXIT_GRACE: Duration = Duration::from_millis(50);

/// The age of a command at which its start is reported.
const START_REPORT_DELAY: Duration = Duration::from_millis(1);

/// The time for which an init waits for the server to close the control socket after the last report.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(20);

/// The most bytes of the report of a failed `exec`.
const MAX_EXEC_ERROR_BYTES: usize = 256;

/// The most denied system calls that are reported.
const MAX_DENIED_CALLS: usize = 16;

enum Event {
    Child,
    Stop,
    Kill,
    Abandoned,
    Timeout,
}

enum Cause {
    MainEnded,
    NotExecuted,
    Stopped,
    Abandoned,
    Killed,
    Excess(ExceededLimit),
}

pub(super) struct Main {
    pid: Pid,
    /// Names its process group for ever; none if the descriptor could not be had.
    pidfd: Option<OwnedFd>,
    end: Option<ExitStatus>,
}

impl Main {
    /// `pid` is a child that has not been reaped, so its id cannot have been given to another process.
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(), end: None }
    }

    /// Kills the command's process group: all processes that did not ask for a group of their own.
    ///
    /// A sweep of the process table is slower than processes that fork and exit, and may have to be
    /// repeated for seconds on a busy machine. Their group ends at once.
    fn kill_group(&self) {
        if let Some(pidfd) = &self.pidfd {
            // An older kernel leaves the group to the sweeps.
            let _ = signal_process_group(pidfd.as_fd(), Signal::KILL);
        }
    }

    /// Records the status of an ended child, if it is the main process.
    fn record(&mut self, pid: Pid, status: WaitStatus) {
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
    pub(super) sampled: SampledLimits,
    pub(super) scope: SignalScope,
    pub(super) denials: Denials,
    /// The time to report the start; none after that.
    pub(super) report_start_at: Option<Instant>,
    /// The command's terminal, until the server has it. Keeping it open here would hide its end.
    pub(super) terminal: Option<TerminalPair>,
}

pub(super) struct Denials {
    pub(super) listener: Option<Listener>,
    pub(super) origin: ForkParent,
    pub(super) seen: Vec<DeniedCall>,
}

impl Denials {
    fn answer_pending(&mut self) {
        let (Some(listener), ForkParent::Cell(cell)) = (&mut self.listener, &self.origin) else {
            return;
        };
        match listener.deny_pending(&cell.plan().seccomp) {
            Ok(Some(refused)) => {
                let same = |seen: &DeniedCall| {
                    (&seen.call, &seen.detail) == (&refused.call, &refused.detail)
                };
                if let Some(seen) = self.seen.iter_mut().find(|seen| same(seen)) {
                    seen.count += refused.count;
                } else if self.seen.len() < MAX_DENIED_CALLS {
                    self.seen.push(refused);
                }
            }
            Ok(None) => {}
            // Without a listener the kernel answers further calls with `ENOSYS`.
            Err(_) => self.listener = None,
        }
    }
}

impl Supervisor {
    /// Supervises the command to its end. `exec_errors` closes when its program runs.
    pub(super) fn supervise(mut self, exec_errors: OwnedFd) {
        if self.run(exec_errors).is_err() {
            // The state of the tree is unknown, and it must not survive.
            self.kill();
        }
    }

    fn run(&mut self, exec_errors: OwnedFd) -> io::Result<()> {
        let exec_error = exec_error(&exec_errors)?;
        drop(exec_errors);
        let cause = match exec_error {
            Some(report) => {
                socket::send(&self.control, &report, &[])?;
                Cause::NotExecuted
            }
            None => self.wait_for_cause()?,
        };
        let mut left_running = 0;
        let mut excess = None;
        match cause {
            Cause::MainEnded => left_running = self.end_rest()?,
            Cause::Stopped => self.stop()?,
            Cause::Killed => self.kill(),
            Cause::Excess(of) => {
                self.kill();
                excess = Some(of);
            }
            // The failure has been reported.
            Cause::NotExecuted => return self.end_or_kill(EXIT_GRACE),
            // The server has ended, or takes the closed socket for the end of the spawner.
            Cause::Abandoned => {
                self.kill();
                return Ok(());
            }
        }
        let end = self.main.end.unwrap_or(ExitStatus::Lost);
        let cost = usage_of_children()?;
        let refused = mem::take(&mut self.denials.seen);
        report(&self.control, &Report::Ended { end, cost, left_running, refused, excess });
        // The kernel wakes the server on this processor and expects the writer to sleep. Exiting at once
        // would keep the server waiting for longer than it needs to read the report.
        let _ = poll::wait([self.control.as_fd()], Instant::now().checked_add(CLOSE_TIMEOUT));
        Ok(())
    }

    /// Waits until there is a cause to end the tree. The start has been reported by then.
    fn wait_for_cause(&mut self) -> io::Result<Cause> {
        // A caller waits for the terminal, which comes with the report.
        let delay = if self.terminal.is_some() { Duration::ZERO } else { START_REPORT_DELAY };
        self.report_start_at = Instant::now().checked_add(delay);
        let cause = self.next_cause();
        self.report_start();
        cause
    }

    fn next_cause(&mut self) -> io::Result<Cause> {
        let cell = self.denials.origin.cell();
        let path = cell.map_or(Path::new("/"), |cell| cell.plan().workspace.as_path());
        let disk = self.sampled.disk.and_then(|limit| UnlinkedFilesWatch::start(path, limit).ok());
        let mut sample_at = self.next_sample();
        loop {
            self.reap()?;
            if self.main.end.is_some() {
                return Ok(Cause::MainEnded);
            }
            let until = self.report_start_at.into_iter().chain(sample_at).min();
            match self.next(until)? {
                Event::Stop => return Ok(Cause::Stopped),
                Event::Kill => return Ok(Cause::Killed),
                Event::Abandoned => return Ok(Cause::Abandoned),
                Event::Child | Event::Timeout => {}
            }
            if is_past(self.report_start_at) {
                self.report_start();
            }
            if is_past(sample_at) {
                // A failed sample is repeated the next time.
                let on_disk = || disk.as_ref().and_then(|disk| disk.sample().ok().flatten());
                let found = usage_sampler::sample(&self.sampled).ok().flatten().or_else(on_disk);
                if let Some(excess) = found {
                    return Ok(Cause::Excess(excess));
                }
                sample_at = self.next_sample();
            }
        }
    }

    /// Returns the time of the next sample; none without sampled limits.
    fn next_sample(&self) -> Option<Instant> {
        if self.sampled.is_empty() {
            return None;
        }
        Instant::now().checked_add(usage_sampler::SAMPLE_EVERY)
    }

    /// Reports the start to the server, once, with the terminal.
    fn report_start(&mut self) {
        if self.report_start_at.take().is_none() {
            return;
        }
        let report = to_json(&Report::Started { pid: self.main.pid.as_raw_pid() });
        let terminal = self.terminal.take();
        let ends = terminal.as_ref().map(TerminalPair::in_order);
        // If the server has ended, the control socket reads end of file next.
        let _ = socket::send(&self.control, &report, ends.as_ref().map_or(&[], |ends| ends));
    }

    /// Ends the processes that the main one left, and returns their number.
    fn end_rest(&mut self) -> io::Result<usize> {
        // Most commands leave nothing, and the process table is not read.
        if self.ends_within(EXIT_GRACE)? {
            return Ok(0);
        }
        let left = process_tree::running(&HashSet::new())?.len();
        self.stop()?;
        Ok(left)
    }

    /// Sends `SIGTERM`, waits for the grace period and kills the rest.
    fn stop(&mut self) -> io::Result<()> {
        process_tree::terminate(self.scope)?;
        self.end_or_kill(self.grace)
    }

    /// Waits for the tree to end by itself and kills the rest.
    fn end_or_kill(&mut self, at_most: Duration) -> io::Result<()> {
        if !self.ends_within(at_most)? {
            self.kill();
        }
        Ok(())
    }

    /// Waits for the tree to end by itself, and returns whether it did. An abandoned tree is not waited
    /// for.
    fn ends_within(&mut self, at_most: Duration) -> io::Result<bool> {
        // A grace period beyond what the clock can express has no end.
        let until = Instant::now().checked_add(at_most);
        while !self.reap()? {
            match self.next(until)? {
                Event::Timeout | Event::Kill | Event::Abandoned => return Ok(false),
                // A tree that keeps forking does not stop the clock.
                Event::Child | Event::Stop if is_past(until) => return Ok(false),
                Event::Child | Event::Stop => {}
            }
        }
        Ok(true)
    }

    /// Kills the tree until its last process has ended.
    fn kill(&mut self) {
        let Self { signals, main, .. } = self;
        main.kill_group();
        children::kill_all(signals, self.scope, |pid, status| main.record(pid, status));
    }

    /// Reaps ended children. Returns whether none are left.
    fn reap(&mut self) -> io::Result<bool> {
        children::reap(|pid, status| self.main.record(pid, status))
    }

    fn next(&mut self, until: Option<Instant>) -> io::Result<Event> {
        loop {
            let watched = [self.control.as_fd(), self.signals.as_fd()];
            let listener = self.denials.listener.as_ref().map(AsFd::as_fd);
            let (events, call) = poll::wait_with(watched, listener, until)?;
            if call.contains(PollFlags::IN) {
                self.denials.answer_pending();
            } else if !call.is_empty() {
                // The last process under the filter has ended.
                self.denials.listener = None;
            }
            match events {
                [true, _] => return self.order(),
                [false, true] => return self.signal(),
                // Denied calls do not stop the clock.
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
        let parent_died = self.signals.take()?.contains(&PARENT_DIED);
        // The command could send the signal too, so the parent is checked.
        let abandoned = parent_died && !self.denials.origin.is_alive()?;
        Ok(if abandoned { Event::Abandoned } else { Event::Child })
    }
}

/// Returns the report of a process that did not become the command. `vfork` has returned, so the process
/// has ended or its program runs, and nothing more comes.
fn exec_error(exec_errors: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut report = [0; MAX_EXEC_ERROR_BYTES];
    match recv(exec_errors, &mut report, RecvFlags::DONTWAIT) {
        // The program is being loaded, which closes the other end, or has been.
        Err(Errno::AGAIN) | Ok((0, _)) => Ok(None),
        Ok((length, _)) => Ok(Some(report[..length].to_vec())),
        Err(errno) => Err(errno.into()),
    }
}

fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
}
