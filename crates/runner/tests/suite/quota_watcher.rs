use std::io::Write;
use std::time::Duration;

use carrel_domain::ByteSize;
use carrel_fsroot::Root;
use carrel_runner::QuotaWatcher;
use carrel_workspace::{Amount, Quota};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_count_serves_until_the_disk_has_lost_what_was_left() {
    let workspace = tempfile::tempdir().unwrap();
    let directory = Root::open(workspace.path()).unwrap();
    let quota = Quota { bytes: ByteSize::mib(1), files: None };
    let used = Amount { bytes: 1000, files: 1 };
    let mut watcher = QuotaWatcher::new(directory, quota, used).unwrap();
    // What others on this disk take meanwhile is in the figure, so it may be more.
    assert!(watcher.still_fits(false).unwrap().is_some_and(|used| used.files >= 1));
    assert_eq!(
        watcher.still_fits(true).unwrap(),
        None,
        "after a change it is counted if that is cheap"
    );
    // More than what is left, and more than others on this disk are likely to free meanwhile.
    let mut big = std::fs::File::create(workspace.path().join("big")).unwrap();
    big.write_all(&vec![1; 256 << 20]).unwrap();
    big.sync_all().unwrap();
    assert_eq!(watcher.still_fits(false).unwrap(), None);
    let walk = watcher.begin_walk().unwrap();
    watcher.end_walk(walk, used);
    let fits = watcher.still_fits(false).unwrap();
    assert!(fits.is_some(), "what was counted is known");
}

#[tokio::test]
async fn the_watcher_tells_of_a_writer_that_passes_the_quota() {
    let workspace = tempfile::tempdir().unwrap();
    let quota = Quota { bytes: ByteSize::mib(8), files: None };
    let directory = Root::open(workspace.path()).unwrap();
    let watcher = QuotaWatcher::new(directory, quota, Amount::default()).unwrap();
    let stop = CancellationToken::new();
    let watching = tokio::spawn({
        let stop = stop.clone();
        async move { watcher.watch(&stop).await }
    });
    let mut file = std::fs::File::create(workspace.path().join("growing")).unwrap();
    let mut written = 0;
    while !watching.is_finished() && written < 4096 {
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.sync_data().unwrap();
        written += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let exceeded = watching.await.unwrap().unwrap().expect("the writer went beyond the quota");
    assert!(exceeded.bytes > quota.bytes);
}

#[tokio::test]
async fn the_watcher_stops_when_it_is_told_to() {
    let workspace = tempfile::tempdir().unwrap();
    let quota = Quota { bytes: ByteSize::mib(8), files: None };
    let directory = Root::open(workspace.path()).unwrap();
    let watcher = QuotaWatcher::new(directory, quota, Amount::default()).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(watcher.watch(&stop).await.unwrap(), None);
}
