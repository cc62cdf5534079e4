use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrel_agent::{
    Agent, AgentFailure, Event, FailureKind, OpenError, OpenRequest, Session, Teardown, Tokens,
    ToolCall,
};
use carrel_conductor::drive::{
    Conductor, Factories, Handle, Options, PollMode, Report, StartError,
};
use carrel_conductor::{IssueId, Stage, State};
use carrel_config::{Environment, OperatorPolicy, ValidationScope, Workflow};
use carrel_domain::{SystemClock, Timestamp};
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerMode, RunnerOptions, SandboxMode};
use carrel_store::{
    IssueChange, Journal, JournalRecord, NewIssue, RunFilter, RunRecord, Sqlite, SqliteOptions,
    StoreError, Tenure, TenureOutcome,
};
use carrel_tracker::{
    Issue, LocalTracker, Tool, ToolReply, Tracker, TrackerError, TrackerErrorKind,
};
use carrel_workspace::TrackerName;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long something may take to come true on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// What an agent does with a prompt.
pub(crate) type Script = dyn Fn(Turn) -> TurnScript + Send + Sync;

/// A turn that is to be taken.
pub(crate) struct Turn {
    pub(crate) number: u64,
    pub(crate) prompt: String,
    pub(crate) issue: String,
    pub(crate) directory: PathBuf,
}

/// What an agent does in a turn.
#[derive(Clone)]
pub(crate) enum TurnScript {
    Answer(&'static str),
    /// An answer in words that no turn had before.
    NewWords,
    Fail(FailureKind, &'static str),
    /// Nothing, until somebody stops it.
    Hang,
    /// Moves its issue with the tracker's tool.
    Move(&'static str),
    /// Comments on its issue with the tracker's tool.
    Comment,
    /// Looks at its issue with the tracker's tool.
    Look,
    /// Works for a while and tells of it.
    Busy(Duration),
    Panic,
}

/// What agents were seen to do.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) prompts: Mutex<Vec<(String, String)>>,
    pub(crate) threads: Mutex<Vec<Option<String>>>,
    pub(crate) tools: Mutex<Vec<String>>,
    pub(crate) environment: Mutex<BTreeMap<String, String>>,
    /// The turns before which a snapshot was to be taken.
    pub(crate) snapshots: Mutex<Vec<(String, u64)>>,
    pub(crate) closed: AtomicUsize,
    /// What is left of the next agent, which cannot be opened.
    pub(crate) unopened: Mutex<Option<Teardown>>,
    working: Mutex<BTreeMap<String, usize>>,
    pub(crate) most_at_once: AtomicUsize,
    pub(crate) doubled: AtomicBool,
}

impl Seen {
    /// Tells whether there is still something to be learned from another prompt.
    fn takes_notes(&self) -> bool {
        self.prompts.lock().unwrap().len() < 1000
    }
}

pub(crate) struct Fake {
    script: Arc<Script>,
    seen: Arc<Seen>,
    /// Whether a conversation can be taken up again.
    remembers: bool,
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

struct Speaking {
    script: Arc<Script>,
    seen: Arc<Seen>,
    opening: OpenRequest,
    issue: String,
    thread: Option<String>,
    turns: u64,
}

#[async_trait::async_trait]
impl Agent for Fake {
    async fn open(&self, opening: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let issue = opening.workspace.record().identifier.to_string();
        if let Some(teardown) = self.seen.unopened.lock().unwrap().take() {
            let failure =
                AgentFailure { kind: FailureKind::Exited, message: "no start".to_owned() };
            return Err(OpenError { failure, teardown });
        }
        let at_once = {
            let mut working = self.seen.working.lock().unwrap();
            let count = working.entry(issue.clone()).or_default();
            *count += 1;
            if *count > 1 {
                self.seen.doubled.store(true, Ordering::SeqCst);
            }
            working.values().sum()
        };
        self.seen.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        if self.seen.takes_notes() {
            self.seen.threads.lock().unwrap().push(opening.thread.clone());
        }
        let names = opening.tools.list();
        let names = names.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        *self.seen.tools.lock().unwrap() = names.collect();
        *self.seen.environment.lock().unwrap() = opening.environment.iter().cloned().collect();
        let new = format!("thread-{issue}");
        let thread = self.remembers.then(|| opening.thread.clone().unwrap_or(new));
        let (script, seen) = (Arc::clone(&self.script), Arc::clone(&self.seen));
        Ok(Box::new(Speaking { script, seen, opening, issue, thread, turns: 0 }))
    }
}

#[async_trait::async_trait]
impl Session for Speaking {
    fn thread(&self) -> Option<String> {
        self.thread.clone()
    }

    async fn turn(&mut self, prompt: &str) -> Result<String, AgentFailure> {
        self.turns += 1;
        if self.seen.takes_notes() {
            self.seen.prompts.lock().unwrap().push((self.issue.clone(), prompt.to_owned()));
        }
        let thread = self.thread.clone().unwrap_or_default();
        let session = format!("{thread}-{}", self.turns);
        let told = [
            Event::SessionStarted { session, thread, pid: None },
            Event::Usage(Tokens { input: 3, output: 4, total: 7 * self.turns }),
            Event::Other { kind: "message".to_owned(), message: Some("busy".to_owned()) },
        ];
        for event in told {
            let _ = self.opening.events.send(event).await;
        }
        let turn = Turn {
            number: self.turns,
            prompt: prompt.to_owned(),
            issue: self.issue.clone(),
            directory: self.opening.workspace.files().path().to_owned(),
        };
        match (self.script)(turn) {
            TurnScript::Answer(answer) => Ok(answer.to_owned()),
            TurnScript::Fail(kind, message) => {
                Err(AgentFailure { kind, message: message.to_owned() })
            }
            TurnScript::Hang => {
                self.opening.stop.cancelled().await;
                Err(AgentFailure { kind: FailureKind::Stopped, message: "told to".to_owned() })
            }
            TurnScript::NewWords => {
                Ok(format!("Nothing is left to do, at {:?}.", std::time::SystemTime::now()))
            }
            TurnScript::Move(state) => {
                self.call("issue_move", serde_json::json!({ "state": state })).await;
                Ok(format!("moved to {state}"))
            }
            TurnScript::Comment => {
                self.call("issue_comment", serde_json::json!({ "body": "half done" })).await;
                Ok("commented".to_owned())
            }
            TurnScript::Look => {
                self.call("issue_show", serde_json::json!({})).await;
                Ok("looked".to_owned())
            }
            TurnScript::Busy(time) => {
                for step in 0..10 {
                    tokio::time::sleep(time / 10).await;
                    let (kind, message) = ("step".to_owned(), Some(step.to_string()));
                    let _ = self.opening.events.send(Event::Other { kind, message }).await;
                }
                Ok("done".to_owned())
            }
            TurnScript::Panic => panic!("an agent that breaks"),
        }
    }

    async fn close(self: Box<Self>) -> Teardown {
        self.seen.closed.fetch_add(1, Ordering::SeqCst);
        Teardown::Complete
    }
}

impl Speaking {
    async fn call(&self, tool: &str, arguments: Value) {
        let call = ToolCall::new(tool, arguments, CancellationToken::new());
        let told = self.opening.tools.call(call).await;
        assert!(!told.is_error, "{told:?}");
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        *self.seen.working.lock().unwrap().get_mut(&self.issue).unwrap() -= 1;
    }
}

/// What the title of an issue begins with that is called something else than its number.
pub(crate) const CALLED: &str = "called ";

/// The tracker that is built in, which can be away, and whose issues can be called anything.
#[derive(Debug)]
struct Moody {
    inner: LocalTracker,
    away: Arc<AtomicBool>,
}

fn called(issue: Issue) -> Issue {
    match issue.title.strip_prefix(CALLED).map(str::to_owned) {
        Some(identifier) => Issue { identifier, ..issue },
        None => issue,
    }
}

impl Moody {
    fn fault(&self) -> Result<(), TrackerError> {
        let away = self.away.load(Ordering::SeqCst);
        let fault = away.then(|| TrackerError::new(TrackerErrorKind::Request, "nobody answers"));
        fault.map_or(Ok(()), Err)
    }
}

#[async_trait::async_trait]
impl Tracker for Moody {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        self.fault()?;
        Ok(self.inner.by_states(states).await?.into_iter().map(called).collect())
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        self.fault()?;
        Ok(self.inner.by_ids(ids).await?.into_iter().map(called).collect())
    }

    fn tools(&self) -> Vec<Tool> {
        self.inner.tools()
    }

    async fn call(&self, issue: &Issue, tool: &str, arguments: Value) -> ToolReply {
        self.inner.call(issue, tool, arguments).await
    }
}

/// A journal that takes no new runs for a while, or nothing at all.
#[derive(Debug)]
struct Flaky {
    inner: Arc<Sqlite>,
    stuck: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Journal for Flaky {
    async fn acquire(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError> {
        self.inner.acquire(scope, holder, now).await
    }

    async fn append(
        &self,
        tenure: &Tenure,
        notes: Vec<JournalRecord>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let begins = notes.iter().any(|note| matches!(note, JournalRecord::RunStarted(_)));
        let stuck = self.stuck.load(Ordering::SeqCst) && begins;
        if stuck || self.closed.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::Full("no room".into()));
        }
        self.inner.append(tenure, notes, now).await
    }

    async fn entries(&self, scope: &str) -> Result<Vec<(String, Value)>, StoreError> {
        self.inner.entries(scope).await
    }

    async fn ledger(&self, scope: &str) -> Result<Option<Value>, StoreError> {
        self.inner.ledger(scope).await
    }

    async fn last_run(&self, scope: &str) -> Result<Option<u64>, StoreError> {
        self.inner.last_run(scope).await
    }

    async fn runs(&self, scope: &str, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.runs(scope, filter).await
    }

    async fn delete_runs(&self, tenure: &Tenure, before: Timestamp) -> Result<u64, StoreError> {
        self.inner.delete_runs(tenure, before).await
    }
}

/// A data directory, a workflow file and agents.
pub(crate) struct Harness {
    pub(crate) directory: TempDir,
    pub(crate) seen: Arc<Seen>,
    pub(crate) away: Arc<AtomicBool>,
    /// Whether the journal takes no new runs.
    pub(crate) stuck: Arc<AtomicBool>,
    /// Whether the journal takes nothing.
    pub(crate) closed: Arc<AtomicBool>,
    /// The number of appends that the journal refused.
    pub(crate) refused: Arc<AtomicUsize>,
    script: Arc<Script>,
    remembers: bool,
    /// What the tracker is called.
    name: String,
}

/// A conductor at work.
pub(crate) struct Working {
    pub(crate) handle: Handle,
    pub(crate) stop: CancellationToken,
    task: JoinHandle<Report>,
}

impl Harness {
    pub(crate) fn new(script: impl Fn(Turn) -> TurnScript + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let harness = Self {
            directory,
            seen: Arc::default(),
            away: Arc::default(),
            stuck: Arc::default(),
            closed: Arc::default(),
            refused: Arc::default(),
            script: Arc::new(script),
            remembers: true,
            name: "local".to_owned(),
        };
        harness.write("");
        harness
    }

    /// Calls the tracker something else.
    pub(crate) fn called(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    pub(crate) fn forgetful(self) -> Self {
        Self { remembers: false, ..self }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the workflow file, with more lines in front.
    pub(crate) fn write(&self, more: &str) {
        self.write_polling(50, more);
    }

    /// Writes it with another time between two looks at the tracker, in milliseconds.
    pub(crate) fn write_polling(&self, interval: u64, more: &str) {
        let root = if more.contains("root:") {
            String::new()
        } else {
            format!("workspace: {{root: {}}}\n", self.path("ws").display())
        };
        let text = format!(
            "---\ntracker: {{kind: local}}\npolling: {{interval_ms: {interval}}}\n{root}{more}\n---\nDo {{{{ issue.identifier }}}}, attempt {{{{ attempt }}}}."
        );
        std::fs::write(self.path("WORKFLOW.md"), text).unwrap();
    }

    pub(crate) fn store(&self) -> Arc<Sqlite> {
        let path = self.path("carrel.db");
        Arc::new(Sqlite::open(&SqliteOptions { path }).unwrap())
    }

    pub(crate) fn tracker(&self) -> LocalTracker {
        let terminal = ["Done".to_owned(), "Closed".to_owned()];
        LocalTracker::new(self.store(), Arc::new(SystemClock), &terminal)
    }

    pub(crate) async fn issue(&self, title: &str) -> String {
        let (title, state) = (title.to_owned(), "Todo".to_owned());
        let new = NewIssue { title, state, ..NewIssue::default() };
        self.tracker().add(new).await.unwrap().identifier
    }

    pub(crate) async fn shift(&self, issue: &str, state: &str) {
        let change = IssueChange { state: Some(state.to_owned()), ..IssueChange::default() };
        self.tracker().change(issue, change).await.unwrap();
    }

    pub(crate) async fn open(
        &self,
        poll_mode: PollMode,
    ) -> Result<(Conductor, CancellationToken), StartError> {
        let environment = Environment::process();
        let workflow =
            Workflow::load(&self.path("WORKFLOW.md"), &environment, ValidationScope::Everything)
                .unwrap();
        let commands = LazySpawner::new("/nonexistent".into());
        let runner = Runner::new(RunnerOptions {
            spawner: commands.clone(),
            policy: OperatorPolicy::default(),
            environment,
            sandbox: SandboxMode::Off,
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: carrel_audit::AuditLog::none(),
        });
        let store = self.store();
        let (issues, away) = (Arc::clone(&store), Arc::clone(&self.away));
        let (script, seen) = (Arc::clone(&self.script), Arc::clone(&self.seen));
        let recorded = Arc::clone(&self.seen);
        let remembers = self.remembers;
        let stop = CancellationToken::new();
        let factories = Factories {
            tracker: Arc::new(move |config| {
                let terminal = &config.tracker.terminal_states;
                let inner =
                    LocalTracker::new(Arc::clone(&issues) as _, Arc::new(SystemClock), terminal);
                Ok(Arc::new(Moody { inner, away: Arc::clone(&away) }))
            }),
            agent: Arc::new(move |_| {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                Arc::new(Fake { script, seen, remembers })
            }),
            tools: Arc::new(|_| Box::pin(async { Ok(None) })),
            snapshots: Arc::new(move |request| {
                let turn = request.turn;
                recorded.snapshots.lock().unwrap().push((request.issue, turn));
                Box::pin(async move {
                    match turn {
                        1 => Err("the disk is full".to_owned()),
                        turn => Ok(Some(format!("@{turn}"))),
                    }
                })
            }),
        };
        let conductor = Conductor::open(Options {
            workflow,
            environment: Environment::process,
            journal: Arc::new(Flaky {
                inner: store,
                stuck: Arc::clone(&self.stuck),
                closed: Arc::clone(&self.closed),
                refused: Arc::clone(&self.refused),
            }),
            tracker_name: TrackerName { name: self.name.clone(), location: "here".to_owned() },
            clock: Arc::new(SystemClock),
            runner: Arc::new(runner),
            commands,
            factories,
            data: self.directory.path().to_owned(),
            poll_mode,
            stop: stop.clone(),
        });
        Ok((conductor.await?, stop))
    }

    pub(crate) async fn start(&self) -> Working {
        let (conductor, stop) = self.open(PollMode::Continuous).await.unwrap();
        let handle = conductor.handle();
        Working { handle, stop, task: tokio::spawn(conductor.run()) }
    }

    pub(crate) async fn once(&self) -> Report {
        let (conductor, _stop) = self.open(PollMode::Once).await.unwrap();
        tokio::time::timeout(DEADLINE, conductor.run()).await.expect("it ends by itself")
    }

    pub(crate) fn prompts(&self) -> Vec<(String, String)> {
        self.seen.prompts.lock().unwrap().clone()
    }
}

impl Working {
    /// Waits until the state is as described.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition(&self.handle.state()) {
            assert!(
                Instant::now() < deadline,
                "never came true: {what}: {:#?}",
                self.handle.state()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn until_stage(&self, issue: &str, what: &str, is: impl Fn(&Stage) -> bool) {
        let id = IssueId(issue.to_owned());
        self.until(what, |state| state.issues.get(&id).is_some_and(|claimed| is(&claimed.stage)))
            .await;
    }

    /// Tells it to end, and waits for that.
    pub(crate) async fn end(self) -> Report {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) -> Report {
        tokio::time::timeout(DEADLINE, self.task).await.expect("it ends").unwrap()
    }

    /// Ends it in the middle of whatever it does, as a crash would.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}
