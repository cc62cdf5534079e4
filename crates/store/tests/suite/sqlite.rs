//! The store in one file.

use carrel_domain::{Code, Coded as _, Priority, TaskStatus, WorkspaceId};
use carrel_store::{
    IssueFilter, IssueOutcome, IssueStore as _, NewIssue, RecordStore as _, Sqlite, SqliteOptions,
    Store as _,
};
use carrel_testkit::store::{all_events, at, claim_request, finish, submit, workspace};
use pretty_assertions::assert_eq;
use rusqlite::Connection;
use tempfile::TempDir;

fn open(directory: &TempDir) -> Sqlite {
    Sqlite::open(&SqliteOptions { path: directory.path().join("carrel.db") }).unwrap()
}

#[expect(clippy::unused_async, reason = "other stores need it")]
async fn make() -> (Sqlite, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (open(&directory), directory)
}

carrel_testkit::store_suite!(make);
carrel_testkit::conductor_suite!(make);

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let (store, directory) = make().await;
    let id = submit(&store, workspace(&store).await, Priority::High).await;
    let before = (store.task(id).await.unwrap(), all_events(&store, id).await);
    drop(store);
    let store = open(&directory);
    assert_eq!((store.task(id).await.unwrap(), all_events(&store, id).await), before);
}

#[tokio::test]
async fn the_number_of_an_issue_that_is_gone_is_not_given_again() {
    let (store, directory) = make().await;
    let new = NewIssue { title: "one".to_owned(), ..NewIssue::default() };
    store.add_issue(new.clone(), at(1)).await.unwrap();
    let connection = Connection::open(directory.path().join("carrel.db")).unwrap();
    connection.execute("DELETE FROM issues", []).unwrap();
    let answer = store.add_issue(new, at(1)).await.unwrap();
    assert!(matches!(answer, IssueOutcome::Done(issue) if issue.number == 2));
}

#[tokio::test]
async fn two_processes_see_each_others_issues() {
    let (store, directory) = make().await;
    let other = open(&directory);
    let new = NewIssue { title: "one".to_owned(), ..NewIssue::default() };
    let writers = [store, other].map(|store| {
        let new = new.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                store.add_issue(new.clone(), at(1)).await.unwrap();
            }
            store.issues(IssueFilter::default()).await.unwrap().len()
        })
    });
    let mut counts = Vec::new();
    for writer in writers {
        counts.push(writer.await.unwrap());
    }
    assert_eq!(counts.into_iter().max(), Some(100));
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let (store, directory) = make().await;
    drop(store);
    let path = directory.path().join("carrel.db");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = Sqlite::open(&SqliteOptions { path }).unwrap_err();
    assert_eq!(error.code(), Code::SchemaTooNew);
}

#[tokio::test]
async fn a_file_of_an_older_version_is_brought_up_to_date_and_keeps_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carrel.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("../../src/sqlite/migrations/0001_tasks.sql")).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let add = "INSERT INTO workspaces (id, name, layout, quota_bytes, created_at)
               VALUES (zeroblob(16), 'old', 'tenant', 1, 2)";
    connection.execute(add, []).unwrap();
    drop(connection);
    for _ in 0..2 {
        let store = open(&directory);
        let known = store.workspace(WorkspaceId::from_bytes([0; 16])).await.unwrap().unwrap();
        assert_eq!((known.name.as_str(), known.volume), ("old", None));
    }
}

#[tokio::test]
async fn the_schema_itself_keeps_what_is_terminal() {
    let (store, directory) = make().await;
    submit(&store, workspace(&store).await, Priority::High).await;
    let claim = store.claim(claim_request("w")).await.unwrap().claim;
    finish(&store, claim, TaskStatus::Completed, 1).await;
    let connection = Connection::open(directory.path().join("carrel.db")).unwrap();
    for change in ["status = 'queued'", "status = 'running'", "status = 'failed'"] {
        let changed =
            connection.execute(&format!("UPDATE task_executions SET {change}"), []).unwrap_err();
        assert!(changed.to_string().contains("terminal"), "{change}: {changed}");
    }
    assert!(connection.execute("UPDATE task_executions SET completed_at = NULL", []).is_err());
}

#[tokio::test]
async fn many_submitters_and_workers_share_commits_and_lose_nothing() {
    const EACH: usize = 50;
    let (store, _directory) = make().await;
    let workspace = workspace(&store).await;
    let submitters: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    submit(&store, workspace, Priority::Normal).await;
                }
            })
        })
        .collect();
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut done = Vec::new();
                for _ in 0..8 * EACH / 4 {
                    let claim =
                        store.claim(claim_request(&format!("w{number}"))).await.unwrap().claim;
                    finish(&store, claim, TaskStatus::Completed, 1).await;
                    done.push(claim.task);
                }
                done
            })
        })
        .collect();
    for submitter in submitters {
        submitter.await.unwrap();
    }
    let mut done = Vec::new();
    for worker in workers {
        done.extend(worker.await.unwrap());
    }
    done.sort_unstable();
    done.dedup();
    assert_eq!(done.len(), 8 * EACH);
    let counts = store.counts().await.unwrap();
    assert_eq!((counts.queued, counts.running), (0, 0));
}
