//! The table of results.

use std::fmt;
use std::time::Duration;

use crate::measure::{Pair, Samples};

/// What the design promises for a row. A time, a ratio and a rate are held against the median.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    /// Carrel takes at most this long.
    Time(Duration),
    /// Carrel takes at most so many times as long as plain work.
    Ratio(f64),
    /// Carrel does at least so much in a second.
    Rate(f64),
    /// Carrel does at least such a part of what plain work does in a second.
    RateRatio(f64),
    /// Carrel takes no more memory than it did: by so many bytes, or by such a part of it.
    Growth { bytes: u64, percent: u64 },
    /// Carrel takes at most so many bytes.
    Size(u64),
    /// Nothing; the row is there to be seen.
    None,
}

/// What a row found out.
#[derive(Clone, Debug)]
enum Figures {
    /// The times of both sides.
    Times(Pair),
    /// The times of Carrel, and why there is nothing beside them.
    Alone(Samples, String),
    /// How often in a second, plainly and with Carrel.
    Rates([f64; 2]),
    /// Bytes of memory early and late.
    Memory([u64; 2]),
    /// Bytes.
    Size(u64),
    /// Nothing, and why.
    LeftOut(String),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The work, and what it is compared with.
    work: String,
    figures: Figures,
    budget: Budget,
    /// The 99th percentile is shown in place of the 95th.
    tail: bool,
}

impl Row {
    fn of(work: impl Into<String>, figures: Figures, budget: Budget) -> Self {
        Self { work: work.into(), figures, budget, tail: false }
    }

    pub(crate) fn new(work: impl Into<String>, pair: Pair, budget: Budget) -> Self {
        Self::of(work, Figures::Times(pair), budget)
    }

    /// Shows times that could not be compared with anything.
    pub(crate) fn alone(
        work: impl Into<String>,
        carrel: Samples,
        why: &str,
        budget: Budget,
    ) -> Self {
        Self::of(work, Figures::Alone(carrel, why.to_owned()), budget)
    }

    /// Shows how often something is done in a second.
    pub(crate) fn rate(work: impl Into<String>, plain: f64, carrel: f64, budget: Budget) -> Self {
        Self::of(work, Figures::Rates([plain, carrel]), budget)
    }

    /// Shows how much memory is taken early and late.
    pub(crate) fn memory(work: impl Into<String>, early: u64, late: u64, budget: Budget) -> Self {
        Self::of(work, Figures::Memory([early, late]), budget)
    }

    /// Shows how many bytes something takes, of so many at most.
    pub(crate) fn size(work: impl Into<String>, bytes: u64, most: u64) -> Self {
        Self::of(work, Figures::Size(bytes), Budget::Size(most))
    }

    /// Shows the 99th percentile of both sides in place of the 95th.
    pub(crate) fn with_tail(mut self) -> Self {
        self.tail = true;
        self
    }

    /// Shows that something was not measured.
    pub(crate) fn left_out(work: impl Into<String>, why: &str, budget: Budget) -> Self {
        Self::of(work, Figures::LeftOut(why.to_owned()), budget)
    }

    /// Tells whether the budget is kept; `None` when there is none. What was not measured is not kept.
    fn kept(&self) -> Option<bool> {
        let carrel = match &self.figures {
            Figures::Times(Pair { carrel, .. }) | Figures::Alone(carrel, _) => Some(carrel),
            Figures::Rates(_) | Figures::Memory(_) | Figures::Size(_) | Figures::LeftOut(_) => None,
        };
        match self.budget {
            Budget::Time(limit) => Some(carrel.is_some_and(|times| times.median() <= limit)),
            Budget::Ratio(limit) => Some(self.ratio().is_some_and(|ratio| ratio <= limit)),
            Budget::Rate(least) => {
                Some(matches!(self.figures, Figures::Rates([_, rate]) if rate >= least))
            }
            Budget::RateRatio(least) => Some(self.ratio().is_some_and(|ratio| ratio >= least)),
            Budget::Growth { bytes, percent } => {
                let Figures::Memory([early, late]) = self.figures else { return Some(false) };
                Some(late <= early + bytes.max(early * percent / 100))
            }
            Budget::Size(most) => {
                Some(matches!(self.figures, Figures::Size(bytes) if bytes <= most))
            }
            Budget::None => None,
        }
    }

    /// Returns how much larger Carrel's figure is.
    #[expect(clippy::cast_precision_loss, reason = "a ratio is shown with three digits")]
    fn ratio(&self) -> Option<f64> {
        match &self.figures {
            Figures::Times(pair) => Some(pair.ratio()),
            Figures::Rates([plain, carrel]) => Some(carrel / plain),
            Figures::Memory([early, late]) => Some(*late as f64 / *early as f64),
            Figures::Alone(..) | Figures::Size(_) | Figures::LeftOut(_) => None,
        }
    }

    /// Returns what stands in the four columns of figures.
    fn columns(&self) -> [String; 4] {
        let times = |times: &Samples| {
            let [middle, most] = [50, if self.tail { 99 } else { 95 }]
                .map(|part| Time(times.percentile(part)).to_string());
            [middle, if self.tail { format!("{most} (p99)") } else { most }]
        };
        let nothing = String::new;
        match &self.figures {
            Figures::Times(Pair { plain, carrel }) => {
                let ([one, two], [three, four]) = (times(plain), times(carrel));
                [one, two, three, four]
            }
            Figures::Alone(carrel, why) => {
                let [three, four] = times(carrel);
                [format!("**{why}**"), nothing(), three, four]
            }
            Figures::Rates(rates) => {
                let [plain, carrel] = rates.map(|rate| format!("{rate:.0}/s"));
                [plain, nothing(), carrel, nothing()]
            }
            Figures::Memory(bytes) => {
                let [early, late] = bytes.map(|bytes| Memory(bytes).to_string());
                [early, nothing(), late, nothing()]
            }
            Figures::Size(bytes) => [nothing(), nothing(), Bytes(*bytes).to_string(), nothing()],
            Figures::LeftOut(why) => {
                [format!("**not measured: {why}**"), nothing(), nothing(), nothing()]
            }
        }
    }

    fn line(&self) -> String {
        let kept = match self.kept() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "–",
        };
        let ratio = self.ratio().map_or("–".into(), ratio);
        let columns = self.columns().join(" | ");
        format!("| {} | {columns} | {ratio} | {} | {kept} |\n", self.work, self.budget)
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
            Self::Rate(least) => write!(f, "≥ {least}/s"),
            Self::RateRatio(least) => write!(f, "≥ {least} ×"),
            Self::Growth { bytes, percent } => {
                write!(f, "≤ {} or {percent} % more", Memory(*bytes))
            }
            Self::Size(most) => write!(f, "≤ {}", Bytes(*most)),
            Self::None => f.write_str("–"),
        }
    }
}

/// An amount of memory.
struct Memory(u64);

impl fmt::Display for Memory {
    #[expect(clippy::cast_precision_loss, reason = "a decimal is shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

/// A size, in the units of the budgets.
struct Bytes(u64);

impl fmt::Display for Bytes {
    #[expect(clippy::cast_precision_loss, reason = "a decimal is shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 10_000 {
            return write!(f, "{} B", self.0);
        }
        write!(f, "{:.1} MB", self.0 as f64 / 1e6)
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
    fn rates_and_memory_have_budgets_of_their_own() {
        assert_eq!(
            Row::rate("work", 40_000.0, 14_999.0, Budget::Rate(15_000.0)).line(),
            "| work | 40000/s |  | 14999/s |  | 0.37 × | ≥ 15000/s | **missed** |\n"
        );
        let growth = Budget::Growth { bytes: 1 << 20, percent: 5 };
        assert_eq!(
            Row::memory("work", 40 << 20, 42 << 20, growth).line(),
            "| work | 40.0 MiB |  | 42.0 MiB |  | 1.05 × | ≤ 1.0 MiB or 5 % more | met |\n"
        );
        assert_eq!(Row::memory("work", 10 << 20, 12 << 20, growth).kept(), Some(false));
    }

    #[test]
    fn what_could_not_be_measured_is_said_and_not_met() {
        let row = Row::left_out("work", "npm is not installed", Budget::Ratio(2.0));
        assert_eq!(
            row.line(),
            "| work | **not measured: npm is not installed** |  |  |  | – | ≤ 2 × | **missed** |\n"
        );
    }

    #[test]
    fn rows_without_a_budget_are_not_counted() {
        let rows = [row(1, 1, Budget::None), row(1, 3, Budget::Ratio(2.0))];
        assert_eq!(verdict(&rows), "\n0 of 1 budgets met.\n");
    }
}
