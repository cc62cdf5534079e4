//! `--read-only`, proven by the file system: every registered tool runs through every session, and
//! afterwards no byte, no name, no mode, no owner and no time in the tree is another.
//!
//! Access times are part of it where the mount does not write them by itself: everything is dated so
//! that a mount with `relatime` leaves it alone, and a probe tells when one does not.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::audit::{self, difference};
use crate::interfaces::{Interface, ToolSession};
use crate::test_environment::TestEnvironment;

/// What a program of the repository would print.
const RAN: &str = "PLANTED-PROGRAM-RAN";

/// Runs the git of the host.
fn git(directory: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(directory).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "safe.directory=*"]);
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository with projects, odd files, work in progress, and programs wherever git looks for some.
struct Ground {
    test_env: TestEnvironment,
    top: PathBuf,
    /// Hears from a program that runs even where nothing can be written.
    ear: std::fs::File,
}

impl Ground {
    fn new() -> Self {
        let test_env = TestEnvironment::usual();
        let top = test_env.workspace();
        for (name, text) in [
            (
                "Cargo.toml",
                "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"),
            ("web/package.json", r#"{"name": "web", "scripts": {"test": "node --test"}}"#),
            ("web/a.test.js", "require('node:test')('good', () => {});\n"),
            ("py/pyproject.toml", "[project]\nname = \"py\"\nversion = \"1\"\n[tool.ruff]\n"),
            ("file", "one\ntwo\nthree\n"),
            ("crlf", "a\r\nb\r\n"),
            (".gitignore", "ignored\n"),
            ("ignored", "one\n"),
            (".hidden", "one\n"),
            ("py/shop.py", "def price(n):\n    return n\n\n\nprice(2)\n"),
            ("web/shop.ts", "export function cost(n: number) { return n; }\ncost(2);\n"),
            ("build.rs", "fn main() {}\n"),
        ] {
            test_env.write(name, text);
        }
        std::fs::write(top.join("image.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        std::fs::write(top.join("binary"), b"\x7fELF\0\0\0").unwrap();
        symlink("file", top.join("link")).unwrap();
        symlink("/etc/passwd", top.join("outward")).unwrap();
        git(&top, &["init", "-q", "-b", "main"]);
        git(&top, &["add", "."]);
        git(&top, &["commit", "-q", "-m", "first"]);
        std::fs::write(top.join("file"), "one\n2\nthree\n").unwrap();
        git(&top, &["stash", "-q"]);
        std::fs::write(top.join("file"), "one\nzwei\nthree\n").unwrap();
        std::fs::write(top.join("staged"), "new\n").unwrap();
        git(&top, &["add", "staged"]);
        std::fs::write(top.join("untracked"), "new\n").unwrap();
        special(&top.join("fifo"));
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut options = std::fs::File::options();
        let options = options.read(true).write(true).custom_flags(nonblocking);
        let ear = options.open(top.join("fifo")).unwrap();
        plant(&top);
        plant_servers(&top);
        let ground = Self { test_env, top, ear };
        ground.show_that_the_plants_work();
        ground.date();
        ground
    }

    /// What was planted has run: somewhere it left a sign.
    fn has_run(&mut self) -> bool {
        let mut heard = [0; 1];
        let told = self.ear.read(&mut heard).is_ok_and(|read| read > 0);
        told || self.top.join("ran").exists()
    }

    /// The git of the host, which obeys the repository, runs them.
    fn show_that_the_plants_work(&self) {
        let copy = self.test_env.path("copy");
        let mut command = Command::new("cp");
        assert!(command.arg("-a").arg(&self.top).arg(&copy).status().unwrap().success());
        let config = std::fs::read_to_string(copy.join(".git/config")).unwrap();
        let there = copy.display().to_string();
        std::fs::write(
            copy.join(".git/config"),
            config.replace(&self.top.display().to_string(), &there),
        )
        .unwrap();
        std::fs::write(copy.join(".git/evil"), evil(&copy)).unwrap();
        for words in [&["status"][..], &["diff"], &["log", "-p"], &["show", "--ext-diff"]] {
            let mut command = Command::new("git");
            command.current_dir(&copy).env("HOME", "/nonexistent");
            command.args(["-c", "safe.directory=*"]).args(words).output().unwrap();
        }
        assert!(copy.join("ran").exists(), "the plants do nothing at all");
        std::fs::remove_dir_all(copy).unwrap();
    }

    /// Dates everything so that a look leaves no trace: read later than it was changed.
    fn date(&self) {
        let now = SystemTime::now();
        let (changed, read) = (now - Duration::from_hours(2), now + Duration::from_hours(1));
        let seconds = |time: SystemTime| rustix::fs::Timespec {
            tv_sec: time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().cast_signed(),
            tv_nsec: 0,
        };
        let times = rustix::fs::Timestamps {
            last_access: seconds(read),
            last_modification: seconds(changed),
        };
        for path in audit::tree(&self.top).keys() {
            let (at, flags) = (rustix::fs::CWD, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            rustix::fs::utimensat(at, self.top.join(path), &times, flags).unwrap();
        }
    }

    /// Looks at everything; without access times where a look writes them.
    fn look(&self) -> audit::Tree {
        // A look writes the access time of what was changed after it was last read, and only that.
        audit::tree(&self.top);
        let first = audit::tree(&self.top);
        let second = audit::tree(&self.top);
        if first == second {
            return second;
        }
        carrel_skip::unavailable("a mount that does not write access times on every look");
        audit::without_access(second)
    }
}

fn special(path: &Path) {
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, 0o666.into(), 0).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
}

/// A program that leaves a sign in every interface it has.
fn evil(top: &Path) -> String {
    let top = top.display();
    format!(
        "#!/bin/sh\necho {RAN}\necho {RAN} >&2\n(echo x <> {top}/fifo >&0) 2>/dev/null\n\
         touch {top}/ran 2>/dev/null\ncat 2>/dev/null\nexit 0\n"
    )
}

/// Puts a program wherever git looks for one.
fn plant(top: &Path) {
    let program = top.join(".git/evil");
    std::fs::write(&program, evil(top)).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let hooks = top.join(".git/planted-hooks");
    std::fs::create_dir(&hooks).unwrap();
    for name in
        ["post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"]
    {
        std::fs::copy(&program, hooks.join(name)).unwrap();
    }
    let evil = program.display();
    let config = format!(
        "[core]\n\tfsmonitor = {evil}\n\thooksPath = {hooks}\n\tpager = {evil}\n\teditor = {evil}\n\
         \tsshCommand = {evil}\n\taskPass = {evil}\n\
         [filter \"evil\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n\
         [diff]\n\texternal = {evil}\n\
         [diff \"evil\"]\n\ttextconv = {evil}\n\tcommand = {evil}\n\
         [gpg]\n\tprogram = {evil}\n[log]\n\tshowSignature = true\n\
         [pager]\n\tlog = {evil}\n\tdiff = {evil}\n\tstatus = {evil}\n\tshow = {evil}\n\
         [interactive]\n\tdiffFilter = {evil}\n\
         [alias]\n\tstatus = !{evil}\n",
        hooks = hooks.display(),
    );
    let path = top.join(".git/config");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{before}{config}")).unwrap();
    std::fs::write(top.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
}

/// Puts a program wherever language servers are looked for in a project, and a build script beside the manifest.
fn plant_servers(top: &Path) {
    for name in [
        "py/.venv/bin/ty",
        "py/.venv/bin/basedpyright-langserver",
        ".venv/bin/ty",
        "web/node_modules/.bin/typescript-language-server",
        "node_modules/.bin/typescript-language-server",
        "node_modules/.bin/vtsls",
    ] {
        let path = top.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, evil(top)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let command = format!(
        "fn main() {{\n    std::process::Command::new(\"{}/.git/evil\").status().unwrap();\n}}\n",
        top.display()
    );
    std::fs::write(top.join("build.rs"), command).unwrap();
}

/// Calls of one tool, and whether they have to succeed.
fn calls(tool: &str) -> Option<Vec<(Value, bool)>> {
    let inspect = |operation: &str, args: &[&str]| json!({ "operation": operation, "args": args });
    let read = |path: &str| json!({ "file_path": path });
    let named = |symbol: &str| json!({ "symbol": symbol });
    let use_at =
        |path: &str, line: u64, col: u64| json!({ "file_path": path, "line": line, "col": col });
    let rows = match tool {
        "Read" => vec![
            (read("file"), true),
            (read("crlf"), true),
            (read("link"), true),
            (read("image.png"), true),
            (json!({ "file_path": "file", "around_line": 2, "context_lines": 1 }), true),
            (read("binary"), false),
            (read("fifo"), false),
            (read("outward"), false),
            (read("new/file"), false),
        ],
        "LS" => {
            vec![(json!({}), true), (json!({ "depth": 9 }), true), (json!({ "path": "src" }), true)]
        }
        "Glob" => vec![
            (json!({ "pattern": "**", "hidden": true, "ignored": true }), true),
            (json!({ "pattern": "*.rs", "path": "src", "sort_by_path": true }), true),
        ],
        "Grep" => vec![
            (json!({ "pattern": "one|x", "hidden": true, "ignored": true }), true),
            (json!({ "pattern": "o", "output_mode": "count" }), true),
            (json!({ "pattern": "a.*b", "multiline": true, "workspace": "all" }), true),
        ],
        "git_inspect" => vec![
            (inspect("status", &[]), true),
            (inspect("diff", &[]), true),
            (inspect("diff", &["--cached"]), true),
            (inspect("diff", &["--stat"]), true),
            (inspect("log", &["-p"]), true),
            (inspect("log", &["--show-signature"]), false),
            (inspect("show", &["HEAD"]), true),
            (inspect("show", &["HEAD:file"]), true),
            (inspect("blame", &["file"]), true),
            (inspect("branch", &[]), true),
            (inspect("branch", &["new"]), false),
            (inspect("stash", &["list"]), true),
            (inspect("stash", &["show", "-p"]), true),
            (inspect("stash", &["pop"]), false),
            (inspect("diff", &["--ext-diff"]), false),
            (inspect("diff", &["--textconv"]), false),
            (inspect("diff", &["--output=stolen"]), false),
            (inspect("checkout", &["."]), false),
            (inspect("commit", &["-m", "x"]), false),
        ],
        "profile" => vec![
            (json!({}), true),
            (json!({ "path": "src/lib.rs" }), true),
            (json!({ "path": "web" }), true),
            (json!({ "path": "py" }), true),
        ],
        "outline" => vec![
            (json!({}), true),
            (json!({ "path": "src/lib.rs" }), true),
            (json!({ "path": "gone.rs" }), false),
        ],
        "read_symbol" => vec![(named("add"), true), (named("nothing"), false)],
        "find_definition" => vec![
            (named("add"), true),
            (use_at("src/lib.rs", 1, 8), true),
            (use_at("py/shop.py", 5, 1), true),
            (use_at("web/shop.ts", 2, 1), true),
        ],
        "find_references" => vec![
            (named("add"), true),
            (named("price"), true),
            (named("cost"), true),
            (json!({ "symbol": "price", "calls": "callers" }), false),
        ],
        "find_implementations" => vec![(named("add"), false), (named("price"), false)],
        "hover" => vec![(named("add"), true), (named("price"), true), (named("cost"), true)],
        "diagnostics" => vec![
            (json!({}), false),
            (json!({ "path": "src/lib.rs" }), false),
            (json!({ "path": "py/shop.py" }), false),
            (json!({ "path": "web/shop.ts" }), false),
        ],
        "search_code" => vec![(json!({ "query": "add" }), true)],
        "code_scan" => vec![(json!({ "pattern": "price($N)" }), true)],
        "tests_covering" => vec![(json!({ "file": "src/lib.rs" }), true)],
        "repo_map" | "last_test_failures" | "workspaces" | "secrets_available" => {
            vec![(json!({}), true)]
        }
        "secret" => vec![(json!({ "name": "kit" }), true), (json!({ "name": "nope" }), false)],
        "workspace_read_file" => {
            vec![(json!({ "path": "file" }), true), (json!({ "path": "fifo" }), false)]
        }
        "workspace_list_dir" => vec![(json!({ "path": "." }), true), (json!({}), true)],
        "workspace_grep" => vec![(json!({ "pattern": "one" }), true)],
        _ => return None,
    };
    Some(rows)
}

/// Sensible arguments for everything that is not there.
fn changing() -> Vec<(&'static str, Value)> {
    let bash = json!({ "command": "touch new" });
    let patch = "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n-one\n+eins\n zwei\n three\n";
    vec![
        ("Write", json!({ "file_path": "new", "content": "x" })),
        ("Write", json!({ "file_path": "file", "content": "x" })),
        ("Edit", json!({ "file_path": "file", "old_string": "one", "new_string": "x" })),
        ("MultiEdit", json!({ "file_path": "file", "edits": [] })),
        ("ApplyPatch", json!({ "patch": patch })),
        ("Move", json!({ "source": "file", "destination": "new" })),
        ("Delete", json!({ "path": "file" })),
        ("Bash", bash.clone()),
        ("BashOutput", json!({ "shell_id": "job_1" })),
        ("KillShell", json!({ "shell_id": "job_1" })),
        ("watch_process", bash.clone()),
        ("watch_process_events", json!({ "shell_id": "job_1" })),
        ("shell_run", json!({ "cmd": "touch", "args": ["new"] })),
        ("git", json!({ "operation": "add", "args": ["untracked"] })),
        ("run_tests", json!({})),
        ("run_lint", json!({})),
        ("run_typecheck", json!({})),
        ("run_failing_tests", json!({})),
        ("run_script", json!({ "name": "test" })),
        ("format", json!({})),
        ("install", json!({})),
        ("render_dot", json!({ "source": "digraph {}", "output_path": "new.svg" })),
        ("render_mermaid", json!({ "source": "graph TD", "output_path": "new.svg" })),
        ("workspace_write_file", json!({ "path": "new", "content": "x" })),
        ("workspace_exec", bash),
        ("workspace_git", json!({ "operation": "add", "args": "untracked" })),
        ("rename_symbol", json!({ "symbol": "add", "new_name": "sum" })),
        (
            "code_edit",
            json!({ "path": "src", "edits": [{ "op": "rename", "from": "add", "to": "sum" }] }),
        ),
        ("edit_function_body", json!({ "function_name": "add", "new_body": "0" })),
        (
            "change_function_signature",
            json!({ "function_name": "add", "new_signature": "pub fn add()" }),
        ),
        (
            "insert_after_method",
            json!({ "receiver_type": "A", "method_name": "b", "new_method": "fn c() {}" }),
        ),
        ("replace_symbol", json!({ "symbol": "add", "new_text": "fn add() {}" })),
        ("insert_before_symbol", json!({ "symbol": "add", "new_text": "fn first() {}" })),
        ("insert_after_symbol", json!({ "symbol": "add", "new_text": "fn last() {}" })),
        ("delete_symbol", json!({ "symbol": "add", "force": true })),
    ]
}

fn open(interface: Interface, ground: &Ground, options: &[&str]) -> Box<dyn ToolSession> {
    let workspace = ground.top.to_str().unwrap();
    let options = [&["--workspace", workspace], options].concat();
    interface.open_with(&ground.test_env, &options, |command| {
        command.env("CARREL_SECRET_KIT", "a-value-of-the-kit");
    })
}

fn names(session: &mut dyn ToolSession) -> BTreeSet<String> {
    session.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The groups of tools for work on code.
const CODE: &str = "files,shell,verify,git,code,secrets";

/// Calls everything that there is, and everything that there is not.
fn call_everything(interface: Interface, ground: &Ground, groups: &str) -> Vec<String> {
    let mut session = open(interface, ground, &["--tools", groups, "--read-only"]);
    let offered = names(&mut *session);
    let mut wrong = Vec::new();
    for tool in &offered {
        let Some(rows) = calls(tool) else {
            wrong.push(format!("{tool} is offered, and has no row in the table"));
            continue;
        };
        for (arguments, succeeds) in rows {
            let answer = session.call(tool, arguments.clone());
            let shown: String = answer.text.chars().take(300).collect();
            if answer.is_error == succeeds {
                wrong
                    .push(format!("{interface:?} {tool} {arguments}: {:?} {shown}", answer.code()));
            }
            if answer.code() == Some("E_INTERNAL") {
                wrong.push(format!("{interface:?} {tool} {arguments}: {shown}"));
            }
            if format!("{} {}", answer.text, answer.structured).contains(RAN)
                && !format!("{arguments}").contains("evil")
            {
                wrong.push(format!(
                    "{interface:?} {tool} {arguments} ran what was planted: {shown}"
                ));
            }
        }
    }
    for (tool, arguments) in changing() {
        if offered.contains(tool) {
            wrong.push(format!("{tool} is offered"));
        }
        let answer = session.call(tool, arguments);
        if answer.code() != Some("E_UNKNOWN_TOOL") {
            wrong.push(format!("{interface:?} {tool}: {answer:?}"));
        }
    }
    wrong
}

fn prove(interface: Interface) {
    let mut ground = Ground::new();
    let before = ground.look();
    let mut wrong = call_everything(interface, &ground, CODE);
    wrong.extend(call_everything(interface, &ground, "workspace"));
    wrong.extend(difference(&before, &ground.look()));
    if ground.has_run() {
        wrong.push("a program of the repository has run".into());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_changes_and_nothing_planted_runs_over_stdio() {
    prove(Interface::Stdio);
}

#[test]
fn nothing_changes_and_nothing_planted_runs_over_http() {
    prove(Interface::Http);
}

#[test]
fn nothing_changes_and_nothing_planted_runs_over_the_command_line() {
    prove(Interface::Cli);
}

/// The two tables hold every tool there is, and none is in both.
#[test]
fn every_tool_is_either_for_looking_or_for_changing() {
    let ground = Ground::new();
    let changing: BTreeSet<_> = changing().into_iter().map(|(tool, _)| tool.to_owned()).collect();
    for groups in [CODE, "workspace"] {
        let all = names(&mut *open(Interface::Stdio, &ground, &["--tools", groups]));
        let kept =
            names(&mut *open(Interface::Stdio, &ground, &["--tools", groups, "--read-only"]));
        assert!(kept.is_subset(&all));
        for tool in &all {
            let (looks, changes) = (calls(tool).is_some(), changing.contains(tool));
            assert!(looks != changes, "{tool}: looks {looks}, changes {changes}");
            assert_eq!(looks, kept.contains(tool), "{tool}");
        }
    }
}

/// An audit that saw nothing would prove nothing.
#[test]
fn the_audit_sees_every_kind_of_change() {
    let ground = Ground::new();
    let file = ground.top.join("file");
    let acts: [(&str, &dyn Fn()); 6] = [
        ("a byte", &|| std::fs::write(&file, "One\nzwei\nthree\n").unwrap()),
        ("a mode", &|| {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        }),
        ("a name", &|| std::fs::write(ground.top.join("new"), "").unwrap()),
        ("a time", &|| {
            let file = std::fs::File::options().append(true).open(&file).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }),
        ("a link", &|| {
            std::fs::remove_file(ground.top.join("link")).unwrap();
            symlink("crlf", ground.top.join("link")).unwrap();
        }),
        ("the same again", &|| std::fs::write(&file, "One\nzwei\nthree\n").unwrap()),
    ];
    for (what, act) in acts {
        let before = ground.look();
        assert_eq!(difference(&before, &ground.look()), [""; 0], "a look is no change");
        act();
        assert!(!difference(&before, &ground.look()).is_empty(), "{what} is not seen");
    }
}
