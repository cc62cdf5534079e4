//! Arguments of programs that start without a shell.

use std::path::Path;

use carrel_domain::{Code, Coded};
use carrel_shell::arguments::{Escape, WorkingDirectory, check};

use crate::WORKSPACE;

fn place(directory: &str) -> WorkingDirectory<'_> {
    WorkingDirectory { workspace: Path::new(WORKSPACE), directory: Path::new(directory) }
}

#[test]
fn arguments_that_leave_the_workspace_are_violations() {
    for (argv, index) in [
        (vec!["cat", "/etc/hosts"], 1),
        (vec!["cat", "../../etc/passwd"], 1),
        (vec!["cat", "~/x"], 1),
        (vec!["cat", "~root"], 1),
        (vec!["/bin/cat", "README.md"], 0),
        (vec!["~/bin/evil"], 0),
        (vec!["../evil"], 0),
        (vec!["env", "OUT=/etc/passwd"], 1),
        (vec!["env", "OUT=~/s"], 1),
        (vec!["cc", "x.c", "-I/usr/include"], 2),
        (vec!["make", "-C/etc"], 1),
        (vec!["cc", "-o../x"], 1),
        (vec!["cc", "-Wl,-rpath,/usr/lib"], 1),
        (vec!["x", "--file=/etc/passwd"], 1),
        (vec!["x", "--out=../x"], 1),
        (vec!["x", "x=.."], 1),
        (vec!["x", "--a=b=/etc/passwd"], 1),
        (vec!["x", "@/etc/passwd"], 1),
        (vec!["curl", "file:///etc/passwd"], 1),
        (vec!["curl", "--url=FILE://localhost/etc/passwd"], 1),
        (vec!["ls", "../*"], 1),
        (vec!["ls", "a/../../x"], 1),
        (vec!["ls", ".."], 1),
        (vec!["ls", "/"], 1),
        (vec!["ls", "/tmp"], 1),
        (vec!["ls", "/srv/w/one/../two"], 1),
        (vec!["ls", "/srv/w/one2"], 1),
        (vec!["cat", "/dev/zero"], 1),
        (vec!["cat", "/dev/null/../sda"], 1),
        (vec!["grep", "/x/", "/etc/passwd"], 2),
        (vec!["grep", "-f", "/etc/passwd"], 2),
    ] {
        let found =
            check(&argv, &place("")).map_err(|violation| (violation.index, violation.value));
        assert_eq!(found, Err((index, argv[index].to_owned())), "{argv:?}");
    }
}

#[test]
fn arguments_that_stay_inside_pass() {
    for argv in [
        vec!["printf", "ok"],
        vec!["cat", "/srv/w/one/README.md"],
        vec!["cat", "/srv/w/one"],
        vec!["cat", "nested/note.txt"],
        vec!["./script", "."],
        vec!["/srv/w/one/script"],
        vec!["echo", "--format=json/pretty"],
        vec!["echo", "hello", "&&", "echo", "nope"],
        vec!["ls", "..foo/a", "a..b", "...", "a/../b"],
        vec!["ls", "/dev/null", "--log=/dev/stderr"],
        vec!["ls", "*.ts", "$HOME/x", "src:dst", "HEAD~1", "", "-", "--", "-l", "="],
        vec!["sed", "s/foo/bar/"],
        vec!["sed", "-n", "/foo/d", "x"],
        vec!["curl", "https://host/x", "-X", "POST"],
        vec!["git", "log", "a..b", "HEAD^..main"],
    ] {
        assert_eq!(check(&argv, &place("")), Ok(()), "{argv:?}");
    }
    let none: [&str; 0] = [];
    assert_eq!(check(&none, &place("")), Ok(()));
}

#[test]
fn relative_paths_start_in_the_given_directory() {
    assert_eq!(check(&["ls", "../x"], &place("sub")), Ok(()));
    assert!(check(&["ls", "../../x"], &place("sub")).is_err());
}

#[test]
fn a_violation_has_the_code_index_and_value() {
    let violation = check(&["cat", "a", "--x=/etc"], &place("")).unwrap_err();
    assert_eq!((violation.escape, violation.code()), (Escape::Absolute, Code::SandboxViolation));
    let detail = serde_json::json!({ "argument": 2, "value": "--x=/etc", "reason": "absolute" });
    assert_eq!(violation.detail(), detail);
}
