//! A server with a data directory of its own, and `curl` as its client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::interfaces::Server;
use crate::test_environment::{TestEnvironment, peak_memory};

/// No request of the kit takes longer than this unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// A running `carrel serve`.
pub(crate) struct Service {
    pub(crate) test_env: TestEnvironment,
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    variables: Vec<(String, String)>,
    options: Vec<String>,
}

impl Service {
    /// Starts one with nothing in its data directory.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one in an environment with more in it.
    pub(crate) fn start_with(variables: &[(&str, &str)]) -> Self {
        Self::start_as(&[], variables)
    }

    /// Starts one with more options, in an environment with more in it.
    pub(crate) fn start_as(options: &[&str], variables: &[(&str, &str)]) -> Self {
        let test_env = TestEnvironment::usual();
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
        let (server, address) = begin(serve(&test_env, &options, &variables));
        Self { test_env, server, address, variables, options }
    }

    /// Starts it again with what is in its data directory.
    pub(crate) fn begin_again(&mut self) {
        (self.server, self.address) = begin(serve(&self.test_env, &self.options, &self.variables));
    }

    /// Starts it again at the address that it had.
    pub(crate) fn begin_again_here(&mut self) {
        let mut command = self.serve(&self.address.to_string());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        (self.server, self.address) = begin(command);
    }

    /// Sets a variable for the next start.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) {
        self.server.signal(Signal::KILL);
        self.server.wait(DEADLINE);
    }

    /// Asks it to end, and returns how it did and after how long.
    pub(crate) fn terminate(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        self.server.signal(Signal::TERM);
        (self.server.wait(DEADLINE), begun.elapsed())
    }

    /// `carrel serve` for the same data directory.
    pub(crate) fn serve(&self, bind: &str) -> Command {
        let mut command = self.test_env.carrel();
        command.args(["serve", "--bind", bind, "--data"]).arg(self.test_env.path("data"));
        command
    }

    /// `carrel token new` with these options; returns what it prints.
    pub(crate) fn token(&self, options: &[&str]) -> String {
        let mut command = self.test_env.carrel();
        command.args(["token", "new", "--data"]).arg(self.test_env.path("data")).args(options);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A client with the usual scopes in a workspace that nobody has used before.
    pub(crate) fn client(&self) -> Client {
        self.client_for(&new_id(), "read,write,exec")
    }

    /// A client of one workspace.
    pub(crate) fn client_for(&self, workspace: &str, scopes: &str) -> Client {
        let token = self.token(&["--id", workspace, "--scope", scopes]);
        Client { address: self.address, token: Some(token), workspace: workspace.to_owned() }
    }

    /// A client of one workspace whose bearer has a name.
    pub(crate) fn client_named(&self, workspace: &str, subject: &str) -> Client {
        let token = self.token(&["--id", workspace, "--subject", subject]);
        Client { address: self.address, token: Some(token), workspace: workspace.to_owned() }
    }

    /// A client of all workspaces that may do everything.
    pub(crate) fn operator(&self) -> Client {
        let token = self.token(&["--all", "--scope", "read,write,exec,net,admin"]);
        Client { address: self.address, token: Some(token), workspace: String::new() }
    }

    /// A client without a token.
    pub(crate) fn stranger(&self) -> Client {
        Client { address: self.address, token: None, workspace: new_id() }
    }

    /// A client of a workspace with a small quota.
    pub(crate) fn cramped(&self, mebibytes: f64) -> Client {
        let asked = json!({ "name": "small", "quota_gb": mebibytes / 1024.0 });
        let made = self.operator().post("/api/workspaces", &asked).expect(201);
        self.client_for(made["id"].as_str().unwrap(), "read,write,exec")
    }
}

/// What a server may take for a single piece of work, in KiB: half of what is promised.
const MOST_MEMORY: u64 = 32 << 10;

/// Tells what a server takes on top of what it had. A program with debug information has much of itself in
/// memory, which is not what anything costs.
pub(crate) struct Meter {
    pid: i32,
    before: u64,
}

impl Service {
    pub(crate) fn meter(&self) -> Meter {
        // The code that a piece of work runs is in memory then.
        self.client().done(&json!([{ "action": "shell", "command": "echo warm" }]));
        let pid = self.server.pid();
        Meter { pid, before: peak_memory(pid).unwrap() }
    }
}

impl Meter {
    pub(crate) fn shows_little(&self) {
        let taken = peak_memory(self.pid).unwrap() - self.before;
        eprintln!("{taken} KiB on top of {}", self.before);
        assert!(taken < MOST_MEMORY, "{taken} KiB");
    }
}

fn serve(
    test_env: &TestEnvironment,
    options: &[String],
    variables: &[(String, String)],
) -> Command {
    let mut command = test_env.carrel();
    command
        .args(["serve", "--bind", "127.0.0.1:0", "--data"])
        .arg(test_env.path("data"))
        .args(options);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

fn begin(command: Command) -> (Server, SocketAddr) {
    let mut server = Server::start(command, Stdio::null(), Stdio::null());
    let deadline = Instant::now() + DEADLINE;
    loop {
        let text = server.stderr();
        let line =
            text.lines().find_map(|line| line.strip_prefix("carrel serve listening on http://"));
        // It says more at once, and a reader of that wants all of it.
        if let (Some(address), true) = (line, text.contains("curl -N")) {
            return (server, address.parse().unwrap());
        }
        let ended = server.child.try_wait().unwrap();
        assert!(ended.is_none() && Instant::now() < deadline, "it does not listen: {text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An id that no workspace has.
pub(crate) fn new_id() -> String {
    let digits = fastrand::u128(..);
    let text = format!("{digits:032x}");
    format!("{}-{}-4{}-8{}-{}", &text[..8], &text[8..12], &text[13..16], &text[17..20], &text[20..])
}

/// Somebody who uses the API.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    pub(crate) workspace: String,
}

impl Client {
    /// `curl` with the client's token and these words.
    fn curl(&self, path: &str, words: &[&str]) -> Command {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--no-buffer", "--include", "--globoff"]);
        command.args(["--path-as-is", "--max-time", "90", "--header", "Expect:"]);
        if let Some(token) = &self.token {
            command.args(["--header", &format!("Authorization: Bearer {token}")]);
        }
        command.args(words).arg(format!("http://{}{path}", self.address));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Sends a request with more words for `curl`, and a body if there is one.
    pub(crate) fn send(&self, path: &str, words: &[&str], body: Option<&[u8]>) -> Reply {
        self.try_send(path, words, body).unwrap_or_else(|error| panic!("{path} {words:?}: {error}"))
    }

    /// Sends a request that the server may be too dead to answer.
    pub(crate) fn try_send(
        &self,
        path: &str,
        words: &[&str],
        body: Option<&[u8]>,
    ) -> Result<Reply, String> {
        let with_body = [words, &["--data-binary", "@-"]].concat();
        let mut command = self.curl(path, if body.is_some() { &with_body } else { words });
        if body.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        if let (Some(body), Some(mut input)) = (body, child.stdin.take()) {
            // A server that refuses the body at once closes the connection.
            let _ = input.write_all(body);
        }
        let output = child.wait_with_output().unwrap();
        let reply = Reply::parse(&output.stdout);
        reply.filter(|_| output.status.success()).ok_or_else(|| format!("{output:?}"))
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send(path, &[], None)
    }

    /// Sends a request with a query.
    pub(crate) fn query(&self, path: &str, pairs: &[(&str, &str)]) -> Reply {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut words = vec!["--get"];
        words.extend(pairs.iter().flat_map(|pair| ["--data-urlencode", pair]));
        self.send(path, &words, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(path, &[], Some(body.to_string().as_bytes()))
    }

    /// Sends a change with an idempotency key.
    pub(crate) fn post_once(&self, path: &str, key: &str, body: &Value) -> Reply {
        let header = format!("Idempotency-Key: {key}");
        self.send(path, &["--header", &header], Some(body.to_string().as_bytes()))
    }

    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.send(path, &["--request", "DELETE"], None)
    }

    /// The address of something in the client's workspace.
    pub(crate) fn at(&self, rest: &str) -> String {
        format!("/api/workspaces/{}{rest}", self.workspace)
    }

    /// Runs a command line.
    pub(crate) fn exec(&self, command: &str) -> Reply {
        self.post(&self.at("/exec"), &json!({ "command": command }))
    }

    /// Runs a command line that has to end well, and returns what it printed.
    pub(crate) fn run(&self, command: &str) -> String {
        let done = self.exec(command).expect(200);
        assert_eq!(done["exit_code"], 0, "{command}: {done}");
        done["stdout"].as_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> Reply {
        self.post(&self.at("/files/write"), &json!({ "path": path, "content": content }))
    }

    pub(crate) fn read(&self, path: &str) -> Reply {
        self.query(&self.at("/files/content"), &[("path", path)])
    }

    /// Submits a task that has to be taken, and returns its id.
    pub(crate) fn submit(&self, body: &Value) -> String {
        let taken = self.post("/api/tasks/submit", body).expect(200);
        taken["task_id"].as_str().unwrap().to_owned()
    }

    /// Submits a task of one command.
    pub(crate) fn submit_command(&self, command: &str) -> String {
        self.submit(&json!({ "steps": [{ "action": "shell", "command": command }] }))
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.get(&format!("/api/tasks/{id}")).expect(200)
    }

    /// Waits until a task is over, and returns all there is to say about it.
    pub(crate) fn finished(&self, id: &str) -> Value {
        self.events(id, 0);
        self.task(id)
    }

    /// Submits a task of steps and returns how it ended.
    pub(crate) fn done(&self, steps: &Value) -> Value {
        self.finished(&self.submit(&json!({ "steps": steps })))
    }

    /// Reads the events of a task behind a number until the stream ends.
    pub(crate) fn events(&self, id: &str, after: u64) -> Vec<Event> {
        let header = format!("Last-Event-ID: {after}");
        let path = format!("/api/tasks/{id}/events");
        let words: &[&str] = if after == 0 { &[] } else { &["--header", &header] };
        let reply = self.send(&path, words, None);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        events(&reply.body)
    }

    /// Reads what comes of an answer until `curl` gives up or the server does.
    pub(crate) fn read_some(&self, path: &str, words: &[&str]) -> String {
        let output = self.curl(path, words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    }

    /// Opens the event stream of a task, waits for its first event and leaves it open.
    pub(crate) fn open_events(&self, id: &str) -> Open {
        let mut child = self.curl(&format!("/api/tasks/{id}/events"), &[]).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut open = Open { child, output, text: String::new() };
        while !open.text.contains("event: ") {
            let read = open.output.read_line(&mut open.text).unwrap();
            assert!(read > 0, "no event: {}", open.text);
        }
        open
    }

    /// Waits until something is said of a task.
    pub(crate) fn until(&self, id: &str, what: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let task = self.task(id);
            if what(&task) {
                return task;
            }
            assert!(Instant::now() < deadline, "it never came true: {task}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A request that is being answered. It is broken off when this is dropped.
pub(crate) struct Open {
    child: Child,
    output: BufReader<ChildStdout>,
    text: String,
}

impl Open {
    /// Waits until the server has ended it, and returns what came.
    pub(crate) fn ended(mut self) -> String {
        self.output.read_to_string(&mut self.text).unwrap();
        std::mem::take(&mut self.text)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the server answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Some(Self { status, headers: headers.collect(), body: body.to_owned() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The value of an answer with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The status and the code of a refusal, which has the one envelope.
    #[track_caller]
    pub(crate) fn refused(&self) -> (u16, String) {
        let value = self.json();
        let error = &value["error"];
        let is_text = |name: &str| error[name].as_str().is_some_and(|text| !text.is_empty());
        let is_envelope = value.as_object().is_some_and(|fields| fields.len() == 1)
            && ["code", "kind", "message"].into_iter().all(is_text)
            && error["detail"].is_object();
        assert!(is_envelope && self.status >= 400, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        (self.status, error["code"].as_str().unwrap().to_owned())
    }

    /// Asserts the status and the code of a refusal.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, code: &str) {
        assert_eq!(self.refused(), (status, code.to_owned()), "{self:?}");
    }
}

/// One event of a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Event {
    /// The status that it tells.
    pub(crate) fn status(&self) -> Option<&str> {
        (self.kind == "status_changed").then(|| self.data["status"].as_str()).flatten()
    }

    /// Tells whether it is the last one of a task.
    pub(crate) fn is_last(&self) -> bool {
        self.status().is_some_and(|status| !matches!(status, "queued" | "running"))
    }
}

/// Reads the whole events of a stream.
pub(crate) fn events(text: &str) -> Vec<Event> {
    // What stands behind the last empty line was cut off.
    let Some((whole, _)) = text.rsplit_once("\n\n") else { return Vec::new() };
    let frames = whole.split("\n\n").filter(|frame| !frame.starts_with(':'));
    frames.map(|frame| event(frame).unwrap_or_else(|| panic!("no event: {frame:?}"))).collect()
}

fn event(frame: &str) -> Option<Event> {
    let field =
        |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Some(Event {
        number: field("id")?.parse().ok()?,
        kind: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).ok()?,
    })
}

/// Asserts that events are numbered from 1 on without gap and that only the last one ends the task.
#[track_caller]
pub(crate) fn assert_whole(events: &[Event]) {
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    let expected: Vec<_> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected, "{events:?}");
    let last: Vec<_> =
        events.iter().filter(|event| event.is_last()).map(|event| event.number).collect();
    assert_eq!(last, [events.len() as u64], "{events:?}");
}
