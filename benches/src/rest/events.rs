//! Events on their way to those who wait for them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Service;
use super::client::Client;
use crate::Fault;
use crate::ground::Ground;
use crate::measure::{Pair, Samples};
use crate::report::{Budget, Row};

const READERS: usize = 1000;
const SLOWEST: Duration = Duration::from_millis(1);

/// How long a reader waits for what has to come.
const DEADLINE: Duration = Duration::from_secs(30);

/// Tasks wait behind one that sleeps, each with a reader. One after the other is cancelled, which is
/// one commit with one event, and its reader waits for that event while all others stay connected.
pub(super) fn rows(ground: &Ground, service: &Service) -> Result<Vec<Row>, Fault> {
    let server = service.start(&[("WORKER_CONCURRENCY", "1")])?;
    let mut client = Client::connect(service, &server)?;
    let workspace = client.new_workspace()?;
    submit(&mut client, &workspace, "sleep 3000")?;
    let readers = READERS.min(ground.pace.calls);
    let mut waiting = Vec::new();
    for _ in 0..readers {
        let task = submit(&mut client, &workspace, "true")?;
        waiting.push((Reader::open(&client, &task)?, task));
    }
    let (mut answered, mut seen) = (Vec::new(), Vec::new());
    for (reader, task) in &mut waiting {
        let cancel = client.request("POST", &format!("/api/tasks/{task}/cancel"), None);
        let begun = Instant::now();
        let heard = std::thread::scope(|scope| {
            let listening = scope.spawn(|| reader.until("cancelled").map(|()| begun.elapsed()));
            answered.push(client.time(&cancel)?);
            listening.join().map_err(|_| "a reader panicked")?
        })?;
        seen.push(heard);
    }
    let pair = Pair { plain: Samples::new(answered), carrel: Samples::new(seen) };
    let work = format!(
        "request → commit → event at its reader, {readers} streams open; plain is the answer to the request"
    );
    Ok(vec![Row::new(work, pair, Budget::Time(SLOWEST))])
}

fn submit(client: &mut Client, workspace: &str, command: &str) -> Result<String, Fault> {
    let step = json!({ "action": "shell", "command": command });
    let body = json!({ "workspace_id": workspace, "timeout_seconds": 3600, "steps": [step] });
    let task = client.send("POST", "/api/tasks/submit", Some(&body))?;
    Ok(task["task_id"].as_str().ok_or("no id of a task")?.to_owned())
}

/// Somebody who follows a task.
struct Reader {
    stream: TcpStream,
    text: Vec<u8>,
}

impl Reader {
    /// Connects, and waits until the first event is there.
    fn open(client: &Client, task: &str) -> Result<Self, Fault> {
        let mut stream = TcpStream::connect(client.address())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(&client.stream_request(task))?;
        let mut reader = Self { stream, text: Vec::new() };
        reader.until("queued")?;
        Ok(reader)
    }

    fn until(&mut self, word: &str) -> Result<(), Fault> {
        let mut part = [0; 4096];
        while memchr::memmem::find(&self.text, word.as_bytes()).is_none() {
            match self.stream.read(&mut part)? {
                0 => return Err(format!("the stream ended before {word}").into()),
                read => self.text.extend(&part[..read]),
            }
        }
        self.text.clear();
        Ok(())
    }
}
