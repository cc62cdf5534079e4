use std::os::unix::fs::symlink;

use carrel_domain::{Code, Coded};
use carrel_workspace::{Create, Remove, Target, UnsavedWork};

use crate::{TestRoot, identifier, no_hooks, open};

#[tokio::test]
async fn item_026_and_121_a_path_that_is_no_workspace_is_refused_at_removal_and_at_launch() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    std::fs::create_dir(fixture.path("A/sub")).unwrap();
    symlink("A", fixture.path("alias")).unwrap();
    symlink("/tmp", fixture.path("out")).unwrap();
    let root = fixture.workspaces.path();
    let cases = [
        (root.to_owned(), Code::WorkspaceEqualsRoot, "workspace_root"),
        (root.join("A/.."), Code::WorkspaceEqualsRoot, "workspace_root"),
        (root.join("."), Code::WorkspaceEqualsRoot, "workspace_root"),
        (root.join("A/sub"), Code::WorkspaceOutsideRoot, "outside_workspace_root"),
        (root.join(".carrel"), Code::WorkspaceOutsideRoot, "outside_workspace_root"),
        (root.join(".carrel/trash"), Code::WorkspaceOutsideRoot, "outside_workspace_root"),
        ("/tmp".into(), Code::WorkspaceOutsideRoot, "outside_workspace_root"),
        ("/".into(), Code::WorkspaceOutsideRoot, "outside_workspace_root"),
        (root.join("../elsewhere"), Code::WorkspaceOutsideRoot, "outside_workspace_root"),
        (root.join("alias"), Code::WorkspaceSymlinkEscape, "symlink_escape"),
        (root.join("out"), Code::WorkspaceSymlinkEscape, "symlink_escape"),
        (root.join("out/x"), Code::WorkspaceSymlinkEscape, "symlink_escape"),
    ];
    for (path, code, reason) in cases {
        let error = fixture.remove_target(Target::Path(path.clone())).await.unwrap_err();
        assert_eq!(error.code(), code, "{}", path.display());
        assert_eq!(error.detail()["workspace"], path.to_str().unwrap());
        assert_eq!(error.detail()["root"], root.to_str().unwrap());
        let error = fixture.workspaces.check_cwd(&path).unwrap_err();
        assert_eq!(error.code(), Code::InvalidWorkspaceCwd, "{}", path.display());
        assert_eq!(error.detail()["reason"], reason, "{}", path.display());
    }
    assert!(fixture.path("A/sub").is_dir() && fixture.path(".carrel/trash").is_dir());
    assert_eq!(fixture.workspaces.check_cwd(&root.join("A")).unwrap().as_str(), "A");
    fixture.remove_target(Target::Path(root.join("A"))).await.unwrap();
    assert!(!fixture.path("A").exists());
}

#[tokio::test]
async fn item_120_a_root_behind_a_link_works_in_both_spellings() {
    let fixture = TestRoot::new();
    fixture.create("A").await.unwrap();
    let link = fixture.directory.path().join("link");
    symlink("root", &link).unwrap();
    let through_link = open(&link).unwrap();
    assert_eq!(through_link.path(), fixture.workspaces.path());
    assert_eq!(through_link.check_cwd(&link.join("A")).unwrap().as_str(), "A");
    assert_eq!(through_link.check_cwd(&fixture.path("A")).unwrap().as_str(), "A");
    let made = through_link.create(Create::new(identifier("B")), &no_hooks()).await.unwrap();
    assert!(made.created && fixture.path("B").is_dir());
    let workspace = through_link.open(&identifier("B")).await.unwrap();
    assert!(workspace.launch_directory().is_ok());
    drop(workspace);
    for gone in [link.join("A"), fixture.path("B")] {
        let target = Target::Path(gone.clone());
        let remove = Remove { target, unsaved: UnsavedWork::Discard };
        through_link.remove(remove, &no_hooks()).await.unwrap();
        assert!(!gone.exists());
    }
    assert!(link.is_symlink() && fixture.workspaces.path().is_dir());
}

#[tokio::test]
async fn item_026_a_directory_swapped_after_opening_is_refused_at_launch() {
    let fixture = TestRoot::new();
    let made = fixture.create("A").await.unwrap();
    let workspace = fixture.workspaces.open(&identifier("A")).await.unwrap();
    std::fs::rename(&made.path, fixture.path("moved")).unwrap();
    let reason = |workspace: &carrel_workspace::Workspace| {
        workspace.launch_directory().unwrap_err().detail()["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(reason(&workspace), "path_unreadable");
    std::fs::create_dir(&made.path).unwrap();
    assert_eq!(reason(&workspace), "replaced");
    std::fs::remove_dir(&made.path).unwrap();
    symlink("moved", &made.path).unwrap();
    assert_eq!(reason(&workspace), "symlink_escape");
}
