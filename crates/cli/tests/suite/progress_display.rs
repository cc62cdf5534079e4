//! Progress of long work on stderr, with and without a terminal.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::test_environment::TestEnvironment;

/// Progress that takes longer than this does not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A project whose tests print a line and go on until the file `stop` is there.
fn prepare(test_env: &TestEnvironment) {
    let test = "echo begun; until [ -e stop ]; do sleep 0.05; done; echo ended";
    test_env.write("package.json", &json!({ "scripts": { "test": test } }).to_string());
}

fn end(test_env: &TestEnvironment) {
    test_env.write("stop", "");
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run_tests(test_env: &TestEnvironment, options: &[&str]) -> Command {
    let mut command = test_env.carrel();
    command.args(["tool", "--workspace"]).arg(test_env.workspace()).args(options).arg("run_tests");
    command
}

/// Passes the pieces of a stream on as they come.
fn pieces(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut stream = stream;
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            let _ = sender.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
        }
    });
    receiver
}

/// Waits until a stream has shown a text, and returns all of it until then.
fn until(stream: &Receiver<String>, text: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut shown = String::new();
    while !shown.contains(text) {
        let left = deadline.saturating_duration_since(Instant::now());
        let piece = stream.recv_timeout(left);
        shown += &piece.unwrap_or_else(|_| panic!("no {text:?} in {shown:?}"));
    }
    shown
}

#[test]
fn without_a_terminal_a_line_every_few_seconds_says_that_the_work_goes_on() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    // These begin first, so that they have run as long when the other has shown a line.
    let silent = [&["--quiet"], &["--json"]].map(|options| start(run_tests(&test_env, options)));
    let mut child = start(run_tests(&test_env, &[]));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let seconds =
        line.strip_prefix("run_tests: ").and_then(|rest| rest.split_once(" s, ")).unwrap();
    assert!((5..60).contains(&seconds.0.parse::<u32>().unwrap()), "{line}");
    assert_eq!(seconds.1, "last line: begun", "{line}");
    end(&test_env);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("passed"), "{output:?}");
    for child in silent {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("run_tests"), "{output:?}");
    }
}

#[test]
fn on_a_terminal_a_spinner_shows_the_time_and_the_last_line_and_is_removed() {
    let test_env = TestEnvironment::usual();
    prepare(&test_env);
    let carrel = run_tests(&test_env, &[]);
    let words = [carrel.get_program()].into_iter().chain(carrel.get_args());
    let line: Vec<_> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("stty cols 200; {}", line.join(" ")), "/dev/null"]);
    command.env_clear().envs(carrel.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("TERM", "xterm").env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let mut child = start(command);
    let terminal = pieces(child.stdout.take().unwrap());
    until(&terminal, "run_tests: 1 s, last line: begun");
    until(&terminal, "run_tests: 2 s, last line: begun");
    end(&test_env);
    let rest = until(&terminal, "passed");
    // The line is erased before the answer stands in its place.
    let before = &rest[..rest.find("passed").unwrap()];
    assert!(before.ends_with("\u{1b}[2K") || before.ends_with("\u{1b}[K"), "{rest:?}");
    assert!(child.wait().unwrap().success(), "{rest:?}");
}

#[test]
fn a_hook_that_takes_long_is_progress_of_workspace_create() {
    let test_env = TestEnvironment::usual();
    let (root, stop) = (test_env.path("root"), test_env.path("stop"));
    let hook = format!("until [ -e '{}' ]; do sleep 0.05; done", stop.display());
    let workflow = format!("---\nhooks:\n  after_create: \"{hook}\"\n---\n");
    std::fs::write(test_env.path("WORKFLOW.md"), workflow).unwrap();
    let mut command = test_env.carrel();
    command.args(["workspace", "create", "ABC-1", "--root"]).arg(&root);
    command.arg("--config").arg(test_env.path("WORKFLOW.md"));
    let mut child = start(command);
    let shown = pieces(child.stderr.take().unwrap());
    until(&shown, "workspace create: 5 s\n");
    std::fs::write(&stop, "").unwrap();
    assert!(child.wait().unwrap().success());
}
