//! A real tracker, with real credentials: items 89 to 92 of the acceptance list.
//!
//! Reported as skipped unless it is asked for, and a failure once it is:
//!
//! ```sh
//! CARREL_REAL_WORKFLOW=WORKFLOW.md LINEAR_API_KEY=… \
//!   cargo nextest run -p carrel-tracker --run-ignored only real::
//! ```
//!
//! It reads, and changes nothing: there is nothing to clean up.

use std::path::Path;

use carrel_client::HttpClient;
use carrel_config::{Environment, ValidationScope, Workflow};
use carrel_tracker::{Issue, IssueId, from_config};
use pretty_assertions::assert_eq;

/// Names the workflow file; its secrets come from the environment.
const FILE: &str = "CARREL_REAL_WORKFLOW";

/// As many ids as take two batches everywhere.
const IDS: usize = 105;

#[tokio::test]
#[ignore = "needs a real tracker: set CARREL_REAL_WORKFLOW, and the secret that the file names"]
async fn item_089_to_092_a_real_tracker_answers() {
    let environment = Environment::process();
    let file = environment.get_str(FILE).expect("CARREL_REAL_WORKFLOW names a workflow file");
    let workflow =
        Workflow::load(Path::new(file), &environment, ValidationScope::Everything).unwrap();
    let config = workflow.config.conductor.unwrap().tracker;
    let tracker = from_config(&config, &HttpClient::new(), None).unwrap();

    let listed = tracker.by_states(&config.active_states).await.unwrap();
    let known: Vec<_> = listed.iter().take(IDS).cloned().collect();
    let mut ids: Vec<IssueId> = known.iter().map(|issue| issue.id.clone()).collect();
    assert_eq!(tracker.by_ids(&ids).await.unwrap(), known, "both reads tell the same");
    ids.push(IssueId("2147483646".to_owned()));
    assert_eq!(
        tracker.by_ids(&ids).await.unwrap().len(),
        known.len(),
        "what is not there is left out"
    );
    assert!(listed.iter().all(Issue::is_well_formed));
}
