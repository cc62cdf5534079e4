//! The language servers of a process: one for each workspace, project and kind of server.
//!
//! ```text
//! query ──► server of the file's language and project ──► slot ──► LanguageServer::answer
//!                                                          │ start (a task of its own), restart, end when idle
//! ```
//!
//! A server starts with the first query that needs it. Queries of one server take turns, each within its own time.
//! A start is a task of its own: a query that has no time left leaves it to the next one. A server that has ended is
//! replaced by the query that notices it; one that keeps ending is given up for a while. A server without a query for
//! some time is ended, and so is the one that was used least recently when too many run.
//!
//! | what ends | what happens to servers |
//! |---|---|
//! | the time of a query | the request is cancelled, the server goes on |
//! | a workspace ([`LanguageServers::close_workspace`]) | its servers are ended, and nothing is left of them afterwards |
//! | [`LanguageServers`] | all are killed, in the background |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use carrel_code::Language;
use carrel_domain::sync;
use carrel_runner::{Runner, WorkspaceHandle};
use carrel_search::Cancel;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use crate::definition::ServerDefinition;
use crate::documents::first_look;
use crate::fault::{Fault, QueryError, blocking};
use crate::observed::Observed;
use crate::process::{Launch, ServerProcess};
use crate::project;
use crate::query::Query;
use crate::query::Target;
use crate::query::calls::{Call, CallDirection, FindCalls};
use crate::query::diagnostics::{Diagnose, Diagnostic};
use crate::query::edits::WorkspaceChange;
use crate::query::hover::Hover;
use crate::query::locations::{FindLocations, Locations, Relation};
use crate::query::rename::{Rename, RenameFiles};
use crate::reply::{NotReady, Reply};
use crate::restarts::{RestartHistory, StartDecision, WINDOW};
use crate::server::{Connection, LanguageServer, Project};

/// Bounds how often one query takes a new server.
const MAX_SERVERS_OF_QUERY: usize = 4;

/// The time that a server which has lost its connection has for its last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The choices of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageServerOptions {
    /// The time without a query after which a server is ended.
    pub idle: Duration,
    /// Servers that run at a time.
    pub most: usize,
    /// Directories of programs, searched before `PATH`. Commands must see them.
    pub programs: Vec<PathBuf>,
}

impl Default for LanguageServerOptions {
    fn default() -> Self {
        Self { idle: Duration::from_mins(10), most: 8, programs: Vec::new() }
    }
}

/// The workspace and the time of a query.
#[derive(Clone, Debug)]
pub struct QueryContext {
    /// Runs the servers.
    pub runner: Runner,
    /// The workspace. It stays in use while a server of it runs.
    pub workspace: Arc<WorkspaceHandle>,
    /// The time for the answer, a start included.
    pub time: Duration,
}

/// The language servers of a process. Dropping it kills them.
#[derive(Debug)]
pub struct LanguageServers {
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    options: LanguageServerOptions,
    slots: Mutex<BTreeMap<SlotKey, Arc<Slot>>>,
    stop: CancellationToken,
}

/// The identity of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotKey {
    workspace: PathBuf,
    /// The project's directory, relative to the workspace.
    root: PathBuf,
    server: &'static str,
}

/// The place of one server, which may not run.
#[derive(Debug)]
struct Slot {
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
    observed: Option<Arc<Observed>>,
}

impl LanguageServers {
    /// Starts nothing yet. Queries need a tokio runtime.
    pub fn new(options: LanguageServerOptions) -> Self {
        let stop = CancellationToken::new();
        let shared = Shared { options, slots: Mutex::default(), stop: stop.clone() };
        Self { shared: Arc::new(shared), _stop: stop.drop_guard() }
    }

    /// Returns whether a server is known for the language of a file.
    pub fn knows(path: &Path) -> bool {
        let language = Language::of_path(path);
        language.is_some_and(|language| ServerDefinition::of_language(language).next().is_some())
    }

    /// Finds the definition of the symbol at a position.
    pub async fn definition(
        &self,
        context: &QueryContext,
        target: &Target,
    ) -> Result<Reply<Locations>, QueryError> {
        self.locations(context, target, Relation::Definition).await
    }

    /// Finds the references to the symbol at a position.
    pub async fn references(
        &self,
        context: &QueryContext,
        target: &Target,
        with_declaration: bool,
    ) -> Result<Reply<Locations>, QueryError> {
        self.locations(context, target, Relation::References { with_declaration }).await
    }

    /// Finds the implementations of the symbol at a position.
    pub async fn implementations(
        &self,
        context: &QueryContext,
        target: &Target,
    ) -> Result<Reply<Locations>, QueryError> {
        self.locations(context, target, Relation::Implementations).await
    }

    async fn locations(
        &self,
        context: &QueryContext,
        target: &Target,
        relation: Relation,
    ) -> Result<Reply<Locations>, QueryError> {
        self.answer(context, &FindLocations { target, relation }).await
    }

    /// Returns the type and documentation of the symbol at a position.
    pub async fn hover(
        &self,
        context: &QueryContext,
        target: &Target,
    ) -> Result<Reply<Option<String>>, QueryError> {
        self.answer(context, &Hover { target }).await
    }

    /// Finds the callers or callees of the function at a position.
    pub async fn calls(
        &self,
        context: &QueryContext,
        target: &Target,
        direction: CallDirection,
    ) -> Result<Reply<Vec<Call>>, QueryError> {
        self.answer(context, &FindCalls { target, direction }).await
    }

    /// Returns the change that renames the symbol at a position. Nothing is changed.
    pub async fn rename(
        &self,
        context: &QueryContext,
        target: &Target,
        new_name: &str,
    ) -> Result<Reply<WorkspaceChange>, QueryError> {
        self.answer(context, &Rename { target, new_name }).await
    }

    /// Returns the change that new paths of files make necessary. The first of them decides about the server.
    pub async fn rename_files(
        &self,
        context: &QueryContext,
        moves: &[(PathBuf, PathBuf)],
    ) -> Result<Reply<WorkspaceChange>, QueryError> {
        self.answer(context, &RenameFiles { moves }).await
    }

    /// Returns the problems of a file.
    pub async fn diagnostics(
        &self,
        context: &QueryContext,
        path: &Path,
    ) -> Result<Reply<Vec<Diagnostic>>, QueryError> {
        self.answer(context, &Diagnose { path }).await
    }

    /// Ends the servers of a workspace, and returns when nothing is left of them.
    pub async fn close_workspace(&self, workspace: &Path) {
        self.close_those(|key| key.workspace == workspace).await;
    }

    /// Ends all servers, and returns when nothing is left of them. A later query starts new ones.
    pub async fn close(&self) {
        self.close_those(|_| true).await;
    }

    async fn close_those(&self, is_closed: impl Fn(&SlotKey) -> bool) {
        let closed = sync::lock(&self.shared.slots)
            .extract_if(.., |key, _| is_closed(key))
            .map(|(_, slot)| slot)
            .collect::<Vec<_>>();
        for slot in &closed {
            slot.stop.cancel();
        }
        for slot in closed {
            let server = slot.state.lock().await.server.take();
            if let Some(server) = server {
                server.close().await;
            }
        }
    }

    /// Returns the names of the servers that run, each with its workspace.
    pub fn running(&self) -> Vec<(&'static str, PathBuf)> {
        let slots = sync::lock(&self.shared.slots);
        let running = slots.iter().filter(|(_, slot)| sync::lock(&slot.progress).is_running);
        running.map(|(key, _)| (key.server, key.workspace.clone())).collect()
    }

    async fn answer<Q: Query>(
        &self,
        context: &QueryContext,
        query: &Q,
    ) -> Result<Reply<Q::Answer>, QueryError> {
        let until = Instant::now() + context.time;
        let slot = self.slot(context, query.file()).await?;
        let answering = slot.answer(&self.shared, context, query, until);
        tokio::select! {
            biased;
            () = slot.stop.cancelled() => Err(QueryError::Closing),
            answered = answering => answered,
        }
    }

    /// Returns the place of the server for a file.
    async fn slot(&self, context: &QueryContext, file: &Path) -> Result<Arc<Slot>, QueryError> {
        let launch = self.launch(context, file).await?;
        let key = SlotKey {
            workspace: context.workspace.path().to_owned(),
            root: launch.root.clone(),
            server: launch.definition.name,
        };
        let mut slots = sync::lock(&self.shared.slots);
        slots.retain(|_, slot| slot.is_needed());
        // A program that was installed since, as into the project, takes the place of the one before.
        if slots.get(&key).is_some_and(|slot| slot.launch != launch) {
            slots.remove(&key);
        }
        let slot = slots.entry(key).or_insert_with(|| {
            let stop = self.shared.stop.child_token();
            let last_used = Instant::now();
            let progress = SlotProgress { last_used, is_running: false, observed: None };
            let (state, progress) = (Arc::default(), Mutex::new(progress));
            Arc::new(Slot { launch, stop, state, progress })
        });
        sync::lock(&slot.progress).last_used = Instant::now();
        Ok(Arc::clone(slot))
    }

    /// Chooses the first server of the file's language that is installed.
    async fn launch(&self, context: &QueryContext, file: &Path) -> Result<Launch, QueryError> {
        let path = file.to_owned();
        let language = Language::of_path(file).ok_or(QueryError::NoLanguage { path })?;
        let files = context.workspace.files().try_clone()?;
        let path: Vec<PathBuf> = context.runner.programs().map(Path::to_owned).collect();
        let configured = self.shared.options.programs.clone();
        let file = file.to_owned();
        blocking(move || {
            let mut candidates = ServerDefinition::of_language(language).peekable();
            if candidates.peek().is_none() {
                return Err(QueryError::NoLanguage { path: file });
            }
            let found = candidates.find_map(|definition| {
                let root = project::root_of(&files, &file, definition.root);
                let program = project::program_of(definition, &files, &root, &configured, &path)?;
                Some(Launch { definition, program, root })
            });
            found.ok_or_else(|| not_installed(language))
        })
        .await
    }
}

fn not_installed(language: Language) -> QueryError {
    let candidates = ServerDefinition::of_language(language)
        .map(|definition| format!("{} ({})", definition.name, definition.installation));
    let candidates = candidates.collect::<Vec<_>>().join(", or ");
    QueryError::NotInstalled { language: language.as_str(), candidates }
}

impl Slot {
    async fn answer<Q: Query>(
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
        let slot = Arc::clone(self);
        let context = context.clone();
        let idle = shared.options.idle;
        let starting = async move {
            sleep_until(at).await;
            let connected = slot.launch.connect(&context).await;
            match connected {
                Ok(server) => {
                    slot.set_running(Some(&server));
                    state.server = Some(server);
                    let ending = end_when_idle(Arc::downgrade(&slot), idle);
                    state.idle = Some(AbortOnDropHandle::new(tokio::spawn(ending)));
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
        let started = tokio::spawn(async move {
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
    fn is_needed(&self) -> bool {
        let progress = sync::lock(&self.progress);
        progress.is_running || progress.last_used.elapsed() < WINDOW
    }

    fn used(&self) {
        sync::lock(&self.progress).last_used = Instant::now();
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

impl Launch {
    /// Starts the server and initializes it.
    async fn connect(&self, context: &QueryContext) -> Result<LanguageServer, QueryError> {
        let (server, installation) = (self.definition.name, self.definition.installation);
        let failed = |reason| QueryError::NotStarted { server, reason, installation };
        let files = context.workspace.files().try_clone()?;
        let definition = self.definition;
        let look = move || {
            let known = first_look(&files, definition, &Cancel::new())?;
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

impl Shared {
    /// Counts a server as running. If as many run as may, the one that was used least recently is ended.
    async fn make_room(&self, starting: &Slot) -> Result<(), QueryError> {
        loop {
            let mut running: Vec<_> = {
                let slots = sync::lock(&self.slots);
                let is_running = |slot: &&Arc<Slot>| sync::lock(&slot.progress).is_running;
                let running: Vec<_> = slots.values().filter(is_running).cloned().collect();
                if running.len() < self.options.most {
                    sync::lock(&starting.progress).is_running = true;
                    return Ok(());
                }
                running
            };
            let count = running.len();
            running.sort_by_key(|slot| sync::lock(&slot.progress).last_used);
            // One that is locked answers a query.
            let unused = running
                .iter()
                .find_map(|slot| Some((slot, Arc::clone(&slot.state).try_lock_owned().ok()?)));
            let Some((slot, mut state)) = unused else {
                return Err(QueryError::TooMany { running: count });
            };
            let server = state.server.take();
            slot.set_running(None);
            if let Some(server) = server {
                server.close().await;
            }
        }
    }
}

/// Ends a server that had no query for some time.
async fn end_when_idle(slot: Weak<Slot>, idle: Duration) {
    loop {
        let last_used = slot.upgrade().map(|slot| sync::lock(&slot.progress).last_used);
        let Some(last_used) = last_used else { return };
        sleep_until(last_used + idle).await;
        let Some(slot) = slot.upgrade() else { return };
        let mut state = slot.state.lock().await;
        if sync::lock(&slot.progress).last_used.elapsed() < idle {
            continue;
        }
        let server = state.server.take();
        slot.set_running(None);
        if let Some(server) = server {
            info!(server = slot.launch.definition.name, "ending an idle language server");
            server.close().await;
        }
        return;
    }
}
