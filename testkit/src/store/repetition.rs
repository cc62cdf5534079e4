//! Repeated writes: an operation whose reply was lost takes effect once.

use carrel_domain::{Priority, TaskStatus};
use carrel_store::{Appended, Finish, Finished, IdempotencyKey, NewTask, Store, Submission};
use pretty_assertions::assert_eq;

use super::{
    all_events, at, claim_one, created, end, finish, log_line, new_task, no_delay, status, submit,
    task, workspace,
};

pub async fn a_submission_with_the_same_id_makes_one_task(store: &dyn Store) {
    let workspace = workspace(store).await;
    let key = IdempotencyKey { scope: "s".to_owned(), key: "k".to_owned(), digest: [1; 32] };
    for key in [None, Some(key)] {
        let new = NewTask { idempotency_key: key, ..new_task(workspace, Priority::Normal, at(0)) };
        let first = store.submit(new.clone()).await.unwrap();
        assert!(matches!(first, Submission::Created(..)), "{first:?}");
        assert_eq!(store.submit(new.clone()).await.unwrap(), first);
        assert_eq!(all_events(store, new.id).await.len(), 1);
    }
    assert_eq!(store.counts().await.unwrap().queued, 2);
    // The limit does not apply to a task that is queued already.
    let last = NewTask { max_waiting: 3, ..new_task(workspace, Priority::Normal, at(0)) };
    created(store.submit(last.clone()).await.unwrap());
    created(store.submit(last).await.unwrap());
}

pub async fn a_repeated_submission_returns_the_current_task(store: &dyn Store) {
    let workspace = workspace(store).await;
    let new = new_task(workspace, Priority::Normal, at(0));
    created(store.submit(new.clone()).await.unwrap());
    claim_one(store, 1).await;
    assert_eq!(created(store.submit(new).await.unwrap()).status, TaskStatus::Running);
}

pub async fn a_repeated_append_writes_nothing(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let claim = claim_one(store, 0).await;
    let events = vec![log_line("a", 1), log_line("b", 1)];
    let first = store.append(claim, 2, events.clone()).await.unwrap();
    assert!(matches!(&first, Appended::Written(events) if events.len() == 2), "{first:?}");
    assert_eq!(store.append(claim, 2, events).await.unwrap(), first);
    assert_eq!(task(store, id).await.last_event, 4);
    // Other events with the same numbers, and numbers that are not the next, are refused.
    for (after, line) in [(2, "c"), (3, "b"), (0, "a"), (9, "d")] {
        let events = vec![log_line(line, 2)];
        assert_eq!(store.append(claim, after, events).await.unwrap(), Appended::Lost, "{after}");
    }
    assert_eq!(all_events(store, id).await.len(), 4);
    let more = store.append(claim, 4, vec![log_line("e", 2)]).await.unwrap();
    assert!(matches!(&more, Appended::Written(events) if events[0].number == 5), "{more:?}");
}

pub async fn a_repeated_finish_gets_the_same_reply(store: &dyn Store) {
    let workspace = workspace(store).await;
    for cancelled in [false, true] {
        let id = submit(store, workspace, Priority::Normal).await;
        let claim = claim_one(store, 0).await;
        if cancelled {
            store.cancel(id, at(1)).await.unwrap();
        }
        let last = Finish { events: vec![log_line("z", 1)], ..end(2, TaskStatus::Completed, 1) };
        let wrong = Finish { after: 1, ..last.clone() };
        assert_eq!(store.finish(claim, wrong).await.unwrap(), Finished::Lost);
        let done = store.finish(claim, last.clone()).await.unwrap();
        assert!(matches!(&done, Finished::Done { events, .. } if events.len() == 2), "{done:?}");
        let before = (task(store, id).await, all_events(store, id).await);
        assert_eq!(store.finish(claim, last.clone()).await.unwrap(), done);
        assert_eq!((task(store, id).await, all_events(store, id).await), before);
    }
}

pub async fn a_finish_of_another_attempt_is_lost(store: &dyn Store) {
    let workspace = workspace(store).await;
    let id = submit(store, workspace, Priority::Normal).await;
    let lost = claim_one(store, 0).await;
    store.release_expired(at(60), no_delay).await.unwrap();
    let holder = claim_one(store, 60).await;
    finish(store, holder, TaskStatus::Completed, 61).await;
    for after in 0..6 {
        let late = end(after, TaskStatus::Completed, 61);
        assert_eq!(store.finish(lost, late).await.unwrap(), Finished::Lost, "{after}");
    }
    assert_eq!(status(store, id).await, TaskStatus::Completed);
}
