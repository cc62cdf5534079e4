//! The queue on a PostgreSQL server, beside others on the same servers.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Secret;
use carrel_store::{Postgres, PostgresOptions, Store};
use carrel_testkit::servers;
use tokio::runtime::Runtime;

use super::peers::{Kind, Servers};
use super::{Measured, SUBMITTERS, against, all_at_once, measure, workspace};
use crate::Fault;
use crate::ground::Ground;
use crate::report::{Budget, Row};
use crate::say;

const SLOWEST: Duration = Duration::from_millis(2);
const LEAST_TASKS_PER_SECOND: f64 = 1500.0;

pub(super) fn rows(ground: &Ground, runtime: &Runtime) -> Result<Vec<Row>, Fault> {
    let redis = servers::RedisServer::start();
    let postgres = runtime.block_on(servers::PostgresServer::start_durable());
    let ours = runtime.block_on(postgres.database(None));
    let (carrel, by_two) = ours_on(ground, runtime, &ours)?;
    let mut budgets = [Budget::Time(SLOWEST), Budget::Rate(LEAST_TASKS_PER_SECOND)];
    let two = "PostgreSQL queue, tasks per second with two workers; plain is Carrel with one";
    let mut rows = vec![Row::rate(two, carrel.per_second, by_two, Budget::None)];
    for kind in Kind::ALL {
        let database = runtime.block_on(postgres.database(None));
        let servers = Servers { redis: &redis.url(), database: &database };
        let pace = ground.pace;
        match kind.measure(&servers, pace.slow, SUBMITTERS * pace.calls / 2) {
            Ok(other) => {
                rows.extend(against(&carrel, other, "PostgreSQL queue", kind.name(), budgets));
                budgets = [Budget::None; 2];
            }
            Err(fault) => say(&format!("{} is left out: {fault}", kind.name())),
        }
    }
    Ok(rows)
}

/// Measures Carrel with a store that submits and one that works, as two processes would have; and how many
/// tasks a second two that work get done.
fn ours_on(ground: &Ground, runtime: &Runtime, url: &str) -> Result<(Measured, f64), Fault> {
    let options = PostgresOptions { url: Secret::new(url.to_owned()) };
    let open = || -> Result<Arc<dyn Store>, Fault> { Ok(Arc::new(Postgres::open(&options)?)) };
    runtime.block_on(async { Postgres::open(&options)?.migrate().await })?;
    let opened = runtime.block_on(async { Ok::<_, Fault>((open()?, open()?, open()?)) });
    let (submitting, working, another) = opened?;
    let one = measure(ground, runtime, &submitting, &working)?;
    let workspace = runtime.block_on(workspace(&*submitting))?;
    let both = [&working, &another];
    let two = all_at_once(runtime, &submitting, &both, workspace, ground.pace.calls)?;
    Ok((one, two))
}
