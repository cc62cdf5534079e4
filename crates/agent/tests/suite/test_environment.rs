use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_agent::{
    AgentFailure, Event, OpenError, OpenRequest, Session, Teardown, ToolCall, ToolResult, Tools,
};
use carrel_config::{
    ConductorConfig, Environment, OperatorPolicy, TierChoice, ValidationScope, Workflow,
};
use carrel_domain::{ByteSize, Identifier, SystemClock, Tier};
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerMode, RunnerOptions, SandboxMode};
use carrel_testkit::processes::processes_with;
use carrel_workspace::{
    Create, DEFAULT_KEEP_UNSAVED, Hooks, Quota, RootOptions, Workspace, Workspaces,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long anything that happens at once may take on a machine that is busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A root with one workspace, and an operator whose home is beside it.
pub(crate) struct TestEnvironment {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) runner: Arc<Runner>,
    pub(crate) workspace: Arc<Workspace>,
    /// Holds the program where other users can start it.
    reachable: Option<tempfile::TempDir>,
}

/// A session with what was heard of it.
pub(crate) struct Opened {
    pub(crate) session: Box<dyn Session>,
    pub(crate) heard: ProcessEvent,
    pub(crate) stop: CancellationToken,
    listening: tokio::task::JoinHandle<()>,
}

/// Events as they arrive.
#[derive(Clone, Default)]
pub(crate) struct ProcessEvent(Arc<Mutex<Vec<Event>>>);

impl TestEnvironment {
    pub(crate) async fn new() -> Self {
        Self::with(tier(), &[]).await
    }

    /// Makes a environment with variables of the operator's.
    pub(crate) async fn with(tier: TierChoice, variables: &[(&str, &str)]) -> Self {
        Self::with_spawner(spawner(), tier, variables).await
    }

    async fn with_spawner(program: PathBuf, tier: TierChoice, variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let usual = [
            ("HOME".to_owned(), home.to_str().unwrap().to_owned()),
            ("PATH".to_owned(), format!("{}/bin:/usr/bin:/bin", home.display())),
        ];
        let more = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::from_pairs(usual.into_iter().chain(more));
        let commands = LazySpawner::new(program);
        let runner = Runner::new(RunnerOptions {
            spawner: commands.clone(),
            policy: OperatorPolicy::default(),
            environment: environment.clone(),
            sandbox: SandboxMode::Enforced(tier),
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: carrel_audit::AuditLog::none(),
        });
        let options = RootOptions {
            root: directory.path().join("root"),
            home: None,
            quota: Quota { bytes: ByteSize::mib(100), files: Some(10_000) },
            keep_unsaved: DEFAULT_KEEP_UNSAVED,
            clock: Arc::new(SystemClock),
        };
        let workspaces = Workspaces::open_or_create(&options).unwrap();
        let hooks = Hooks::none(commands);
        let identifier = Identifier::parse("CAR-1").unwrap();
        workspaces.create(Create::new(identifier.clone()), &hooks).await.unwrap();
        let workspace = Arc::new(workspaces.open(&identifier).await.unwrap());
        Self { directory, runner: Arc::new(runner), workspace, reachable: None }
    }

    /// Makes a environment of root's whose workspace belongs to somebody else.
    pub(crate) async fn given_away(tier: Tier) -> Option<Self> {
        const SOMEBODY: u32 = 2_000_000_000;
        if !carrel_skip::needs_user(carrel_skip::User::Root, env!("CARGO_MANIFEST_DIR")) {
            return None;
        }
        // The build directory may be closed to other users.
        let reachable = tempfile::tempdir().unwrap();
        std::fs::set_permissions(reachable.path(), Permissions::from_mode(0o755)).unwrap();
        let program = reachable.path().join("carrel-agent-spawner");
        std::fs::copy(spawner(), &program).unwrap();
        let mut test_env = Self::with_spawner(program, TierChoice::Only(tier), &[]).await;
        test_env.reachable = Some(reachable);
        let workspace = test_env.workspace.files().path();
        for above in workspace.ancestors().skip(1).take(2) {
            std::fs::set_permissions(above, Permissions::from_mode(0o711)).unwrap();
        }
        std::os::unix::fs::chown(workspace, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        Some(test_env)
    }

    /// Returns a path inside the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.workspace.files().path().join(name)
    }

    /// Returns a path in the home of the workspace's commands, which it makes.
    pub(crate) fn own_home(&self, name: &str) -> PathBuf {
        let key = self.workspace.record().key.as_str();
        let home = self.workspace.root().join(".carrel/homes").join(key);
        std::fs::create_dir_all(&home).unwrap();
        home.join(name)
    }

    /// Returns a path below the operator's home.
    pub(crate) fn home(&self, name: &str) -> PathBuf {
        self.directory.path().join("home").join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.inside(name)).unwrap()
    }

    /// Puts a program into the operator's own directory of programs.
    pub(crate) fn install(&self, name: &str, script: &str) {
        let path = self.home("bin").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    /// Opens a session with an agent that a workflow file describes.
    pub(crate) async fn open(&self, yaml: &str) -> Result<Opened, AgentFailure> {
        self.open_with(yaml, Arc::new(NoTools), None).await
    }

    pub(crate) async fn open_config(
        &self,
        config: &ConductorConfig,
    ) -> Result<Opened, AgentFailure> {
        self.open_agent(config, Arc::new(NoTools), None).await
    }

    pub(crate) async fn open_with(
        &self,
        yaml: &str,
        tools: Arc<dyn Tools>,
        thread: Option<String>,
    ) -> Result<Opened, AgentFailure> {
        self.open_agent(&config(yaml), tools, thread).await
    }

    async fn open_agent(
        &self,
        config: &ConductorConfig,
        tools: Arc<dyn Tools>,
        thread: Option<String>,
    ) -> Result<Opened, AgentFailure> {
        let agent = carrel_agent::from_config(config);
        let (events, mut arriving) = mpsc::channel(16);
        let heard = ProcessEvent::default();
        let keeping = heard.clone();
        let listening = tokio::spawn(async move {
            while let Some(event) = arriving.recv().await {
                keeping.0.lock().unwrap().push(event);
            }
        });
        let stop = CancellationToken::new();
        let opening = OpenRequest {
            runner: Arc::clone(&self.runner),
            workspace: Arc::clone(&self.workspace),
            title: "CAR-1: A title".to_owned(),
            thread,
            environment: vec![("CARREL_ISSUE_IDENTIFIER".to_owned(), "CAR-1".to_owned())],
            tools,
            events,
            stop: stop.clone(),
        };
        let opened = agent.open(opening).await;
        let session = opened.map_err(|OpenError { failure, teardown }| {
            assert_eq!(teardown, Teardown::Complete);
            failure
        })?;
        Ok(Opened { session, heard, stop, listening })
    }

    /// Takes one turn with a plain command, closes the session, and returns what came of it.
    pub(crate) async fn command(
        &self,
        script: &str,
    ) -> (Result<String, AgentFailure>, ProcessEvent) {
        let mut opened = self.open(&command(script, "")).await.unwrap();
        let ended = opened.session.turn("the prompt").await;
        (ended, opened.close().await)
    }
}

impl Opened {
    /// Closes the session, and returns all that was heard of it.
    pub(crate) async fn close(self) -> ProcessEvent {
        assert_eq!(self.session.close().await, Teardown::Complete);
        self.listening.await.unwrap();
        self.heard
    }
}

impl ProcessEvent {
    pub(crate) fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// Returns what was said with events of a kind.
    pub(crate) fn said(&self, wanted: &str) -> Vec<String> {
        let all = self.all().into_iter();
        all.filter_map(|event| match event {
            Event::Other { kind, message } if kind == wanted => Some(message.unwrap_or_default()),
            _ => None,
        })
        .collect()
    }

    /// Waits until something was heard.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&Event) -> bool) {
        let waiting = async {
            while !self.all().iter().any(&wanted) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let found = tokio::time::timeout(DEADLINE, waiting).await;
        found.unwrap_or_else(|_| panic!("not heard: {:?}", self.all()));
    }
}

/// Returns the tier that most tests run in: the best, or the one that `make test-as-user` asks for.
fn tier() -> TierChoice {
    match std::env::var("CARREL_TEST_TIER").as_deref() {
        Ok("landlock") => TierChoice::Only(Tier::Landlock),
        Ok(other) => panic!("there is no tier {other}"),
        Err(_) => TierChoice::Auto,
    }
}

/// Returns the program that starts commands. `make test-as-user` copies it beside the tests.
fn spawner() -> PathBuf {
    let beside = std::env::current_exe().unwrap().with_file_name("carrel-agent-spawner");
    let built = PathBuf::from(env!("CARGO_BIN_EXE_carrel-agent-spawner"));
    if beside.is_file() { beside } else { built }
}

/// Describes a plain command.
pub(crate) fn command(script: &str, more: &str) -> String {
    format!("agent: {{kind: command, command: {}}}\n{more}", json!(script))
}

pub(crate) fn config(yaml: &str) -> ConductorConfig {
    let text = format!("---\ntracker: {{kind: local}}\n{yaml}\n---\n");
    let (path, environment) = (Path::new("/w/WORKFLOW.md"), Environment::default());
    let workflow =
        Workflow::parse(text.as_bytes(), path, &environment, ValidationScope::Everything).unwrap();
    workflow.config.conductor.unwrap()
}

/// Waits until a process has a word in its arguments.
///
/// A session has begun when its process was made; that becomes the agent's program a moment later.
pub(crate) async fn until_there_is(word: &str) {
    let waiting = async {
        while processes_with(word) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the agent never started");
}

#[derive(Debug)]
pub(crate) struct NoTools;

#[async_trait::async_trait]
impl Tools for NoTools {
    fn list(&self) -> Vec<Value> {
        Vec::new()
    }

    async fn call(&self, call: ToolCall) -> ToolResult {
        ToolResult::failed(format!("there is no tool {}", call.name))
    }
}

/// A tool that remembers what it was used for, one that fails, and one that waits for its end.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    kept: Mutex<Vec<Value>>,
    /// What is configured later.
    pub(crate) later: Mutex<Vec<Value>>,
    /// How many wait, and how many have waited.
    pub(crate) waiting: AtomicUsize,
    pub(crate) waited: AtomicUsize,
}

impl Notes {
    pub(crate) fn kept(&self) -> Vec<Value> {
        self.kept.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Tools for Notes {
    fn list(&self) -> Vec<Value> {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let tool = |name: &str, about: &str| json!({"name": name, "description": about, "inputSchema": schema});
        let mut tools = vec![tool("note", "Keeps a note."), tool("fail", "Fails.")];
        tools.push(tool("wait", "Waits."));
        tools.extend(self.later.lock().unwrap().iter().cloned());
        tools
    }

    async fn call(&self, call: ToolCall) -> ToolResult {
        match call.name.as_str() {
            "fail" => ToolResult::failed(json!({"error": {"code": "bad_arguments"}}).to_string()),
            "wait" => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                call.cancel.cancelled().await;
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                self.waited.fetch_add(1, Ordering::SeqCst);
                ToolResult::failed("cancelled")
            }
            _ => {
                self.kept.lock().unwrap().push(call.arguments);
                ToolResult::done("noted as number 7")
            }
        }
    }
}
