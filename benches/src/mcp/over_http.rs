//! Calls over HTTP, in both revisions of the protocol.

use serde_json::{Value, json};

use super::http::{HttpClient, Revision};
use super::{EDITED_BYTES, READ_LIMIT};
use crate::Fault;
use crate::canned;
use crate::corpus::{self, Corpus, Edits};
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::plain;
use crate::report::{Budget, Row};
use crate::sandbox::installed;
use crate::server::Server;
use crate::tools::{RG, edit_arguments, grep_arguments, must_agree};
use crate::wire::Connection;

pub(crate) fn rows(ground: &Ground, corpus: &Corpus, server: &Server) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for revision in Revision::BOTH {
        let client = HttpClient::connect(server.address, revision)?;
        let mut endpoint = Endpoint { ground, corpus, client, revision };
        rows.extend([
            endpoint.against_canned(
                "Read 101 KB",
                "Read",
                &json!({ "file_path": corpus::LARGE }),
                Budget::Time(READ_LIMIT),
            )?,
            endpoint.against_canned(
                "LS of 100 entries",
                "LS",
                &json!({ "path": corpus::LISTED }),
                Budget::None,
            )?,
            endpoint.edit()?,
            endpoint.grep()?,
        ]);
    }
    Ok(rows)
}

/// A connection of one revision.
struct Endpoint<'a> {
    ground: &'a Ground,
    corpus: &'a Corpus,
    client: HttpClient,
    revision: Revision,
}

impl Endpoint<'_> {
    /// Measures a call against a server that always says the same, which is as long.
    fn against_canned(
        &mut self,
        work: &str,
        tool: &str,
        arguments: &Value,
        budget: Budget,
    ) -> Result<Row, Fault> {
        self.client.call(tool, arguments)?;
        let address = canned::serve(self.client.reply(), 1)?;
        let mut canned = Connection::open(address)?;
        let request = self.client.request(tool, arguments);
        let pair = interleave(
            self.ground.pace.calls,
            || timed(|| canned.exchange(&request)),
            || self.client.time(tool, arguments),
        )?;
        Ok(Row::new(self.name(work, "a canned answer"), pair, budget))
    }

    fn edit(&mut self) -> Result<Row, Fault> {
        let name = format!("edited-over-http-{}.txt", self.revision.name());
        let own = self.corpus.add_edited(&name, EDITED_BYTES)?;
        let contents = std::fs::read(own)?;
        let plain = self.corpus.path.join(format!("{name}.plain"));
        self.client.call("Read", &json!({ "file_path": name }))?;
        let mut edits = Edits::default();
        let pair = interleave(
            self.ground.pace.slow,
            || timed(|| plain::replace_synced(&plain, &contents)),
            || self.client.time("Edit", &edit_arguments(&name, &mut edits)),
        )?;
        let plainly = "write, fsync, rename, directory fsync";
        Ok(Row::new(self.name("Edit of a 101 KB file", plainly), pair, Budget::None))
    }

    fn grep(&mut self) -> Result<Row, Fault> {
        let work = format!("Grep a literal in {}", self.corpus.size());
        let work = self.name(&work, "the `rg` program");
        if installed("rg").is_none() {
            return Ok(Row::left_out(work, "rg is not installed", Budget::None));
        }
        let (arguments, directory) = (grep_arguments(), self.corpus.haystack());
        must_agree("Grep", &self.client.call("Grep", &arguments)?, &RG, &directory)?;
        let pair = interleave(
            self.ground.pace.searches,
            || timed(|| corpus::run(&RG, &directory)),
            || self.client.time("Grep", &arguments),
        )?;
        Ok(Row::new(work, pair, Budget::None))
    }

    fn name(&self, work: &str, plain: &str) -> String {
        format!("{work} over HTTP, {}; {plain}", self.revision.name())
    }
}
