//! Tenures of conductors, and writes of a superseded one.

use std::time::{Duration, Instant};

use carrel_domain::{Code, Coded as _};
use carrel_store::{
    IssueFilter, IssueStore as _, Journal, JournalRecord, NewComment, NewIssue, NewRun, Postgres,
    Sqlite, SqliteOptions, StoreError, Tenure, TenureOutcome,
};
use carrel_testkit::conductor_store::{acquire, save};
use carrel_testkit::fault_proxy::FaultProxy;
use carrel_testkit::servers;
use carrel_testkit::store::at;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::time::timeout;

use crate::postgres::{client, open, template};

/// The promise is a few seconds; the rest is for a busy machine.
const SECONDS: Duration = Duration::from_secs(20);

const SCOPE: &str = "local";

fn note() -> Vec<JournalRecord> {
    vec![save("a", json!("mine"))]
}

async fn refused(store: &dyn Journal, tenure: &Tenure) -> String {
    let error = store.append(tenure, note(), at(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Superseded { .. }), "{error:?}");
    assert_eq!(error.code(), Code::WorkspaceBusy);
    let forgetting = store.delete_runs(tenure, at(1)).await.unwrap_err();
    assert!(matches!(forgetting, StoreError::Superseded { .. }), "{forgetting:?}");
    assert_eq!(store.entries(SCOPE).await.unwrap(), []);
    error.to_string()
}

async fn held(store: &Postgres, holder: &str) -> Option<String> {
    match store.acquire(SCOPE, holder, at(2)).await.unwrap() {
        TenureOutcome::Acquired(_) => None,
        TenureOutcome::Held { by } => Some(by),
    }
}

/// Breaks the connections that hold a scope, as a network does, and waits until the server has noticed.
async fn cut(url: &str) {
    let cut = "SELECT pg_terminate_backend(pid), pid FROM pg_locks
        WHERE locktype = 'advisory' AND pid <> pg_backend_pid()";
    let client = client(url).await;
    let ended: Vec<i32> =
        client.query(cut, &[]).await.unwrap().iter().map(|row| row.get(1)).collect();
    assert!(!ended.is_empty());
    let left = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY($1)";
    while !client.query(left, &[&ended]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn in_one_file_the_last_to_take_a_scope_writes() {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions { path: directory.path().join("carrel.db") };
    let (one, other) = (Sqlite::open(&options).unwrap(), Sqlite::open(&options).unwrap());
    let first = acquire(&one, SCOPE, "the first").await;
    let second = acquire(&other, SCOPE, "the second").await;
    assert!(refused(&one, &first).await.contains("the second"));
    other.append(&second, note(), at(1)).await.unwrap();
    let elsewhere = acquire(&one, "linear:x", "the first").await;
    one.append(&elsewhere, note(), at(1)).await.unwrap();
}

#[tokio::test]
async fn a_scope_is_held_until_its_tenure_is_dropped() {
    let server = servers::PostgresServer::start().await;
    let url = template(&server).await;
    let (one, other) = (open(&url), open(&url));
    let first = acquire(&one, SCOPE, "process 1 on a").await;
    let elsewhere = acquire(&other, "linear:x", "process 2 on b").await;
    assert_eq!(held(&other, "process 2 on b").await.as_deref(), Some("process 1 on a"));
    one.append(&first, note(), at(1)).await.unwrap();
    other.append(&elsewhere, note(), at(1)).await.unwrap();
    drop(first);
    let begun = Instant::now();
    assert_eq!(held(&other, "process 2 on b").await, None);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_superseded_conductor_writes_nothing_and_learns_of_its_successor() {
    let server = servers::PostgresServer::start().await;
    let url = template(&server).await;
    let (one, other) = (open(&url), open(&url));
    let first = acquire(&one, SCOPE, "the first").await;
    cut(&url).await;
    // Before the first one can take it up again.
    let second = acquire(&other, SCOPE, "the second").await;
    assert!(refused(&one, &first).await.contains("the second"));
    assert_eq!(timeout(SECONDS, first.lost()).await.unwrap(), "the second");
    other.append(&second, note(), at(1)).await.unwrap();
}

#[tokio::test]
async fn a_tenure_survives_a_broken_connection_and_a_restart_of_the_server() {
    let mut server = servers::PostgresServer::start_durable().await;
    let url = template(&server).await;
    let (one, other) = (open(&url), open(&url));
    let first = acquire(&one, SCOPE, "the first").await;
    for round in 0..2 {
        if round == 0 {
            cut(&url).await;
        } else {
            server.kill();
            assert!(matches!(
                one.append(&first, note(), at(1)).await,
                Err(StoreError::Unavailable(_))
            ));
            server.restart().await;
        }
        let begun = Instant::now();
        while !is_locked(&url).await {
            assert!(begun.elapsed() < SECONDS, "it is not taken up again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        one.append(&first, note(), at(1)).await.unwrap();
        assert_eq!(held(&other, "the second").await.as_deref(), Some("the first"));
    }
    assert!(timeout(Duration::from_millis(1500), first.lost()).await.is_err());
}

async fn is_locked(url: &str) -> bool {
    let locks = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted";
    !client(url).await.query(locks, &[]).await.unwrap().is_empty()
}

#[tokio::test]
async fn a_lost_reply_doubles_no_issue_no_comment_and_no_run() {
    let server = servers::PostgresServer::start().await;
    let url = template(&server).await;
    let proxy = FaultProxy::start(server.port(), b"COMMIT", 3).await;
    let lossy = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port()));
    let store = open(&lossy);
    let tenure = acquire(&store, SCOPE, "the first").await;
    for number in 1..=20_u64 {
        let new = NewIssue { title: number.to_string(), ..NewIssue::default() };
        store.add_issue(new, at(1)).await.unwrap();
        let comment = NewComment { author: "anna".to_owned(), body: number.to_string() };
        store.comment(1, comment, at(1)).await.unwrap();
        let run = NewRun {
            run: number,
            issue: "a".to_owned(),
            identifier: "A".to_owned(),
            attempt: 0,
            transcript: None,
        };
        store.append(&tenure, vec![JournalRecord::RunStarted(run)], at(1)).await.unwrap();
    }
    assert!(proxy.lost() > 5, "{}", proxy.lost());
    let direct = open(&url);
    let issues = direct.issues(IssueFilter::default()).await.unwrap();
    let titles: Vec<_> = issues.into_iter().map(|issue| issue.title).collect();
    assert_eq!(titles, (1..=20).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(direct.comments(1, 100).await.unwrap().len(), 20);
    assert_eq!(direct.last_run(SCOPE).await.unwrap(), Some(20));
}
