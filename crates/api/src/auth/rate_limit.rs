//! Rate limits as token buckets, one for each key.
//!
//! A bucket holds up to [`RateLimitOptions::burst`] requests and refills at [`RateLimitOptions::per_second`].
//! Levels are integers in thousandths of a request, so that a rate of one per second is one unit per
//! millisecond and nothing rounds. Memory is bounded by [`RateLimitOptions::max_buckets`]: full buckets are
//! forgotten first, since a new bucket is full as well, then the least recently used quarter.
//!
//! The limits are those of one process; a restart forgets them.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;

use carrel_domain::{Timestamp, WorkspaceId, sync};

/// Requests per second of a workspace, sustained.
pub const REQUESTS_PER_SECOND: NonZeroU32 = NonZeroU32::new(5_000).expect("more than none");

/// Requests that a workspace may send at once after a pause.
pub const BURST: NonZeroU32 = NonZeroU32::new(10_000).expect("more than none");

/// Buckets in memory.
pub const MAX_BUCKETS: usize = 10_000;

const REQUEST: u64 = 1000;

/// The parameters of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitOptions {
    /// Requests per second, sustained.
    pub per_second: NonZeroU32,
    /// Requests at once after a pause.
    pub burst: NonZeroU32,
    /// Buckets in memory.
    pub max_buckets: usize,
}

impl Default for RateLimitOptions {
    fn default() -> Self {
        Self { per_second: REQUESTS_PER_SECOND, burst: BURST, max_buckets: MAX_BUCKETS }
    }
}

/// The rate limit is exhausted; the time until the next request is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; try again in {} s", self.seconds())]
pub struct RetryAfter(pub Duration);

impl RetryAfter {
    /// Returns the value of `Retry-After`: whole seconds, rounded up, at least 1.
    pub fn seconds(&self) -> u64 {
        let started = u64::from(self.0.subsec_nanos() > 0);
        (self.0.as_secs() + started).max(1)
    }
}

/// A token bucket for each key.
#[derive(Debug)]
pub struct RateLimits<K = WorkspaceId> {
    options: RateLimitOptions,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: u64,
    seen: Timestamp,
}

impl<K: Eq + Hash> RateLimits<K> {
    /// Creates limits whose buckets are full.
    pub fn new(options: RateLimitOptions) -> Self {
        Self { options, buckets: Mutex::default() }
    }

    /// Takes a request from the bucket of `key`, or returns the time until there is one.
    pub fn check(&self, key: K, now: Timestamp) -> Result<(), RetryAfter> {
        let mut buckets = sync::lock(&self.buckets);
        if buckets.len() >= self.options.max_buckets && !buckets.contains_key(&key) {
            self.make_room(&mut buckets, now);
        }
        let bucket = buckets.entry(key).or_insert(Bucket { level: self.capacity(), seen: now });
        bucket.level = self.level(*bucket, now);
        // After the clock was set back, refilling continues from the new time.
        bucket.seen = now;
        if bucket.level < REQUEST {
            let missing = REQUEST - bucket.level;
            return Err(RetryAfter(Duration::from_millis(missing.div_ceil(self.rate()))));
        }
        bucket.level -= REQUEST;
        Ok(())
    }

    /// Removes full buckets, and if that is not enough, the least recently used quarter. Removing many at
    /// once amortises the scan.
    fn make_room(&self, buckets: &mut HashMap<K, Bucket>, now: Timestamp) {
        buckets.retain(|_, bucket| self.level(*bucket, now) < self.capacity());
        if buckets.len() < self.options.max_buckets {
            return;
        }
        let mut seen: Vec<_> = buckets.values().map(|bucket| bucket.seen).collect();
        seen.sort_unstable();
        let mut going = seen.len() / 4 + 1;
        let Some(last) = seen.get(going - 1) else { return };
        // Many buckets may share the timestamp of the last one to go.
        buckets.retain(|_, bucket| {
            let goes = going > 0 && bucket.seen <= *last;
            going -= usize::from(goes);
            !goes
        });
    }

    fn level(&self, bucket: Bucket, now: Timestamp) -> u64 {
        let millis = u64::try_from(bucket.seen.age(now).as_millis()).unwrap_or(u64::MAX);
        let gained = millis.saturating_mul(self.rate());
        bucket.level.saturating_add(gained).min(self.capacity())
    }

    fn rate(&self) -> u64 {
        self.options.per_second.get().into()
    }

    fn capacity(&self) -> u64 {
        u64::from(self.options.burst.get()) * REQUEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn limits(per_second: u32, burst: u32, max_buckets: usize) -> RateLimits<u32> {
        let some = |number| NonZeroU32::new(number).unwrap();
        RateLimits::new(RateLimitOptions {
            per_second: some(per_second),
            burst: some(burst),
            max_buckets,
        })
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn drain(limits: &RateLimits<u32>, key: u32, now: Timestamp) -> usize {
        (0..10_000).take_while(|_| limits.check(key, now).is_ok()).count()
    }

    fn held(limits: &RateLimits<u32>) -> usize {
        limits.buckets.lock().unwrap().len()
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let limits = limits(200, 400, 10);
        assert_eq!(drain(&limits, 1, at(0)), 400);
        assert_eq!(limits.check(1, at(0)), Err(RetryAfter(Duration::from_millis(5))));
        assert_eq!(limits.check(1, at(4)), Err(RetryAfter(Duration::from_millis(1))));
        assert_eq!(limits.check(1, at(5)), Ok(()));
        assert_eq!(drain(&limits, 1, at(1005)), 200);
        assert_eq!(drain(&limits, 1, at(3_600_000)), 400);
    }

    #[test]
    fn waiting_for_retry_after_is_enough() {
        for per_second in [1, 3, 7, 999, 1000, 5000] {
            let limits = limits(per_second, 1, 10);
            assert_eq!(limits.check(1, at(0)), Ok(()));
            let RetryAfter(wait) = limits.check(1, at(0)).unwrap_err();
            assert!(limits.check(1, at(0).after(wait)).is_ok(), "{per_second}");
        }
    }

    #[test]
    fn one_key_does_not_take_from_another() {
        let limits = limits(1, 5, 10);
        assert_eq!((drain(&limits, 1, at(0)), drain(&limits, 2, at(0))), (5, 5));
    }

    #[test]
    fn a_clock_that_goes_back_neither_fills_nor_stops_a_bucket() {
        let limits = limits(1, 5, 10);
        assert_eq!(drain(&limits, 1, at(0)), 5);
        assert_eq!(drain(&limits, 1, at(-3_600_000)), 0);
        assert_eq!(drain(&limits, 1, at(-3_598_000)), 2);
    }

    #[test]
    fn the_number_of_buckets_is_bounded_and_full_ones_go_first() {
        let limits = limits(1, 5, 4);
        assert_eq!(drain(&limits, 1, at(5_000)), 5);
        for key in 2..=4 {
            limits.check(key, at(0)).unwrap();
        }
        limits.check(5, at(5_000)).unwrap();
        assert_eq!(held(&limits), 2);
        assert!(limits.check(1, at(5_000)).is_err(), "the drained one is remembered");
    }

    #[test]
    fn of_busy_buckets_those_go_that_were_not_used_for_longest() {
        let limits = limits(1, 5, 100);
        for key in 0..1_000 {
            assert_eq!(drain(&limits, key, at(i64::from(key))), 5);
            assert!(held(&limits) <= 100);
        }
        for key in 925..1_000 {
            assert!(limits.check(key, at(999)).is_err(), "{key}");
        }
        let at_once = limits_seen_at_once();
        assert_eq!(held(&at_once), 75);
    }

    fn limits_seen_at_once() -> RateLimits<u32> {
        let limits = limits(1, 5, 100);
        for key in 0..=100 {
            assert_eq!(drain(&limits, key, at(0)), 5);
        }
        limits
    }

    #[test]
    fn the_header_counts_whole_seconds() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(RetryAfter(Duration::from_millis(millis)).seconds(), seconds);
        }
        let refused = crate::response::ErrorResponse::from(RetryAfter(Duration::ZERO));
        assert_eq!(refused.status(), 429);
    }
}
