//! The parent of one command and of everything the command leaves behind.
//!
//! An init does not end before its tree has: it is the process to which orphans are handed
//! (`PR_SET_CHILD_SUBREAPER`), so having no children means that nothing is left, whatever called
//! `setsid` or forked twice.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use carrel_sandbox::{Fork, SignalQueue, fork, usage_of_children};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitStatus, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
};

use super::{children, command, ready, tree};
use crate::outcome::{Cost, End};
use crate::protocol::{Descriptors, MAX_CONTROL_BYTES, Order, Report, Start, Step, to_json};
use crate::socket;

/// What the kernel sends an init when the spawner dies.
pub(super) const END: Signal = Signal::USR1;

/// How long a tree may take to end by itself after its main process, before it counts as left
/// running. Something like `tee` behind a process substitution finishes its work in this time.
const SETTLE: Duration = Duration::from_millis(50);

/// Starts the command and supervises it until nothing of it is left.
pub(super) fn run(
    start: &Start,
    descriptors: Descriptors<OwnedFd>,
    signals: SignalQueue,
    spawner: Pid,
) -> ExitCode {
    match prepare(spawner).and_then(|pipe| Ok((fork()?, pipe))) {
        Err(error) => {
            refuse(&descriptors.control, &error);
            ExitCode::SUCCESS
        }
        Ok((Fork::Child, (_, failure))) => command::execute(start, &descriptors, failure),
        Ok((Fork::Parent(main), (executed, failure))) => {
            // The command's ends of its pipes must not stay open here.
            drop(failure);
            let (control, _held) = descriptors.into_supervised();
            let main = Main { pid: main, end: None };
            Init { control, signals, main, grace: start.grace }.supervise(executed)
        }
    }
}

/// Tells the server that there will be no command.
pub(super) fn refuse(control: &OwnedFd, error: &io::Error) {
    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    report(control, &Report::Failed { step: Step::Fork, errno });
}

/// Makes this process the one that orphans go to, and one that ends with the spawner. Returns the
/// pipe on which the command says why it could not be executed.
fn prepare(spawner: Pid) -> io::Result<(OwnedFd, OwnedFd)> {
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(END))?;
    // The spawner may have died before it could be asked for a signal.
    if getppid() != Some(spawner) {
        return Err(Errno::SRCH.into());
    }
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

fn report(control: &OwnedFd, report: &Report) {
    // Without a server the next thing to be read is the end of the control socket.
    let _ = socket::send(control, &to_json(report), &[]);
}

/// Something that makes an init act.
enum Event {
    /// A child may have ended.
    Child,
    /// The server wants the command stopped.
    Stop,
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
}

impl Init {
    fn supervise(mut self, executed: OwnedFd) -> ExitCode {
        if self.see_to_the_end(executed).is_err() {
            // Nothing is known about the tree except that it must not survive.
            self.kill();
        }
        ExitCode::SUCCESS
    }

    fn see_to_the_end(&mut self, executed: OwnedFd) -> io::Result<()> {
        let left_running = match self.wait_for_cause(executed)? {
            Cause::MainEnded => self.end_the_rest()?,
            Cause::Stopped => {
                self.stop()?;
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
        report(&self.control, &Report::Ended { end, cost, left_running });
        Ok(())
    }

    fn wait_for_cause(&mut self, executed: OwnedFd) -> io::Result<Cause> {
        if let Some(cause) = self.wait_for_program(executed)? {
            return Ok(cause);
        }
        let (init, pid) = (getpid().as_raw_pid(), self.main.pid.as_raw_pid());
        report(&self.control, &Report::Started { init, pid });
        loop {
            self.reap()?;
            if self.main.end.is_some() {
                return Ok(Cause::MainEnded);
            }
            match self.next(None)? {
                Event::Stop => return Ok(Cause::Stopped),
                Event::Abandoned => return Ok(Cause::Abandoned),
                Event::Child | Event::Timeout => {}
            }
        }
    }

    /// Waits until the program runs. Returns why it never will, if so.
    fn wait_for_program(&self, executed: OwnedFd) -> io::Result<Option<Cause>> {
        loop {
            let watched = [executed.as_fd(), self.control.as_fd(), self.signals.as_fd()];
            let [decided, ordered, _] = ready::wait(watched, None)?;
            if decided {
                return self.read_failure(executed);
            }
            let event = if ordered { self.order()? } else { self.signal()? };
            match event {
                Event::Stop => return Ok(Some(Cause::Stopped)),
                Event::Abandoned => return Ok(Some(Cause::Abandoned)),
                // A child that has ended has also decided.
                Event::Child | Event::Timeout => {}
            }
        }
    }

    /// Passes on what the command wrote before it could be executed; nothing means that it was.
    fn read_failure(&self, executed: OwnedFd) -> io::Result<Option<Cause>> {
        let mut failure = Vec::new();
        File::from(executed).read_to_end(&mut failure)?;
        if failure.is_empty() {
            return Ok(None);
        }
        socket::send(&self.control, &failure, &[])?;
        Ok(Some(Cause::NotExecuted))
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
        tree::terminate()?;
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
                Event::Timeout | Event::Abandoned => return Ok(false),
                Event::Child | Event::Stop => {}
            }
        }
        Ok(true)
    }

    /// Kills the tree until nothing is left of it, whatever the server or the spawner do.
    fn kill(&mut self) {
        let Self { signals, main, .. } = self;
        children::kill_all(signals, |pid, status| main.note(pid, status));
    }

    /// Takes the status of every child that has ended. Returns whether there are no children left.
    fn reap(&mut self) -> io::Result<bool> {
        children::reap(|pid, status| self.main.note(pid, status))
    }

    fn next(&self, until: Option<Instant>) -> io::Result<Event> {
        match ready::wait([self.control.as_fd(), self.signals.as_fd()], until)? {
            [true, _] => self.order(),
            [false, true] => self.signal(),
            [false, false] => Ok(Event::Timeout),
        }
    }

    fn order(&self) -> io::Result<Event> {
        let Some(packet) = socket::receive(&self.control, MAX_CONTROL_BYTES)? else {
            return Ok(Event::Abandoned);
        };
        match serde_json::from_slice(&packet.payload)? {
            Order::Stop => Ok(Event::Stop),
        }
    }

    fn signal(&self) -> io::Result<Event> {
        let ended = self.signals.take()?.contains(&END);
        Ok(if ended { Event::Abandoned } else { Event::Child })
    }
}
