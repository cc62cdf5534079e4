//! What tests of several crates share.
//!
//! [`store`] says what every store promises. An implementation runs all of it with [`store_suite!`], or
//! with [`keep_promises`] where a store of its own for each test would cost too much; [`journal`] does the
//! same for what the conductor keeps. [`servers`] are real ones, [`agents`] and their [`fake_model`] of
//! answers are scripted.
#![forbid(unsafe_code)]
#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    missing_docs,
    reason = "a promise is named by its function and broken by a panic"
)]

pub mod agents;
pub mod fake_model;
pub mod fault_proxy;
pub mod journal;
pub mod processes;
pub mod reference_model;
pub mod servers;
pub mod store;
pub mod stress;

use std::pin::Pin;
use std::sync::Arc;

use carrel_store::Store;
use tokio::task::JoinHandle;

/// Gives the names of all promises to a macro, after whatever else it is given.
#[macro_export]
macro_rules! promises {
    ($with:ident $($first:tt)*) => {
        $crate::$with! { @each $($first)*;
            a_submitted_task_is_queued_and_says_so,
            a_task_needs_a_workspace,
            a_repeated_submission_returns_the_first_task,
            no_more_tasks_wait_than_may,
            urgency_decides_inside_a_workspace_and_age_among_equals,
            workspaces_take_turns,
            no_workspace_runs_more_than_it_may,
            a_claimed_task_is_invisible_until_its_lease_ends,
            a_heartbeat_keeps_a_claim,
            every_write_of_a_lost_claim_is_refused,
            a_task_that_is_lost_too_often_is_dead,
            a_task_given_back_in_peace_is_not_lost,
            a_delayed_task_waits_for_its_time,
            the_tasks_of_dead_workers_are_taken_back,
            a_queued_task_is_cancelled_at_once,
            a_cancelled_running_task_never_counts_as_completed,
            a_cancelled_task_of_a_lost_worker_is_not_begun_again,
            what_is_terminal_is_final,
            events_are_numbered_without_gaps_and_the_last_one_is_terminal,
            a_waiting_worker_gets_what_is_submitted,
            a_worker_that_gives_up_loses_no_task,
            lists_are_filtered_newest_first_and_in_parts,
            the_first_reply_is_remembered,
            credentials_are_kept_by_workspace_and_name,
            a_workspace_with_live_tasks_is_not_forgotten,
            old_replies_and_tasks_are_forgotten_and_live_ones_are_not,
            the_same_submission_again_makes_one_task,
            a_submission_asked_again_tells_how_the_task_stands,
            the_same_events_again_are_not_doubled,
            the_same_end_again_is_answered_as_before,
            an_end_is_not_taken_for_that_of_another_attempt,
            a_claim_places_its_workspace_and_others_leave_it_alone,
            a_waiting_worker_of_one_volume_does_not_stand_in_the_way_of_others,
            a_workspace_is_placed_once_where_the_fewest_are,
            workers_are_known_while_they_give_signs_of_life,
            what_waits_is_listed_by_urgency_and_age,
            a_task_that_could_not_be_queued_fails_and_gives_its_key_back,
        }
    };
}

/// Runs every promise of a store as a test of its own. The expression is a function that makes an empty
/// store and returns it together with whatever has to be kept alive.
#[macro_export]
macro_rules! store_suite {
    ($make:expr) => {
        $crate::promises! { store_suite $make }

        #[tokio::test]
        async fn random_histories_agree_with_the_model() {
            for seed in $crate::reference_model::seeds() {
                let (store, _kept) = $make().await;
                $crate::reference_model::play(&[&store], seed, $crate::reference_model::STEPS).await;
            }
        }
    };
    (@each $make:expr; $($name:ident,)+) => {$(
        #[tokio::test]
        async fn $name() {
            let (store, _kept) = $make().await;
            $crate::store::$name(&store).await;
        }
    )+};
}

/// A promise, to be held against a store.
pub type Promise = for<'a> fn(&'a dyn Store) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

#[doc(hidden)]
#[macro_export]
macro_rules! listed {
    (@each ; $($name:ident,)+) => {
        &[$((stringify!($name), |store| Box::pin($crate::store::$name(store)))),+]
    };
}

/// Every promise with its name.
pub const PROMISES: &[(&str, Promise)] = promises! { listed };

/// Holds every promise against a store of its own, several at once, and names those that are broken.
pub async fn keep_promises(make: impl AsyncFn() -> Arc<dyn Store>) {
    let mut kept = Vec::new();
    for (name, promise) in PROMISES {
        let store = make().await;
        kept.push((*name, tokio::spawn(async move { promise(&*store).await })));
    }
    none_is_broken(kept).await;
}

/// Does as [`keep_promises`] does, with those to the conductor.
pub async fn keep_journal_promises(make: impl AsyncFn() -> Arc<dyn journal::ConductorStore>) {
    let mut kept = Vec::new();
    for (name, promise) in journal::PROMISES {
        let store = make().await;
        kept.push((*name, tokio::spawn(async move { promise(&*store).await })));
    }
    none_is_broken(kept).await;
}

async fn none_is_broken(kept: Vec<(&str, JoinHandle<()>)>) {
    let mut broken = Vec::new();
    for (name, kept) in kept {
        if kept.await.is_err() {
            broken.push(name);
        }
    }
    assert!(broken.is_empty(), "broken: {broken:?}");
}
