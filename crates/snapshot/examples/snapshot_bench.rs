//! Snapshots beside `git add -A` and `git write-tree`, on a generated tree of 6,560 files in 820 directories. Prints
//! medians and ratios. `cargo run --release -p carrel-snapshot --example snapshot_bench [ROUNDS]`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark lays out its own files, runs git and prints"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use carrel_fsroot::{Durability, Root};
use carrel_snapshot::{CreateRequest, Reason, RestoreOptions, Store};

const FILES: usize = 6560;
const FILES_OF_A_DIRECTORY: usize = 8;

struct Bench {
    world: tempfile::TempDir,
    random: fastrand::Rng,
}

impl Bench {
    fn new() -> Self {
        let world = tempfile::tempdir().unwrap();
        let mut bench = Self { world, random: fastrand::Rng::with_seed(3) };
        let mut bytes = 0;
        for number in 0..FILES {
            let path = bench.file(number);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let content = bench.content();
            bytes += content.len();
            std::fs::write(path, content).unwrap();
        }
        println!("{FILES} files, {} MB", bytes / 1_000_000);
        bench
    }

    fn file(&self, number: usize) -> PathBuf {
        let directory = number / FILES_OF_A_DIRECTORY;
        let path = format!("workspace/p{}/d{directory}/file{number}.rs", directory % 20);
        self.world.path().join(path)
    }

    /// Returns text that shrinks about as much as source code does.
    fn content(&mut self) -> Vec<u8> {
        let length = self.random.usize(200..27_000);
        let mut content = Vec::with_capacity(length + 16);
        while content.len() < length {
            let word = self.random.u32(..) % 3000;
            content
                .extend_from_slice(format!("{:x} ", word.wrapping_mul(2_654_435_761)).as_bytes());
            if self.random.u8(..) < 30 {
                content.extend_from_slice(b";\n        let ");
            }
        }
        content
    }

    fn change_ten(&mut self) {
        for _ in 0..10 {
            let number = self.random.usize(..FILES);
            let content = self.content();
            std::fs::write(self.file(number), content).unwrap();
        }
    }

    fn root(&self, name: &str) -> Root {
        let path = self.world.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Root::open(&path).unwrap()
    }

    fn store(&self, name: &str) -> Store {
        Store::open(self.root(name), self.root("workspace")).unwrap()
    }

    /// Runs git with its directory beside the workspace.
    fn git(&self, directory: &str, arguments: &[&str]) {
        let status = Command::new("git")
            .arg("--git-dir")
            .arg(self.world.path().join(directory))
            .arg("--work-tree")
            .arg(self.world.path().join("workspace"))
            .args(["-c", "core.fsync=none", "-c", "gc.auto=0"])
            .args(arguments)
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
    }

    fn git_snapshot(&self, directory: &str) {
        self.git(directory, &["add", "-A"]);
        self.git(directory, &["write-tree"]);
    }

    fn remove(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.world.path().join(name));
    }
}

fn time(act: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    act();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn report(what: &str, ours: Vec<Duration>, git: Vec<Duration>) {
    let (ours, git) = (median(ours), median(git));
    let ratio = ours.as_secs_f64() / git.as_secs_f64();
    println!("{what:<42} {ours:>10.1?}  git {git:>10.1?}  ratio {ratio:.2}");
}

fn create(store: &Store) {
    store.create(&CreateRequest::unnamed(Reason::Asked)).unwrap();
}

fn sync(path: &Path) {
    // So that what was written before does not count for what is measured.
    assert!(Command::new("sync").arg("-f").arg(path).status().unwrap().success());
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut bench = Bench::new();
    let world = bench.world.path().to_owned();
    let (mut ours, mut git) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        bench.remove("store");
        bench.remove("git");
        bench.git("git", &["init", "-q"]);
        sync(&world);
        ours.push(time(|| create(&bench.store("store"))));
        sync(&world);
        git.push(time(|| bench.git_snapshot("git")));
    }
    report("first, durable (git: no fsync)", ours, git);

    let store = bench.store("store");
    create(&store);
    let (mut ours, mut opened, mut git) = (Vec::new(), Vec::new(), Vec::new());
    let mut automatic = Vec::new();
    for _ in 0..rounds * 3 {
        sync(&world);
        let request = CreateRequest::unnamed(Reason::Automatic("turn".to_owned()));
        automatic.push(time(|| drop(store.create(&request).unwrap())));
        ours.push(time(|| create(&store)));
        git.push(time(|| bench.git_snapshot("git")));
        opened.push(time(|| create(&bench.store("store"))));
    }
    report("unchanged, automatic", automatic, git.clone());
    report("unchanged, asked for, durable", ours, git.clone());
    report("the same, store opened anew", opened, git);

    let (mut ours, mut git) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 3 {
        bench.change_ten();
        sync(&world);
        ours.push(time(|| create(&store)));
        git.push(time(|| bench.git_snapshot("git")));
    }
    report("10 changed, durable (git: no fsync)", ours, git);

    for (what, durability) in [
        ("restore of 10, synced", Durability::Synced),
        ("restore of 10, unsynced", Durability::Buffered),
    ] {
        let mut times = Vec::new();
        for _ in 0..rounds {
            create(&store);
            let newest = store.list().unwrap()[0].id;
            bench.change_ten();
            sync(&world);
            let options = RestoreOptions { durability, ..RestoreOptions::default() };
            times.push(time(|| drop(store.restore(&newest.into(), options).unwrap())));
        }
        println!("{what:<42} {:>10.1?}", median(times));
    }

    let (mut plain, mut kept) = (Vec::new(), Vec::new());
    let path = bench.world.path().join("workspace/edited");
    let workspace = bench.root("workspace");
    let edit = |number: usize| {
        let content = format!("{number} ").repeat(3000);
        let options =
            carrel_fsroot::WriteOptions { durability: Durability::Buffered, ..Default::default() };
        workspace.write(Path::new("edited"), content.as_bytes(), options).unwrap();
    };
    edit(0);
    for number in 1..=200 {
        plain.push(time(|| edit(number)));
        kept.push(time(|| {
            let mut checkpoint = store.begin_checkpoint("bench", "edit");
            checkpoint.before_image(Path::new("edited")).unwrap();
            edit(number + 1000);
            checkpoint.commit().unwrap();
        }));
    }
    let (plain, kept) = (median(plain), median(kept));
    let bytes = path.metadata().unwrap().len();
    let ratio = kept.as_secs_f64() / plain.as_secs_f64();
    println!("an edit of {bytes} bytes: {plain:.1?}, with undo {kept:.1?}, ratio {ratio:.2}");
    println!("{:?}", store.usage().unwrap());
}
