//! The test at fault when a process ended before its results, found by a second run.

use crate::parse::{ENDED_EARLY, TestReport, Verdict};
use crate::plan::Selector;

/// Returns the parts of a run whose process ended early and whose running test is unknown.
pub fn unnamed_parts(report: &TestReport) -> Vec<Selector> {
    let parts = report.failures.iter().filter_map(|failure| failure.rerun.as_ref());
    parts.filter(|part| part.name.is_empty()).cloned().collect()
}

/// Replaces the failure of a part by that of the test which the second run names.
///
/// `second` is the report of [`crate::plan::plan_one_at_a_time`] for this part. If it names no test,
/// the failure stays and says what the second run did.
pub fn name_running_test(report: &mut TestReport, part: &Selector, second: &TestReport) {
    let is_part = |rerun: &Option<Selector>| rerun.as_ref() == Some(part);
    let Some(failure) = report.failures.iter_mut().find(|failure| is_part(&failure.rerun)) else {
        return;
    };
    let named = second.failures.iter().find(|found| {
        let has_name = found.rerun.as_ref().is_some_and(|rerun| !rerun.name.is_empty());
        has_name && found.message.starts_with(ENDED_EARLY)
    });
    match (named, &second.verdict) {
        (Some(named), _) => *failure = named.clone(),
        (None, Verdict::Passed) => {
            failure.message.push_str("; all tests passed when run again, one at a time");
        }
        (None, Verdict::Failed | Verdict::CouldNotRun { .. }) => {
            failure.message.push_str("; a second run, one test at a time, did not name the test");
        }
    }
}
