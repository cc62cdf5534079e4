//! The loop: hearing, deciding, remembering, beginning.

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
use super::{effects, journal, notice_log, redaction};
use crate::claimed_issue::{RunId, Stage};
use crate::decide;
use crate::effect::Effect;
use crate::event::{Event, RunEnd};
use crate::rules::Rules;
use crate::state::State;

/// Messages that are decided upon with one write to the disk.
const MAX_BATCH: usize = 64;

/// The longest sleep: the clock on the wall may be set while this one runs on.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// The shortest sleep, so that a time that does not pass costs little.
const MIN_SLEEP: Duration = Duration::from_millis(2);

/// How long a journal that cannot be written is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How long one that is to end by itself waits for a journal that cannot be written.
const ONCE_PATIENCE: Duration = Duration::from_secs(30);

/// How long others may see what was, while much happens. To copy the state takes its time.
const PUBLISHED_AGAIN: Duration = Duration::from_millis(50);

/// Something for the loop.
#[derive(Debug)]
pub(super) enum Message {
    /// Something happened.
    Event(Event),
    /// A run is over.
    Over(RunId, RunEnd, Teardown),
    /// A run broke off by a defect of ours. Something of it may be left.
    Broke(RunId),
}

impl Conductor {
    /// Works until it is told to stop, or once. Nothing of its agents is left when this returns.
    pub async fn run(mut self) -> Report {
        let (found, mut settings) = mpsc::channel(1);
        if let Some(workflow_watcher) = self.workflow_watcher.take() {
            self.questions.spawn(workflow_watcher.run(found, self.stop.clone()));
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
                () = stop.cancelled(), if !self.ending => self.told_to_end(),
                by = &mut lost, if !self.ending => self.superseded(by),
                // People wait for the answer.
                Some((order, reply)) = self.handle_backend.orders.recv(), if !self.ending => {
                    self.told((order, reply)).await;
                }
                Some(news) = settings.recv(), if !self.ending => self.found(news).await,
                Some(_) = self.questions.join_next(), if !self.questions.is_empty() => {}
                Some(_) = self.works.join_next(), if !self.works.is_empty() => {}
                Some(message) = self.queue.recv() => self.hear(message).await,
                () = sleep, if !self.ending => {
                    self.step(vec![Event::Due]).await;
                }
            }
        }
        self.questions.shutdown().await;
        while self.works.join_next().await.is_some() {}
        self.ending = true;
        self.queue.close();
        while let Some(message) = self.queue.recv().await {
            self.hear(message).await;
        }
        self.handle_backend.publish(self.state());
        info!(scope = self.tenure.scope(), "Conductor has ended");
        self.report
    }

    pub(super) fn state(&self) -> &State {
        self.state.as_ref().expect("only taken while something is decided")
    }

    fn is_over(&self) -> bool {
        let over = self.active.is_empty() && (self.ending || self.state().is_over());
        // What is being removed has its say.
        over && self.works.is_empty()
    }

    /// Returns how long nothing has to be done unless something happens.
    fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let due = self.state().next_due().map(|due| now.age(due));
        due.unwrap_or(MAX_SLEEP).clamp(MIN_SLEEP, MAX_SLEEP)
    }

    /// Hears a message and whatever else waits.
    async fn hear(&mut self, first: Message) {
        let mut events = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Event(event) => events.push(event),
                Message::Over(run, end, remains) => {
                    events.extend(self.over(run, end, remains).await);
                }
                Message::Broke(run) => events.extend(self.broke(run)),
            }
            next = (events.len() < MAX_BATCH).then(|| self.queue.try_recv().ok()).flatten();
        }
        self.step(events).await;
    }

    /// Takes note that a run is over. One that was stopped because everything ends goes on when the
    /// next conductor starts, so that what is remembered of it stays as it is. If something is left of
    /// it, the next one on its issue waits until nothing is.
    async fn over(&mut self, run: RunId, end: RunEnd, remains: Teardown) -> Option<Event> {
        let active = self.active.remove(&run);
        let stopped = active.as_ref().is_some_and(|active| active.stop.is_cancelled());
        if let (Some(active), Teardown::Incomplete) = (active, remains) {
            self.unsettled.insert(active.issue);
        }
        let entry = self
            .state()
            .issues
            .values()
            .find(|entry| matches!(&entry.stage, Stage::Running(there) if there.id == run));
        if self.ending && stopped && entry.is_some() && end != RunEnd::Completed {
            let outcome = "interrupted".to_owned();
            self.remember(vec![JournalRecord::RunEnded { run: run.0, outcome, error: None }]).await;
            return None;
        }
        Some(Event::RunEnded(run, end))
    }

    /// Takes note that a run broke off. The next one on its issue waits until nothing is left of it.
    fn broke(&mut self, run: RunId) -> Option<Event> {
        let active = self.active.remove(&run)?;
        self.unsettled.insert(active.issue);
        let error = "the run broke off: a defect in Carrel".to_owned();
        Some(Event::RunEnded(run, RunEnd::Failed(error)))
    }

    /// Decides upon events, writes down what is to be remembered, and begins what is to be done.
    async fn step(&mut self, events: Vec<Event>) {
        let now = self.clock.now();
        let mut state = self.state.take().expect("only taken while something is decided");
        let (mut notes, mut effects) = (Vec::new(), Vec::new());
        for event in events {
            let event = redaction::event(event, &self.setup.secrets);
            notes.extend(journal::of_event(&event));
            self.look_at(&event);
            let more;
            (state, more) = decide(state, event, now);
            effects.extend(more);
        }
        let (entries, doing) = journal::sort(&state, effects, &self.transcripts);
        notes.extend(entries);
        self.state = Some(state);
        self.remember(notes).await;
        self.publish();
        if self.report.superseded.is_none() {
            self.begin(doing);
        }
    }

    /// Shows how things stand, but not for each of many messages that wait.
    fn publish(&mut self) {
        let seldom = self.published.is_none_or(|last| last.elapsed() >= PUBLISHED_AGAIN);
        if seldom || self.queue.is_empty() {
            self.handle_backend.publish(self.state());
            self.published = Some(Instant::now());
        }
    }

    fn look_at(&mut self, event: &Event) {
        if let Event::WorkspaceReady(run, _) = event
            && let Some(active) = self.active.get(run)
        {
            self.unsettled.remove(&active.issue);
        }
    }

    /// Begins what is to be done. When everything ends, nothing is begun any more: what is remembered
    /// says what the next conductor has to do.
    fn begin(&mut self, doing: Vec<Effect>) {
        for effect in doing {
            match effect {
                Effect::Notify(notice) => {
                    notice_log::write(&notice, &self.transcripts);
                    self.report.hear(&notice);
                    self.handle_backend.say(self.clock.now(), notice);
                }
                _ if self.ending => {}
                effect => self.act(effect),
            }
        }
    }

    /// Writes down what is to be remembered. Nothing is begun before that has worked, or if somebody else
    /// has taken the issues over.
    async fn remember(&mut self, notes: Vec<JournalRecord>) {
        if notes.is_empty() {
            return;
        }
        let (mut said, began) = (false, Instant::now());
        loop {
            let written = self.journal.append(&self.tenure, notes.clone(), self.clock.now()).await;
            let problem = match written {
                Ok(()) if said => {
                    info!("The journal can be written again");
                    return;
                }
                Ok(()) => return,
                Err(StoreError::Superseded { by, .. }) => return self.superseded(by),
                Err(problem) => message_of(&problem),
            };
            if !said {
                error!(
                    error = problem,
                    "The journal cannot be written; nothing is begun until it can"
                );
                said = true;
            }
            if self.ending {
                warn!(error = problem, "Some of what happened last is not remembered");
                return;
            }
            if self.state().single_pass.is_some() && began.elapsed() >= ONCE_PATIENCE {
                self.report.failed.push(("the journal".to_owned(), problem));
                self.end();
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(TRY_AGAIN) => {}
                () = self.stop.cancelled() => self.told_to_end(),
            }
        }
    }

    async fn told(&mut self, (order, reply): Request) {
        let refused = self.state().reject(&order);
        self.published = None;
        self.step(vec![Event::Command(order)]).await;
        // Whoever asked may have gone.
        let _ = reply.send(refused.map_or(Ok(()), |refused| Err(refused.into())));
    }

    async fn found(&mut self, found: WorkflowUpdate) {
        match found {
            WorkflowUpdate::Changed(setup) => {
                self.handle_backend.workflow.store(Arc::clone(&setup.workflow));
                let rules = Box::new(Rules::of(setup.config()));
                self.setup = setup;
                self.step(vec![Event::WorkflowChanged(rules)]).await;
            }
            WorkflowUpdate::Broken(error) => self.step(vec![Event::WorkflowInvalid(error)]).await,
        }
    }

    /// Takes note that somebody else works off the issues: nothing is written or begun any more.
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
        self.end();
    }

    /// Ends because somebody wants that, done or not.
    fn told_to_end(&mut self) {
        if !self.state().is_over() {
            let why = "it was told to end before everything was done".to_owned();
            self.report.failed.push(("carrel run".to_owned(), why));
        }
        self.end();
    }

    /// Tells every agent to end, and begins nothing any more.
    fn end(&mut self) {
        info!(agents = self.active.len(), "Conductor is told to end");
        self.ending = true;
        for active in self.active.values() {
            active.stop.cancel();
        }
    }
}
