//! Whether a server that works for long takes more and more memory.

use serde_json::{Value, json};

use super::EDITED_BYTES;
use super::http::{HttpClient, Revision};
use super::program::Carrel;
use crate::Fault;
use crate::corpus::{self, Corpus, Edits};
use crate::ground::Ground;
use crate::haystack::NEEDLE;
use crate::report::{Budget, Row};
use crate::tools::edit_arguments;

/// More than this and more than this share is growth.
const GROWTH: Budget = Budget::Growth { bytes: 512 << 10, percent: 2 };

/// Asks a server of its own, so that nothing the other rows left behind is in its memory.
///
/// As many calls as are counted come first. They fill what is filled once: threads that wait for the
/// disk are started as they are needed, and the allocator gives each of them memory of its own, of
/// which it keeps the most that any call took.
pub(crate) fn row(ground: &Ground, corpus: &Corpus, carrel: &Carrel) -> Result<Row, Fault> {
    let server = carrel.over_http()?;
    let mut clients = Vec::new();
    for revision in Revision::BOTH {
        let client = HttpClient::connect(server.address, revision)?;
        clients.push(Caller::prepare(client, corpus, revision)?);
    }
    let counted = ground.pace.remembered;
    let mut call_all = || -> Result<u64, Fault> {
        (0..counted).try_for_each(|call| clients[call % 2].call(call / 2))?;
        server.resident_bytes()
    };
    let (before, after) = (call_all()?, call_all()?);
    let all = 2 * counted;
    let work = format!("memory of the server after {all} calls of five kinds; after {counted}");
    Ok(Row::memory(work, before, after, GROWTH))
}

/// A client that does a bit of everything.
struct Caller {
    client: HttpClient,
    edited: String,
    edits: Edits,
}

impl Caller {
    fn prepare(mut client: HttpClient, corpus: &Corpus, revision: Revision) -> Result<Self, Fault> {
        let edited = format!("edited-for-memory-{}.txt", revision.name());
        corpus.add_edited(&edited, EDITED_BYTES)?;
        client.call("Read", &json!({ "file_path": edited }))?;
        Ok(Self { client, edited, edits: Edits::default() })
    }

    fn call(&mut self, number: usize) -> Result<(), Fault> {
        let (tool, arguments): (_, Value) = match number % 5 {
            0 => ("Read", json!({ "file_path": corpus::LARGE })),
            1 => ("LS", json!({ "path": corpus::LISTED })),
            // A part of the tree, or the searches would take minutes.
            2 => ("Grep", json!({ "pattern": NEEDLE, "path": "haystack/part_0/part_1" })),
            3 => ("Edit", edit_arguments(&self.edited, &mut self.edits)),
            _ => ("workspaces", json!({})),
        };
        self.client.time(tool, &arguments).map(|_| ())
    }
}
