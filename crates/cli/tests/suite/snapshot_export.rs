//! `carrel snapshot export`: snapshots as commits of a bare repository, compared with the files by git itself.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::TestEnvironment;

fn carrel(test_env: &TestEnvironment, arguments: &[&str]) -> Output {
    let mut command = test_env.carrel();
    command.args(arguments).arg("--workspace").arg(test_env.workspace());
    command.output().unwrap()
}

fn json_of(test_env: &TestEnvironment, arguments: &[&str]) -> Value {
    let output = carrel(test_env, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn create(test_env: &TestEnvironment, words: &[&str]) {
    let output = carrel(test_env, &[&["snapshot", "create"], words].concat());
    assert!(output.status.success(), "{words:?}: {output:?}");
}

fn refused(test_env: &TestEnvironment, arguments: &[&str]) -> String {
    let output = carrel(test_env, arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn git(repository: &Path, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(repository).args(words).env("HOME", "/nonexistent");
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

fn text(repository: &Path, words: &[&str]) -> String {
    String::from_utf8(git(repository, words)).unwrap()
}

/// What git has of a tree: mode and content by path.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Reads a tree of a repository.
fn tree_of_git(repository: &Path, tree: &str) -> Tree {
    let listed = git(repository, &["ls-tree", "-r", "-z", tree]);
    let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let read = |entry: &[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t').unwrap();
        let head = std::str::from_utf8(&entry[..tab]).unwrap();
        let words: Vec<_> = head.split(' ').collect();
        let content = git(repository, &["cat-file", "blob", words[2]]);
        let mode = u32::from_str_radix(words[0], 8).unwrap();
        (PathBuf::from(OsStr::from_bytes(&entry[tab + 1..])), (mode, content))
    };
    entries.map(read).collect()
}

/// Reads a directory as git would record it, but for its ignore rules.
fn tree_of_files(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(top.join(&directory)).unwrap() {
            let path = directory.join(entry.unwrap().file_name());
            let metadata = std::fs::symlink_metadata(top.join(&path)).unwrap();
            if metadata.is_dir() {
                pending.push(path);
            } else if metadata.is_symlink() {
                let target = std::fs::read_link(top.join(&path)).unwrap();
                found.insert(path, (0o120_000, target.into_os_string().into_vec()));
            } else {
                let is_executable = metadata.permissions().mode() & 0o100 != 0;
                let mode = if is_executable { 0o100_755 } else { 0o100_644 };
                let content = std::fs::read(top.join(&path)).unwrap();
                found.insert(path, (mode, content));
            }
        }
    }
    found
}

/// Unpacks what `git archive` makes of a tree.
fn archived(test_env: &TestEnvironment, repository: &Path, tree: &str) -> Tree {
    let directory = test_env.path("archived");
    std::fs::create_dir(&directory).unwrap();
    let archive = test_env.path("archive.tar");
    let out = format!("--output={}", archive.display());
    git(repository, &["archive", "--format=tar", &out, tree]);
    let status = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&directory).status();
    assert!(status.unwrap().success());
    tree_of_files(&directory)
}

fn reasons(exported: &Value) -> BTreeMap<String, String> {
    let left_out = exported["left_out"].as_array().unwrap();
    assert_eq!(exported["left_out_total"], left_out.len());
    let of = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        (text("path"), text("reason"))
    };
    left_out.iter().map(of).collect()
}

/// Names that would break a format that separates by lines, blanks or quotes.
fn hostile_names() -> Vec<PathBuf> {
    let names: [&[u8]; 15] = [
        b"new\nline",
        b"\nM 100644 :1 fake",
        b"quo\"te",
        b"\"",
        b"back\\slash",
        b"-dash",
        b"--help",
        b" blank ",
        b"tab\t",
        b"\xff\xfe not UTF-8",
        "ünï cödé 日本".as_bytes(),
        b"'; rm -rf ~ #",
        b"deleteall",
        b"$(id)",
        b"\x01\x7f\r",
    ];
    names.into_iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

fn write(test_env: &TestEnvironment, path: &Path, content: &[u8]) {
    let path = test_env.workspace().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
}

#[test]
fn git_has_the_same_tree_whatever_the_names_are() {
    let test_env = TestEnvironment::usual();
    let top = test_env.workspace();
    for (number, name) in hostile_names().iter().enumerate() {
        write(&test_env, name, format!("{number}\n").as_bytes());
        write(&test_env, &Path::new("deep").join(name).join(name), b"deep\n");
    }
    write(&test_env, Path::new("empty"), b"");
    write(&test_env, Path::new("binary"), &(0..=255).cycle().take(100_000).collect::<Vec<u8>>());
    write(&test_env, Path::new("twice/one"), b"the same\n");
    write(&test_env, Path::new("twice/two"), b"the same\n");
    write(&test_env, Path::new("run.sh"), b"#!/bin/sh\n");
    std::fs::set_permissions(top.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("run.sh", top.join("link")).unwrap();
    symlink("../outside \n\"", top.join("twice/dangling")).unwrap();
    create(&test_env, &["s", "-m", "all of it\n\nwith a body"]);
    let repository = test_env.path("out.git");
    let place = repository.to_str().unwrap();
    let exported = json_of(&test_env, &["snapshot", "export", "s", "--git", place]);
    assert_eq!(exported["branch"], "snapshot/s");
    assert_eq!(exported["left_out"], json!([]), "{exported}");
    let tree = "refs/heads/snapshot/s";
    assert_eq!(tree_of_git(&repository, tree), tree_of_files(&top));
    assert_eq!(archived(&test_env, &repository, tree), tree_of_files(&top));
    git(&repository, &["fsck", "--strict", "--full"]);
    assert_eq!(exported["commits"][0]["commit"], text(&repository, &["rev-parse", tree]).trim());
    // A pack, however few the objects are.
    let count = text(&repository, &["count-objects", "-v"]);
    assert!(count.contains("count: 0\n") && count.contains("packs: 1\n"), "{count}");
    let shown = text(&repository, &["log", "-1", "--format=%an|%cn|%B", tree]);
    assert_eq!(shown.trim_end(), "Carrel|Carrel|s\n\nall of it\n\nwith a body");
    let list = json_of(&test_env, &["snapshot", "ls"]);
    let created = list["structured"]["snapshots"][0]["created"].as_str().unwrap().to_owned();
    let date =
        text(&repository, &["log", "-1", "--date=format:%Y-%m-%dT%H:%M:%S", "--format=%ad", tree]);
    assert!(created.starts_with(date.trim()), "{created} {date}");
}

#[test]
fn what_git_cannot_have_is_named() {
    let test_env = TestEnvironment::usual();
    let top = test_env.workspace();
    write(&test_env, Path::new(".gitignore"), b"*.log\n");
    write(&test_env, Path::new("a.log"), b"ignored\n");
    write(&test_env, Path::new("only-logs/b.log"), b"ignored\n");
    write(&test_env, Path::new("secret"), b"x\n");
    std::fs::set_permissions(top.join("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    write(&test_env, Path::new("closed/file"), b"x\n");
    std::fs::set_permissions(top.join("closed"), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::create_dir_all(top.join("hollow/deeper/deepest")).unwrap();
    for name in ["sub/.GIT/config", "GIT~1", ".git.", ".g\u{200c}it", "a\\.git"] {
        write(&test_env, Path::new(name), b"[core]\n\tfsmonitor = id\n");
    }
    symlink("/etc/passwd", top.join(".gitmodules")).unwrap();
    let init = Command::new("git").args(["init", "-q"]).arg(&top).status().unwrap();
    assert!(init.success());
    create(&test_env, &["s"]);
    let repository = test_env.path("out.git");
    let place = repository.to_str().unwrap();
    let exported = json_of(&test_env, &["snapshot", "export", "s", "--git", place]);
    let expected = [
        (".git", "repository"),
        (".git.", "name"),
        (".gitmodules", "name"),
        (".g\u{200c}it", "name"),
        ("GIT~1", "name"),
        ("a.log", "ignored"),
        ("a\\.git", "name"),
        ("closed", "mode"),
        ("hollow", "empty_directory"),
        ("only-logs", "empty_directory"),
        ("only-logs/b.log", "ignored"),
        ("secret", "mode"),
        ("sub", "empty_directory"),
        ("sub/.GIT", "name"),
    ];
    let expected = expected.map(|(path, reason)| (path.to_owned(), reason.to_owned()));
    assert_eq!(reasons(&exported), BTreeMap::from(expected));
    let names: Vec<_> = tree_of_git(&repository, "snapshot/s").into_keys().collect();
    assert_eq!(names, [".gitignore", "closed/file", "secret"].map(PathBuf::from));
    git(&repository, &["fsck", "--strict", "--full"]);
    let output = carrel(&test_env, &["snapshot", "export", "s", "--git", place]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("not in git as it is: hollow (empty directory)\n"), "{said}");
}

#[test]
fn all_snapshots_are_a_chain_that_grows() {
    let test_env = TestEnvironment::usual();
    let repository = test_env.path("new/deep/out.git");
    let place = repository.to_str().unwrap();
    let all = ["snapshot", "export", "--all", "--git", place];
    let said = refused(&test_env, &all);
    assert!(said.contains("there are no snapshots to export"), "{said}");
    for (name, content) in [("one", "1\n"), ("two", "2\n"), ("three", "1\n")] {
        test_env.write("a.txt", content);
        test_env.write(&format!("{name}.txt"), content);
        create(&test_env, &[name]);
    }
    let first = json_of(&test_env, &all);
    let names: Vec<_> =
        first["commits"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["one", "two", "three"]);
    // The branch of a new repository is the one that a clone checks out.
    let subjects = text(&repository, &["log", "--reverse", "--format=%s", "HEAD"]);
    assert_eq!(subjects, "one\ntwo\nthree\n");
    assert_eq!(tree_of_git(&repository, "snapshots"), tree_of_files(&test_env.workspace()));
    let files = text(&repository, &["ls-tree", "--name-only", "snapshots~2"]);
    assert_eq!(files, "a.txt\none.txt\n");
    // Again, with one more: the others are the same commits.
    assert_eq!(json_of(&test_env, &all), first);
    std::fs::remove_file(test_env.workspace().join("two.txt")).unwrap();
    create(&test_env, &["four"]);
    let more = json_of(&test_env, &all);
    assert_eq!(more["commits"].as_array().unwrap()[..3], first["commits"].as_array().unwrap()[..]);
    assert_eq!(text(&repository, &["rev-list", "--count", "snapshots"]), "4\n");
    git(&repository, &["fsck", "--strict", "--full"]);
    // One that other commits have is not overwritten.
    let output = carrel(&test_env, &["snapshot", "rm", "one"]);
    assert!(output.status.success());
    let before = text(&repository, &["rev-parse", "snapshots"]);
    let said = refused(&test_env, &all);
    assert!(said.contains("has other commits; give another with --branch"), "{said}");
    assert_eq!(text(&repository, &["rev-parse", "snapshots"]), before);
    json_of(&test_env, &[&all[..], &["--branch", "since-then"]].concat());
    assert_eq!(text(&repository, &["rev-list", "--count", "since-then"]), "3\n");
}

#[test]
fn automatic_ones_are_exported_by_number_or_on_request() {
    let test_env = TestEnvironment::usual();
    let repository = test_env.path("out.git");
    let place = repository.to_str().unwrap();
    test_env.write("a.txt", "1\n");
    create(&test_env, &["named"]);
    test_env.write("a.txt", "2\n");
    let restored = carrel(&test_env, &["snapshot", "restore", "named"]);
    assert!(restored.status.success());
    let one = json_of(&test_env, &["snapshot", "export", "@2", "--git", place]);
    assert_eq!((&one["branch"], &one["commits"][0]["name"]), (&json!("snapshot/2"), &json!(null)));
    let message = text(&repository, &["log", "-1", "--format=%B", "snapshot/2"]);
    assert_eq!(message.trim_end(), "@2\n\nbefore restoring @1");
    let all = ["snapshot", "export", "--all", "--git", place];
    assert_eq!(json_of(&test_env, &all)["commits"].as_array().unwrap().len(), 1);
    let with = [&all[..], &["--automatic", "--branch", "every"]].concat();
    assert_eq!(json_of(&test_env, &with)["commits"].as_array().unwrap().len(), 2);
}

#[test]
fn only_a_bare_repository_outside_of_the_workspace_is_written_to() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "1\n");
    create(&test_env, &["s"]);
    let export = |place: &Path, more: &[&str]| {
        let words = ["snapshot", "export", "s", "--git", place.to_str().unwrap()];
        refused(&test_env, &[&words[..], more].concat())
    };
    let said = export(&test_env.workspace().join("out.git"), &[]);
    assert!(said.contains("is in the workspace"), "{said}");
    // Not by a link either.
    symlink(test_env.workspace(), test_env.path("link")).unwrap();
    assert!(export(&test_env.path("link/out.git"), &[]).contains("is in the workspace"));
    let around = test_env.path("gone/../workspace/out.git");
    assert!(export(&around, &[]).contains("leads through a directory that is not there"));
    assert!(!test_env.workspace().join("out.git").exists());
    let full = test_env.path("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("letter.txt"), "mine\n").unwrap();
    assert!(export(&full, &[]).contains("is no bare git repository"));
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
    let checkout = test_env.path("checkout");
    let init = Command::new("git").args(["init", "-q"]).arg(&checkout).status().unwrap();
    assert!(init.success());
    assert!(export(&checkout.join(".git"), &[]).contains("is no bare git repository"));
    let place = test_env.path("out.git");
    for branch in ["a..b", "-x", "a b", "x.lock", "", "HEAD~1"] {
        let said = export(&place, &[&format!("--branch={branch}")]);
        assert!(said.contains("--branch"), "{branch:?}: {said}");
    }
    assert!(!place.exists());
    let said =
        refused(&test_env, &["snapshot", "export", "nope", "--git", place.to_str().unwrap()]);
    assert!(said.contains("[E_SNAPSHOT_NOT_FOUND]"), "{said}");
    // No program that the repository names runs.
    let evil = test_env.path("evil.git");
    let init = Command::new("git").args(["init", "-q", "--bare"]).arg(&evil).status().unwrap();
    assert!(init.success());
    let hook = evil.join("hooks/reference-transaction");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", test_env.path("ran").display()))
        .unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    json_of(&test_env, &["snapshot", "export", "s", "--git", evil.to_str().unwrap()]);
    assert!(!test_env.path("ran").exists());
}
