//! Timestamps, ages, and the clock that tests replace.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time with millisecond precision. Serialises as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Returns the time this many milliseconds after the Unix epoch, clamped to the years −9999 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        let edge = if millis < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(edge))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Returns the time this much later, clamped like [`from_millis`](Self::from_millis).
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(millis))
    }

    /// Returns the time from `self` to `now`; zero if `self` is later.
    pub fn age(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(now.as_millis() - self.as_millis()).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self::from_millis(parsed.as_millisecond()))
    }
}

/// A source of the current time. Code that decides by time takes one, so that tests can fix it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }
}

/// A clock that always returns the same time, for tests.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A duration in the form that people write: `90s`, `15m`, `36h`, `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub Duration);

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

/// A text that is not a duration with a unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a length of time: {text:?}; write a whole number and a unit, such as 90s, 15m, 36h or 30d"
)]
pub struct InvalidAge {
    text: String,
}

impl FromStr for Age {
    type Err = InvalidAge;

    fn from_str(text: &str) -> Result<Self, InvalidAge> {
        let seconds = UNITS.iter().find_map(|(unit, seconds)| {
            text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*seconds)
        });
        seconds
            .map(|s| Self(Duration::from_secs(s)))
            .ok_or_else(|| InvalidAge { text: text.to_owned() })
    }
}

impl fmt::Display for Age {
    /// Prints the largest unit that fits, rounded down.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (unit, size) = UNITS.into_iter().find(|(_, size)| seconds >= *size).unwrap_or(("s", 1));
        f.pad(&format!("{}{unit}", seconds / size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_survives_json() {
        let at = Timestamp::from_millis(1_700_000_000_123);
        let json = serde_json::to_string(&at).unwrap();
        assert_eq!(json, "\"2023-11-14T22:13:20.123Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), at);
    }

    #[test]
    fn ages_read_and_print() {
        assert_eq!("30d".parse(), Ok(Age(Duration::from_hours(30 * 24))));
        assert_eq!("0s".parse(), Ok(Age(Duration::ZERO)));
        for text in ["", "d", "3", "1w", "-1d", "1.5h", "999999999999999999d"] {
            assert!(text.parse::<Age>().is_err(), "{text}");
        }
        assert_eq!(Age(Duration::from_secs(200_000)).to_string(), "2d");
        assert_eq!(Age(Duration::ZERO).to_string(), "0s");
    }

    #[test]
    fn an_extreme_time_is_clamped() {
        assert!(Timestamp::from_millis(i64::MAX) > Timestamp::from_millis(i64::MIN));
    }
}
