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

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carrel_fsroot::Root;
use carrel_search::{Cancel, GrepRequest, Scope, Syntax, grep};

const FILES: usize = 6500;
const BYTES: usize = 83_000_000;
const FILES_PER_DIRECTORY: usize = 13;
const DIRECTORIES_PER_DIRECTORY: usize = 10;
const NEEDLE: &str = "needle_in_haystack";
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
    if tree.join("done").exists() {
        return tree;
    }
    let mut random = fastrand::Rng::with_seed(7);
    for file in 0..FILES {
        let directory = directory_of(&tree, file / FILES_PER_DIRECTORY);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("file_{file}.rs")), text(&mut random, file)).unwrap();
    }
    std::fs::write(tree.join(".gitignore"), "target/\n*.log\n/build\n").unwrap();
    std::fs::write(tree.join("done"), "").unwrap();
    tree
}

/// Returns the directory of this number: the numbers are written in a tree of tens.
fn directory_of(tree: &Path, number: usize) -> PathBuf {
    let mut path = tree.to_owned();
    let mut rest = number;
    loop {
        path.push(format!("part_{}", rest % DIRECTORIES_PER_DIRECTORY));
        rest /= DIRECTORIES_PER_DIRECTORY;
        if rest == 0 {
            return path;
        }
    }
}

/// Returns text like source code, sizes spread as in real trees, with the needle in every fiftieth file.
fn text(random: &mut fastrand::Rng, file: usize) -> String {
    let average = BYTES / FILES;
    let spread = [average / 8, average / 4, average / 2, average, average * 2, average * 17 / 8];
    let size = spread[file % spread.len()];
    let mut text = String::with_capacity(size + 100);
    while text.len() < size {
        text.push_str(&" ".repeat(4 * random.usize(0..4)));
        for _ in 0..random.usize(1..9) {
            let word: String = (0..random.usize(2..12)).map(|_| random.lowercase()).collect();
            text.push_str(&word);
            text.push(if random.bool() { ' ' } else { '_' });
        }
        text.push('\n');
    }
    if file.is_multiple_of(50) {
        text.push_str("let value = needle_in_haystack(1);\n");
    }
    text
}
