//! Replacement of the nodes that a rule matches.

use super::region::Limits;
use super::template::{Surroundings, Template};
use super::{Replacement, RewriteProblem, Substitution};
use crate::structural_edit::ParsedSource;
use crate::structural_search::{CodeSearch, TimeBudget};

/// Finds what is to be replaced: the outermost matches in order, and the number of those inside of them.
pub(super) fn substitutions(
    source: &ParsedSource<'_>,
    edit: &Replacement,
    budget: &TimeBudget<'_>,
) -> Result<(Vec<Substitution>, usize), RewriteProblem> {
    let search = CodeSearch::compile(source.language(), &edit.rule, &edit.constraints)?;
    let template = Template::parse(&edit.replacement);
    for name in template.variables() {
        if !search.variables().any(|known| known == name) {
            let known = search.variables().map(str::to_owned).collect();
            return Err(RewriteProblem::UnboundVariable { name: name.to_owned(), known });
        }
    }
    let limits = Limits::of(source, &edit.region, budget)?;
    let found = search.run(source, budget)?;
    if found.is_cut {
        return Err(RewriteProblem::TooManyMatches);
    }
    let surroundings = Surroundings::of(source);
    let mut substitutions: Vec<Substitution> = Vec::new();
    let mut nested = 0;
    for one in found.matches.iter().filter(|one| limits.contain(&one.range)) {
        budget.step()?;
        let end = substitutions.last().map_or(0, |last| last.range.end);
        if one.replaced.start < end {
            nested += 1;
            continue;
        }
        let new = template.fill(&surroundings, one);
        substitutions.push(Substitution { range: one.replaced.clone(), new });
    }
    if substitutions.is_empty() {
        Err(RewriteProblem::NoMatch {
            summary: edit.rule.summary(),
            hint: search.hint().map(str::to_owned),
        })
    } else {
        Ok((substitutions, nested))
    }
}
