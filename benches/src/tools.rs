//! The tools without a endpoint: through the registry, in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_config::{Environment, OperatorPolicy, TierChoice};
use carrel_domain::WorkspaceAccess;
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerOptions, SandboxMode, WorkspaceHandle};
use carrel_tools::{
    AuditLog, CallOptions, GitOptions, Interface, NamedWorkspace, Registry, Secrets, Session,
    ToolResponse, ToolSelection, Toolbox, ToolboxOptions, WorkspaceEntry, Workspaces,
};
use serde_json::{Map, Value, json};

use crate::Fault;
use crate::corpus::{self, Corpus, Edits};
use crate::files::plain_list;
use crate::ground::Ground;
use crate::haystack::NEEDLE;
use crate::measure::{interleave, timed};
use crate::plain;
use crate::report::{Budget, Row};
use crate::sandbox::installed;

/// The largest reply that a server can be set to. By default a reply would not show the whole of the large file.
pub(crate) const REPLY_BYTES: usize = carrel_tools::MAX_REPLY_BYTES;

pub(crate) fn rows(ground: &Ground, corpus: &Corpus) -> Result<Vec<Row>, Fault> {
    let tools = Tools::prepare(ground, corpus)?;
    let mut rows = vec![
        tools.read("Read 101 KB", corpus::LARGE)?,
        tools.read("Read 1 KB", corpus::SMALL)?,
        tools.list()?,
        tools.edit()?,
    ];
    rows.extend(tools.search()?);
    Ok(rows)
}

/// A registry with one workspace and one session.
struct Tools<'a> {
    ground: &'a Ground,
    corpus: &'a Corpus,
    registry: Registry,
    session: Arc<Session>,
}

impl<'a> Tools<'a> {
    fn prepare(ground: &'a Ground, corpus: &'a Corpus) -> Result<Self, Fault> {
        let registry = registry(&corpus.path, &ground.directory("tools-state")?)?;
        Ok(Self { ground, corpus, registry, session: Session::new("bench") })
    }

    fn read(&self, work: &str, name: &str) -> Result<Row, Fault> {
        let path = self.corpus.path.join(name);
        let answer = self.call("Read", object(json!({ "file_path": name })))?;
        if !answer.structured["next_offset"].is_null() {
            return Err("Read does not show the whole file".into());
        }
        let pair = interleave(
            self.ground.pace.fast,
            || timed(|| std::fs::read(&path)),
            || self.time("Read", json!({ "file_path": name })),
        )?;
        Ok(Row::new(format!("{work}, in process; `std::fs::read`"), pair, Budget::None))
    }

    fn list(&self) -> Result<Row, Fault> {
        let path = self.corpus.path.join(corpus::LISTED);
        let pair = interleave(
            self.ground.pace.fast,
            || timed(|| plain_list(&path)),
            || self.time("LS", json!({ "path": corpus::LISTED })),
        )?;
        let entries = corpus::LISTED_ENTRIES;
        let work = format!("LS of {entries} entries, in process; `read_dir` and a sort");
        Ok(Row::new(work, pair, Budget::None))
    }

    fn edit(&self) -> Result<Row, Fault> {
        self.call("Read", object(json!({ "file_path": corpus::EDITED })))?;
        let plain = self.ground.directory("edited-plainly")?.join("file.txt");
        let contents = std::fs::read(self.corpus.path.join(corpus::EDITED))?;
        let mut edits = Edits::default();
        let pair = interleave(
            self.ground.pace.slow,
            || timed(|| plain::replace_synced(&plain, &contents)),
            || self.time("Edit", edit_arguments(corpus::EDITED, &mut edits)),
        )?;
        let work = "Edit of a 1 MB file, in process; write, fsync, rename, directory fsync";
        Ok(Row::new(work, pair, Budget::Ratio(2.0)))
    }

    fn search(&self) -> Result<Vec<Row>, Fault> {
        let size = self.corpus.size();
        let (grep, glob) = (
            format!("Grep a literal in {size}, in process; the `rg` program"),
            format!("Glob in {size}, in process; `rg --files`"),
        );
        if installed("rg").is_none() {
            let budget = Budget::Ratio(GREP_LIMIT);
            return Ok(vec![
                Row::left_out(grep, "rg is not installed", budget),
                Row::left_out(glob, "rg is not installed", Budget::None),
            ]);
        }
        let directory = self.corpus.haystack();
        let found = self.compare("Grep", &grep_arguments(), &RG, &directory)?;
        let named = self.compare("Glob", &glob_arguments(), &RG_FILES, &directory)?;
        Ok(vec![
            Row::new(grep, found, Budget::Ratio(GREP_LIMIT)),
            Row::new(glob, named, Budget::None),
        ])
    }

    /// Measures a search against a program that has to find the same.
    fn compare(
        &self,
        tool: &str,
        arguments: &Value,
        argv: &[&str],
        directory: &Path,
    ) -> Result<crate::measure::Pair, Fault> {
        let answer = self.call(tool, object(arguments.clone()))?;
        must_agree(tool, &answer.text(), argv, directory)?;
        interleave(
            self.ground.pace.searches,
            || timed(|| corpus::run(argv, directory)),
            || self.time(tool, arguments.clone()),
        )
    }

    fn time(&self, tool: &str, arguments: Value) -> Result<Duration, Fault> {
        let arguments = object(arguments);
        timed(|| self.call(tool, arguments))
    }

    fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<ToolResponse, Fault> {
        let options = CallOptions::new(Interface::Cli);
        let call = self.registry.call(&self.session, tool, arguments, options);
        let answer = self.ground.wait(call);
        if answer.is_error { Err(answer.text().into()) } else { Ok(answer) }
    }
}

/// What the design promises for a search, beside the `rg` program.
pub(crate) const GREP_LIMIT: f64 = 1.15;

/// What the program is asked, and the tool in other words.
pub(crate) const RG: [&str; 5] = ["rg", "-n", "--no-heading", "--fixed-strings", NEEDLE];
const RG_FILES: [&str; 4] = ["rg", "--files", "--glob", corpus::SOME_NAMES];

pub(crate) fn grep_arguments() -> Value {
    json!({ "pattern": NEEDLE, "path": corpus::HAYSTACK, "fixed_strings": true })
}

pub(crate) fn glob_arguments() -> Value {
    json!({ "pattern": corpus::SOME_NAMES, "path": corpus::HAYSTACK, "sort_by_path": true, "limit": 5000 })
}

pub(crate) fn edit_arguments(name: &str, edits: &mut Edits) -> Value {
    let (old, new) = edits.next();
    json!({ "file_path": name, "old_string": old, "new_string": new })
}

/// Makes sure that a program and a tool find the same; a fast wrong answer is worth nothing.
pub(crate) fn must_agree(
    tool: &str,
    answer: &str,
    argv: &[&str],
    directory: &Path,
) -> Result<(), Fault> {
    let theirs = corpus::lines_of(argv, directory)?;
    // The program runs in the directory, the tool above it.
    let ours: Vec<_> = corpus::sorted(answer)
        .iter()
        .filter_map(|line| Some(line.strip_prefix(corpus::HAYSTACK)?.strip_prefix('/')?.to_owned()))
        .collect();
    if ours == theirs && !ours.is_empty() {
        return Ok(());
    }
    Err(format!("{tool} finds {} lines, {} finds {}", ours.len(), argv[0], theirs.len()).into())
}

/// Puts together what `carrel mcp` does for one workspace, events included.
pub(crate) fn registry(directory: &Path, state: &Path) -> Result<Registry, Fault> {
    let environment = Environment::process();
    let access = WorkspaceAccess::ReadWrite;
    let entry = WorkspaceEntry { name: "main".into(), path: directory.to_owned(), access };
    let place = NamedWorkspace::new(entry, WorkspaceHandle::for_directory(directory, state)?);
    let toolbox = Toolbox::new(ToolboxOptions {
        workspaces: Workspaces::new(vec![place])?,
        secrets: Secrets::new(&environment, None),
        runner: Runner::new(RunnerOptions {
            spawner: LazySpawner::new(std::env::current_exe()?),
            policy: OperatorPolicy::default(),
            environment,
            sandbox: SandboxMode::Enforced(TierChoice::Auto),
            disabled: Vec::new(),
            mode: carrel_runner::RunnerMode::Server,
            events: AuditLog::to_file(&state.join("events.jsonl")),
        }),
        access,
        network: carrel_domain::NetworkRequest::default(),
        git: GitOptions::default(),
        reply_bytes: REPLY_BYTES,
        symbols: std::sync::Arc::default(),
        snapshots: std::sync::Arc::default(),
    });
    Ok(Registry::new(toolbox, ToolSelection::ALL))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
