//! Promotions that are killed at random moments. `CARREL_KILL_ROUNDS` sets how many moments.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carrel_fork::{
    Layers, PromoteOptions, Recovery, Server, Source, is_unfinished, promote, recover,
};
use carrel_fsroot::{Durability, Root};
use pretty_assertions::assert_eq;

use crate::world::{BEFORE, CHANGES, Tree, World, has_overlays};

/// The variables by which this binary knows that it is the child of a test, and how it promotes.
const WORLD: &str = "CARREL_FORK_KILLED_WORLD";
const SYNCED: &str = "CARREL_FORK_KILLED_SYNCED";

/// The child prints it when it begins.
const BEGINS: &str = "the promotion begins";

fn rounds() -> u64 {
    std::env::var("CARREL_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Bounds the rounds that go on until a promotion was interrupted.
const MAX_ROUNDS: u64 = 60;

/// The other process of these tests; by itself it does nothing.
#[test]
#[expect(clippy::print_stdout, reason = "tells the test when the promotion begins")]
fn child_process() {
    let Some(world) = std::env::var_os(WORLD) else { return };
    let root = |name: &str| Root::open(&Path::new(&world).join(name)).unwrap();
    let (base, journal, trash) = (root("base"), root("journal"), root("trash"));
    let upper = Layers::open(&root("forks"), Path::new("fork")).unwrap().upper().unwrap();
    let durability = match std::env::var_os(SYNCED) {
        Some(_) => Durability::Synced,
        None => Durability::Buffered,
    };
    let options = PromoteOptions { durability, ..PromoteOptions::default() };
    println!("{BEGINS}");
    let server = Server { journal: &journal, trash: &trash };
    promote(&base, Source::Upper(&upper), server, &options).unwrap();
}

/// Starts a promotion, and returns when it begins.
fn begin(world: &World, synced: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killing::child_process", "--nocapture"]);
    command.env(WORLD, world.path("")).stdout(Stdio::piped()).stderr(Stdio::null());
    if synced {
        command.env(SYNCED, "1");
    }
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(BEGINS) {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended");
    }
    // It writes on at its end.
    child.stdout = Some(output.into_inner());
    child
}

#[test]
fn a_promotion_killed_at_any_moment_is_whole_or_not_begun_after_the_recovery() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    world.inside(
        "base",
        &format!("{BEFORE}\nsh mkdir many; for i in $(seq 300); do echo $i > many/$i; done"),
    );
    let layers = world.layers("fork");
    let many = "sh for i in $(seq 1 2 300); do echo new > many/$i; done; rm many/*0";
    let fork = world.in_fork(&layers, &format!("{CHANGES}\n{many}"));
    let before = world.tree("base");
    let mut random = fastrand::Rng::with_seed(rounds());
    for synced in [false, true] {
        let whole = world.duplicate();
        let began = Instant::now();
        assert!(begin(&whole, synced).wait().unwrap().success());
        let span = u64::try_from(began.elapsed().as_micros()).unwrap();
        assert_eq!(whole.tree("base").entries, fork.entries);
        let mut recovered = 0;
        for round in 0..MAX_ROUNDS.max(rounds()) {
            if round >= rounds() && recovered > 0 {
                break;
            }
            let world = world.duplicate();
            let mut child = begin(&world, synced);
            std::thread::sleep(Duration::from_micros(random.u64(..span)));
            child.kill().unwrap();
            child.wait().unwrap();
            let context = format!("synced {synced}, round {round}");
            recovered += u32::from(is_finished(&world, &before, &fork, &context));
        }
        assert!(recovered > 0, "no promotion was interrupted");
    }
}

/// Returns whether a promotion was interrupted, which is finished now.
fn is_finished(world: &World, before: &Tree, fork: &Tree, context: &str) -> bool {
    let layers = Layers::open(&world.root("forks"), Path::new("fork")).unwrap();
    let (upper, server) = (layers.upper().unwrap(), world.server());
    let was_begun = is_unfinished(&server.journal).unwrap();
    match recover(&world.base(), &upper, server.get()).unwrap() {
        Recovery::Finished(promoted) => {
            assert!(was_begun, "{context}");
            assert_eq!(promoted.conflicts, [""; 0].map(PathBuf::from), "{context}");
            assert_eq!(world.tree("base").entries, fork.entries, "{context}");
        }
        Recovery::Nothing => {
            let base = world.tree("base");
            assert!(base.entries == before.entries || base.entries == fork.entries, "{context}");
        }
        Recovery::Damaged => panic!("{context}"),
    }
    // Neither is a journal left that was being written.
    assert_eq!(world.tree("journal"), Tree::default(), "{context}");
    was_begun
}
