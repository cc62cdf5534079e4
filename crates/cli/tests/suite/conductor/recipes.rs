//! The recipes of `docs/hooks.md`, as they stand there.

use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;

use super::ConductorFixture;
use crate::Run;

/// Returns a recipe of the guide.
fn recipe(name: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let fence = format!("```sh recipe={name} hook=");
    let text = guide.split(&fence).nth(1).unwrap_or_else(|| panic!("no recipe {name}"));
    let text = text.split_once('\n').unwrap().1;
    text.split("```").next().unwrap().to_owned()
}

/// Puts recipes into one hook, each in parentheses, as the guide says.
fn hook(name: &str, scripts: &[&str]) -> String {
    let scripts = scripts.iter().map(|script| format!("(\n{script}) || exit\n"));
    let lines = scripts.collect::<String>();
    let lines: String = lines.lines().flat_map(|line| ["    ", line, "\n"]).collect();
    format!("  {name}: |\n{lines}")
}

fn git(directory: &Path, words: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let done = Command::new("git").args(identity).args(words).current_dir(directory).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// An fixture with a repository to clone from and a pool with one resource.
fn fixture(before_run: &[&str], agent: &str) -> ConductorFixture {
    let fixture = ConductorFixture::new();
    let origin = fixture.fixture.path("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "--quiet"]);
    std::fs::write(origin.join("requirements.txt"), "left\nright\n").unwrap();
    git(&origin, &["add", "."]);
    git(&origin, &["commit", "--quiet", "-m", "first"]);
    for directory in ["pool/free", "pool/taken"] {
        std::fs::create_dir_all(fixture.fixture.path(directory)).unwrap();
    }
    std::fs::write(fixture.fixture.path("pool/free/5433"), "").unwrap();
    let lines = [
        "hooks:\n  env: [ORIGIN, POOL]\n".to_owned(),
        hook("after_create", &[&recipe("clone")]),
        hook("before_run", before_run),
        hook("before_remove", &[&recipe("give")]),
        format!("agent: {{kind: command, max_turns: 1, command: '{agent}'}}"),
    ];
    fixture.write(&lines.concat());
    fixture
}

fn once(fixture: &ConductorFixture) -> Run {
    let mut command = fixture.command(&["run", "--once"]);
    command.env("ORIGIN", fixture.fixture.path("origin")).env("POOL", fixture.fixture.path("pool"));
    Run::of(command)
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_workspace_is_cloned_gets_its_dependencies_once_and_its_resource_back() {
    let scripts = [recipe("take"), recipe("dependencies")];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let agent =
        "cat .git/carrel-resource > seen; echo scratch > scratch; git status --short >> seen";
    let fixture = fixture(&scripts, agent);
    fixture.issue("one");
    let first = once(&fixture);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let workspace = fixture.workspace("CAR-1");
    assert_eq!(read(workspace.join(".git/HEAD")), "ref: refs/heads/carrel/CAR-1\n");
    assert!(read(workspace.join("seen")).starts_with("5433\n"), "{}", first.stderr);
    assert_eq!(read(workspace.join(".deps/log")), "installed left\ninstalled right\n");
    assert!(fixture.fixture.path("pool/taken/5433").exists());
    fixture.issue("two");
    let second = once(&fixture);
    assert_eq!(second.code, 1, "the only resource is taken: {}", second.stderr);
    assert!(second.stderr.contains("CAR-2"), "{}", second.stderr);
    assert_eq!(read(workspace.join(".deps/log")).lines().count(), 2, "nothing has changed");
    fixture.shift("CAR-2", "Backlog");
    fixture.shift("CAR-1", "Done");
    let third = once(&fixture);
    assert_eq!(third.code, 0, "{}", third.stderr);
    assert!(!workspace.exists());
    assert!(fixture.fixture.path("pool/free/5433").exists(), "it is given back");
}

#[test]
fn a_reset_leaves_commits_and_nothing_else() {
    let reset = recipe("reset");
    let agent = "test -e scratch && exit 9; echo a > kept; git add kept; \
                 git -c user.name=a -c user.email=a@b.c commit -qm kept --allow-empty; echo b > scratch";
    let fixture = fixture(&[&reset], agent);
    fixture.issue("one");
    for _ in 0..2 {
        let run = once(&fixture);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    assert_eq!(read(fixture.workspace("CAR-1").join("kept")), "a\n");
}
