//! The tools `Edit` and `MultiEdit`.
//!
//! Most of an edit is done without the write lock, so that a slow edit does not delay others: the file is
//! read, the change computed, and the new version written to a temporary file and synced. Only then is the
//! lock taken, and the rename made if the file is still the one that was read; otherwise the edit starts
//! again, and the fifth time it holds the lock from the beginning.
//!
//! Two measures shorten the edit of a large file: hashes and diff are computed on another thread while the
//! disk writes ([`while_staging`]), and memory is freed after the reply is sent ([`ReplacedData`]). Together
//! they took an edit of 1 MB from 1.85, 2.19 and 1.76 times a bare durable write to 1.28, 1.88 and 1.24
//! times in three runs on a busy machine; the budget is 2.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use carrel_domain::{Code, Failure};
use carrel_edit::diff::Diff;
use carrel_edit::replace::{
    self, EditError, EditProblem, EditedDocument, Limits, Occurrences, Request,
};
use carrel_edit::{Document, LineFacts};
use carrel_fsroot::{AtomicFile, Metadata};
use carrel_runner::WriteGuard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::refused_edit::{RefusedEdit, with_reason};
use super::workspace_files::{
    ChangeFacts, LoadedFile, WorkspaceFiles, check_is_text, concurrent_change, diff_text,
    required_path, show_hash, shown, shown_context,
};
use crate::blocking::blocking_then_drop;
use crate::read_tracker::{ContentHash, RequiredExtent};
use crate::response::Reply;
use crate::tool::{About, CallRules, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;
use crate::verify::{compiler_check, edit_feedback};

/// Attempts without the lock, before other writers have to wait.
const MAX_UNLOCKED_ATTEMPTS: usize = 4;

/// Smaller files are hashed and compared in less time than a thread takes to start.
const MIN_THREADED_BYTES: usize = 256 * 1024;

pub(super) struct Edit;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EditInput {
    /// The file, relative to the workspace or absolute.
    #[schemars(extend("x-brief" = ""))]
    file_path: String,
    /// The text to replace, exactly as in the file, without line numbers.
    #[schemars(extend("x-brief" = "exact, without line numbers"))]
    old_string: String,
    /// The replacement; may be empty.
    #[schemars(extend("x-brief" = ""))]
    new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    replace_all: bool,
    /// The `hash` of an earlier reply, instead of reading the file again.
    #[schemars(extend("x-brief" = false))]
    expected_hash: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EditFacts {
    #[serde(flatten)]
    change: ChangeFacts,
    replacements: usize,
    /// For each edit, the line of its first replacement, in the text before that edit.
    lines: Vec<usize>,
    line_numbers_removed: bool,
}

impl Tool for Edit {
    type Input = EditInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "Edit",
        title: "Edit a file",
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Replaces text that occurs exactly once, or each occurrence with \
            replace_all.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: EditInput) -> ToolResult<EditFacts> {
        let files = WorkspaceFiles::of(context);
        let EditInput { file_path, old_string, new_string, replace_all, expected_hash } = input;
        let edits = vec![find(old_string, new_string, replace_all)];
        edit_with_feedback(context, files, (file_path, expected_hash), edits).await
    }
}

pub(super) struct MultiEdit;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MultiEditInput {
    /// The file, relative to the workspace or absolute.
    #[schemars(extend("x-brief" = ""))]
    file_path: String,
    /// The edits. Edits of text are applied in order, each to the result of the one before; if any edit
    /// names lines, all refer to the file as it was read.
    #[schemars(extend("x-brief" = ""))]
    edits: Vec<OneEdit>,
    /// The `hash` of an earlier reply, instead of reading the file again.
    #[schemars(extend("x-brief" = false))]
    expected_hash: Option<String>,
}

/// An edit of text or of lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// The text to replace, exactly as in the file.
    #[schemars(extend("x-brief" = ""))]
    old_string: Option<String>,
    /// The replacement; may be empty.
    #[schemars(extend("x-brief" = ""))]
    new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    replace_all: bool,
    /// Instead of `old_string`: the first line to replace, counted from 1.
    #[schemars(extend("x-brief" = ""))]
    start_line: Option<usize>,
    /// The last line to replace, inclusive.
    #[schemars(extend("x-brief" = ""))]
    end_line: Option<usize>,
}

impl Tool for MultiEdit {
    type Input = MultiEditInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "MultiEdit",
        title: "Edit a file in several places",
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Edits one file in several places, all or none: each replaces old_string, \
            or the lines start_line to end_line.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: MultiEditInput) -> ToolResult<EditFacts> {
        let files = WorkspaceFiles::of(context);
        let edits = input.edits.into_iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        edit_with_feedback(context, files, (input.file_path, input.expected_hash), edits).await
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

/// Applies the edits, and adds the findings of the project's linter and formatter.
async fn edit_with_feedback(
    context: &ToolContext,
    files: WorkspaceFiles,
    (file_path, expected_hash): (String, Option<String>),
    edits: Vec<replace::Edit>,
) -> ToolResult<EditFacts> {
    let toolbox = Arc::clone(&context.toolbox);
    let (mut reply, project) = blocking_then_drop(move || {
        let path = required_path(&files, "file_path", &file_path)?;
        // Fails early for a missing file, before its project is searched.
        files.root().metadata(&path)?;
        let (project, limits) =
            edit_feedback::project_and_limits(&files.workspace, &toolbox, &path);
        let expected = expected_hash.as_deref();
        let (files, file_path, edits) = (&files, &file_path, &edits);
        let attempt = EditAttempt { files, path, file_path, expected, edits, limits };
        let (reply, replaced) = attempt.run_until_committed()?;
        Ok(((reply, project), replaced))
    })
    .await?;
    let deadline = Instant::now() + edit_feedback::BUDGET;
    let path = PathBuf::from(&reply.facts.change.path);
    if let Some(project) = &project {
        let feedback = edit_feedback::of_project(context, project, &path).await;
        feedback.add_to(&mut reply.content, &mut reply.facts.change.hash);
    }
    compiler_check::add_feedback(context, &[path], &mut reply.content, deadline).await;
    show_hash(context, &mut reply.content, &reply.facts.change.hash);
    Ok(reply)
}

struct EditAttempt<'a> {
    files: &'a WorkspaceFiles,
    path: PathBuf,
    /// As the caller wrote it, for messages.
    file_path: &'a str,
    /// The hash that the caller named instead of reading the file.
    expected: Option<&'a str>,
    edits: &'a [replace::Edit],
    limits: Limits,
}

/// The old and the new version in memory, and the open replaced file. Dropping them frees the old inode,
/// which takes as long as writing it; see the module's documentation.
type ReplacedData = (LoadedFile, Document, EditedDocument);

impl EditAttempt<'_> {
    fn run_until_committed(&self) -> Result<(Reply<EditFacts>, ReplacedData), Failure> {
        let files = self.files;
        for edit in self.edits {
            let (replace::Edit::Find { new, .. } | replace::Edit::Lines { new, .. }) = edit;
            files.check_masks(new, self.file_path)?;
        }
        for _ in 0..MAX_UNLOCKED_ATTEMPTS {
            if let Some(done) = self.run(|| Ok(Some(files.writing()?)))? {
                return Ok(done);
            }
        }
        let _writing = files.writing()?;
        self.run(|| Ok(None))?.ok_or_else(|| concurrent_change(&self.path))
    }

    /// Reads the file, computes the change and commits it; none if the file has changed since it was read.
    /// `lock` is taken twice and briefly: for the reading, so that a write of this session is complete and
    /// recorded, and for the commit.
    fn run<'l>(
        &self,
        lock: impl Fn() -> Result<Option<WriteGuard<'l>>, Failure>,
    ) -> Result<Option<(Reply<EditFacts>, ReplacedData)>, Failure> {
        let Self { files, path, file_path, .. } = self;
        let reading = lock()?;
        let mut file = files.load(path)?;
        let read = files.read_before(&file.key, self.expected, ("edit", file_path));
        drop(reading);
        let must_be_known = |hash| match &read {
            Ok(read) => read.check(hash, RequiredExtent::Part),
            Err(refusal) => Err(refusal.clone()),
        };
        if let Err(failure) = check_is_text(&file.bytes, file_path) {
            must_be_known(file.hash())?;
            return Err(failure);
        }
        let before = Document::decode(std::mem::take(&mut file.bytes));
        let hash_before = || ContentHash::of(&before.encode());
        let outcome = match self.compute(&before, &file.metadata) {
            Ok(outcome) => outcome,
            Err((failure, near)) => {
                // That the file is not known matters more than why the edit does not apply.
                let Err(refusal) = must_be_known(hash_before()) else { return Err(failure) };
                let refusal = with_reason(refusal, &failure);
                return Err(match near {
                    Some(line) => RefusedEdit::near(&before, line, self.lines_to_find()).show(
                        files,
                        &file.key,
                        hash_before(),
                        refusal,
                    ),
                    None => refusal,
                });
            }
        };
        let refuse = |refusal| {
            let refused = RefusedEdit::of(&before, &outcome.document);
            refused.show(files, &file.key, hash_before(), refusal)
        };
        if let Err(refusal) = &read {
            return Err(refuse(refusal.clone()));
        }
        let bytes = outcome.document.encode();
        let summarize = || {
            let hash = hash_before();
            must_be_known(hash).map_err(refuse)?;
            Ok(EditSummary::of((&before, hash), &outcome, &bytes, &shown(path)))
        };
        let (staged, summary) =
            while_staging(bytes.len(), summarize, || files.stage(path, &bytes))?;
        let writing = lock()?;
        if !files.is_unchanged(path, &file.metadata)? {
            return Ok(None);
        }
        staged.commit()?;
        files.note_replaced(&file.key, &file.metadata, || before.encode().into_owned());
        let known = self.edits.iter().all(|edit| matches!(edit, replace::Edit::Find { .. }));
        let hash = match self.expected {
            None => {
                let hashes = (summary.hash_before, summary.hash);
                let context = if known { 0 } else { shown_context(&summary.diff) };
                let lines = (summary.lines, context);
                files.record_change(&file.key, hashes, &summary.diff, lines)
            }
            Some(_) => files.record_expected(&file.key, summary.hash),
        };
        drop(writing);
        let summary = EditSummary { text: summary.text.filter(|_| !known), ..summary };
        let reply = summary.reply(shown(path), file_path, hash, &outcome, bytes.len());
        drop(bytes);
        Ok(Some((reply, (file, before, outcome))))
    }

    /// Computes the new version. A failure comes with the line that is closest to the text to find, if there
    /// is one.
    fn compute(
        &self,
        before: &Document,
        old: &Metadata,
    ) -> Result<EditedDocument, (Failure, Option<usize>)> {
        let request = Request { limits: self.limits, ..Request::new(self.file_path, self.edits) };
        let outcome = replace::apply(before, &request).map_err(|error| {
            let near = match &error.problem {
                EditProblem::FindNotFound { near: Some(near), .. } => Some(near.line),
                _ => None,
            };
            (refused(error, self.file_path), near)
        })?;
        let bytes = outcome.document.encode().len();
        self.files.check_room(bytes, Some(old)).map_err(|failure| (failure, None))?;
        Ok(outcome)
    }

    /// Returns the number of lines of the longest text to find.
    fn lines_to_find(&self) -> usize {
        let lines = self.edits.iter().map(|edit| match edit {
            replace::Edit::Find { old, .. } => LineFacts::of(old).count,
            replace::Edit::Lines { .. } => 0,
        });
        lines.max().unwrap_or(0)
    }
}

/// Stages the new version here, and runs `compute` on another thread if the file is large. A failure of
/// `compute` takes precedence.
fn while_staging<T: Send>(
    bytes: usize,
    compute: impl Fn() -> Result<T, Failure> + Sync,
    stage: impl FnOnce() -> Result<AtomicFile, Failure>,
) -> Result<(AtomicFile, T), Failure> {
    if bytes < MIN_THREADED_BYTES {
        let summary = compute()?;
        return Ok((stage()?, summary));
    }
    std::thread::scope(|scope| {
        let working = std::thread::Builder::new().spawn_scoped(scope, &compute);
        let file = stage();
        let summary = match working.map(std::thread::ScopedJoinHandle::join) {
            Ok(done) => done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // No thread was available.
            Err(_) => compute(),
        }?;
        Ok((file?, summary))
    })
}

struct EditSummary {
    hash_before: ContentHash,
    hash: ContentHash,
    /// Number of lines after the edit.
    lines: usize,
    diff: Diff,
    /// The change as text, if the request does not already say it. A model that gave the old and the new text
    /// needs no diff to know them.
    text: Option<String>,
}

impl EditSummary {
    fn of(
        (before, hash_before): (&Document, ContentHash),
        outcome: &EditedDocument,
        bytes: &[u8],
        name: &str,
    ) -> Self {
        let after = outcome.document.text();
        let (diff, text) = diff_text(Some(before.text()), after, name);
        let lines = LineFacts::of(after).count;
        Self { hash_before, hash: ContentHash::of(bytes), lines, diff, text: Some(text) }
    }

    fn reply(
        self,
        path: String,
        file_path: &str,
        hash: String,
        outcome: &EditedDocument,
        bytes: usize,
    ) -> Reply<EditFacts> {
        let removed_numbers = outcome.applied.iter().any(|applied| applied.prefixes_removed);
        let mut reply =
            format!("replaced {} occurrence(s) in {file_path}\n", outcome.replacements());
        if removed_numbers {
            reply.push_str("note: line numbers were removed from old_string\n");
        }
        if let Some(text) = &self.text {
            write!(reply, "\n{text}").expect("writing to a string cannot fail");
        }
        let facts = EditFacts {
            change: ChangeFacts::new(path, false, bytes, hash, &self.diff),
            replacements: outcome.replacements(),
            lines: outcome.applied.iter().map(|applied| applied.line).collect(),
            line_numbers_removed: removed_numbers,
        };
        Reply::text(reply, facts)
    }
}

fn refused(error: EditError, file_path: &str) -> Failure {
    let code = match &error.problem {
        EditProblem::EmptyFind | EditProblem::NoEdits | EditProblem::Unencodable(_) => {
            Code::InvalidArguments
        }
        EditProblem::FindNotFound { .. } => Code::EditFindNotFound,
        EditProblem::MultiMatch { .. } => Code::EditMultiMatch,
        EditProblem::NoChange { .. } => Code::EditNoChange,
        EditProblem::FindTooLarge { .. } => Code::EditFindTooLarge,
        EditProblem::ReplaceTooLarge { .. } => Code::EditReplaceTooLarge,
        EditProblem::BatchTooLarge { .. }
        | EditProblem::TooManyEdits { .. }
        | EditProblem::TooManyReplacements { .. } => Code::EditBatchTooLarge,
        EditProblem::ResultTooLarge { .. } => Code::TooLarge,
        EditProblem::LineRangeTooLarge { .. } => Code::EditLineRangeTooLarge,
        EditProblem::InvalidRange { .. } => Code::InvalidRange,
        EditProblem::Overlap { .. } => Code::EditOverlap,
        EditProblem::DuplicatesContext { .. } => Code::EditDuplicatesContext,
    };
    let failure = Failure::new(code, error.to_string()).with("path", file_path);
    let failure = match error.edit {
        Some(edit) => failure.with("edit", edit),
        None => failure,
    };
    match error.problem {
        EditProblem::MultiMatch { count, lines, .. } => {
            failure.with("count", count).with("lines", json!(lines))
        }
        _ => failure,
    }
}
