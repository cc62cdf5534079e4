use carrel_fsroot::{FileKind, Problem};
use carrel_search::{
    Cancel, Detail, Error, ListReport, ListRequest, Scope, TruncationReason, list,
};
use pretty_assertions::assert_eq;

use crate::TestTree;

fn listed(scope: &Scope<'_>, request: &ListRequest) -> ListReport {
    list(scope, request, &Cancel::new()).unwrap()
}

fn tree_fixture() -> TestTree {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "ignored\n"),
        (".hidden", ""),
        ("ignored", ""),
        ("b/inner/deep.txt", "12345"),
        ("b/x.txt", ""),
        ("a.txt", "123"),
    ]);
    tree_fixture.link("b", "link");
    tree_fixture.link("nothing", "dangling");
    tree_fixture.link("../outside/secret", "outward");
    tree_fixture
}

#[test]
fn a_directory_is_listed_in_order_with_what_links_lead_to() {
    let tree_fixture = tree_fixture();
    let report = listed(&tree_fixture.scope(), &ListRequest::default());
    let nowhere = " (no target in the workspace)";
    let expected = format!(
        "a.txt\nb/\ndangling -> nothing{nowhere}\nlink -> b\noutward -> ../outside/secret{nowhere}\n"
    );
    assert_eq!(report.text(), expected);
    assert_eq!((report.entries[0].kind, report.entries[0].metadata), (FileKind::File, None));
    assert_eq!(report.entries[3].target.as_ref().unwrap().kind, Some(FileKind::Directory));
    assert_eq!(report.entries[2].target.as_ref().unwrap().kind, None);
    assert_eq!(report.truncation, None);
}

#[test]
fn sizes_are_returned_on_request_and_change_nothing_else() {
    let tree_fixture = tree_fixture();
    let request = ListRequest { detail: Detail::Sizes, ..ListRequest::default() };
    let mut sized = listed(&tree_fixture.scope(), &request);
    assert_eq!(sized.entries[0].metadata.unwrap().size, 3);
    assert!(sized.entries.iter().all(|entry| entry.metadata.is_some()));
    sized.entries.iter_mut().for_each(|entry| entry.metadata = None);
    assert_eq!(sized, listed(&tree_fixture.scope(), &ListRequest::default()));
}

#[test]
fn deeper_levels_follow_their_directory() {
    let tree_fixture = tree_fixture();
    let deep = ListRequest { depth: 2, ..ListRequest::default() };
    assert_eq!(
        listed(&tree_fixture.at("b"), &deep).text(),
        "b/inner/\nb/inner/deep.txt\nb/x.txt\n"
    );
    let flat = ListRequest { depth: 0, ..deep };
    assert_eq!(listed(&tree_fixture.at("b"), &flat).text(), "b/inner/\nb/x.txt\n");
}

#[test]
fn hidden_and_ignored_entries_are_listed_on_request() {
    let tree_fixture = tree_fixture();
    let everything = Scope { hidden: true, ignored: true, ..tree_fixture.scope() };
    let all = listed(&everything, &ListRequest::default());
    let names: Vec<_> = all.entries.iter().map(|entry| entry.path.to_str().unwrap()).collect();
    let expected =
        [".gitignore", ".hidden", "a.txt", "b", "dangling", "ignored", "link", "outward"];
    assert_eq!(names, expected);
}

#[test]
fn pages_put_together_are_the_whole() {
    let tree_fixture = tree_fixture();
    let whole = listed(&tree_fixture.scope(), &ListRequest { depth: 9, ..ListRequest::default() });
    let mut pages = Vec::new();
    let mut offset = 0;
    loop {
        let request = ListRequest { depth: 9, offset, limit: 2, ..ListRequest::default() };
        let page = listed(&tree_fixture.scope(), &request);
        pages.extend(page.entries);
        let Some(cut) = page.truncation else { break };
        assert_eq!(cut.reason, TruncationReason::Limit);
        offset = cut.next_offset;
    }
    assert_eq!(pages, whole.entries);
}

#[test]
fn only_directories_are_listed() {
    let tree_fixture = tree_fixture();
    for (path, expected) in [("a.txt", Problem::NotADirectory), ("none", Problem::NotFound)] {
        match list(&tree_fixture.at(path), &ListRequest::default(), &Cancel::new()) {
            Err(Error::Path(error)) => assert_eq!(error.problem(), expected, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
}
