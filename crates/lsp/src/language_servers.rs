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
//! some time is ended, and so is the one that was used least recently when too many run in the process, or when they
//! are expected to use too much memory together. The next answer says so ([`LanguageServers::take_notices`]).
//!
//! | what ends | what happens to servers |
//! |---|---|
//! | the time of a query | the request is cancelled, the server goes on |
//! | a workspace ([`LanguageServers::close_workspace`]) | its servers are ended, and nothing is left of them afterwards |
//! | [`LanguageServers`] | all are killed, in the background |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::Duration;

use carrel_code::Language;
use carrel_config::LanguageServerPolicy;
use carrel_domain::sync;
use carrel_runner::{Runner, WorkspaceHandle};
use carrel_search::TreeWatch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::definition::{self, ServerDefinition};
use crate::fault::{QueryError, blocking};
use crate::process::Launch;
use crate::project;
use crate::query::Query;
use crate::query::Target;
use crate::query::calls::{Call, CallDirection, FindCalls};
use crate::query::diagnostics::{Diagnose, Diagnostic};
use crate::query::edits::WorkspaceChange;
use crate::query::hover::Hover;
use crate::query::locations::{FindLocations, Locations, Relation};
use crate::query::rename::{Rename, RenameFiles};
use crate::reply::Reply;
use crate::slot::{EndReason, Slot};

/// The time for which the choice of a server holds while no listed file changes. Programs are not among those.
const CHOICE_TIME: Duration = Duration::from_secs(5);

/// Choices that are kept.
const MAX_CHOICES: usize = 64;

/// Notices that wait for a reply, for each workspace.
const MAX_NOTICES: usize = 8;

/// The running servers that count together: by default all of a process.
#[derive(Debug, Default)]
pub struct ServerPool {
    running: Mutex<Vec<Weak<Slot>>>,
}

/// The pool of servers that no other one is chosen for.
static PROCESS: LazyLock<Arc<ServerPool>> = LazyLock::new(Arc::default);

/// The workspace and the time of a query.
#[derive(Clone, Debug)]
pub struct QueryContext {
    /// Runs the servers.
    pub runner: Runner,
    /// The workspace. It stays in use while a server of it runs.
    pub workspace: Arc<WorkspaceHandle>,
    /// The watch of its files, which others may use too.
    pub watch: Arc<TreeWatch>,
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
pub(crate) struct Shared {
    pub(crate) policy: LanguageServerPolicy,
    /// In the order in which they are tried.
    definitions: Vec<&'static ServerDefinition>,
    pool: Arc<ServerPool>,
    /// Words for the next reply, by workspace.
    notices: Mutex<BTreeMap<PathBuf, Vec<String>>>,
    slots: Mutex<BTreeMap<SlotKey, Arc<Slot>>>,
    /// The servers that were chosen last, by workspace and file.
    choices: Mutex<BTreeMap<(PathBuf, PathBuf), Choice>>,
    stop: CancellationToken,
}

/// A server that was chosen for a file.
#[derive(Debug)]
struct Choice {
    launch: Launch,
    /// The last change of files before.
    change: u64,
    at: Instant,
}

/// The identity of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotKey {
    workspace: PathBuf,
    /// The project's directory, relative to the workspace.
    root: PathBuf,
    server: &'static str,
}

impl LanguageServers {
    /// Starts nothing yet. Queries need a tokio runtime. The limits hold for all servers of the process together.
    pub fn new(policy: LanguageServerPolicy) -> Self {
        Self::in_pool(policy, Arc::clone(&PROCESS))
    }

    /// Does the same with limits for the servers of a pool.
    pub fn in_pool(policy: LanguageServerPolicy, pool: Arc<ServerPool>) -> Self {
        let stop = CancellationToken::new();
        let shared = Shared {
            definitions: definition::definitions(&policy.servers),
            policy,
            pool,
            notices: Mutex::default(),
            slots: Mutex::default(),
            choices: Mutex::default(),
            stop: stop.clone(),
        };
        Self { shared: Arc::new(shared), _stop: stop.drop_guard() }
    }

    /// Returns whether a server is known for the language of a file.
    pub fn knows(path: &Path) -> bool {
        Language::of_path(path).is_some_and(definition::is_known)
    }

    /// Takes what the next reply about a workspace should say about its servers, such as that one was ended because it
    /// was idle.
    pub fn take_notices(&self, workspace: &Path) -> Vec<String> {
        sync::lock(&self.shared.notices).remove(workspace).unwrap_or_default()
    }

    /// Returns whether a server runs that can be asked about a file.
    pub fn runs_for(&self, workspace: &Path, file: &Path) -> bool {
        let slots = sync::lock(&self.shared.slots);
        let mut own = slots.iter().filter(|(key, _)| key.workspace == workspace);
        own.any(|(key, slot)| {
            slot.is_running()
                && file.starts_with(&key.root)
                && slot.launch().definition.is_source(file)
        })
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
            slot.stop();
        }
        for slot in closed {
            slot.close().await;
        }
    }

    /// Returns the names of the servers that run, each with its workspace.
    pub fn running(&self) -> Vec<(&'static str, PathBuf)> {
        let slots = sync::lock(&self.shared.slots);
        let running = slots.iter().filter(|(_, slot)| slot.is_running());
        running.map(|(key, _)| (key.server, key.workspace.clone())).collect()
    }

    async fn answer<Q: Query>(
        &self,
        context: &QueryContext,
        query: &Q,
    ) -> Result<Reply<Q::Answer>, QueryError> {
        let until = Instant::now() + context.time;
        let slot = self.slot(context, query.file()).await?;
        slot.answer(&self.shared, context, query, until).await
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
        if slots.get(&key).is_some_and(|slot| slot.launch() != &launch) {
            slots.remove(&key);
        }
        let new = || Arc::new(Slot::new(launch, self.shared.stop.child_token()));
        let slot = slots.entry(key).or_insert_with(new);
        slot.used();
        Ok(Arc::clone(slot))
    }

    /// Returns the server for a file, which was chosen just before or is chosen anew.
    async fn launch(&self, context: &QueryContext, file: &Path) -> Result<Launch, QueryError> {
        let change = context.watch.last_change(context.workspace.files());
        let key = (context.workspace.path().to_owned(), file.to_owned());
        let Some(change) = change else { return self.choose(context, file).await };
        if let Some(known) = sync::lock(&self.shared.choices).get(&key)
            && (known.change, known.at.elapsed() < CHOICE_TIME) == (change, true)
        {
            return Ok(known.launch.clone());
        }
        let at = Instant::now();
        let launch = self.choose(context, file).await?;
        let mut choices = sync::lock(&self.shared.choices);
        if choices.len() >= MAX_CHOICES {
            choices.clear();
        }
        choices.insert(key, Choice { launch: launch.clone(), change, at });
        Ok(launch)
    }

    /// Chooses the first server of the file's language that is installed.
    async fn choose(&self, context: &QueryContext, file: &Path) -> Result<Launch, QueryError> {
        let path = file.to_owned();
        let language = Language::of_path(file).ok_or(QueryError::NoLanguage { path })?;
        let files = context.workspace.files().try_clone()?;
        let path: Vec<PathBuf> = context.runner.programs().map(Path::to_owned).collect();
        let configured = self.shared.policy.programs.clone();
        let file = file.to_owned();
        let known = self.shared.definitions.iter().copied();
        let candidates: Vec<_> =
            known.filter(|definition| definition.languages.contains(&language)).collect();
        blocking(move || {
            if candidates.is_empty() {
                return Err(QueryError::NoLanguage { path: file });
            }
            let found = candidates.iter().find_map(|definition| {
                let root = project::root_of(&files, &file, definition.root);
                let program = project::program_of(definition, &files, &root, &configured, &path)?;
                Some(Launch { definition, program, root })
            });
            found.ok_or_else(|| not_installed(language, &candidates))
        })
        .await
    }
}

fn not_installed(language: Language, candidates: &[&ServerDefinition]) -> QueryError {
    let candidates = candidates
        .iter()
        .map(|definition| format!("{} ({})", definition.name, definition.installation));
    let candidates = candidates.collect::<Vec<_>>().join(", or ");
    QueryError::NotInstalled { language: language.as_str(), candidates }
}

impl Shared {
    /// Counts a server as running. If as many run as may, the one that was used least recently is ended.
    pub(crate) async fn make_room(&self, starting: &Arc<Slot>) -> Result<(), QueryError> {
        loop {
            let Err(mut running) = self.pool.count(&self.policy, starting) else { return Ok(()) };
            let count = running.len();
            running.sort_by_key(|slot| slot.last_used());
            let mut ended = false;
            for slot in running {
                let reason = EndReason::Room { server: starting.launch().definition.name };
                ended = slot.close_unless_in_use(reason).await;
                if ended {
                    break;
                }
            }
            if !ended {
                return Err(QueryError::TooMany { running: count });
            }
        }
    }

    /// Keeps words for the next reply about a workspace.
    pub(crate) fn notice(&self, workspace: &Path, text: String) {
        let mut all = sync::lock(&self.notices);
        let notices = all.entry(workspace.to_owned()).or_default();
        if notices.len() < MAX_NOTICES {
            notices.push(text);
        }
    }
}

impl ServerPool {
    /// Counts a server as running if the limits leave room for it; the error lists the running ones.
    fn count(
        &self,
        policy: &LanguageServerPolicy,
        starting: &Arc<Slot>,
    ) -> Result<(), Vec<Arc<Slot>>> {
        let mut all = sync::lock(&self.running);
        all.retain(|slot| slot.upgrade().is_some_and(|slot| slot.is_running()));
        let running: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        let memory = running.iter().map(|slot| slot.expected_memory()).sum::<u64>();
        let fits = memory.saturating_add(starting.expected_memory()) <= policy.memory.as_u64();
        // One server may always run, also beyond the limit.
        if running.is_empty() || running.len() < policy.most && fits {
            starting.count_as_running();
            all.push(Arc::downgrade(starting));
            return Ok(());
        }
        Err(running)
    }
}
