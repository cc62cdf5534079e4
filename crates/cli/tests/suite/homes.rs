//! The home of commands: beside the work tree, kept between commands, counted, gone with its workspace.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::test_environment::{Caller, Done, TestEnvironment};

const MIB: u64 = 1 << 20;

#[test]
fn what_programs_keep_at_home_is_there_for_the_next_command_and_not_in_the_tree() {
    TestEnvironment::each(|test_env| {
        let done = test_env.line("mkdir -p ~/.npm && echo kept > ~/.npm/cache && echo $HOME");
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        let home = done.stdout().trim_end().to_owned();
        assert!(!Path::new(&home).starts_with(test_env.workspace()), "{test_env}: {home}");
        let again = test_env.line("cat ~/.npm/cache; ls -A; getent passwd $(id -u) | cut -d: -f6");
        let stdout = again.stdout();
        assert!(stdout.starts_with("kept\n"), "{test_env}: {again:?}");
        if test_env.tier == "full" {
            assert_eq!(stdout, format!("kept\n{home}\n"), "{test_env}");
        }
        assert_eq!(std::fs::read_dir(test_env.workspace()).unwrap().count(), 0, "{test_env}");
    });
}

#[test]
fn a_home_is_open_to_the_commands_of_its_own_workspace_only() {
    TestEnvironment::each(|test_env| {
        let home = test_env.line("echo secret > ~/token; echo $HOME");
        let other = test_env.path("other");
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::chown(&other, owner(test_env), owner(test_env)).unwrap();
        let home = home.stdout().trim_end().to_owned();
        let state = test_env.path("state/carrel/homes");
        let line = format!("cat {home}/token {}/*/token; ls {}", state.display(), state.display());
        let done = test_env.line_in(&other, &line);
        assert!(!done.stdout().contains("secret"), "{test_env}: {done:?}");
        assert_ne!(done.code, 0, "{test_env}: {done:?}");
    });
}

fn owner(test_env: &TestEnvironment) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    rustix::process::geteuid()
        .is_root()
        .then(|| std::fs::metadata(test_env.workspace()).unwrap().uid())
}

#[test]
fn a_workspace_that_lies_where_homes_are_mounted_has_its_home_elsewhere() {
    carrel_skip::needs!(Root);
    let test_env = TestEnvironment::usual();
    let above = Path::new("/home/carrel");
    assert!(!above.exists(), "the test makes this directory");
    let workspace = above.join("project");
    std::fs::create_dir_all(&workspace).unwrap();
    let done = test_env.line_in(&workspace, "pwd; echo $HOME; touch ~/here");
    std::fs::remove_dir_all(above).unwrap();
    assert_eq!(done.stdout(), "/home/carrel/project\n/run/home/carrel\n", "{done:?}");
}

#[test]
fn a_home_counts_towards_the_quota_and_goes_with_its_workspace() {
    for test_env in TestEnvironment::all() {
        let workspace = test_env.managed("20M");
        let done = test_env.line_in(&workspace, "head -c 12M /dev/urandom > ~/cache && echo ok");
        assert_eq!(done.stdout(), "ok\n", "{test_env}: {done:?}");
        // It ends by itself, far beyond the quota, if nothing ends it.
        let writes = "for part in $(seq 100); do head -c 2M /dev/zero >> more; done";
        let done = test_env.line_in(&workspace, writes);
        assert_eq!(done.json["limit"], "quota", "{test_env}: {done:?}");
        std::fs::remove_file(workspace.join("more")).unwrap();

        let manage = |arguments: &[&str]| {
            let mut command = test_env.carrel();
            command.arg("workspace").args(arguments).arg("--root").arg(workspace.parent().unwrap());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{test_env}: {output:?}");
            output.stdout
        };
        if (test_env.caller, test_env.tier) != (Caller::Root, "landlock") {
            let shown = manage(&["show", "X", "--json"]);
            let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
            assert!(shown["usage_bytes"].as_u64() >= Some(12 * MIB), "{test_env}: {shown}");
        }
        manage(&["rm", "X"]);
        manage(&["create", "X"]);
        if (test_env.caller, test_env.tier) == (Caller::Root, "landlock") {
            std::os::unix::fs::chown(&workspace, Some(2_000_000_000), Some(2_000_000_000)).unwrap();
        }
        let done = test_env.line_in(&workspace, "ls -A ~");
        assert_eq!((done.code, done.stdout()), (0, ""), "{test_env}: {done:?}");
    }
}

const POM: &str = "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId>\
                   <artifactId>x</artifactId><version>1</version><packaging>pom</packaging></project>";

/// A package manager: its program, a line that runs it without a network, and what it leaves at home.
const PACKAGE_MANAGERS: [(&str, &str, &[&str]); 5] = [
    ("npm", "npm cache verify && npm install --offline --no-package-lock", &[".npm"]),
    (
        "python3",
        "python3 -m venv ~/venv && ~/venv/bin/pip config set global.timeout 9 && ~/venv/bin/pip cache dir",
        &[".config"],
    ),
    // The operator's registry is there, read-only, so it leaves nothing at home.
    (
        "cargo",
        "cargo build --offline --locked && cargo metadata --offline --locked --format-version 1",
        &[],
    ),
    ("go", "go build ./... && go mod tidy && go vet ./...", &[".cache"]),
    ("mvn", "mvn --offline --batch-mode validate", &[".m2"]),
];

fn is_installed(program: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
    shell.status().unwrap().success()
}

#[test]
fn real_package_managers_leave_the_work_tree_as_it_was() {
    let test_env = TestEnvironment::usual();
    test_env.write("package.json", r#"{"name":"x","version":"1.0.0","private":true}"#);
    test_env
        .write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"1.0.0\"\nedition = \"2021\"\n");
    test_env.write("Cargo.lock", "version = 3\n\n[[package]]\nname = \"x\"\nversion = \"1.0.0\"\n");
    test_env.write("src/lib.rs", "//! Empty.\n");
    test_env.write("go.mod", "module example.com/x\n\ngo 1.19\n");
    test_env.write("x.go", "package x\n");
    test_env.write("pom.xml", POM);
    test_env.write(".gitignore", "/target/\n");
    let begun = test_env.line("git init -q && git add -A && git commit -qm one");
    assert_eq!(begun.code, 0, "{begun:?}");
    for (program, line, at_home) in PACKAGE_MANAGERS {
        if !is_installed(program) {
            carrel_skip::unavailable(program);
            continue;
        }
        let mut command = test_env.exec(&["--json", "--timeout", "120"]);
        let own_home = std::env::home_dir().unwrap();
        command
            .env("CARGO_HOME", own_home.join(".cargo"))
            .env("RUSTUP_HOME", own_home.join(".rustup"));
        command.args(["-c", &format!("({line}) >&2 && ls -A ~")]);
        let done = Done::of(command);
        assert_eq!(done.code, 0, "{program}: {done:?}");
        let home: Vec<_> = done.stdout().lines().collect();
        assert!(at_home.iter().all(|name| home.contains(name)), "{program}: {done:?}");
        let status = test_env.line("git status --porcelain");
        assert_eq!(status.stdout(), "", "{program}: {status:?}");
    }
}

#[test]
fn caches_that_earlier_versions_left_in_a_tree_are_said_once_and_stay() {
    TestEnvironment::each(|test_env| {
        test_env.write(".npm/_cacache/index", "");
        test_env.write(".m2/repository/x/x.pom", "");
        // The settings of a project are no cache.
        test_env.write(".cargo/config.toml", "");
        let said = |done: &Done| -> Vec<Value> {
            let lines = done.stderr.lines().filter(|line| line.contains("a home of their own"));
            lines.map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let first = test_env.line("ls -A");
        let lines = said(&first);
        assert_eq!(lines.len(), 1, "{test_env}: {first:?}");
        let workspace = test_env.workspace().display().to_string();
        let expected = json!({ "workspace": workspace, "found": r#"[".npm", ".m2/repository"]"# });
        assert_eq!(lines[0]["fields"], expected, "{test_env}");
        let again = test_env.line("ls -A");
        assert_eq!(said(&again), Vec::<Value>::new(), "{test_env}");
        for done in [&first, &again] {
            assert_eq!(done.stdout(), ".cargo\n.m2\n.npm\n", "{test_env}: {done:?}");
        }
    });
}
