//! The queue on a PostgreSQL server, beside others on the same servers.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Secret;
use carrel_store::{Postgres, PostgresOptions, Store};
use carrel_testkit::servers;
use tokio::runtime::Runtime;

use super::peers::{Kind, Servers};
use super::{Measured, SUBMITTERS, against, measure};
use crate::Fault;
use crate::ground::Ground;
use crate::report::{Budget, Row};
use crate::say;

const SLOWEST: Duration = Duration::from_millis(2);
const LEAST_TASKS_PER_SECOND: f64 = 1500.0;

pub(super) fn rows(ground: &Ground, runtime: &Runtime) -> Result<Vec<Row>, Fault> {
    let redis = servers::Redis::start();
    let postgres = runtime.block_on(servers::Postgres::start_durable());
    let ours = runtime.block_on(postgres.database(None));
    let carrel = ours_on(ground, runtime, &ours)?;
    let mut budgets = [Budget::Time(SLOWEST), Budget::Rate(LEAST_TASKS_PER_SECOND)];
    let mut rows = Vec::new();
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

/// Measures Carrel with a store that submits and one that works, as two processes would have.
fn ours_on(ground: &Ground, runtime: &Runtime, url: &str) -> Result<Measured, Fault> {
    let options = PostgresOptions { url: Secret::new(url.to_owned()) };
    let open = || -> Result<Arc<dyn Store>, Fault> { Ok(Arc::new(Postgres::open(&options)?)) };
    runtime.block_on(async { Postgres::open(&options)?.migrate().await })?;
    let (submitting, working) = runtime.block_on(async { Ok::<_, Fault>((open()?, open()?)) })?;
    measure(ground, runtime, &submitting, &working)
}
