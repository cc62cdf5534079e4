use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use carrel_runner::{MAX_CHANGES, TrustBaseline, TrustReport};

use crate::trust::{Repository, lines};

/// Checks that what lies outside is as it was.
fn canary(world: &Repository) {
    assert_eq!(std::fs::read_to_string(world.outside("canary")).unwrap(), "alive");
    assert_eq!(std::fs::read_dir(world.outside("")).unwrap().count(), 1);
}

#[test]
fn links_are_quarantined_and_never_followed() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", "ours");
    world.write(".vscode/tasks.json", "ours");
    world.retake();
    let outside = world.outside("canary");
    std::fs::remove_file(world.path(".git/hooks/pre-push")).unwrap();
    symlink(&outside, world.path(".git/hooks/pre-push")).unwrap();
    symlink(&outside, world.path(".bashrc")).unwrap();
    symlink("../../evil", world.path(".git/hooks/pre-commit")).unwrap();
    std::fs::remove_dir_all(world.path(".vscode")).unwrap();
    symlink(world.outside(""), world.path(".vscode")).unwrap();
    let config = world.read(".git/config");
    std::fs::remove_file(world.path(".git/config")).unwrap();
    symlink(&outside, world.path(".git/config")).unwrap();
    assert_eq!(
        world.restored(),
        [
            "added shell start-up file .bashrc",
            "changed git config .git/config",
            "added git hook .git/hooks/pre-commit",
            "changed git hook .git/hooks/pre-push",
            "changed editor settings .vscode",
        ]
    );
    assert_eq!(world.read(".git/config"), config);
    assert_eq!(world.read(".git/hooks/pre-push"), "ours");
    assert_eq!(world.read(".vscode/tasks.json"), "ours");
    assert!(!world.exists(".bashrc"));
    canary(&world);
}

#[test]
fn a_hooks_directory_that_became_a_link_is_a_directory_again() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", "ours");
    world.retake();
    world.program("evil/pre-commit", "evil");
    std::fs::rename(world.path(".git/hooks"), world.path(".git/old")).unwrap();
    symlink("../evil", world.path(".git/hooks")).unwrap();
    assert_eq!(world.restored(), ["changed git hook .git/hooks"]);
    assert_eq!(world.read(".git/hooks/pre-push"), "ours");
    assert!(!world.exists(".git/hooks/pre-commit") && world.exists("evil/pre-commit"));
}

#[test]
fn another_repository_at_the_same_path_is_compared_with_the_same_baseline() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", "ours");
    world.git(&["config", "core.pager", "less"]);
    world.retake();
    std::fs::rename(world.path(".git"), world.path("away")).unwrap();
    world.git(&["init", "-q"]);
    world.git(&["config", "core.fsmonitor", "./evil"]);
    world.program(".git/hooks/pre-commit", "evil");
    assert_eq!(
        world.restored(),
        [
            "removed git config core.pager .git/config",
            "added git config core.fsmonitor .git/config",
            "added git hook .git/hooks/pre-commit",
            "removed git hook .git/hooks/pre-push",
        ]
    );
    assert_eq!(world.read("away/hooks/pre-push"), "ours", "it is trusted where it went, too");
    assert_eq!(world.git(&["config", "core.pager"]), "less\n");
    assert_eq!(world.read(".git/hooks/pre-push"), "ours");
}

#[test]
fn a_git_directory_behind_a_link_or_file_is_moved_back() {
    for hostile in ["link", "file"] {
        let mut world = Repository::new();
        let commit = world.git(&["rev-parse", "HEAD"]);
        world.program(".git/hooks/pre-push", "ours");
        world.retake();
        std::fs::rename(world.path(".git"), world.path(".a")).unwrap();
        world.git(&["init", "-q", "evil/repository"]);
        world.program("evil/repository/.git/hooks/pre-commit", "evil");
        if hostile == "link" {
            symlink("evil/repository/.git", world.path(".git")).unwrap();
        } else {
            world.write(".git", "gitdir: evil/repository/.git\n");
        }
        assert_eq!(world.restored(), ["changed git directory .git"], "{hostile}");
        assert_eq!(world.git(&["rev-parse", "HEAD"]), commit, "{hostile}");
        assert_eq!(world.read(".git/hooks/pre-push"), "ours", "{hostile}");
        assert!(!world.exists(".a"), "{hostile}");
    }
}

#[test]
fn a_pointer_to_elsewhere_is_a_change() {
    let mut world = Repository::new();
    world.git(&["worktree", "add", "-q", "tree"]);
    world.retake();
    let pointer = world.read("tree/.git");
    world.write("tree/.git", "gitdir: ../evil\n");
    world.write("other/.git", "gitdir: ../evil\n");
    world.write(".git/commondir", "../evil\n");
    world.write(".git/worktrees/tree/commondir", "../../../evil\n");
    assert_eq!(
        world.restored(),
        [
            "added git common directory .git/commondir",
            "changed git common directory .git/worktrees/tree/commondir",
            "added git directory other/.git",
            "changed git directory tree/.git",
        ]
    );
    assert_eq!(world.read("tree/.git"), pointer);
    assert_eq!(world.git_in("tree", &["status", "--porcelain"]), "");
}

#[test]
fn any_directory_that_looks_like_a_repository_counts() {
    let mut world = Repository::new();
    world.write("src/main.c", "");
    world.retake();
    // Git obeys this configuration when it is run in `src`.
    world.write("src/HEAD", "ref: refs/heads/main\n");
    world.write("src/objects/x", "");
    world.write("src/refs/x", "");
    world.write("src/config", "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = ./evil\n");
    world.program("src/hooks/post-checkout", "evil");
    assert_eq!(
        world.restored(),
        ["added git config core.fsmonitor src/config", "added git hook src/hooks/post-checkout",]
    );
}

#[test]
fn the_directory_of_repositories_counts_as_one_too() {
    let mut world = Repository::new();
    world.git(&["init", "-q", "repos/lib"]);
    world.retake();
    world.git(&["init", "-q", "--bare", "repos"]);
    world.program("repos/hooks/post-checkout", "evil");
    world.git_in("repos", &["config", "core.fsmonitor", "./evil"]);
    // Names of a git directory are those of project directories all the same.
    world.write("repos/modules/.envrc", "evil");
    world.program("repos/lib/.git/hooks/pre-commit", "evil");
    assert_eq!(
        world.restored(),
        [
            "added git config core.fsmonitor repos/config",
            "added git hook repos/hooks/post-checkout",
            "added git hook repos/lib/.git/hooks/pre-commit",
            "added direnv script repos/modules/.envrc",
        ]
    );
    let denied = |path: &str| world.trust.denies_write(&world.root, path.as_ref(), None);
    assert_eq!(denied("repos/hooks/pre-commit").as_deref(), Some("git hook"));
    assert_eq!(denied("repos/lib/.envrc").as_deref(), Some("direnv script"));
    assert_eq!(denied("repos/lib/hooks/pre-commit"), None);
}

#[test]
fn directories_of_settings_are_project_directories_as_well() {
    let mut world = Repository::new();
    world.write(".config/tool/settings", "");
    world.retake();
    world.git(&["init", "-q", ".config"]);
    world.git_in(".config", &["config", "core.fsmonitor", "./evil"]);
    world.write(".config/.envrc", "evil");
    world.git(&["init", "-q", "--bare", ".ssh"]);
    world.program(".ssh/hooks/post-checkout", "evil");
    assert_eq!(
        world.restored(),
        [
            "added direnv script .config/.envrc",
            "added git config core.fsmonitor .config/.git/config",
            "added ssh settings .ssh/config",
            "added git hook .ssh/hooks/post-checkout",
        ]
    );
    world.program(".config/.git/hooks/pre-commit", "evil");
    assert_eq!(world.restored(), ["added git hook .config/.git/hooks/pre-commit"]);
}

#[test]
fn what_is_too_large_or_cannot_be_judged_does_not_stay() {
    let mut world = Repository::new();
    let config = world.read(".git/config");
    let padding = "# ".repeat(1 << 20);
    world.write(".git/config", format!("{config}{padding}\n[core]\n\tpager = evil\n"));
    assert_eq!(world.restored(), ["changed git config .git/config"]);
    assert_eq!(world.read(".git/config"), config);
    world.write(".git/config", format!("{config}[core \"hookspath\0\"]\n\tx = evil\n"));
    assert_eq!(world.restored(), ["changed git config .git/config"]);
    world.write(".git/hooks/pre-commit", vec![b'x'; 3 << 20]);
    assert_eq!(world.restored(), ["added git hook .git/hooks/pre-commit"]);
    for number in 0..1000 {
        world.write(&format!(".git/hooks/hook-{number}"), "x");
    }
    assert_eq!(world.restored(), ["changed git hook .git/hooks"]);
    assert_eq!(world.read(".git/config"), config);
}

#[test]
fn many_changes_are_undone_and_told_in_part() {
    let mut world = Repository::new();
    for number in 0..200 {
        world.write(&format!(".git/hooks/hook-{number}"), "x");
    }
    let settled = world.check();
    assert_eq!((settled.trust_changes.len(), settled.omitted), (MAX_CHANGES, 200 - MAX_CHANGES));
    assert_eq!(world.check(), TrustReport::default());
    assert!(!world.exists(".git/hooks/hook-199"));
    let kept = std::fs::read_dir(world.path(".carrel-aside")).unwrap().count();
    assert!(kept <= 65, "{kept} things are kept");
}

#[test]
fn special_files_are_quarantined() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let mut world = Repository::new();
    world.write(".envrc", "ours");
    world.retake();
    let fifo = |path: &str| {
        mknodat(CWD, world.path(path), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    };
    fifo(".git/hooks/pre-commit");
    fifo(".profile");
    std::fs::create_dir(world.path(".zshrc")).unwrap();
    std::fs::remove_file(world.path(".envrc")).unwrap();
    std::fs::create_dir_all(world.path(".envrc/full/of")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"h\xff");
    std::fs::write(world.path(".git/hooks").join(name), "x").unwrap();
    assert_eq!(
        world.restored(),
        [
            "changed direnv script .envrc",
            "added git hook .git/hooks/h\u{fffd}",
            "added git hook .git/hooks/pre-commit",
            "added shell start-up file .profile",
            "added shell start-up file .zshrc",
        ]
    );
    assert_eq!(world.read(".envrc"), "ours");
    std::fs::create_dir(world.path("directory")).unwrap();
    let moved = world.trust.denies_move(&world.root, "directory".as_ref(), ".zshrc".as_ref());
    assert_eq!(moved.unwrap().as_deref(), Some("shell start-up file"));
}

#[test]
fn a_mode_that_forbids_reading_hides_nothing() {
    use std::os::unix::fs::PermissionsExt;
    for mode in [0o000, 0o111, 0o500] {
        let mut world = Repository::new();
        world.program(".git/hooks/pre-push", "ours");
        world.retake();
        world.program(".git/hooks/pre-commit", "evil");
        let closed = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(world.path(".git/hooks"), closed).unwrap();
        assert_eq!(world.restored().len(), 1, "{mode:o}");
        assert!(!world.exists(".git/hooks/pre-commit"), "{mode:o}");
        assert_eq!(world.read(".git/hooks/pre-push"), "ours", "{mode:o}");
    }
}

#[test]
fn a_hard_link_does_not_carry_a_write_elsewhere() {
    let mut world = Repository::new();
    world.write("precious", "[core]\n\tpager = x\n");
    std::fs::remove_file(world.path(".git/config")).unwrap();
    std::fs::hard_link(world.path("precious"), world.path(".git/config")).unwrap();
    assert_eq!(world.restored(), ["added git config core.pager .git/config"]);
    assert_eq!(world.read("precious"), "[core]\n\tpager = x\n");
}

#[test]
fn a_change_with_all_times_and_sizes_as_before_is_found() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", "ours");
    let old = std::fs::metadata(world.path(".git/hooks/pre-push")).unwrap().modified().unwrap();
    // At once: within one tick of the clock nothing but the contents differs.
    for round in 0..50 {
        world.retake();
        world.write(".git/hooks/pre-push", "evil");
        let file = std::fs::File::options().write(true).open(world.path(".git/hooks/pre-push"));
        file.unwrap().set_modified(old).unwrap();
        assert_eq!(lines(&world.check()), ["changed git hook .git/hooks/pre-push"], "{round}");
    }
}

#[test]
fn the_quarantine_directory_may_be_hostile_too() {
    let mut world = Repository::new();
    symlink(world.outside(""), world.path(".carrel-aside")).unwrap();
    world.write(".bashrc", "evil");
    assert_eq!(
        world.restored(),
        ["added shell start-up file .bashrc", "added link out of the workspace .carrel-aside"]
    );
    canary(&world);
    assert_eq!(std::fs::read_dir(world.path(".carrel-aside")).unwrap().count(), 2);
    for number in 0..2000 {
        world.write(&format!(".carrel-aside/{number}"), "");
    }
    world.write(".bashrc", "evil");
    let settled = world.check();
    assert!(settled.trust_changes[0].restored && !world.exists(".bashrc"));
    assert_eq!(settled.trust_changes[0].put_aside, None);
}

#[test]
fn what_cannot_be_put_back_is_told_again() {
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", &"x".repeat(3 << 20));
    world.retake();
    world.program(".git/hooks/pre-push", &"y".repeat(3 << 20));
    let settled = world.check();
    assert_eq!(lines(&settled), ["changed git hook .git/hooks/pre-push"]);
    let change = &settled.trust_changes[0];
    assert!(!change.restored && change.why_not.as_ref().unwrap().contains("too large"));
    assert!(!world.exists(".git/hooks/pre-push"), "what replaced it does not run");
    assert_eq!(lines(&world.check()), ["removed git hook .git/hooks/pre-push"]);
    world.retake();
    assert_eq!(world.check(), TrustReport::default());
}

#[test]
fn submodules_nested_hundreds_of_times_are_reported_as_unchecked() {
    let mut world = Repository::new();
    let nested = |times| format!(".git{}", "/modules/a".repeat(times));
    world.program(&format!("{}/hooks/pre-commit", nested(300)), "evil");
    world.program(&format!("{}/hooks/pre-commit", nested(20)), "evil");
    let added = format!("added git hook {}/hooks/pre-commit", nested(20));
    let report = world.check();
    assert_eq!(lines(&report), [added]);
    assert_eq!(report.unchecked, Some(nested(32).into()));
    let report = world.check();
    assert_eq!(lines(&report), [""; 0]);
    assert_eq!(report.unchecked, Some(nested(32).into()));
    std::fs::remove_dir_all(world.path(".git/modules")).unwrap();
    assert_eq!(world.check(), TrustReport::default());
}

#[test]
fn a_directory_that_is_made_to_look_like_a_repository_hides_no_submodule() {
    for parts in [&["HEAD"][..], &["HEAD", "objects/x", "refs/x"]] {
        for is_known in [true, false] {
            let mut world = Repository::new();
            world.git(&["clone", "-q", ".", "copy"]);
            world.git(&["submodule", "--quiet", "add", "./copy", "libs/a"]);
            world.retake();
            for part in parts {
                world.write(&format!(".git/modules/libs/{part}"), "");
            }
            if !is_known {
                world.retake();
            }
            let hook = ".git/modules/libs/a/hooks/post-checkout";
            world.program(hook, "evil");
            let found = world.restored();
            assert_eq!(found, [format!("added git hook {hook}")], "{parts:?} {is_known}");
        }
    }
}

#[test]
fn a_path_of_hundreds_of_components_is_judged() {
    let world = Repository::new();
    let root = carrel_fsroot::Root::open(&world.path("")).unwrap();
    let trust = TrustBaseline::capture(&root).unwrap();
    for (path, denied) in [
        (format!(".git/modules{}/hooks/pre-commit", "/a".repeat(300)), Some("git hook")),
        (format!(".git{}/config.worktree", "/worktrees/a".repeat(300)), Some("git config")),
        (format!(".claude{}", "/a".repeat(300)), Some("agent settings")),
        (format!("src{}", "/a".repeat(300)), None),
    ] {
        let found = trust.denies_write(&root, path.as_ref(), None);
        assert_eq!(found.as_deref(), denied, "{path}");
    }
}

#[test]
fn many_entries_do_not_displace_known_ones_and_are_reported_until_they_are_gone() {
    let mut world = Repository::new();
    world.git(&["init", "-q", "zz"]);
    world.retake();
    let entry = |number: usize| world.path(&format!("a{number}"));
    for number in 0..=64 * 1024 {
        std::fs::File::create(entry(number)).unwrap();
    }
    world.program("zz/.git/hooks/pre-commit", "evil");
    world.git(&["init", "-q", "yy"]);
    world.write("yy/.envrc", "evil");
    let settled = world.check();
    assert_eq!(
        lines(&settled),
        ["changed more than is watched .", "added git hook zz/.git/hooks/pre-commit"]
    );
    assert_eq!(settled.unchecked.as_deref(), Some(std::path::Path::new("")));
    let settled = world.check();
    assert!(settled.is_empty() && settled.unchecked.is_some(), "{settled:?}");
    for number in 0..=64 * 1024 {
        std::fs::remove_file(world.path(&format!("a{number}"))).unwrap();
    }
    assert_eq!(world.restored(), ["added direnv script yy/.envrc"], "it is no newcomer");
}

/// Run alone under `strace` by the test below.
#[test]
fn looks_for_the_counter_below() {
    let Ok(count) = std::env::var("CARREL_TRUST_LOOKS") else { return };
    let directory = std::env::var("CARREL_TRUST_DIRECTORY").unwrap();
    let root = carrel_fsroot::Root::open(directory.as_ref()).unwrap();
    let mut trust = TrustBaseline::capture(&root).unwrap();
    for _ in 0..count.parse().unwrap() {
        let settled = trust.check(&root, carrel_config::Trust::Restore).unwrap();
        assert_eq!(settled, TrustReport::default());
    }
}

#[test]
fn a_look_at_an_unchanged_workspace_takes_few_system_calls() {
    let world = Repository::new();
    for directory in ["src", "docs", "tests", "target", ".github"] {
        std::fs::create_dir(world.path(directory)).unwrap();
    }
    world.write(".vscode/tasks.json", "{}");
    if std::process::Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_err() {
        return carrel_skip::unavailable("strace");
    }
    // Time stamps are believed only when they are old enough.
    std::thread::sleep(std::time::Duration::from_millis(2200));
    let calls = |looks: usize| {
        let trace = world.outside(&format!("trace-{looks}"));
        let mut strace = std::process::Command::new("strace");
        strace.arg("-f").arg("-o").arg(&trace).arg(std::env::current_exe().unwrap());
        strace.args(["--exact", "trust_hostile::looks_for_the_counter_below"]);
        strace.env("CARREL_TRUST_LOOKS", looks.to_string());
        strace.env("CARREL_TRUST_DIRECTORY", world.path(""));
        assert!(strace.output().unwrap().status.success());
        std::fs::read_to_string(trace).unwrap().lines().count()
    };
    let each = (calls(101) - calls(1)) / 100;
    // Twelve more where the file system's stamps are not believed.
    assert!(each <= 40, "{each} system calls");
}

#[test]
fn a_process_that_keeps_swapping_leads_nothing_outside() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut world = Repository::new();
    world.program(".git/hooks/pre-push", "ours");
    world.write(".vscode/tasks.json", "ours");
    world.retake();
    let stop = AtomicBool::new(false);
    let (inside, outside) = (world.path(""), world.outside(""));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                for name in [".git/hooks", ".vscode", ".git/config", ".carrel-aside", ".bashrc"] {
                    // Each may fail: the other side is moving the same names.
                    let (path, away) = (inside.join(name), inside.join(format!("away-{round}")));
                    let _ = std::fs::rename(&path, &away);
                    let _ = symlink(outside.join("canary").parent().unwrap(), &path);
                    let _ = std::fs::remove_file(&path);
                    let _ = std::fs::rename(&away, &path);
                    let _ = std::fs::write(inside.join(".git/hooks/pre-commit"), "evil");
                }
            }
        });
        for _ in 0..300 {
            world.trust.check(&world.root, carrel_config::Trust::Restore).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read_to_string(world.outside("canary")).unwrap(), "alive");
    // With the swapping over, trust is what it was.
    world.check();
    world.check();
    assert_eq!(world.check(), TrustReport::default());
    assert_eq!(world.read(".git/hooks/pre-push"), "ours");
    assert_eq!(world.read(".vscode/tasks.json"), "ours");
    assert!(!world.exists(".git/hooks/pre-commit"));
}
