//! Measures a promotion of ten files, and the listing of their changes: `cargo run --release --example measure`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement lays out its own trees"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use carrel_fork::{Layers, Limits, PromoteOptions, Server, Source, changes, promote};
use carrel_fsroot::{Durability, Root};

const ROUNDS: usize = 15;

/// A workspace of 1,000 files, and an upper layer with ten changed ones.
struct World {
    directory: tempfile::TempDir,
    base: Root,
    layers: Layers,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["base", "forks", "journal", "trash"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for number in 0..1000 {
            let path = at("base").join(format!("d{}/f{number}", number % 20));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![b'a'; 8000]).unwrap();
        }
        let base = Root::open(&at("base")).unwrap();
        let layers =
            Layers::create(&Root::open(&at("forks")).unwrap(), Path::new("fork"), &base).unwrap();
        let (upper, _) = layers.paths();
        for number in 0..10 {
            let path = upper.join(format!("d{}/f{number}", number % 5));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, vec![b'b'; 8000]).unwrap();
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&path, "user.overlay.origin", b"origin", flags).unwrap();
        }
        Self { directory, base, layers }
    }

    fn promote(&self, durability: Durability) -> Duration {
        let root = |name: &str| Root::open(&self.directory.path().join(name)).unwrap();
        let (journal, trash) = (root("journal"), root("trash"));
        let server = Server { journal: &journal, trash: &trash };
        let options = PromoteOptions { durability, ..PromoteOptions::default() };
        let began = Instant::now();
        let upper = self.layers.upper().unwrap();
        let promoted = promote(&self.base, Source::Upper(&upper), server, &options).unwrap();
        let took = began.elapsed();
        assert!(promoted.changes.len() >= 10 && promoted.conflicts.is_empty());
        took
    }

    fn changes(&self) -> Duration {
        let upper = self.layers.upper().unwrap();
        let began = Instant::now();
        assert!(changes(&self.base, &upper, Limits::default()).unwrap().len() >= 10);
        began.elapsed()
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what:10} least {:?}, median {median:?}, most {last:?}", times[0]);
}

fn main() {
    report("changes", (0..ROUNDS).map(|_| World::new().changes()).collect());
    for durability in [Durability::Buffered, Durability::Synced] {
        let name = if durability == Durability::Buffered { "unsynced" } else { "synced" };
        report(name, (0..ROUNDS).map(|_| World::new().promote(durability)).collect());
    }
}
