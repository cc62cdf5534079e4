//! A running language server: kept in agreement with the files, asked when it is ready.
//!
//! An answer takes these steps, and each later one relies on those before:
//!
//! 1. look at the tree and send what has changed;
//! 2. wait until the server has no work that the answer depends on, and look again if that took time;
//! 3. ask, and ask again while the server says that its content is being modified;
//! 4. convert positions with the texts that the server has; a file that has changed meanwhile begins all of it anew.
//!
//! A server that is not ready when the time is over gives no answer: what it would say is often wrong, and empty more
//! often than that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrel_fsroot::Root;
use carrel_search::{Cancel, TreeCursor, TreeWatch};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::debug;

use crate::activity::PendingWork;
use crate::capabilities::{ServerCapabilities, initialize_params};
use crate::client::{Client, Peer, RequestError};
use crate::definition::{ChangeRule, Readiness, ServerDefinition};
use crate::documents::{Documents, KnownFiles, OpenDocument, ProjectFiles, SyncDecision};
use crate::fault::{Fault, QueryError, blocking};
use crate::observed::Observed;
use crate::process::ServerProcess;
use crate::project;
use crate::query::{Finding, Query};
use crate::reply::{Answer, NotReady, Reply};
use crate::stamp::ReadFile;
use crate::uri;

/// The time for a server to answer `initialize`.
const INITIALIZE_TIME: Duration = Duration::from_secs(90);

/// The time for a server to answer `shutdown`. It has nothing to save, and Carrel promises to end within two seconds.
const SHUTDOWN_TIME: Duration = Duration::from_millis(500);

/// The time for a server that was asked to, before it is killed.
const LEAVING_TIME: Duration = Duration::from_millis(250);

/// The time for a server that fails at its start to say why.
const EXIT_TIME: Duration = Duration::from_secs(1);

/// Bounds how often a query begins anew because files change under it.
const MAX_ROUNDS: usize = 5;

/// Bounds how often a request is sent again because the server says that its content is being modified.
const MAX_REPEATS: u32 = 20;

/// The pause before a request is sent again, at first; each later one is longer by it.
const REPEAT_PAUSE: Duration = Duration::from_millis(50);

/// The time for a changed document to reach the server's index.
const INDEX_TIME: Duration = Duration::from_mins(1);

/// The time after which silence is looked at again: it may have become long enough to mean something.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A connection to a server that has been initialized.
#[derive(Debug)]
pub(crate) struct LanguageServer {
    pub(crate) definition: &'static ServerDefinition,
    client: Client,
    /// None where the server is no process.
    process: Option<ServerProcess>,
    pub(crate) observed: Arc<Observed>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) documents: Documents,
    /// Files whose last change the server may not have taken in yet.
    unsettled: BTreeSet<PathBuf>,
    pub(crate) files: Root,
    watch: Arc<TreeWatch>,
}

/// A server's streams, and its process where it is one.
#[derive(Debug)]
pub(crate) struct Connection<O, I> {
    pub(crate) output: O,
    pub(crate) input: I,
    pub(crate) process: Option<ServerProcess>,
}

/// The project that a server works on.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) files: ProjectFiles,
    /// The directory, relative to the workspace.
    pub(crate) root: PathBuf,
    /// The files as they were before the server started.
    pub(crate) known: (KnownFiles, TreeCursor),
}

/// The files as the server has been told of them.
#[derive(Debug)]
struct Synchronized {
    /// Every write before this time is in them.
    as_of: SystemTime,
    /// Some could not be listed.
    is_cut: bool,
    /// The project has what the server reports work about.
    reports: bool,
}

impl LanguageServer {
    /// Initializes a server. The error is the reason of the failure.
    pub(crate) async fn connect<O, I>(
        definition: &'static ServerDefinition,
        connection: Connection<O, I>,
        project: Project,
    ) -> Result<Self, String>
    where
        O: AsyncRead + Unpin + Send + 'static,
        I: AsyncWrite + Unpin + Send + 'static,
    {
        let Project { files, root, known } = project;
        let ProjectFiles { files, watch } = files;
        let directory = files.path().join(root);
        let root = uri::of_path(&directory);
        let observed = Arc::new(Observed::new(definition, root.clone()));
        let Connection { output, input, process } = connection;
        let client = Client::new(output, input, Arc::clone(&observed) as Arc<dyn Peer>);
        let params = initialize_params(definition, &root, &directory.to_string_lossy());
        let exchange = async {
            let until = Instant::now() + INITIALIZE_TIME;
            let result = client.request("initialize", &params, until).await?;
            client.notify("initialized", &json!({})).await?;
            let settings = definition.settings.value();
            if !settings.is_null() {
                let params = json!({ "settings": settings });
                client.notify("workspace/didChangeConfiguration", &params).await?;
            }
            Ok(result)
        };
        let result: Result<Value, RequestError> = exchange.await;
        let result = match (result, process.as_ref()) {
            (Ok(result), _) => result,
            (Err(RequestError::Closed(reason)), Some(process)) => {
                return Err(process.ended(EXIT_TIME).await.unwrap_or(reason).to_string());
            }
            (Err(error), _) => return Err(format!("initialize: {error}")),
        };
        let capabilities = ServerCapabilities::of_initialize_result(result);
        let top = files.path().to_owned();
        let documents = Documents::new(definition, top, capabilities.encoding, known);
        let unsettled = BTreeSet::new();
        Ok(Self {
            definition,
            client,
            process,
            observed,
            capabilities,
            documents,
            unsettled,
            files,
            watch,
        })
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends the server: asks it to, then kills what is left. Returns the reason of its end.
    pub(crate) async fn close(self) -> Arc<str> {
        let until = Instant::now() + SHUTDOWN_TIME;
        if self.client.request("shutdown", &Value::Null, until).await.is_ok() {
            let _ = timeout(LEAVING_TIME, self.client.notify("exit", &Value::Null)).await;
        }
        self.end(LEAVING_TIME).await
    }

    /// Returns the reason why the connection has ended, after killing what is left of the server.
    pub(crate) async fn end(self, grace: Duration) -> Arc<str> {
        let Self { client, process, .. } = self;
        match process {
            Some(process) => {
                // The streams stay open meanwhile, so that a server which ends says its last words.
                let reason = process.close(grace).await;
                drop(client);
                reason
            }
            None => "the connection is closed".into(),
        }
    }

    /// Answers a query, or says what is pending when the time is over.
    pub(crate) async fn answer<Q: Query>(
        &mut self,
        query: &Q,
        until: Instant,
    ) -> Result<Reply<Q::Answer>, Fault> {
        let (mut before, mut rounds) = (None, 0);
        while rounds < MAX_ROUNDS {
            let Synchronized { as_of, is_cut, reports } =
                self.synchronize(query.file(), until).await?;
            if self.observed.pending(reports).is_some() {
                match self.wait_until_ready(reports, until).await? {
                    Some(pending) => return Ok(self.not_ready(pending)),
                    // Time has passed: the files may have changed.
                    None => continue,
                }
            }
            let value = match query.ask(self, until).await {
                Err(Fault::Stale) => {
                    rounds += 1;
                    continue;
                }
                Err(Fault::TimedOut) => return Ok(self.not_ready(self.unanswered(reports))),
                asked => asked?,
            };
            let Finding { value, incomplete: lost } = value;
            if let Readiness::Settled(pause) = self.definition.readiness
                && before.as_ref() != Some(&value)
            {
                before = Some(value);
                if timeout_at(until, sleep(pause)).await.is_err() {
                    return Ok(self.not_ready(self.unanswered(reports)));
                }
                continue;
            }
            let incomplete = self.incompleteness(query, is_cut, reports).or(lost);
            let server = self.definition.name;
            return Ok(Reply::Answer(Answer { value, server, incomplete, as_of }));
        }
        Err(QueryError::KeepsChanging { server: self.definition.name }.into())
    }

    /// Sends a request, again and again while the server says that it may succeed later.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        until: Instant,
    ) -> Result<Value, Fault> {
        for attempt in 1..=MAX_REPEATS {
            match self.client.request(method, params, until).await {
                Err(RequestError::Refused(error)) if error.is_transient() => {
                    debug!(method, %error, "asking again");
                    let pause = sleep(REPEAT_PAUSE * attempt);
                    timeout_at(until, pause).await.map_err(|_| Fault::TimedOut)?;
                }
                Err(RequestError::Refused(error)) => {
                    let server = self.definition.name;
                    return Err(QueryError::Refused { server, message: error.message }.into());
                }
                result => return Ok(result?),
            }
        }
        Err(Fault::TimedOut)
    }

    /// Brings the server up to date with the files.
    async fn synchronize(&mut self, file: &Path, until: Instant) -> Result<Synchronized, Fault> {
        let mut wanted: BTreeSet<PathBuf> = self.documents.unlisted().cloned().collect();
        wanted.insert(file.to_owned());
        let files = ProjectFiles {
            files: self.files.try_clone().map_err(QueryError::from)?,
            watch: Arc::clone(&self.watch),
        };
        let (known, cursor) = self.documents.known();
        let (definition, asked) = (self.definition, file.to_owned());
        let work = move || {
            let look = files.look(definition, (&known, &cursor), &wanted, &Cancel::new())?;
            Ok::<_, QueryError>((look, reports_work(definition, &files.files, &asked)))
        };
        let (look, reports) = blocking(work).await?;
        let (as_of, is_cut) = (look.as_of, look.is_cut);
        let plan = match self.documents.plan(look) {
            SyncDecision::Proceed(plan) => plan,
            SyncDecision::Restart(reason) => return Err(Fault::Restart(reason)),
        };
        let reserving = timeout_at(until, self.client.reserve(plan.len()));
        let mut batch = reserving.await.map_err(|_| Fault::TimedOut)??;
        // From here to the end of the batch nothing waits.
        self.unsettled.extend(self.documents.apply(plan, &mut batch));
        drop(batch);
        if self.documents.open(file).is_none() {
            return Err(self.unreadable(file).await.into());
        }
        self.settle(until).await?;
        Ok(Synchronized { as_of, is_cut, reports })
    }

    /// Waits until the server has taken changes in, where that comes later than their notification.
    async fn settle(&mut self, until: Instant) -> Result<(), Fault> {
        let until = until.min(Instant::now() + INDEX_TIME);
        while let Some(path) = self.unsettled.first().cloned() {
            let changes = self.definition.changes;
            let uri = self.documents.uri(&path);
            let version = self.documents.open(&path).map(|open| open.version);
            match (version, changes.deleted) {
                (Some(version), _) if changes.is_indexed_before_push => {
                    let is_indexed = |observed: &Observed| {
                        observed.pushed(&uri).filter(|pushed| pushed.version == Some(version))
                    };
                    self.observe(until, is_indexed).await?;
                }
                (None, ChangeRule::AwaitRefusal(method)) if !self.documents.is_known(&path) => {
                    self.await_refusal(method, &uri, until).await?;
                }
                (Some(_) | None, _) => {}
            }
            self.unsettled.remove(&path);
        }
        Ok(())
    }

    /// Sends a request about a file until it is refused.
    async fn await_refusal(&self, method: &str, uri: &str, until: Instant) -> Result<(), Fault> {
        loop {
            match self.client.request(method, &json!({ "uri": uri }), until).await {
                Ok(_) => {}
                Err(RequestError::Refused(error)) if error.is_transient() => {}
                Err(RequestError::Refused(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            timeout_at(until, sleep(REPEAT_PAUSE)).await.map_err(|_| Fault::TimedOut)?;
        }
    }

    /// Waits until something that the server sent is found.
    pub(crate) async fn observe<T>(
        &self,
        until: Instant,
        find: impl Fn(&Observed) -> Option<T>,
    ) -> Result<T, Fault> {
        let mut changes = self.observed.changes();
        loop {
            changes.mark_unchanged();
            if let Some(found) = find(&self.observed) {
                return Ok(found);
            }
            if self.is_closed() {
                return Err(Fault::Ended("the connection is closed".into()));
            }
            if Instant::now() >= until {
                return Err(Fault::TimedOut);
            }
            // Neither the end of the connection nor a silence that means something is a change.
            let next = until.min(Instant::now() + LOOK_AGAIN);
            let _ = timeout_at(next, changes.changed()).await;
        }
    }

    async fn unreadable(&self, file: &Path) -> QueryError {
        let path = file.to_owned();
        match self.files.try_clone() {
            Ok(files) => {
                let read = blocking(move || ReadFile::read(&files, &path)).await;
                read.err().unwrap_or(QueryError::NotText { path: file.to_owned() })
            }
            Err(error) => error.into(),
        }
    }

    /// Waits until no work is pending. Returns the work that still is when the time is over.
    async fn wait_until_ready(
        &self,
        reports: bool,
        until: Instant,
    ) -> Result<Option<PendingWork>, Fault> {
        let is_ready = |observed: &Observed| observed.pending(reports).is_none().then_some(());
        match self.observe(until, is_ready).await {
            Ok(()) => Ok(None),
            Err(Fault::TimedOut) => Ok(self.observed.pending(reports)),
            Err(fault) => Err(fault),
        }
    }

    /// Returns the reason why an answer may lack something, if there is one.
    fn incompleteness<Q: Query>(&self, query: &Q, is_cut: bool, reports: bool) -> Option<String> {
        if let Some(failure) = self.observed.failure() {
            return Some(failure);
        }
        if !query.concerns_other_files(self.definition) {
            return None;
        }
        if let Some(doubt) = self.observed.doubt(reports) {
            return Some(doubt.to_owned());
        }
        if is_cut {
            return Some("the workspace has files that could not be listed".to_owned());
        }
        let condition = self.definition.completeness.filter(|_| !reports);
        condition.map(|condition| condition.otherwise.to_owned())
    }

    fn unanswered(&self, reports: bool) -> PendingWork {
        let nothing = PendingWork { what: "the answer".to_owned(), estimate: None };
        self.observed.pending(reports).unwrap_or(nothing)
    }

    fn not_ready<T>(&self, pending: PendingWork) -> Reply<T> {
        let PendingWork { what, estimate } = pending;
        Reply::NotReady(NotReady { server: self.definition.name, pending: what, estimate })
    }

    /// Returns an open document.
    pub(crate) fn document(&self, path: &Path) -> Result<&OpenDocument, Fault> {
        self.documents.open(path).ok_or(Fault::Stale)
    }

    /// Returns the path of a URI relative to the workspace; the error is the path or URI of anything else.
    pub(crate) fn relative(&self, uri: &str) -> Result<PathBuf, PathBuf> {
        let Some(path) = uri::to_path(uri) else { return Err(uri.into()) };
        // A path that goes up may lead anywhere, also if it begins inside.
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        match path.strip_prefix(self.files.path()) {
            Ok(relative) if !goes_up => Ok(relative.to_owned()),
            Ok(_) | Err(_) => Err(path),
        }
    }

    /// Reads files of the workspace, each of which has to be as the server has it. A file that cannot be read, or is
    /// no text, is left out.
    pub(crate) async fn read(
        &self,
        paths: BTreeSet<PathBuf>,
    ) -> Result<BTreeMap<PathBuf, ReadFile>, Fault> {
        let files = self.files.try_clone().map_err(QueryError::from)?;
        let work = move || {
            let read = paths.into_iter().filter_map(|path| {
                let read = ReadFile::read(&files, &path).ok()?;
                Some((path, read))
            });
            Ok::<BTreeMap<_, _>, QueryError>(read.collect())
        };
        let read = blocking(work).await?;
        if read.iter().all(|(path, read)| self.documents.agrees(path, read)) {
            Ok(read)
        } else {
            Err(Fault::Stale)
        }
    }

    /// Sends the text of an open document again, and returns its new version.
    pub(crate) async fn send_again(&mut self, path: &Path, until: Instant) -> Result<i64, Fault> {
        let reserving = timeout_at(until, self.client.reserve(1));
        let mut batch = reserving.await.map_err(|_| Fault::TimedOut)??;
        self.documents.send_again(path, &mut batch).ok_or(Fault::Stale)
    }

    /// Returns whether any file has changed since the text of an open document was sent.
    pub(crate) fn has_changed_since_sending(&self, path: &Path) -> Result<bool, Fault> {
        Ok(self.document(path)?.sent < self.documents.changed())
    }
}

/// Returns whether the project has what the server reports work about. Blocks.
fn reports_work(definition: &ServerDefinition, files: &Root, file: &Path) -> bool {
    match definition.completeness {
        Some(completeness) if !completeness.files.is_empty() => {
            project::has_above(files, file, completeness.files)
        }
        Some(_) => false,
        None => true,
    }
}

#[cfg(test)]
mod tests;
