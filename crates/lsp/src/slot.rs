//! The place of one server: its start, its queries in turn, its end and its next start.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use carrel_domain::{Age, sync};
use carrel_search::Cancel;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use crate::documents::ProjectFiles;
use crate::fault::{Fault, QueryError, blocking};
use crate::language_servers::{QueryContext, Shared};
use crate::observed::Observed;
use crate::process::{Launch, ServerProcess};
use crate::query::Query;
use crate::reply::{NotReady, Reply};
use crate::restarts::{RestartHistory, StartDecision, WINDOW};
use crate::server::{Connection, LanguageServer, Project};

/// Bounds how often one query takes a new server.
const MAX_SERVERS_OF_QUERY: usize = 4;

/// The time that a server which has lost its connection has for its last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The time for which the reason of an end waits for the next start.
const END_KEPT: Duration = Duration::from_hours(24);

/// The place of one server, which may not run.
#[derive(Debug)]
pub(crate) struct Slot {
    launch: Launch,
    stop: CancellationToken,
    state: Arc<AsyncMutex<SlotState>>,
    progress: Mutex<SlotProgress>,
}

/// The server and the history of its ends. Locked for the time of a query or start.
#[derive(Debug, Default)]
struct SlotState {
    server: Option<LanguageServer>,
    /// Ends the server when it is idle.
    idle: Option<AbortOnDropHandle<()>>,
    history: RestartHistory,
}

/// The part of a slot that is read while a query or start is in progress.
#[derive(Debug)]
struct SlotProgress {
    last_used: Instant,
    /// From the beginning of its start.
    is_running: bool,
    /// The reason for which it was ended while it worked, until it starts again.
    end: Option<EndReason>,
    observed: Option<Arc<Observed>>,
}

/// The reason for which a working server was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    Idle(Duration),
    /// Another one needed its place.
    Room {
        server: &'static str,
    },
}

impl Slot {
    pub(crate) fn new(launch: Launch, stop: CancellationToken) -> Self {
        let last_used = Instant::now();
        let progress = SlotProgress { last_used, is_running: false, end: None, observed: None };
        Self { launch, stop, state: Arc::default(), progress: Mutex::new(progress) }
    }

    pub(crate) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Returns whether the server runs or starts.
    pub(crate) fn is_running(&self) -> bool {
        sync::lock(&self.progress).is_running
    }

    pub(crate) fn count_as_running(&self) {
        sync::lock(&self.progress).is_running = true;
    }

    pub(crate) fn expected_memory(&self) -> u64 {
        self.launch.definition.expected_memory.as_u64()
    }

    pub(crate) fn last_used(&self) -> Instant {
        sync::lock(&self.progress).last_used
    }

    /// Notes that the server is used.
    pub(crate) fn used(&self) {
        sync::lock(&self.progress).last_used = Instant::now();
    }

    /// Ends queries and starts in progress, for good.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the server, and returns when nothing is left of it.
    pub(crate) async fn close(&self) {
        let mut state = self.state.lock().await;
        self.close_server(&mut state).await;
    }

    /// Does the same, unless a query or start is in progress. Returns whether it did.
    pub(crate) async fn close_unless_in_use(&self, reason: EndReason) -> bool {
        let Ok(mut state) = Arc::clone(&self.state).try_lock_owned() else { return false };
        self.close_server(&mut state).await;
        sync::lock(&self.progress).end = Some(reason);
        true
    }

    async fn close_server(&self, state: &mut SlotState) {
        let server = state.server.take();
        if let Some(server) = server {
            server.close().await;
        }
        self.set_running(None);
    }

    /// Answers a query, with a new server where that is necessary.
    pub(crate) async fn answer<Q: Query>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        context: &QueryContext,
        query: &Q,
        until: Instant,
    ) -> Result<Reply<Q::Answer>, QueryError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(QueryError::Closing),
            answered = self.answer_in_turn(shared, context, query, until) => answered,
        }
    }

    async fn answer_in_turn<Q: Query>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        context: &QueryContext,
        query: &Q,
        until: Instant,
    ) -> Result<Reply<Q::Answer>, QueryError> {
        for _ in 0..MAX_SERVERS_OF_QUERY {
            let Ok(mut state) = timeout_at(until, Arc::clone(&self.state).lock_owned()).await
            else {
                return Ok(self.busy());
            };
            let Some(server) = state.server.as_mut() else {
                match self.start(shared, context, state, until).await? {
                    Some(not_ready) => return Ok(Reply::NotReady(not_ready)),
                    None => continue,
                }
            };
            let answered = server.answer(query, until).await;
            self.used();
            match answered {
                Ok(reply) => return Ok(reply),
                Err(Fault::Query(error)) => return Err(error),
                Err(Fault::TimedOut | Fault::Stale) => return Ok(self.busy()),
                Err(Fault::Refused(error)) => {
                    let server = self.launch.definition.name;
                    return Err(QueryError::Refused { server, message: error.message });
                }
                Err(Fault::Restart(reason)) => {
                    debug!(server = self.launch.definition.name, reason, "taking a new server");
                    self.end(&mut state).await;
                }
                Err(Fault::Ended(_)) => {
                    let reason = self.end(&mut state).await;
                    warn!(server = self.launch.definition.name, %reason, "a language server has ended");
                    state.history.ended(Instant::now(), reason);
                }
            }
        }
        Err(QueryError::KeepsChanging { server: self.launch.definition.name })
    }

    /// Ends the server, and returns the reason of its end.
    async fn end(&self, state: &mut SlotState) -> Arc<str> {
        let Some(server) = state.server.take() else { return "it has ended".into() };
        let reason = server.end(LAST_WORDS).await;
        self.set_running(None);
        reason
    }

    /// Starts the server in a task that outlives the query. Returns that it is not ready if there is no time left for
    /// it.
    async fn start(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        context: &QueryContext,
        mut state: OwnedMutexGuard<SlotState>,
        until: Instant,
    ) -> Result<Option<NotReady>, QueryError> {
        let at = match state.history.decide(Instant::now()) {
            StartDecision::At(at) => at,
            StartDecision::GiveUp { times, reason } => {
                let (server, minutes) = (self.launch.definition.name, WINDOW.as_secs() / 60);
                return Err(QueryError::KeepsEnding { server, times, minutes, reason });
            }
        };
        shared.make_room(self).await?;
        let end = sync::lock(&self.progress).end.take();
        if let Some(end) = end {
            let server = self.launch.definition.name;
            shared.notice(context.workspace.path(), format!("{server} {end}, and starts again"));
        }
        let slot = Arc::clone(self);
        let context = context.clone();
        let idle = shared.policy.idle;
        let starting = async move {
            sleep_until(at).await;
            let connected = slot.launch.connect(&context).await;
            match connected {
                Ok(server) => {
                    slot.set_running(Some(&server));
                    state.server = Some(server);
                    let ending = end_when_idle(Arc::downgrade(&slot), idle);
                    state.idle = Some(AbortOnDropHandle::new(carrel_exec::spawn_task(ending)));
                    Ok(())
                }
                Err(error) => {
                    slot.set_running(None);
                    if let QueryError::NotStarted { reason, .. } = &error {
                        state.history.ended(Instant::now(), reason.as_str().into());
                    }
                    Err(error)
                }
            }
        };
        let stop = self.stop.clone();
        // Ends with the slot, or with the time that a start has.
        let started = carrel_exec::spawn_task(async move {
            tokio::select! {
                () = stop.cancelled() => Err(QueryError::Closing),
                started = starting => started,
            }
        });
        match timeout_at(until, started).await {
            Ok(Ok(started)) => started.map(|()| None),
            Ok(Err(error)) => Err(QueryError::Interrupted(error.to_string())),
            Err(_) => Ok(Some(self.not_ready())),
        }
    }

    /// Returns whether the server runs, or the history of its ends may still matter.
    pub(crate) fn is_needed(&self) -> bool {
        let progress = sync::lock(&self.progress);
        let kept = if progress.end.is_some() { END_KEPT } else { WINDOW };
        progress.is_running || progress.last_used.elapsed() < kept
    }

    fn set_running(&self, server: Option<&LanguageServer>) {
        let mut progress = sync::lock(&self.progress);
        progress.is_running = server.is_some();
        progress.observed = server.map(|server| Arc::clone(&server.observed));
        progress.last_used = Instant::now();
    }

    fn busy<T>(&self) -> Reply<T> {
        Reply::NotReady(self.not_ready())
    }

    fn not_ready(&self) -> NotReady {
        let server = self.launch.definition.name;
        let observed = sync::lock(&self.progress).observed.clone();
        let pending = match observed {
            Some(observed) => match observed.pending(true) {
                Some(work) => {
                    return NotReady { server, pending: work.what, estimate: work.estimate };
                }
                None => "another query".to_owned(),
            },
            None => "its start".to_owned(),
        };
        NotReady { server, pending, estimate: None }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(time) => write!(f, "was ended after {} without a question", Age(*time)),
            Self::Room { server } => write!(f, "was ended to make room for {server}"),
        }
    }
}

impl Launch {
    /// Starts the server and initializes it.
    async fn connect(&self, context: &QueryContext) -> Result<LanguageServer, QueryError> {
        let (server, installation) = (self.definition.name, self.definition.installation);
        let failed = |reason| QueryError::NotStarted { server, reason, installation };
        let watch = Arc::clone(&context.watch);
        let files = ProjectFiles { files: context.workspace.files().try_clone()?, watch };
        let definition = self.definition;
        let look = move || {
            let known = files.first_look(definition, &Cancel::new())?;
            Ok::<_, QueryError>((files, known))
        };
        // Before the start: a change from now on is one for the server.
        let (files, known) = blocking(look).await?;
        let (runner, workspace) = (context.runner.clone(), Arc::clone(&context.workspace));
        let started = ServerProcess::start(runner, workspace, self).await;
        let (process, output, input) = started.map_err(failed)?;
        let connection = Connection { output, input, process: Some(process) };
        let project = Project { files, root: self.root.clone(), known };
        let connected = LanguageServer::connect(self.definition, connection, project).await;
        let connected = connected.map_err(failed)?;
        info!(server, root = %self.root.display(), "started a language server");
        Ok(connected)
    }
}

/// Ends a server that had no query for some time.
async fn end_when_idle(slot: Weak<Slot>, idle: Duration) {
    loop {
        let last_used = slot.upgrade().map(|slot| slot.last_used());
        let Some(last_used) = last_used else { return };
        sleep_until(last_used + idle).await;
        let Some(slot) = slot.upgrade() else { return };
        let mut state = slot.state.lock().await;
        if slot.last_used().elapsed() < idle {
            continue;
        }
        info!(server = slot.launch.definition.name, "ending an idle language server");
        slot.close_server(&mut state).await;
        sync::lock(&slot.progress).end = Some(EndReason::Idle(idle));
        return;
    }
}
