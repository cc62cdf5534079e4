//! Random trees: a snapshot and a restore give the same tree, and a comparison lists exactly what differs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrel_snapshot::{Renames, Side, Trust};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use crate::{Found, World, named, restore, shown, take};

/// A change of a tree; one that does not fit the tree does nothing.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write { path: usize, content: u8, length: usize },
    Hole { path: usize, length: u64 },
    Directory(usize),
    Link { path: usize, target: usize },
    Remove(usize),
    Mode { path: usize, mode: u32 },
    Rename { from: usize, to: usize },
}

const NAMES: [&[u8]; 12] = [
    b"a",
    b"b",
    b"a b",
    b"-rf",
    b"\xc3\xa4",
    b"\xff\xfe",
    b"new\nline",
    b".hidden",
    b"a.b",
    b"a-b",
    b"target",
    b"x",
];

/// The number of paths: names, pairs, triples, and one deep chain.
const PATHS: usize = 12 + 144 + 60;

fn path(index: usize) -> PathBuf {
    let name = |index: usize| Path::new(OsStr::from_bytes(NAMES[index % NAMES.len()]));
    match index {
        0..12 => name(index).to_owned(),
        12..156 => name(index - 12).join(name((index - 12) / 12)),
        _ => {
            let depth = index - 155;
            (0..depth).map(|level| name(if level == 0 { 11 } else { index + level / 20 })).collect()
        }
    }
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = 0..PATHS;
    let step = prop_oneof![
        5 => (path.clone(), any::<u8>(), prop_oneof![0..20_usize, Just(4096), Just(70_000)])
            .prop_map(|(path, content, length)| Step::Write { path, content, length }),
        1 => (path.clone(), 0..300_000_u64).prop_map(|(path, length)| Step::Hole { path, length }),
        2 => path.clone().prop_map(Step::Directory),
        2 => (path.clone(), path.clone()).prop_map(|(path, target)| Step::Link { path, target }),
        3 => path.clone().prop_map(Step::Remove),
        2 => (path.clone(), 0..0o100_u32).prop_map(|(path, mode)| Step::Mode { path, mode: mode | 0o700 }),
        1 => (path.clone(), path).prop_map(|(from, to)| Step::Rename { from, to }),
    ];
    prop::collection::vec(step, 0..60)
}

pub(crate) fn take_steps(world: &World, steps: &[Step]) {
    for step in steps {
        take_step(world, step);
    }
}

/// Takes a step without following links, and does nothing if it does not fit.
fn take_step(world: &World, step: &Step) {
    let at = |index: &usize| world.path(path(*index));
    let leads_through_link = |path: &Path| {
        let top = world.path("");
        path.ancestors().skip(1).take_while(|above| *above != top).any(Path::is_symlink)
    };
    let fits = |path: &Path| !leads_through_link(path);
    match step {
        Step::Write { path, content, length } => {
            let path = at(path);
            if fits(&path) && !path.is_symlink() {
                let _ = std::fs::create_dir_all(path.parent().unwrap());
                let _ = std::fs::write(path, vec![*content; *length]);
            }
        }
        Step::Hole { path, length } => {
            let path = at(path);
            if fits(&path) && !path.is_symlink() {
                let _ = std::fs::File::create(path).and_then(|file| file.set_len(*length));
            }
        }
        Step::Directory(path) => {
            let path = at(path);
            if fits(&path) {
                let _ = std::fs::create_dir_all(path);
            }
        }
        Step::Link { path: link, target } => {
            let link = at(link);
            if fits(&link) {
                let _ = std::os::unix::fs::symlink(path(*target), link);
            }
        }
        Step::Remove(path) => {
            let path = at(path);
            if fits(&path) {
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
            }
        }
        Step::Mode { path, mode } => {
            let path = at(path);
            if fits(&path) && !path.is_symlink() {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(*mode);
                let _ = std::fs::set_permissions(path, mode);
            }
        }
        Step::Rename { from, to } => {
            let (from, to) = (at(from), at(to));
            if fits(&from) && fits(&to) {
                let _ = std::fs::rename(from, to);
            }
        }
    }
}

/// Returns the differences of two trees, found without the crate.
fn difference(old: &BTreeMap<PathBuf, Found>, new: &BTreeMap<PathBuf, Found>) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    for path in paths {
        let kind = match (old.get(path), new.get(path)) {
            (None, _) => "added",
            (_, None) => "deleted",
            (Some(old), Some(new)) if old == new => continue,
            (Some(Found::File { content, .. }), Some(Found::File { content: other, .. })) => {
                if content == other {
                    "mode"
                } else {
                    "modified"
                }
            }
            (Some(Found::Directory { .. }), Some(Found::Directory { .. })) => "mode",
            (Some(Found::Link(_)), Some(Found::Link(_))) => "modified",
            _ => "type",
        };
        found.push(format!("{kind} {}", path.as_os_str().as_bytes().escape_ascii()));
    }
    found
}

fn compared(store: &carrel_snapshot::Store, old: &str, new: Option<&str>) -> Vec<String> {
    let old = Side::Snapshot(named(old).into());
    let new = new.map_or(Side::Now, |new| Side::Snapshot(named(new).into()));
    let comparison = store.compare(&old, &new, Renames::Apart, &Trust::Keys).unwrap();
    comparison.changes.iter().map(|change| shown(&change.kind, &change.path)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn restoring_gives_back_any_tree_and_comparing_lists_exactly_what_differs(
        first in steps(), second in steps(), third in steps()
    ) {
        let world = World::new();
        let store = world.store();
        take_steps(&world, &first);
        let one = world.tree();
        take(&store, "one");
        take_steps(&world, &second);
        let two = world.tree();
        take(&store, "two");
        assert_eq!(compared(&store, "one", Some("two")), difference(&one, &two));
        take_steps(&world, &third);
        let now = world.tree();
        assert_eq!(compared(&store, "two", None), difference(&two, &now));
        let restored = restore(&store, "one");
        assert_eq!(world.tree(), one);
        let changes: Vec<_> =
            restored.changes.iter().map(|change| shown(&change.kind, &change.path)).collect();
        assert_eq!(changes, difference(&now, &one));
        assert_eq!(compared(&store, "one", None), Vec::<String>::new());
        // Another process, without what is in memory here.
        restore(&world.store(), "two");
        assert_eq!(world.tree(), two);
        store.collect_garbage().unwrap();
        restore(&store, "one");
        assert_eq!(world.tree(), one);
    }
}
