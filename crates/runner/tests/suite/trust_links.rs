use std::os::unix::fs::symlink;

use carrel_runner::TrustReport;

use crate::trust::{Repository, lines};

/// A workspace with a repository in it, one below `repos`, and one that is not watched.
fn world() -> Repository {
    let mut world = Repository::new();
    for path in ["api", "repos/lib", "deep/er/evil"] {
        world.git(&["init", "-q", path]);
    }
    world.program("api/.git/hooks/pre-push", "ours");
    world.write("api/.envrc", "ours");
    world.program("deep/er/evil/.git/hooks/pre-commit", "evil");
    world.git_in("deep/er/evil", &["config", "core.fsmonitor", "./evil"]);
    world.retake();
    world
}

/// Returns what git would run in a directory, through whichever path.
fn runs_in(world: &Repository, path: &str) -> Vec<String> {
    let git = world.path(path).join(".git");
    let mut found = Vec::new();
    let config = std::fs::read_to_string(git.join("config")).unwrap_or_default();
    if config.contains("evil") {
        found.push("fsmonitor".to_owned());
    }
    for hook in std::fs::read_dir(git.join("hooks")).into_iter().flatten() {
        let name = hook.unwrap().file_name().into_string().unwrap();
        let text = std::fs::read_to_string(git.join("hooks").join(&name)).unwrap_or_default();
        found.extend((text == "evil").then_some(name));
    }
    found
}

fn rename(world: &Repository, from: &str, to: &str) {
    std::fs::create_dir_all(world.path(to).parent().unwrap()).unwrap();
    std::fs::rename(world.path(from), world.path(to)).unwrap();
}

fn plant(world: &Repository, path: &str) {
    world.git_in(path, &["config", "core.fsmonitor", "./evil"]);
    world.program(&format!("{path}/.git/hooks/post-checkout"), "evil");
}

#[test]
fn a_repository_behind_a_link_at_its_path_is_compared_with_its_baseline() {
    for place in ["api", "repos/lib"] {
        for absolute in [false, true] {
            let mut world = world();
            rename(&world, place, "deep/er/x");
            plant(&world, "deep/er/x");
            let above = if place == "api" { "" } else { "../" };
            let target =
                if absolute { world.path("deep/er/x") } else { format!("{above}deep/er/x").into() };
            symlink(target, world.path(place)).unwrap();
            let settled = world.check();
            assert!(!settled.is_empty(), "{place} {absolute}");
            assert_eq!(runs_in(&world, place), [""; 0], "{place} {absolute}: {settled:?}");
            assert!(world.exists(format!("{place}/.git/HEAD")), "the repository is kept");
            assert_eq!(world.check(), TrustReport::default(), "{place} {absolute}");
        }
    }
}

#[test]
fn a_repository_whose_files_were_all_written_anew_is_still_the_same() {
    let mut world = world();
    rename(&world, "api", "deep/er/x");
    for file in ["deep/er/x/.envrc", "deep/er/x/.git/hooks/pre-push", "deep/er/x/.git/config"] {
        let text = world.read(file);
        std::fs::remove_file(world.path(file)).unwrap();
        world.write(file, text.replace("ours", "evil"));
    }
    symlink("deep/er/x", world.path("api")).unwrap();
    assert_eq!(
        world.restored(),
        [
            "changed direnv script deep/er/x/.envrc",
            "changed git hook deep/er/x/.git/hooks/pre-push"
        ]
    );
    assert_eq!((world.read("api/.envrc"), world.read("api/.git/hooks/pre-push")), ours());
}

#[test]
fn a_link_to_a_copy_with_changes_is_quarantined() {
    let mut world = world();
    std::fs::remove_dir_all(world.path("api")).unwrap();
    world.git(&["init", "-q", "deep/er/copy"]);
    world.write("deep/er/copy/.envrc", "evil");
    symlink("deep/er/copy", world.path("api")).unwrap();
    let settled = world.check();
    assert_eq!(lines(&settled), ["changed link to what would run later api"]);
    let why = settled.trust_changes[0].why_not.as_deref();
    assert_eq!(why, Some("the directory that stood there is gone"));
    assert!(!world.exists("api"));
    assert_eq!(world.check(), TrustReport::default());
}

fn ours() -> (String, String) {
    ("ours".to_owned(), "ours".to_owned())
}

#[test]
fn the_directory_of_repositories_may_not_become_a_link_to_others() {
    let mut world = world();
    rename(&world, "repos", "away");
    symlink("deep/er", world.path("repos")).unwrap();
    let found = world.restored();
    assert_eq!(found, ["changed link to what would run later repos"]);
    assert!(!world.path("repos").is_symlink() && world.exists("repos/lib/.git"));
    assert_eq!(runs_in(&world, "deep/er/evil").len(), 2, "where nobody watches nothing is touched");
}

#[test]
fn a_git_directory_moved_deeper_behind_a_link_is_moved_back() {
    for to in ["sub/.git", "sub/deep/er/.git"] {
        let mut world = Repository::new();
        let commit = world.git(&["rev-parse", "HEAD"]);
        rename(&world, ".git", to);
        symlink(to, world.path(".git")).unwrap();
        world.git(&["config", "core.fsmonitor", "./evil"]);
        world.program(&format!("{to}/hooks/post-checkout"), "evil");
        world.check();
        assert_eq!(world.check(), TrustReport::default());
        assert!(!world.path(".git").is_symlink() && !world.exists(to), "{to}");
        assert_eq!(world.git(&["rev-parse", "HEAD"]), commit, "{to}");
        assert_eq!(runs_in(&world, ""), [""; 0], "{to}");
    }
}

#[test]
fn a_new_link_to_files_that_would_run_is_quarantined_and_its_destination_is_left() {
    let mut world = world();
    symlink("deep/er/evil", world.path("link")).unwrap();
    symlink("../deep/er/evil", world.path("repos/link")).unwrap();
    symlink("repos/link", world.path("chain")).unwrap();
    assert_eq!(
        world.restored(),
        [
            "added link to what would run later chain",
            "added link to what would run later link",
            "added link to what would run later repos/link",
        ]
    );
    assert!(!world.exists("link") && !world.exists("repos/link"));
    assert_eq!(runs_in(&world, "deep/er/evil").len(), 2);
    std::fs::remove_dir(world.path("repos/lib")).unwrap_err();
    world.write("deep/er/plain/.envrc", "evil");
    symlink("deep/er/plain", world.path("link")).unwrap();
    assert_eq!(world.restored(), ["added link to what would run later link"]);
    assert_eq!(world.read("deep/er/plain/.envrc"), "evil");
}

#[test]
fn a_link_out_of_the_workspace_is_quarantined() {
    let mut world = world();
    let outside = world.outside("");
    symlink(&outside, world.path("out")).unwrap();
    symlink("../outside", world.path("climbs")).unwrap();
    symlink("/usr/../tmp", world.path("dots")).unwrap();
    symlink("/proc/self/cwd/deep/er/evil", world.path("magic")).unwrap();
    symlink(&outside, world.path("deep/hop")).unwrap();
    symlink("deep/hop", world.path("hops")).unwrap();
    rename(&world, "api", "deep/er/api");
    symlink(&outside, world.path("api")).unwrap();
    let settled = world.check();
    let kept: Vec<_> = ["out", "climbs", "dots", "magic", "hops", "api"]
        .into_iter()
        .filter(|name| world.path(name).is_symlink())
        .collect();
    assert_eq!(kept, [""; 0], "{:?}", lines(&settled));
    assert_eq!(lines(&settled)[0], "changed link out of the workspace api");
    assert_eq!(world.check(), TrustReport::default());
}

#[test]
fn a_trusted_link_that_leads_out_behind_an_absolute_link_is_held_to_the_place_it_leads_to() {
    let mut world = world();
    symlink(world.path("deep/er"), world.path("deep/absolute")).unwrap();
    symlink("/nonexistent/one", world.path("deep/er/out")).unwrap();
    symlink("deep/absolute/out", world.path("new")).unwrap();
    world.retake();
    assert_eq!(world.check(), TrustReport::default());
    std::fs::remove_file(world.path("deep/er/out")).unwrap();
    symlink("/nonexistent/two", world.path("deep/er/out")).unwrap();
    let settled = world.check();
    assert_eq!(lines(&settled), ["changed link out of the workspace new"]);
}

#[test]
fn a_trusted_link_that_leads_out_stays_while_a_directory_on_its_way_is_missing() {
    let mut world = world();
    world.write("way/file", "x");
    symlink("way/../../elsewhere", world.path("out")).unwrap();
    world.retake();
    std::fs::rename(world.path("way"), world.path("aside")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    std::fs::rename(world.path("aside"), world.path("way")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    std::fs::remove_file(world.path("out")).unwrap();
    symlink("way/../../another", world.path("out")).unwrap();
    let settled = world.check();
    assert_eq!(lines(&settled), ["changed link out of the workspace out"]);
}

#[test]
fn links_that_lead_to_nothing_that_runs_stay() {
    let mut world = world();
    world.write("deep/plain/file", "x");
    world.write("docs/AGENTS.md", "x");
    symlink("deep/plain", world.path("plain")).unwrap();
    symlink("docs/AGENTS.md", world.path("CLAUDE.md")).unwrap();
    symlink("/usr/share", world.path("share")).unwrap();
    symlink("missing/directory", world.path("dangling")).unwrap();
    symlink("api", world.path("same")).unwrap();
    symlink(".", world.path("self")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    // What a link leads to is watched as if it stood there, as soon as it is there.
    world.write("deep/plain/.envrc", "evil");
    world.write("missing/directory/.vscode/tasks.json", "evil");
    std::fs::remove_file(world.path("docs/AGENTS.md")).unwrap();
    world.write("docs/AGENTS.md/.envrc", "evil");
    let found = world.restored();
    assert_eq!(
        found,
        [
            "changed link to what would run later CLAUDE.md",
            "changed link to what would run later dangling",
            "added direnv script deep/plain/.envrc",
        ]
    );
}

#[test]
fn a_trusted_link_stays_and_what_it_leads_to_is_watched() {
    let mut world = world();
    world.write("releases/deep/1/.envrc", "ours");
    world.write("releases/deep/2/.envrc", "evil");
    symlink("releases/deep/1", world.path("current")).unwrap();
    symlink(world.outside(""), world.path("out")).unwrap();
    world.retake();
    world.write("releases/deep/1/.envrc", "evil");
    assert_eq!(world.restored(), ["changed direnv script releases/deep/1/.envrc"]);
    std::fs::remove_file(world.path("current")).unwrap();
    symlink("releases/deep/2", world.path("current")).unwrap();
    assert_eq!(world.restored(), ["changed link to what would run later current"]);
    assert_eq!(world.read("current/.envrc"), "ours");
    // The same link leads elsewhere when a directory on its way does.
    rename(&world, "releases/deep", "releases/old");
    world.write("other/1/.envrc", "evil");
    symlink("../other", world.path("releases/deep")).unwrap();
    let settled = world.check();
    assert!(!world.exists("current/.envrc"), "{:?}", lines(&settled));
}

#[test]
fn a_directory_behind_a_trusted_link_among_settings_is_watched_as_a_whole() {
    let mut world = Repository::new();
    world.write("shared/skill", "ours");
    std::fs::create_dir(world.path(".claude")).unwrap();
    symlink("../shared", world.path(".claude/skills")).unwrap();
    world.retake();
    world.write("shared/skill", "evil");
    world.write("shared/other", "evil");
    assert_eq!(
        world.restored(),
        ["added agent settings shared/other", "changed agent settings shared/skill"]
    );
    assert_eq!(world.read("shared/skill"), "ours");
}

#[test]
fn a_trusted_link_may_lead_nowhere_for_a_while_and_then_where_it_did() {
    let mut world = world();
    let outside = world.outside("");
    symlink(&outside, world.path("deep/hop")).unwrap();
    symlink("deep/hop", world.path("out")).unwrap();
    world.write("releases/deep/1/.envrc", "ours");
    symlink("releases/deep/1", world.path("current")).unwrap();
    world.retake();
    std::fs::remove_file(world.path("deep/hop")).unwrap();
    std::fs::remove_dir_all(world.path("releases")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    symlink(&outside, world.path("deep/hop")).unwrap();
    world.write("releases/deep/1/.envrc", "evil");
    assert_eq!(world.restored(), ["changed direnv script releases/deep/1/.envrc"]);
    // Outside is not the same as elsewhere outside.
    std::fs::remove_file(world.path("deep/hop")).unwrap();
    symlink("/proc/self/cwd/deep/er/evil", world.path("deep/hop")).unwrap();
    assert_eq!(world.restored(), ["changed link out of the workspace out"]);
}

#[test]
fn moving_a_repository_and_leaving_a_link_is_fine_if_nothing_else_changes() {
    let mut world = world();
    rename(&world, "api", "services/api");
    symlink("services/api", world.path("api")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
    plant(&world, "services/api");
    world.write("services/api/.envrc", "evil");
    assert_eq!(
        world.restored(),
        [
            "changed direnv script services/api/.envrc",
            "added git config core.fsmonitor services/api/.git/config",
            "added git hook services/api/.git/hooks/post-checkout",
        ]
    );
}

/// Adds a link to the settings of a new repository, which are accepted.
fn bring_link(world: &mut Repository, link: &str, target: &str) {
    world.git(&["init", "-q", "clone"]);
    std::fs::create_dir(world.path("clone/.vscode")).unwrap();
    symlink(target, world.path("clone").join(link)).unwrap();
    let settled = world.check();
    assert!(!settled.trust_changes[0].restored && world.exists(format!("clone/{link}")));
}

#[test]
fn a_link_among_accepted_settings_takes_nothing_out_of_the_watch() {
    for (link, target, is_known) in [
        (".vscode/x", "../../repos", true),
        (".vscode/x", "../../repos", false),
        (".envrc", "../repos", true),
        (".vscode/x", "../../repos/lib", true),
        (".vscode/x", "../../repos/lib", false),
        (".envrc", "../repos/lib", true),
        (".vscode/x", "../../repos/lib/.git/hooks", true),
        (".envrc", "../repos/lib/.git/hooks", true),
    ] {
        let mut world = world();
        // More than are watched of a directory of settings.
        for number in 0..520 {
            world.write(&format!("repos/{number}"), "");
            world.write(&format!("repos/lib/{number}"), "");
        }
        bring_link(&mut world, link, target);
        if !is_known {
            world.retake();
        }
        plant(&world, "repos/lib");
        world.write("repos/lib/.envrc", "evil");
        let found = world.restored();
        assert_eq!(runs_in(&world, "repos/lib"), [""; 0], "{link} {target} {is_known}");
        assert!(!world.exists("repos/lib/.envrc"), "{link} {target} {is_known}: {found:?}");
    }
}

#[test]
fn a_bare_repository_behind_two_links_is_watched() {
    let mut world = Repository::new();
    world.git(&["init", "-q", "--bare", "deep/er/bare"]);
    for number in 0..520 {
        world.write(&format!("deep/er/bare/{number}"), "");
    }
    symlink("deep/er/bare", world.path("current")).unwrap();
    world.retake();
    bring_link(&mut world, ".vscode/x", "../../deep/er/bare");
    world.program("deep/er/bare/hooks/update", "evil");
    assert_eq!(world.restored(), ["added git hook deep/er/bare/hooks/update"]);
}

#[test]
fn a_new_repository_is_not_accepted_as_the_settings_that_a_link_makes_it() {
    let mut world = Repository::new();
    bring_link(&mut world, ".vscode/x", "../../repos/lib");
    world.git(&["init", "-q", "repos"]);
    world.git(&["init", "-q", "repos/lib"]);
    plant(&world, "repos/lib");
    let settled = world.check();
    assert_eq!(runs_in(&world, "repos/lib"), [""; 0], "{settled:?}");
}

#[test]
fn links_among_accepted_settings_displace_no_trusted_reference() {
    for is_known in [true, false] {
        let mut world = world();
        world.git_in("repos/lib", &["config", "core.hooksPath", "ci"]);
        world.program("repos/lib/ci/pre-commit", "ours");
        world.write("skills/ours/a", "ours");
        std::fs::create_dir(world.path("repos/lib/.claude")).unwrap();
        symlink("../../../skills/ours", world.path("repos/lib/.claude/skills")).unwrap();
        world.retake();
        world.git(&["init", "-q", "another"]);
        std::fs::create_dir(world.path("another/.vscode")).unwrap();
        for number in 0..64 {
            let link = world.path(&format!("another/.vscode/{number}"));
            symlink(format!("../{number}"), link).unwrap();
        }
        assert!(!world.check().trust_changes[0].restored);
        if !is_known {
            world.retake();
        }
        world.program("repos/lib/ci/pre-commit", "evil");
        assert_eq!(world.restored(), ["changed git hook repos/lib/ci/pre-commit"], "{is_known}");
        if is_known {
            world.write("skills/ours/a", "evil");
            assert_eq!(world.restored(), ["changed agent settings skills/ours/a"]);
        }
    }
}

/// Moves a directory away, checks, changes it at its unwatched path, checks, and moves it back.
fn away_and_back(world: &mut Repository, place: &str, back: &str, plant: impl Fn(&Repository)) {
    rename(world, place, "deep/er/away");
    assert_eq!(world.check(), TrustReport::default(), "{place}");
    plant(world);
    assert_eq!(world.check(), TrustReport::default(), "{place}");
    rename(world, "deep/er/away", back);
}

#[test]
fn a_directory_that_was_away_is_held_to_what_was_trusted() {
    for back in ["api", "renamed", "repos/api"] {
        let mut world = world();
        away_and_back(&mut world, "api", back, |world| {
            world.write("deep/er/away/.envrc", "evil");
            world.write("deep/er/away/.vscode/tasks.json", "evil");
            world.write("deep/er/away/.mcp.json", "evil");
            std::fs::remove_file(world.path("deep/er/away/.git/hooks/pre-push")).unwrap();
        });
        assert_eq!(
            world.restored(),
            [
                format!("changed direnv script {back}/.envrc"),
                format!("removed git hook {back}/.git/hooks/pre-push"),
                format!("added MCP servers {back}/.mcp.json"),
                format!("added editor settings {back}/.vscode"),
            ]
        );
        assert_eq!(world.read(&format!("{back}/.envrc")), "ours");
    }
}

#[test]
fn a_directory_without_anything_comes_back_without_anything() {
    let mut world = world();
    world.write("src/main.c", "");
    world.check();
    away_and_back(&mut world, "src", "src", |world| {
        world.git(&["init", "-q", "deep/er/away"]);
        world.write("deep/er/away/.envrc", "evil");
    });
    assert_eq!(world.restored(), ["added direnv script src/.envrc"]);
}

#[test]
fn another_directory_of_the_same_name_is_held_to_what_was_trusted() {
    let mut world = world();
    std::fs::remove_dir_all(world.path("api")).unwrap();
    world.check();
    world.git(&["init", "-q", "api"]);
    world.write("api/.envrc", "evil");
    assert_eq!(
        world.restored(),
        ["changed direnv script api/.envrc", "removed git hook api/.git/hooks/pre-push"]
    );
}

#[test]
fn a_new_directory_with_the_number_of_an_old_one_is_new() {
    let mut world = world();
    std::fs::remove_dir_all(world.path("api")).unwrap();
    world.check();
    // Some file systems hand the number out again at once.
    world.git(&["init", "-q", "clone"]);
    world.write("clone/.envrc", "theirs");
    assert_eq!(lines(&world.check()), ["added direnv script clone/.envrc"]);
    assert_eq!(world.read("clone/.envrc"), "theirs");
    assert!(!world.exists("clone/.git/hooks/pre-push"));
}

#[test]
fn a_link_to_where_a_directory_went_is_held_to_what_was_trusted() {
    let mut world = world();
    rename(&world, "api", "deep/er/away");
    world.check();
    plant(&world, "deep/er/away");
    world.write("deep/er/away/.envrc", "evil");
    world.check();
    symlink("deep/er/away", world.path("api")).unwrap();
    let settled = world.check();
    assert_eq!(runs_in(&world, "api"), [""; 0], "{settled:?}");
    assert_eq!(world.read("api/.envrc"), "ours");
}

type Filling = fn(&Repository, &str);

fn many_settings(world: &Repository, clone: &str) {
    for number in 0..500 {
        world.write(&format!("{clone}/.claude/{number}"), "");
    }
}

fn large_settings(world: &Repository, clone: &str) {
    world.write(&format!("{clone}/.envrc"), vec![b'x'; 1 << 20]);
}

#[test]
fn with_too_much_gone_nothing_new_is_accepted() {
    let fillings: [(Filling, usize); 2] = [(many_settings, 9), (large_settings, 17)];
    for (fill, clones) in fillings {
        let mut world = world();
        rename(&world, "api", "deep/er/away");
        world.check();
        for number in 0..clones {
            let clone = format!("clone-{number}");
            world.git(&["init", "-q", &clone]);
            fill(&world, &clone);
            let settled = world.check();
            assert!(number > 0 || !settled.trust_changes[0].restored, "a clone is told and left");
            std::fs::remove_dir_all(world.path(&clone)).unwrap();
            world.check();
        }
        world.write("deep/er/away/.envrc", "evil");
        rename(&world, "deep/er/away", "api");
        world.check();
        assert!(!world.exists("api/.envrc"), "it is not known any more, so it does not stay");
    }
}
