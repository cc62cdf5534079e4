use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{FixedClock, Timestamp};
use carrel_snapshot::{Budget, CreateRequest, FindError, Reason, Retention, StorageError, Store};
use pretty_assertions::assert_eq;

use crate::{World, named, restore, take};

#[test]
fn a_deleted_snapshot_is_gone_and_its_content_is_freed_by_collecting() {
    let world = World::new();
    world.write("kept", "kept".repeat(1000));
    let store = world.store();
    take(&store, "small");
    let mut random = fastrand::Rng::with_seed(1);
    let large: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(200_000).collect();
    world.write("large", &large);
    take(&store, "large");
    let deleted = store.delete(&named("large").into()).unwrap();
    assert_eq!(deleted.name, Some(named("large")));
    assert!(matches!(store.delete(&named("large").into()), Err(FindError::Unknown { .. })));
    let usage = store.usage().unwrap();
    assert!(usage.reclaimable > 200_000, "{usage:?}");
    assert_eq!(usage.snapshots, 1);
    let other = world.store();
    let collected = store.collect_garbage().unwrap();
    assert!(collected.after < 2000 && collected.before > 200_000, "{collected:?}");
    assert_eq!(store.usage().unwrap().reclaimable, 0);
    // The scan forgets content that is not stored any more, also that of another process.
    for (store, name) in [(&store, "again"), (&other, "other")] {
        take(store, name);
        world.remove("large");
        restore(store, name);
        assert_eq!(std::fs::read(world.path("large")).unwrap(), large);
    }
    restore(&other, "small");
    assert_eq!(world.read("kept"), "kept".repeat(1000));
}

#[test]
fn content_that_no_snapshot_names_is_freed() {
    let world = World::new();
    world.write("f", "1");
    let store = world.store();
    take(&store, "one");
    let before = store.usage().unwrap();
    assert_eq!(before.reclaimable, 0);
    // A look at the present tree stores what is new in it, as a snapshot does that is killed before its end.
    world.write("f", "2".repeat(100));
    crate::since(&store, "one");
    drop(store);
    let store = world.store();
    assert!(store.usage().unwrap().reclaimable > 0);
    store.collect_garbage().unwrap();
    assert_eq!(store.usage().unwrap(), before);
    restore(&store, "one");
    assert_eq!(world.read("f"), "1");
}

#[test]
fn damage_of_what_is_needed_stops_collecting_and_is_never_returned() {
    let world = World::new();
    world.write("a", "aaaa");
    world.write("b", "bbbb");
    let store = world.store();
    take(&store, "one");
    drop(store);
    let segment = world.stored("segment-000001");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(4).position(|window| window == b"aaaa").unwrap();
    bytes[at] = b'x';
    std::fs::write(&segment, &bytes).unwrap();
    let _ = std::fs::remove_file(world.stored("objects.index"));
    let store = world.store();
    assert!(store.usage().unwrap().damaged > 0);
    let error = store.collect_garbage().unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
    assert_eq!(std::fs::read(&segment).unwrap(), bytes);
    // What is not damaged can still be restored, and the rest is there again with the next snapshot.
    world.write("b", "changed");
    let options = carrel_snapshot::RestoreOptions { paths: vec!["b".into()], ..Default::default() };
    let plan = store.plan_restore(&named("one").into(), options).unwrap();
    store.apply(plan).unwrap();
    assert_eq!(world.read("b"), "bbbb");
}

#[test]
fn retention_counts_each_kind_by_itself_and_keeps_the_newest() {
    let world = World::new();
    let day = |day: i64| Timestamp::from_millis(day * 86_400_000);
    let at = |now: Timestamp| {
        Store::with_clock(world.root("store"), world.root("workspace"), Arc::new(FixedClock(now)))
            .unwrap()
    };
    let automatic = || CreateRequest::unnamed(Reason::Automatic("turn".into()));
    for number in 1..=6 {
        world.write("f", number.to_string());
        let store = at(day(number));
        take(&store, &format!("day{number}"));
        world.write("f", format!("{number} and more"));
        store.create(&automatic()).unwrap();
    }
    let days = |days: u64| Duration::from_hours(24 * days);
    let wide = Budget { count: 100, age: days(100), bytes: u64::MAX };
    let shown = |retention: &Retention, now| -> Vec<String> {
        let deleted = at(now).retain(retention).unwrap();
        deleted.into_iter().map(|snapshot| snapshot.id.to_string()).collect()
    };
    let mut retention = Retention { asked: wide, automatic: Budget { count: 4, ..wide } };
    assert_eq!(shown(&retention, day(7)), ["@2", "@4"]);
    assert_eq!(shown(&retention, day(7)), [""; 0]);
    retention.automatic.age = days(2);
    assert_eq!(shown(&retention, day(7)), ["@6", "@8"]);
    retention.asked.bytes = 0;
    assert_eq!(shown(&retention, day(7)), ["@1", "@3", "@5", "@7", "@9"]);
    retention.automatic = Budget { count: 0, age: Duration::ZERO, bytes: 0 };
    assert_eq!(shown(&retention, day(70)), ["@10"]);
    let store = at(day(70));
    assert_eq!(store.list().unwrap().len(), 2);
    // Numbers are not used again.
    store.delete(&named("day6").into()).unwrap();
    store.delete(&carrel_snapshot::SnapshotId::parse("@12").unwrap().into()).unwrap();
    assert_eq!(take(&store, "new").id.to_string(), "@13");
}
