use carrel_snapshot::{Node, Renames, Side, Trust};
use pretty_assertions::assert_eq;

use crate::{World, named, shown, since, take};

#[test]
fn every_kind_of_difference_is_listed_once() {
    let world = World::new();
    for path in ["same", "changed", "gone", "mode", "to_link", "moved/from", "d/e/f"] {
        world.write(path, path);
    }
    world.link("same", "link");
    let store = world.store();
    take(&store, "before");
    world.write("changed", "CHANGED");
    world.write("new", "new");
    world.mode("mode", 0o700);
    for path in ["gone", "to_link", "link", "d"] {
        world.remove(path);
    }
    world.link("same", "to_link");
    world.link("changed", "link");
    world.write("d", "a file");
    std::fs::create_dir(world.path("empty")).unwrap();
    std::fs::rename(world.path("moved/from"), world.path("moved/to")).unwrap();
    let expected = [
        "modified changed",
        "type d",
        "deleted d/e",
        "deleted d/e/f",
        "added empty",
        "deleted gone",
        "modified link",
        "mode mode",
        "renamed moved/from -> moved/to",
        "added new",
        "type to_link",
    ];
    assert_eq!(since(&store, "before"), expected);
}

#[test]
fn both_contents_of_a_change_can_be_read() {
    let world = World::new();
    world.write("f", "one");
    let store = world.store();
    take(&store, "one");
    world.write("f", "two!");
    let sides = [Side::Snapshot(named("one").into()), Side::Now];
    let comparison = store.compare(&sides[0], &sides[1], Renames::Joined, &Trust::Keys).unwrap();
    let [change] = &comparison.changes[..] else { panic!("{comparison:?}") };
    let content = |node: &Option<Node>| match node {
        Some(Node::File { id, .. }) => store.content(*id).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!((content(&change.old), content(&change.new)), (b"one".to_vec(), b"two!".to_vec()));
    let back = store.compare(&sides[1], &sides[0], Renames::Joined, &Trust::Keys).unwrap();
    assert_eq!(shown(&back.changes[0].kind, &back.changes[0].path), "modified f");
}

/// Two changes of one file to the same length within one tick of a coarse clock must both be seen.
#[test]
fn changes_in_quick_succession_are_all_seen() {
    let world = World::new();
    world.write("f", "0000");
    let store = world.store();
    take(&store, "s0");
    for round in 1..200 {
        world.write("f", format!("{round:04}"));
        take(&store, &format!("s{round}"));
        let old = Side::Snapshot(named(&format!("s{}", round - 1)).into());
        let new = Side::Snapshot(named(&format!("s{round}")).into());
        assert_eq!(
            store.compare(&old, &new, Renames::Joined, &Trust::Keys).unwrap().changes.len(),
            1
        );
    }
}

#[test]
fn two_files_with_the_same_content_are_joined_by_name_first() {
    let world = World::new();
    world.write("a/x", "content");
    world.write("a/y", "content");
    let store = world.store();
    take(&store, "before");
    std::fs::rename(world.path("a"), world.path("b")).unwrap();
    let expected = ["deleted a", "added b", "renamed a/x -> b/x", "renamed a/y -> b/y"];
    assert_eq!(since(&store, "before"), expected);
}
