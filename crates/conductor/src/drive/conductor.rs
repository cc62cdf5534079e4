//! The one owner of the state.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use carrel_config::Reloader;
use carrel_domain::{Clock, Timestamp, message_of};
use carrel_store::{Journal, Note};
use carrel_tracker::IssueId;
use carrel_workspace::Runner;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::act::Active;
use super::error::StartError;
use super::handle::{self, Desk, Handle, Request};
use super::home::Home;
use super::once::Report;
use super::reload::{Follower, Found};
use super::setup::{Setup, conductor, scope_of};
use super::transcript::Scribe;
use super::{Lasting, Options, log, mask, memory, takeover};
use crate::decide;
use crate::entry::{Retry, RunId, Stage, Why};
use crate::event::{Effect, End, Event};
use crate::rules::Rules;
use crate::state::State;

/// Messages that may wait for the loop. Whoever has more to tell waits.
const WAITING_MESSAGES: usize = 1024;

/// Messages that are decided upon with one write to the disk.
const MAX_BATCH: usize = 64;

/// The longest sleep: the clock on the wall may be set while this one runs on.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// The shortest sleep, so that a time that does not pass costs little.
const MIN_SLEEP: Duration = Duration::from_millis(2);

/// How long a journal that cannot be written is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How long runs are remembered.
const KEEP_RUNS: Duration = Duration::from_hours(30 * 24);

/// Something for the loop.
#[derive(Debug)]
pub(super) enum Message {
    /// Something happened.
    Event(Event),
    /// A run is over. If it was in the middle of something, it was stopped.
    Over(RunId, End),
}

/// Gives issues to agents. The one owner of its state.
#[derive(Debug)]
pub struct Conductor {
    pub(super) state: Option<State>,
    pub(super) setup: Arc<Setup>,
    pub(super) runner: Arc<Runner>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) scribe: Scribe,
    /// Runs that are not over.
    pub(super) active: HashMap<RunId, Active>,
    /// Issues in whose workspaces something of an earlier conductor may be left.
    pub(super) unsettled: BTreeSet<IssueId>,
    /// Questions to the tracker. They are given up in the end.
    pub(super) questions: JoinSet<()>,
    /// Runs and removals. They are waited for.
    pub(super) works: JoinSet<()>,
    queue: mpsc::Receiver<Message>,
    journal: Arc<dyn Journal>,
    scope: String,
    follower: Option<Follower>,
    handle: Handle,
    pub(super) desk: Desk,
    report: Report,
    /// Everything is coming to its end.
    ending: bool,
    stop: CancellationToken,
    _home: Home,
}

impl Conductor {
    /// Takes the issues of a tracker for itself, reads what is remembered about them and waits for what
    /// an earlier conductor left running.
    pub async fn open(options: Options) -> Result<Self, StartError> {
        let Options { workflow, environment, journal, clock, runner, commands, .. } = options;
        let scope = scope_of(&conductor(&workflow)?.tracker);
        let home = Home::take(&options.data, &scope)?;
        let reloader = Reloader::new(workflow);
        let makers = options.makers;
        let (current, data) = (reloader.current(), options.data);
        let setup = Setup::of(current, &environment(), &makers, &commands, &data).map(Arc::new)?;
        let unsettled = takeover::settle_all(&*journal, &scope, &setup, &*clock).await?;
        let now = clock.now();
        let long_ago = now.as_millis() - i64::try_from(KEEP_RUNS.as_millis()).unwrap_or(i64::MAX);
        journal.forget_runs(&scope, Timestamp::from_millis(long_ago)).await?;
        let remembered = memory::recall(&*journal, &scope).await?;
        info!(scope, issues = remembered.entries.len(), "Conductor starts");
        let rules = Rules::of(setup.config());
        let mut state = State::begin(rules, remembered.entries, remembered.ledger)
            .after_run(remembered.last_run);
        if options.lasting == Lasting::Once {
            let stages = state.entries.values_mut().map(|entry| &mut entry.stage);
            stages.for_each(|stage| take_up_now(stage, now));
            state = state.once();
        }
        let workflow = Arc::clone(&setup.workflow);
        let (handle, desk) = handle::pair(&state, workflow, Arc::clone(&journal), &scope);
        let (inbox, queue) = mpsc::channel(WAITING_MESSAGES);
        let scribe = Scribe::start(&home).map_err(StartError::Thread)?;
        let follower = Follower {
            reloader,
            environment,
            makers,
            commands,
            data,
            scope: scope.clone(),
            refused: None,
        };
        Ok(Self {
            state: Some(state),
            setup,
            runner,
            clock,
            inbox,
            scribe,
            active: HashMap::new(),
            unsettled,
            questions: JoinSet::new(),
            works: JoinSet::new(),
            queue,
            journal,
            scope,
            follower: Some(follower),
            handle,
            desk,
            report: Report::default(),
            ending: false,
            stop: options.stop,
            _home: home,
        })
    }

    /// Returns a way to it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Works until it is told to stop, or once. Nothing of its agents is left when this returns.
    pub async fn run(mut self) -> Report {
        let (found, mut settings) = mpsc::channel(1);
        if let Some(follower) = self.follower.take() {
            self.questions.spawn(follower.run(found, self.stop.clone()));
        }
        self.step(vec![Event::Due]).await;
        while !self.is_over() {
            let sleep = tokio::time::sleep(self.sleep());
            let stop = self.stop.clone();
            tokio::select! {
                biased;
                () = stop.cancelled(), if !self.ending => self.end(),
                // People wait for the answer.
                Some((order, reply)) = self.desk.orders.recv(), if !self.ending => {
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
        info!(scope = self.scope, "Conductor has ended");
        self.report
    }

    pub(super) fn state(&self) -> &State {
        self.state.as_ref().expect("only taken while something is decided")
    }

    fn is_over(&self) -> bool {
        self.active.is_empty() && (self.ending || self.state().is_over())
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
                Message::Over(run, end) => events.extend(self.over(run, end).await),
            }
            next = (events.len() < MAX_BATCH).then(|| self.queue.try_recv().ok()).flatten();
        }
        self.step(events).await;
    }

    /// Takes note that a run is over. One that was stopped because everything ends goes on when the
    /// next conductor starts, so that what is remembered of it stays as it is.
    async fn over(&mut self, run: RunId, end: End) -> Option<Event> {
        let active = self.active.remove(&run);
        let stopped = active.is_some_and(|active| active.stop.is_cancelled());
        let entry = self
            .state()
            .entries
            .values()
            .find(|entry| matches!(&entry.stage, Stage::Running(there) if there.id == run));
        if self.ending && stopped && entry.is_some() && end != End::Well {
            let outcome = "interrupted".to_owned();
            self.remember(vec![Note::Ended { run: run.0, outcome, error: None }]).await;
            return None;
        }
        Some(Event::Ended(run, end))
    }

    /// Decides upon events, writes down what is to be remembered, and begins what is to be done.
    async fn step(&mut self, events: Vec<Event>) {
        let now = self.clock.now();
        let mut state = self.state.take().expect("only taken while something is decided");
        let (mut notes, mut effects) = (Vec::new(), Vec::new());
        for event in events {
            let event = mask::event(event, &self.setup.secrets);
            notes.extend(memory::of_event(&event));
            self.look_at(&event);
            let more;
            (state, more) = decide(state, event, now);
            effects.extend(more);
        }
        let (entries, doing) = memory::sort(&state, effects, &self.scribe);
        notes.extend(entries);
        self.state = Some(state);
        self.remember(notes).await;
        self.desk.publish(self.state());
        self.begin(doing);
    }

    fn look_at(&mut self, event: &Event) {
        if let Event::Placed(run, _) = event
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
                Effect::Say(notice) => {
                    log::write(&notice);
                    self.report.hear(&notice);
                    self.desk.say(self.clock.now(), notice);
                }
                _ if self.ending => {}
                effect => self.act(effect),
            }
        }
    }

    /// Writes down what is to be remembered. Nothing is begun before that has worked.
    async fn remember(&mut self, notes: Vec<Note>) {
        if notes.is_empty() {
            return;
        }
        let mut said = false;
        loop {
            let written = self.journal.note(&self.scope, notes.clone(), self.clock.now()).await;
            let Err(problem) = written else { return };
            let problem = message_of(&problem);
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
            tokio::select! {
                () = tokio::time::sleep(TRY_AGAIN) => {}
                () = self.stop.cancelled() => self.ending = true,
            }
        }
    }

    async fn told(&mut self, (order, reply): Request) {
        let refused = self.state().refusal(&order);
        self.step(vec![Event::Told(order)]).await;
        // Whoever asked may have gone.
        let _ = reply.send(refused.map_or(Ok(()), |refused| Err(refused.into())));
    }

    async fn found(&mut self, found: Found) {
        match found {
            Found::Changed(setup) => {
                self.desk.workflow.store(Arc::clone(&setup.workflow));
                let rules = Box::new(Rules::of(setup.config()));
                self.setup = setup;
                self.step(vec![Event::Changed(rules)]).await;
            }
            Found::Broken(error) => self.step(vec![Event::Broken(error)]).await,
        }
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

/// Makes a further attempt due, because somebody wants to see one, unless it waits for money.
fn take_up_now(stage: &mut Stage, now: Timestamp) {
    if let Stage::Retrying(Retry { due, why, .. }) = stage
        && !matches!(why, Why::DayBudget | Why::RateLimited)
    {
        *due = now.min(*due);
    }
}
