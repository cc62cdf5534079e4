//! Sampling: the decision which traces are exported.
//!
//! The names are OpenTelemetry's. A ratio is decided from the trace id alone, so that all processes of
//! one trace decide the same without talking to each other.

/// One more than the largest value that a trace id is reduced to: its 63 bits from bit 1 on.
const RANGE: u64 = 1 << 63;

const KNOWN: &str = "always_on, always_off, traceidratio, and each with parentbased_ before it";

/// A sampler name or argument that OpenTelemetry does not define.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSampler {
    /// The name is not a sampler.
    #[error("unknown sampler {0:?}; known are {KNOWN}")]
    Unknown(String),
    /// The ratio is not between 0 and 1.
    #[error("{0:?} is not a sampling ratio; write a number from 0 to 1")]
    Ratio(String),
}

/// The rule that decides which traces are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Traces whose id reduces to less than this are sampled.
    threshold: u64,
    /// The decision in a `traceparent` from outside wins over the threshold.
    parent_based: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { threshold: RANGE, parent_based: true }
    }
}

impl Sampler {
    /// Parses `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. A ratio without an argument is 1.
    pub fn named(name: &str, argument: Option<&str>) -> Result<Self, InvalidSampler> {
        let (parent_based, rule) = match name.strip_prefix("parentbased_") {
            Some(rule) => (true, rule),
            None => (false, name),
        };
        let threshold = match rule {
            "always_on" => RANGE,
            "always_off" => 0,
            "traceidratio" => ratio_threshold(argument.unwrap_or("1"))?,
            _ => return Err(InvalidSampler::Unknown(name.to_owned())),
        };
        Ok(Self { threshold, parent_based })
    }

    /// Returns whether a trace is exported. `parent_sampled` is the decision of the parent span, if there
    /// is one.
    pub(crate) fn samples(&self, trace: u128, parent_sampled: Option<bool>) -> bool {
        match parent_sampled {
            Some(sampled) if self.parent_based => sampled,
            #[expect(clippy::cast_possible_truncation, reason = "the second half of the id")]
            _ => (trace as u64) >> 1 < self.threshold,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "between 0 and 2^63, where a rounding error of a few traces does not matter"
)]
fn ratio_threshold(text: &str) -> Result<u64, InvalidSampler> {
    let ratio: f64 = text.trim().parse().unwrap_or(f64::NAN);
    if (0.0..=1.0).contains(&ratio) {
        Ok((ratio * RANGE as f64) as u64)
    } else {
        Err(InvalidSampler::Ratio(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn samplers_decide_as_opentelemetry_defines_them() {
        // The smallest and the largest id without a parent, and each against its parent's decision.
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
                sampler.samples(1 << 64, None),
                sampler.samples(u128::MAX, None),
                sampler.samples(u128::MAX, Some(true)),
                sampler.samples(1 << 64, Some(false)),
            );
            assert_eq!(found, (small, large, forced, forbidden), "{name} {argument:?}");
        }
        assert_eq!(Sampler::named("parentbased_always_on", None), Ok(Sampler::default()));
    }

    #[test]
    fn unknown_samplers_and_ratios_are_named_in_the_error() {
        for name in ["", "always", "parentbased_", "parentbased_parentbased_always_on", "xray"] {
            assert_eq!(Sampler::named(name, None), Err(InvalidSampler::Unknown(name.to_owned())));
        }
        for ratio in ["", "2", "-0.1", "NaN", "inf", "half", "1e400"] {
            let found = Sampler::named("traceidratio", Some(ratio));
            assert_eq!(found, Err(InvalidSampler::Ratio(ratio.to_owned())));
        }
    }
}
