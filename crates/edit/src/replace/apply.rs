//! Application of the edits of one request, all or none.
//!
//! Each edit is resolved to byte ranges with replacements (`Splice`), checked against the limits
//! and then joined into a new text in one pass. Sequential edits repeat this for every edit; edits
//! of the original text are resolved first, sorted by position and checked for overlap. The
//! document is only replaced if every step succeeds.

use std::borrow::Cow;

use super::error::{EditError, EditProblem};
use super::limits::BatchUsage;
use super::line_range::LineRange;
use super::text_search::TextSearch;
use super::{AppliedEdit, Edit, EditOrder, EditedDocument, Occurrences, Request, Splice};
use crate::document::Document;
use crate::lines::line_number;

/// Applies all edits of a request, or returns the first problem and changes nothing.
///
/// A request whose result equals the original is an error, because an agent that believes it
/// changed something would go on from a wrong assumption.
pub fn apply(document: &Document, request: &Request<'_>) -> Result<EditedDocument, EditError> {
    let request_error = |problem| EditError { edit: None, problem };
    check_count(request).map_err(request_error)?;
    let mut run = EditRun { request, batch: BatchUsage::new(&request.limits), applied: Vec::new() };
    let text = match request.order {
        EditOrder::Sequential => run.apply_in_order(document.text())?,
        EditOrder::Original => run.apply_to_original(document.text())?,
    };
    if text == document.text() {
        return Err(request_error(EditProblem::NoChange { path: request.path.to_owned() }));
    }
    let document = document.with_text(text).map_err(|error| request_error(error.into()))?;
    Ok(EditedDocument { document, applied: run.applied })
}

fn check_count(request: &Request<'_>) -> Result<(), EditProblem> {
    let count = request.edits.len();
    let limit = request.limits.edits;
    match count {
        0 => Err(EditProblem::NoEdits),
        _ if count > limit => Err(EditProblem::TooManyEdits { count, limit }),
        _ => Ok(()),
    }
}

struct EditRun<'a> {
    request: &'a Request<'a>,
    batch: BatchUsage,
    applied: Vec<AppliedEdit>,
}

impl EditRun<'_> {
    fn apply_in_order(&mut self, original: &str) -> Result<String, EditError> {
        let mut text = Cow::Borrowed(original);
        for (index, edit) in self.request.edits.iter().enumerate() {
            let step = self.locate(&text, edit).and_then(|splices| self.join(&text, &splices));
            text = Cow::Owned(step.map_err(|problem| self.error_of(index, problem))?);
        }
        Ok(text.into_owned())
    }

    fn apply_to_original(&mut self, text: &str) -> Result<String, EditError> {
        let mut ordered = Vec::new();
        for (index, edit) in self.request.edits.iter().enumerate() {
            let splices =
                self.locate(text, edit).map_err(|problem| self.error_of(index, problem))?;
            ordered.extend(splices.into_iter().map(|splice| (index, splice)));
        }
        ordered.sort_by_key(|(_, splice)| (splice.range.start, splice.range.end));
        let request_error = |problem| EditError { edit: None, problem };
        check_overlap(&ordered).map_err(request_error)?;
        let splices: Vec<_> = ordered.into_iter().map(|(_, splice)| splice).collect();
        self.join(text, &splices).map_err(request_error)
    }

    fn error_of(&self, index: usize, problem: EditProblem) -> EditError {
        let edit = (self.request.edits.len() > 1).then_some(index + 1);
        EditError { edit, problem }
    }

    /// Resolves one edit to splices and records its effect.
    fn locate(&mut self, text: &str, edit: &Edit) -> Result<Vec<Splice>, EditProblem> {
        let path = self.request.path;
        let (splices, prefixes_removed) = match edit {
            Edit::Find { old, new, occurrences } => {
                self.check_find(old, new)?;
                let limits = self.request.limits;
                let occurrences = *occurrences;
                let replacements_left = self.batch.replacements_left;
                let search =
                    TextSearch { path, text, old, new, occurrences, limits, replacements_left };
                search.run()?
            }
            Edit::Lines { start, end, new } => {
                let range = LineRange { path, text, start: *start, end: *end, new };
                (vec![range.locate()?], false)
            }
        };
        self.check_batch(text, &splices)?;
        let line = splices.first().map_or(1, |first| line_number(text, first.range.start));
        self.applied.push(AppliedEdit { replacements: splices.len(), line, prefixes_removed });
        Ok(splices)
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

    fn check_batch(&mut self, text: &str, splices: &[Splice]) -> Result<(), EditProblem> {
        // A single line range is the intended way to replace a large block.
        if matches!(self.request.edits, [Edit::Lines { .. }]) {
            return Ok(());
        }
        let fits = splices.iter().all(|splice| self.batch.add(&text[splice.range.clone()]));
        if fits {
            Ok(())
        } else {
            Err(EditProblem::BatchTooLarge { limit: self.request.limits.batch })
        }
    }

    /// Builds the new text from splices that are sorted and do not overlap.
    fn join(&self, text: &str, splices: &[Splice]) -> Result<String, EditProblem> {
        let removed: usize = splices.iter().map(|splice| splice.range.len()).sum();
        let added: usize = splices.iter().map(|splice| splice.new.len()).sum();
        let length = text.len() - removed + added;
        let limit = self.request.limits.result_bytes;
        if length > limit.max(text.len()) {
            return Err(EditProblem::ResultTooLarge { path: self.request.path.to_owned(), limit });
        }
        let mut result = String::with_capacity(length);
        let mut copied = 0;
        for Splice { range, new } in splices {
            result.push_str(&text[copied..range.start]);
            result.push_str(new);
            copied = range.end;
        }
        result.push_str(&text[copied..]);
        Ok(result)
    }
}

fn check_overlap(ordered: &[(usize, Splice)]) -> Result<(), EditProblem> {
    let overlap = ordered.windows(2).find(|pair| pair[0].1.range.end > pair[1].1.range.start);
    match overlap {
        None => Ok(()),
        Some(pair) => Err(EditProblem::Overlap { first: pair[0].0 + 1, second: pair[1].0 + 1 }),
    }
}

impl Edit {
    /// Creates an edit that replaces a text which must occur once.
    pub fn once(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::Find { old: old.into(), new: new.into(), occurrences: Occurrences::One }
    }

    /// Creates an edit that replaces every occurrence of a text.
    pub fn everywhere(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::Find { old: old.into(), new: new.into(), occurrences: Occurrences::All }
    }

    /// Creates an edit that replaces lines `start` to `end`, both inclusive.
    pub fn lines(start: usize, end: usize, new: impl Into<String>) -> Self {
        Self::Lines { start, end, new: new.into() }
    }
}
