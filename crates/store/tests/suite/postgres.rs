//! The store on a PostgreSQL server.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Code, Coded as _, Priority, Secret, TaskStatus};
use carrel_store::{
    Appended, EventKind, IdempotencyKey, NewEvent, NewTask, Postgres, PostgresOptions,
    RecordStore as _, Store,
};
use carrel_testkit::conductor_store::ConductorStore;
use carrel_testkit::store::{at, claim_request, finish, new_task, workspace};
use carrel_testkit::{reference_model, run_conductor_suite, run_store_suite, servers, stress};
use pretty_assertions::assert_eq;
use serde_json::json;

pub(crate) fn open(url: &str) -> Postgres {
    Postgres::open(&PostgresOptions { url: Secret::new(url) }).unwrap()
}

/// Returns the address of a database that is up to date, for others to be copied from.
pub(crate) async fn template(server: &servers::PostgresServer) -> String {
    let url = server.database(None).await;
    assert_eq!(open(&url).migrate().await.unwrap().len(), 3);
    url
}

#[tokio::test]
async fn every_store_test_passes() {
    let server = servers::PostgresServer::start().await;
    let template = template(&server).await;
    run_store_suite(async || {
        let url = server.database(Some(&template)).await;
        Arc::new(open(&url)) as Arc<dyn Store>
    })
    .await;
}

#[tokio::test]
async fn every_conductor_test_passes() {
    let server = servers::PostgresServer::start().await;
    let template = template(&server).await;
    run_conductor_suite(async || {
        let url = server.database(Some(&template)).await;
        Arc::new(open(&url)) as Arc<dyn ConductorStore>
    })
    .await;
}

#[tokio::test]
async fn random_histories_agree_with_the_model_on_one_and_on_three_stores() {
    let server = servers::PostgresServer::start().await;
    let template = template(&server).await;
    for seed in reference_model::seeds() {
        let url = server.database(Some(&template)).await;
        let stores = [open(&url), open(&url), open(&url)];
        let stores: Vec<&dyn Store> = stores.iter().map(|store| store as &dyn Store).collect();
        let several = if seed % 2 == 0 { 1 } else { 3 };
        reference_model::play(&stores[..several], seed, reference_model::STEPS).await;
    }
}

#[tokio::test]
async fn several_processes_worth_of_callers_at_once_lose_and_double_nothing() {
    let server = servers::PostgresServer::start().await;
    let url = template(&server).await;
    let stores: Vec<_> = (0..3).map(|_| Arc::new(open(&url)) as Arc<dyn Store>).collect();
    let acknowledged = stress::stress(&stores, 8, 200, 1).await;
    assert!(acknowledged.finished.len() > 100, "{}", acknowledged.finished.len());
    stress::check(&*stores[1], &acknowledged).await;
}

#[tokio::test]
async fn the_schema_is_made_once_and_another_one_is_refused() {
    let server = servers::PostgresServer::start().await;
    let url = server.database(None).await;
    let store = open(&url);
    let error = store.counts().await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable);
    assert!(error.to_string().contains("carrel migrate"), "{error}");
    let (one, other) = (open(&url), open(&url));
    let (one, other) = tokio::join!(one.migrate(), other.migrate());
    assert_eq!(one.unwrap().len() + other.unwrap().len(), 3);
    assert_eq!(store.migrate().await.unwrap(), []);
    store.counts().await.unwrap();

    let client = client(&url).await;
    let changed = "UPDATE schema_migrations SET checksum = 'x'";
    let newer = "INSERT INTO schema_migrations (number, name, checksum) VALUES (99, 'n', 'x')";
    for change in [changed, newer] {
        client.batch_execute("BEGIN").await.unwrap();
        client.batch_execute(change).await.unwrap();
        client.batch_execute("COMMIT").await.unwrap();
        let fresh = open(&url);
        assert_eq!(fresh.counts().await.unwrap_err().code(), Code::SchemaTooNew, "{change}");
        assert_eq!(fresh.migrate().await.unwrap_err().code(), Code::SchemaTooNew, "{change}");
    }
}

pub(crate) async fn client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn the_schema_itself_keeps_what_is_terminal_and_any_text_is_kept() {
    let server = servers::PostgresServer::start().await;
    let url = template(&server).await;
    let store = open(&url);
    let workspace = workspace(&store).await;
    let odd = "a\0b\u{1f680}'\"\\";
    let new = NewTask {
        configuration: json!({ "text": odd }),
        correlation_id: Some(odd.to_owned()),
        ..new_task(workspace, Priority::High, at(0))
    };
    store.submit(new.clone()).await.unwrap();
    let claim = store.claim(claim_request(odd)).await.unwrap().claim;
    let event = NewEvent { kind: EventKind::LogLine, data: json!({ "line": odd }), at: at(1) };
    let written = store.append(claim, 2, vec![event.clone()]).await.unwrap();
    assert!(matches!(&written, Appended::Written(events) if events[0].data == event.data));
    finish(&store, claim, TaskStatus::Completed, 1).await;
    let task = store.task(new.id).await.unwrap().unwrap();
    assert_eq!(task.configuration, new.configuration);
    let client = client(&url).await;
    for change in ["status = 'queued'", "status = 'failed'", "completed_at = NULL"] {
        let change = format!("UPDATE task_executions SET {change}");
        assert!(client.batch_execute(&change).await.is_err(), "{change}");
    }
}

#[tokio::test]
async fn an_address_that_is_no_use_is_refused_without_repeating_it() {
    for url in [
        "",
        "hunter2",
        "mysql://carrel:hunter2@h/d",
        "postgresql://carrel:hunter2@h/d?sslmode=allow",
        "postgresql://carrel:hunter2@h/d?sslmode=verify-full&sslcert=hunter2",
        "postgresql://carrel:hunter2@h/d?nonsense=1",
    ] {
        let error = Postgres::open(&PostgresOptions { url: Secret::new(url) }).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn a_key_is_one_processs_until_it_lets_go_or_says_nothing_for_too_long() {
    let server = servers::PostgresServer::start().await;
    let url = template(&server).await;
    let (one, other) = (open(&url), open(&url));
    let key =
        |key: &str| IdempotencyKey { scope: "s".to_owned(), key: key.to_owned(), digest: [0; 32] };
    let (long, short) = (Duration::from_mins(1), Duration::from_millis(100));
    assert!(one.acquire_key(&key("a"), "one", long).await.unwrap());
    assert!(one.acquire_key(&key("a"), "one", long).await.unwrap());
    assert!(!other.acquire_key(&key("a"), "other", long).await.unwrap());
    assert!(other.acquire_key(&key("b"), "other", long).await.unwrap());
    other.release_key(&key("a"), "other").await.unwrap();
    assert!(!other.acquire_key(&key("a"), "other", long).await.unwrap());
    one.release_key(&key("a"), "one").await.unwrap();
    assert!(other.acquire_key(&key("a"), "other", short).await.unwrap());
    tokio::time::sleep(short * 2).await;
    assert!(one.acquire_key(&key("a"), "one", long).await.unwrap());
}
