//! A language server on two pipes: what an editor has.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::projects::{Place, ServerProject};
use crate::Fault;

/// The time in which a server has to read the project.
const READY_TIME: Duration = Duration::from_mins(2);

/// The pause between questions to a server that is not ready.
const PAUSE: Duration = Duration::from_millis(200);

/// A client that asks for one definition.
pub(super) struct PlainClient {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    uri: String,
    last_id: u64,
}

impl PlainClient {
    /// Starts a server by its command line and asks until it knows the definition of what is used at a place; none if it never does.
    pub(super) fn start(
        mut command: Command,
        project: ServerProject,
        directory: &Path,
        first: Place,
    ) -> Result<Option<Self>, Fault> {
        let file = project.file();
        command
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let (root, uri) = (uri(directory), uri(&directory.join(file)));
        let mut client = Self { server: child, input, output, uri: uri.clone(), last_id: 0 };
        let folders = json!([{ "uri": root, "name": "project" }]);
        let params = json!({
            "processId": std::process::id(), "rootUri": root, "workspaceFolders": folders,
            "capabilities": { "general": { "positionEncodings": ["utf-16"] } },
        });
        client.request("initialize", &params)?;
        client.send(&json!({ "method": "initialized", "params": {} }))?;
        let text = std::fs::read_to_string(directory.join(file))?;
        let language = project.language();
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        let opened = json!({ "textDocument": document });
        client.send(&json!({ "method": "textDocument/didOpen", "params": opened }))?;
        let until = Instant::now() + READY_TIME;
        while !client.knows(first)? {
            if Instant::now() > until {
                client.end()?;
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Some(client))
    }

    /// Asks about what is used at a place, and returns the time of the answer.
    pub(super) fn time(&mut self, place: Place) -> Result<Duration, Fault> {
        let begun = Instant::now();
        self.knows(place)?;
        Ok(begun.elapsed())
    }

    fn knows(&mut self, place: Place) -> Result<bool, Fault> {
        let position = json!({ "line": place.line - 1, "character": place.column - 1 });
        let question = json!({ "textDocument": { "uri": self.uri }, "position": position });
        let answer = self.request("textDocument/definition", &question)?;
        Ok(match &answer["result"] {
            Value::Array(places) => !places.is_empty(),
            found => found.is_object(),
        })
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Fault> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.receive()?;
            if message["id"] == id && message["method"].is_null() {
                return Ok(message);
            }
            // Requests of the server, for settings and progress, want an answer.
            if !message["id"].is_null() && message["method"].is_string() {
                let asked = message["params"]["items"].as_array().map_or(0, Vec::len);
                let settings = vec![Value::Null; asked];
                self.send(&json!({ "id": message["id"], "result": settings }))?;
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Fault> {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(self.input.flush()?)
    }

    fn receive(&mut self) -> Result<Value, Fault> {
        let mut length = None;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            match line.trim().split_once(':') {
                None if length.is_some() => break,
                Some(("Content-Length", number)) => length = Some(number.trim().parse()?),
                Some(_) | None => {}
            }
        }
        let mut body = vec![0; length.unwrap_or(0)];
        self.output.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Kills the server.
    pub(super) fn end(mut self) -> Result<(), Fault> {
        self.server.kill()?;
        self.server.wait()?;
        Ok(())
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}
