//! Arguments of programs that start without a shell.

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded};
use carrel_shell::arguments::{
    Escape, LinkTargets, WorkingDirectory, check, check_links, respelled,
};

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

/// Links of a workspace, by name.
struct Links;

impl LinkTargets for Links {
    fn outside(&self, path: &Path) -> Option<PathBuf> {
        let mut names = path.strip_prefix(".").unwrap_or(path).iter();
        let target = match names.next()?.to_str()? {
            "out" => "/etc",
            "up" => "/srv/w/one/../two",
            "back" => "/srv/w/one/../one",
            "null" => "/dev/null",
            "python" => "/usr/bin/python3",
            _ => return None,
        };
        Some(Path::new(target).join(names.as_path()))
    }

    fn may_run(&self, program: &Path) -> bool {
        program.starts_with("/usr")
    }
}

#[test]
fn an_argument_is_judged_by_the_place_to_which_its_link_leads() {
    for (argv, index) in [
        (vec!["cat", "out"], 1),
        (vec!["cat", "out/passwd"], 1),
        (vec!["cat", "x", "./up/file"], 2),
        (vec!["cat", "/srv/w/one/out"], 1),
        (vec!["cc", "-Iout/include"], 1),
        (vec!["x", "--file=out/passwd"], 1),
        (vec!["./out/evil"], 0),
        (vec!["env", "./python"], 1),
    ] {
        let found = check_links(&argv, &place(""), &Links).map_err(|found| found.index);
        assert_eq!(found, Err(index), "{argv:?}");
    }
    for argv in [
        vec!["cat", "file", "null", "back", "out2"],
        vec!["./python", "x.py"],
        vec!["python"],
        vec!["out"],
        vec!["grep", "out/passwd", "file"],
    ] {
        assert_eq!(check_links(&argv, &place(""), &Links), Ok(()), "{argv:?}");
    }
    let violation = check_links(&["cat", "out"], &place(""), &Links).unwrap_err();
    assert_eq!((violation.escape, violation.code()), (Escape::Link, Code::SandboxViolation));
    assert_eq!(check_links(&["cat", "out"], &place("sub"), &Links), Ok(()));
    assert!(check_links(&["cat", "../out"], &place("out"), &Links).is_err());
}

#[test]
fn another_path_of_the_workspace_is_replaced_in_an_argument() {
    let respelled = |argument| respelled(argument, Path::new("/link"), Path::new(WORKSPACE));
    for (argument, expected) in [
        ("/link/file", "/srv/w/one/file"),
        ("/link", "/srv/w/one"),
        ("--file=/link/file", "--file=/srv/w/one/file"),
        ("-I/link/include", "-I/srv/w/one/include"),
        ("/linked/file", "/linked/file"),
        ("file", "file"),
        ("/srv/w/one/file", "/srv/w/one/file"),
    ] {
        assert_eq!(respelled(argument), expected);
    }
}
