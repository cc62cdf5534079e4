//! Files over HTTP, asked for by many clients at once.

use serde_json::{Value, json};

use super::Service;
use super::client::{Client, crowd_at};
use crate::Fault;
use crate::canned;
use crate::crowd::call_together;
use crate::ground::Ground;
use crate::measure::Pair;
use crate::report::{Budget, Row};
use crate::server::Server;

const CLIENTS: usize = 64;
const BYTES: usize = 10_000;

pub(super) fn rows(ground: &Ground, service: &Service, server: &Server) -> Result<Vec<Row>, Fault> {
    let mut client = Client::connect(service, server)?;
    let workspace = client.new_workspace()?;
    let path = |rest: &str| format!("/api/workspaces/{workspace}/files{rest}");
    let text = "a line of text that says nothing in particular\n".repeat(BYTES / 47);
    let write = json!({ "path": "note.txt", "content": text });
    client.send("POST", &path("/write"), Some(&write))?;
    let routes: [(&str, &str, String, Option<&Value>); 4] = [
        ("list a directory", "GET", path(""), None),
        ("read 10 KB", "GET", path("/content?path=note.txt"), None),
        ("search", "GET", path("/grep?pattern=particular&max_results=10"), None),
        ("write 10 KB, fsync on", "POST", path("/write"), Some(&write)),
    ];
    let mut rows = Vec::new();
    for (what, method, path, body) in routes {
        client.send(method, &path, body)?;
        let request = client.request(method, &path, body);
        let calls = ground.pace.slow / 4;
        let canned = canned::serve(client.message(), CLIENTS)?;
        let mut plain = crowd_at(canned, CLIENTS, &request)?;
        let mut ours = client.crowd(CLIENTS, &request)?;
        let pair = Pair {
            plain: call_together(&mut plain, calls)?.times,
            carrel: call_together(&mut ours, calls)?.times,
        };
        let work = format!("{what} over REST, {CLIENTS} connections at once; canned answers");
        rows.push(Row::new(work, pair, Budget::None).with_tail());
    }
    Ok(rows)
}
