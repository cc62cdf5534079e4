//! The `console` blocks of README and the guides, typed as printed.
//!
//! Each file is a session of its own: a home directory that holds nothing but the repository's `examples`,
//! and a shell whose directory and variables last from one command to the next. A
//! line that begins with `$ ` is a command; the lines below it are its output. `…` stands for text within a
//! line, or for any number of lines where it stands alone. A last line `^C` interrupts a command that would
//! go on. Times, sizes, hashes and the home directory are filtered, so they may be written as a reader would
//! see them. An HTML comment `<!-- run: … -->` holds commands that prepare a block and are not shown.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;

use crate::repository;

/// Bounds a command of a transcript, of which some build a project.
const DEADLINE: Duration = Duration::from_mins(1);

/// The port that transcripts show, which is replaced by one that is free.
const SHOWN_PORT: &str = "8080";

macro_rules! transcripts {
    ($($name:ident: $file:literal,)*) => {
        $(#[test]
        fn $name() {
            check($file);
        })*

        const FILES: &[&str] = &[$($file),*];
    };
}

transcripts! {
    readme: "README.md",
    commands: "docs/commands.md",
    conductor: "docs/conductor.md",
    lifecycle: "docs/lifecycle.md",
    mcp: "docs/mcp.md",
    security: "docs/security.md",
    troubleshooting: "docs/troubleshooting.md",
    workspaces: "docs/workspaces.md",
}

#[test]
fn every_file_with_a_transcript_is_run() {
    let guides = fs::read_dir(repository().join("docs")).unwrap();
    let paths = guides.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let with_transcript = |path: &String| {
        Path::new(path).extension().is_some_and(|extension| extension == "md")
            && !steps(&read(path)).iter().all(|step| step.hidden)
    };
    let mut missing: Vec<_> = paths.filter(with_transcript).collect();
    missing.retain(|path| !FILES.contains(&path.as_str()));
    assert!(missing.is_empty(), "transcripts that no test runs: {missing:?}");
}

#[test]
fn a_line_that_differs_is_told_with_its_file_and_line() {
    let text = "```console\n$ echo one\ntwo\n```\n";
    let mismatch = Session::new("example.md").run(&steps(text)).unwrap_err();
    assert!(mismatch.contains("example.md:2: $ echo one"), "{mismatch}");
    assert!(mismatch.contains("- two") && mismatch.contains("+ one"), "{mismatch}");
}

fn check(file: &str) {
    if let Err(mismatch) = Session::new(file).run(&steps(&read(file))) {
        panic!("{mismatch}");
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(repository().join(file)).unwrap()
}

/// One command of a transcript and its output.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
    /// It prepares a block, and only its success counts.
    hidden: bool,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(first) = line.trim_start().strip_prefix("<!-- run:") {
            let mut command = first.to_owned();
            while !command.contains("-->") {
                command.push('\n');
                command.push_str(lines.next().expect("a comment ends").0);
            }
            let command = command.replace("-->", "");
            steps.push(Step { line: number, command, expected: Vec::new(), hidden: true });
        }
        if line != "```console" {
            continue;
        }
        for (line, number) in lines.by_ref().take_while(|(line, _)| *line != "```") {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push(Step {
                    line: number,
                    command: command.to_owned(),
                    expected: Vec::new(),
                    hidden: false,
                }),
                None => {
                    steps.last_mut().expect("a command comes first").expected.push(line.to_owned());
                }
            }
        }
    }
    steps
}

/// A shell whose directory, variables and last status outlive each command.
struct Session {
    file: String,
    directory: tempfile::TempDir,
    port: String,
    /// Process groups of the commands, ended with the session.
    groups: Vec<rustix::process::Pid>,
    /// The commands before this one succeeded or failed; `$?` of the next.
    status: i32,
}

impl Session {
    fn new(file: &str) -> Self {
        // Below the temporary directory nothing of a home would look as it does in one.
        let directory = tempfile::tempdir_in("/home")
            .or_else(|_| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")))
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let session =
            Self { file: file.to_owned(), directory, port, groups: Vec::new(), status: 0 };
        let home = session.home();
        fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::symlink(repository().join("examples"), home.join("examples")).unwrap();
        fs::write(session.path("directory"), home.as_os_str().as_encoded_bytes()).unwrap();
        fs::write(session.path("variables"), "").unwrap();
        session
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.path("home/user")
    }

    fn run(mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let interrupted = step.expected.last().is_some_and(|line| line == "^C");
        let expected = &step.expected[..step.expected.len() - usize::from(interrupted)];
        let mut child = self.start(&step.command);
        let ended = self.wait(&mut child, |output| interrupted && matches(expected, output));
        let output = self.output();
        let succeeded = ended.is_some_and(|status| status == 0);
        self.status = ended.unwrap_or(130);
        let as_expected = if step.hidden { succeeded } else { matches(expected, &output) };
        if as_expected && (ended.is_some() || interrupted) {
            return Ok(());
        }
        Err(self.mismatch(step, expected, &output, ended))
    }

    fn start(&mut self, command: &str) -> Child {
        let command = command
            .replace("/home/user", self.home().to_str().unwrap())
            .replace(SHOWN_PORT, &self.port);
        // The state of the shell is kept in two files, since each command has a process group of its own.
        let script = format!(
            "set -a; . \"$STATE/variables\"; cd \"$(cat \"$STATE/directory\")\"; (exit {})\n{command}\nstatus=$?\n\
             pwd > \"$STATE/directory\"; export -p > \"$STATE/variables\"; exit $status\n",
            self.status
        );
        let output = File::create(self.path("output")).unwrap();
        let carrel = Path::new(env!("CARGO_BIN_EXE_carrel")).parent().unwrap();
        let path = format!("{}:{}", carrel.display(), std::env::var("PATH").unwrap());
        let child = Command::new("bash")
            .args(["-c", &script])
            .env_clear()
            .envs([("PATH", path.as_str()), ("USER", "user"), ("LANG", "C.UTF-8")])
            .envs([("HOME", self.home()), ("STATE", self.directory.path().to_owned())])
            .envs(toolchain())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap();
        self.groups.push(rustix::process::Pid::from_child(&child));
        child
    }

    /// Waits for the command, or until it was interrupted because its output is complete. Returns its
    /// exit status if it ended by itself.
    fn wait(&self, child: &mut Child, complete: impl Fn(&str) -> bool) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return Some(status.code().unwrap_or(128));
            }
            let overdue = start.elapsed() > DEADLINE;
            if overdue || complete(&self.output()) {
                let signal = rustix::process::Signal::INT;
                let group = rustix::process::Pid::from_child(child);
                rustix::process::kill_process_group(group, signal).unwrap();
                child.wait().unwrap();
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the output so far, with the home directory and the port as transcripts show them.
    fn output(&self) -> String {
        let mut bytes = Vec::new();
        File::open(self.path("output")).unwrap().read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let text = toolchain().iter().fold(text.into_owned(), |text, (name, path)| {
            let shown =
                if *name == "CARGO_HOME" { "/home/user/.cargo" } else { "/home/user/.rustup" };
            text.replace(path.to_str().unwrap(), shown)
        });
        text.replace(self.home().to_str().unwrap(), "/home/user").replace(&self.port, SHOWN_PORT)
    }

    fn mismatch(
        &self,
        step: &Step,
        expected: &[String],
        output: &str,
        ended: Option<i32>,
    ) -> String {
        let mut text = format!("{}:{}: $ {}\n", self.file, step.line, step.command);
        for line in expected {
            writeln!(text, "- {line}").unwrap();
        }
        for line in output.lines() {
            writeln!(text, "+ {line}").unwrap();
        }
        match ended {
            Some(status) => writeln!(text, "(exit status {status})").unwrap(),
            None => writeln!(text, "(interrupted)").unwrap(),
        }
        text
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for group in &self.groups {
            // Most groups are gone.
            let _ = rustix::process::kill_process_group(*group, rustix::process::Signal::KILL);
        }
    }
}

/// Returns the variables that let cargo work with another home directory.
fn toolchain() -> [(&'static str, PathBuf); 2] {
    let own = std::env::home_dir().expect("the tests have a home directory");
    [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")].map(|(name, usual)| {
        (name, std::env::var_os(name).map_or_else(|| own.join(usual), PathBuf::from))
    })
}

/// Compares an output with the lines of a transcript.
fn matches(expected: &[String], output: &str) -> bool {
    let mut pattern = String::from(r"\A");
    for line in expected {
        match line.trim_end() {
            "…" => pattern.push_str(r"(?:.*\n)*?"),
            line => {
                let line = regex::escape(&filtered(line)).replace('…', ".*");
                writeln!(pattern, "{line}").unwrap();
            }
        }
    }
    pattern.push_str(r"\z");
    let output: String = output.lines().map(|line| filtered(line.trim_end()) + "\n").collect();
    Regex::new(&pattern).unwrap().is_match(&output)
}

/// Replaces what differs from run to run: times, durations, sizes, hashes, alignment.
fn filtered(line: &str) -> String {
    const FILTERS: &[(&str, &str)] = &[
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"[A-Z][a-z]{2} +\d+ \d\d:\d\d", "TIME"),
        (r"\b\d{13}-[0-9a-f]{4}\b", "LOG"),
        (r"\b\d+(\.\d+)? ?(ms|µs|s)\b", "DURATION"),
        (r"\b\d+(\.\d+)? ?([KMG]i)?B\b", "SIZE"),
        (r#"("[a-z_]+_(ms|bytes)": ?)[\d.]+"#, "${1}NUMBER"),
        (r"\b[0-9a-f]{7,64}\b", "HASH"),
        (r"\b(job_)[0-9a-z]+", "${1}ID"),
        (r"\b20000\d{5}\b", "UID"),
        (r"(token=)\S+", "${1}TOKEN"),
        (r"\(process \d+", "(process PID"),
        (r"kernel \d[^,]*", "kernel RELEASE"),
        (r"^[ \t]+", ""),
        (r"[ \t]+", " "),
    ];
    FILTERS.iter().fold(line.to_owned(), |line, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&line, *with).into_owned()
    })
}
