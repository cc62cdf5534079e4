//! The loop of a conductor: receive, decide, journal, perform.
//!
//! Messages that are waiting are decided upon together, up to [`MAX_BATCH`], and share one journal write.
//! While the journal cannot be written the loop retries it and performs nothing, since an effect without
//! its record would be lost in a crash. The loop ends when a stop is requested, when another conductor has
//! acquired the tenure, or when a single pass is done; runs are stopped and waited for first. A run that
//! was stopped by the shutdown keeps its journaled stage, so that the next conductor continues it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_agent::Teardown;
use carrel_domain::message_of;
use carrel_store::{JournalRecord, StoreError};
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use super::conductor::Conductor;
use super::handle::Request;
use super::report::Report;
use super::workflow_watcher::WorkflowUpdate;
use super::{effects, journal, redaction};
use crate::claimed_issue::{RunId, Stage};
use crate::decide;
use crate::event::{Event, RunEnd};
use crate::rules::Rules;

/// Messages that share one journal write.
const MAX_BATCH: usize = 64;

/// The longest sleep. Due times are wall-clock times, and that clock may be set while the loop sleeps on
/// the monotonic one.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// The shortest sleep, which bounds the cost of a clock that stands still.
const MIN_SLEEP: Duration = Duration::from_millis(2);

/// The time between two attempts to write the journal.
const JOURNAL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The time after which a single pass gives up on the journal.
const ONCE_JOURNAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The time between two published states while messages are waiting: each is a copy of the whole state.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) enum Message {
    Event(Event),
    RunOver(RunId, RunEnd, Teardown),
    /// The task of a run panicked. Processes of it may be left.
    RunPanicked(RunId),
}

impl Conductor {
    /// Runs until a stop is requested or the single pass is done. All agents have ended when this returns.
    pub async fn run(mut self) -> Report {
        let (updates, mut workflow_updates) = mpsc::channel(1);
        if let Some(workflow_watcher) = self.workflow_watcher.take() {
            self.queries.spawn(workflow_watcher.run(updates, self.stop.clone()));
        }
        let tenure = self.tenure.clone();
        let lost = tenure.lost();
        tokio::pin!(lost);
        effects::sweep(self.setup.workspaces.clone());
        self.step(vec![Event::Due]).await;
        while !self.is_over() {
            let sleep = tokio::time::sleep(self.sleep());
            let stop = self.stop.clone();
            tokio::select! {
                biased;
                () = stop.cancelled(), if !self.ending => self.stop_requested(),
                by = &mut lost, if !self.ending => self.superseded(by),
                // Before the queue: an operator waits for the result.
                Some(request) = self.commands.recv(), if !self.ending => {
                    self.handle_command(request).await;
                }
                Some(update) = workflow_updates.recv(), if !self.ending => self.handle_workflow_update(update).await,
                Some(_) = self.queries.join_next(), if !self.queries.is_empty() => {}
                Some(_) = self.jobs.join_next(), if !self.jobs.is_empty() => {}
                Some(message) = self.queue.recv() => self.receive(message).await,
                () = sleep, if !self.ending => {
                    self.step(vec![Event::Due]).await;
                }
            }
        }
        self.queries.shutdown().await;
        while self.jobs.join_next().await.is_some() {}
        self.ending = true;
        self.queue.close();
        while let Some(message) = self.queue.recv().await {
            self.receive(message).await;
        }
        self.published_state.send_replace(Arc::new(self.state.clone()));
        info!(scope = self.tenure.scope(), "Conductor has ended");
        self.report
    }

    fn is_over(&self) -> bool {
        let over = self.active.is_empty() && (self.ending || self.state.is_over());
        // Removals in progress report their result first.
        over && self.jobs.is_empty()
    }

    /// Returns the time until the next decision that no event causes.
    fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let due = self.state.next_due().map(|due| now.age(due));
        due.unwrap_or(MAX_SLEEP).clamp(MIN_SLEEP, MAX_SLEEP)
    }

    /// Decides upon a message and the others that are waiting.
    async fn receive(&mut self, first: Message) {
        let mut events = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Event(event) => events.push(event),
                Message::RunOver(run, end, teardown) => {
                    events.extend(self.run_over(run, end, teardown).await);
                }
                Message::RunPanicked(run) => events.extend(self.run_panicked(run)),
            }
            next = (events.len() < MAX_BATCH).then(|| self.queue.try_recv().ok()).flatten();
        }
        self.step(events).await;
    }

    /// Handles the end of a run. A run that was stopped by the shutdown is journaled as interrupted and
    /// keeps its stage, so that the next conductor continues it. After an incomplete teardown the next run of
    /// the issue waits for the workspace lock.
    async fn run_over(&mut self, run: RunId, end: RunEnd, teardown: Teardown) -> Option<Event> {
        let active = self.active.remove(&run);
        let stopped = active.as_ref().is_some_and(|active| active.stop.is_cancelled());
        if let (Some(active), Teardown::Incomplete) = (active, teardown) {
            self.unsettled.insert(active.issue);
        }
        let is_running = |stage: &Stage| matches!(stage, Stage::Running(there) if there.id == run);
        let running = self.state.issues.values().any(|claimed| is_running(&claimed.stage));
        if self.ending && stopped && running && end != RunEnd::Completed {
            self.write_journal(vec![journal::interrupted(run.0)]).await;
            return None;
        }
        Some(Event::RunEnded(run, end))
    }

    /// Handles a panic of a run's task. The next run of the issue waits for the workspace lock.
    fn run_panicked(&mut self, run: RunId) -> Option<Event> {
        let active = self.active.remove(&run)?;
        self.unsettled.insert(active.issue);
        let error = "the run panicked, which is a defect in Carrel".to_owned();
        Some(Event::RunEnded(run, RunEnd::Failed(error)))
    }

    /// Decides upon events, writes the journal, publishes the state and performs the effects, in this
    /// order.
    async fn step(&mut self, events: Vec<Event>) {
        let now = self.clock.now();
        // Until it is put back, nothing here may read `self.state`.
        let mut state = std::mem::take(&mut self.state);
        let (mut records, mut effects) = (Vec::new(), Vec::new());
        for event in events {
            let event = redaction::event(event, &self.setup.secrets);
            records.extend(journal::run_record(&event));
            self.settle_issue(&event);
            let more;
            (state, more) = decide(state, event, now);
            effects.extend(more);
        }
        let (more_records, actions) = journal::split_effects(&state, effects, &self.transcripts);
        records.extend(more_records);
        self.state = state;
        self.write_journal(records).await;
        self.publish();
        if self.report.superseded.is_none() {
            for effect in actions {
                self.perform(effect);
            }
        }
    }

    /// Publishes the state, at most every [`PUBLISH_INTERVAL`] while messages are waiting.
    fn publish(&mut self) {
        let due = self.published.is_none_or(|last| last.elapsed() >= PUBLISH_INTERVAL);
        if due || self.queue.is_empty() {
            self.published_state.send_replace(Arc::new(self.state.clone()));
            self.published = Some(Instant::now());
        }
    }

    fn settle_issue(&mut self, event: &Event) {
        if let Event::WorkspaceReady(run, _) = event
            && let Some(active) = self.active.get(run)
        {
            self.unsettled.remove(&active.issue);
        }
    }

    /// Writes records to the journal, and returns when they are durable, when another conductor has taken
    /// over, or when the shutdown gives up on them.
    async fn write_journal(&mut self, records: Vec<JournalRecord>) {
        if records.is_empty() {
            return;
        }
        let (mut reported, began) = (false, Instant::now());
        loop {
            let now = self.clock.now();
            let problem = match self.journal.append(&self.tenure, records.clone(), now).await {
                Ok(()) => {
                    if reported {
                        info!("The journal can be written again");
                    }
                    return;
                }
                Err(StoreError::Superseded { by, .. }) => return self.superseded(by),
                Err(problem) => message_of(&problem),
            };
            if !reported {
                error!(
                    error = problem,
                    "The journal cannot be written; nothing is dispatched until it can"
                );
                reported = true;
            }
            if self.ending {
                warn!(error = problem, "The last changes are not in the journal");
                return;
            }
            if self.state.single_pass.is_some() && began.elapsed() >= ONCE_JOURNAL_TIMEOUT {
                self.report.failed.push(("the journal".to_owned(), problem));
                self.shut_down();
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(JOURNAL_RETRY_INTERVAL) => {}
                () = self.stop.cancelled() => self.stop_requested(),
            }
        }
    }

    async fn handle_command(&mut self, (command, reply): Request) {
        let refused = self.state.reject(&command);
        self.published = None;
        self.step(vec![Event::Command(command)]).await;
        // The sender may have stopped waiting.
        let _ = reply.send(refused.map_or(Ok(()), |refused| Err(refused.into())));
    }

    async fn handle_workflow_update(&mut self, update: WorkflowUpdate) {
        match update {
            WorkflowUpdate::Changed(setup) => {
                self.handle.workflow.store(Arc::clone(&setup.workflow));
                let rules = Box::new(Rules::of(setup.config()));
                self.setup = setup;
                self.step(vec![Event::WorkflowChanged(rules)]).await;
            }
            WorkflowUpdate::Invalid(error) => self.step(vec![Event::WorkflowInvalid(error)]).await,
        }
    }

    /// Shuts down because another conductor has acquired the tenure: nothing is written or performed any
    /// more.
    fn superseded(&mut self, by: String) {
        if self.report.superseded.is_some() {
            return;
        }
        let scope = self.tenure.scope();
        error!(
            scope,
            by, "Another conductor has taken over; this one ends, and its agents with it"
        );
        self.report.superseded = Some(by);
        self.shut_down();
    }

    /// Shuts down on request. An unfinished single pass is reported as failed.
    fn stop_requested(&mut self) {
        if !self.state.is_over() {
            let why = "it was stopped before all runs had ended".to_owned();
            self.report.failed.push(("carrel run".to_owned(), why));
        }
        self.shut_down();
    }

    fn shut_down(&mut self) {
        info!(agents = self.active.len(), "Conductor shuts down");
        self.ending = true;
        for active in self.active.values() {
            active.stop.cancel();
        }
    }
}
