//! The three interfaces to the tools, as a client meets them: MCP over the standard streams, MCP over
//! HTTP, and `carrel tool`. A case that takes a [`ToolSession`] runs through all of them unchanged.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::test_environment::TestEnvironment;

/// No call of the kit takes longer than this unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// The revision of the protocol that is spoken unless a test says otherwise.
pub(crate) const REVISION: &str = "2025-11-25";

/// What came back from a call, whatever it came through.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) structured: Value,
    pub(crate) is_error: bool,
}

impl Answer {
    /// Reads the reply of the protocol: a result, or the error that a tool nobody has is.
    pub(crate) fn of_message(message: &Value) -> Self {
        if let Some(error) = message.get("error") {
            let text = error["message"].as_str().unwrap_or_default().to_owned();
            return Self { text, structured: error["data"].clone(), is_error: true };
        }
        let result = &message["result"];
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no result: {message}"));
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        Self {
            text: texts.join("\n"),
            structured: result["structuredContent"].clone(),
            is_error: result["isError"] == true,
        }
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> Option<&str> {
        self.structured["error"]["code"].as_str()
    }

    /// The text of a call that has to succeed.
    pub(crate) fn ok(self) -> String {
        assert!(!self.is_error, "{self:?}");
        self.text
    }

    /// The code and the text of a call that has to be refused.
    pub(crate) fn refused(&self) -> (&str, &str) {
        assert!(self.is_error, "{self:?}");
        (self.code().unwrap_or_else(|| panic!("no code: {self:?}")), &self.text)
    }
}

/// A interface to the tools.
pub(crate) trait ToolSession {
    /// Calls a tool and waits for its answer.
    fn call(&mut self, tool: &str, arguments: Value) -> Answer;

    /// Lists the tools: `name` and `inputSchema` at least.
    fn tools(&mut self) -> Vec<Value>;
}

/// Which session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Stdio,
    Http,
    Cli,
}

impl Interface {
    pub(crate) const ALL: [Self; 3] = [Self::Stdio, Self::Http, Self::Cli];

    /// The name in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Cli => "cli",
        }
    }

    /// Opens the session with options of `carrel mcp` and `carrel tool`.
    pub(crate) fn open(self, test_env: &TestEnvironment, options: &[&str]) -> Box<dyn ToolSession> {
        self.open_with(test_env, options, |_| {})
    }

    /// Opens the session in an environment with more in it.
    pub(crate) fn open_with(
        self,
        test_env: &TestEnvironment,
        options: &[&str],
        change: impl Fn(&mut Command) + 'static,
    ) -> Box<dyn ToolSession> {
        let make = |words: &[&str]| {
            let mut command = test_env.carrel();
            command.args(words).args(options);
            change(&mut command);
            command
        };
        match self {
            Self::Stdio => Box::new(Stdin::start(make(&["mcp"]))),
            Self::Http => Box::new(Http::start(make(&["mcp", "--http", "127.0.0.1:0"]))),
            Self::Cli => Box::new(Cli::new(test_env, options, change)),
        }
    }
}

/// A running `carrel`, ended with its value.
pub(crate) struct Server {
    pub(crate) child: Child,
    stderr: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a program whose stdin and stdout belong to the caller.
    pub(crate) fn start(mut command: Command, stdin: Stdio, stdout: Stdio) -> Self {
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = BufReader::new(child.stderr.take().unwrap());
        let stderr = Arc::<Mutex<String>>::default();
        let text = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { child, stderr }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// What it has written to stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until it has ended, and returns how it did.
    pub(crate) fn wait(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The handshake of a client with these capabilities.
fn initialize(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": REVISION,
        "capabilities": capabilities,
        "clientInfo": { "name": "kit", "version": "1" },
    })
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The answer of a client with these roots.
fn listed(roots: &[String]) -> Value {
    let roots: Vec<_> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
    json!({ "result": { "roots": roots } })
}

/// A client over the standard streams.
pub(crate) struct Stdin {
    pub(crate) server: Server,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next: u64,
    /// The client's answer when it is asked for its roots: `result` or `error`. Without one it is silent.
    pub(crate) roots: Option<Value>,
    /// The questions for its roots that it has not answered.
    unanswered: Vec<Value>,
    /// How often it was asked.
    pub(crate) asked_for_roots: usize,
    /// Notifications so far, in order.
    pub(crate) news: Vec<Value>,
    /// What the server said about itself.
    pub(crate) greeting: Value,
}

impl Stdin {
    /// Starts a server and shakes hands.
    pub(crate) fn start(command: Command) -> Self {
        Self::with_capabilities(command, &json!({}), None)
    }

    /// Starts a server as a client that has these directories open.
    pub(crate) fn with_roots(command: Command, roots: &[String]) -> Self {
        Self::answering(command, Some(listed(roots)))
    }

    /// Starts a server as a client that answers in this way when it is asked for its roots.
    pub(crate) fn answering(command: Command, roots: Option<Value>) -> Self {
        let mut client =
            Self::with_capabilities(command, &json!({ "roots": { "listChanged": true } }), roots);
        client.until("it asks for the roots", |client| client.asked_for_roots > 0);
        client
    }

    /// Answers the questions for its roots that are open, and later ones.
    pub(crate) fn answer_roots(&mut self, roots: &[String]) {
        self.roots = Some(listed(roots));
        for id in std::mem::take(&mut self.unanswered) {
            self.say_roots(&id);
        }
    }

    fn say_roots(&mut self, id: &Value) {
        match self.roots.clone() {
            None => self.unanswered.push(id.clone()),
            Some(mut reply) => {
                (reply["jsonrpc"], reply["id"]) = (json!("2.0"), id.clone());
                self.line(&reply);
            }
        }
    }

    pub(crate) fn with_capabilities(
        command: Command,
        capabilities: &Value,
        roots: Option<Value>,
    ) -> Self {
        let mut server = Server::start(command, Stdio::piped(), Stdio::piped());
        let input = server.child.stdin.take();
        let output = BufReader::new(server.child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line)
                    .unwrap_or_else(|_| json!({ "not a message": line }));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            server,
            input,
            messages,
            next: 1,
            roots,
            unanswered: Vec::new(),
            asked_for_roots: 0,
            news: Vec::new(),
            greeting: Value::Null,
        };
        client.greeting = client.ask("initialize", &initialize(capabilities))["result"].clone();
        assert_eq!(client.greeting["protocolVersion"], REVISION, "{}", client.greeting);
        client.tell("notifications/initialized", &json!({}));
        client
    }

    fn line(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a notification.
    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns its number.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.line(&request(id, method, params));
        id
    }

    /// Begins a call.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Waits for the reply to a request.
    pub(crate) fn reply(&mut self, id: u64) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let message = self.next_message(deadline);
            if let Some(message) = message.filter(|message| message["id"] == id) {
                return message;
            }
        }
    }

    /// Takes in whatever comes until something is so.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "never came true: {what}");
            self.next_message(deadline);
        }
    }

    /// Takes in the next message; returns it if it is a reply.
    fn next_message(&mut self, deadline: Instant) -> Option<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        let message = match self.messages.recv_timeout(left) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("no reply: {}", self.server.stderr()),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the server has gone: {}", self.server.stderr())
            }
        };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (None, _) => return Some(message),
            (Some("roots/list"), Some(id)) => {
                self.asked_for_roots += 1;
                self.say_roots(id);
            }
            (Some(_), _) => self.news.push(message),
        }
        None
    }

    /// Sends a request and waits for its reply.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.reply(id)
    }

    /// Closes the input: the client goes.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }
}

impl ToolSession for Stdin {
    fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let id = self.begin_call(tool, &arguments);
        Answer::of_message(&self.reply(id))
    }

    fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().clone()
    }
}

/// The reply to a request over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    /// The messages of the body, which is one message or a stream of events.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let kind = self.headers.get("content-type").map_or("", String::as_str);
        if kind.starts_with("text/event-stream") {
            return self.body.split("\n\n").filter_map(event).collect();
        }
        vec![serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))]
    }
}

/// Reads the data of one event.
fn event(text: &str) -> Option<Value> {
    let data = text.lines().find_map(|line| line.strip_prefix("data:"))?.trim();
    serde_json::from_str(data).ok()
}

/// A connection that sends what it is told and shows what comes back.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), host: address.to_string() }
    }

    /// Sends a request. A header replaces the usual one of its name.
    pub(crate) fn send(&mut self, method: &str, headers: &[(&str, &str)], body: &str) {
        let mut all = vec![
            ("host", self.host.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        let mut head = format!("{method} /mcp HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in all.iter().chain(headers) {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        self.stream.get_mut().write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads the head of a reply.
    pub(crate) fn head(&mut self) -> Reply {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no reply: {first:?}"));
        let mut headers = HashMap::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        Reply { status, headers, body: String::new() }
    }

    fn exactly(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads the next piece of a stream; none at its end.
    fn chunk(&mut self) -> Option<String> {
        let size = self.line();
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("a size: {size:?}"));
        let text = self.exactly(size);
        self.line();
        (size > 0).then_some(text)
    }

    /// Reads the next message of a stream; none at its end.
    pub(crate) fn message(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = event(&self.chunk()?) {
                return Some(message);
            }
        }
    }

    /// Reads a whole reply.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut reply = self.head();
        if let Some(length) = reply.headers.get("content-length") {
            reply.body = self.exactly(length.parse().unwrap());
        } else if reply.headers.contains_key("transfer-encoding") {
            while let Some(chunk) = self.chunk() {
                reply.body.push_str(&chunk);
            }
        }
        reply
    }

    /// Sends a message and reads the whole reply.
    pub(crate) fn post(&mut self, headers: &[(&str, &str)], message: &Value) -> Reply {
        self.send("POST", headers, &message.to_string());
        self.reply()
    }
}

/// A server over HTTP.
pub(crate) struct HttpServer {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    /// The token that it generated and printed, if it was given none.
    pub(crate) token: Option<String>,
}

impl HttpServer {
    /// Starts a server and waits until it says where it listens.
    pub(crate) fn start(command: Command) -> Self {
        let has_token =
            command.get_args().any(|word| word == "--no-token" || word == "--token-file")
                || command.get_envs().any(|(name, _)| name == "CARREL_MCP_TOKEN");
        let mut server = Server::start(command, Stdio::null(), Stdio::null());
        let deadline = Instant::now() + DEADLINE;
        let (address, token) = loop {
            let text = server.stderr();
            let after = text.split_once("listening on http://").map(|(_, rest)| rest);
            let address =
                after.and_then(|rest| rest.split_once("/mcp")).map(|(address, _)| address);
            let token = text
                .split_once("Authorization: Bearer ")
                .and_then(|(_, rest)| rest.split_once('\n').map(|(token, _)| token.to_owned()));
            if let (Some(address), true) = (address, has_token || token.is_some()) {
                break (address.parse().unwrap(), token);
            }
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "it does not listen: {text}");
            std::thread::sleep(Duration::from_millis(5));
        };
        Self { server, address, token }
    }

    /// The header with the token that it generated.
    pub(crate) fn authorization(&self) -> Vec<(&'static str, String)> {
        let bearer = |token: &String| ("authorization", format!("Bearer {token}"));
        self.token.iter().map(bearer).collect()
    }

    /// Opens a session.
    pub(crate) fn session(&self) -> Session {
        self.session_with(&[], &json!({}))
    }

    /// Opens a session with more headers, as a client with these capabilities.
    pub(crate) fn session_with(
        &self,
        headers: &[(&'static str, String)],
        capabilities: &Value,
    ) -> Session {
        let mut connection = Connection::open(self.address);
        let mut headers = [headers, &self.authorization()].concat();
        let given: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let message = request(0, "initialize", &initialize(capabilities));
        let reply = connection.post(&given, &message);
        assert_eq!(reply.status, 200, "{reply:?}");
        headers.push(("mcp-session-id", reply.headers["mcp-session-id"].clone()));
        headers.push(("mcp-protocol-version", REVISION.to_owned()));
        let mut session = Session { connection, address: self.address, headers, next: 1 };
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post(&told).status, 202);
        session
    }
}

/// A session over HTTP.
pub(crate) struct Session {
    connection: Connection,
    address: SocketAddr,
    headers: Vec<(&'static str, String)>,
    next: u64,
}

impl Session {
    /// The name of the session.
    pub(crate) fn id(&self) -> &str {
        let found = self.headers.iter().find(|(name, _)| *name == "mcp-session-id");
        found.map(|(_, value)| value.as_str()).unwrap()
    }

    /// Sends a message and reads the whole reply.
    pub(crate) fn post(&mut self, message: &Value) -> Reply {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.connection.post(&headers, message)
    }

    /// Sends a request on a connection of its own, which is handed over before the reply.
    pub(crate) fn aside(&self, method: &str, body: &str) -> Connection {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut connection = Connection::open(self.address);
        connection.send(method, &headers, body);
        connection
    }

    /// Begins a call on a connection of its own.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> (u64, Connection) {
        let id = self.next;
        self.next += 1;
        let message = request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }));
        (id, self.aside("POST", &message.to_string()))
    }

    /// Ends the session.
    pub(crate) fn delete(&self) -> u16 {
        self.aside("DELETE", "").reply().status
    }

    /// Sends a request and returns the reply to it.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        let reply = self.post(&request(id, method, params));
        assert_eq!(reply.status, 200, "{reply:?}");
        let found = reply.messages().into_iter().find(|message| message["id"] == id);
        found.unwrap_or_else(|| panic!("no reply to {id}: {reply:?}"))
    }
}

impl ToolSession for Session {
    fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let params = json!({ "name": tool, "arguments": arguments });
        Answer::of_message(&self.ask("tools/call", &params))
    }

    fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().clone()
    }
}

/// A server over HTTP with one session.
pub(crate) struct Http {
    session: Session,
    _server: HttpServer,
}

impl Http {
    fn start(command: Command) -> Self {
        let server = HttpServer::start(command);
        Self { session: server.session(), _server: server }
    }
}

impl ToolSession for Http {
    fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        self.session.call(tool, arguments)
    }

    fn tools(&mut self) -> Vec<Value> {
        self.session.tools()
    }
}

/// `carrel tool`, once for each call.
pub(crate) struct Cli {
    make: Box<dyn Fn() -> Command>,
}

impl Cli {
    fn new(
        test_env: &TestEnvironment,
        options: &[&str],
        change: impl Fn(&mut Command) + 'static,
    ) -> Self {
        // A command cannot be cloned, so one is kept as a model of the others.
        let model = test_env.carrel();
        let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
        let make = move || {
            let mut command = Command::new(model.get_program());
            command.args(model.get_args()).env_clear();
            for (name, value) in model.get_envs() {
                command.env(name, value.unwrap_or_default());
            }
            command.current_dir(model.get_current_dir().unwrap()).stdin(Stdio::null());
            command.arg("tool").args(&options).arg("--json");
            change(&mut command);
            command
        };
        Self { make: Box::new(make) }
    }

    fn run(&self, words: &[&str]) -> (i32, Value, String) {
        let mut command = (self.make)();
        let output = command.args(words).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            let last = stderr.lines().last().unwrap_or_default();
            serde_json::from_str(last).unwrap_or_else(|_| panic!("{words:?}: {stderr}"))
        });
        (output.status.code().unwrap_or(-1), value, stderr)
    }
}

impl ToolSession for Cli {
    fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let (code, value, stderr) = self.run(&[tool, &arguments.to_string()]);
        if value.get("error").is_some() {
            let text = value["error"]["message"].as_str().unwrap_or_default().to_owned();
            return Answer { text, structured: value, is_error: true };
        }
        let answer = Answer {
            text: value["content"].as_str().unwrap_or_else(|| panic!("{value}: {stderr}")).into(),
            structured: value["structured"].clone(),
            is_error: value["is_error"] == true,
        };
        assert_eq!(code, i32::from(answer.is_error), "{answer:?}");
        answer
    }

    fn tools(&mut self) -> Vec<Value> {
        let (_, listed, stderr) = self.run(&[]);
        let listed = listed.as_array().unwrap_or_else(|| panic!("{stderr}"));
        let tool = |tool: &Value| {
            let mut tool: Map<String, Value> = tool.as_object().unwrap().clone();
            let schema = tool.remove("input_schema").unwrap();
            tool.insert("inputSchema".into(), schema);
            Value::Object(tool)
        };
        listed.iter().map(tool).collect()
    }
}

/// Every case through every session, each with a environment of its own, at the same time.
pub(crate) fn through_each(case: impl Fn(Interface, &TestEnvironment) + Sync) {
    std::thread::scope(|scope| {
        for interface in Interface::ALL {
            let case = &case;
            std::thread::Builder::new()
                .name(interface.name().into())
                .spawn_scoped(scope, move || case(interface, &TestEnvironment::usual()))
                .unwrap();
        }
    });
}

/// Everything that the interfaces have to agree on before anything else can be said about them.
#[test]
fn every_door_lists_the_same_tools_and_gives_the_same_answers() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "alpha\nbeta\n");
    let workspace = test_env.workspace();
    let options = ["--workspace", workspace.to_str().unwrap(), "--tools", "default,secrets"];
    let open = |interface: &Interface| {
        // The command line always says everything.
        let full: &[&str] = match interface {
            Interface::Cli => &[],
            Interface::Stdio | Interface::Http => &["--definitions", "full"],
        };
        interface.open(&test_env, &[&options[..], full].concat())
    };
    let mut interfaces: Vec<_> = Interface::ALL.iter().map(open).collect();
    let described = |tool: &Value| {
        (tool["name"].clone(), tool["description"].clone(), tool["inputSchema"].clone())
    };
    let listed: Vec<Vec<_>> = interfaces
        .iter_mut()
        .map(|session| session.tools().iter().map(described).collect())
        .collect();
    assert!(listed[0].len() >= 28, "{}", listed[0].len());
    assert_eq!(listed[0], listed[1]);
    assert_eq!(listed[0], listed[2]);
    let calls = [
        ("Read", json!({ "file_path": "a.txt" })),
        ("Read", json!({ "file_path": "a.txt", "offset": 2, "limit": 1 })),
        ("Read", json!({ "file_path": "../x" })),
        ("Read", json!({ "file_path": "a.txt", "limt": 1 })),
        ("Raed", json!({})),
        ("Grep", json!({ "pattern": "beta" })),
        ("Glob", json!({ "pattern": "*" })),
        ("LS", json!({})),
        ("workspaces", json!({})),
    ];
    for (tool, arguments) in calls {
        let answers: Vec<_> =
            interfaces.iter_mut().map(|session| session.call(tool, arguments.clone())).collect();
        assert_eq!(answers[0], answers[1], "{tool} {arguments}");
        assert_eq!(answers[0], answers[2], "{tool} {arguments}");
    }
}

/// What one call has read, the next may change: in a session, and between the calls of one user.
#[test]
fn every_door_remembers_what_was_read_and_refuses_what_was_not() {
    through_each(|interface, test_env| {
        test_env.write("a.txt", "alpha\n");
        test_env.write("b.txt", "beta\n");
        let workspace = test_env.workspace();
        let mut session = interface.open(test_env, &["--workspace", workspace.to_str().unwrap()]);
        session.call("Read", json!({ "file_path": "a.txt" })).ok();
        let edit =
            |path: &str| json!({ "file_path": path, "old_string": "a\n", "new_string": "o\n" });
        session.call("Edit", edit("a.txt")).ok();
        assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "alpho\n");
        assert_eq!(session.call("Edit", edit("b.txt")).refused().0, "E_NOT_READ", "{interface:?}");
        test_env.write("a.txt", "other a\n");
        assert_eq!(session.call("Edit", edit("a.txt")).refused().0, "E_CHANGED_SINCE_READ");
    });
}

/// What failed in one call, the next may show and run again: in a session, and between the calls of
/// one user.
#[test]
fn every_door_remembers_which_tests_failed() {
    through_each(|interface, test_env| {
        test_env.write("setup.py", "");
        let method = |name: &str, right: &str| {
            format!("    def test_{name}(self):\n        self.assertEqual(1, {right})\n")
        };
        let write = |right: &str| {
            let head = "import unittest\nclass A(unittest.TestCase):\n";
            let tests = method("bad", right) + &method("good", "1");
            test_env.write("tests/test_a.py", &format!("{head}{tests}"));
        };
        write("2");
        let workspace = test_env.workspace();
        let mut session = interface.open(test_env, &["--workspace", workspace.to_str().unwrap()]);
        let nothing = "no run_tests call yet in this session";
        assert_eq!(session.call("last_test_failures", json!({})).ok().trim_end(), nothing);
        session.call("run_tests", json!({})).ok();
        let last = session.call("last_test_failures", json!({})).ok();
        assert!(last.starts_with("1 test failure(s) from last run_tests call (python, "), "{last}");
        assert!(last.contains("\n   AssertionError: 1 != 2\n"), "{interface:?}: {last}");
        write("1");
        let rerun = session.call("run_failing_tests", json!({})).ok();
        assert!(rerun.starts_with("passed\n1 passed, 0 failed, "), "{interface:?}: {rerun}");
        let last = session.call("last_test_failures", json!({})).ok();
        assert!(last.starts_with("last run_tests had no failures (1 tests passed, "), "{last}");
    });
}
