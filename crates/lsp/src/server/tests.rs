//! A server that follows a script, over streams in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use carrel_domain::sync;
use carrel_search::Cancel;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::definition::DEFINITIONS;
use crate::framing::{FrameReader, frame};
use crate::query::Target;
use crate::query::edits::WorkspaceChange;
use crate::query::locations::{FindLocations, Location, Locations, Relation};
use crate::query::rename::Rename;

/// A server that knows documents by what it is sent, and finds each `here` in them and on disk.
#[derive(Default)]
struct Script {
    documents: BTreeMap<String, String>,
    log: Arc<Mutex<Vec<String>>>,
    /// Replies to a request for references before the true one.
    before: Vec<Value>,
    /// Messages before each reply to a request.
    flood: Vec<Value>,
    /// The answer to a rename.
    change: Value,
}

impl Script {
    /// Serves until the client is gone.
    async fn serve(mut self, input: DuplexStream, mut output: DuplexStream) {
        let mut frames = FrameReader::new(input);
        while let Ok(body) = frames.next().await {
            let message: Value = serde_json::from_slice(&body).unwrap();
            for reply in self.replies(&message) {
                if output.write_all(&frame(reply.to_string().as_bytes())).await.is_err() {
                    return;
                }
            }
        }
    }

    fn replies(&mut self, message: &Value) -> Vec<Value> {
        let (id, method, params) = (&message["id"], message["method"].as_str(), &message["params"]);
        let document = &params["textDocument"];
        let uri = document["uri"].as_str().unwrap_or_default().to_owned();
        let name = uri.rsplit('/').next().unwrap_or_default();
        match method.unwrap_or_default() {
            "initialize" => {
                let capabilities = json!({ "referencesProvider": true, "renameProvider": true, "positionEncoding": "utf-8" });
                vec![json!({ "id": id, "result": { "capabilities": capabilities } })]
            }
            "textDocument/didOpen" => {
                self.note(format!("open {name}"));
                self.documents.insert(uri, document["text"].as_str().unwrap().to_owned());
                Vec::new()
            }
            "textDocument/didChange" => {
                self.note(format!("change {name}"));
                let text = params["contentChanges"][0]["text"].as_str().unwrap();
                self.documents.insert(uri, text.to_owned());
                Vec::new()
            }
            "textDocument/didClose" => {
                self.note(format!("close {name}"));
                self.documents.remove(&uri);
                Vec::new()
            }
            "workspace/didChangeWatchedFiles" => {
                for change in params["changes"].as_array().unwrap() {
                    let name =
                        change["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
                    self.note(format!("event {} {name}", change["type"]));
                }
                Vec::new()
            }
            "textDocument/rename" => vec![json!({ "id": id, "result": self.change })],
            "textDocument/references" if !self.flood.is_empty() => {
                let mut all = std::mem::take(&mut self.flood);
                all.push(json!({ "id": id, "result": self.found() }));
                all
            }
            "textDocument/references" => match self.before.pop() {
                Some(Value::Null) => Vec::new(),
                Some(reply) => vec![merged(reply, id)],
                None => vec![json!({ "id": id, "result": self.found() })],
            },
            _ => Vec::new(),
        }
    }

    fn note(&self, line: String) {
        sync::lock(&self.log).push(line);
    }

    fn found(&self) -> Value {
        let found = self.documents.iter().flat_map(|(uri, text)| {
            let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("here"));
            lines.map(move |(line, _)| {
                let at = |character| json!({ "line": line, "character": character });
                json!({ "uri": uri, "range": { "start": at(0), "end": at(4) } })
            })
        });
        found.collect()
    }
}

fn merged(mut reply: Value, id: &Value) -> Value {
    reply["id"] = id.clone();
    reply
}

struct Setting {
    directory: tempfile::TempDir,
    server: LanguageServer,
    log: Arc<Mutex<Vec<String>>>,
}

#[expect(clippy::disallowed_methods, reason = "tests change files as commands would")]
impl Setting {
    async fn new(server: &str, files: &[(&str, &str)], before: Vec<Value>) -> Self {
        Self::with(server, files, Script { before, ..Script::default() }).await
    }

    async fn with(server: &str, files: &[(&str, &str)], script: Script) -> Self {
        Self::in_directory(server, Self::directory(files), script).await
    }

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            std::fs::write(directory.path().join(path), text).unwrap();
        }
        directory
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(path)).unwrap()
    }

    async fn in_directory(server: &str, directory: tempfile::TempDir, script: Script) -> Self {
        let definition = DEFINITIONS.iter().find(|definition| definition.name == server).unwrap();
        let files = Root::open(directory.path()).unwrap();
        let files = ProjectFiles { files, watch: Arc::default() };
        let known = files.first_look(definition, &Cancel::new()).unwrap();
        let (output, to_client) = duplex(1 << 20);
        let (from_client, input) = duplex(1 << 20);
        let log = Arc::clone(&script.log);
        tokio::spawn(script.serve(from_client, to_client));
        let connection = Connection { output, input, process: None };
        let project = Project { files, root: PathBuf::new(), known };
        let server = LanguageServer::connect(definition, connection, project).await.unwrap();
        Self { directory, server, log }
    }

    fn put(&self, path: &str, text: &str) {
        std::fs::write(self.directory.path().join(path), text).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.directory.path().join(path)).unwrap();
    }

    async fn ask(&mut self, path: &str) -> Result<Reply<Locations>, Fault> {
        self.ask_within(path, Duration::from_secs(30)).await
    }

    async fn ask_within(&mut self, path: &str, time: Duration) -> Result<Reply<Locations>, Fault> {
        let target = Target::new(path, 0);
        let relation = Relation::References { with_declaration: true };
        self.server
            .answer(&FindLocations { target: &target, relation }, Instant::now() + time)
            .await
    }

    async fn rename(&mut self, path: &str) -> Result<Reply<WorkspaceChange>, Fault> {
        let target = Target::new(path, 0);
        let query = Rename { target: &target, new_name: "there" };
        self.server.answer(&query, Instant::now() + Duration::from_secs(30)).await
    }

    async fn found(&mut self, path: &str) -> Vec<String> {
        let answer = self.ask(path).await.unwrap().answer().unwrap();
        let found = answer.value.list.into_iter().map(|location| match location {
            Location::Inside { path, range } => format!("{}:{}", path.display(), range.start.line),
            Location::Outside { path, .. } => format!("outside {}", path.display()),
        });
        found.collect()
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut sync::lock(&self.log))
    }
}

#[tokio::test]
async fn each_change_is_sent_once_and_before_the_query() {
    let mut setting = Setting::new("gopls", &[("a.go", "here\n"), ("b.go", "x\n")], vec![]).await;
    assert_eq!(setting.found("a.go").await, ["a.go:1"]);
    assert_eq!(setting.log(), ["open a.go"]);
    assert_eq!(setting.found("a.go").await, ["a.go:1"]);
    assert_eq!(setting.log(), Vec::<String>::new());
    setting.put("a.go", "\nhere\n");
    setting.put("b.go", "here\n");
    setting.put("c.go", "here\n");
    assert_eq!(setting.found("a.go").await, ["a.go:2", "b.go:1", "c.go:1"]);
    let sent =
        ["event 2 a.go", "event 2 b.go", "event 1 c.go", "change a.go", "open b.go", "open c.go"];
    assert_eq!(setting.log(), sent);
    setting.remove("b.go");
    assert_eq!(setting.found("a.go").await, ["a.go:2", "c.go:1"]);
    assert_eq!(setting.log(), ["event 3 b.go", "close b.go"]);
}

#[tokio::test]
async fn a_write_that_changes_nothing_sends_no_text() {
    let mut setting = Setting::new("gopls", &[("a.go", "here\n")], vec![]).await;
    setting.found("a.go").await;
    setting.log();
    setting.put("a.go", "here\n");
    setting.found("a.go").await;
    // The write itself is seen or not, depending on the clock of the file system.
    let texts = setting.log().into_iter().filter(|line| !line.starts_with("event"));
    assert_eq!(texts.collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test]
async fn a_change_that_the_server_cannot_take_in_makes_a_new_one() {
    let mut setting = Setting::new("ty", &[("a.py", "here\n"), ("b.py", "x\n")], vec![]).await;
    setting.found("a.py").await;
    setting.remove("b.py");
    let restart = setting.ask("a.py").await.unwrap_err();
    assert!(matches!(restart, Fault::Restart("a source file has gone")), "{restart:?}");
    let mut setting = Setting::new("ty", &[("a.py", "here\n")], vec![]).await;
    setting.put("pyproject.toml", "");
    let restart = setting.ask("a.py").await.unwrap_err();
    assert!(matches!(restart, Fault::Restart("a project file has changed")), "{restart:?}");
    let mut setting = Setting::new("ty", &[("a.py", "here\n")], vec![]).await;
    for number in 0..200 {
        setting.put(&format!("m{number}.py"), "x\n");
    }
    let restart = setting.ask("a.py").await.unwrap_err();
    assert!(matches!(restart, Fault::Restart("many files have changed")), "{restart:?}");
}

#[tokio::test]
async fn documents_that_were_used_least_recently_are_closed() {
    let names: Vec<_> = (0..120).map(|number| format!("f{number:03}.go")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    let mut setting = Setting::new("gopls", &files, vec![]).await;
    for name in &names {
        setting.found(name).await;
    }
    let closed: Vec<_> =
        setting.log().into_iter().filter(|line| line.starts_with("close")).collect();
    let expected: Vec<_> = names[..20].iter().map(|name| format!("close {name}")).collect();
    assert_eq!(closed, expected);
}

#[tokio::test]
async fn a_server_whose_content_is_being_modified_is_asked_again() {
    let modified = json!({ "error": { "code": -32801, "message": "content modified" } });
    let before = vec![modified.clone(), modified];
    let mut setting = Setting::new("gopls", &[("a.go", "here\n")], before).await;
    assert_eq!(setting.found("a.go").await, ["a.go:1"]);
}

#[tokio::test]
async fn a_refusal_is_an_error_with_the_servers_words() {
    let refused = json!({ "error": { "code": -32603, "message": "no package for a.go" } });
    let mut setting = Setting::new("gopls", &[("a.go", "here\n")], vec![refused]).await;
    let error = setting.ask("a.go").await.unwrap_err();
    assert_eq!(error.to_string(), "gopls refuses: no package for a.go");
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_not_ready() {
    let mut setting = Setting::new("gopls", &[("a.go", "here\n")], vec![Value::Null]).await;
    let reply = setting.ask_within("a.go", Duration::from_millis(50)).await.unwrap();
    let pending = NotReady { server: "gopls", pending: "the answer".into(), estimate: None };
    assert_eq!(reply, Reply::NotReady(pending));
    assert_eq!(setting.found("a.go").await, ["a.go:1"]);
}

#[tokio::test]
async fn a_server_that_has_not_read_the_project_is_not_ready() {
    let mut setting = Setting::new("rust-analyzer", &[("a.rs", "here\n")], vec![]).await;
    let reply = setting.ask_within("a.rs", Duration::from_millis(50)).await.unwrap();
    let pending =
        NotReady { server: "rust-analyzer", pending: "loading the project".into(), estimate: None };
    assert_eq!(reply, Reply::NotReady(pending));
    let quiescent = json!({ "health": "ok", "quiescent": true });
    setting.server.observed.notified("experimental/serverStatus", quiescent);
    assert_eq!(setting.found("a.rs").await, ["a.rs:1"]);
    let failed = json!({ "health": "error", "quiescent": true, "message": "no Cargo.toml" });
    setting.server.observed.notified("experimental/serverStatus", failed);
    let answer = setting.ask("a.rs").await.unwrap().answer().unwrap();
    assert_eq!(answer.incomplete.as_deref(), Some("no Cargo.toml"));
}

#[tokio::test]
async fn an_uncertain_server_answers_when_it_says_the_same_twice() {
    let nothing = json!({ "result": [] });
    let mut setting = Setting::new("ruby-lsp", &[("a.rb", "here\n")], vec![nothing]).await;
    assert_eq!(setting.found("a.rb").await, ["a.rb:1"]);
}

#[tokio::test]
async fn results_in_files_that_changed_meanwhile_are_asked_for_again() {
    let files = [("a.go", "here\n"), ("b.go", "here\n")];
    // A location on a line that the file on disk does not have: it belongs to another text.
    let at = |line| json!({ "line": line, "character": 0 });
    let stale = |name: &str, directory: &Path| {
        let uri = crate::uri::of_path(&directory.join(name));
        json!({ "result": [{ "uri": uri, "range": { "start": at(7), "end": at(7) } }, 5] })
    };
    let mut setting = Setting::new("gopls", &files, vec![]).await;
    let reply = stale("b.go", setting.directory.path());
    let locations =
        crate::protocol::Lenient::read(reply["result"].clone(), crate::protocol::Location::read);
    assert_eq!(locations.malformed, 1);
    setting.found("a.go").await;
    assert_eq!(setting.server.resolve(locations.items.clone()).await.unwrap(), (Vec::new(), 1));
    setting.put("b.go", "changed\n");
    let changed = setting.server.resolve(locations.items).await.unwrap_err();
    assert!(matches!(changed, Fault::Stale), "{changed:?}");
}

#[tokio::test]
async fn locations_outside_of_the_workspace_are_named() {
    let at = json!({ "line": 4, "character": 1 });
    let range = json!({ "start": at, "end": at });
    let outside = json!({ "result": [
        { "uri": "file:///usr/lib/go/fmt/print.go", "range": range },
        { "uri": "jdt://contents/String.class", "range": range },
    ] });
    let mut setting = Setting::new("gopls", &[("a.go", "here\n")], vec![outside]).await;
    let answer = setting.ask("a.go").await.unwrap().answer().unwrap();
    let at = |path: &str| Location::Outside { path: path.into(), line: 5 };
    let list = vec![at("/usr/lib/go/fmt/print.go"), at("jdt://contents/String.class")];
    assert_eq!(answer.value, Locations { list, total: 2 });
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_initialize_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let files = Root::open(directory.path()).unwrap();
    let definition = DEFINITIONS.iter().find(|definition| definition.name == "gopls").unwrap();
    let (output, _silent) = duplex(1 << 20);
    let (_read, input) = duplex(1 << 20);
    let connection = Connection { output, input, process: None };
    let files = ProjectFiles { files, watch: Arc::default() };
    let project = Project { files, root: PathBuf::new(), known: Default::default() };
    let error = LanguageServer::connect(definition, connection, project).await.unwrap_err();
    assert_eq!(error, "initialize: no reply in time");
}

#[tokio::test]
async fn messages_that_nobody_asked_for_delay_no_answer() {
    let text = "x".repeat(1000);
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    let edit = json!({ "changes": { "file:///etc/passwd": [{ "range": range, "newText": "" }] } });
    let of_kind = |number: usize| match number % 5 {
        0 => json!({ "method": "window/logMessage", "params": { "type": 3, "message": text } }),
        1 => {
            json!({ "method": "$/progress", "params": { "token": number, "value": { "kind": "report" } } })
        }
        2 => json!({ "id": 1_000_000, "result": "to no request" }),
        3 => json!({ "method": "textDocument/publishDiagnostics", "params": {
            "uri": format!("file:///elsewhere/{number}"), "diagnostics": [{ "range": range, "message": text }],
        } }),
        _ => json!({ "method": "unknown", "params": [number] }),
    };
    let mut flood: Vec<_> = (0..50_000).map(of_kind).collect();
    let apply =
        json!({ "id": "edit", "method": "workspace/applyEdit", "params": { "edit": edit } });
    flood.push(apply);
    let script = Script { flood, ..Script::default() };
    let mut setting = Setting::with("gopls", &[("a.go", "here\n")], script).await;
    assert_eq!(setting.found("a.go").await, ["a.go:1"]);
}

#[tokio::test]
async fn a_change_that_leaves_the_workspace_or_its_files_is_refused_as_a_whole() {
    let at = |line: u64| json!({ "line": line, "character": 0 });
    let edit = |line| json!([{ "range": { "start": at(line), "end": at(line) }, "newText": "x" }]);
    for (path, line, reason) in [
        ("a.go", 7, "gopls sent what is no answer: a.go: there is no line 8"),
        (
            "a.go",
            u64::from(u32::MAX),
            "gopls sent what is no answer: a.go: there is no line 4294967295",
        ),
        ("a.go", u64::MAX, "gopls sent what is no answer: "),
        ("none.go", 0, "none.go is not UTF-8"),
        ("../other/a.go", 0, "gopls would change "),
        ("x/../../../etc/passwd", 0, "gopls would change "),
    ] {
        let directory = Setting::directory(&[("a.go", "here\n")]);
        let uri = format!("file://{}/{path}", directory.path().display());
        let mut changes = serde_json::Map::new();
        changes.insert(uri, edit(line));
        let change = json!({ "changes": changes });
        let script = Script { change, ..Script::default() };
        let mut setting = Setting::in_directory("gopls", directory, script).await;
        let error = setting.rename("a.go").await.unwrap_err().to_string();
        assert!(error.starts_with(reason), "{path} {line}: {error}");
        assert_eq!(setting.text("a.go"), "here\n");
    }
}

#[tokio::test]
async fn a_location_that_goes_up_is_outside() {
    let at = json!({ "line": 4, "character": 1 });
    let directory = Setting::directory(&[("a.go", "here\n")]);
    let uri = format!("file://{}/../secret.go", directory.path().display());
    let before = vec![json!({ "result": [{ "uri": uri, "range": { "start": at, "end": at } }] })];
    let script = Script { before, ..Script::default() };
    let mut setting = Setting::in_directory("gopls", directory, script).await;
    let found = setting.found("a.go").await;
    assert!(found[0].starts_with("outside ") && found[0].ends_with("/../secret.go"), "{found:?}");
}
