//! A call whose tool does next to nothing: what HTTP and the protocol cost.

use serde_json::json;

use super::http::{HttpClient, Revision};
use super::program::Carrel;
use crate::Fault;
use crate::canned;
use crate::ground::Ground;
use crate::measure::{interleave, timed};
use crate::placement::Placement;
use crate::report::{Budget, Row};
use crate::wire::Connection;

const TOOL: &str = "workspaces";

/// What the design promises.
const LIMIT: Budget = Budget::Ratio(2.0);

pub(crate) fn rows(ground: &Ground, carrel: &Carrel) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for revision in Revision::BOTH {
        for placement in Placement::all()? {
            rows.push(row(ground, carrel, revision, &placement)?);
        }
    }
    Ok(rows)
}

/// Measures the call against a server that always says the same, which is as long.
fn row(
    ground: &Ground,
    carrel: &Carrel,
    revision: Revision,
    placement: &Placement,
) -> Result<Row, Fault> {
    let server = carrel.over_http()?;
    let arguments = json!({});
    let mut client = HttpClient::connect(server.address, revision)?;
    client.call(TOOL, &arguments)?;
    placement.place(&server)?;
    let address = placement.on_server_core(|| canned::serve(client.reply(), 1))?;
    let mut canned = Connection::open(address)?;
    let request = client.request(TOOL, &arguments);
    let pair = placement.on_client_core(|| {
        interleave(
            ground.pace.calls,
            || timed(|| canned.exchange(&request)),
            || client.time(TOOL, &arguments),
        )
    })?;
    let (revision, placement) = (revision.name(), placement.name);
    let work = format!("`{TOOL}` over HTTP, {revision}, on {placement}; a canned answer");
    Ok(Row::new(work, pair, LIMIT))
}
