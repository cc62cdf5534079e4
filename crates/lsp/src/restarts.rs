//! The history of a server's unexpected ends, and the decision about the next start.
//!
//! The first end costs nothing: the next query has a new server at once. A server that keeps ending is started after a
//! growing pause, and then not at all until its last ends are long ago.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The time for which an end is remembered.
pub(crate) const WINDOW: Duration = Duration::from_mins(5);

/// Ends within the window after which a server is not started again.
const MAX_ENDS: usize = 4;

/// The pauses before the start after the first ends.
const PAUSES: [Duration; MAX_ENDS - 1] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4)];

/// Unexpected ends of a server.
#[derive(Debug, Default)]
pub(crate) struct RestartHistory {
    ends: Vec<Instant>,
    last_reason: Option<Arc<str>>,
}

/// The decision about a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartDecision {
    /// At this time, which may have passed.
    At(Instant),
    /// Not before the ends are forgotten.
    GiveUp { times: usize, reason: Arc<str> },
}

impl RestartHistory {
    /// Notes an end.
    pub(crate) fn ended(&mut self, now: Instant, reason: Arc<str>) {
        self.forget(now);
        self.ends.push(now);
        self.last_reason = Some(reason);
    }

    /// Decides about a start.
    pub(crate) fn decide(&mut self, now: Instant) -> StartDecision {
        self.forget(now);
        let times = self.ends.len();
        match (self.ends.last(), PAUSES.get(times.wrapping_sub(1))) {
            (None, _) => StartDecision::At(now),
            (Some(last), Some(pause)) => StartDecision::At(*last + *pause),
            (Some(_), None) => {
                let reason = self.last_reason.clone().unwrap_or_else(|| "it has ended".into());
                StartDecision::GiveUp { times, reason }
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        self.ends.retain(|end| now.saturating_duration_since(*end) < WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn starts_are_immediate_then_slower_then_refused_until_the_ends_are_old() {
        let mut history = RestartHistory::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(history.decide(start), StartDecision::At(start));
        let pauses = [0, 1, 4];
        for (second, pause) in pauses.into_iter().enumerate() {
            let now = at(second as u64);
            history.ended(now, "status 1".into());
            let expected = StartDecision::At(now + Duration::from_secs(pause));
            assert_eq!(history.decide(now), expected);
        }
        history.ended(at(3), "signal 9".into());
        let given_up = StartDecision::GiveUp { times: 4, reason: "signal 9".into() };
        assert_eq!(history.decide(at(200)), given_up);
        // The first three ends are forgotten.
        assert_eq!(history.decide(at(302)), StartDecision::At(at(3)));
    }
}
