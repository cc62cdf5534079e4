//! Fakes, real servers and suites that the tests of several crates share.
//!
//! [`store`] has one test for each promise of `carrel_store::Store`, as a function that takes any store. An
//! implementation runs them as tests of their own with [`store_suite!`], or all in one test with
//! [`run_store_suite`] where creating a store for each is too slow; [`reference_model`] compares random
//! histories with a model of the queue, and [`stress`] runs many clients at once and checks that nothing that
//! was acknowledged is lost. [`conductor_store`] is the same for the journal and the embedded tracker.
//!
//! [`servers`] starts real PostgreSQL and Redis servers, and [`fault_proxy`] breaks connections to them at
//! chosen messages. [`agents`] are scripted agents and [`fake_model`] a scripted model for real ones.
#![forbid(unsafe_code)]
#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    missing_docs,
    reason = "each function is a test: its name is the claim, and it fails by panicking"
)]

pub mod agents;
pub mod conductor_store;
pub mod fake_model;
pub mod fault_proxy;
pub mod processes;
pub mod reference_model;
pub mod servers;
pub mod store;
pub mod stress;

use std::pin::Pin;
use std::sync::Arc;

use carrel_store::Store;
use tokio::task::JoinHandle;

/// Passes the names of all store tests to a macro, after its own arguments.
#[macro_export]
macro_rules! store_tests {
    ($with:ident $($first:tt)*) => {
        $crate::$with! { @each $($first)*;
            a_submitted_task_is_queued_and_says_so,
            a_task_needs_a_workspace,
            a_repeated_submission_returns_the_first_task,
            a_full_queue_refuses_submissions,
            priority_and_then_age_decide_inside_a_workspace,
            workspaces_take_turns,
            no_workspace_runs_more_than_it_may,
            a_claimed_task_is_invisible_until_its_lease_ends,
            a_heartbeat_keeps_a_claim,
            every_write_of_a_lost_claim_is_refused,
            a_task_that_is_lost_too_often_is_dead,
            an_orderly_release_does_not_count_as_lost,
            a_delayed_task_waits_for_its_time,
            the_tasks_of_dead_workers_are_released,
            a_queued_task_is_cancelled_at_once,
            a_cancelled_running_task_never_counts_as_completed,
            a_cancelled_task_of_a_lost_worker_is_not_retried,
            a_terminal_status_is_final,
            events_are_numbered_without_gaps_and_the_last_one_is_terminal,
            a_waiting_claim_gets_a_submitted_task,
            a_cancelled_claim_loses_no_task,
            lists_are_filtered_and_paged_newest_first,
            the_first_reply_is_stored,
            credentials_are_kept_by_workspace_and_name,
            a_workspace_with_live_tasks_is_not_deleted,
            old_replies_and_tasks_are_deleted_and_live_ones_are_not,
            a_submission_with_the_same_id_makes_one_task,
            a_repeated_submission_returns_the_current_task,
            a_repeated_append_writes_nothing,
            a_repeated_finish_gets_the_same_reply,
            a_finish_of_another_attempt_is_lost,
            a_claim_assigns_its_volume_to_the_workspace,
            a_waiting_claim_of_one_volume_does_not_block_others,
            a_workspace_is_assigned_once_to_the_emptiest_volume,
            workers_are_listed_by_the_age_of_their_registration,
            queued_tasks_are_listed_by_priority_and_age,
            failing_a_queued_task_frees_its_idempotency_key,
        }
    };
}

/// Defines every store test and the comparison with the reference model as tests of their own. The argument is
/// an async function that returns an empty store and a guard that keeps it alive.
#[macro_export]
macro_rules! store_suite {
    ($make:expr) => {
        $crate::store_tests! { store_suite $make }

        #[tokio::test]
        async fn random_histories_agree_with_the_model() {
            for seed in $crate::reference_model::seeds() {
                let (store, _guard) = $make().await;
                $crate::reference_model::play(&[&store], seed, $crate::reference_model::STEPS).await;
            }
        }
    };
    (@each $make:expr; $($name:ident,)+) => {$(
        #[tokio::test]
        async fn $name() {
            let (store, _guard) = $make().await;
            $crate::store::$name(&store).await;
        }
    )+};
}

/// A test of any store.
pub type Test = for<'a> fn(&'a dyn Store) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

#[doc(hidden)]
#[macro_export]
macro_rules! store_test_list {
    (@each ; $($name:ident,)+) => {
        &[$((stringify!($name), |store| Box::pin($crate::store::$name(store)))),+]
    };
}

/// Every store test with its name.
pub const TESTS: &[(&str, Test)] = store_tests! { store_test_list };

/// Runs every store test on a store of its own, all at once, and panics with the names of failed tests.
pub async fn run_store_suite(make: impl AsyncFn() -> Arc<dyn Store>) {
    let mut running = Vec::new();
    for (name, test) in TESTS {
        let store = make().await;
        running.push((*name, tokio::spawn(async move { test(&*store).await })));
    }
    assert_all_passed(running).await;
}

/// Runs every test of [`conductor_store`] in the same way.
pub async fn run_conductor_suite(make: impl AsyncFn() -> Arc<dyn conductor_store::ConductorStore>) {
    let mut running = Vec::new();
    for (name, test) in conductor_store::TESTS {
        let store = make().await;
        running.push((*name, tokio::spawn(async move { test(&*store).await })));
    }
    assert_all_passed(running).await;
}

async fn assert_all_passed(running: Vec<(&str, JoinHandle<()>)>) {
    let mut failed = Vec::new();
    for (name, test) in running {
        if test.await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}
