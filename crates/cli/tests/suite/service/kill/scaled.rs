//! `kill -9` of a server, of workers, of Redis and of PostgreSQL at random moments.

use std::time::Duration;

use super::{MOST_QUIET, Scenario, TENANTS, number};
use crate::service::cluster::{Cluster, WorkerProcess, until_ready};
use crate::test_environment::is_soak;

/// What is killed.
const VICTIMS: usize = 4;

#[test]
fn nothing_that_was_acknowledged_is_lost_whichever_process_is_killed() {
    let seed = number("CARREL_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("CARREL_SEED={seed}");
    let each = number("CARREL_KILL_ROUNDS").unwrap_or(2);
    let rounds = each * VICTIMS as u64;
    let tasks = if is_soak() { 1000 } else { 32 };
    let mut cluster = Cluster::start();
    let mut api = cluster.api(&[]);
    let start = |cluster: &Cluster| cluster.worker("shared", &[("WORKER_CONCURRENCY", "4")]);
    let mut workers: Vec<WorkerProcess> = (0..2).map(|_| start(&cluster)).collect();
    let clients = (0..TENANTS).map(|_| api.client()).collect();
    let scenario = Scenario::new(clients, api.address, tasks, rounds, seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut order: Vec<usize> = (0..each).flat_map(|_| 0..VICTIMS).collect();
    random.shuffle(&mut order);
    let told_by_task = scenario.play(|| {
        for victim in order {
            std::thread::sleep(Duration::from_millis(random.u64(20..MOST_QUIET)));
            match victim {
                0 => {
                    api.kill();
                    api.begin_again();
                    *scenario.address.write().unwrap() = api.address;
                }
                1 => {
                    let chosen = random.usize(..workers.len());
                    workers[chosen].kill();
                    workers[chosen] = start(&cluster);
                }
                2 => {
                    cluster.redis.kill();
                    std::thread::sleep(Duration::from_millis(random.u64(..300)));
                    cluster.redis.restart();
                }
                _ => {
                    cluster.postgres.kill();
                    std::thread::sleep(Duration::from_millis(random.u64(..300)));
                    cluster.restart_postgres();
                }
            }
        }
    });
    until_ready(&scenario.client(0), "ready");
    let again = scenario.check(&told_by_task);
    eprintln!("{each} kills of each of {VICTIMS}, {again} of {tasks} tasks begun again");
}
