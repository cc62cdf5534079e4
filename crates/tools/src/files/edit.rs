//! `Edit` and `MultiEdit`

use std::fmt::Write as _;
use std::path::PathBuf;

use carrel_domain::Code;
use carrel_edit::replace::{self, EditError, Limits, Occurrences, Problem, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::common::{ChangeFacts, Desk, compared, path_of, shown};
use crate::answer::Reply;
use crate::blocking::blocking;
use crate::call::Call;
use crate::failure::Failure;
use crate::tool::{About, Class, Effect, Scope, Tool};
use crate::tracker::{ContentHash, Need};
use crate::verify::feedback;

/// Replaces text in a file.
pub(super) struct Edit;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditInput {
    /// The file, relative to the workspace, or absolute inside it.
    file_path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers.
    old_string: String,
    /// The text to put there; may be empty.
    new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    replace_all: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EditFacts {
    /// What became of the file.
    #[serde(flatten)]
    change: ChangeFacts,
    /// How many places were replaced.
    replacements: usize,
    /// The line of the first place, for each edit, in the text that the edit was about.
    lines: Vec<usize>,
    /// Line numbers were taken off the text to replace.
    line_numbers_removed: bool,
}

impl Tool for Edit {
    type Input = EditInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "Edit",
        title: "Edit a file",
        class: Class::Write,
        effect: Effect::REPLACES,
        scope: Scope::One,
        description: "Replaces text in a file that this session has read. old_string must occur \
            exactly once, or set replace_all; add lines around it to make it unique. Line endings, \
            encoding and mode are kept. Returns a short diff. Several changes to one file are one \
            MultiEdit; changes to several files are one ApplyPatch.",
    };

    async fn call(&self, call: &Call, input: EditInput) -> Result<Reply<EditFacts>, Failure> {
        let desk = Desk::of(call);
        let EditInput { file_path, old_string, new_string, replace_all } = input;
        let edits = vec![find(old_string, new_string, replace_all)];
        edit_and_ask(call, desk, file_path, edits).await
    }
}

/// Makes several changes to a file.
pub(super) struct MultiEdit;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MultiEditInput {
    /// The file, relative to the workspace, or absolute inside it.
    file_path: String,
    /// The changes. Those that name text are made one after the other, each in what the one before
    /// left; as soon as one names lines, all are about the file as it was read.
    edits: Vec<OneEdit>,
}

/// A change: text for text, or lines for lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// The text to replace, exactly as it stands in the file.
    old_string: Option<String>,
    /// The text to put there; may be empty.
    new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    replace_all: bool,
    /// Instead of `old_string`: the first line to replace, counted from 1.
    start_line: Option<usize>,
    /// The last line to replace; that line is replaced too.
    end_line: Option<usize>,
}

impl Tool for MultiEdit {
    type Input = MultiEditInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "MultiEdit",
        title: "Edit a file in several places",
        class: Class::Write,
        effect: Effect::REPLACES,
        scope: Scope::One,
        description: "Makes several changes to one file that this session has read, all or none. \
            Each change replaces text (old_string, as Edit does) or whole lines (start_line to \
            end_line, best for large blocks). Returns a short diff.",
    };

    async fn call(&self, call: &Call, input: MultiEditInput) -> Result<Reply<EditFacts>, Failure> {
        let desk = Desk::of(call);
        let edits = input.edits.into_iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        edit_and_ask(call, desk, input.file_path, edits).await
    }
}

fn find(old: String, new: String, all: bool) -> replace::Edit {
    let occurrences = if all { Occurrences::All } else { Occurrences::One };
    replace::Edit::Find { old, new, occurrences }
}

fn one((index, edit): (usize, OneEdit)) -> Result<replace::Edit, Failure> {
    match edit {
        OneEdit {
            old_string: Some(old),
            start_line: None,
            end_line: None,
            new_string,
            replace_all,
        } => Ok(find(old, new_string, replace_all)),
        OneEdit {
            old_string: None,
            start_line: Some(start),
            end_line,
            new_string,
            replace_all: false,
        } => {
            let end = end_line.unwrap_or(start);
            Ok(replace::Edit::Lines { start, end, new: new_string })
        }
        _ => Err(Failure::argument(
            "edits",
            format!("edits[{index}]: give old_string, or start_line and end_line, and not both"),
        )),
    }
}

/// Makes the edits, and adds what the project's tools say about them.
async fn edit_and_ask(
    call: &Call,
    desk: Desk,
    file_path: String,
    edits: Vec<replace::Edit>,
) -> Result<Reply<EditFacts>, Failure> {
    let path = desk.place.relative(&file_path);
    let project = feedback::project_of(call, &path).await;
    let limits = feedback::edit_limits(call, project.as_ref(), &path).await;
    let mut reply = blocking(move || edit(&desk, &file_path, &edits, limits)).await?;
    if let Some(project) = &project {
        let path = PathBuf::from(&reply.facts.change.path);
        let said = feedback::of_project(call, project, &path).await;
        said.add_to(&mut reply.content, &mut reply.facts.change.hash);
    }
    Ok(reply)
}

fn edit(
    desk: &Desk,
    file_path: &str,
    edits: &[replace::Edit],
    limits: Limits,
) -> Result<Reply<EditFacts>, Failure> {
    let path = path_of(desk, "file_path", file_path)?;
    for edit in edits {
        let (replace::Edit::Find { new, .. } | replace::Edit::Lines { new, .. }) = edit;
        desk.check_masks(new, file_path)?;
    }
    let _writing = desk.place.writing();
    let mut loaded = desk.load(&path)?;
    desk.check(&loaded, Need::Part, "edit", file_path)?;
    let document = loaded.take_document(file_path)?;
    let request = Request { limits, ..Request::new(file_path, edits) };
    let outcome = replace::apply(&document, &request).map_err(|error| refused(error, file_path))?;
    let bytes = outcome.document.encode();
    desk.replace(&path, &loaded, &bytes)?;
    let hash = desk.changed(&loaded, ContentHash::of(&bytes));
    let name = shown(&path);
    let (diff, text) = compared(Some(document.text()), outcome.document.text(), &name);
    let removed_numbers = outcome.applied.iter().any(|applied| applied.prefixes_removed);
    let mut reply = format!("replaced {} occurrence(s) in {file_path}\n", outcome.replacements());
    if removed_numbers {
        reply.push_str("note: line numbers were taken off old_string\n");
    }
    write!(reply, "\n{text}").expect("writing to a string cannot fail");
    let facts = EditFacts {
        change: ChangeFacts {
            path: name,
            created: false,
            bytes: bytes.len(),
            hash,
            added: diff.added,
            removed: diff.removed,
        },
        replacements: outcome.replacements(),
        lines: outcome.applied.iter().map(|applied| applied.line).collect(),
        line_numbers_removed: removed_numbers,
    };
    Ok(Reply::text(reply, facts))
}

fn refused(error: EditError, file_path: &str) -> Failure {
    let code = match &error.problem {
        Problem::EmptyFind | Problem::NoEdits | Problem::Unencodable(_) => Code::InvalidArguments,
        Problem::FindNotFound { .. } => Code::EditFindNotFound,
        Problem::MultiMatch { .. } => Code::EditMultiMatch,
        Problem::NoChange { .. } => Code::EditNoChange,
        Problem::FindTooLarge { .. } => Code::EditFindTooLarge,
        Problem::ReplaceTooLarge { .. } => Code::EditReplaceTooLarge,
        Problem::BatchTooLarge { .. }
        | Problem::TooManyEdits { .. }
        | Problem::TooManyPlaces { .. } => Code::EditBatchTooLarge,
        Problem::ResultTooLarge { .. } => Code::TooLarge,
        Problem::LineRangeTooLarge { .. } => Code::EditLineRangeTooLarge,
        Problem::InvalidRange { .. } => Code::InvalidRange,
        Problem::Overlap { .. } => Code::EditOverlap,
        Problem::DuplicatesContext { .. } => Code::EditDuplicatesContext,
    };
    let failure = Failure::new(code, error.to_string()).with("path", file_path);
    let failure = match error.edit {
        Some(edit) => failure.with("edit", edit),
        None => failure,
    };
    match error.problem {
        Problem::MultiMatch { count, lines, .. } => {
            failure.with("count", count).with("lines", json!(lines))
        }
        _ => failure,
    }
}
