use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use carrel_snapshot::{CreateRequest, RebaseError, Rebased, Reference, Snapshot, Store};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use crate::random_trees::{steps, take_steps};
use crate::{Found, World, named, restore, shown, take};

/// A workspace, the tree of a fork of it, and the tree that the fork's work is put onto.
struct Forked {
    base: World,
    fork: World,
    target: World,
}

impl Forked {
    /// Makes the origin, and from it the work, which is recorded.
    fn new(origin: impl FnOnce(&World), work: impl FnOnce(&World)) -> Self {
        let forked = Self { base: World::new(), fork: World::new(), target: World::new() };
        origin(&forked.base);
        copy(&forked.base, &forked.fork);
        let before = take(&forked.base.store(), "origin");
        work(&forked.fork);
        forked.record("work", Some(&before));
        forked
    }

    fn record(&self, name: &str, origin: Option<&Snapshot>) -> Snapshot {
        let store = Store::open(self.base.root("store"), self.fork.root("workspace")).unwrap();
        let mut request = CreateRequest::named(named(name));
        request.origin = origin.map(|origin| origin.id);
        store.create(&request).unwrap().snapshot
    }

    /// Puts the work onto a copy of the base.
    fn rebase(&self) -> Result<Rebased, RebaseError> {
        copy(&self.base, &self.target);
        self.base.store().rebase(&named("work").into(), &self.target.root("workspace"))
    }

    /// Does so where both have changed something, and returns what.
    fn conflicts(&self) -> Vec<String> {
        match self.rebase() {
            Err(RebaseError::Conflicts { paths, .. }) => {
                assert_eq!(self.target.tree(), self.base.tree(), "something was written");
                paths.iter().map(|path| path.display().to_string()).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

fn copy(from: &World, to: &World) {
    let (from, to) = (from.path(""), to.path(""));
    let emptied = Command::new("find").arg(&to).args(["-mindepth", "1", "-delete"]).status();
    assert!(emptied.unwrap().success());
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(copied.unwrap().success());
}

fn some_files(world: &World) {
    for path in ["a", "b", "src/c", "src/d", "old/e", "old/deep/f"] {
        world.write(path, format!("{path}\n"));
    }
    world.link("a", "link");
}

#[test]
fn what_the_work_changed_comes_to_what_the_workspace_changed() {
    let forked = Forked::new(some_files, |fork| {
        fork.write("a", "work\n");
        fork.write("new/deep/g", "work\n");
        fork.mode("b", 0o755);
        fork.remove("old");
        fork.remove("link");
        fork.link("b", "link");
        fork.write("both", "the same\n");
    });
    forked.base.write("src/c", "base\n");
    forked.base.write("new-in-base", "base\n");
    forked.base.remove("src/d");
    forked.base.write("both", "the same\n");
    let rebased = forked.rebase().unwrap();
    let changes: Vec<_> =
        rebased.changes.iter().map(|change| shown(&change.kind, &change.path)).collect();
    let expected = [
        "modified a",
        "mode b",
        "modified link",
        "added new",
        "added new/deep",
        "added new/deep/g",
        "deleted old",
        "deleted old/deep",
        "deleted old/deep/f",
        "deleted old/e",
    ];
    assert_eq!(changes, expected);
    assert_eq!(rebased.already, [PathBuf::from("both")]);
    let tree = forked.target.tree();
    let names: Vec<_> = tree.keys().map(|path| path.display().to_string()).collect();
    let expected =
        ["a", "b", "both", "link", "new", "new/deep", "new/deep/g", "new-in-base", "src", "src/c"];
    assert_eq!(names, expected);
    assert_eq!(forked.target.read("a"), "work\n");
    assert_eq!(forked.target.read("src/c"), "base\n");
    // The snapshot itself is as it was.
    restore(&forked.base.store(), "work");
    assert_eq!(forked.base.tree(), forked.fork.tree());
}

#[test]
fn what_both_have_changed_is_named_and_nothing_is_written() {
    let forked = Forked::new(some_files, |fork| {
        fork.write("a", "work\n");
        fork.write("b", "work\n");
        fork.remove("old");
        fork.write("src/new", "work\n");
        fork.remove("link");
    });
    forked.base.write("a", "base\n");
    forked.base.write("old/later", "base\n");
    forked.base.remove("src");
    forked.base.mode("b", 0o755);
    assert_eq!(forked.conflicts(), ["a", "b", "old", "src/new"]);
}

#[test]
fn an_ignored_file_in_the_way_is_a_conflict() {
    let forked = Forked::new(some_files, |fork| fork.write("made.o", "work\n"));
    forked.base.write(".gitignore", "*.o\n");
    forked.base.write("made.o", "base\n");
    assert_eq!(forked.conflicts(), ["made.o"]);
}

#[test]
fn a_snapshot_that_is_no_work_of_a_fork_is_refused() {
    let forked = Forked::new(some_files, |_| {});
    let store = forked.base.store();
    let plain = take(&store, "plain");
    let target = forked.target.root("workspace");
    let refused = store.rebase(&plain.id.into(), &target).unwrap_err();
    let expected = format!(
        "it is not known what the tree of snapshot {0} began as: it is not the work of a fork that ended, or the base of \
         that fork was changed past Carrel before; `carrel snapshot restore {0}` brings all of its files back",
        plain.id
    );
    assert_eq!(refused.to_string(), expected);
    assert_eq!(forked.target.tree(), BTreeMap::new());
    let unknown = store.rebase(&Reference::parse("nothing").unwrap(), &target).unwrap_err();
    assert!(matches!(unknown, RebaseError::Find(_)), "{unknown}");
}

#[test]
fn the_origin_outlives_its_own_snapshot_and_the_collection_of_garbage() {
    let forked = Forked::new(
        |base| base.write("large", vec![7; 300_000]),
        |fork| {
            fork.write("large", "small");
            fork.write("new", "work\n");
        },
    );
    let store = forked.base.store();
    store.delete(&named("origin").into()).unwrap();
    forked.base.write("large", vec![8; 300_000]);
    take(&store, "now");
    store.collect_garbage().unwrap();
    drop(store);
    assert_eq!(forked.conflicts(), ["large"]);
    forked.base.write("large", vec![7; 300_000]);
    forked.rebase().unwrap();
    assert_eq!(forked.target.read("large"), "small");
    assert_eq!(forked.base.store().damaged().unwrap(), [""; 0]);
}

type Tree = BTreeMap<PathBuf, Found>;

/// Returns whether the other side has taken away the directory that an entry of one side needs.
fn is_without_place(path: &Path, other: &Tree, origin: &Tree) -> bool {
    let is_taken = |above: &Path| {
        let found = other.get(above);
        found != origin.get(above) && !matches!(found, Some(Found::Directory { .. }))
    };
    path.ancestors().skip(1).any(is_taken)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn each_entry_is_that_of_the_side_that_changed_it(
        origin in steps(),
        work in steps(),
        moved in steps(),
        kept in 0..6_usize,
        left in 0..6_usize,
    ) {
        let forked = Forked::new(
            |base| take_steps(base, &origin),
            |fork| take_steps(fork, &work[..kept.min(work.len())]),
        );
        let (origin, work) = (forked.base.tree(), forked.fork.tree());
        take_steps(&forked.base, &moved[..left.min(moved.len())]);
        let now = forked.base.tree();
        let paths: Vec<_> = origin.keys().chain(work.keys()).chain(now.keys()).collect();
        let is_changed_by = |side: &Tree, path: &PathBuf| side.get(path) != origin.get(path);
        let is_apart = |path: &&&PathBuf| {
            let (by_work, by_base) = (is_changed_by(&work, path), is_changed_by(&now, path));
            let differs = by_work && by_base && work.get(**path) != now.get(**path);
            let has_no_place = (by_work && work.contains_key(**path) && is_without_place(path, &now, &origin))
                || (by_base && now.contains_key(**path) && is_without_place(path, &work, &origin));
            differs || has_no_place
        };
        let is_conflict = paths.iter().any(|path| is_apart(&path));
        match forked.rebase() {
            Ok(_) => {
                prop_assert!(!is_conflict, "no conflict was seen");
                let mut expected = now.clone();
                for path in paths.into_iter().filter(|path| is_changed_by(&work, path)) {
                    match work.get(path) {
                        Some(found) => drop(expected.insert(path.clone(), found.clone())),
                        None => drop(expected.remove(path)),
                    }
                }
                prop_assert_eq!(forked.target.tree(), expected);
            }
            Err(RebaseError::Conflicts { .. }) => {
                prop_assert!(is_conflict, "a conflict was seen where there is none");
                prop_assert_eq!(forked.target.tree(), now);
            }
            Err(error) => panic!("{error}"),
        }
    }
}
