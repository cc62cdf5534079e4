//! Making the edits of one request.

use std::borrow::Cow;

use super::error::{EditError, EditProblem};
use super::find::Search;
use super::limits::Batch;
use super::range::LineRange;
use super::{AppliedEdit, Edit, EditOrder, EditedDocument, Occurrences, Region, Request};
use crate::document::Document;
use crate::lines::line_number;

/// Makes all edits of a request, or none.
pub fn apply(document: &Document, request: &Request<'_>) -> Result<EditedDocument, EditError> {
    let whole = |problem| EditError { edit: None, problem };
    check_count(request).map_err(whole)?;
    let mut run = Run { request, batch: Batch::new(&request.limits), applied: Vec::new() };
    let text = match request.order {
        EditOrder::Sequential => run.in_turn(document.text())?,
        EditOrder::Original => run.together(document.text())?,
    };
    if text == document.text() {
        return Err(whole(EditProblem::NoChange { path: request.path.to_owned() }));
    }
    let document = document.with_text(text).map_err(|error| whole(error.into()))?;
    Ok(EditedDocument { document, applied: run.applied })
}

fn check_count(request: &Request<'_>) -> Result<(), EditProblem> {
    let (count, limit) = (request.edits.len(), request.limits.edits);
    match count {
        0 => Err(EditProblem::NoEdits),
        _ if count > limit => Err(EditProblem::TooManyEdits { count, limit }),
        _ => Ok(()),
    }
}

struct Run<'a> {
    request: &'a Request<'a>,
    batch: Batch,
    applied: Vec<AppliedEdit>,
}

impl Run<'_> {
    fn in_turn(&mut self, original: &str) -> Result<String, EditError> {
        let mut text = Cow::Borrowed(original);
        for (index, edit) in self.request.edits.iter().enumerate() {
            let step = self.locate(&text, edit).and_then(|regions| self.splice(&text, &regions));
            text = Cow::Owned(step.map_err(|problem| self.at(index, problem))?);
        }
        Ok(text.into_owned())
    }

    fn together(&mut self, text: &str) -> Result<String, EditError> {
        let mut places = Vec::new();
        for (index, edit) in self.request.edits.iter().enumerate() {
            let regions = self.locate(text, edit).map_err(|problem| self.at(index, problem))?;
            places.extend(regions.into_iter().map(|region| (index, region)));
        }
        places.sort_by_key(|(_, region)| (region.range.start, region.range.end));
        let whole = |problem| EditError { edit: None, problem };
        check_overlap(&places).map_err(whole)?;
        let regions: Vec<_> = places.into_iter().map(|(_, region)| region).collect();
        self.splice(text, &regions).map_err(whole)
    }

    fn at(&self, index: usize, problem: EditProblem) -> EditError {
        let edit = (self.request.edits.len() > 1).then_some(index + 1);
        EditError { edit, problem }
    }

    /// Finds the places of one edit and notes what it does.
    fn locate(&mut self, text: &str, edit: &Edit) -> Result<Vec<Region>, EditProblem> {
        let path = self.request.path;
        let (regions, prefixes_removed) = match edit {
            Edit::Find { old, new, occurrences } => {
                self.check_find(old, new)?;
                let result_bytes = self.request.limits.result_bytes;
                let (occurrences, replacements) = (*occurrences, self.batch.replacements_left());
                let search =
                    Search { path, text, old, new, occurrences, replacements, result_bytes };
                let found = search.run().map_err(|problem| self.with_limit(problem))?;
                (found.regions, found.prefixes_removed)
            }
            Edit::Lines { start, end, new } => {
                let range = LineRange { path, text, start: *start, end: *end, new };
                (vec![range.locate()?], false)
            }
        };
        self.check_batch(text, &regions)?;
        let line = regions.first().map_or(1, |first| line_number(text, first.range.start));
        self.applied.push(AppliedEdit { replacements: regions.len(), line, prefixes_removed });
        Ok(regions)
    }

    /// A search knows how many places are left for it, and an agent wants to know how many there are
    /// for all edits.
    fn with_limit(&self, problem: EditProblem) -> EditProblem {
        match problem {
            EditProblem::TooManyReplacements { .. } => {
                EditProblem::TooManyReplacements { limit: self.request.limits.replacements }
            }
            other => other,
        }
    }

    fn check_find(&self, old: &str, new: &str) -> Result<(), EditProblem> {
        let limits = self.request.limits;
        if old.is_empty() {
            Err(EditProblem::EmptyFind)
        } else if old == new {
            Err(EditProblem::NoChange { path: self.request.path.to_owned() })
        } else if !limits.find.holds(old) {
            Err(EditProblem::FindTooLarge { limit: limits.find })
        } else if !limits.replace.holds(new) {
            Err(EditProblem::ReplaceTooLarge { limit: limits.replace })
        } else {
            Ok(())
        }
    }

    fn check_batch(&mut self, text: &str, regions: &[Region]) -> Result<(), EditProblem> {
        // A single line range is the way to replace a large block.
        if matches!(self.request.edits, [Edit::Lines { .. }]) {
            return Ok(());
        }
        let fits = regions.iter().all(|region| self.batch.add(&text[region.range.clone()]));
        if fits {
            Ok(())
        } else {
            Err(EditProblem::BatchTooLarge { limit: self.request.limits.batch })
        }
    }

    /// Puts the new texts in their places, which are in order and apart.
    fn splice(&self, text: &str, regions: &[Region]) -> Result<String, EditProblem> {
        let removed: usize = regions.iter().map(|region| region.range.len()).sum();
        let added: usize = regions.iter().map(|region| region.new.len()).sum();
        let length = text.len() - removed + added;
        let limit = self.request.limits.result_bytes;
        if length > limit.max(text.len()) {
            return Err(EditProblem::ResultTooLarge { path: self.request.path.to_owned(), limit });
        }
        let mut result = String::with_capacity(length);
        let mut copied = 0;
        for Region { range, new } in regions {
            result.push_str(&text[copied..range.start]);
            result.push_str(new);
            copied = range.end;
        }
        result.push_str(&text[copied..]);
        Ok(result)
    }
}

fn check_overlap(places: &[(usize, Region)]) -> Result<(), EditProblem> {
    let overlap = places.windows(2).find(|pair| pair[0].1.range.end > pair[1].1.range.start);
    match overlap {
        None => Ok(()),
        Some(pair) => Err(EditProblem::Overlap { first: pair[0].0 + 1, second: pair[1].0 + 1 }),
    }
}

impl Edit {
    /// Makes an edit that replaces a text which occurs once.
    pub fn once(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::Find { old: old.into(), new: new.into(), occurrences: Occurrences::One }
    }

    /// Makes an edit that replaces a text wherever it occurs.
    pub fn everywhere(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::Find { old: old.into(), new: new.into(), occurrences: Occurrences::All }
    }

    /// Makes an edit that replaces whole lines.
    pub fn lines(start: usize, end: usize, new: impl Into<String>) -> Self {
        Self::Lines { start, end, new: new.into() }
    }
}
