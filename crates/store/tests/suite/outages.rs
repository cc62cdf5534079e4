//! A server that is killed, away, silent, or cut off at the worst moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_domain::{Clock as _, Code, Coded as _, Priority, SystemClock, TaskId};
use carrel_store::{Claim, RecordStore as _, Store, StoreError, Submission};
use carrel_testkit::fault_proxy::FaultProxy;
use carrel_testkit::servers;
use carrel_testkit::store::{claim_request, new_task, submit, workspace};
use carrel_testkit::stress::{Acknowledged, check, stress};
use tokio::net::TcpListener;

use crate::postgres::open;

/// The promise is a few seconds; the rest is for a busy machine.
const SECONDS: Duration = Duration::from_secs(20);

/// How often the server is killed and looked at; more in a long run.
#[expect(clippy::disallowed_methods, reason = "tests have settings of their own")]
fn rounds() -> u32 {
    std::env::var("CARREL_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Waits until the tasks of unacknowledged claims are released.
async fn settled(store: &dyn Store) {
    let until = Instant::now() + SECONDS;
    while store.counts().await.unwrap().running > 0 {
        assert!(Instant::now() < until, "a task runs without a worker");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed() {
    let mut server = servers::PostgresServer::start_durable().await;
    let url = server.database(None).await;
    let stores: Vec<_> = (0..2).map(|_| Arc::new(open(&url)) as Arc<dyn Store>).collect();
    open(&url).migrate().await.unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..rounds() {
        let taking = stores.clone();
        let acknowledged = tokio::spawn(async move { stress(&taking, 8, 100, round.into()).await });
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(rng.u64(100..900))).await;
            server.kill();
            server.restart().await;
        }
        let acknowledged: Acknowledged = acknowledged.await.unwrap();
        settled(&*stores[0]).await;
        assert!(!acknowledged.finished.is_empty());
        live_tasks_are_counted(&*stores[1], &acknowledged).await;
    }
}

/// Checks every acknowledged operation, and cancels the remaining tasks before the next round.
async fn live_tasks_are_counted(store: &dyn Store, acknowledged: &Acknowledged) {
    check(store, acknowledged).await;
    for id in &acknowledged.submitted {
        store.cancel(*id, SystemClock.now()).await.unwrap();
    }
}

#[tokio::test]
async fn a_lost_answer_loses_and_doubles_nothing() {
    let server = servers::PostgresServer::start().await;
    let url = server.database(None).await;
    let direct = open(&url);
    direct.migrate().await.unwrap();
    let proxy = FaultProxy::start(server.port(), b"COMMIT", 15).await;
    let lossy = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port()));
    let stores: Vec<_> = (0..2).map(|_| Arc::new(open(&lossy)) as Arc<dyn Store>).collect();
    let acknowledged = stress(&stores, 8, 120, 9).await;
    assert!(proxy.lost() >= 10, "{} answers were lost", proxy.lost());
    settled(&direct).await;
    check(&direct, &acknowledged).await;
}

#[tokio::test]
async fn during_an_outage_calls_fail_within_seconds_and_then_succeed_again() {
    let mut server = servers::PostgresServer::start_durable().await;
    let url = server.database(None).await;
    let store = open(&url);
    store.migrate().await.unwrap();
    let workspace = workspace(&store).await;
    let id = submit(&store, workspace, Priority::Normal).await;
    server.kill();
    let claim = Claim { task: id, attempt: 1 };
    let (begun, now) = (Instant::now(), SystemClock.now());
    let new = new_task(workspace, Priority::Normal, now);
    let away: (_, _, _, _, _, Result<(), StoreError>) = tokio::join!(
        async { store.submit(new.clone()).await.map(drop) },
        async { store.claim(claim_request("w")).await.map(drop) },
        async { store.heartbeat(claim, now).await.map(drop) },
        async { store.task(id).await.map(drop) },
        async { store.cancel(id, now).await.map(drop) },
        store.ping(),
    );
    assert!(begun.elapsed() < SECONDS, "{:?}", begun.elapsed());
    for answer in [away.0, away.1, away.2, away.3, away.4, away.5] {
        let error = answer.unwrap_err();
        assert_eq!(error.code(), Code::StoreUnavailable, "{error:?}");
        assert!(!format!("{error:?} {store:?}").contains("secret"), "{error:?}");
    }
    server.restart().await;
    assert!(matches!(store.submit(new).await.unwrap(), Submission::Created(..)));
    assert_eq!(store.claim(claim_request("w")).await.unwrap().claim.task, id);
}

#[tokio::test]
async fn a_silent_server_makes_calls_fail_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let store = open(&format!("postgresql://carrel:secret@127.0.0.1:{port}/postgres"));
    let begun = Instant::now();
    let (read, claimed) =
        tokio::join!(store.task(TaskId::generate()), store.claim(claim_request("w")));
    assert_eq!(read.unwrap_err().code(), Code::StoreUnavailable);
    assert_eq!(claimed.unwrap_err().code(), Code::StoreUnavailable);
    assert!(begun.elapsed() < SECONDS, "{:?}", begun.elapsed());
}
