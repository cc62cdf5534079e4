use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{Identity, Metadata, Root, has_events};
use carrel_search::{Cancel, Scope, SourceFile, TreeCursor, TreeWatch, source_files};
use pretty_assertions::assert_eq;

use crate::TestTree;

/// The part of metadata that a change of content changes.
type Key = (Identity, u64, SystemTime);

fn key(file: SourceFile) -> (PathBuf, Key) {
    let Metadata { identity, size, modified, .. } = file.metadata;
    (file.path, (identity, size, modified))
}

/// A list of files that follows a watch.
#[derive(Default)]
struct Follower {
    cursor: TreeCursor,
    files: BTreeMap<PathBuf, Key>,
    /// Whole walks, and files that were looked at.
    walks: usize,
    looked_at: usize,
}

fn is_source(path: &Path) -> bool {
    path.extension().is_none_or(|extension| extension != "log")
}

impl Follower {
    /// Looks again, and returns the files.
    fn look(&mut self, tree: &TestTree, watch: &TreeWatch) -> &BTreeMap<PathBuf, Key> {
        let found = watch.changes(&tree.root, &self.cursor, is_source, &Cancel::new());
        let (changes, cursor) = found.unwrap();
        self.files.retain(|path, _| !changes.covers(path));
        self.walks += usize::from(changes.is_whole());
        self.looked_at = changes.list.files.len();
        let files = changes.list.files.into_iter();
        self.files.extend(files.map(key));
        self.cursor = cursor;
        &self.files
    }
}

fn walked(tree: &TestTree) -> BTreeMap<PathBuf, Key> {
    let list = source_files(&Scope::whole(&tree.root), is_source, &Cancel::new()).unwrap();
    list.files.into_iter().map(key).collect()
}

/// Returns a tree, unless nothing can be watched on this file system.
fn watchable(files: &[(&str, &str)]) -> Option<TestTree> {
    let tree = TestTree::with(files);
    if has_events(&tree.root) {
        return Some(tree);
    }
    eprintln!("the file system of temporary files has no events for all writes");
    None
}

fn shell(tree: &TestTree, script: &str) {
    let mut command = Command::new("sh");
    let command = command.args(["-ec", script]).current_dir(tree.root.path());
    let command = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", "/nonexistent");
    let done = command.output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A script of one step, and the files that are looked at after it; none where that does not matter.
type Step = (&'static str, Option<usize>);

#[test]
fn after_each_change_only_its_place_is_looked_at() {
    let files = [("a.rs", "a"), ("src/b.rs", "b"), ("src/deep/c.rs", "c"), ("lib/d.rs", "d")];
    let Some(tree) = watchable(&files) else { return };
    let watch = TreeWatch::new();
    let mut follower = Follower::default();
    assert_eq!(follower.look(&tree, &watch).len(), 4);
    let steps: &[Step] = &[
        ("true", Some(0)),
        ("echo x > src/b.rs", Some(1)),
        ("echo x >> src/deep/c.rs; echo y >> src/deep/c.rs", Some(1)),
        ("echo x > new.rs", Some(1)),
        ("echo x > new.log", Some(0)),
        ("touch -d 2001-01-01 a.rs", Some(1)),
        ("truncate -s 100 a.rs", Some(1)),
        ("mv new.rs lib/old.rs", Some(1)),
        ("echo y > tmp; mv tmp lib/old.rs", Some(1)),
        ("rm lib/old.rs", Some(0)),
        ("ln -s a.rs link.rs", Some(0)),
        (
            "mkdir made; echo x > made/e.rs; mkdir -p made/in/ner; echo x > made/in/ner/f.rs",
            Some(2),
        ),
        ("echo y > made/in/ner/f.rs", Some(1)),
        ("mv made moved", Some(2)),
        ("echo z > moved/in/ner/f.rs", Some(1)),
        ("mv moved ..; echo x > ../moved/e.rs", Some(0)),
        ("mv ../moved src/back", Some(2)),
        ("echo 1 > src/back/in/ner/f.rs", Some(1)),
        ("rm -r src/back; mkdir src/back; echo x > src/back/g.rs", Some(1)),
        ("echo y > src/back/g.rs", Some(1)),
        ("rm -r src/back; echo x > src/back", Some(1)),
        ("rm src/back; mkdir -p src/back/in; echo x > src/back/in/h.rs", Some(1)),
        ("echo '*.tmp\nback/' > src/.gitignore", Some(2)),
        ("echo x > src/back/in/h.rs; echo x > src/x.tmp", Some(0)),
        ("rm src/.gitignore", Some(4)),
        ("echo y > src/back/in/h.rs; echo y > src/x.tmp", Some(2)),
        ("mkdir target; echo x > target/x.rs; echo target > .ignore", None),
        ("echo y > target/x.rs", Some(0)),
        ("mv target other", None),
        ("echo y > other/x.rs", Some(1)),
        ("mkdir .hidden node_modules; echo x > .hidden/x.rs; echo x > node_modules/x.rs", Some(0)),
        ("chmod 0 other; chmod 755 other", Some(1)),
        ("mkdir -p .git/info; echo '*.rs' > .git/info/exclude", None),
        ("echo '' > .git/info/exclude", None),
        ("mv .git/info .git/gone; echo '*.rs' > .git/gone/exclude", None),
        ("mv .git/gone .git/info", None),
        ("rm -r .git", None),
        ("mkdir .git", None),
        ("mkdir .git/info; echo lib > .git/info/exclude", None),
        ("rm .git/info/exclude", None),
    ];
    for (step, looked_at) in steps {
        shell(&tree, step);
        assert_eq!(follower.look(&tree, &watch), &walked(&tree), "{step}");
        if let Some(looked_at) = *looked_at {
            assert_eq!(follower.looked_at, looked_at, "{step}");
        }
    }
    // The rules of the top changed some times.
    assert!(follower.walks < 12, "{} whole walks", follower.walks);
}

#[test]
fn a_mapping_is_seen_when_it_ends_and_another_link_of_a_file_at_once() {
    let Some(tree) = watchable(&[("a.rs", "aaaa"), ("b.rs", "bbbb"), ("c.rs", "cccc")]) else {
        return;
    };
    shell(&tree, "ln b.rs ../elsewhere.rs");
    let watch = TreeWatch::new();
    let mut follower = Follower::default();
    follower.look(&tree, &watch);
    let map = "import mmap
f = open('a.rs', 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close(); m[0] = 120; m.close()";
    let done = Command::new("python3").args(["-c", map]).current_dir(tree.root.path()).status();
    assert!(done.unwrap().success());
    assert_eq!(follower.look(&tree, &watch), &walked(&tree));
    // The file with two links is looked at each time.
    assert_eq!(follower.looked_at, 2);
    shell(&tree, "echo y >> ../elsewhere.rs");
    assert_eq!(follower.look(&tree, &watch), &walked(&tree));
    assert_eq!((follower.looked_at, follower.walks), (1, 1));
    for link in ["d.rs", "d.log"] {
        shell(&tree, &format!("ln a.rs {link}"));
        follower.look(&tree, &watch);
        shell(&tree, &format!("echo y >> {link}"));
        assert_eq!(follower.look(&tree, &watch), &walked(&tree), "{link}");
        shell(&tree, &format!("rm {link}"));
    }
}

#[test]
fn a_checkout_is_seen_as_a_whole() {
    let Some(tree) = watchable(&[]) else { return };
    let commit = "git add -A && git -c user.name=a -c user.email=a@example.com commit -qm x";
    shell(&tree, "git init -q -b one");
    for directory in 0..20 {
        for file in 0..20 {
            tree.file(format!("d{directory}/f{file}.rs"), "one");
        }
    }
    shell(&tree, commit);
    shell(
        &tree,
        "git checkout -q -b two; rm -r d1; for f in d[2-9]/f1*.rs; do echo two > $f; done",
    );
    shell(
        &tree,
        &format!("mkdir -p n/m; echo new > n/m/f.rs; echo '*.tmp' > .gitignore; {commit}"),
    );
    let watch = TreeWatch::new();
    let mut follower = Follower::default();
    for round in 0..20 {
        let branch = if round % 2 == 0 { "one" } else { "two" };
        shell(&tree, &format!("git checkout -q {branch}"));
        assert_eq!(follower.look(&tree, &watch), &walked(&tree), "{round}");
    }
}

#[test]
fn events_that_are_lost_and_a_watch_that_ends_cost_a_walk() {
    let Some(tree) = watchable(&[("a.rs", ""), ("b.rs", "")]) else { return };
    let watch = TreeWatch::new();
    let (mut one, mut two) = (Follower::default(), Follower::default());
    one.look(&tree, &watch);
    two.look(&tree, &watch);
    // Alternating names, as the kernel merges events of the same name.
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let mode = std::fs::Permissions::from_mode(0o644);
    for _ in 0..=limit / 2 {
        for file in ["a.rs", "b.rs"] {
            std::fs::set_permissions(tree.inside(file), mode.clone()).unwrap();
        }
    }
    tree.file("c.rs", "z");
    assert_eq!(one.look(&tree, &watch), &walked(&tree));
    assert_eq!(one.walks, 2);
    tree.file("d.rs", "z");
    assert_eq!(one.look(&tree, &watch), &walked(&tree));
    assert_eq!(two.look(&tree, &watch), &walked(&tree));
    assert_eq!((one.walks, two.walks), (2, 2));
    assert!(!watch.end_if_unused_for(Duration::from_hours(1)));
    assert!(watch.end_if_unused_for(Duration::ZERO) && !watch.is_watching());
    tree.file("e.rs", "z");
    assert_eq!(one.look(&tree, &watch), &walked(&tree));
    assert_eq!(two.look(&tree, &watch), &walked(&tree));
    assert_eq!((one.walks, two.walks, watch.is_watching()), (3, 3, true));
}

#[test]
fn the_last_change_is_known_until_something_happens() {
    let Some(tree) = watchable(&[("a.rs", "1"), (".gitignore", "ignored\n")]) else { return };
    let watch = TreeWatch::new();
    let mut follower = Follower::default();
    assert_eq!(watch.last_change(&tree.root), None);
    follower.look(&tree, &watch);
    let before = watch.last_change(&tree.root);
    assert!(before.is_some() && before == watch.last_change(&tree.root));
    tree.file("a.rs", "2");
    assert_eq!(watch.last_change(&tree.root), None);
    follower.look(&tree, &watch);
    let after = watch.last_change(&tree.root);
    assert!(after > before, "{after:?} after {before:?}");
    tree.file("ignored", "3");
    follower.look(&tree, &watch);
    assert_eq!(watch.last_change(&tree.root), after);
}

#[test]
fn a_directory_in_the_place_of_the_tree_is_another_tree() {
    let Some(mut tree) = watchable(&[("a.rs", "1"), ("d/b.rs", "1")]) else { return };
    let watch = TreeWatch::new();
    let mut follower = Follower::default();
    follower.look(&tree, &watch);
    std::fs::rename(tree.inside(""), tree.outside("before")).unwrap();
    tree.file("c.rs", "2");
    tree.root = Root::open(&tree.inside("")).unwrap();
    assert_eq!(follower.look(&tree, &watch), &walked(&tree));
    std::fs::write(tree.outside("before/d/b.rs"), "3").unwrap();
    tree.file("d/e.rs", "2");
    assert_eq!(follower.look(&tree, &watch), &walked(&tree));
    assert_eq!(follower.files.len(), 2);
}

#[test]
fn a_directory_that_cannot_be_read_has_the_tree_walked_until_it_can() {
    let Some(tree) = watchable(&[("a.rs", ""), ("d/b.rs", "")]) else { return };
    if rustix::process::geteuid().is_root() {
        return;
    }
    let watch = TreeWatch::new();
    let mut follower = Follower::default();
    follower.look(&tree, &watch);
    let mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(tree.root.path().join("d"), permissions).unwrap();
    };
    mode(0o000);
    assert_eq!(follower.look(&tree, &watch).len(), 1);
    mode(0o755);
    assert_eq!(follower.look(&tree, &watch), &walked(&tree));
}

/// Does one random thing to a tree.
fn change(tree: &TestTree, random: &mut fastrand::Rng) -> String {
    let directories = ["", "a", "b", "a/x", "a/y", "b/x", "a/x/deep"];
    let names = ["f.rs", "g.rs", "h.tmp", "i.log"];
    let mut pick = |from: &[&str]| from[random.usize(..from.len())].to_owned();
    let (one, two) = (pick(&directories[1..]), pick(&directories[1..]));
    let (from, to) = (pick(&directories), pick(&directories));
    let (file, other) = (format!("./{from}/{}", pick(&names)), format!("./{to}/{}", pick(&names)));
    let rules = pick(&["*.tmp", "x/", "/a", "deep", "!*.tmp", "f.rs", ""]);
    let (top, text) = (tree.root.path(), random.u32(..).to_string());
    let at = |path: &str| top.join(path);
    match random.usize(..12) {
        0..3 => {
            let _ = std::fs::create_dir_all(at(&from));
            let _ = std::fs::write(at(&file), text);
            format!("write {file}")
        }
        3 => {
            let _ = std::fs::create_dir_all(at(&one));
            format!("mkdir {one}")
        }
        4 => {
            let _ = std::fs::rename(at(&one), at(&two));
            format!("mv {one} {two}")
        }
        5 => {
            let _ = std::fs::rename(at(&file), at(&other));
            format!("mv {file} {other}")
        }
        6 => {
            let _ = std::fs::remove_file(at(&file));
            format!("rm {file}")
        }
        7 => {
            let _ = std::fs::copy(at(&file), at(&other));
            format!("cp {file} {other}")
        }
        8 => {
            let _ = std::fs::rename(at(&one), at("../outside/kept"));
            let _ = std::fs::write(at("../outside/kept/f.rs"), text);
            format!("mv {one} out")
        }
        9 => {
            let _ = std::fs::rename(at("../outside/kept"), at(&one));
            format!("mv back {one}")
        }
        10 => {
            let file = format!("{from}/.gitignore");
            let file = file.trim_start_matches('/');
            let _ = std::fs::write(at(file), rules);
            format!("rules {file}")
        }
        _ => {
            shell(tree, &format!("rm -rf {one}"));
            format!("rm -r {one}")
        }
    }
}

#[test]
fn lists_that_follow_a_watch_are_those_of_a_walk_after_any_changes() {
    let Some(tree) = watchable(&[("a/x/f.rs", "1"), ("b/x/f.rs", "1"), ("a/y/g.rs", "1")]) else {
        return;
    };
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let watch = TreeWatch::new();
    let (mut often, mut seldom) = (Follower::default(), Follower::default());
    let (mut history, mut questions) = (Vec::new(), 0);
    for _ in 0..1500 {
        for _ in 0..random.usize(1..4) {
            history.push(change(&tree, &mut random));
        }
        let recent = || format!("seed {seed}: {:?}", &history[history.len().saturating_sub(12)..]);
        assert_eq!(often.look(&tree, &watch), &walked(&tree), "{}", recent());
        questions += 1;
        if random.u8(..) < 20 {
            assert_eq!(seldom.look(&tree, &watch), &walked(&tree), "{}", recent());
        }
    }
    assert!(often.walks * 3 < questions, "{} walks for {questions} questions", often.walks);
}
