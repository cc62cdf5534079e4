//! Which traces are kept.

/// All of the numbers that a trace can be told by, which are 63 bits of its id.
const ALL: u64 = 1 << 63;

/// The names of samplers, for messages.
const KNOWN: &str = "always_on, always_off, traceidratio, and each with parentbased_ before it";

/// Why there is no such sampler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSampler {
    /// Its name is none.
    #[error("unknown sampler {0:?}; known are {KNOWN}")]
    Unknown(String),
    /// It keeps a part that is none.
    #[error("{0:?} is no part of all traces; it is a number from 0 to 1")]
    Ratio(String),
}

/// Which traces are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// A trace is kept if its number is below this.
    below: u64,
    /// Whoever began a trace elsewhere has decided.
    by_parent: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { below: ALL, by_parent: true }
    }
}

impl Sampler {
    /// Finds a sampler by the name and the argument that OpenTelemetry has for it.
    pub fn named(name: &str, argument: Option<&str>) -> Result<Self, InvalidSampler> {
        let (by_parent, rule) = match name.strip_prefix("parentbased_") {
            Some(rule) => (true, rule),
            None => (false, name),
        };
        let below = match rule {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => part(argument.unwrap_or("1"))?,
            _ => return Err(InvalidSampler::Unknown(name.to_owned())),
        };
        Ok(Self { below, by_parent })
    }

    /// Tells whether a trace is kept, which may have been decided where it began.
    pub(crate) fn keeps(&self, trace: u128, decided: Option<bool>) -> bool {
        match decided {
            Some(kept) if self.by_parent => kept,
            #[expect(clippy::cast_possible_truncation, reason = "the second half of the id")]
            _ => (trace as u64) >> 1 < self.below,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "between 0 and 2^63, and nobody counts traces one by one"
)]
fn part(text: &str) -> Result<u64, InvalidSampler> {
    let ratio: f64 = text.trim().parse().unwrap_or(f64::NAN);
    if (0.0..=1.0).contains(&ratio) {
        Ok((ratio * ALL as f64) as u64)
    } else {
        Err(InvalidSampler::Ratio(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn samplers_keep_what_their_names_say() {
        // Of the smallest and the largest number: without a word from elsewhere, and against it.
        for (name, argument, small, large, forced, forbidden) in [
            ("always_on", None, true, true, true, true),
            ("always_off", None, false, false, false, false),
            ("traceidratio", Some("0.5"), true, false, false, true),
            ("traceidratio", Some("0"), false, false, false, false),
            ("traceidratio", Some("1"), true, true, true, true),
            ("traceidratio", None, true, true, true, true),
            ("parentbased_always_on", None, true, true, true, false),
            ("parentbased_always_off", None, false, false, true, false),
            ("parentbased_traceidratio", Some("0.5"), true, false, true, false),
        ] {
            let sampler = Sampler::named(name, argument).unwrap();
            let found = (
                sampler.keeps(1 << 64, None),
                sampler.keeps(u128::MAX, None),
                sampler.keeps(u128::MAX, Some(true)),
                sampler.keeps(1 << 64, Some(false)),
            );
            assert_eq!(found, (small, large, forced, forbidden), "{name} {argument:?}");
        }
        assert_eq!(Sampler::named("parentbased_always_on", None), Ok(Sampler::default()));
    }

    #[test]
    fn what_is_no_sampler_is_named() {
        for name in ["", "always", "parentbased_", "parentbased_parentbased_always_on", "xray"] {
            assert_eq!(Sampler::named(name, None), Err(InvalidSampler::Unknown(name.to_owned())));
        }
        for ratio in ["", "2", "-0.1", "NaN", "inf", "half", "1e400"] {
            let found = Sampler::named("traceidratio", Some(ratio));
            assert_eq!(found, Err(InvalidSampler::Ratio(ratio.to_owned())));
        }
    }
}
