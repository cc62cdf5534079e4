//! A service with everything that belongs to it, in a directory of its own.

use std::sync::Arc;
use std::time::Duration;

use carrel_config::{Environment, OperatorPolicy, TierChoice};
use carrel_domain::{ByteSize, SystemClock, TaskId, WorkspaceId};
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerMode, RunnerOptions, SandboxMode};
use carrel_service::repository::DEFAULT_HOSTS;
use carrel_service::{
    BusHealth, EventHub, FollowItem, FreeSpaceReserve, HostedWorkspaces, HostedWorkspacesOptions,
    OnEnqueueFailure, RedisBus, Sweep, TaskSubmission, Tasks, Worker, WorkerOptions, WorkspaceSpec,
};
use carrel_store::{Event, EventKind, Sqlite, SqliteOptions, Store, Task};
use carrel_tools::{AuditLog, GitOptions};
use carrel_wire::TaskRequest;
use carrel_workspace::Quota;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::redis::RedisServer;

/// Long enough for anything that is to happen soon on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct TestEnvironment {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) tasks: Tasks,
    pub(crate) workspaces: HostedWorkspaces,
    pub(crate) workspace: WorkspaceId,
}

/// A worker that runs until it is stopped.
pub(crate) struct Working {
    pub(crate) stop: CancellationToken,
    pub(crate) done: JoinHandle<()>,
}

/// The tasks of a service as one of several processes sees them.
pub(crate) struct Joined {
    pub(crate) tasks: Tasks,
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) stop: DropGuard,
}

impl Joined {
    /// Waits until Redis is there, or not.
    pub(crate) async fn until_well(&self, well: bool) {
        let waiting = async {
            while (self.tasks.bus().health() == BusHealth::Available) != well {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect("it changes soon");
    }
}

impl TestEnvironment {
    pub(crate) async fn new() -> Self {
        Self::with_quota(ByteSize::mib(64)).await
    }

    pub(crate) async fn with_quota(quota: ByteSize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("carrel.db");
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&SqliteOptions { path }).unwrap());
        let clock = Arc::new(SystemClock);
        let home = std::env::var("HOME").unwrap_or_default();
        let environment = Environment::from_pairs([("HOME".to_owned(), home)]);
        let commands = LazySpawner::new(env!("CARGO_BIN_EXE_carrel-service-spawner").into());
        let runner = Runner::new(RunnerOptions {
            spawner: commands.clone(),
            policy: OperatorPolicy::default(),
            environment: environment.clone(),
            sandbox: SandboxMode::Enforced(TierChoice::Auto),
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: AuditLog::none(),
        });
        let options = HostedWorkspacesOptions {
            root: directory.path().join("workspaces"),
            volume: None,
            quota: Quota { bytes: quota, files: None },
            runner,
            commands,
            environment,
            git: GitOptions::default(),
            reserve: FreeSpaceReserve::Bytes(ByteSize::bytes(0)),
            clock: clock.clone(),
        };
        let workspaces = HostedWorkspaces::open(options, Arc::clone(&store)).unwrap();
        let workspace = WorkspaceId::generate();
        workspaces.provision(WorkspaceSpec::with_defaults(workspace)).await.unwrap();
        let tasks = Tasks::new(store, EventHub::default(), clock);
        Self { directory, tasks, workspaces, workspace }
    }

    /// Returns the same service as another process sees it that is joined to it by Redis alone.
    pub(crate) fn joined(&self, server: &RedisServer, failure: OnEnqueueFailure) -> Joined {
        let stop = CancellationToken::new();
        let (bus, service) = RedisBus::new(&server.address(), stop.clone()).unwrap();
        let feed = EventHub::default();
        tokio::spawn(service.run(feed.clone(), stop.clone()));
        let tasks = Tasks::new(Arc::clone(self.tasks.store()), feed, Arc::new(SystemClock));
        let tasks = tasks.with_bus(Arc::new(bus), failure);
        Joined { tasks, stop: stop.drop_guard() }
    }

    /// Starts a worker.
    pub(crate) fn work(&self) -> Working {
        self.work_as(WorkerOptions::new(3))
    }

    pub(crate) fn work_as(&self, options: WorkerOptions) -> Working {
        let worker = Worker::new(options, self.tasks.clone(), self.workspaces.clone());
        let stop = CancellationToken::new();
        let running = stop.clone();
        let done = tokio::spawn(async move { worker.run(running).await });
        Working { stop, done }
    }

    pub(crate) fn sweep(&self) -> Sweep {
        Sweep::new(self.tasks.clone(), Duration::from_hours(24))
    }

    pub(crate) async fn submit(&self, body: Value) -> TaskId {
        let request: TaskRequest = serde_json::from_value(body).unwrap();
        let hosts = DEFAULT_HOSTS.map(str::to_owned);
        let submit = TaskSubmission::check(request, self.workspace, &hosts).unwrap();
        self.tasks.submit(submit, "test").await.unwrap().task.id
    }

    /// Waits for the end of a task and returns it with its events.
    pub(crate) async fn end_of(&self, id: TaskId) -> (Task, Vec<Arc<Event>>) {
        let following = self.tasks.follow(id, 0).filter_map(async |followed| match followed {
            FollowItem::Event(event) => Some(event),
            FollowItem::Idle => None,
        });
        let events = tokio::time::timeout(DEADLINE, following.collect::<Vec<_>>()).await;
        let events = events.expect("the task ends soon");
        let task = self.tasks.find(self.workspace, id).await.unwrap();
        assert!(task.status.is_terminal(), "{task:?}");
        (task, events)
    }

    /// Submits a task, waits for it and returns it with its events.
    pub(crate) async fn run(&self, body: Value) -> (Task, Vec<Arc<Event>>) {
        let working = self.work();
        let ended = self.end_of(self.submit(body).await).await;
        working.stop.cancel();
        working.done.await.unwrap();
        ended
    }

    /// Waits until a task has an event.
    pub(crate) async fn until(&self, id: TaskId, is_it: impl Fn(&Event) -> bool) {
        let mut following = Box::pin(self.tasks.follow(id, 0));
        let waiting = async {
            while let Some(followed) = following.next().await {
                if matches!(followed, FollowItem::Event(event) if is_it(&event)) {
                    return;
                }
            }
            panic!("the task ended without saying so");
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect("the task says so soon");
    }

    pub(crate) fn path(&self, inside: &str) -> std::path::PathBuf {
        self.directory.path().join("workspaces").join(self.workspace.to_string()).join(inside)
    }
}

pub(crate) fn steps(task: &Task) -> Vec<(String, String)> {
    let steps = task.result.as_ref().unwrap()["steps"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    steps.map(|step| (text(&step["action"]), text(&step["status"]))).collect()
}

pub(crate) fn statuses(events: &[Arc<Event>]) -> Vec<&str> {
    let changes = events.iter().filter(|event| event.kind == EventKind::StatusChanged);
    changes.map(|event| event.data["status"].as_str().unwrap()).collect()
}

pub(crate) fn is_line(text: &str) -> impl Fn(&Event) -> bool {
    move |event| event.kind == EventKind::LogLine && event.data["line"] == text
}
