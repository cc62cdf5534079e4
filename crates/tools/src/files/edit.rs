//! `Edit` and `MultiEdit`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use carrel_domain::Code;
use carrel_edit::Document;
use carrel_edit::diff::Diff;
use carrel_edit::replace::{
    self, EditError, EditProblem, EditedDocument, Limits, Occurrences, Request,
};
use carrel_fsroot::{AtomicFile, Metadata};
use carrel_runner::WriteGuard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::common::{
    ChangeFacts, Unhashed, WorkspaceFiles, changes_now, compared, must_be_text, path_of, shown,
};
use crate::blocking::blocking_and_leaving;
use crate::failure::Failure;
use crate::read_tracker::{ContentHash, Need};
use crate::response::Reply;
use crate::tool::{About, CallRules, Class, Effect, Tool, TrustMode, WorkspaceChoice};
use crate::tool_context::ToolContext;
use crate::verify::feedback;

/// How often a change is worked out while others may write the same file, before they have to wait.
const MAX_FREE_TRIES: usize = 4;

/// A smaller file is compared and hashed in less time than another thread takes to begin.
const MIN_SHARED_BYTES: usize = 256 * 1024;

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
        workspaces: WorkspaceChoice::One,
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Replaces text in a file that this session has read. old_string must occur \
            exactly once, or set replace_all; add lines around it to make it unique. Line endings, \
            encoding and mode are kept. Returns a short diff. Several changes to one file are one \
            MultiEdit; changes to several files are one ApplyPatch.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: EditInput,
    ) -> Result<Reply<EditFacts>, Failure> {
        let files = WorkspaceFiles::of(context);
        let EditInput { file_path, old_string, new_string, replace_all } = input;
        let edits = vec![find(old_string, new_string, replace_all)];
        edit_and_ask(context, files, file_path, edits).await
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
        workspaces: WorkspaceChoice::One,
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Makes several changes to one file that this session has read, all or none. \
            Each change replaces text (old_string, as Edit does) or whole lines (start_line to \
            end_line, best for large blocks). Returns a short diff.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: MultiEditInput,
    ) -> Result<Reply<EditFacts>, Failure> {
        let files = WorkspaceFiles::of(context);
        let edits = input.edits.into_iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        edit_and_ask(context, files, input.file_path, edits).await
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
    context: &ToolContext,
    files: WorkspaceFiles,
    file_path: String,
    edits: Vec<replace::Edit>,
) -> Result<Reply<EditFacts>, Failure> {
    let toolbox = Arc::clone(&context.toolbox);
    let (mut reply, project) = blocking_and_leaving(move || {
        let path = path_of(&files, "file_path", &file_path)?;
        // What leads nowhere has no project, however long it is looked for.
        files.root().metadata(&path)?;
        let (project, limits) = feedback::project_and_limits(&files.workspace, &toolbox, &path);
        let (reply, left) = edit(&files, &file_path, &edits, limits)?;
        Ok(((reply, project), left))
    })
    .await?;
    if let Some(project) = &project {
        let path = PathBuf::from(&reply.facts.change.path);
        let said = feedback::of_project(context, project, &path).await;
        said.add_to(&mut reply.content, &mut reply.facts.change.hash);
    }
    Ok(reply)
}

/// A change that was asked for.
struct Asked<'a> {
    files: &'a WorkspaceFiles,
    path: PathBuf,
    /// The file as the caller wrote it.
    file_path: &'a str,
    edits: &'a [replace::Edit],
    limits: Limits,
}

fn edit(
    files: &WorkspaceFiles,
    file_path: &str,
    edits: &[replace::Edit],
    limits: Limits,
) -> Result<(Reply<EditFacts>, Left), Failure> {
    let path = path_of(files, "file_path", file_path)?;
    for edit in edits {
        let (replace::Edit::Find { new, .. } | replace::Edit::Lines { new, .. }) = edit;
        files.check_masks(new, file_path)?;
    }
    let asked = Asked { files, path, file_path, edits, limits };
    for _ in 0..MAX_FREE_TRIES {
        if let Some(done) = asked.attempt(|| Ok(Some(files.writing()?)))? {
            return Ok(done);
        }
    }
    let _writing = files.writing()?;
    asked.attempt(|| Ok(None))?.ok_or_else(|| changes_now(&asked.path))
}

/// What an edit leaves behind: nobody has to wait until it is freed, and the file that was replaced
/// takes as long as one that is written.
type Left = (Unhashed, Document, EditedDocument);

impl Asked<'_> {
    /// Reads the file, works out the change and makes it visible, unless the file has changed
    /// meanwhile. Nobody else writes while `lock` is held: for the beginning, so that what the session
    /// has just written counts as seen, and for the end. What takes long is between.
    fn attempt<'l>(
        &self,
        lock: impl Fn() -> Result<Option<WriteGuard<'l>>, Failure>,
    ) -> Result<Option<(Reply<EditFacts>, Left)>, Failure> {
        let Self { files, path, file_path, .. } = self;
        let reading = lock()?;
        let mut file = files.open(path)?;
        let read = files.read_before(&file.key, "edit", file_path)?;
        drop(reading);
        if let Err(failure) = must_be_text(&file.bytes, file_path) {
            read.must_be(ContentHash::of(&file.bytes), Need::Part)?;
            return Err(failure);
        }
        let before = Document::decode(std::mem::take(&mut file.bytes));
        let must_be_known = || read.must_be(ContentHash::of(&before.encode()), Need::Part);
        let outcome = match self.work_out(&before, &file.metadata) {
            Ok(outcome) => outcome,
            // That the file is not the one that was read comes before what is wrong with the edits.
            Err(failure) => return Err(must_be_known().err().unwrap_or(failure)),
        };
        let bytes = outcome.document.encode();
        let tell = || {
            must_be_known()?;
            Ok(Told::of(&before, &outcome, &bytes, &shown(path)))
        };
        let (staged, told) = meanwhile(bytes.len(), tell, || files.stage(path, &bytes))?;
        let writing = lock()?;
        if !files.is_as_read(path, &file.metadata)? {
            return Ok(None);
        }
        staged.commit()?;
        let hash = files.changed(&file.key, told.hash);
        drop(writing);
        let reply = told.reply(shown(path), file_path, hash, &outcome, bytes.len());
        drop(bytes);
        Ok(Some((reply, (file, before, outcome))))
    }

    fn work_out(&self, before: &Document, old: &Metadata) -> Result<EditedDocument, Failure> {
        let request = Request { limits: self.limits, ..Request::new(self.file_path, self.edits) };
        let outcome = replace::apply(before, &request);
        let outcome = outcome.map_err(|error| refused(error, self.file_path))?;
        self.files.check_room(outcome.document.encode().len(), Some(old))?;
        Ok(outcome)
    }
}

/// Does the work of the disk here, and that of the processor on another thread if there is much of
/// it. What the processor finds wrong comes first.
fn meanwhile<T: Send>(
    bytes: usize,
    processor: impl Fn() -> Result<T, Failure> + Sync,
    disk: impl FnOnce() -> Result<AtomicFile, Failure>,
) -> Result<(AtomicFile, T), Failure> {
    if bytes < MIN_SHARED_BYTES {
        let told = processor()?;
        return Ok((disk()?, told));
    }
    std::thread::scope(|scope| {
        let working = std::thread::Builder::new().spawn_scoped(scope, &processor);
        let file = disk();
        let told = match working.map(std::thread::ScopedJoinHandle::join) {
            Ok(done) => done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // There may be no more threads; then it takes a little longer.
            Err(_) => processor(),
        }?;
        Ok((file?, told))
    })
}

/// What there is to say about a change.
struct Told {
    hash: ContentHash,
    diff: Diff,
    text: String,
}

impl Told {
    fn of(before: &Document, outcome: &EditedDocument, bytes: &[u8], name: &str) -> Self {
        let (diff, text) = compared(Some(before.text()), outcome.document.text(), name);
        Self { hash: ContentHash::of(bytes), diff, text }
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
            reply.push_str("note: line numbers were taken off old_string\n");
        }
        write!(reply, "\n{}", self.text).expect("writing to a string cannot fail");
        let (added, removed) = (self.diff.added, self.diff.removed);
        let facts = EditFacts {
            change: ChangeFacts { path, created: false, bytes, hash, added, removed },
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
