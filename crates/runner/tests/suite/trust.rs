use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use carrel_config::Trust;
use carrel_fsroot::Root;
use carrel_runner::{ChangeKind, TrustBaseline, TrustReport};

/// A workspace with a repository in it, beside an `outside` that nothing may touch.
pub(crate) struct Repository {
    directory: tempfile::TempDir,
    pub(crate) root: Root,
    pub(crate) trust: TrustBaseline,
}

impl Repository {
    /// An empty workspace.
    pub(crate) fn bare_ground() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["inside", "outside"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        std::fs::write(directory.path().join("outside/canary"), "alive").unwrap();
        let root = Root::open(&directory.path().join("inside")).unwrap();
        let trust = TrustBaseline::capture(&root).unwrap();
        Self { directory, root, trust }
    }

    /// A workspace that is a repository with one commit.
    pub(crate) fn new() -> Self {
        let mut world = Self::bare_ground();
        world.git(&["init", "-q", "-b", "main"]);
        world.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        world.retake();
        world
    }

    /// Trusts what is there.
    pub(crate) fn retake(&mut self) {
        self.trust = TrustBaseline::capture(&self.root).unwrap();
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("inside").join(path)
    }

    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.directory.path().join("outside").join(path)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in("", arguments)
    }

    pub(crate) fn git_in(&self, directory: &str, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.path(directory)).env_clear().env("PATH", "/usr/bin:/bin");
        git.env("HOME", self.outside("")).env("GIT_CONFIG_NOSYSTEM", "1");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]);
        git.args(["-c", "protocol.file.allow=always"]);
        let output = git.args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub(crate) fn program(&self, path: &str, contents: &str) {
        self.write(path, contents);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(path), mode).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path("").join(path).symlink_metadata().is_ok()
    }

    pub(crate) fn check(&mut self) -> TrustReport {
        self.trust.check(&self.root, Trust::Restore).unwrap()
    }

    /// Settles, expects that all was put back, and returns what it was.
    pub(crate) fn restored(&mut self) -> Vec<String> {
        let settled = self.check();
        for change in &settled.trust_changes {
            assert!(change.restored && change.why_not.is_none(), "{change:?}");
        }
        assert_eq!(self.check(), TrustReport::default(), "putting back is itself no change");
        lines(&settled)
    }
}

/// One line for each change.
pub(crate) fn lines(settled: &TrustReport) -> Vec<String> {
    let kind = |kind| match kind {
        ChangeKind::Added => "added",
        ChangeKind::Changed => "changed",
        ChangeKind::Removed => "removed",
    };
    let changes = settled.trust_changes.iter();
    changes
        .map(|change| format!("{} {} {}", kind(change.kind), change.what, change.path.display()))
        .collect()
}

/// Time stamps of what was changed just now prove nothing, so it takes a moment.
fn wait_until_stamps_are_firm(world: &mut Repository) {
    let begun = std::time::Instant::now();
    while !world.trust.is_unchanged(&world.root) {
        assert!(begun.elapsed().as_secs() < 20, "a quick look never suffices");
        std::thread::sleep(std::time::Duration::from_millis(20));
        world.check();
    }
}

#[test]
fn a_quick_look_takes_no_change_for_none() {
    let mut world = Repository::new();
    wait_until_stamps_are_firm(&mut world);
    world.write("README", "a new name beside what is watched");
    assert!(!world.trust.is_unchanged(&world.root), "a new name");
    wait_until_stamps_are_firm(&mut world);
    world.git(&["config", "user.name", "B"]);
    assert!(!world.trust.is_unchanged(&world.root), "a setting");
    wait_until_stamps_are_firm(&mut world);
    world.program(".git/hooks/pre-commit", "#!/bin/sh\n");
    assert!(!world.trust.is_unchanged(&world.root), "a hook");
    let settled = world.check();
    assert_eq!(settled.trust_changes.len(), 1, "{settled:?}");
    wait_until_stamps_are_firm(&mut world);
    std::fs::rename(world.path(".git"), world.path("git")).unwrap();
    assert!(!world.trust.is_unchanged(&world.root), "a repository that was moved");
}

#[test]
fn a_quick_look_leaves_large_workspaces_alone() {
    let mut world = Repository::bare_ground();
    for number in 0..100 {
        std::fs::create_dir(world.path(&number.to_string())).unwrap();
    }
    world.retake();
    assert!(!world.trust.is_unchanged(&world.root));
}

#[test]
fn a_hook_that_was_added_is_quarantined() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-commit", "#!/bin/sh\nevil\n");
    let settled = world.check();
    assert_eq!(lines(&settled), ["added git hook .git/hooks/pre-commit"]);
    assert!(!world.exists(".git/hooks/pre-commit"));
    let aside = settled.trust_changes[0].put_aside.as_ref().unwrap();
    assert_eq!(world.read(aside.to_str().unwrap()), "#!/bin/sh\nevil\n");
    // The place where it went is no change, and not seen by git.
    assert_eq!(world.check(), TrustReport::default());
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_hook_that_was_changed_removed_or_made_runnable_comes_back() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", "#!/bin/sh\nours\n");
    world.write(".git/hooks/post-merge", "off");
    world.retake();
    world.write(".git/hooks/pre-push", "#!/bin/sh\nevil\n");
    assert_eq!(world.restored(), ["changed git hook .git/hooks/pre-push"]);
    std::fs::remove_file(world.path(".git/hooks/pre-push")).unwrap();
    assert_eq!(world.restored(), ["removed git hook .git/hooks/pre-push"]);
    world.program(".git/hooks/post-merge", "off");
    assert_eq!(world.restored(), ["changed git hook .git/hooks/post-merge"]);
    std::fs::remove_dir_all(world.path(".git/hooks")).unwrap();
    assert_eq!(
        world.restored(),
        ["removed git hook .git/hooks/post-merge", "removed git hook .git/hooks/pre-push"]
    );
    let mode = |path: &str| std::fs::metadata(world.path(path)).unwrap().permissions().mode();
    assert_eq!(world.read(".git/hooks/pre-push"), "#!/bin/sh\nours\n");
    assert_eq!(mode(".git/hooks/pre-push") & 0o777, 0o755);
    assert_eq!(mode(".git/hooks/post-merge") & 0o111, 0);
}

#[test]
fn ordinary_work_with_git_is_no_change() {
    let mut world = Repository::bare_ground();
    world.git(&["init", "-q", "-b", "main"]);
    assert_eq!(world.check(), TrustReport::default(), "init");
    world.git(&["config", "user.name", "Somebody"]);
    world.git(&["config", "core.fsmonitor", "false"]);
    world.git(&["remote", "add", "origin", "https://example.com/a.git"]);
    world.write("file", "x");
    world.git(&["add", "file"]);
    world.git(&["commit", "-q", "-m", "one"]);
    assert_eq!(world.check(), TrustReport::default(), "commit");
    world.git(&["checkout", "-q", "-b", "other"]);
    world.git(&["branch", "-q", "--set-upstream-to=main"]);
    world.git(&["clone", "-q", ".", "copy"]);
    world.git(&["clone", "-q", "--bare", ".", "repos/bare"]);
    world.git(&["worktree", "add", "-q", "tree", "main"]);
    assert_eq!(world.check(), TrustReport::default(), "clone and worktree");
    world.git(&["submodule", "--quiet", "add", "./copy", "sub/module"]);
    assert_eq!(world.check(), TrustReport::default(), "submodule");
    world.git(&["submodule", "--quiet", "add", "./copy", "module"]);
    world.git(&["commit", "-q", "-m", "two"]);
    world.git(&["gc", "-q"]);
    assert_eq!(world.check(), TrustReport::default(), "submodule of a place, gc");
    std::fs::remove_dir_all(world.path("copy")).unwrap();
    std::fs::remove_dir_all(world.path(".git")).unwrap();
    assert_eq!(world.check(), TrustReport::default(), "removed");
}

#[test]
fn a_configured_command_is_taken_out_and_the_rest_stays() {
    let mut world = Repository::new();
    let before = world.read(".git/config");
    world.git(&["config", "core.hooksPath", "evil"]);
    assert_eq!(world.restored(), ["added git config core.hooksPath .git/config"]);
    assert_eq!(world.read(".git/config"), before, "byte for byte");
    world.git(&["config", "alias.st", "!evil"]);
    world.git(&["config", "user.name", "Somebody"]);
    world.git(&["config", "filter.x.clean", "evil"]);
    assert_eq!(
        world.restored(),
        ["added git config alias.st .git/config", "added git config filter.x.clean .git/config"]
    );
    assert_eq!(world.git(&["config", "--local", "--get", "user.name"]), "Somebody\n");
    let config = world.read(".git/config");
    assert!(config.starts_with(&before) && !config.contains("evil"), "{config}");
}

#[test]
fn a_trusted_command_is_kept_as_the_operator_wrote_it() {
    let mut world = Repository::new();
    world.git(&["config", "core.pager", "less -R"]);
    world.git(&["config", "core.editor", "vim"]);
    world.retake();
    let before = world.read(".git/config");
    world.git(&["config", "core.pager", "evil"]);
    world.git(&["config", "--unset", "core.editor"]);
    assert_eq!(
        world.restored(),
        ["removed git config core.editor .git/config", "changed git config core.pager .git/config"]
    );
    assert_eq!(world.read(".git/config"), before);
    std::fs::remove_file(world.path(".git/config")).unwrap();
    assert_eq!(world.restored().len(), 2);
    assert_eq!(world.read(".git/config"), before);
}

#[test]
fn an_include_is_a_change_and_a_trusted_one_is_watched() {
    let mut world = Repository::new();
    world.write("team.inc", "[user]\n\tname = T\n");
    world.git(&["config", "include.path", "../team.inc"]);
    assert_eq!(world.restored(), ["added git config include.path .git/config"]);
    world.git(&["config", "include.path", "../team.inc"]);
    world.retake();
    world.write("team.inc", "[user]\n\tname = U\n[core]\n\thooksPath = evil\n");
    assert_eq!(world.restored(), ["added git config core.hooksPath team.inc"]);
    assert_eq!(world.read("team.inc"), "[user]\n\tname = U\n[core]\n");
}

#[test]
fn a_trusted_hooks_directory_elsewhere_is_watched() {
    let mut world = Repository::new();
    world.git(&["config", "core.hooksPath", ".husky/_"]);
    world.program(".husky/_/pre-commit", "ours");
    world.retake();
    world.program(".husky/_/pre-commit", "evil");
    world.program(".husky/_/pre-push", "evil");
    assert_eq!(
        world.restored(),
        ["changed git hook .husky/_/pre-commit", "added git hook .husky/_/pre-push"]
    );
    assert_eq!(world.read(".husky/_/pre-commit"), "ours");
}

#[test]
fn the_hooks_of_submodules_and_children_count() {
    let mut world = Repository::new();
    world.git(&["clone", "-q", ".", "copy"]);
    world.git(&["submodule", "--quiet", "add", "./copy", "sub"]);
    world.retake();
    for path in [".git/modules/sub/hooks/post-checkout", "copy/.git/hooks/pre-commit"] {
        world.program(path, "evil");
    }
    world.git_in("sub", &["config", "core.sshCommand", "evil"]);
    world.git(&["init", "-q", "--bare", "repos/new"]);
    world.program("repos/new/hooks/update", "evil");
    world.git_in("copy", &["config", "diff.external", "evil"]);
    let mut found = world.restored();
    found.sort();
    assert_eq!(
        found,
        [
            "added git config core.sshCommand .git/modules/sub/config",
            "added git config diff.external copy/.git/config",
            "added git hook .git/modules/sub/hooks/post-checkout",
            "added git hook copy/.git/hooks/pre-commit",
            "added git hook repos/new/hooks/update",
        ]
    );
}

#[test]
fn trust_goes_along_with_a_directory_that_is_renamed() {
    let mut world = Repository::new();
    world.git(&["init", "-q", "child"]);
    world.program("child/.git/hooks/pre-push", "ours");
    world.write("child/.vscode/tasks.json", "ours");
    world.program(".git/hooks/pre-push", "ours");
    world.retake();
    std::fs::rename(world.path("child"), world.path("renamed")).unwrap();
    std::fs::rename(world.path(".git"), world.path("kept")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    std::fs::rename(world.path("kept"), world.path(".git")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    world.program("renamed/.git/hooks/pre-push", "evil");
    world.program(".git/hooks/pre-push", "evil");
    assert_eq!(
        world.restored(),
        ["changed git hook .git/hooks/pre-push", "changed git hook renamed/.git/hooks/pre-push"]
    );
    assert_eq!(world.read("renamed/.git/hooks/pre-push"), "ours");
}

#[test]
fn settings_and_start_up_files_count() {
    let mut world = Repository::new();
    world.write(".vscode/tasks.json", "ours");
    world.write(".claude/settings.json", "ours");
    world.retake();
    world.write(".vscode/tasks.json", "evil");
    world.write(".bashrc", "evil");
    world.write(".mcp.json", "evil");
    world.write(".idea/runConfigurations/x.xml", "evil");
    world.write(".claude/projects/session.jsonl", "state");
    world.write(".config/fish/config.fish", "evil");
    std::fs::remove_file(world.path(".claude/settings.json")).unwrap();
    assert_eq!(
        world.restored(),
        [
            "added shell start-up file .bashrc",
            "removed agent settings .claude/settings.json",
            "added shell start-up file .config/fish/config.fish",
            "added editor settings .idea",
            "added MCP servers .mcp.json",
            "changed editor settings .vscode/tasks.json",
        ]
    );
    assert_eq!(world.read(".vscode/tasks.json"), "ours");
    assert_eq!(world.read(".claude/settings.json"), "ours");
    assert_eq!(world.read(".claude/projects/session.jsonl"), "state");
}

#[test]
fn a_file_added_deep_in_a_tree_that_has_settled_is_quarantined_alone() {
    let mut world = Repository::new();
    world.write(".claude/commands/ours", "ours");
    world.retake();
    wait_until_stamps_are_firm(&mut world);
    world.write(".claude/commands/new", "evil");
    assert_eq!(world.restored(), ["added agent settings .claude/commands/new"]);
    assert_eq!(world.read(".claude/commands/ours"), "ours");
}

#[test]
fn settings_in_a_new_clone_or_work_tree_are_told_and_left() {
    let mut world = Repository::new();
    world.git(&["init", "-q", "clone"]);
    world.write("clone/.vscode/settings.json", "theirs");
    let settled = world.check();
    assert_eq!(lines(&settled), ["added editor settings clone/.vscode"]);
    assert!(!settled.trust_changes[0].restored);
    assert!(world.exists("clone/.vscode/settings.json"));
    assert_eq!(world.check(), TrustReport::default(), "told once");
    world.write("clone/.vscode/settings.json", "evil");
    assert_eq!(world.restored(), ["changed editor settings clone/.vscode/settings.json"]);
    world.git(&["worktree", "add", "-q", "tree"]);
    world.write("tree/.envrc", "theirs");
    assert!(!world.check().trust_changes[0].restored);
    assert_eq!(world.read("tree/.envrc"), "theirs");
}

#[test]
fn settings_in_any_other_new_directory_are_quarantined() {
    let mut world = Repository::new();
    world.write("made/.mcp.json", "evil");
    world.write("made/source", "ours");
    world.write("pointer/.git", "gitdir: ../evil\n");
    world.write("pointer/.envrc", "evil");
    assert_eq!(
        world.restored(),
        [
            "added MCP servers made/.mcp.json",
            "added direnv script pointer/.envrc",
            "added git directory pointer/.git",
        ]
    );
    assert_eq!(world.read("made/source"), "ours");
}

#[test]
fn a_report_changes_nothing_and_is_given_once() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-commit", "new");
    world.git(&["config", "core.hooksPath", "ci/hooks"]);
    let settled = world.trust.check(&world.root, Trust::Report).unwrap();
    assert_eq!(
        lines(&settled),
        ["added git config core.hooksPath .git/config", "added git hook .git/hooks/pre-commit"]
    );
    assert!(world.exists(".git/hooks/pre-commit") && !world.exists(".carrel-aside"));
    assert_eq!(world.check(), TrustReport::default());
    // What it leads to is watched from then on.
    world.program("ci/hooks/pre-commit", "evil");
    assert_eq!(world.restored(), ["added git hook ci/hooks/pre-commit"]);
    let json = serde_json::to_value(&settled.trust_changes[1]).unwrap();
    let expected = serde_json::json!({
        "path": ".git/hooks/pre-commit",
        "kind": "added",
        "what": "git hook",
        "restored": false,
        "why_not": "changes are only reported here",
    });
    assert_eq!(json, expected);
}

#[test]
fn a_directory_of_many_entries_hides_nothing() {
    let mut world = Repository::new();
    std::fs::create_dir(world.path("place")).unwrap();
    for number in 0..2000 {
        world.write(&format!("place/{number}"), "");
    }
    world.retake();
    world.write("place/.envrc", "evil");
    assert_eq!(world.restored().len(), 1);
    assert!(!world.exists(world.path("place/.envrc")));
}
