//! Several clients at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::Fault;
use crate::measure::{Samples, timed};
use crate::wire::Connection;

/// A connection, and what is sent on it again and again.
pub(crate) type Caller = (Connection, Vec<u8>);

/// What became of many calls.
pub(crate) struct Crowd {
    /// How long each took.
    pub(crate) times: Samples,
    /// How many were answered in a second.
    pub(crate) per_second: f64,
}

/// Lets every client make so many calls, all at once.
pub(crate) fn call_together(callers: &mut [Caller], calls: usize) -> Result<Crowd, Fault> {
    let barrier = Barrier::new(callers.len() + 1);
    let (times, elapsed) = std::thread::scope(|scope| {
        let start = |(connection, request): &'_ mut Caller| {
            barrier.wait();
            let times = (0..calls).map(|_| timed(|| connection.exchange(request)));
            times.collect::<Result<Vec<Duration>, Fault>>()
        };
        let threads: Vec<_> =
            callers.iter_mut().map(|caller| scope.spawn(move || start(caller))).collect();
        barrier.wait();
        let begun = Instant::now();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| "a client panicked")??);
        }
        Ok::<_, Fault>((times, begun.elapsed()))
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand calls")]
    let all = times.len() as f64;
    Ok(Crowd { times: Samples::new(times), per_second: all / elapsed.as_secs_f64() })
}

/// Returns how many calls all clients together make in a second.
pub(crate) fn calls_per_second(callers: &mut [Caller], calls: usize) -> Result<f64, Fault> {
    Ok(call_together(callers, calls)?.per_second)
}

pub(crate) fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
