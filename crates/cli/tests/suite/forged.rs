//! What a hostile workspace leaves for the operator's next command.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::test_environment::TestEnvironment;

/// Makes a directory look like a root of workspaces, whose temporary files are somewhere else.
#[test]
fn a_workspace_that_poses_as_a_root_removes_nothing_elsewhere() {
    for test_env in TestEnvironment::all() {
        let victim = test_env.path("victim");
        for name in ["0123456789abcdef", "precious"] {
            std::fs::create_dir_all(victim.join(name)).unwrap();
        }
        let (real, own) = (test_env.managed("50M"), test_env.workspace().join(".carrel"));
        let records = real.parent().unwrap().join(".carrel/records");
        std::fs::create_dir_all(own.join("records")).unwrap();
        std::fs::copy(records.join("X.json"), own.join("records/X.json")).unwrap();
        symlink(&victim, own.join("scratch")).unwrap();
        std::fs::create_dir_all(test_env.workspace().join("X")).unwrap();
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
        let sub = test_env.workspace().join("X");
        for path in [&own.join("records/X.json"), &sub] {
            test_env.own(path);
        }
        for path in [&victim.join("0123456789abcdef"), &victim.join("precious"), &victim] {
            test_env.give_to_caller(path);
        }
        let output = test_env.exec_in(&sub, &["--", "true"]).output().unwrap();
        assert_ne!(output.status.code(), Some(2), "{test_env}: {output:?}");
        for name in ["0123456789abcdef", "precious"] {
            assert!(victim.join(name).is_dir(), "{test_env}: {name} is gone: {output:?}");
        }
    }
}

#[test]
fn records_that_a_command_makes_are_put_aside() {
    for test_env in TestEnvironment::all() {
        let done = test_env.line("mkdir -p .carrel/records; echo '{}' > .carrel/records/a.json");
        let changes = done.json["trust_changes"].as_array().unwrap().clone();
        assert!(!changes.is_empty(), "{test_env}: {done:?}");
        assert!(
            !test_env.workspace().join(".carrel/records/a.json").exists(),
            "{test_env}: {done:?}"
        );
    }
}

#[test]
fn what_runs_later_is_put_back_even_when_the_command_shuts_its_workspace() {
    for test_env in TestEnvironment::all() {
        let workspace = test_env.managed("50M");
        let line = "echo evil > .bashrc; chmod 0 .; sleep 1";
        let output = test_env.exec_in(&workspace, &["--json", "-c", line]).output().unwrap();
        assert_ne!(output.status.code(), Some(2), "{test_env}: {output:?}");
        assert!(!workspace.join(".bashrc").exists(), "{test_env}: {output:?}");
        let aside = workspace.join(".carrel-aside");
        assert!(aside.is_dir(), "{test_env}: the command did not get to write: {output:?}");
    }
}
