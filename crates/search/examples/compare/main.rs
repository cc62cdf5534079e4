//! Compares a search for a literal with the `rg` program, in one run and in turns.
//!
//! `cargo run --release -p carrel-search --example compare [rg] [rounds] [pattern]` builds a tree
//! of 6,500 files and 83 MB below the system's temporary directory, searches it with both, checks
//! that they find the same lines and prints medians and fastest runs. `rg` is started as a process, as its users
//! do; Carrel runs once inside this process, as its server does, and once as a process of its own.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for people, which builds its own files"
)]

mod haystack;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carrel_fsroot::Root;
use carrel_search::{Cancel, GrepRequest, Scope, Syntax, grep};
use haystack::{BYTES, FILES, NEEDLE};

const ROUNDS: usize = 31;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, once, tree, pattern] = arguments.as_slice()
        && once == "once"
    {
        print!("{}", search(Path::new(tree), pattern));
        return;
    }
    let rg = arguments.get(1).map_or("rg", String::as_str);
    let rounds = arguments.get(2).map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let pattern = arguments.get(3).map_or(NEEDLE, String::as_str);
    let tree = tree();
    compare(&tree, rg, rounds, pattern);
}

fn compare(tree: &Path, rg: &str, rounds: usize, pattern: &str) {
    let own = std::env::current_exe().unwrap();
    let run_rg =
        || output(Command::new(rg).args(["-n", "--no-heading", pattern]).current_dir(tree));
    let run_own = || output(Command::new(&own).args(["once", tree.to_str().unwrap(), pattern]));
    assert_eq!(sorted(&run_rg()), sorted(&search(tree, pattern)), "both find the same lines");
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..rounds {
        times[0].push(time(run_rg));
        times[1].push(time(|| search(tree, pattern)));
        times[2].push(time(run_own));
    }
    for times in &mut times {
        times.sort_unstable();
    }
    // On a machine with other work the fastest run says more than the median.
    for (what, place) in [("median", rounds / 2), ("fastest", 0)] {
        let [rg, inside, process] = [0, 1, 2].map(|who: usize| times[who][place]);
        let ratio = |time: Duration| time.as_secs_f64() / rg.as_secs_f64();
        println!("{what:8} rg {rg:.1?}");
        println!("{what:8} carrel inside {inside:.1?}, {:.3} x rg", ratio(inside));
        println!("{what:8} carrel as a process {process:.1?}, {:.3} x rg", ratio(process));
    }
}

fn search(tree: &Path, pattern: &str) -> String {
    let root = Root::open(tree).unwrap();
    let request = GrepRequest {
        syntax: Syntax::Literal,
        output_bytes: usize::MAX,
        ..GrepRequest::new(pattern)
    };
    grep(&Scope::whole(&root), &request, &Cancel::new()).unwrap().text()
}

fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn time<T>(act: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let _ = act();
    start.elapsed()
}

/// Builds the tree, or finds it built.
fn tree() -> PathBuf {
    let tree = std::env::temp_dir().join(format!("carrel-search-tree-{FILES}-{BYTES}"));
    if !tree.join("done").exists() {
        haystack::build(&tree, FILES).unwrap();
        std::fs::write(tree.join("done"), "").unwrap();
    }
    tree
}
