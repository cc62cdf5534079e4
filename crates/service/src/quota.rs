//! Workspace quotas in gibibytes, the unit of `quota_gb` in requests and settings.

use carrel_domain::ByteSize;
use carrel_wire::limits::{MAX_QUOTA_GB, MIN_QUOTA_GB};

const GIBIBYTE: f64 = 1_073_741_824.0;

/// Converts gibibytes, which may be a fraction, into a quota. Returns `None` for NaN and for values outside
/// of [`MIN_QUOTA_GB`] to [`MAX_QUOTA_GB`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked, and a fraction of a byte does not matter"
)]
pub fn quota_from_gibibytes(number: f64) -> Option<ByteSize> {
    let fits = (MIN_QUOTA_GB..=f64::from(MAX_QUOTA_GB)).contains(&number);
    fits.then(|| ByteSize::bytes((number * GIBIBYTE) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn an_amount_is_within_the_limits() {
        assert_eq!(quota_from_gibibytes(2.5), Some(ByteSize::mib(2560)));
        assert_eq!(quota_from_gibibytes(MIN_QUOTA_GB), Some(ByteSize::mib(1)));
        assert_eq!(quota_from_gibibytes(f64::from(MAX_QUOTA_GB)), Some(ByteSize::gib(1 << 20)));
        for number in [0.0, 0.0009, -1.0, f64::NAN, f64::INFINITY, 1_048_577.0] {
            assert_eq!(quota_from_gibibytes(number), None, "{number}");
        }
    }
}
