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
const GROWTH: Budget = Budget::Growth { bytes: 1 << 20, percent: 5 };

/// Of so many calls, the first are not counted: they fill what is filled once.
const WARM_UP_SHARE: usize = 11;

/// Asks a server of its own, so that nothing the other rows left behind is in its memory.
pub(crate) fn row(ground: &Ground, corpus: &Corpus, carrel: &Carrel) -> Result<Row, Fault> {
    let server = carrel.over_http()?;
    let mut clients = Vec::new();
    for revision in Revision::BOTH {
        let client = HttpClient::connect(server.address, revision)?;
        clients.push(Caller::prepare(client, corpus, revision)?);
    }
    let (all, first) = (ground.pace.remembered, ground.pace.remembered / WARM_UP_SHARE);
    let mut before = 0;
    for call in 0..all {
        if call == first {
            before = server.resident_bytes()?;
        }
        clients[call % 2].call(call / 2)?;
    }
    let after = server.resident_bytes()?;
    let work = format!("memory of the server after {all} calls of five kinds; after {first}");
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
