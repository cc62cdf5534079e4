//! Code intelligence: the symbol index of large trees, tools that answer from it, and language servers.
//!
//! Sources are those of the crates that cargo has fetched on this machine. A tree that is larger than all of them has
//! them several times, with other names. An index is built by a process of its own, so that its memory and its CPU
//! time are those of nothing else; `--large` adds a tree of 1 GB.
//!
//! A language server is asked through Carrel, in the sandbox, and by a client on two pipes, outside of it, about the
//! same place of the same project.

mod index_run;
mod plain_client;
mod sources;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_tools::{CallOptions, Interface, Registry, Session, ToolResponse};
use serde_json::{Value, json};

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{Pair, Samples, alone, interleave, timed};
use crate::report::{Budget, Row};
use crate::sandbox::installed;
use crate::tools::{object, registry};
use index_run::IndexRun;
use plain_client::PlainClient;
use sources::{ServerProject, Tree};

pub(crate) use index_run::run_helper;

const OUTLINE_LIMIT: Duration = Duration::from_millis(3);
const READ_SYMBOL_LIMIT: Duration = Duration::from_millis(2);
const SEARCH_LIMIT: Duration = Duration::from_millis(10);
const DEFINITION_LIMIT: Duration = Duration::from_millis(200);

/// What a server may take longer through Carrel than outside of it.
const DEFINITION_RATIO: f64 = 1.5;

/// Megabytes of source for each second of CPU time, at least.
const INDEX_RATE: f64 = 3.0;

/// Memory of a definition or a use of a name in an index, at most.
const ENTRY_BYTES: u64 = 150;

/// Answers of a server in a row after which it counts as warm.
const WARM_ANSWERS: usize = 5;

/// A tree whose index is built once, and is large beside everything else in memory.
const LARGE_TREE: u64 = 50_000_000;

/// How often a server is asked until it has read the project.
const MOST_QUESTIONS: usize = 60;

pub(crate) fn rows(ground: &Ground) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for (number, megabytes) in ground.pace.indexed_megabytes.iter().enumerate() {
        let top = ground.directory(&format!("sources-{megabytes}"))?;
        let Some(tree) = Tree::build(&top, megabytes * 1_000_000)? else {
            let work = format!("index of {megabytes} MB of sources");
            rows.push(Row::left_out(work, "cargo has fetched no crates", Budget::None));
            continue;
        };
        rows.extend(index_rows(ground, &tree)?);
        if number == 0 {
            rows.extend(tool_rows(ground, &tree)?);
        }
    }
    for project in ServerProject::ALL {
        rows.extend(server_rows(ground, project)?);
    }
    Ok(rows)
}

/// Builds the index of a tree in a process of its own; on the other side its files are read and nothing else.
fn index_rows(ground: &Ground, tree: &Tree) -> Result<Vec<Row>, Fault> {
    let mut runs = Vec::new();
    let is_large = tree.bytes >= LARGE_TREE;
    let rounds = if is_large { 1 } else { ground.pace.trees };
    let mut reading = Vec::new();
    for _ in 0..rounds {
        reading.push(timed(|| tree.read())?);
        runs.push(IndexRun::of(&tree.path)?);
    }
    let of = |what: fn(&IndexRun) -> Duration| Samples::new(runs.iter().map(what).collect());
    let last = runs.last().ok_or("no index was built")?;
    let reading = Samples::new(reading);
    let (files, part) = (tree.files, last.part());
    let size = format!("{files} files, {:.1} MB of sources{part}", tree.megabytes());
    let mut rates: Vec<_> = runs.iter().map(IndexRun::rate).collect();
    rates.sort_by(f64::total_cmp);
    let cold = Pair { plain: reading.clone(), carrel: of(|run| run.cold) };
    let walks = Pair { plain: tree.walks(ground.pace.searches)?, carrel: last.warm.clone() };
    let loaded = Pair { plain: reading.clone(), carrel: of(|run| run.loaded) };
    let entry_bytes = last.late.saturating_sub(last.early) / last.entries.max(1);
    let mut rows = vec![
        Row::new(format!("index of {size}, cold; reading them"), cold, Budget::None),
        Row::rate(
            format!("index of {size}, MB for each second of CPU time; reading them"),
            tree.megabytes() / reading.median().as_secs_f64(),
            rates[rates.len() / 2],
            Budget::Rate(INDEX_RATE),
        ),
        Row::new(format!("index of {size}, nothing changed; a walk"), walks, Budget::None),
        Row::new(
            format!("index of {size}, read back from disk; reading them"),
            loaded,
            Budget::None,
        ),
        Row::memory(
            format!("memory before and after an index of {size}"),
            last.early,
            last.late,
            Budget::None,
        ),
    ];
    // A small index is lost beside the memory that any parsing takes.
    if is_large {
        let work =
            format!("memory of each of {} definitions and uses of names in {size}", last.entries);
        rows.push(Row::size(work, entry_bytes, ENTRY_BYTES));
    }
    Ok(rows)
}

/// Tools that call through a registry in this process, in one session.
struct Caller<'a> {
    ground: &'a Ground,
    registry: Registry,
    session: Arc<Session>,
}

impl<'a> Caller<'a> {
    fn new(ground: &'a Ground, directory: &Path, name: &str) -> Result<Self, Fault> {
        let state = ground.directory(&format!("{name}-state"))?;
        let registry = registry(directory, &state)?;
        Ok(Self { ground, registry, session: Session::new(name) })
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<ToolResponse, Fault> {
        // As an agent's client calls, for which language servers and indexes live on.
        let options = CallOptions::new(Interface::Stdio);
        let call = self.registry.call(&self.session, tool, object(arguments.clone()), options);
        let answer = self.ground.wait(call);
        if answer.is_error { Err(answer.text().into()) } else { Ok(answer) }
    }

    fn time(&self, tool: &str, arguments: &Value) -> Result<Duration, Fault> {
        timed(|| self.call(tool, arguments))
    }
}

/// Asks tools about a tree whose index is there.
fn tool_rows(ground: &Ground, tree: &Tree) -> Result<Vec<Row>, Fault> {
    let caller = Caller::new(ground, &tree.path, "code")?;
    let (file, symbol) = tree.largest_function(&caller)?;
    let path = tree.path.join(&file);
    let rounds = ground.pace.slow;
    let outline = json!({ "path": file });
    let read = json!({ "symbol": symbol, "file_path": file });
    let search = json!({ "query": sources::QUERY });
    let hits = caller.call("search_code", &search)?;
    if hits.structured["hits"].as_array().is_none_or(Vec::is_empty) {
        return Err("search_code finds nothing".into());
    }
    let kilobytes = std::fs::metadata(&path)?.len() / 1000;
    let compare = |tool: &str, arguments: &Value| {
        interleave(rounds, || timed(|| std::fs::read(&path)), || caller.time(tool, arguments))
    };
    let size = format!("{} files, {:.1} MB", tree.files, tree.megabytes());
    let outlined = compare("outline", &outline)?;
    let shown = compare("read_symbol", &read)?;
    let work = format!("search_code in {size}, in process; `rg -c` for the same words");
    let searched = if installed("rg").is_some() {
        let argv = ["rg", "-c", "-i", sources::QUERY_PATTERN];
        let pair = interleave(
            ground.pace.searches,
            || timed(|| crate::corpus::run(&argv, &tree.path)),
            || caller.time("search_code", &search),
        )?;
        Row::new(work, pair, Budget::Time(SEARCH_LIMIT))
    } else {
        let times = alone(ground.pace.searches, || caller.time("search_code", &search))?;
        Row::alone(work, times, "rg is not installed", Budget::Time(SEARCH_LIMIT))
    };
    Ok(vec![
        Row::new(
            format!("outline of a file of {kilobytes} KB, in process; `std::fs::read`"),
            outlined,
            Budget::Time(OUTLINE_LIMIT),
        ),
        Row::new(
            "read_symbol in the same file, in process; `std::fs::read`",
            shown,
            Budget::Time(READ_SYMBOL_LIMIT),
        ),
        searched,
    ])
}

/// Asks a language server for a definition, through Carrel and by a plain client.
fn server_rows(ground: &Ground, project: ServerProject) -> Result<Vec<Row>, Fault> {
    let server = project.server();
    let work = format!("find_definition by {server}, warm; the same server outside of the sandbox");
    let budgets = [Budget::Time(DEFINITION_LIMIT), Budget::Ratio(DEFINITION_RATIO)];
    let left_out =
        |why: &str| budgets.map(|budget| Row::left_out(work.clone(), why, budget)).to_vec();
    if installed(server).is_none() {
        return Ok(left_out(&format!("{server} is not installed")));
    }
    let directory: PathBuf = ground.directory(&format!("project-{server}"))?.canonicalize()?;
    project.build(&directory)?;
    let caller = Caller::new(ground, &directory, server)?;
    let (file, line, column) = project.question();
    let question = json!({ "file_path": file, "line": line, "col": column });
    let by_server = |answer: &ToolResponse| answer.structured["source"] == "semantic";
    let mut answer = caller.call("find_definition", &question)?;
    let mut in_a_row = 0;
    for _ in 0..MOST_QUESTIONS {
        in_a_row = if by_server(&answer) { in_a_row + 1 } else { 0 };
        if in_a_row == WARM_ANSWERS {
            break;
        }
        answer = caller.call("find_definition", &question)?;
    }
    if !by_server(&answer) {
        let why = answer.structured["unanswered"].as_str().unwrap_or("no answer").to_owned();
        return Ok(left_out(&why));
    }
    if answer.structured["total"] != 1 {
        return Err(format!("{server} finds no definition: {}", answer.text()).into());
    }
    let Some(mut plain) = PlainClient::start(project, &directory)? else {
        return Ok(left_out(&format!("{server} gives a plain client no answer")));
    };
    let mut by_name = 0;
    let pair = interleave(
        ground.pace.slow,
        || plain.time(),
        || {
            let begun = Instant::now();
            let answer = caller.call("find_definition", &question)?;
            let time = begun.elapsed();
            // An answer by name alone took all the time that a server has, which counts.
            by_name += usize::from(!by_server(&answer));
            Ok::<_, Fault>(time)
        },
    )?;
    plain.end()?;
    if by_name > ground.pace.slow / 10 {
        return Ok(left_out(&format!(
            "{by_name} answers by name alone, the last: {}",
            answer.text()
        )));
    }
    ground.wait(caller.registry.toolbox().end_processes());
    Ok(budgets.map(|budget| Row::new(work.clone(), pair.clone(), budget)).to_vec())
}
