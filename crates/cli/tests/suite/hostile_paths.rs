//! Every path that tries to leave, through every argument that takes a path, over every session.
//!
//! A secret lies outside. No answer may show it, nothing outside may change, a refused call changes
//! nothing inside either, every refusal has a code of its own, and nothing hangs.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::audit::{self, Tree, difference};
use crate::interfaces::{Answer, Interface, ToolSession};
use crate::test_environment::{TestEnvironment, is_soak};

/// What nobody inside may ever see.
const SECRET: &str = "TOP-SECRET-OUTSIDE";

/// A call that takes longer hangs.
const PROMPTLY: Duration = Duration::from_secs(30);

/// Codes that say that a path leaves the workspace.
const LEAVES: &[&str] = &["E_SANDBOX_VIOLATION", "E_INVALID_WORKSPACE_CWD"];

/// Codes that say nothing.
const VAGUE: &[&str] = &["E_INTERNAL", "E_IO"];

/// What an argument does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Opens what it leads to.
    Follows,
    /// Takes the last name itself, so a link may be moved or deleted.
    Names,
    /// A word that is no path until a program takes it for one. The sandbox decide.
    Words,
}

/// One argument of one tool.
struct Slot {
    tool: &'static str,
    argument: &'static str,
    rule: Rule,
    arguments: fn(&str) -> Value,
}

const fn slot(
    tool: &'static str,
    argument: &'static str,
    rule: Rule,
    arguments: fn(&str) -> Value,
) -> Slot {
    Slot { tool, argument, rule, arguments }
}

/// What a command does that finds itself outside.
const STEAL: &str = "cat secret file ../outside/secret; touch written";

/// The arguments of a question about a place in a file.
fn at_place(path: &str) -> Value {
    json!({ "file_path": path, "line": 1, "col": 1 })
}

/// The arguments of a picture.
fn drawn(source: &str, path: &str) -> Value {
    json!({ "source": source, "output_path": path })
}

/// Every argument that takes a path, in the groups for work on code.
const CODE: &[Slot] = &[
    slot("Read", "file_path", Rule::Follows, |path| json!({ "file_path": path })),
    slot(
        "Write",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "content": "written" }),
    ),
    slot(
        "Edit",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "old_string": SECRET, "new_string": "written" }),
    ),
    slot("MultiEdit", "file_path", Rule::Follows, |path| {
        let edits = [json!({ "old_string": SECRET, "new_string": "written" })];
        json!({ "file_path": path, "edits": edits })
    }),
    slot(
        "ApplyPatch",
        "patch",
        Rule::Follows,
        |path| json!({ "patch": format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+written\n") }),
    ),
    slot(
        "ApplyPatch",
        "patch",
        Rule::Follows,
        |path| json!({ "patch": format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+written\n") }),
    ),
    slot("LS", "path", Rule::Follows, |path| json!({ "path": path, "depth": 3 })),
    slot("Glob", "path", Rule::Follows, |path| json!({ "path": path, "pattern": "**" })),
    slot("Glob", "pattern", Rule::Words, |path| json!({ "pattern": path, "hidden": true })),
    slot("Grep", "path", Rule::Follows, |path| json!({ "path": path, "pattern": "SECRET" })),
    slot("Grep", "glob", Rule::Words, |path| json!({ "glob": path, "pattern": "SECRET" })),
    slot("Grep", "globs", Rule::Words, |path| json!({ "globs": [path], "pattern": "SECRET" })),
    slot("Move", "source", Rule::Names, |path| json!({ "source": path, "destination": "taken" })),
    slot(
        "Move",
        "destination",
        Rule::Names,
        |path| json!({ "source": "file", "destination": path, "overwrite": true }),
    ),
    slot("Delete", "path", Rule::Names, |path| json!({ "path": path, "recursive": true })),
    slot("Bash", "cwd", Rule::Follows, |path| json!({ "command": STEAL, "cwd": path })),
    slot("watch_process", "cwd", Rule::Follows, |path| json!({ "command": STEAL, "cwd": path })),
    slot(
        "shell_run",
        "cwd",
        Rule::Follows,
        |path| json!({ "cmd": "bash", "args": ["-c", STEAL], "cwd": path }),
    ),
    slot("shell_run", "cmd", Rule::Words, |path| json!({ "cmd": path, "timeout_ms": 500 })),
    slot(
        "shell_run",
        "args",
        Rule::Words,
        |path| json!({ "cmd": "cat", "args": [path], "timeout_ms": 500 }),
    ),
    slot("git", "cwd", Rule::Follows, |path| json!({ "operation": "status", "cwd": path })),
    slot(
        "git",
        "args",
        Rule::Words,
        |path| json!({ "operation": "diff", "args": ["--no-index", "file", path] }),
    ),
    slot(
        "git",
        "args",
        Rule::Words,
        |path| json!({ "operation": "clone", "args": [path, "taken"] }),
    ),
    slot("git_inspect", "cwd", Rule::Follows, |path| json!({ "operation": "log", "cwd": path })),
    slot(
        "git_inspect",
        "args",
        Rule::Words,
        |path| json!({ "operation": "blame", "args": ["--contents", path, "file"] }),
    ),
    slot("profile", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("run_tests", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("run_lint", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("run_typecheck", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("run_script", "path", Rule::Follows, |path| json!({ "name": "test", "path": path })),
    slot("format", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("install", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("outline", "path", Rule::Follows, |path| json!({ "path": path })),
    slot(
        "read_symbol",
        "file_path",
        Rule::Words,
        |path| json!({ "symbol": "secret", "file_path": path }),
    ),
    slot("search_code", "path", Rule::Words, |path| json!({ "query": "secret", "path": path })),
    slot("find_definition", "file_path", Rule::Follows, at_place),
    slot("find_references", "file_path", Rule::Follows, at_place),
    slot("find_implementations", "file_path", Rule::Follows, at_place),
    slot("hover", "file_path", Rule::Follows, at_place),
    slot(
        "rename_symbol",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "line": 1, "col": 1, "new_name": "written" }),
    ),
    slot("diagnostics", "path", Rule::Follows, |path| json!({ "path": path })),
    slot("code_scan", "path", Rule::Follows, |path| json!({ "path": path, "pattern": "SECRET" })),
    slot("code_edit", "path", Rule::Follows, |path| {
        let edit = json!({ "op": "replace", "rule": SECRET, "replacement": "written" });
        json!({ "path": path, "edits": [edit] })
    }),
    // Looked up in what was recorded.
    slot("tests_covering", "file", Rule::Words, |path| json!({ "file": path })),
    // Refused for its extension alone.
    slot("render_dot", "output_path", Rule::Words, |path| drawn("digraph { a }", path)),
    slot("render_mermaid", "output_path", Rule::Words, |path| drawn("graph TD; a", path)),
    slot("render_dot", "output_path", Rule::Words, |path| {
        drawn("digraph { a }", &format!("{path}/new.svg"))
    }),
    slot("repo_map", "files", Rule::Follows, |path| json!({ "files": [path] })),
    slot(
        "edit_function_body",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "function_name": "f", "new_body": "written" }),
    ),
    slot(
        "change_function_signature",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "function_name": "f", "new_signature": "written" }),
    ),
    slot(
        "insert_after_method",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "receiver_type": "T", "method_name": "f", "new_method": "written" }),
    ),
    slot(
        "replace_symbol",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "symbol": "f", "new_text": "written" }),
    ),
    slot(
        "insert_before_symbol",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "symbol": "f", "new_text": "written" }),
    ),
    slot(
        "insert_after_symbol",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "symbol": "f", "new_text": "written" }),
    ),
    slot(
        "delete_symbol",
        "file_path",
        Rule::Follows,
        |path| json!({ "file_path": path, "symbol": "f", "force": true }),
    ),
];

/// Every argument that takes a path, in the group of the workspace service.
const SERVICE: &[Slot] = &[
    slot("workspace_read_file", "path", Rule::Follows, |path| json!({ "path": path })),
    slot(
        "workspace_write_file",
        "path",
        Rule::Follows,
        |path| json!({ "path": path, "content": "written" }),
    ),
    slot("workspace_list_dir", "path", Rule::Follows, |path| json!({ "path": path })),
    slot(
        "workspace_grep",
        "path",
        Rule::Follows,
        |path| json!({ "path": path, "pattern": "SECRET" }),
    ),
    slot(
        "workspace_grep",
        "include",
        Rule::Words,
        |path| json!({ "include": path, "pattern": "SECRET" }),
    ),
    slot(
        "workspace_exec",
        "cwd",
        Rule::Follows,
        |path| json!({ "command": "cat secret", "cwd": path }),
    ),
    slot(
        "workspace_exec",
        "command",
        Rule::Words,
        |path| json!({ "command": format!("cat '{path}'"), "timeout": 1 }),
    ),
    slot(
        "workspace_git",
        "cwd",
        Rule::Follows,
        |path| json!({ "operation": "status", "cwd": path }),
    ),
    slot(
        "workspace_git",
        "args",
        Rule::Words,
        |path| json!({ "operation": "diff", "args": ["--no-index", "file", path] }),
    ),
];

/// Arguments that look like paths to [`is_path_like`] and are none.
const NO_PATHS: &[(&str, &str)] = &[
    ("Edit", "old_string"),
    ("MultiEdit", "edits"),
    // Hashes; the paths in front of them are only compared with those of the patch.
    ("Write", "expected_hash"),
    ("Edit", "expected_hash"),
    ("MultiEdit", "expected_hash"),
    ("ApplyPatch", "expected_hashes"),
    ("Glob", "sort_by_path"),
    ("Delete", "recursive"),
    ("workspace_write_file", "content"),
    // Names of symbols, which are looked up in the index alone.
    ("read_symbol", "symbol"),
    ("find_definition", "symbol"),
    ("find_references", "symbol"),
    ("find_implementations", "symbol"),
    ("hover", "symbol"),
    ("rename_symbol", "symbol"),
    ("replace_symbol", "symbol"),
    ("insert_before_symbol", "symbol"),
    ("insert_after_symbol", "symbol"),
    ("delete_symbol", "symbol"),
    ("code_edit", "expected_hash"),
    ("edit_function_body", "expected_hash"),
    ("change_function_signature", "expected_hash"),
    ("insert_after_method", "expected_hash"),
    ("replace_symbol", "expected_hash"),
    ("insert_before_symbol", "expected_hash"),
    ("insert_after_symbol", "expected_hash"),
    ("delete_symbol", "expected_hash"),
    // The text of a diagram.
    ("render_mermaid", "source"),
    ("render_dot", "source"),
    // Commands for a shell: what they reach is the business of the suite `escape`.
    ("Bash", "command"),
    ("watch_process", "command"),
];

/// Tells whether an argument may take a path, by its name or by what is said about it.
fn is_path_like(name: &str, schema: &Value) -> bool {
    const NAMES: &[&str] = &[
        "path",
        "file",
        "dir",
        "cwd",
        "source",
        "destination",
        "target",
        "root",
        "folder",
        "glob",
        "include",
        "exclude",
        "patch",
        "args",
        "cmd",
        "command",
    ];
    let about = schema["description"].as_str().unwrap_or_default().to_lowercase();
    let words = ["relative to the workspace", "directory", "a path", "file or", "the file"];
    name != "workspace"
        && (NAMES.iter().any(|one| name.to_lowercase().contains(one))
            || words.iter().any(|word| about.contains(word)))
}

/// What a path is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// It leaves the workspace, whoever takes it.
    Leaves,
    /// Its last name is a link that leads out, is absolute, or leads nowhere.
    Link,
    /// It cannot be used, and each refusal is one of these.
    Refused(&'static [&'static str]),
    /// A pipe, a socket, a device: to be moved and deleted, never to be opened.
    Special,
    /// It only looks dangerous.
    Harmless,
}

/// The paths, with those of this machine.
fn paths(test_env: &TestEnvironment) -> Vec<(String, Kind)> {
    let (workspace, outside) = (test_env.workspace(), test_env.path("outside"));
    let (workspace, outside) = (workspace.display(), outside.display());
    let leaves = [
        "/etc/passwd".to_owned(),
        "/".to_owned(),
        "//etc/passwd".to_owned(),
        format!("{outside}/secret"),
        format!("{workspace}-evil/secret"),
        format!("{workspace}/../outside/secret"),
        format!("/proc/self/root{outside}/secret"),
        "/proc/self/cwd/file".to_owned(),
        "/proc/self/environ".to_owned(),
        "/dev/stdin".to_owned(),
        "../outside/secret".to_owned(),
        "..".to_owned(),
        "../".to_owned(),
        "./../outside/secret".to_owned(),
        "..//outside/secret".to_owned(),
        "directory/../../outside/secret".to_owned(),
        "missing/../../outside/secret".to_owned(),
        "../workspace/file".to_owned(),
        format!("{}outside/secret", "../".repeat(400)),
        "outward/secret".to_owned(),
        "outward/new".to_owned(),
        "outward/.".to_owned(),
        "outward/..".to_owned(),
        "outward-late/secret".to_owned(),
        "absolute-out/secret".to_owned(),
        "absolute-up/secret".to_owned(),
        "chain/secret".to_owned(),
        "proc-root/etc/passwd".to_owned(),
        "dangling/below".to_owned(),
    ];
    let links = [
        "outward",
        "outward-late",
        "absolute-out",
        "absolute-up",
        "outward-file",
        "chain",
        "outward-missing",
        "dangling",
        "proc-root",
    ];
    let refused: [(String, &[&str]); 7] = [
        ("file\0.txt".into(), &["E_INVALID_PATH", "E_INVALID_ARGUMENTS", "E_PATCH_INVALID"]),
        ("n".repeat(256), &["E_NAME_TOO_LONG"]),
        ("a/".repeat(2500), &["E_NAME_TOO_LONG", "E_NOT_FOUND"]),
        ("file/below".into(), &["E_NOT_A_DIRECTORY"]),
        ("loop-a/x".into(), &["E_LINK_LOOP"]),
        ("directory/missing/x/..".into(), &["E_NOT_FOUND", "E_INVALID_PATH", "E_PATCH_FAILED"]),
        (format!("new/{}", "n".repeat(256)), &["E_NAME_TOO_LONG", "E_NOT_FOUND", "E_PATCH_FAILED"]),
    ];
    let harmless = [
        "..foo",
        "...",
        "directory/..bar",
        "~",
        "~/x",
        "-rf",
        "--help",
        "a\\b",
        " ",
        "%2e%2e/x",
        "．．/outside/secret",
        "file:///etc/passwd",
        "$(touch pwned)",
        "`touch pwned`",
        ";touch pwned",
        "file/",
        "file//",
        "file/.",
        "directory/",
        "directory/../file",
        "inward",
        "absolute-in",
        "absolute-in/file",
        "",
    ];
    let leaves = leaves.into_iter().map(|path| (path, Kind::Leaves));
    let links = links.map(|path| (path.to_owned(), Kind::Link));
    let refused = refused.map(|(path, codes)| (path, Kind::Refused(codes)));
    let special = ["fifo", "socket", "device"].map(|path| (path.to_owned(), Kind::Special));
    let harmless = harmless.map(|path| (path.to_owned(), Kind::Harmless));
    leaves.chain(links).chain(refused).chain(special).chain(harmless).collect()
}

/// Puts a directory outside, with a secret in it, and a neighbour whose name begins like ours.
fn prepare_outside(test_env: &TestEnvironment) {
    for name in ["outside", "workspace-evil"] {
        std::fs::create_dir(test_env.path(name)).unwrap();
        for file in ["secret", "file"] {
            std::fs::write(test_env.path(name).join(file), format!("{SECRET}\n")).unwrap();
        }
    }
}

/// Makes the workspace what it was, whatever a call has done to it.
fn prepare_inside(test_env: &TestEnvironment) {
    let top = test_env.workspace();
    for entry in std::fs::read_dir(&top).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    std::fs::create_dir(top.join("directory")).unwrap();
    for file in ["file", "directory/file", "..foo"] {
        std::fs::write(top.join(file), "contents\n").unwrap();
    }
    let link = |target: &Path, name: &str| symlink(target, top.join(name)).unwrap();
    link(Path::new("../outside"), "outward");
    link(Path::new("directory/../../outside"), "outward-late");
    link(Path::new("../outside/secret"), "outward-file");
    link(Path::new("../outside/missing"), "outward-missing");
    link(&test_env.path("outside"), "absolute-out");
    link(&top.join("../outside"), "absolute-up");
    link(&top.join("directory"), "absolute-in");
    link(Path::new("outward"), "chain");
    link(Path::new("/proc/self/root"), "proc-root");
    link(Path::new("nothing"), "dangling");
    link(Path::new("loop-b"), "loop-a");
    link(Path::new("loop-a"), "loop-b");
    link(Path::new("directory/file"), "inward");
    drop(UnixListener::bind(top.join("socket")).unwrap());
    special(&top.join("fifo"), rustix::fs::FileType::Fifo, 0);
    // Only an administrator makes devices; others try a path that is not there.
    if rustix::process::geteuid().is_root() {
        let null = rustix::fs::makedev(1, 3);
        special(&top.join("device"), rustix::fs::FileType::CharacterDevice, null);
    }
}

fn special(path: &Path, kind: rustix::fs::FileType, device: u64) {
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, 0o600.into(), device).unwrap();
}

/// Everything that a call could change.
struct Ground {
    outside: [Tree; 2],
    inside: Tree,
}

impl Ground {
    fn look(test_env: &TestEnvironment) -> Self {
        let look = |top: &Path| audit::without_access(audit::tree(top));
        let outside = ["outside", "workspace-evil"].map(|name| look(&test_env.path(name)));
        Self { outside, inside: look(&test_env.workspace()) }
    }
}

/// Tries paths in one slot, and returns what went wrong.
fn try_slot(
    test_env: &TestEnvironment,
    session: &mut dyn ToolSession,
    slot: &Slot,
    paths: &[&(String, Kind)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    prepare_inside(test_env);
    let mut before = Ground::look(test_env);
    for (path, kind) in paths {
        let begun = Instant::now();
        let answer = session.call(slot.tool, (slot.arguments)(path));
        let took = begun.elapsed();
        end_in_background(session, slot, &answer);
        let after = Ground::look(test_env);
        let mut say = |what: String| {
            let start: String = path.chars().take(60).collect();
            wrong.push(format!("{}.{} {start:?} ({kind:?}): {what}", slot.tool, slot.argument));
        };
        let all = format!("{} {}", answer.text, answer.structured).replace(own_words(slot), "");
        if all.contains(SECRET) {
            say(format!("shows the secret: {all}"));
        }
        for (before, after) in before.outside.iter().zip(&after.outside) {
            for line in difference(before, after) {
                say(format!("changes what is outside: {line}"));
            }
        }
        if took > PROMPTLY {
            say(format!("takes {took:?}"));
        }
        let shown: String = answer.text.chars().take(200).collect();
        match answer.code() {
            Some(code) if VAGUE.contains(&code) => say(format!("{code}: {shown}")),
            None if answer.is_error => say(format!("has no code: {shown}")),
            _ => {}
        }
        let changed = difference(&before.inside, &after.inside);
        // A program that ran before it was ended may have left something.
        if answer.is_error && answer.code() != Some("E_TIMEOUT") && !changed.is_empty() {
            say(format!("is refused with {:?} and changes {changed:?}", answer.code()));
        }
        if let Err(what) = judge(slot.rule, *kind, answer.code()) {
            say(format!("{what}: {shown}"));
        }
        if after.inside.keys().any(|path| path.ends_with("pwned")) {
            say("ran a command that is part of a path".into());
        }
        if changed.is_empty() {
            before = after;
        } else {
            prepare_inside(test_env);
            before = Ground::look(test_env);
        }
    }
    wrong
}

/// Ends what goes on after its call, so that it changes nothing later.
fn end_in_background(session: &mut dyn ToolSession, slot: &Slot, answer: &Answer) {
    if slot.tool == "watch_process" && !answer.is_error {
        session.call("KillShell", json!({ "shell_id": answer.structured["shell_id"] }));
    }
}

/// Words of the arguments themselves, which an answer may repeat.
fn own_words(slot: &Slot) -> &'static str {
    match slot.tool {
        "Edit" | "MultiEdit" | "ApplyPatch" => SECRET,
        _ => "\0",
    }
}

/// Holds an answer against what has to come of a path.
fn judge(rule: Rule, kind: Kind, code: Option<&str>) -> Result<(), String> {
    let is_one_of = |codes: &[&str]| code.is_some_and(|code| codes.contains(&code));
    let fits = match (rule, kind) {
        (Rule::Follows, Kind::Leaves | Kind::Link) | (Rule::Names, Kind::Leaves) => {
            is_one_of(LEAVES)
        }
        (Rule::Follows | Rule::Names, Kind::Refused(codes)) => is_one_of(codes),
        (Rule::Follows | Rule::Names, Kind::Harmless) => !is_one_of(LEAVES),
        (Rule::Words, _) | (Rule::Names, Kind::Link) | (_, Kind::Special) => true,
    };
    if fits { Ok(()) } else { Err(format!("the code is {code:?}")) }
}

/// How many of the paths a slot is tried with.
#[derive(Clone, Copy)]
enum Part {
    All,
    /// The plainest ones, and every so many of the others, so that all come up somewhere.
    OneOf(usize),
}

const CODE_GROUPS: &str = "files,shell,verify,git,code,secrets";

/// Paths that no slot goes without.
const PLAINEST: &[&str] =
    &["/etc/passwd", "../outside/secret", "outward/secret", "outward-file", "file\0.txt", "..foo"];

/// Tries every slot through one session, some of them at the same time.
fn try_all(interface: Interface, threads: usize, part: Part) {
    let all: [(&[Slot], &str); 2] = [(CODE, CODE_GROUPS), (SERVICE, "workspace")];
    let work = |thread: usize| {
        let test_env = TestEnvironment::usual();
        prepare_outside(&test_env);
        let (workspace, paths) = (test_env.workspace(), paths(&test_env));
        let mut wrong = Vec::new();
        for (slots, groups) in all {
            let options = ["--workspace", workspace.to_str().unwrap(), "--tools", groups];
            let mut session = interface.open(&test_env, &options);
            for (number, slot) in slots.iter().enumerate().skip(thread).step_by(threads) {
                let is_tried = |(place, (path, _)): &(usize, &(String, Kind))| match part {
                    Part::All => true,
                    Part::OneOf(count) => {
                        PLAINEST.contains(&path.as_str()) || place % count == number % count
                    }
                };
                let tried: Vec<_> =
                    paths.iter().enumerate().filter(is_tried).map(|(_, path)| path).collect();
                wrong.extend(try_slot(&test_env, &mut *session, slot, &tried));
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} wrong over {interface:?}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_path_leads_out_over_stdio() {
    try_all(Interface::Stdio, 2, Part::All);
}

#[test]
fn no_path_leads_out_over_http() {
    try_all(Interface::Http, 2, Part::All);
}

/// Each call is a process of its own, so the whole matrix is for the long runs.
#[test]
fn no_path_leads_out_over_the_command_line() {
    try_all(Interface::Cli, 2, if is_soak() { Part::All } else { Part::OneOf(8) });
}

#[test]
fn every_argument_that_may_take_a_path_is_tried() {
    let test_env = TestEnvironment::usual();
    let workspace = test_env.workspace();
    for (slots, groups) in [(CODE, CODE_GROUPS), (SERVICE, "workspace")] {
        let options = [
            "--workspace",
            workspace.to_str().unwrap(),
            "--tools",
            groups,
            "--definitions",
            "full",
        ];
        let tools = Interface::Stdio.open(&test_env, &options).tools();
        let mut missing = Vec::new();
        for tool in &tools {
            let name = tool["name"].as_str().unwrap();
            let properties = tool["inputSchema"]["properties"].as_object().unwrap();
            for (argument, _) in
                properties.iter().filter(|(name, schema)| is_path_like(name, schema))
            {
                let tried = slots.iter().any(|one| one.tool == name && one.argument == argument);
                if !tried && !NO_PATHS.contains(&(name, argument)) {
                    missing.push(format!("{name}.{argument}"));
                }
            }
        }
        assert_eq!(missing, [""; 0], "no row in the table of {groups}");
        for slot in slots {
            let found = tools.iter().find(|tool| tool["name"] == slot.tool);
            let schema = found.unwrap_or_else(|| panic!("no tool {}", slot.tool));
            let property = &schema["inputSchema"]["properties"][slot.argument];
            assert!(property.is_object(), "{} has no {}", slot.tool, slot.argument);
        }
    }
}
