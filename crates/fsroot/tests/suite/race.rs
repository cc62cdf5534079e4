//! Another process swaps a directory for a link that leads out, as fast as it can, while
//! others use paths through it. `CARREL_RACE_SECONDS` makes the run longer.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrel_fsroot::{Collision, Durability, Root, UsageLimit, WalkControl, WriteOptions};

use crate::{TestTree, p};

fn seconds() -> Duration {
    let text = std::env::var("CARREL_RACE_SECONDS").unwrap_or_default();
    Duration::from_secs(text.parse().unwrap_or(2))
}

/// Exchanges the directory and the link in one step, so that one of the two is always
/// there, until its input ends; then prints how often it did.
const SWAPPER: &str = "
import ctypes, select, sys
exchange = ctypes.CDLL(None).renameat2
swapped, decoy, swaps = sys.argv[1].encode(), sys.argv[2].encode(), 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(1000):
        swaps += exchange(-100, swapped, -100, decoy, 2) == 0
print(swaps)
";

/// Starts another process that swaps.
fn start_swapping(tree_fixture: &TestTree) -> Child {
    Command::new("python3")
        .args(["-c", SWAPPER])
        .args([tree_fixture.inside("swapped"), tree_fixture.inside("decoy")])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn stop_swapping(mut swapper: Child) -> u64 {
    drop(swapper.stdin.take());
    let output = swapper.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn use_everything(root: &Root, round: u64) -> bool {
    let buffered = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    let leaked = root.read(p("swapped/secret"), 100).is_ok_and(|bytes| bytes == b"outside")
        || root.read_range(p("swapped/secret"), 0, 9).is_ok_and(|range| range.bytes == b"outside")
        || root.browse().read(p("swapped/secret"), 100).is_ok_and(|bytes| bytes == b"outside")
        || root.list(p("swapped")).is_ok_and(|list| list.iter().any(|entry| entry.name == "bait"));
    let own = format!("swapped/own-{round}");
    let own = Path::new(&own);
    // Each may fail while the link stands there; none may act outside.
    let _ = root.write(p("swapped/secret"), b"inside", buffered);
    let _ = root.write(own, b"inside", buffered);
    let _ = root.create_directories(p("swapped/made/deep"), 0o755);
    let _ = root.rename(own, p("swapped/renamed"), Collision::Replace);
    let _ = root.remove_file(p("swapped/bait"));
    let _ = root.remove_tree(p("swapped/made"));
    let _ = root.usage(p("swapped"), UsageLimit::NONE);
    let _ = root.walk(p("swapped"), |_| Ok(WalkControl::Continue), |_| Ok(()));
    leaked
}

/// Uses paths through `swapped` while another process exchanges it with `decoy`, and checks that the outside
/// stays as it is.
fn assert_outside_is_safe(tree_fixture: &TestTree) {
    std::fs::write(tree_fixture.outside("bait"), "bait").unwrap();
    let (uses, hits) = (AtomicU64::new(0), AtomicU64::new(0));
    let swapper = start_swapping(tree_fixture);
    let end = Instant::now() + seconds();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while Instant::now() < end {
                    let round = uses.fetch_add(1, Ordering::Relaxed);
                    assert!(
                        !use_everything(&tree_fixture.root, round),
                        "something outside was read"
                    );
                    let inside = tree_fixture.root.read(p("swapped/secret"), 100).is_ok();
                    hits.fetch_add(inside.into(), Ordering::Relaxed);
                }
            });
        }
    });
    let (swaps, uses, hits) = (stop_swapping(swapper), uses.into_inner(), hits.into_inner());
    eprintln!("{swaps} swaps against {uses} rounds of 12 operations, {hits} found the inside");
    // A run in which the two never met would show nothing.
    assert!(swaps > 1000 && hits > 0 && hits < uses);
    let mut outside: Vec<_> = std::fs::read_dir(tree_fixture.outside(""))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    outside.sort();
    assert_eq!(outside, ["bait", "secret"]);
    assert_eq!(std::fs::read_to_string(tree_fixture.outside("secret")).unwrap(), "outside");
}

#[test]
fn nothing_outside_is_read_or_written_while_links_are_swapped() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("swapped/secret", "inside");
    symlink("../outside", tree_fixture.inside("decoy")).unwrap();
    assert_outside_is_safe(&tree_fixture);
}

#[test]
fn nothing_outside_is_read_or_written_while_an_absolute_link_turns_outward() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("real/secret", "inside");
    tree_fixture.link(tree_fixture.inside("real"), "swapped");
    tree_fixture.link(tree_fixture.outside(""), "decoy");
    assert_outside_is_safe(&tree_fixture);
}

#[test]
fn nothing_outside_is_read_or_written_while_the_way_of_an_absolute_link_is_swapped() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("swapped/secret", "inside");
    tree_fixture.link("../outside", "decoy");
    // Both lead through the name that is swapped, after the kernel has refused the path once.
    tree_fixture.link(tree_fixture.inside("swapped"), "through");
    tree_fixture.link(tree_fixture.inside("swapped/secret"), "file");
    let end = Instant::now() + seconds();
    let hits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let buffered =
                WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
            while Instant::now() < end {
                let root = &tree_fixture.root;
                for path in ["through/secret", "file"] {
                    if let Ok(bytes) = root.read(p(path), 100) {
                        assert_eq!(bytes, b"inside", "something outside was read");
                        hits.fetch_add(1, Ordering::Relaxed);
                    }
                    let _ = root.write(p(path), b"inside", buffered);
                }
                let _ = root.remove_file(p("through/bait"));
            }
        });
        assert_outside_is_safe(&tree_fixture);
    });
    assert!(hits.into_inner() > 0);
}
