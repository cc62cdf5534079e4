//! The table of results.

use std::fmt;
use std::time::Duration;

use crate::measure::Pair;

/// What the design promises for a row. It is held against the median.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    /// Carrel takes at most this long.
    Time(Duration),
    /// Carrel takes at most so many times as long as plain work.
    Ratio(f64),
    /// Nothing; the row is there to be seen.
    None,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The work, and what it is compared with.
    pub(crate) work: String,
    pub(crate) pair: Pair,
    pub(crate) budget: Budget,
}

impl Row {
    pub(crate) fn new(work: impl Into<String>, pair: Pair, budget: Budget) -> Self {
        Self { work: work.into(), pair, budget }
    }

    /// Tells whether the budget is kept; `None` when there is none.
    fn kept(&self) -> Option<bool> {
        match self.budget {
            Budget::Time(limit) => Some(self.pair.carrel.median() <= limit),
            Budget::Ratio(limit) => Some(self.pair.ratio() <= limit),
            Budget::None => None,
        }
    }

    fn line(&self) -> String {
        let Pair { plain, carrel } = &self.pair;
        let kept = match self.kept() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "–",
        };
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {kept} |\n",
            self.work,
            Time(plain.median()),
            Time(plain.percentile(95)),
            Time(carrel.median()),
            Time(carrel.percentile(95)),
            ratio(self.pair.ratio()),
            self.budget,
        )
    }
}

/// Lays all rows out as a Markdown table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| work, against plain work | plain p50 | plain p95 | Carrel p50 | Carrel p95 | ratio | budget | |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
    );
    text.extend(rows.iter().map(Row::line));
    text
}

/// Says how many budgets are kept.
pub(crate) fn verdict(rows: &[Row]) -> String {
    let kept: Vec<bool> = rows.iter().filter_map(Row::kept).collect();
    let met = kept.iter().filter(|kept| **kept).count();
    format!("\n{met} of {} budgets met.\n", kept.len())
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(limit) => write!(f, "≤ {} ms", limit.as_secs_f64() * 1e3),
            Self::Ratio(limit) => write!(f, "≤ {limit} ×"),
            Self::None => f.write_str("–"),
        }
    }
}

/// A time with three digits that mean something.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let (value, unit) =
            if seconds < 1e-3 { (seconds * 1e6, "µs") } else { (seconds * 1e3, "ms") };
        write!(f, "{value:.*} {unit}", decimals(value))
    }
}

fn ratio(ratio: f64) -> String {
    if ratio < 0.01 { format!("1 / {:.0}", 1.0 / ratio) } else { format!("{ratio:.2} ×") }
}

fn decimals(value: f64) -> usize {
    match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Samples;

    fn row(plain: u64, carrel: u64, budget: Budget) -> Row {
        let samples = |micros| Samples::new(vec![Duration::from_micros(micros)]);
        Row::new("work", Pair { plain: samples(plain), carrel: samples(carrel) }, budget)
    }

    #[test]
    fn a_row_shows_its_budget_and_whether_it_is_kept() {
        assert_eq!(
            row(500, 1250, Budget::Ratio(2.0)).line(),
            "| work | 500 µs | 500 µs | 1.25 ms | 1.25 ms | 2.50 × | ≤ 2 × | **missed** |\n"
        );
        assert_eq!(
            row(90_000, 99, Budget::Time(Duration::from_millis(5))).line(),
            "| work | 90.0 ms | 90.0 ms | 99.0 µs | 99.0 µs | 1 / 909 | ≤ 5 ms | met |\n"
        );
    }

    #[test]
    fn rows_without_a_budget_are_not_counted() {
        let rows = [row(1, 1, Budget::None), row(1, 3, Budget::Ratio(2.0))];
        assert_eq!(verdict(&rows), "\n0 of 1 budgets met.\n");
    }
}
