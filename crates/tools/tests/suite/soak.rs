//! Random use of the tools for code by four sessions of one repository: edits and applied renames by tools, edits by
//! commands in the sandbox, `git checkout` of other versions, files that others write and remove, and language servers
//! that are killed.
//!
//! `CARREL_SOAK=1` makes it twenty minutes, `CARREL_SEED` repeats a run. The server is the process of the test, whose
//! memory and descendants are looked at: the test needs a process of its own, as `cargo nextest` gives it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_config::OperatorPolicy;
use carrel_domain::ByteSize;
use carrel_tools::{CallOptions, Interface, Session};
use fastrand::Rng;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment, object};

/// Short and long runs.
const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_mins(20);

const SESSIONS: usize = 4;

/// Files of each language, functions in each, and versions that commands of others write.
const FILES: usize = 6;
const FUNCTIONS: usize = 12;
const VERSIONS: usize = 4;

/// Two languages, and room for servers that end while their successors start.
const MOST_SERVERS: usize = 8;

/// The memory that one language server may have.
const SERVER_MEMORY: u64 = 1 << 30;

/// The memory that the server may gain between the first third of a run and the last one.
const MOST_GROWTH: u64 = 96 << 20;

/// The time between two kills of the language servers: two within the five minutes in which four ends are too many.
const KILL_EVERY: Duration = Duration::from_secs(150);

/// The interval of looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The time for processes to end on a busy machine.
const END_TIME: Duration = Duration::from_secs(30);

/// A repository in C and Go whose functions call each other.
#[derive(Clone, Copy)]
enum Kind {
    C,
    Go,
}

impl Kind {
    fn path(self, file: usize) -> String {
        match self {
            Self::C => format!("c/part_{file}.c"),
            Self::Go => format!("go/part_{file}.go"),
        }
    }

    /// A version of a file.
    fn text(self, file: usize, version: usize) -> String {
        let other = (file + 1) % FILES;
        let mut text = match self {
            Self::C => "#include \"work.h\"\n\n".to_owned(),
            Self::Go => "package work\n\n".to_owned(),
        };
        for number in 0..FUNCTIONS {
            let (own, called) = (Self::name(self, file, number), Self::name(self, other, number));
            match self {
                Self::C => writeln!(
                    text,
                    "/* Counts down to {version}. */\nint {own}(int count) {{\n    return count > {version} ? {called}(count - 1) : 0;\n}}\n"
                ),
                Self::Go => writeln!(
                    text,
                    "// {own} counts down to {version}.\nfunc {own}(count int) int {{\n\tif count > {version} {{\n\t\treturn {called}(count - 1)\n\t}}\n\treturn 0\n}}\n"
                ),
            }
            .unwrap();
        }
        text
    }

    fn name(self, file: usize, number: usize) -> String {
        match self {
            Self::C => format!("work_{file}_{number}"),
            Self::Go => format!("Work{file}x{number}"),
        }
    }

    /// The place of a call in a file as it was written: its line and its column.
    fn call(self, number: usize) -> (usize, usize) {
        match self {
            Self::C => (5 + number * 5, 26),
            Self::Go => (6 + number * 7, 11),
        }
    }
}

fn repository() -> TestEnvironment {
    let mut policy = OperatorPolicy::default();
    policy.limits.session_memory = ByteSize::bytes(SERVER_MEMORY);
    let env = TestEnvironment::with(Setting { policy, ..Setting::default() });
    let mut header = String::new();
    for file in 0..FILES {
        for number in 0..FUNCTIONS {
            writeln!(header, "int {}(int count);", Kind::C.name(file, number)).unwrap();
        }
        for kind in [Kind::C, Kind::Go] {
            env.put(&kind.path(file), kind.text(file, 0));
        }
    }
    env.put("c/work.h", header);
    env.put("c/compile_flags.txt", "-std=c11\n");
    env.put("go/go.mod", "module example.com/work\n\ngo 1.19\n");
    commit_versions(&env);
    env
}

/// Commits each version of all files on a branch of its own.
fn commit_versions(env: &TestEnvironment) {
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        let ran =
            git.args(identity).args(arguments).current_dir(env.path("main")).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q"]);
    for version in (0..VERSIONS).rev() {
        for file in 0..FILES {
            for kind in [Kind::C, Kind::Go] {
                env.put(&kind.path(file), kind.text(file, version));
            }
        }
        git(&["checkout", "-q", "--orphan", &format!("version-{version}")]);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "a version"]);
    }
}

/// The calls of one tool that were answered, by a language server among them, and those that were refused.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    answered: usize,
    semantic: usize,
    /// Renames that changed files.
    applied: usize,
    refused: usize,
}

type Counts = BTreeMap<&'static str, Count>;

/// One session that calls a tool after the other.
struct Caller<'a> {
    env: &'a TestEnvironment,
    session: Arc<Session>,
    random: Rng,
    counts: Counts,
}

impl Caller<'_> {
    async fn run(mut self, until: Instant) -> Counts {
        while Instant::now() < until {
            self.step().await;
        }
        self.counts
    }

    async fn step(&mut self) {
        let kind = if self.random.bool() { Kind::C } else { Kind::Go };
        let (file, number) = (self.random.usize(..FILES), self.random.usize(..FUNCTIONS));
        let (path, name) = (kind.path(file), kind.name(file, number));
        let (line, col) = kind.call(number);
        let place = json!({ "file_path": path, "line": line, "col": col });
        let version = self.random.usize(..VERSIONS);
        let body = match kind {
            Kind::C => format!("return count + {version};"),
            Kind::Go => format!("return count + {version}"),
        };
        let choice = self.random.usize(..28);
        let (tool, arguments) = match choice {
            0 | 1 => ("outline", json!({ "path": path })),
            2 => ("outline", json!({})),
            3 | 4 => ("read_symbol", json!({ "symbol": name, "file_path": path })),
            5 | 6 => ("search_code", json!({ "query": format!("counts down {version}") })),
            7 | 8 => ("find_references", json!({ "symbol": name })),
            9 | 10 => ("find_definition", place),
            11 => ("hover", place),
            12 => ("repo_map", json!({})),
            13 => ("code_scan", json!({ "pattern": "$F($A - 1)" })),
            14 => ("diagnostics", json!({ "path": path })),
            15 => {
                let dry_run = json!({ "symbol": name, "new_name": "Renamed", "dry_run": true });
                ("rename_symbol", dry_run)
            }
            16 | 17 => {
                self.call("Read", &json!({ "file_path": path })).await;
                let body = json!({ "file_path": path, "function_name": name, "new_body": body });
                ("edit_function_body", body)
            }
            18 | 19 => {
                self.call("Read", &json!({ "file_path": path })).await;
                let edit = json!({ "op": "replace", "rule": "$A > $B", "replacement": "$A >= $B" });
                ("code_edit", json!({ "path": path, "edits": [edit] }))
            }
            20 | 21 => {
                self.call("Read", &json!({ "file_path": path })).await;
                ("Write", json!({ "file_path": path, "content": kind.text(file, version) }))
            }
            22 => {
                let new_name = format!("{name}_more");
                ("rename_symbol", json!({ "symbol": name, "new_name": new_name, "force": true }))
            }
            23 | 24 => {
                let command = format!("sed -i 's/count > [0-9]/count > {version}/' {path}");
                ("Bash", json!({ "command": command }))
            }
            25 => {
                // Two at a time are refused by git, for its lock.
                let command = format!("git checkout -q -f version-{version}");
                ("Bash", json!({ "command": command }))
            }
            26 => {
                // As a command or another program does.
                self.env.put(&path, kind.text(file, version));
                return;
            }
            _ => {
                let removed = self.env.path("main").join(kind.path(file));
                // Another session may have been faster.
                let _ = std::fs::remove_file(removed);
                tokio::task::yield_now().await;
                self.env.put(&path, kind.text(file, version));
                return;
            }
        };
        self.call(tool, &arguments).await;
    }

    async fn call(&mut self, tool: &'static str, arguments: &Value) {
        let options = CallOptions::new(Interface::Stdio);
        let call = self.env.registry.call(&self.session, tool, object(arguments.clone()), options);
        let answer = call.await;
        let count = self.counts.entry(tool).or_default();
        if answer.is_error {
            count.refused += 1;
            let code = answer.structured["error"]["code"].as_str().unwrap_or_default();
            assert_ne!(code, "E_INTERNAL", "{tool} {arguments}: {}", answer.text());
            assert_ne!(code, "E_INVALID_ARGUMENTS", "{tool} {arguments}: {}", answer.text());
        } else {
            count.answered += 1;
            count.semantic += usize::from(answer.structured["source"] == "semantic");
            count.applied += usize::from(answer.structured["applied"] == true);
        }
    }
}

/// A process as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    name: String,
    state: char,
    /// Tells it from a later process of the same number.
    started: String,
}

impl Process {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (before, rest) = stat.rsplit_once(')')?;
        let fields: Vec<_> = rest.split_whitespace().collect();
        Some(Self {
            pid,
            name: before.split_once('(')?.1.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            started: (*fields.get(19)?).to_owned(),
        })
    }

    fn is_running(&self) -> bool {
        let now = Self::of(self.pid);
        now.is_some_and(|now| now.started == self.started && !matches!(now.state, 'Z' | 'X'))
    }

    fn is_language_server(&self) -> bool {
        self.name.starts_with("clangd") || self.name == "gopls"
    }

    /// Kills it, and returns whether it was there.
    fn kill(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        let signal = rustix::process::Signal::KILL;
        pid.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
    }

    fn memory(&self) -> u64 {
        resident(&self.pid.to_string()).unwrap_or(0)
    }
}

/// Returns the descendants of this process.
fn descendants() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let all: Vec<_> = names.filter_map(|name| Process::of(name.parse().ok()?)).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|process| process.parent == parent);
        for child in children {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

fn resident(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The most of everything that was seen.
#[derive(Debug, Default)]
struct Seen {
    /// Of the server, in the first and in the last third of the run.
    early: u64,
    late: u64,
    servers: usize,
    server_memory: u64,
    /// Servers that were killed.
    killed: usize,
}

impl Seen {
    async fn look(env: &TestEnvironment, begun: Instant, time: Duration) -> Self {
        let mut seen = Self::default();
        // A short run has one kill, in the middle.
        let kill_every = KILL_EVERY.min(time / 2);
        let mut next_kill = kill_every;
        while begun.elapsed() < time {
            let own = resident("self").unwrap();
            if begun.elapsed() < time / 3 {
                seen.early = seen.early.max(own);
            } else if begun.elapsed() > time * 2 / 3 {
                seen.late = seen.late.max(own);
            }
            let servers = descendants().into_iter().filter(Process::is_language_server);
            let servers: Vec<_> = servers.collect();
            if begun.elapsed() >= next_kill && !servers.is_empty() {
                seen.killed += servers.iter().filter(|server| server.kill()).count();
                next_kill += kill_every;
            }
            let memory: Vec<_> = servers.iter().map(Process::memory).collect();
            seen.servers = seen.servers.max(memory.len());
            seen.server_memory = memory.into_iter().chain([seen.server_memory]).max().unwrap_or(0);
            // The receiver of the audit log would keep all events.
            drop(env.events());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        seen
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stderr,
    reason = "the seed repeats a run that failed, the counts tell what it did"
)]
async fn four_sessions_of_a_repository_leave_memory_bounded_and_no_process_behind() {
    let is_long = std::env::var_os("CARREL_SOAK").is_some();
    let time = if is_long { LONG } else { SHORT };
    let seed = std::env::var("CARREL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(if is_long { fastrand::u64(..) } else { 16 });
    eprintln!("CARREL_SEED={seed}");
    let env = repository();
    let begun = Instant::now();
    let callers = (0..SESSIONS).map(|number| {
        let session = Session::new(format!("session-{number}"));
        let random = Rng::with_seed(seed.wrapping_add(number as u64));
        Caller { env: &env, session, random, counts: Counts::new() }.run(begun + time)
    });
    let (counted, most) = tokio::join!(join_all(callers), Seen::look(&env, begun, time));
    let mut all = Counts::new();
    for (tool, count) in counted.into_iter().flatten() {
        let sum = all.entry(tool).or_default();
        sum.answered += count.answered;
        sum.semantic += count.semantic;
        sum.applied += count.applied;
        sum.refused += count.refused;
    }
    eprintln!("{all:#?}\n{most:?}");

    let below = descendants();
    assert!(below.iter().any(Process::is_language_server), "no server was asked: {below:?}");
    env.registry.toolbox().end_processes().await;
    drop(env);
    let ending = Instant::now();
    let running = || below.iter().filter(|process| process.is_running()).collect::<Vec<_>>();
    while !running().is_empty() && ending.elapsed() < END_TIME {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    assert_eq!(running(), Vec::<&Process>::new());

    assert!(most.late <= most.early + MOST_GROWTH, "{most:?}");
    assert!((1..=MOST_SERVERS).contains(&most.servers), "{most:?}");
    assert!(most.server_memory <= SERVER_MEMORY, "{most:?}");
    let answered: usize = all.values().map(|count| count.answered).sum();
    assert!(answered > 50, "{all:?}");
    assert!(most.killed > 0, "{most:?}");
    if is_long {
        let unused: Vec<_> = all.iter().filter(|(_, count)| count.answered == 0).collect();
        assert!(unused.is_empty(), "never answered: {unused:?}");
        for tool in ["find_definition", "find_references"] {
            assert!(all[tool].semantic > 0, "{tool} was never answered by a server: {all:?}");
        }
        assert!(all["rename_symbol"].applied > 0, "no rename was applied: {all:?}");
    }
}
