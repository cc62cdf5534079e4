//! `kill -9` of every process of Carrel while commands run: nothing survives, and the next start
//! removes what could not be removed.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::eventually;
use crate::test_environment::{Mark, Process, TestEnvironment, descendants, groups_of};

/// The promise is a second; the rest is for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

/// A command whose processes have left its session and are deaf to everything but `KILL`.
const TREE: &str = "trap '' TERM HUP INT USR1 USR2; setsid sleep MARK & (setsid sleep MARK &); \
                    setsid bash -c 'trap \"\" TERM HUP; sleep MARK; sleep MARK' & sleep MARK; sleep MARK";

/// The processes of [`TREE`], which all carry the mark.
const TREE_COUNT: usize = 6;

/// A `carrel exec` with its helpers and a command.
struct Server {
    child: Child,
    mark: Mark,
    /// Everything below it.
    below: Vec<Process>,
}

impl Server {
    fn start(test_env: &TestEnvironment) -> Self {
        let mark = Mark::new();
        let mut command = test_env.exec(&["--json", "-c", &TREE.replace("MARK", &mark.0)]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the command runs", || mark.alive().len() >= TREE_COUNT);
        let below = descendants(child.id().cast_signed());
        Self { child, mark, below }
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The process inside the sandbox, which is the only helper besides the init: a program that needs
    /// one cell has no spawner.
    fn cell(&self) -> i32 {
        let children = self.below.iter().filter(|process| process.parent == self.pid());
        let children: Vec<_> = children.map(|process| process.pid).collect();
        assert_eq!(children.len(), 1, "{:?}", self.below);
        children[0]
    }

    /// The process above the command, and nothing else.
    fn init(&self) -> i32 {
        let inits = self.below.iter().filter(|process| process.parent == self.cell());
        let is_carrel = |pid: i32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end() == "carrel"
        };
        inits.map(|process| process.pid).find(|pid| is_carrel(*pid)).expect("a command has an init")
    }

    fn kill(&self, pid: i32) -> Duration {
        let begun = Instant::now();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let left = || self.below.iter().filter(|process| process.still_runs()).count();
        while left() + self.mark.alive().len() > 0 && begun.elapsed() < PROMPTLY {
            std::thread::sleep(Duration::from_millis(2));
        }
        begun.elapsed()
    }

    fn assert_gone(&self, test_env: &TestEnvironment, whom: &str, took: Duration) {
        let left: Vec<_> = self.below.iter().filter(|process| process.still_runs()).collect();
        assert!(left.is_empty(), "{test_env}: {left:?} outlived the {whom}");
        assert_eq!(self.mark.alive(), [0; 0], "{test_env}: outlived the {whom}");
        assert!(took < PROMPTLY, "{test_env}: {whom}: {took:?}");
        eprintln!("{test_env}: all gone {took:?} after the {whom}");
    }
}

/// Runs one more command, and expects that nothing is left of the earlier ones.
fn assert_cleaned_up(test_env: &TestEnvironment, servers: &[u32]) {
    assert_eq!(test_env.run(&["--", "true"]).code, 0, "{test_env}");
    assert_eq!(test_env.scratch(), [""; 0].map(std::path::PathBuf::from), "{test_env}");
    for server in servers {
        assert_eq!(groups_of(*server), [""; 0].map(std::path::PathBuf::from), "{test_env}");
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(test_env.path("").to_str().unwrap()), "{test_env}: {mounts}");
}

#[test]
fn nothing_outlives_a_killed_server_and_the_next_one_cleans_up() {
    TestEnvironment::each(|test_env| {
        let mut server = Server::start(test_env);
        let has_groups = test_env.enforces("memory_limit");
        assert_eq!(!groups_of(server.child.id()).is_empty(), has_groups, "{test_env}");
        let took = server.kill(server.pid());
        server.assert_gone(test_env, "server", took);
        server.child.wait().unwrap();
        assert!(!test_env.scratch().is_empty(), "{test_env}: nothing is left to clean up");
        assert_cleaned_up(test_env, &[server.child.id()]);
    });
}

#[test]
fn nothing_outlives_a_killed_cell_and_the_server_ends_too() {
    TestEnvironment::each(|test_env| {
        let mut server = Server::start(test_env);
        let took = server.kill(server.cell());
        server.assert_gone(test_env, "cell", took);
        let status = server.child.wait().unwrap();
        assert_eq!(status.code(), Some(137), "{test_env}");
        assert_cleaned_up(test_env, &[server.child.id()]);
    });
}

#[test]
fn nothing_outlives_a_killed_init_and_the_server_ends_too() {
    TestEnvironment::each(|test_env| {
        let mut server = Server::start(test_env);
        let took = server.kill(server.init());
        server.assert_gone(test_env, "init", took);
        let status = server.child.wait().unwrap();
        assert_eq!(status.code(), Some(137), "{test_env}");
        assert_cleaned_up(test_env, &[server.child.id()]);
    });
}

#[test]
fn a_server_that_is_killed_while_it_starts_leaves_nothing() {
    TestEnvironment::each(|test_env| {
        let mut random = fastrand::Rng::with_seed(5);
        let mut servers = Vec::new();
        for _ in 0..20 {
            let mark = Mark::new();
            let line = format!("setsid sleep {0} & (setsid sleep {0} &); sleep {0}", mark.0);
            let mut command = test_env.exec(&["--json", "-c", &line]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(0..60)));
            let below = descendants(child.id().cast_signed());
            child.kill().unwrap();
            child.wait().unwrap();
            let left = || mark.alive().len() + below.iter().filter(|one| one.still_runs()).count();
            eventually(&format!("{test_env}: all is gone"), || left() == 0);
            servers.push(child.id());
        }
        assert_cleaned_up(test_env, &servers);
    });
}

#[test]
fn a_stopped_helper_keeps_no_command_alive() {
    TestEnvironment::each(|test_env| {
        for stopped in [Server::cell, Server::init] {
            let mut server = Server::start(test_env);
            let pid = Pid::from_raw(stopped(&server)).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            eventually(&format!("{test_env}: no command is left"), || {
                server.mark.alive().is_empty()
            });
            // A stopped process cannot end by itself; whoever stopped it lets it go on.
            let _ = kill_process(pid, Signal::CONT);
            let left = || server.below.iter().any(Process::still_runs);
            eventually(&format!("{test_env}: no helper is left"), || !left());
        }
        assert_cleaned_up(test_env, &[]);
    });
}
