//! Code intelligence: the symbol index of large trees, tools that answer from it, and language servers.
//!
//! Sources are those of the crates that cargo has fetched on this machine. A tree that is larger than all of them has
//! them several times, with other names. An index is built by a process of its own, so that its memory and its CPU
//! time are those of nothing else; `--large` adds a tree of 1 GB.
//!
//! A language server is asked through Carrel, in the sandbox, and by a client on two pipes, outside of it, about the
//! same places of the same project: first about calls all over a long file, each once, as an agent asks; then about one
//! of them again and again, whose answer the server may have kept. A third client asks a server in the sandbox without
//! Carrel's tool around it: what the sandbox alone costs.

mod index_run;
mod plain_client;
mod projects;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_tools::{CallOptions, Interface, Registry, Session, ToolResponse};
use serde_json::{Value, json};

use crate::Fault;
use crate::ground::Ground;
use crate::measure::{Pair, Samples, alone, interleave, timed};
use crate::report::{Budget, Row};
use crate::sandbox::{beside, installed};
use crate::tools::{object, registry};
use index_run::IndexRun;
use plain_client::PlainClient;
use projects::{Place, ServerProject};
use sources::Tree;

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

/// Asks a language server for definitions, through Carrel and by a plain client.
fn server_rows(ground: &Ground, project: ServerProject) -> Result<Vec<Row>, Fault> {
    let server = project.server();
    let work = format!("find_definition by {server}");
    let left_out = |why: &str| Ok(vec![Row::left_out(&work, why, Budget::Ratio(DEFINITION_RATIO))]);
    if installed(server).is_none() {
        return left_out(&format!("{server} is not installed"));
    }
    let directory: PathBuf = ground.directory(&format!("project-{server}"))?.canonicalize()?;
    let Some(what) = project.build(&directory)? else {
        return left_out("cargo has not fetched the project");
    };
    let places = project.places(&directory, ground.pace.slow)?;
    let (Some(first), Some(rounds)) = (places.first(), places.len().checked_sub(places.len() / 11))
    else {
        return left_out("the project has no calls");
    };
    let client = DefinitionCaller { caller: Caller::new(ground, &directory, server)?, project };
    if let Some(why) = client.warm_up(*first)? {
        return left_out(&why);
    }
    let plain = PlainClient::start(Command::new(server), project, &directory, *first)?;
    let Some(mut plain) = plain else {
        return left_out(&format!("{server} gives a plain client no answer"));
    };
    let (mut theirs, mut ours) = (places.iter().cycle(), places.iter().cycle());
    let mut by_name = 0;
    let each = interleave(
        rounds,
        || plain.time(*theirs.next().unwrap_or(first)),
        || client.time(*ours.next().unwrap_or(first), &mut by_name),
    )?;
    let again =
        interleave(ground.pace.slow, || plain.time(*first), || client.time(*first, &mut by_name))?;
    let sandboxed = in_sandbox(server, &directory);
    let mut inside = match sandboxed {
        Some(command) => PlainClient::start(command, project, &directory, *first)?,
        None => None,
    };
    let server_alone = match inside.as_mut() {
        Some(inside) => Some(interleave(
            rounds,
            || plain.time(*theirs.next().unwrap_or(first)),
            || inside.time(*ours.next().unwrap_or(first)),
        )?),
        None => None,
    };
    inside.map_or(Ok(()), PlainClient::end)?;
    plain.end()?;
    if by_name > ground.pace.slow / 10 {
        return left_out(&format!("{by_name} answers by name alone"));
    }
    ground.wait(client.caller.registry.toolbox().end_processes());
    let each_work = format!(
        "{work}, {} calls all over {what}, each once; the same server outside of the sandbox",
        places.len()
    );
    let again_work = format!("{work}, one of them again and again; the same");
    let alone_work =
        format!("definition by {server} in `carrel exec`, asked by a plain client; outside of it");
    let budget = Budget::Ratio(DEFINITION_RATIO);
    let alone_row = match server_alone {
        Some(pair) => Row::new(alone_work, pair, budget),
        None => Row::left_out(alone_work, "it gives no answer there", budget),
    };
    Ok(vec![
        alone_row,
        Row::new(each_work.clone(), each.clone(), Budget::Time(DEFINITION_LIMIT)),
        Row::new(each_work, each, Budget::Ratio(DEFINITION_RATIO)),
        Row::new(again_work, again, Budget::Time(DEFINITION_LIMIT)),
    ])
}

/// Returns the command line of a server in the sandbox; none if the program of Carrel is not built.
fn in_sandbox(server: &str, directory: &Path) -> Option<Command> {
    let mut command = Command::new(beside("carrel")?);
    command.args(["exec", "--timeout", "600", "--env", "CARGO_NET_OFFLINE=true", "--workspace"]);
    command.arg(directory).arg("--").arg(installed(server)?);
    Some(command)
}

/// Asks for definitions through the tool.
struct DefinitionCaller<'a> {
    caller: Caller<'a>,
    project: ServerProject,
}

impl DefinitionCaller<'_> {
    fn ask(&self, place: Place) -> Result<ToolResponse, Fault> {
        let Place { line, column } = place;
        let question = json!({ "file_path": self.project.file(), "line": line, "col": column });
        self.caller.call("find_definition", &question)
    }

    /// Asks until the server answers, several times in a row. Returns why it does not.
    fn warm_up(&self, place: Place) -> Result<Option<String>, Fault> {
        let mut in_a_row = 0;
        let mut last = String::new();
        for _ in 0..MOST_QUESTIONS {
            let answer = self.ask(place)?;
            in_a_row = if is_by_server(&answer) { in_a_row + 1 } else { 0 };
            if in_a_row == WARM_ANSWERS {
                return Ok(None);
            }
            answer.structured["unanswered"].as_str().unwrap_or("no answer").clone_into(&mut last);
        }
        Ok(Some(last))
    }

    /// Asks once. An answer by name alone is counted; it took all the time that a server has, which counts too.
    fn time(&self, place: Place, by_name: &mut usize) -> Result<Duration, Fault> {
        let begun = Instant::now();
        let answer = self.ask(place)?;
        let time = begun.elapsed();
        *by_name += usize::from(!is_by_server(&answer));
        Ok(time)
    }
}

fn is_by_server(answer: &ToolResponse) -> bool {
    answer.structured["source"] == "semantic"
}
