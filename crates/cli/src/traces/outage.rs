//! Log lines about an unreachable collector: one when the outage begins, one when it ends.

use std::time::{Duration, Instant};

use carrel_traces::export_counts;
use hyper::Uri;
use tracing::{info, warn};

/// The interval of warnings about dropped spans.
const SAID_AGAIN: Duration = Duration::from_mins(1);

/// The state of the connection, as it was logged.
#[derive(Debug, Default)]
pub(super) struct Outage {
    goes_on: bool,
    /// Lost spans that people have heard of, and when they did.
    told: u64,
    told_at: Option<Instant>,
}

impl Outage {
    pub(super) fn begins(&mut self, endpoint: &Uri, problem: &str) {
        if !self.goes_on {
            self.goes_on = true;
            warn!(%endpoint, problem, "traces cannot be sent");
        }
    }

    pub(super) fn ends(&mut self, endpoint: &Uri) {
        if self.goes_on {
            self.goes_on = false;
            let lost = self.newly_lost();
            info!(%endpoint, lost, "traces are sent again");
        }
    }

    /// Says how many spans were lost although the collector is there.
    pub(super) fn tell_lost(&mut self) {
        let recently = self.told_at.is_some_and(|told| told.elapsed() < SAID_AGAIN);
        if self.goes_on || recently {
            return;
        }
        match self.newly_lost() {
            0 => {}
            lost => warn!(
                lost,
                "spans were lost: more came than could be sent, or the collector did not want them"
            ),
        }
    }

    /// Logs the dropped spans that were not reported yet, at the end.
    pub(super) fn tell_rest(&mut self) {
        match self.newly_lost() {
            0 => {}
            lost => warn!(lost, "spans were not sent"),
        }
    }

    fn newly_lost(&mut self) -> u64 {
        let lost = export_counts().map_or(0, |counts| counts.dropped);
        let newly = lost.saturating_sub(self.told);
        if newly > 0 {
            (self.told, self.told_at) = (lost, Some(Instant::now()));
        }
        newly
    }
}
