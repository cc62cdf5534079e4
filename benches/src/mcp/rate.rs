//! How many calls a server answers in a second when several clients ask at once.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::Instant;

use serde_json::json;

use super::http::{Connection, HttpClient, Revision};
use super::program::HttpServer;
use super::{canned, message};
use crate::Fault;
use crate::ground::Ground;
use crate::report::{Budget, Row};

const CLIENTS: usize = 8;
const LEAST_CALLS_PER_SECOND: f64 = 15_000.0;

/// A connection, and what is sent on it again and again.
type Caller = (Connection, Vec<u8>);

pub(crate) fn rows(ground: &Ground, server: &HttpServer) -> Result<Vec<Row>, Fault> {
    Revision::BOTH.into_iter().map(|revision| row(ground, server, revision)).collect()
}

fn row(ground: &Ground, server: &HttpServer, revision: Revision) -> Result<Row, Fault> {
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
    Ok(Row::rate(work, median(plain), median(carrel), Budget::Rate(LEAST_CALLS_PER_SECOND)))
}

fn plain_callers(address: SocketAddr, ours: &[Caller]) -> Result<Vec<Caller>, Fault> {
    let each = ours.iter().map(|(_, request)| Ok((Connection::open(address)?, request.clone())));
    each.collect()
}

/// Lets every client make so many calls, all at once.
fn calls_per_second(callers: &mut [Caller], calls: usize) -> Result<f64, Fault> {
    let barrier = Barrier::new(callers.len() + 1);
    let all = callers.len() * calls;
    let elapsed = std::thread::scope(|scope| {
        let start = |(connection, request): &'_ mut Caller| {
            barrier.wait();
            (0..calls).try_for_each(|_| connection.exchange(request))
        };
        let threads: Vec<_> =
            callers.iter_mut().map(|caller| scope.spawn(move || start(caller))).collect();
        barrier.wait();
        let begun = Instant::now();
        for thread in threads {
            thread.join().map_err(|_| "a client panicked")??;
        }
        Ok::<_, Fault>(begun.elapsed())
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand calls")]
    let all = all as f64;
    Ok(all / elapsed.as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
