//! Taking times, and what they come to.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::Fault;

/// Of each ten rounds so many more are done first and not counted.
const WARM_UP_TENTHS: usize = 1;

/// The times of one piece of work, in order of length.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Takes the times in any order.
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Returns the smallest time that so many percent of all do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Returns the median.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// The times of the same work done in two ways.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) plain: Samples,
    pub(crate) carrel: Samples,
}

impl Pair {
    /// Returns how many times as long Carrel takes, median to median.
    pub(crate) fn ratio(&self) -> f64 {
        self.carrel.median().as_secs_f64() / self.plain.median().as_secs_f64()
    }
}

/// Does both kinds of work in turns, so that whatever else the machine does meets both.
///
/// Which one goes first alternates: work that leaves something behind for the disk to do burdens
/// the other as often as itself.
pub(crate) fn interleave(
    rounds: usize,
    mut plain: impl FnMut() -> Result<Duration, Fault>,
    mut carrel: impl FnMut() -> Result<Duration, Fault>,
) -> Result<Pair, Fault> {
    let all = with_warm_up(rounds);
    let (mut plain_times, mut carrel_times) = (Vec::new(), Vec::new());
    for round in 0..all {
        let (plain_time, carrel_time) = if round % 2 == 0 {
            let first = plain()?;
            (first, carrel()?)
        } else {
            let first = carrel()?;
            (plain()?, first)
        };
        if round >= all - rounds {
            plain_times.push(plain_time);
            carrel_times.push(carrel_time);
        }
    }
    Ok(Pair { plain: Samples::new(plain_times), carrel: Samples::new(carrel_times) })
}

/// Does work that there is nothing to compare with.
pub(crate) fn alone(
    rounds: usize,
    mut work: impl FnMut() -> Result<Duration, Fault>,
) -> Result<Samples, Fault> {
    let all = with_warm_up(rounds);
    let times = (0..all).map(|_| work()).collect::<Result<Vec<_>, _>>()?;
    Ok(Samples::new(times[all - rounds..].to_vec()))
}

/// Returns how many rounds are done when so many are counted.
pub(crate) fn with_warm_up(rounds: usize) -> usize {
    rounds + rounds * WARM_UP_TENTHS / 10
}

/// Takes the time of one piece of work. What it returns is dropped after the clock has stopped.
pub(crate) fn timed<T, E: Into<Fault>>(
    work: impl FnOnce() -> Result<T, E>,
) -> Result<Duration, Fault> {
    let begun = Instant::now();
    let result = black_box(work());
    let elapsed = begun.elapsed();
    result.map_err(Into::into)?;
    Ok(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(millis: impl IntoIterator<Item = u64>) -> Samples {
        Samples::new(millis.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn a_percentile_is_a_time_that_was_taken() {
        let hundred = samples((1..=100).rev());
        assert_eq!(hundred.median(), Duration::from_millis(50));
        assert_eq!(hundred.percentile(95), Duration::from_millis(95));
        assert_eq!(samples([7, 1, 4]).median(), Duration::from_millis(4));
        assert_eq!(samples([3]).percentile(95), Duration::from_millis(3));
    }

    #[test]
    fn both_sides_are_measured_equally_often() {
        let (mut plain, mut carrel) = (0, 0);
        let count = |counter: &mut u32| {
            *counter += 1;
            Ok(Duration::from_millis(u64::from(*counter)))
        };
        let pair = interleave(20, || count(&mut plain), || count(&mut carrel)).unwrap();
        assert_eq!((pair.plain.0.len(), pair.carrel.0.len()), (20, 20));
        assert_eq!((plain, carrel), (22, 22));
    }
}
