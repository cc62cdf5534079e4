//! What most tests begin with: workspaces with files, and an agent that calls tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use carrel_config::{Environment, OperatorPolicy, TierChoice};
use carrel_domain::WorkspaceAccess;
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle};
use carrel_tools::{
    AuditLog, AuditRecord, CallOptions, GitOptions, Interface, NamedWorkspace, Registry, Secrets,
    Session, SymbolIndexes, ToolResponse, ToolSelection, Toolbox, ToolboxOptions, WorkspaceEntry,
    Workspaces,
};
use serde_json::{Map, Value};

/// A user id that does not exist on this machine.
const UNKNOWN_USER: &str = "2000025909";

/// Workspaces in a directory of their own, with everything that serves them.
pub(crate) struct TestEnvironment {
    directory: tempfile::TempDir,
    pub(crate) registry: Registry,
    pub(crate) session: Arc<Session>,
    pub(crate) events: Receiver<AuditRecord>,
}

/// How a environment differs from the usual.
pub(crate) struct Setting {
    pub(crate) names: &'static [&'static str],
    pub(crate) access: WorkspaceAccess,
    pub(crate) tools: ToolSelection,
    pub(crate) secrets: &'static [(&'static str, &'static str)],
    pub(crate) git: GitOptions,
    pub(crate) tier: TierChoice,
    pub(crate) policy: OperatorPolicy,
    /// The time that an answer waits for the symbol index, if it is not the usual one.
    pub(crate) index_time: Option<Duration>,
    /// Looks at, and adds to, the directories before they are opened.
    pub(crate) prepare: fn(&Path),
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            names: &["main"],
            access: WorkspaceAccess::ReadWrite,
            tools: ToolSelection::ALL,
            secrets: &[],
            git: GitOptions::default(),
            tier: TierChoice::Auto,
            policy: OperatorPolicy::default(),
            index_time: None,
            prepare: |_| {},
        }
    }
}

impl TestEnvironment {
    /// Makes one workspace, called `main`.
    pub(crate) fn new() -> Self {
        Self::with(Setting::default())
    }

    pub(crate) fn with(setting: Setting) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        for name in setting.names {
            std::fs::create_dir(top.join(name)).unwrap();
        }
        (setting.prepare)(top);
        std::fs::create_dir(top.join("state")).unwrap();
        Self::serve(directory, setting)
    }

    /// Serves the same workspaces again, as a later process does, in a session with the saved state.
    pub(crate) fn restarted(self, setting: Setting) -> Self {
        let saved = self.session.remembered(self.registry.toolbox());
        let Self { directory, registry, session, events } = self;
        drop((registry, session, events));
        Self { session: Session::resumed("test", saved), ..Self::serve(directory, setting) }
    }

    fn serve(directory: tempfile::TempDir, setting: Setting) -> Self {
        let top = directory.path();
        let state = top.join("state");
        // Toolchains of the machine are found below the home directory of the user who runs the tests.
        let home = std::env::var("HOME").unwrap_or_default();
        let mut variables = vec![("HOME".to_owned(), home)];
        variables.extend(
            setting
                .secrets
                .iter()
                .map(|(name, value)| (format!("CARREL_SECRET_{name}"), (*value).to_owned())),
        );
        let environment = Environment::from_pairs(variables);
        let secrets = Secrets::new(&environment, None);
        let (sink, events) = AuditLog::to_receiver();
        let runner = Runner::new(RunnerOptions {
            spawner: LazySpawner::new(env!("CARGO_BIN_EXE_carrel-tools-spawner").into()),
            policy: setting.policy,
            environment,
            sandbox: SandboxMode::Enforced(setting.tier),
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: sink,
        });
        let workspace = |name: &&str| {
            let path = top.join(name);
            let handle = WorkspaceHandle::for_directory(&path, &state).unwrap();
            let access = WorkspaceAccess::ReadWrite;
            NamedWorkspace::new(WorkspaceEntry { name: (*name).to_owned(), path, access }, handle)
        };
        let workspaces = Workspaces::new(setting.names.iter().map(workspace).collect()).unwrap();
        let toolbox = Toolbox::new(ToolboxOptions {
            workspaces,
            runner,
            secrets,
            access: setting.access,
            network: carrel_domain::NetworkRequest::default(),
            git: setting.git,
            reply_bytes: carrel_tools::DEFAULT_REPLY_BYTES,
            symbols: Arc::new(
                setting.index_time.map_or_else(SymbolIndexes::default, SymbolIndexes::built_within),
            ),
            snapshots: Arc::default(),
        });
        let registry = Registry::new(toolbox, setting.tools);
        Self { directory, registry, session: Session::new("test"), events }
    }

    /// Returns a path in a workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Writes a file of the workspace `main`.
    pub(crate) fn put(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path("main").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// Writes a program of the workspace `main`.
    pub(crate) fn put_program(&self, path: &str, contents: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.put(path, contents);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path("main").join(path), mode).unwrap();
    }

    /// Gives the workspace `main` to a user that does not exist, if the tests run as root. In the tier
    /// without namespaces commands are the owner of the workspace, who must not be root and has to get
    /// there.
    pub(crate) fn open_to_others(&self, tier: TierChoice) {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let is_roots = std::fs::metadata(self.path("main")).unwrap().uid() == 0;
        if tier == TierChoice::Auto || !is_roots {
            return;
        }
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(""), mode).unwrap();
        let owned = std::process::Command::new("chown")
            .args(["-R", UNKNOWN_USER])
            .arg(self.path("main"))
            .status();
        assert!(owned.unwrap().success());
    }

    /// Returns true if a file of the workspace `main` exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path("main").join(path).exists()
    }

    /// Reads a file of the workspace `main`.
    pub(crate) fn get(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.path("main").join(path)).unwrap()).unwrap()
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResponse {
        self.call_as(&self.session, tool, arguments).await
    }

    /// Calls a tool in another session.
    pub(crate) async fn call_as(
        &self,
        session: &Arc<Session>,
        tool: &str,
        arguments: Value,
    ) -> ToolResponse {
        self.registry.call(session, tool, object(arguments), CallOptions::new(Interface::Cli)).await
    }

    /// Calls a tool that must succeed, and returns its text.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments).await;
        assert!(!answer.is_error, "{tool}: {}", answer.text());
        answer.text()
    }

    /// Calls a tool that must be refused, and returns its code and what it says.
    pub(crate) async fn refusal(&self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.call(tool, arguments).await;
        assert!(answer.is_error, "{tool}: {}", answer.text());
        let code = answer.structured["error"]["code"].as_str().unwrap().to_owned();
        (code, answer.text())
    }

    /// Returns the events so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.try_iter().map(|record| serde_json::to_value(record).unwrap()).collect()
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}
