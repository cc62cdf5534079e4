//! A command that runs.

use std::future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::control::Control;
use crate::link::Link;
use crate::live_output::{LiveOutput, Patience, Piece};
use crate::outcome::{ExitStatus, Outcome, ResourceUsage, Stop};
use crate::protocol::{Order, Report};
use crate::reader::LogReader;
use crate::streams::Streams;
use crate::terminal::Terminal;

/// How much longer than its grace a command may take to end before its init is given up and
/// killed, then how long the spawner may take to do that, and how long after its deadline a command
/// that has not even begun is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A command that runs. Its output is read while [`Running::wait`] is awaited; dropping it, or the
/// future, kills the command with everything it started.
#[derive(Debug)]
pub struct Running {
    pub(crate) link: Arc<Link>,
    pub(crate) control: Arc<Control>,
    pub(crate) streams: Streams,
    pub(crate) number: u64,
    pub(crate) pid: i32,
    pub(crate) begun: Instant,
    pub(crate) deadline: Option<Duration>,
    pub(crate) grace: Duration,
}

/// What can be known about a command while somebody else waits for it.
#[derive(Debug)]
pub struct Started {
    /// The process id of its main process.
    pub pid: i32,
    /// When it was asked for.
    pub begun: Instant,
    /// A reader of its log, if it has one.
    pub log: Option<LogReader>,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
}

/// How far the end of a command has been pursued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It may run.
    Running,
    /// Its init was told to stop it.
    Stopping(Stop),
    /// The spawner was told to end its init.
    Forcing(Stop),
}

impl Stage {
    fn stop(self) -> Option<Stop> {
        match self {
            Self::Running => None,
            Self::Stopping(stop) | Self::Forcing(stop) => Some(stop),
        }
    }
}

impl Running {
    /// Returns the process id of the command's main process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns what can be known about the command while somebody else waits for it.
    pub fn started(&self) -> Started {
        let (log, terminal) = (self.log_reader(), self.terminal());
        Started { pid: self.pid, begun: self.begun, log, terminal }
    }

    /// Returns the command's terminal, if it has one, for input and for changing its size while
    /// [`Running::wait`] is awaited elsewhere.
    pub fn terminal(&self) -> Option<Terminal> {
        self.streams.terminal()
    }

    /// Returns a reader of the command's log, if it has one.
    pub fn log_reader(&self) -> Option<LogReader> {
        self.streams.log_reader()
    }

    /// Returns the output as it arrives, while [`Running::wait`] is awaited elsewhere. A reader
    /// that was asked for before gets no more.
    ///
    /// A slow reader slows the command down; it delays neither the deadline nor a cancellation, and
    /// once the command is over it is waited for no longer than a second.
    pub fn live(&mut self) -> LiveOutput {
        self.streams.live(Patience::Second)
    }

    /// Does as [`Running::live`] does, but waits for the reader as long as it takes, so that it misses
    /// nothing.
    pub fn live_patiently(&mut self) -> LiveOutput {
        self.streams.live(Patience::Unlimited)
    }

    /// Returns what kills the command at once, without asking it first.
    pub fn killer(&self) -> KillHandle {
        KillHandle(Arc::clone(&self.control))
    }

    /// Waits as [`Running::wait`] does and shows each piece of output to `sink`, in the order of
    /// arrival and before returning.
    ///
    /// The sink runs on the thread that waits: one that blocks delays the deadline as well. Whoever
    /// has to wait for something reads [`Running::live`] instead.
    pub async fn wait_with(
        mut self,
        cancel: &CancellationToken,
        mut sink: impl FnMut(Piece),
    ) -> Outcome {
        let mut live = self.live();
        let showing = async {
            while let Some(piece) = live.next().await {
                sink(piece);
            }
        };
        let (outcome, ()) = tokio::join!(self.wait(cancel), showing);
        outcome
    }

    /// Waits until nothing of the command is left. It is stopped at its deadline, counted from the
    /// request, and when `cancel` says so.
    pub async fn wait(mut self, cancel: &CancellationToken) -> Outcome {
        let mut stage = Stage::Running;
        // A deadline beyond what the clock can express is none.
        let mut until = self.deadline.and_then(|deadline| self.begun.checked_add(deadline));
        let report = loop {
            tokio::select! {
                biased;
                report = self.control.report() => break report,
                () = cancel.cancelled(), if stage == Stage::Running => {
                    (stage, until) = self.stop(Stop::Cancelled);
                }
                () = elapsed(until) => match stage {
                    Stage::Running => (stage, until) = self.stop(Stop::Deadline),
                    Stage::Stopping(stop) => (stage, until) = self.force(stop),
                    Stage::Forcing(_) => break None,
                },
                arrived = self.streams.next() => self.streams.keep(arrived),
            }
        };
        self.finish(report, stage.stop()).await
    }

    fn stop(&self, stop: Stop) -> (Stage, Option<Instant>) {
        self.control.order(&Order::Stop);
        (Stage::Stopping(stop), Instant::now().checked_add(self.grace.saturating_add(PATIENCE)))
    }

    fn force(&self, stop: Stop) -> (Stage, Option<Instant>) {
        self.link.end(self.number);
        (Stage::Forcing(stop), Instant::now().checked_add(PATIENCE))
    }

    async fn finish(mut self, report: Option<Report>, stop: Option<Stop>) -> Outcome {
        if self.streams.is_patient() {
            self.streams.drain().await;
        } else {
            // A disk that does not take the rest of the log must not keep anybody waiting for ever.
            let _ = timeout(PATIENCE, self.streams.drain()).await;
        }
        let (end, cost, left_running, refused, excess) = match report {
            Some(Report::Ended { end, cost, left_running, refused, excess }) => {
                (end, cost, left_running, refused, excess)
            }
            _ => (ExitStatus::Lost, ResourceUsage::default(), 0, Vec::new(), None),
        };
        let wall = self.begun.elapsed();
        let (stdout, stderr, log) = self.streams.finish();
        Outcome { end, stop, stdout, stderr, log, wall, cost, left_running, refused, excess }
    }
}

/// Kills a command at once. It keeps nothing alive but a socket.
#[derive(Clone, Debug)]
pub struct KillHandle(Arc<Control>);

impl KillHandle {
    /// Kills the command with everything it started; the outcome says how it ended.
    pub fn kill(&self) {
        self.0.order(&Order::Kill);
    }
}

async fn elapsed(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => future::pending().await,
    }
}
