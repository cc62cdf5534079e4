//! How many calls a server answers in a second when several clients ask at once.

use std::net::SocketAddr;

use serde_json::json;

use super::http::{HttpClient, Revision};
use super::message;
use crate::Fault;
use crate::canned;
use crate::crowd::{Caller, calls_per_second, median};
use crate::ground::Ground;
use crate::report::{Budget, Row};
use crate::server::Server;
use crate::wire::Connection;

const CLIENTS: usize = 8;
/// What the design promises.
const LEAST_RATE: Budget = Budget::RateRatio(0.25);

pub(crate) fn rows(ground: &Ground, server: &Server) -> Result<Vec<Row>, Fault> {
    Revision::BOTH.into_iter().map(|revision| row(ground, server, revision)).collect()
}

fn row(ground: &Ground, server: &Server, revision: Revision) -> Result<Row, Fault> {
    let arguments = json!({});
    let mut sample = HttpClient::connect(server.address, revision)?;
    sample.call("workspaces", &arguments)?;
    let mut ours = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = HttpClient::connect(server.address, revision)?;
        let request = client.request("workspaces", &arguments);
        ours.push((client.into_connection(), request));
    }
    let canned = canned::serve(sample.reply(), CLIENTS)?;
    let mut theirs = plain_callers(canned, &ours)?;
    let (mut plain, mut carrel) = (Vec::new(), Vec::new());
    for _ in 0..ground.pace.trees {
        plain.push(calls_per_second(&mut theirs, ground.pace.calls)?);
        carrel.push(calls_per_second(&mut ours, ground.pace.calls)?);
    }
    for (connection, _) in &ours {
        message::must_succeed(connection.body())?;
    }
    let work = format!(
        "`workspaces` over HTTP, {}, calls per second of {CLIENTS} clients; canned answers",
        revision.name()
    );
    Ok(Row::rate(work, median(plain), median(carrel), LEAST_RATE))
}

fn plain_callers(address: SocketAddr, ours: &[Caller]) -> Result<Vec<Caller>, Fault> {
    let each = ours.iter().map(|(_, request)| Ok((Connection::open(address)?, request.clone())));
    each.collect()
}
