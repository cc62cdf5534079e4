//! The home of commands: beside the work tree, kept between commands, counted, gone with its workspace.

use std::path::Path;

use crate::test_environment::{Caller, TestEnvironment};

const MIB: u64 = 1 << 20;

#[test]
fn what_programs_keep_at_home_is_there_for_the_next_command_and_not_in_the_tree() {
    TestEnvironment::each(|test_env| {
        let done = test_env.line("mkdir -p ~/.npm && echo kept > ~/.npm/cache && echo $HOME");
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        let home = done.stdout().trim_end().to_owned();
        assert!(!Path::new(&home).starts_with(test_env.workspace()), "{test_env}: {home}");
        let again = test_env.line("cat ~/.npm/cache; ls -A; getent passwd $(id -u) | cut -d: -f6");
        let stdout = again.stdout();
        assert!(stdout.starts_with("kept\n"), "{test_env}: {again:?}");
        if test_env.tier == "full" {
            assert_eq!(stdout, format!("kept\n{home}\n"), "{test_env}");
        }
        assert_eq!(std::fs::read_dir(test_env.workspace()).unwrap().count(), 0, "{test_env}");
    });
}

#[test]
fn a_home_is_open_to_the_commands_of_its_own_workspace_only() {
    TestEnvironment::each(|test_env| {
        let home = test_env.line("echo secret > ~/token; echo $HOME");
        let other = test_env.path("other");
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::chown(&other, owner(test_env), owner(test_env)).unwrap();
        let home = home.stdout().trim_end().to_owned();
        let state = test_env.path("state/carrel/homes");
        let line = format!("cat {home}/token {}/*/token; ls {}", state.display(), state.display());
        let done = test_env.line_in(&other, &line);
        assert!(!done.stdout().contains("secret"), "{test_env}: {done:?}");
        assert_ne!(done.code, 0, "{test_env}: {done:?}");
    });
}

fn owner(test_env: &TestEnvironment) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    rustix::process::geteuid()
        .is_root()
        .then(|| std::fs::metadata(test_env.workspace()).unwrap().uid())
}

#[test]
fn a_workspace_that_lies_where_homes_are_mounted_has_its_home_elsewhere() {
    carrel_skip::needs!(Root);
    let test_env = TestEnvironment::usual();
    let above = Path::new("/home/carrel");
    assert!(!above.exists(), "the test makes this directory");
    let workspace = above.join("project");
    std::fs::create_dir_all(&workspace).unwrap();
    let done = test_env.line_in(&workspace, "pwd; echo $HOME; touch ~/here");
    std::fs::remove_dir_all(above).unwrap();
    assert_eq!(done.stdout(), "/home/carrel/project\n/run/home/carrel\n", "{done:?}");
}

#[test]
fn a_home_counts_towards_the_quota_and_goes_with_its_workspace() {
    for test_env in TestEnvironment::all() {
        let workspace = test_env.managed("20M");
        let done = test_env.line_in(&workspace, "head -c 12M /dev/urandom > ~/cache && echo ok");
        assert_eq!(done.stdout(), "ok\n", "{test_env}: {done:?}");
        // It ends by itself, far beyond the quota, if nothing ends it.
        let writes = "for part in $(seq 100); do head -c 2M /dev/zero >> more; done";
        let done = test_env.line_in(&workspace, writes);
        assert_eq!(done.json["limit"], "quota", "{test_env}: {done:?}");
        std::fs::remove_file(workspace.join("more")).unwrap();

        let manage = |arguments: &[&str]| {
            let mut command = test_env.carrel();
            command.arg("workspace").args(arguments).arg("--root").arg(workspace.parent().unwrap());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{test_env}: {output:?}");
            output.stdout
        };
        if (test_env.caller, test_env.tier) != (Caller::Root, "landlock") {
            let shown = manage(&["show", "X", "--json"]);
            let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
            assert!(shown["usage_bytes"].as_u64() >= Some(12 * MIB), "{test_env}: {shown}");
        }
        manage(&["rm", "X"]);
        manage(&["create", "X"]);
        if (test_env.caller, test_env.tier) == (Caller::Root, "landlock") {
            std::os::unix::fs::chown(&workspace, Some(2_000_000_000), Some(2_000_000_000)).unwrap();
        }
        let done = test_env.line_in(&workspace, "ls -A ~");
        assert_eq!((done.code, done.stdout()), (0, ""), "{test_env}: {done:?}");
    }
}

#[test]
fn real_package_managers_leave_the_work_tree_as_it_was() {
    let test_env = TestEnvironment::usual();
    test_env.write("package.json", r#"{"name":"x","version":"1.0.0","private":true}"#);
    test_env.write("go.mod", "module example.com/x\n\ngo 1.19\n");
    test_env.write("x.go", "package x\n");
    let script = "git init -q && git add -A && git commit -qm one && npm cache verify >&2 && \
                  npm config set fund false && python3 -m venv ~/venv && ~/venv/bin/pip cache dir && \
                  go build ./... && git status --porcelain";
    let done = test_env.run(&["--timeout", "120", "-c", script]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout().lines().all(|line| line.starts_with('/')), "{done:?}");
    assert_eq!(done.stdout().lines().count(), 1, "{done:?}");
}
