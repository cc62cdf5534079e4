//! The parts of a source that an operation is limited to.

use std::ops::Range;

use super::{Region, RewriteProblem};
use crate::structural_edit::{ParsedSource, SymbolTarget};
use crate::structural_search::{CodeSearch, Constraints, TimeBudget};

/// Ranges of which one contains each change; none if the whole source may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    within: Option<Vec<Range<usize>>>,
    symbols: Option<Vec<Range<usize>>>,
}

impl Limits {
    pub(super) fn of(
        source: &ParsedSource<'_>,
        region: &Region,
        budget: &TimeBudget<'_>,
    ) -> Result<Self, RewriteProblem> {
        let mut limits = Self::default();
        if let Some(rule) = &region.within {
            let search = CodeSearch::compile(source.language(), rule, &Constraints::new())?;
            let found = search.run(source, budget)?;
            if found.matches.is_empty() {
                let summary = format!("the region: {}", rule.summary());
                let hint = search.hint().map(str::to_owned);
                return Err(RewriteProblem::NoMatch { summary, hint });
            }
            limits.within = Some(found.matches.into_iter().map(|one| one.range).collect());
        }
        if let Some(text) = &region.within_symbol {
            let found = source.find_all(&SymbolTarget::parse(text)?)?;
            let range = |index: usize| source.symbols().symbols[index].definition.clone();
            limits.symbols = Some(found.into_iter().map(range).collect());
        }
        Ok(limits)
    }

    pub(super) fn contain(&self, range: &Range<usize>) -> bool {
        let inside = |ranges: &Option<Vec<Range<usize>>>| {
            ranges.as_ref().is_none_or(|ranges| {
                ranges.iter().any(|outer| outer.start <= range.start && range.end <= outer.end)
            })
        };
        inside(&self.within) && inside(&self.symbols)
    }
}
