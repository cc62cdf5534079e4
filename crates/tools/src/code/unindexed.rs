//! Uses of a name where the symbol index does not look.
//!
//! A tool that takes a symbol away has to know every use of its name. The index says which files it has not looked at
//! yet; files that it leaves out, because they are not UTF-8 for example, are searched for the word.

use std::path::PathBuf;

use carrel_code::SkipReason;
use carrel_domain::{Code, Failure};
use carrel_search::{Cancel, GrepRequest, Scope, Syntax};

use super::symbol_indexes::FreshIndex;
use crate::files::{WorkspaceFiles, shown};

/// The files without a syntax tree that are searched for a name.
const MAX_SEARCHED: usize = 500;

/// Returns the reason for which a name may be used where the index does not look; none if it is not.
pub(super) fn unseen_uses(
    files: &WorkspaceFiles,
    fresh: &FreshIndex,
    name: &str,
    cancel: &Cancel,
) -> Result<Option<String>, Failure> {
    if let Some(unread) = fresh.unread() {
        return Ok(Some(unread));
    }
    let skipped = fresh.view().skipped();
    if skipped.len() > MAX_SEARCHED {
        return Ok(Some(format!("{} files have no syntax tree", skipped.len())));
    }
    for file in &skipped {
        if has_word(files, file, name, cancel)? {
            let (path, reason) = (shown(&file.0), file.1.as_str());
            return Ok(Some(format!("{path} ({reason}) has the word {name}")));
        }
    }
    Ok(None)
}

/// Tells whether a file has a word, or cannot be searched for it.
fn has_word(
    files: &WorkspaceFiles,
    (path, _): &(PathBuf, SkipReason),
    name: &str,
    cancel: &Cancel,
) -> Result<bool, Failure> {
    let request =
        GrepRequest { syntax: Syntax::Literal, whole_word: true, ..GrepRequest::new(name) };
    match carrel_search::grep(&Scope::at(files.root(), path), &request, cancel) {
        Err(carrel_search::Error::Cancelled) => {
            Err(Failure::new(Code::Cancelled, "the call was cancelled"))
        }
        Err(_) => Ok(true),
        Ok(report) => {
            let is_whole = report.truncation.is_none() && report.unreadable.total == 0;
            Ok(!is_whole || !report.files.is_empty() || report.binary_matches > 0)
        }
    }
}
