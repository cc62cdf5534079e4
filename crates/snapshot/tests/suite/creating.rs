use carrel_snapshot::{
    CreateError, CreateRequest, FindError, Reason, Reference, SameName, SnapshotId, Store,
};
use pretty_assertions::assert_eq;

use crate::{World, create, named, take};

#[test]
fn a_snapshot_is_listed_with_what_it_has_by_every_process() {
    let world = World::new();
    world.write("src/main.rs", "fn main() {}");
    world.write(".env", "KEY=1");
    world.link("src/main.rs", "link");
    let store = world.store();
    let mut request = CreateRequest::named(named("first"));
    request.author = "ann".to_owned();
    let first = store.create(&request).unwrap().snapshot;
    let second = store.create(&CreateRequest::unnamed(Reason::Asked)).unwrap();
    assert!(second.is_unchanged);
    assert_eq!((first.totals.files, first.totals.directories, first.totals.links), (2, 1, 1));
    assert_eq!(first.totals.bytes, 17);
    assert_eq!(second.snapshot.parent, Some(first.id));
    let listed = vec![second.snapshot, first];
    assert_eq!(store.list().unwrap(), listed);
    assert_eq!(world.store().list().unwrap(), listed);
}

#[test]
fn an_automatic_snapshot_of_an_unchanged_tree_is_the_newest_one() {
    let world = World::new();
    world.write("f", "1");
    let store = world.store();
    let automatic = CreateRequest::unnamed(Reason::Automatic("turn".into()));
    let first = store.create(&automatic).unwrap();
    let same = store.create(&automatic).unwrap();
    assert_eq!((same.snapshot, same.is_unchanged), (first.snapshot, true));
    world.write("f", "2");
    let other = store.create(&automatic).unwrap();
    assert!(!other.is_unchanged);
    let named = take(&store, "named");
    assert_eq!(named.top, other.snapshot.top);
    assert_eq!(store.create(&automatic).unwrap().snapshot, named);
    assert_eq!(store.list().unwrap().len(), 3);
}

#[test]
fn two_open_stores_see_what_the_other_did() {
    let world = World::new();
    let (one, other): (Store, Store) = (world.store(), world.store());
    world.write("a", "1");
    let first = take(&one, "first");
    world.write("a", "22");
    let second = take(&other, "second");
    world.write("a", "333");
    let third = take(&one, "third");
    assert_eq!([first.id, second.id, third.id].map(|id| id.to_string()), ["@1", "@2", "@3"]);
    assert_eq!(other.list().unwrap(), one.list().unwrap());
}

#[test]
fn a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced() {
    let world = World::new();
    let store = world.store();
    let first = take(&store, "name");
    let mut request = CreateRequest::named(named("name"));
    let error = store.create(&request).unwrap_err();
    assert!(matches!(error, CreateError::NameTaken { .. }), "{error}");
    request.same_name = SameName::Replaced;
    let second = store.create(&request).unwrap();
    assert_eq!(second.replaced, Some(first.id));
    assert_eq!(store.list().unwrap(), [second.snapshot]);
    assert_eq!(world.store().list().unwrap().len(), 1);
}

#[test]
fn an_unknown_snapshot_is_refused_with_the_known_ones() {
    let world = World::new();
    let store = world.store();
    take(&store, "known");
    store.create(&CreateRequest::unnamed(Reason::BeforeRestore)).unwrap();
    let error = store.find(&Reference::parse("other").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "snapshot \"other\" not found; there are @2, known");
    let id = SnapshotId::parse("@7").unwrap();
    assert!(matches!(store.find(&id.into()), Err(FindError::Unknown { .. })));
}

#[test]
fn a_second_snapshot_reads_and_stores_only_what_changed() {
    let world = World::new();
    for number in 0..50 {
        world.write(format!("d{}/f{number}", number % 7), format!("{number}").repeat(100));
    }
    // So that no change key is younger than the tick of the kernel's clock.
    let settled = std::time::Duration::from_millis(100);
    std::thread::sleep(settled);
    let store = world.store();
    assert_eq!(create(&store, "first").files_read, 50);
    world.write("d3/f3", "changed");
    let second = create(&store, "second");
    assert_eq!((second.files_read, second.is_unchanged), (1, false));
    assert!(second.snapshot.added_bytes < 2000, "{}", second.snapshot.added_bytes);
    std::thread::sleep(settled);
    // Another process has the index of the last scan.
    let third = create(&world.store(), "third");
    assert!((third.files_read, third.is_unchanged) <= (1, true), "{third:?}");
}
