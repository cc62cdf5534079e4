//! A running command, and the escalation by which it ends.
//!
//! At the deadline or a cancellation the init is told to stop the command: `SIGTERM`, the grace period,
//! `SIGKILL`. If the init does not report in time, the spawner is told to kill the init and with it the
//! tree. If that does not help either, the outcome is [`ExitStatus::Lost`]. Output is read throughout, in
//! the same loop, and drained once more at the end.

use std::future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_sandbox::Usage;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::init_connection::InitConnection;
use crate::live_output::LiveOutput;
use crate::log_reader::LogReader;
use crate::outcome::{ExitStatus, Outcome, Stop};
use crate::output_streams::OutputStreams;
use crate::protocol::{Order, Report};
use crate::spawner_connection::SpawnerConnection;
use crate::terminal::Terminal;

/// The time for each step of the escalation beyond the grace period: until the init is killed, until the
/// outcome is given up, and for a command that has not started at its deadline.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A running command. Its output is read while [`RunningCommand::wait`] is awaited. Dropping it, or the
/// future, kills the command with everything it started.
#[derive(Debug)]
pub struct RunningCommand {
    pub(crate) link: Arc<SpawnerConnection>,
    pub(crate) control: Arc<InitConnection>,
    pub(crate) streams: OutputStreams,
    pub(crate) number: u64,
    pub(crate) pid: i32,
    pub(crate) begun: Instant,
    pub(crate) deadline: Option<Duration>,
    pub(crate) grace: Duration,
}

/// The facts and handles of a running command for parties other than the one that waits for it.
#[derive(Debug)]
pub struct Started {
    /// The process id of its main process.
    pub pid: i32,
    /// The time of the request.
    pub begun: Instant,
    /// A reader of its log, if it has one.
    pub log: Option<LogReader>,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
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

impl RunningCommand {
    /// Returns the process id of the command's main process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the facts and handles for other parties.
    pub fn started(&self) -> Started {
        let log = self.log_reader();
        let terminal = self.terminal();
        Started { pid: self.pid, begun: self.begun, log, terminal }
    }

    /// Returns the command's terminal, if it has one, for input and for changing its size while
    /// [`RunningCommand::wait`] is awaited elsewhere.
    pub fn terminal(&self) -> Option<Terminal> {
        self.streams.terminal()
    }

    /// Returns a reader of the command's log, if it has one.
    pub fn log_reader(&self) -> Option<LogReader> {
        self.streams.log_reader()
    }

    /// Returns the output as it arrives, while [`RunningCommand::wait`] is awaited elsewhere. An earlier
    /// reader gets no more.
    ///
    /// A slow reader slows the command down; it delays neither the deadline nor a cancellation. Once the
    /// command is over it is waited for without end, so that it misses nothing; dropping it ends the wait.
    pub fn live(&mut self) -> LiveOutput {
        self.streams.live()
    }

    /// Returns a handle that kills the command at once, without a grace period.
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle(Arc::clone(&self.control))
    }

    /// Waits until the last process has ended. The command is stopped at its deadline, counted from the
    /// request, and when `cancel` is cancelled.
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
                arrived = self.streams.next() => self.streams.consume(arrived),
            }
        };
        self.finish(report, stage.stop()).await
    }

    fn stop(&self, stop: Stop) -> (Stage, Option<Instant>) {
        self.control.order(&Order::Stop);
        (Stage::Stopping(stop), Instant::now().checked_add(self.grace.saturating_add(STOP_TIMEOUT)))
    }

    fn force(&self, stop: Stop) -> (Stage, Option<Instant>) {
        self.link.kill(self.number);
        (Stage::Forcing(stop), Instant::now().checked_add(STOP_TIMEOUT))
    }

    async fn finish(mut self, report: Option<Report>, stop: Option<Stop>) -> Outcome {
        if self.streams.has_reader() {
            self.streams.drain().await;
        } else {
            // A dead disk under the log must not delay the outcome for ever.
            let _ = timeout(STOP_TIMEOUT, self.streams.drain()).await;
        }
        let (end, cost, left_running, refused, excess) = match report {
            Some(Report::Ended { end, cost, left_running, refused, excess }) => {
                (end, cost, left_running, refused, excess)
            }
            _ => (ExitStatus::Lost, Usage::default(), 0, Vec::new(), None),
        };
        let wall = self.begun.elapsed();
        let (stdout, stderr, log) = self.streams.finish();
        Outcome { end, stop, stdout, stderr, log, wall, cost, left_running, refused, excess }
    }
}

/// Kills a command. Keeps nothing alive but a socket.
#[derive(Clone, Debug)]
pub struct KillHandle(Arc<InitConnection>);

impl KillHandle {
    /// Kills the command with everything it started. Does not wait.
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
