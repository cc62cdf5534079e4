//! Language servers on real projects, pinned in `benches/projects.toml`: what an agent is told about a symbol is
//! compared with the text, after edits of a tool, of a command and of `git checkout`, and after the server was killed
//! at random moments.
//!
//! Each symbol has a name that the project uses for nothing else, so that the lines with this name outside of comments
//! and strings are the whole truth.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use carrel_config::OperatorPolicy;
use carrel_tools::ToolResponse;
use fastrand::Rng;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

/// The time for a server to read a project, on a machine that is busy.
const READING_TIME: Duration = Duration::from_mins(2);

/// Kills of a server. One more within five minutes, and it would not be started again.
const KILLS: usize = 3;

/// A line of the project: its path and number.
type Line = (String, usize);

/// A project and a symbol of it.
struct Project {
    /// Its archive in `target/projects/archives`.
    archive: &'static str,
    server: &'static str,
    /// The endings of its sources.
    extensions: &'static [&'static str],
    /// The beginnings of lines that are comments.
    comments: &'static [&'static str],
    /// Makes the unpacked tree a project that the server can read.
    prepare: fn(&Path),
    name: &'static str,
    new_name: &'static str,
    /// The definition: its file, and the text with a mark before the name.
    definition: (&'static str, &'static str),
    /// A use, in the same form.
    used: (&'static str, &'static str),
    /// A text of the file with the use, and one in its place that is wrong.
    broken: (&'static str, &'static str),
    /// A word of the problem that this makes.
    problem: &'static str,
    /// A file that uses the symbol once more, and its text.
    added: (&'static str, &'static str),
}

/// The environment of a run, and the time of its last step.
struct Run {
    project: Project,
    test_env: TestEnvironment,
    since: Instant,
}

impl Project {
    async fn run(self) {
        let Some(archive) = archive(self.archive) else { return };
        let test_env = machine();
        let top = test_env.path("main");
        unpack(&archive, &top);
        (self.prepare)(&top);
        git(&top, &["init", "-q"]);
        git(&top, &["add", "-A"]);
        git(&top, &["commit", "-q", "-m", "as published"]);
        let mut run = Run { project: self, test_env, since: Instant::now() };
        run.finds_everything().await;
        run.sees_the_edit_of_a_tool().await;
        run.sees_the_edit_of_a_command().await;
        run.sees_a_checkout().await;
        run.survives_kills().await;
        run.tells_problems().await;
        run.renames().await;
        run.test_env.registry.toolbox().end_processes().await;
        assert_eq!(processes(&run.test_env.path("main")), Vec::<i32>::new());
    }
}

impl Run {
    async fn finds_everything(&mut self) {
        let (file, piece) = self.project.definition;
        let (line, _) = self.place(file, piece);
        let answer = self.ask_place("find_definition", self.project.used).await;
        let text = answer.text();
        assert!(text.contains(&format!("{file}:{line}:")), "{file}:{line} is not in\n{text}");
        assert!(text.contains(&format!("[by {}]", self.project.server)), "{text}");
        self.lap("first definition");
        self.compare().await;
        self.lap("first references");
    }

    async fn sees_the_edit_of_a_tool(&mut self) {
        let (file, piece) = self.project.used;
        let piece = piece.replace('|', "");
        let line = self.line_of(file, &piece);
        self.tool("Read", json!({ "file_path": file })).await;
        let comment = self.project.comments[0];
        let above = format!("{comment} one line more\n{comment} and another\n{line}");
        let edit = json!({ "file_path": file, "old_string": line, "new_string": above });
        self.tool("Edit", edit).await;
        self.compare().await;
        let (added, text) = self.project.added;
        self.tool("Write", json!({ "file_path": added, "content": text })).await;
        let lines = self.compare().await;
        assert!(lines.iter().any(|(path, _)| path == added), "{lines:?}");
        self.lap("edit of a tool");
    }

    async fn sees_the_edit_of_a_command(&mut self) {
        let (file, _) = self.project.definition;
        let comment = self.project.comments[0];
        let before = self.compare().await;
        // Every line of the definition's file moves, and the use in the added file is taken away.
        let (added, _) = self.project.added;
        let name = self.project.name;
        let command =
            format!("sed -i '1i {comment} moved' {file} && sed -i 's/{name}/no_{name}/' {added}");
        self.tool("Bash", json!({ "command": command })).await;
        let after = self.compare().await;
        assert_ne!(before, after);
        self.lap("edit of a command");
    }

    async fn sees_a_checkout(&mut self) {
        let changed = self.compare().await;
        let commands = "git checkout -q -b other && git add -A && git -c user.name=a -c user.email=a@example.org \
            commit -q -m changed && git checkout -q -";
        self.tool("Bash", json!({ "command": commands })).await;
        let published = self.compare().await;
        assert_ne!(changed, published);
        self.tool("Bash", json!({ "command": "git checkout -q other" })).await;
        assert_eq!(self.compare().await, changed);
        self.tool("Bash", json!({ "command": "git checkout -q -" })).await;
        assert_eq!(self.compare().await, published);
        self.lap("checkouts");
    }

    /// Kills the server at random moments of requests, each of which has an edit to tell it. Whatever was being asked
    /// is answered, and the answers afterwards are those of a new server.
    async fn survives_kills(&mut self) {
        let (top, mut random) = (self.test_env.path("main"), random());
        let (file, _) = self.project.definition;
        let before = self.test_env.get(file);
        self.put_comment(file);
        let begun = Instant::now();
        self.compare().await;
        let time = begun.elapsed();
        for round in 0..KILLS {
            let moment = time.mul_f64(random.f64());
            let (is_killed, killed) = (Cell::new(false), Cell::new(Vec::new()));
            // Both are parts of one task, in which the first one pauses nowhere but in requests.
            let asking = async {
                while !is_killed.get() {
                    self.put_comment(file);
                    self.ask_once().await;
                }
            };
            let killing = async {
                tokio::time::sleep(moment).await;
                // The processes are those of the server: nothing else runs in the workspace.
                killed.set(kill(&top));
                is_killed.set(true);
            };
            tokio::join!(asking, killing);
            let killed = killed.into_inner();
            assert!(!killed.is_empty(), "there is no server to kill in round {round}");
            self.compare().await;
            let running = processes(&top);
            assert!(!running.is_empty(), "no server has answered in round {round}");
            assert!(running.iter().all(|pid| !killed.contains(pid)), "{running:?} {killed:?}");
        }
        self.test_env.put(file, &before);
        self.compare().await;
        self.lap("three kills");
    }

    /// Asks for the references once; an answer of the server is right even if the server dies meanwhile.
    async fn ask_once(&self) {
        let (file, piece) = self.project.definition;
        let (line, col) = self.place(file, piece);
        let place = json!({ "file_path": file, "line": line, "col": col });
        let answer = self.tool("find_references", place).await;
        if answer.structured["source"] == "semantic" {
            assert_eq!(shown_lines(&answer.text()), self.truth(self.project.name));
        }
    }

    /// Puts a comment above a file, as a command would.
    fn put_comment(&self, file: &str) {
        let text = format!("{} one more\n{}", self.project.comments[0], self.test_env.get(file));
        self.test_env.put(file, text);
    }

    async fn tells_problems(&mut self) {
        let (file, _) = self.project.used;
        let (right, wrong) = self.project.broken;
        let path = json!({ "path": file });
        let before = self.tool("diagnostics", path.clone()).await.text();
        assert!(!before.contains(self.project.problem), "{before}");
        let text = self.test_env.get(file);
        assert!(text.contains(right), "{file} has no {right:?}");
        self.test_env.put(file, text.replacen(right, wrong, 1));
        let after = self.tool("diagnostics", path.clone()).await.text();
        assert!(after.contains(self.project.problem), "{after}");
        self.test_env.put(file, &text);
        assert_eq!(self.tool("diagnostics", path).await.text(), before);
        self.lap("problems");
    }

    async fn renames(&mut self) {
        let Project { name, new_name, definition, used, .. } = self.project;
        let before = self.truth(name);
        let problems = self.problems(&before).await;
        let (line, col) = self.place(definition.0, definition.1);
        let place =
            json!({ "file_path": definition.0, "line": line, "col": col, "new_name": new_name });
        let answer = self.tool("rename_symbol", place).await;
        assert_eq!(answer.structured["applied"], true, "{}", answer.text());
        assert_eq!((self.truth(name), self.truth(new_name)), (BTreeSet::new(), before.clone()));
        assert_eq!(self.problems(&before).await, problems);
        let used = (used.0, used.1.replace(&format!("|{name}"), &format!("|{new_name}")));
        let answer = self.ask_place("find_references", (used.0, &used.1)).await;
        assert_eq!(shown_lines(&answer.text()), before);
        self.tool("rename_symbol", json!({ "undo": true })).await;
        assert_eq!(self.compare().await, before);
        self.lap("rename and its undo");
    }

    /// Compares the references with the text, and returns their lines.
    async fn compare(&self) -> BTreeSet<Line> {
        let answer = self.ask_place("find_references", self.project.definition).await;
        let truth = self.truth(self.project.name);
        assert_eq!(shown_lines(&answer.text()), truth, "{}", answer.text());
        assert_eq!(answer.structured["complete"], true, "{}", answer.text());
        truth
    }

    /// Returns the problems of the files with these lines, without their places.
    async fn problems(&self, lines: &BTreeSet<Line>) -> Vec<String> {
        let files: BTreeSet<_> = lines.iter().map(|(path, _)| path).collect();
        let mut problems = Vec::new();
        for file in files {
            let answer = self.tool("diagnostics", json!({ "path": file })).await;
            let found = answer.structured["problems"].as_array().unwrap().clone();
            problems.extend(found.into_iter().map(|one| format!("{file}: {}", one["message"])));
        }
        problems
    }

    /// Asks about a place until a server has answered.
    async fn ask_place(&self, tool: &str, (file, piece): (&str, &str)) -> ToolResponse {
        let (line, col) = self.place(file, piece);
        let place = json!({ "file_path": file, "line": line, "col": col });
        let end = Instant::now() + READING_TIME;
        // A reason that lasts is told once.
        let mut reasons = BTreeSet::new();
        loop {
            let answer = self.tool(tool, place.clone()).await;
            if answer.structured["source"] == "semantic" {
                return answer;
            }
            reasons.insert(answer.structured["unanswered"].to_string());
            assert!(Instant::now() < end, "{tool}: no server has answered: {reasons:?}");
        }
    }

    async fn tool(&self, tool: &str, arguments: Value) -> ToolResponse {
        let answer = self.test_env.call(tool, arguments.clone()).await;
        assert!(!answer.is_error, "{tool} {arguments}: {}", answer.text());
        answer
    }

    /// Returns line and column of the mark in a piece of a file's text.
    fn place(&self, file: &str, piece: &str) -> (usize, usize) {
        let (before, after) = piece.split_once('|').expect("the piece marks a place");
        let text = self.test_env.get(file);
        let found = text.find(&format!("{before}{after}"));
        let offset = found.unwrap_or_else(|| panic!("{file} has no {piece:?}")) + before.len();
        let above = &text[..offset];
        let column = above.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (above.matches('\n').count() + 1, column)
    }

    /// Returns the line of a file that has a piece of text.
    fn line_of(&self, file: &str, piece: &str) -> String {
        let text = self.test_env.get(file);
        text.lines().find(|line| line.contains(piece)).unwrap().to_owned()
    }

    /// Returns the lines of sources that have a name outside of comments and strings.
    fn truth(&self, name: &str) -> BTreeSet<Line> {
        let top = self.test_env.path("main");
        let mut lines = BTreeSet::new();
        let mut directories = vec![top.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let path = entry.path();
                let ending = path.extension().and_then(|extension| extension.to_str());
                if entry.file_type().unwrap().is_dir() {
                    directories.push(path);
                } else if ending.is_some_and(|ending| self.project.extensions.contains(&ending)) {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let path = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
                    let own = text.lines().enumerate().filter(|(_, line)| self.uses(line, name));
                    lines.extend(own.map(|(number, _)| (path.clone(), number + 1)));
                }
            }
        }
        lines
    }

    fn uses(&self, line: &str, name: &str) -> bool {
        let is_comment = |start: &&str| line.trim_start().starts_with(*start);
        if self.project.comments.iter().any(is_comment) {
            return false;
        }
        let code: String = line.split('"').step_by(2).collect::<Vec<_>>().join("\"");
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        code.split(|c| !is_part(c)).any(|word| word == name)
    }

    #[expect(clippy::print_stderr, reason = "the times of a run")]
    fn lap(&mut self, step: &str) {
        let Project { server, .. } = self.project;
        eprintln!("{server}: {step} {:.1} s", self.since.elapsed().as_secs_f64());
        self.since = Instant::now();
    }
}

/// Returns the lines of an answer, which has the lines of a file below its path.
fn shown_lines(text: &str) -> BTreeSet<Line> {
    let mut file = String::new();
    let mut lines = BTreeSet::new();
    for line in text.lines().skip(1) {
        match line.strip_prefix("  ") {
            Some(row) => {
                let digits = row.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                lines.extend(digits.parse().ok().map(|number| (file.clone(), number)));
            }
            None => line.clone_into(&mut file),
        }
    }
    lines
}

/// Returns the archive of a project; none if it was not fetched, which fails in CI.
fn archive(name: &str) -> Option<PathBuf> {
    let path = target().join("projects/archives").join(name);
    if !path.is_file() {
        carrel_skip::unavailable(&format!(
            "{name} was not fetched: run scripts/install-test-tools"
        ));
        return None;
    }
    Some(path)
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// A machine with the language servers that `scripts/install-test-tools` puts into the target directory.
fn machine() -> TestEnvironment {
    // The sandbox shows directories by their real paths.
    let installed = |name| std::fs::canonicalize(target().join(name)).unwrap();
    let (python, servers) = (installed("test-tools/python"), installed("language-servers"));
    let policy = OperatorPolicy {
        path: vec![python.join("bin"), servers.join("node_modules/.bin")],
        readable: vec![python, servers],
        ..OperatorPolicy::default()
    };
    TestEnvironment::with(Setting { policy, ..Setting::default() })
}

/// Returns random numbers. `CARREL_SEED` repeats a run.
#[expect(clippy::print_stderr, reason = "the seed repeats a run that failed")]
fn random() -> Rng {
    let seed = std::env::var("CARREL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("CARREL_SEED={seed}");
    Rng::with_seed(seed)
}

fn unpack(archive: &Path, top: &Path) {
    let mut tar = Command::new("tar");
    tar.arg("xf").arg(archive).args(["--strip-components=1", "--no-same-owner", "-C"]).arg(top);
    assert!(tar.status().unwrap().success());
}

fn git(top: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let ran = Command::new("git").args(identity).args(arguments).current_dir(top).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Kills the processes that work in a workspace, and returns them.
fn kill(workspace: &Path) -> Vec<i32> {
    let processes = processes(workspace);
    for pid in &processes {
        let pid = rustix::process::Pid::from_raw(*pid).unwrap();
        // It may have ended with its parent.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    processes
}

/// Returns the processes whose working directory lies in a workspace.
fn processes(workspace: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = entries.filter_map(|entry| {
        let directory = std::fs::read_link(entry.path().join("cwd")).ok()?;
        let id = entry.file_name().to_str()?.parse().ok()?;
        directory.starts_with(workspace).then_some(id)
    });
    ids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_analyzer_knows_humantime() {
    let project = Project {
        archive: "humantime-2.1.0.crate",
        server: "rust-analyzer",
        extensions: &["rs"],
        comments: &["//"],
        // Its tests and benchmarks need crates that are not there.
        prepare: |top| {
            let manifest = "[package]\nname = \"humantime\"\nversion = \"2.1.0\"\nedition = \"2018\"\nautobenches = false\n";
            std::fs::write(top.join("Cargo.toml"), manifest).unwrap();
            std::fs::remove_dir_all(top.join("benches")).unwrap();
        },
        name: "parse_rfc3339_weak",
        new_name: "parse_timestamp",
        definition: ("src/date.rs", "pub fn |parse_rfc3339_weak"),
        used: ("src/wrapper.rs", "|parse_rfc3339_weak(s).map"),
        broken: ("parse_rfc3339_weak(s).map", "parse_rfc3339_weak(17).map"),
        problem: "E0308",
        added: (
            "tests/added.rs",
            "#[test]\nfn added() {\n    humantime::parse_rfc3339_weak(\"2018\").unwrap_err();\n}\n",
        ),
    };
    project.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gopls_knows_go_cmp() {
    let project = Project {
        archive: "golang-github-google-go-cmp_0.5.9.orig.tar.gz",
        server: "gopls",
        extensions: &["go"],
        comments: &["//"],
        prepare: |_| {},
        name: "NameOf",
        new_name: "FunctionName",
        definition: ("cmp/internal/function/func.go", "func |NameOf("),
        used: ("cmp/compare.go", "non-deterministic function detected: %s\", function.|NameOf(f)"),
        broken: ("function.NameOf(f)", "function.NameOf(17)"),
        problem: "IncompatibleAssign",
        added: (
            "cmp/added.go",
            "package cmp\n\nimport (\n\t\"reflect\"\n\n\t\"github.com/google/go-cmp/cmp/internal/function\"\n)\n\n\
             var added = function.NameOf(reflect.ValueOf(Equal))\n",
        ),
    };
    project.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ty_knows_click() {
    let project = Project {
        archive: "click-8.1.8.tar.gz",
        server: "ty",
        extensions: &["py"],
        comments: &["#"],
        prepare: |_| {},
        name: "strip_ansi",
        new_name: "without_styles",
        definition: ("src/click/_compat.py", "def |strip_ansi("),
        used: ("src/click/termui.py", "return |strip_ansi(text)"),
        broken: ("return strip_ansi(text)", "return strip_ansi(17)"),
        problem: "invalid-argument-type",
        added: (
            "src/click/added.py",
            "from . import _compat\n\n\ndef added(text: str) -> str:\n    return _compat.strip_ansi(text)\n",
        ),
    };
    project.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_language_server_knows_immer() {
    let project = Project {
        archive: "immer-10.1.1.tgz",
        server: "typescript-language-server",
        extensions: &["ts"],
        comments: &["//", "*"],
        // The repository has neither what was built from the sources nor the configuration of that.
        prepare: |top| {
            std::fs::remove_dir_all(top.join("dist")).unwrap();
            let options = json!({
                "lib": ["esnext"], "module": "esnext", "moduleResolution": "bundler", "noEmit": true,
                "strict": true, "target": "esnext",
            });
            let config = json!({ "compilerOptions": options, "include": ["src"] });
            std::fs::write(top.join("tsconfig.json"), config.to_string()).unwrap();
        },
        name: "shallowCopy",
        new_name: "copyOfOneLevel",
        definition: ("src/utils/common.ts", "function |shallowCopy("),
        used: ("src/core/current.ts", "copy = |shallowCopy(value, true)"),
        broken: ("shallowCopy(value, true)", "shallowCopy(value, 17)"),
        problem: "2345",
        added: (
            "src/added.ts",
            "import * as common from \"./utils/common\"\n\nexport const added = common.shallowCopy([], true)\n",
        ),
    };
    project.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd_knows_jansson() {
    let project = Project {
        archive: "jansson_2.14.orig.tar.gz",
        server: "clangd",
        extensions: &["c", "h"],
        comments: &["//", "*", "/*"],
        // What CMake would write, with the configuration that the project keeps for one system.
        prepare: |top| {
            let sources = std::fs::read_dir(top.join("src")).unwrap().map(Result::unwrap);
            let names = sources.map(|entry| format!("src/{}", entry.file_name().to_str().unwrap()));
            let names = names.chain(["src/added.c".to_owned()]);
            let is_unit = |name: &String| Path::new(name).extension().is_some_and(|end| end == "c");
            let commands = names.filter(is_unit).map(|file| {
                let arguments = ["cc", "-Isrc", "-Iandroid", "-c", &file];
                json!({ "directory": top, "file": file, "arguments": arguments })
            });
            let commands: Value = commands.collect();
            std::fs::write(top.join("compile_commands.json"), commands.to_string()).unwrap();
        },
        name: "hashtable_set",
        new_name: "hashtable_put",
        definition: ("src/hashtable.c", "int |hashtable_set("),
        used: ("src/value.c", "return |hashtable_set(parents"),
        broken: ("hashtable_set(parents", "hashtable_set(17, parents"),
        problem: "typecheck_call_too_many_args",
        added: (
            "src/added.c",
            "#include \"hashtable.h\"\n\nint added(hashtable_t *table) {\n    return hashtable_set(table, \"a\", 1, 0);\n}\n",
        ),
    };
    project.run().await;
}
