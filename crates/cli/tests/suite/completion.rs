//! Completion in a real shell, and manual pages that a real formatter reads.

use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;

use crate::{Run, TestRoot};

/// Lets bash complete the last of some words with the script that `carrel completions` prints.
fn complete(fixture: &TestRoot, words: &[&str]) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_carrel"));
    let script = r#"
        source <(carrel completions bash)
        read -ra registered < <(complete -p carrel)
        function_of() { while [ "$1" != -F ]; do shift; done; echo "$2"; }
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        "$(function_of "${registered[@]}")" carrel "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut shell = Command::new("bash");
    shell.args(["--norc", "-c", script, "bash", "carrel"]).args(words).env_clear();
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    shell.env("PATH", path).env("HOME", fixture.path("home")).current_dir(fixture.path(""));
    let run = Run::of(shell);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{words:?}");
    let mut found: Vec<_> = run.stdout.lines().map(|line| line.trim_end().to_owned()).collect();
    found.retain(|line| !line.is_empty());
    found.sort();
    found
}

#[test]
fn bash_completes_the_names_of_tools() {
    let fixture = TestRoot::new();
    assert_eq!(complete(&fixture, &["tool", "run_t"]), ["run_tests", "run_typecheck"]);
    assert_eq!(complete(&fixture, &["tool", "--json", "ApplyP"]), ["ApplyPatch"]);
    assert_eq!(complete(&fixture, &["tool", "nothing_of_the_kind"]), [""; 0]);
}

#[test]
fn bash_completes_the_workspaces_of_the_root_that_the_command_line_names() {
    let fixture = TestRoot::new();
    for identifier in ["ABC-1", "ABC-2", "XYZ-1"] {
        assert_eq!(fixture.run(&["create", identifier]).code, 0);
    }
    let root = fixture.root();
    let root = root.to_str().unwrap();
    let named = ["workspace", "show", "--root", root, "ABC"];
    assert_eq!(complete(&fixture, &named), ["ABC-1", "ABC-2"]);
    let rm = ["workspace", "rm", &format!("--root={root}"), "X"];
    assert_eq!(complete(&fixture, &rm), ["XYZ-1"]);
    let other = ["workspace", "show", "--root", "/nonexistent", "ABC"];
    assert_eq!(complete(&fixture, &other), [""; 0]);
}

#[test]
fn bash_completes_commands_options_and_files() {
    let fixture = TestRoot::new();
    assert_eq!(complete(&fixture, &["works"]), ["workspace"]);
    assert_eq!(complete(&fixture, &["workspace", "cre"]), ["create"]);
    assert_eq!(complete(&fixture, &["exec", "--netw"]), ["--network"]);
    std::fs::write(fixture.path("policy-of-mine.toml"), "").unwrap();
    let file = ["exec", "--policy", "policy-of"];
    assert_eq!(complete(&fixture, &file), ["policy-of-mine.toml"]);
}

#[test]
fn every_command_has_a_manual_page_that_a_formatter_reads() {
    let fixture = TestRoot::new();
    let directory = fixture.path("man");
    std::fs::create_dir(&directory).unwrap();
    let run = Run::of(fixture.bare(&["man", directory.to_str().unwrap()]));
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert!(page("carrel.1").contains("carrel\\-workspace(1)"), "{}", page("carrel.1"));
    let create = page("carrel-workspace-create.1");
    assert!(create.contains("\\-\\-quota") && create.contains("after_create"), "{create}");
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let run = Run::of(formatted(&path));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", path.display());
    }
    let missing = Run::of(fixture.bare(&["man", "/nonexistent"]));
    assert!(missing.code == 1 && missing.stderr.contains("/nonexistent"), "{}", missing.stderr);
}

fn formatted(page: &Path) -> Command {
    let mut groff = Command::new("groff");
    groff.args(["-Kutf8", "-man", "-Tutf8", "-ww", "-z"]).arg(page);
    groff
}
