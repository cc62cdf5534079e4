//! A collector of traces on loopback, which takes nothing that is not OTLP in JSON to the letter.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::Value;

/// A collector.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    /// What is answered first, each a status and more headers; all is well after that.
    answers: Mutex<VecDeque<&'static str>>,
    silent: bool,
}

/// What came with one request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) answered: &'static str,
}

/// A span as it was received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) time: (u64, u64),
    pub(crate) failed: bool,
    pub(crate) attributes: BTreeMap<String, Value>,
    pub(crate) service: String,
}

const FINE: &str = "200 OK";

impl Collector {
    pub(crate) fn start() -> Self {
        Self::on("127.0.0.1:0".parse().unwrap(), Shared::default())
    }

    /// One at an address that another had.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self::on(address, Shared::default())
    }

    /// One that has other answers at first.
    pub(crate) fn answering(answers: &[&'static str]) -> Self {
        let answers = Mutex::new(answers.iter().copied().collect());
        Self::on("127.0.0.1:0".parse().unwrap(), Shared { answers, ..Shared::default() })
    }

    /// One that takes connections and never says anything.
    pub(crate) fn silent() -> Self {
        Self::on("127.0.0.1:0".parse().unwrap(), Shared { silent: true, ..Shared::default() })
    }

    fn on(address: SocketAddr, shared: Shared) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::new(shared));
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&theirs);
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// The variable that leads to it.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Every span that it has taken.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        let taken = requests.iter().filter(|request| request.answered == FINE);
        taken.flat_map(|request| spans(&request.body)).collect()
    }

    /// The one span of a name.
    pub(crate) fn span(&self, name: &str) -> Span {
        let spans = self.spans();
        let mut found = spans.iter().filter(|span| span.name == name);
        match (found.next(), found.next()) {
            (Some(span), None) => span.clone(),
            _ => panic!("not one span is called {name}: {spans:#?}"),
        }
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            head.push_str(&std::mem::take(&mut line).to_ascii_lowercase());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let Some(length) = length else { return };
        let mut body = vec![0; length.parse().unwrap()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).unwrap();
        let answered = shared.answers.lock().unwrap().pop_front().unwrap_or(FINE);
        shared.requests.lock().unwrap().push(Request { head, body, answered });
        if shared.silent {
            continue;
        }
        let answer = format!(
            "HTTP/1.1 {answered}\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n{}",
            r#"{"partialSuccess":{}}"#
        );
        let mut writer = stream;
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads what one request carries, to the letter.
fn spans(body: &str) -> Vec<Span> {
    let read: Export = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let mut spans = Vec::new();
    for one in read.resource_spans {
        let resource = attributes(one.resource.attributes);
        let service = text(&resource["service.name"]).to_owned();
        assert!(!text(&resource["service.version"]).is_empty());
        assert_eq!(text(&resource["service.instance.id"]).len(), 32);
        for scope in one.scope_spans {
            assert_eq!(scope.scope.name, "carrel");
            assert!(!scope.scope.version.is_empty());
            spans.extend(scope.spans.into_iter().map(|span| span.checked(&service)));
        }
    }
    spans
}

/// The text of an attribute.
pub(crate) fn text(value: &Value) -> &str {
    value["stringValue"].as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn attributes(read: Vec<Attribute>) -> BTreeMap<String, Value> {
    let count = read.len();
    let attributes: BTreeMap<_, _> =
        read.into_iter().map(|Attribute { key, value }| (key, value)).collect();
    assert_eq!(attributes.len(), count, "a name is there twice");
    for (name, value) in &attributes {
        let [(kind, inner)] = &value.as_object().unwrap().iter().collect::<Vec<_>>()[..] else {
            panic!("{name}: {value}")
        };
        let right = match kind.as_str() {
            "stringValue" => inner.is_string(),
            "intValue" => inner.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
            "boolValue" => inner.is_boolean(),
            "doubleValue" => inner.is_number(),
            _ => false,
        };
        assert!(right && !name.starts_with("otel."), "{name}: {value}");
    }
    attributes
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Export {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ResourceSpans {
    resource: Resource,
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<RawSpan>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    name: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attribute {
    key: String,
    value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Status {
    code: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawSpan {
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
    flags: u32,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    status: Option<Status>,
}

impl RawSpan {
    fn checked(self, service: &str) -> Span {
        let id = |text: &String, digits| {
            let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            assert!(text.len() == digits && text.bytes().all(plain), "{text}");
            assert!(text.bytes().any(|byte| byte != b'0'), "{text}");
        };
        id(&self.trace_id, 32);
        id(&self.span_id, 16);
        self.parent_span_id.iter().for_each(|parent| id(parent, 16));
        let time = |text: &str| text.parse::<u64>().unwrap();
        let time = (time(&self.start_time_unix_nano), time(&self.end_time_unix_nano));
        assert!(time.0 <= time.1 && time.0 > 1_700_000_000_000_000_000, "{time:?}");
        assert!((1..=5).contains(&self.kind) && self.flags == 1 && !self.name.is_empty());
        let failed = self.status.is_some_and(|status| {
            assert_eq!(status.code, 2);
            true
        });
        Span {
            trace: self.trace_id,
            id: self.span_id,
            parent: self.parent_span_id,
            name: self.name,
            kind: self.kind,
            time,
            failed,
            attributes: attributes(self.attributes),
            service: service.to_owned(),
        }
    }
}
