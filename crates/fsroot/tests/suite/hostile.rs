use std::os::unix::net::UnixListener;
use std::path::Path;

use carrel_domain::{Code, Coded};
use carrel_fsroot::{
    Collision, Error, Escape, FileKind, FileRange, Problem, Root, UsageLimit, WalkControl,
    WriteOptions,
};

use crate::{TestTree, p};

type Operation = fn(&Root, &Path) -> Result<(), Error>;

/// Everything that takes a path and resolves it to what it leads to.
const FOLLOWING: &[(&str, Operation)] = &[
    ("open_file", |root, path| root.open_file(path).map(drop)),
    ("open_root", |root, path| root.open_root(path).map(drop)),
    ("open_or_create", |root, path| root.open_or_create(path, 0o600).map(drop)),
    ("read", |root, path| root.read(path, 100).map(drop)),
    ("read_strict", |root, path| root.read_strict(path, 100).map(drop)),
    ("read_range", |root, path| root.read_range(path, 0, 10).map(|_: FileRange| ())),
    ("list", |root, path| root.list(path).map(drop)),
    ("metadata", |root, path| root.metadata(path).map(drop)),
    ("create_directories", |root, path| root.create_directories(path, 0o755)),
    ("write", |root, path| root.write(path, b"x", WriteOptions::default())),
    ("walk", |root, path| root.walk(path, |_| Ok(WalkControl::Continue), Err)),
    ("usage", |root, path| root.usage(path, UsageLimit::NONE).map(drop)),
    ("sync_directory", Root::sync_directory),
    ("browse.read", |root, path| root.browse().read(path, 100).map(drop)),
    ("browse.list", |root, path| root.browse().list(path).map(drop)),
    ("browse.metadata", |root, path| root.browse().metadata(path).map(drop)),
    ("browse.write", |root, path| root.browse().write(path, b"x", WriteOptions::default())),
];

/// Everything that acts on the last name itself.
const NAMING: &[(&str, Operation)] = &[
    ("link_metadata", |root, path| root.link_metadata(path).map(drop)),
    ("read_link", |root, path| root.read_link(path).map(drop)),
    ("create_directory", |root, path| root.create_directory(path, 0o755)),
    ("rename from", |root, path| root.rename(path, p("new"), Collision::Replace)),
    ("rename to", |root, path| root.rename(p("file"), path, Collision::Replace)),
    ("create_link", |root, path| root.create_link(p("file"), path)),
    ("hard link from", |root, path| root.hard_link_into(path, root, p("new"))),
    ("hard link to", |root, path| root.hard_link_into(p("file"), root, path)),
    ("remove_file", Root::remove_file),
    ("remove_directory", Root::remove_directory),
    ("remove_tree", Root::remove_tree),
    ("open_root_strict", |root, path| root.open_root_strict(path).map(drop)),
    ("enter", |root, path| root.enter(path).map(drop)),
];

fn all() -> impl Iterator<Item = &'static (&'static str, Operation)> {
    FOLLOWING.iter().chain(NAMING)
}

/// A fixture with one of everything that tries to lead out.
fn hostile_world() -> TestTree {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "contents");
    tree_fixture.file("directory/file", "contents");
    tree_fixture.link("../outside", "outward");
    tree_fixture.link("directory/../../outside", "outward-late");
    tree_fixture.link(tree_fixture.outside(""), "absolute-out");
    tree_fixture.link(tree_fixture.inside("../outside"), "absolute-up");
    tree_fixture.link("nothing", "dangling");
    tree_fixture.link("loop-b", "loop-a");
    tree_fixture.link("loop-a", "loop-b");
    tree_fixture.link("../outside/missing", "outward-missing");
    tree_fixture
}

fn assert_refused(operation: &str, error: &Error, problem: Problem) {
    // Where no link is allowed at all, that is what is said.
    let strict =
        matches!(operation, "open_root_strict" | "enter" | "open_or_create" | "read_strict");
    let link = strict && error.problem() == Problem::Link;
    assert!(link || error.problem() == problem, "{operation}: {error:?}");
}

fn assert_untouched(tree_fixture: &TestTree) {
    let outside: Vec<_> = std::fs::read_dir(tree_fixture.outside(""))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(outside, ["secret"]);
    assert_eq!(std::fs::read_to_string(tree_fixture.outside("secret")).unwrap(), "outside");
}

#[test]
fn every_operation_refuses_every_path_that_leaves() {
    use Escape::{Absolute, AbsoluteLink, Climbs, OutwardLink};
    let tree_fixture = hostile_world();
    let secret = tree_fixture.outside("secret");
    let long_climb = format!("{}outside/secret", "../".repeat(400));
    let cases = [
        ("/etc/passwd", Absolute),
        (secret.to_str().unwrap(), Absolute),
        ("/proc/self/root/etc/passwd", Absolute),
        ("../outside/secret", Climbs),
        ("..", Climbs),
        ("directory/../../outside/secret", Climbs),
        ("missing/../../outside/secret", Climbs),
        ("../inside/file", Climbs),
        (long_climb.as_str(), Climbs),
        ("outward/secret", OutwardLink),
        ("outward/new", OutwardLink),
        ("outward-late/secret", OutwardLink),
        ("absolute-out/secret", AbsoluteLink),
        ("absolute-up/secret", AbsoluteLink),
    ];
    for (path, escape) in cases {
        for (name, operation) in all() {
            let error =
                operation(&tree_fixture.root, p(path)).expect_err(&format!("{name} {path}"));
            assert_refused(name, &error, Problem::Escapes(escape));
            assert_eq!(error.code(), Code::SandboxViolation, "{name} {path}");
            assert_eq!(error.path(), p(path), "{name}");
        }
    }
    assert_untouched(&tree_fixture);
}

#[test]
fn operations_that_follow_refuse_a_link_at_the_end_that_leaves() {
    use Escape::{AbsoluteLink, DanglingLink, OutwardLink};
    let tree_fixture = hostile_world();
    let cases = [
        ("outward", OutwardLink),
        ("absolute-out", AbsoluteLink),
        ("absolute-up", AbsoluteLink),
        ("outward-missing", OutwardLink),
        ("dangling", DanglingLink),
        ("dangling/below", DanglingLink),
    ];
    for (path, escape) in cases {
        for (name, operation) in FOLLOWING {
            let error =
                operation(&tree_fixture.root, p(path)).expect_err(&format!("{name} {path}"));
            assert_refused(name, &error, Problem::Escapes(escape));
        }
    }
    assert_untouched(&tree_fixture);
}

#[test]
fn every_operation_names_a_nul_byte() {
    let tree_fixture = hostile_world();
    for (name, operation) in all() {
        let error = operation(&tree_fixture.root, p("file\0.txt")).expect_err(name);
        assert_eq!((error.problem(), error.code()), (Problem::Nul, Code::InvalidPath), "{name}");
    }
}

#[test]
fn every_operation_names_what_is_too_long() {
    let tree_fixture = hostile_world();
    let name_too_long = "n".repeat(256);
    let path_too_long = "a/".repeat(2500);
    for path in [name_too_long.as_str(), path_too_long.as_str()] {
        for (name, operation) in all() {
            let error = operation(&tree_fixture.root, p(path)).expect_err(name);
            let named = matches!(error.problem(), Problem::NameTooLong)
                // A path can be missing before it is too long.
                || (path.len() > 4000 && error.problem() == Problem::NotFound);
            assert!(named, "{name}: {error:?}");
            assert!(error.to_string().len() < 400, "{name} repeats the whole path");
        }
    }
}

#[test]
fn a_file_where_a_directory_is_expected_is_named() {
    let tree_fixture = hostile_world();
    for (name, operation) in all() {
        let error = operation(&tree_fixture.root, p("file/below")).expect_err(name);
        assert_eq!(error.problem(), Problem::NotADirectory, "{name}");
        assert_eq!(error.code(), Code::NotADirectory, "{name}");
    }
}

#[test]
fn links_in_a_circle_are_named() {
    let tree_fixture = hostile_world();
    for (name, operation) in all() {
        let error = operation(&tree_fixture.root, p("loop-a/x")).expect_err(name);
        assert_refused(name, &error, Problem::LinkLoop);
    }
}

#[test]
fn the_top_itself_cannot_be_renamed_or_removed() {
    let tree_fixture = hostile_world();
    for path in ["", ".", "directory/.."] {
        for (name, operation) in NAMING {
            if matches!(*name, "link_metadata" | "open_root_strict" | "enter") {
                continue;
            }
            let error = operation(&tree_fixture.root, p(path)).expect_err(name);
            assert_eq!(error.problem(), Problem::NoName, "{name} {path:?}");
        }
    }
    assert!(tree_fixture.inside("file").exists());
}

#[test]
fn pipes_sockets_and_devices_are_refused_at_once() {
    let tree_fixture = TestTree::new();
    tree_fixture.fifo("fifo");
    let _listener = UnixListener::bind(tree_fixture.inside("socket")).unwrap();
    let mut cases = vec![("fifo", FileKind::Fifo), ("socket", FileKind::Socket)];
    if make_device(&tree_fixture) {
        cases.push(("device", FileKind::Device));
    }
    let reading_and_writing =
        FOLLOWING.iter().filter(|(name, _)| name.contains("read") || name.contains("write"));
    for (name, operation) in reading_and_writing {
        for (path, kind) in &cases {
            let error =
                operation(&tree_fixture.root, p(path)).expect_err(&format!("{name} {path}"));
            assert_eq!(error.problem(), Problem::NotRegular(*kind), "{name} {path}");
            assert_eq!(error.code(), Code::NotARegularFile);
        }
    }
}

/// Makes a null device; only root may.
fn make_device(tree_fixture: &TestTree) -> bool {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let (path, owner_only) = (tree_fixture.inside("device"), Mode::from_raw_mode(0o600));
    let null = makedev(1, 3);
    let result = mknodat(CWD, path, FileType::CharacterDevice, owner_only, null);
    let root = carrel_skip::User::Root;
    if result.is_err() && carrel_skip::needs_user(root, env!("CARGO_MANIFEST_DIR")) {
        carrel_skip::unavailable("the right to make device nodes");
    }
    result.is_ok()
}

#[test]
fn names_that_only_look_dangerous_work() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("a/x", "x");
    tree_fixture.file("b", "b");
    tree_fixture.link("a/x", "inward");
    tree_fixture.link("../b", "a/up");
    tree_fixture.link("a", "linked");
    for (path, contents) in [
        ("a/../b", "b"),
        ("./a/./x", "x"),
        ("inward", "x"),
        ("a/up", "b"),
        ("linked/x", "x"),
        ("linked/../b", "b"),
        ("a//x", "x"),
    ] {
        assert_eq!(tree_fixture.root.read(p(path), 10).unwrap(), contents.as_bytes(), "{path}");
    }
    for path in ["..foo", "...", "a/..bar", "~", "-rf", "a\\b", " ", "\n"] {
        tree_fixture.root.write(p(path), b"new", WriteOptions::default()).unwrap();
        assert_eq!(tree_fixture.root.read(p(path), 10).unwrap(), b"new", "{path}");
    }
}
