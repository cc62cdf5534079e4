//! Real projects, built and tested behind the sandbox with the toolchains that are found by
//! themselves. A tool that is missing is said so on stderr.

/// git and package managers in forks.
mod forks;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::interfaces::Interface;
use crate::test_environment::{Caller, Done, TestEnvironment};

/// The home of whoever runs the tests, where toolchains are.
fn own_home() -> PathBuf {
    std::env::home_dir().expect("whoever runs the tests has a home")
}

/// Whoever has toolchains: the one who runs the tests.
fn with_toolchains() -> Vec<TestEnvironment> {
    let is_root = rustix::process::geteuid().is_root();
    let own = if is_root { Caller::Root } else { Caller::User };
    let mut labs = TestEnvironment::all();
    labs.retain(|test_env| test_env.caller == own);
    if is_root {
        // In tier `landlock` an administrator's home is closed to commands.
        labs.retain(|test_env| test_env.tier == "full");
    }
    labs
}

/// Runs a line with the toolchains of whoever runs the tests.
fn at_home(test_env: &TestEnvironment, options: &[&str]) -> Done {
    let mut command = test_env.exec(&["--json", "--timeout", "100"]);
    command.env("HOME", own_home()).args(options);
    Done::of(command)
}

fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns a crate without dependencies of its own that was downloaded before, and its version.
fn downloaded(name: &str) -> Option<String> {
    let caches = std::fs::read_dir(own_home().join(".cargo/registry/cache")).ok()?;
    let files = caches.flatten().flat_map(|cache| std::fs::read_dir(cache.path()).unwrap());
    let names = files.filter_map(|file| file.unwrap().file_name().into_string().ok());
    let version = |file: String| {
        let version = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".crate")?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
    };
    names.filter_map(version).max()
}

#[test]
fn a_rust_project_with_a_dependency_passes_its_tests_without_a_network() {
    if !has("cargo") {
        return carrel_skip::unavailable("cargo");
    }
    let Some(version) = downloaded("fastrand") else {
        return carrel_skip::unavailable("fastrand in the registry cache");
    };
    for test_env in with_toolchains() {
        let manifest = format!(
            "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
             [dependencies]\nfastrand = \"={version}\"\n"
        );
        test_env.write("Cargo.toml", &manifest);
        test_env.write(
            "src/lib.rs",
            "pub fn roll() -> u8 { fastrand::u8(1..=6) }\n\
             #[test] fn it_rolls() { assert!((1..=6).contains(&roll())); }\n",
        );
        let done = at_home(&test_env, &["-c", "cargo test --offline"]);
        eprintln!("{test_env}: cargo test in {:?}", done.took);
        assert_eq!(done.code, 0, "{test_env}: {:#}", done.json);
        assert!(done.stdout().contains("test it_rolls ... ok"), "{test_env}: {}", done.stdout());
        assert!(test_env.workspace().join("target/debug").is_dir(), "{test_env}");
    }
}

/// A crate whose build script prepares for a while, and an edit of it.
fn slow_crate(write: impl Fn(&str, &str), script: &str) -> serde_json::Value {
    let manifest = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    write("Cargo.toml", manifest);
    write("Cargo.lock", "version = 3\n\n[[package]]\nname = \"sample\"\nversion = \"0.1.0\"\n");
    write("src/lib.rs", "//! Sample.\n");
    write("build.rs", &format!("fn main() {{ {script} }}\n"));
    serde_json::json!({ "file_path": "src/new.rs", "content": "//! New.\n" })
}

#[test]
fn a_post_edit_check_beyond_the_quota_leaves_room_for_the_next_edit() {
    if !has("cargo") {
        return carrel_skip::unavailable("cargo");
    }
    for test_env in with_toolchains() {
        let workspace = test_env.managed("40M");
        let write = |path: &str, text: &str| {
            let path = workspace.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let fill = "let out = std::env::var(\"OUT_DIR\").unwrap(); \
                    std::fs::write(out.clone() + \"/a\", vec![1; 30 << 20]).unwrap(); \
                    std::fs::write(out + \"/b\", vec![1; 30 << 20]).unwrap(); \
                    std::thread::sleep(std::time::Duration::from_secs(60));";
        let new_file = slow_crate(write, fill);
        let options = ["--workspace", workspace.to_str().unwrap(), "--tier", test_env.tier];
        let mut session = Interface::Stdio.open_with(&test_env, &options, |command| {
            command.env("HOME", own_home());
        });
        let mut text = session.call("Write", new_file).text;
        let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while !text.contains("off, its build directory exceeds the quota and was removed") {
            assert!(std::time::Instant::now() < deadline, "{test_env}: {text}");
            text = session.call("Glob", serde_json::json!({ "pattern": "*.toml" })).text;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let again = serde_json::json!({ "file_path": "src/more.rs", "content": "//! More.\n" });
        let answer = session.call("Write", again);
        assert!(!answer.is_error, "{test_env}: {answer:?}");
        assert!(!answer.text.contains("post-edit check"), "{test_env}: {answer:?}");
    }
}

/// Returns true if the machine has the tools for coverage of the toolchain's version of LLVM.
fn has_coverage_tools() -> bool {
    let output = Command::new("rustc").arg("-vV").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let version = text.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let major = version.and_then(|version| version.split('.').next());
    major.is_some_and(|major| Path::new(&format!("/usr/bin/llvm-cov-{major}")).exists())
}

#[test]
fn a_recording_beyond_the_quota_leaves_room_for_the_next_command() {
    if !has("cargo") || !has_coverage_tools() {
        return carrel_skip::unavailable("cargo with the coverage tools of its LLVM");
    }
    for test_env in with_toolchains() {
        let workspace = test_env.managed("100M");
        let write = |path: &str, text: &str| {
            let path = workspace.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let fill = "let out = std::env::var(\"OUT_DIR\").unwrap(); \
                    if out.contains(\"/coverage/\") { \
                    std::fs::write(out.clone() + \"/a\", vec![1; 90 << 20]).unwrap(); \
                    std::fs::write(out + \"/b\", vec![1; 90 << 20]).unwrap(); \
                    std::thread::sleep(std::time::Duration::from_secs(60)); }";
        slow_crate(write, fill);
        write("src/lib.rs", "//! Sample.\n\n#[test]\nfn it_works() {}\n");
        let options = ["--workspace", workspace.to_str().unwrap(), "--tier", test_env.tier];
        let mut session = Interface::Stdio.open_with(&test_env, &options, |command| {
            command.env("HOME", own_home());
        });
        let answer = session.call("run_tests", serde_json::json!({ "coverage": true }));
        assert_eq!(answer.structured["verdict"], "passed", "{test_env}: {answer:?}");
        let gap = "coverage gap: the quota of the workspace is reached; the files of the recorder were removed\n";
        assert!(answer.text.contains(gap), "{test_env}: {answer:?}");
        let next = serde_json::json!({ "command": "echo there is room >more.txt" });
        let answer = session.call("Bash", next);
        assert!(!answer.is_error, "{test_env}: {answer:?}");
    }
}

#[test]
fn a_post_edit_check_ends_with_the_command_line_that_it_is_too_slow_for() {
    if !has("cargo") {
        return carrel_skip::unavailable("cargo");
    }
    for test_env in with_toolchains() {
        let write = |path: &str, text: &str| test_env.write(path, text);
        let new_file = slow_crate(write, "std::thread::sleep(std::time::Duration::from_secs(60));");
        let workspace = test_env.workspace();
        let mut command = test_env.carrel();
        command.env("HOME", own_home()).args(["tool", "Write", "--workspace"]).arg(workspace);
        command.args(["--tier", test_env.tier]).arg(new_file.to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("not finished in time; run_typecheck has its findings"),
            "{output:?}"
        );
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

const NODE_TEST: &str = "
const test = require('node:test');
const assert = require('node:assert');
test('adds', () => assert.strictEqual(1 + 1, 2));
test('waits', async () => { await new Promise((done) => setTimeout(done, 10)); });
";

const NODE_SERVER_TEST: &str = "
const test = require('node:test');
const assert = require('node:assert');
const http = require('node:http');
test('talks to its own server', async () => {
  const server = http.createServer((_, reply) => reply.end('hello'));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
  assert.strictEqual(await answer.text(), 'hello');
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});
";

#[test]
fn a_node_project_passes_its_tests_without_a_network() {
    if !has("node") || !has("npm") {
        return carrel_skip::unavailable("node with npm");
    }
    for test_env in TestEnvironment::all() {
        let package = r#"{"name":"sample","version":"1.0.0","scripts":{"test":"node --test"}}"#;
        test_env.write("package.json", package);
        test_env.write("test/sample.test.js", NODE_TEST);
        let done = test_env.run(&["--timeout", "60", "-c", "npm test"]);
        eprintln!("{test_env}: npm test in {:?}", done.took);
        assert_eq!(done.code, 0, "{test_env}: {:#}", done.json);
        assert!(done.stdout().contains("pass 2"), "{test_env}: {}", done.stdout());
    }
}

#[test]
fn a_node_project_talks_to_its_own_server_over_loopback() {
    if !has("node") {
        return carrel_skip::unavailable("node");
    }
    for test_env in TestEnvironment::all() {
        test_env.write("server.test.js", NODE_SERVER_TEST);
        let options = ["--timeout", "60", "--network", "loopback", "--", "node", "--test"];
        let done = test_env.run(&options);
        if test_env.tier == "landlock" {
            // There is no loopback without a network namespace, and nobody pretends there is.
            assert_eq!(done.code, 125, "{test_env}: {:#}", done.json);
            assert_eq!(
                done.error()["code"],
                "E_SANDBOX_UNAVAILABLE",
                "{test_env}: {}",
                done.stderr
            );
            continue;
        }
        assert_eq!(done.code, 0, "{test_env}: {:#}", done.json);
        assert!(done.stdout().contains("pass 1"), "{test_env}: {}", done.stdout());
        // With no network at all the same test fails, and the answer says what is missing.
        let done = test_env.run(&["--timeout", "60", "--", "node", "--test"]);
        assert_eq!(done.code, 1, "{test_env}: {:#}", done.json);
    }
}

const PYTHON_TEST: &str = "
import multiprocessing, os, tempfile, threading, unittest

def double(number):
    return 2 * number

class Sample(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(directory + '/file', 'w') as file:
                file.write('text')

    # It needs semaphores in /dev/shm, which tier landlock cannot make private.
    @unittest.skipIf('WITHOUT_SEMAPHORES' in os.environ, 'no semaphores')
    def test_processes(self):
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(double, [1, 2]), [2, 4])

    def test_threads(self):
        threads = [threading.Thread(target=double, args=(1,)) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
";

/// Runs Python without what the tier cannot offer.
fn run_python(test_env: &TestEnvironment, options: &[&str]) -> Done {
    match test_env.tier {
        "landlock" => test_env.run(&[&["--env", "WITHOUT_SEMAPHORES=1"], options].concat()),
        _ => test_env.run(options),
    }
}

#[test]
fn a_python_project_passes_its_tests_without_a_network() {
    if !Path::new("/usr/bin/python3").exists() {
        return carrel_skip::unavailable("/usr/bin/python3");
    }
    for test_env in TestEnvironment::all() {
        test_env.write("test_sample.py", PYTHON_TEST);
        let done = run_python(&test_env, &["--", "python3", "-m", "unittest", "-v"]);
        assert_eq!(done.code, 0, "{test_env}: {:#}", done.json);
        assert!(done.json["stderr"].as_str().unwrap().contains("Ran 3 tests"), "{test_env}");
    }
}

#[test]
fn a_python_of_the_operator_passes_the_same_tests() {
    let shims = own_home().join(".pyenv/shims/python3");
    if !shims.exists() {
        return carrel_skip::unavailable("pyenv in the home directory");
    }
    for test_env in with_toolchains() {
        test_env.write("test_sample.py", PYTHON_TEST);
        let done = at_home(&test_env, &["-c", "command -v python3; python3 -m unittest"]);
        assert_eq!(done.code, 0, "{test_env}: {:#}", done.json);
        assert_eq!(done.stdout().trim_end(), shims.to_str().unwrap(), "{test_env}");
    }
}

#[test]
fn a_virtual_environment_that_was_prepared_outside_works_inside() {
    for test_env in TestEnvironment::all() {
        let environment = test_env.path("venv");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-m", "venv", "--without-pip", "--system-site-packages"]).arg(&environment);
        if !command.status().is_ok_and(|status| status.success()) {
            return carrel_skip::unavailable("/usr/bin/python3 -m venv");
        }
        let python = environment.join("bin/python").display().to_string();
        test_env.write("test_sample.py", PYTHON_TEST);
        let [option, policy] =
            test_env.policy(&format!("readable = [\"{}\"]\n", environment.display()));
        let done = run_python(&test_env, &[&option, &policy, "--", &python, "-m", "unittest"]);
        assert_eq!(done.code, 0, "{test_env}: {:#} {}", done.json, done.stderr);
    }
}

#[test]
fn a_repository_is_cloned_from_a_daemon_in_the_same_workspace() {
    if !has("git") {
        return carrel_skip::unavailable("git");
    }
    let line = "set -e
        git init -q -b main repos/repo
        cd repos/repo
        git config user.name Somebody
        git config user.email somebody@example.org
        echo text > file
        git add file
        git commit -q -m 'the first; mount'
        cd ../..
        git daemon --base-path=$PWD/repos --export-all --listen=127.0.0.1 --port=9418 --reuseaddr &
        for i in $(seq 200); do
            git ls-remote -q git://127.0.0.1/repo >/dev/null 2>&1 && break
            sleep 0.05
        done
        git clone -q git://127.0.0.1/repo copy
        cat copy/file
        git -C copy log --format=%s";
    for test_env in TestEnvironment::all().into_iter().filter(|test_env| test_env.tier == "full") {
        let done = test_env.run(&["--timeout", "60", "--network", "loopback", "-c", line]);
        assert_eq!(done.code, 0, "{test_env}: {:#}", done.json);
        assert_eq!(done.stdout(), "text\nthe first; mount\n", "{test_env}");
        assert!(done.json["left_running"].as_u64().unwrap() >= 1, "{test_env}: {:#}", done.json);
        assert_eq!(done.json["trust_changes"], serde_json::json!([]), "{test_env}");
    }
}
