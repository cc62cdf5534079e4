use carrel_domain::WorkspaceKey;
use carrel_workspace::{Error, ForkKind, Freshness, Gc, ListingState, MakeFork, State};

use crate::{TestRoot, identifier, no_hooks};

fn overlay(name: Option<&str>) -> MakeFork {
    MakeFork { identifier: name.map(identifier), quota: None, kind: ForkKind::Overlay }
}

impl TestRoot {
    /// Makes forks of the workspace `A`, and returns the keys of those that were made.
    fn forks(&self, names: &[Option<&str>]) -> (Vec<String>, Result<(), Error>) {
        let base = self.workspaces.freeze(&identifier("A")).unwrap();
        let requests: Vec<_> = names.iter().map(|name| overlay(*name)).collect();
        let (made, result) = self.workspaces.fork_many(&base, &requests);
        (made.into_iter().map(|fork| fork.record.key.to_string()).collect(), result)
    }

    fn records(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.path(".carrel/records")).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn forks_that_are_made_together_are_whole_and_have_numbers_of_their_own() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let (made, result) = fixture.forks(&[None, Some("other"), None]);
    result.unwrap();
    assert_eq!(made, ["A.fork-1", "other", "A.fork-2"]);
    for key in &made {
        let opened = fixture.workspaces.open(&identifier(key)).await.unwrap();
        assert_eq!(opened.record().state, State::Ready);
        assert!(opened.overlay().unwrap().is_some());
        assert!(fixture.path(key).read_dir().unwrap().next().is_none());
    }
    let (more, result) = fixture.forks(&[None, None]);
    result.unwrap();
    assert_eq!(more, ["A.fork-3", "A.fork-4"]);
}

#[tokio::test]
async fn of_forks_that_cannot_all_be_made_nothing_is_left_behind_the_failure() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    fixture.create("taken").await.unwrap();
    let before = fixture.records();
    let (made, result) = fixture.forks(&[None, Some("taken"), None]);
    assert!(matches!(result, Err(Error::Exists { .. })), "{result:?}");
    assert!(made.is_empty(), "{made:?}");
    assert_eq!(fixture.records(), before);
    // The second directory is in the way after its record was written.
    std::fs::create_dir(fixture.path(".carrel/forks/A.fork-2")).unwrap();
    std::fs::write(fixture.path(".carrel/forks/A.fork-2/file"), "in the way").unwrap();
    let (made, result) = fixture.forks(&[None, None, None]);
    result.unwrap();
    assert_eq!(
        made,
        ["A.fork-1", "A.fork-2", "A.fork-3"],
        "leftovers without a record are discarded"
    );
    let (made, result) = fixture.forks(&vec![None; 98]);
    assert!(matches!(result, Err(Error::TooManyForks { .. })), "{result:?}");
    assert!(made.is_empty(), "{made:?}");
    assert_eq!(fixture.records().len(), before.len() + 3);
}

#[tokio::test]
async fn a_fork_whose_record_is_all_that_a_crash_left_is_broken() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    fixture.forks(&[None, None]).1.unwrap();
    // As after a crash between the records and the layers, and within the layers.
    std::fs::remove_dir(fixture.path("A.fork-1")).unwrap();
    std::fs::remove_dir_all(fixture.path(".carrel/forks/A.fork-1")).unwrap();
    std::fs::remove_file(fixture.path(".carrel/forks/A.fork-2/boot")).unwrap();
    for name in ["A.fork-1", "A.fork-2"] {
        let opened = fixture.workspaces.open(&identifier(name)).await;
        assert!(matches!(opened, Err(Error::BrokenFork { .. })), "{opened:?}");
    }
    let listed = fixture.workspaces.list(Freshness::Cached).await.unwrap();
    let broken = listed.iter().filter(|listing| listing.state == ListingState::Broken);
    assert_eq!(broken.count(), 2, "{listed:?}");
    // A person removes one, and a clean-up the other one, which has no work.
    fixture.remove("A.fork-1").await.unwrap();
    let collected = fixture.workspaces.gc(Gc::default(), &no_hooks()).await.unwrap();
    assert!(!fixture.path(".carrel/forks/A.fork-2").exists(), "{collected:?}");
    let base = WorkspaceKey::from_name("A").unwrap();
    assert!(fixture.workspaces.frozen_since(&base).unwrap().is_none());
}
