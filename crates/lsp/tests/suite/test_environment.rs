//! A workspace with the files of a project, and servers for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_audit::AuditLog;
use carrel_config::{Environment, LanguageServerPolicy, OperatorPolicy, TierChoice};
use carrel_exec::LazySpawner;
use carrel_lsp::{
    Answer, CallDirection, LanguageServers, Location, Locations, QueryContext, QueryError, Reply,
    Target, WorkspaceChange,
};
use carrel_runner::{Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle};

/// The time for any answer, on a machine that is busy.
pub(crate) const ANSWER_TIME: Duration = Duration::from_mins(2);

/// A workspace with a project, and its language servers.
pub(crate) struct TestEnvironment {
    _directory: tempfile::TempDir,
    /// Held for as long as commands may need it.
    programs: Option<tempfile::TempDir>,
    pub(crate) servers: LanguageServers,
    pub(crate) context: QueryContext,
}

impl TestEnvironment {
    /// Makes a workspace with the files of `tests/projects/NAME`; `c-built` is `c` with a description of its build.
    pub(crate) fn new(project: &str) -> Self {
        Self::with(project, LanguageServerPolicy::default(), |_| {})
    }

    /// Makes a workspace on a machine that lacks one of the programs.
    pub(crate) fn without_program(project: &str, missing: &str) -> Self {
        let programs = tempfile::tempdir().unwrap();
        let mut env = Self::with(project, LanguageServerPolicy::default(), |policy| {
            for installed in std::mem::take(&mut policy.path) {
                for entry in std::fs::read_dir(installed).unwrap().map(Result::unwrap) {
                    let link = programs.path().join(entry.file_name());
                    if entry.file_name() != missing {
                        std::os::unix::fs::symlink(entry.path(), link).unwrap();
                    }
                }
            }
            policy.path = vec![programs.path().to_owned()];
        });
        env.programs = Some(programs);
        env
    }

    pub(crate) fn with(
        project: &str,
        options: LanguageServerPolicy,
        adjust: impl FnOnce(&mut OperatorPolicy),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (workspace, state) = (directory.path().join("main"), directory.path().join("state"));
        std::fs::create_dir(&state).unwrap();
        let (project, is_built) = match project {
            "c-built" => ("c", true),
            project => (project, false),
        };
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(project),
            &workspace,
        );
        if is_built {
            write_compile_commands(&workspace);
        }
        // The sandbox shows directories by their real paths.
        let installed = |name| std::fs::canonicalize(tools().join(name)).unwrap();
        let (python, servers) = (installed("test-tools/python"), installed("language-servers"));
        let mut policy = OperatorPolicy {
            path: vec![python.join("bin"), servers.join("node_modules/.bin")],
            readable: vec![python, servers],
            ..OperatorPolicy::default()
        };
        adjust(&mut policy);
        // Toolchains of the machine are found below the home directory of the user who runs the tests.
        let home = std::env::var("HOME").unwrap_or_default();
        let runner = Runner::new(RunnerOptions {
            spawner: LazySpawner::new(env!("CARGO_BIN_EXE_carrel-lsp-spawner").into()),
            policy,
            environment: Environment::from_pairs([("HOME", home)]),
            sandbox: SandboxMode::Enforced(TierChoice::Auto),
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: AuditLog::none(),
        });
        let workspace = Arc::new(WorkspaceHandle::for_directory(&workspace, &state).unwrap());
        let context = QueryContext { runner, workspace, watch: Arc::default(), time: ANSWER_TIME };
        Self {
            _directory: directory,
            programs: None,
            servers: LanguageServers::new(options),
            context,
        }
    }

    /// Drops the servers, and leaves the workspace.
    pub(crate) fn without_servers(self) -> Self {
        Self { servers: LanguageServers::new(LanguageServerPolicy::default()), ..self }
    }

    /// Returns a path in the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.context.workspace.path().join(path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// Writes a file as a command would, without telling.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Replaces the first occurrence of a text in a file.
    pub(crate) fn replace(&self, path: &str, old: &str, new: &str) {
        let text = self.text(path);
        assert!(text.contains(old), "{path} has no {old:?}");
        self.put(path, &text.replacen(old, new, 1));
    }

    /// Returns the position of `|` in a piece of a file's text.
    pub(crate) fn at(&self, path: &str, piece: &str) -> Target {
        let (before, after) = piece.split_once('|').expect("the piece marks a position");
        let text = self.text(path);
        let found = text.find(&format!("{before}{after}"));
        let offset = found.unwrap_or_else(|| panic!("{path} has no {piece:?}")) + before.len();
        Target::new(path, offset)
    }

    pub(crate) async fn definition(&self, path: &str, piece: &str) -> Vec<String> {
        let target = self.at(path, piece);
        shown(answered(self.servers.definition(&self.context, &target).await).value)
    }

    /// Returns the references to a symbol, its declaration included, which have to be complete.
    pub(crate) async fn references(&self, path: &str, piece: &str) -> Vec<String> {
        let target = self.at(path, piece);
        let answer = answered(self.servers.references(&self.context, &target, true).await);
        assert_eq!(answer.incomplete, None);
        shown(answer.value)
    }

    /// Returns the change of a rename, which has to be complete.
    pub(crate) async fn rename(&self, path: &str, piece: &str, name: &str) -> WorkspaceChange {
        let target = self.at(path, piece);
        let answer = answered(self.servers.rename(&self.context, &target, name).await);
        assert_eq!(answer.incomplete, None);
        answer.value
    }

    pub(crate) async fn implementations(&self, path: &str, piece: &str) -> Vec<String> {
        let target = self.at(path, piece);
        shown(answered(self.servers.implementations(&self.context, &target).await).value)
    }

    /// Returns the calls of a function: the caller, and the places of the calls in its file.
    pub(crate) async fn callers(&self, path: &str, piece: &str) -> Vec<String> {
        self.calls(path, piece, CallDirection::Incoming).await
    }

    /// Returns the calls that a function makes: the callee, and the places of the calls in the function's file.
    pub(crate) async fn callees(&self, path: &str, piece: &str) -> Vec<String> {
        self.calls(path, piece, CallDirection::Outgoing).await
    }

    async fn calls(&self, path: &str, piece: &str, direction: CallDirection) -> Vec<String> {
        let target = self.at(path, piece);
        let answer = answered(self.servers.calls(&self.context, &target, direction).await);
        let shown = answer.value.iter().map(|call| {
            let sites = call
                .sites
                .iter()
                .map(|site| format!("{}:{}", site.start.line, site.start.char_column));
            format!("{} at {}", call.name, sites.collect::<Vec<_>>().join(" "))
        });
        shown.collect()
    }

    /// Returns the problems of a file: line, severity and code.
    pub(crate) async fn problems(&self, path: &str) -> Vec<String> {
        let answer = answered(self.servers.diagnostics(&self.context, Path::new(path)).await);
        let shown = answer
            .value
            .iter()
            .map(|found| format!("{} {:?} {}", found.range.start.line, found.severity, found.code));
        shown.collect()
    }

    /// Applies the edits of a change.
    pub(crate) fn apply(&self, change: &WorkspaceChange) {
        for file in &change.files {
            let mut text = std::fs::read(self.context.workspace.path().join(&file.path)).unwrap();
            assert_eq!(carrel_lsp::ContentHash::of(&text), file.content);
            for edit in file.edits.iter().rev() {
                text.splice(edit.range.clone(), edit.text.bytes());
            }
            std::fs::write(self.context.workspace.path().join(&file.path), text).unwrap();
        }
    }

    /// Kills the processes that work in the workspace, and returns how many there were.
    pub(crate) fn kill(&self) -> usize {
        let processes = self.processes();
        for pid in &processes {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            // It may have ended with its parent.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        processes.len()
    }

    /// Returns the processes whose working directory lies in the workspace.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let workspace = self.context.workspace.path();
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let ids = entries.filter_map(|entry| {
            let directory = std::fs::read_link(entry.path().join("cwd")).ok()?;
            let id = entry.file_name().to_str()?.parse().ok()?;
            directory.starts_with(workspace).then_some(id)
        });
        ids.collect()
    }

    /// Ends the servers, and sees that nothing is left of them.
    pub(crate) async fn close(self) {
        self.servers.close_workspace(self.context.workspace.path()).await;
        assert_eq!(self.processes(), Vec::<i32>::new());
        assert_eq!(self.servers.running(), Vec::new());
    }
}

/// Returns where `scripts/install-test-tools` puts its tools.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// Returns the answer of a server, which has to be ready in time.
#[track_caller]
pub(crate) fn answered<T: std::fmt::Debug>(reply: Result<Reply<T>, QueryError>) -> Answer<T> {
    match reply {
        Ok(Reply::Answer(answer)) => answer,
        other => panic!("no answer: {other:?}"),
    }
}

/// Shows locations as `path:line:column`, in characters, and those outside as `outside NAME`.
pub(crate) fn shown(locations: Locations) -> Vec<String> {
    assert_eq!(locations.list.len(), locations.total);
    let shown = locations.list.into_iter().map(|location| match location {
        Location::Inside { path, range } => {
            format!("{}:{}:{}", path.display(), range.start.line, range.start.char_column)
        }
        Location::Outside { path, .. } => {
            format!("outside {}", path.file_name().unwrap_or_default().to_string_lossy())
        }
    });
    shown.collect()
}

/// Returns the texts of all files of a directory, by path.
pub(crate) fn tree(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut texts = BTreeMap::new();
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => directories.push(entry.path()),
                _ => {
                    let path = entry.path().strip_prefix(top).unwrap().to_owned();
                    texts.insert(path, std::fs::read_to_string(entry.path()).unwrap());
                }
            }
        }
    }
    texts
}

/// Describes the build of a C project, including files that are not there yet.
fn write_compile_commands(workspace: &Path) {
    let random = (0..4).map(|number| format!("random{number}.c"));
    let files = ["added.c", "cart.c", "main.c", "prices.c"].map(str::to_owned).into_iter();
    let commands = files.chain(random).map(|file| {
        let arguments = ["cc", "-c", &file];
        serde_json::json!({ "directory": workspace, "file": file, "arguments": arguments })
    });
    let commands: serde_json::Value = commands.collect();
    std::fs::write(workspace.join("compile_commands.json"), commands.to_string()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for (path, text) in tree(from) {
        std::fs::create_dir_all(to.join(&path).parent().unwrap()).unwrap();
        std::fs::write(to.join(path), text).unwrap();
    }
}
