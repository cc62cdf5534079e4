//! Edits of a file by symbol: lookup, read gate, checks and the write that all of these tools share.
//!
//! The caller names the symbol, and the file if the name alone does not tell it. A file that was not read is
//! refused with the lines that would change, which counts as reading them, so that the same call then passes. The
//! engine (`carrel_code::ParsedSource`) parses the whole result before anything is written.

use std::path::PathBuf;

use carrel_code::{
    AffectedSymbol, EditError, EditedSource, Language, ParsedSource, SymbolTarget, TargetError,
};
use carrel_domain::{Code, Failure};
use carrel_edit::{Document, LineFacts};
use carrel_search::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::signature_calls::CallFacts;
use super::source_file::unsupported;
use super::symbol_indexes::refresh;
use super::symbol_query::SymbolQuery;
use crate::files::{
    ChangeFacts, LoadedFile, RefusedEdit, WorkspaceFiles, diff_text, required_path,
    run_cancellable, show_hash, shown,
};
use crate::read_tracker::{ContentHash, RequiredExtent};
use crate::response::Reply;
use crate::text::line;
use crate::tool::ToolResult;
use crate::tool_context::ToolContext;
use crate::verify::{compiler_check, edit_feedback};

/// A symbol to change, and the proof that its file is known.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Place {
    /// The file; without it the symbol must have one definition in the workspace.
    #[schemars(extend("x-brief" = ""))]
    pub(super) file_path: Option<String>,
    /// A line of the definition, if several have the name.
    #[schemars(extend("x-brief" = false))]
    pub(super) line: Option<u64>,
    /// The `hash` of an earlier reply, instead of reading the file again.
    #[schemars(extend("x-brief" = false))]
    pub(super) expected_hash: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct EditFacts {
    #[serde(flatten)]
    pub(super) change: ChangeFacts,
    /// The symbols that were edited, inserted or removed, by their paths.
    pub(super) symbols: Vec<String>,
    /// The first and last line of the changed part, after the change.
    pub(super) first_line: usize,
    last_line: usize,
    /// The calls of a function whose head was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<CallFacts>,
}

/// An edit of one file by symbol.
pub(super) struct SymbolEdit<F> {
    pub(super) tool: &'static str,
    /// The name path by which the file is found, if the place has none.
    pub(super) symbol: String,
    pub(super) place: Place,
    /// The text that the edit writes.
    pub(super) text: String,
    pub(super) operation: F,
}

impl<F> SymbolEdit<F>
where
    F: Fn(&ParsedSource<'_>) -> Result<EditedSource, EditError> + Send + 'static,
{
    /// Makes the edit, and adds the findings of the project's linter, formatter and compiler.
    pub(super) async fn run(self, context: &ToolContext) -> ToolResult<EditFacts> {
        let own = context.clone();
        let mut reply = run_cancellable(context, move |_, cancel| self.apply(&own, cancel)).await?;
        let deadline = Instant::now() + edit_feedback::BUDGET;
        let path = PathBuf::from(&reply.facts.change.path);
        let feedback = edit_feedback::of(context, &path).await;
        feedback.add_to(&mut reply.content, &mut reply.facts.change.hash);
        compiler_check::add_feedback(context, &[path], &mut reply.content, deadline).await;
        show_hash(context, &mut reply.content, &reply.facts.change.hash);
        Ok(reply)
    }

    fn apply(&self, context: &ToolContext, cancel: &Cancel) -> ToolResult<EditFacts> {
        let files = WorkspaceFiles::of(context);
        let path = file_of(context, &files, &self.symbol, &self.place, cancel)?;
        let name = shown(&path);
        files.check_masks(&self.text, &name)?;
        let _writing = files.writing()?;
        // A path that leaves the workspace is refused for that, also with an unknown ending.
        let loaded = files.load(&path)?;
        let language = Language::of_path(&path).ok_or_else(|| unsupported(&name))?;
        let before = loaded.document(&name)?;
        let source = ParsedSource::parse(language, before.text())
            .map_err(|error| failure(self.tool, &EditError::Syntax(error), &name))?;
        let edited =
            (self.operation)(&source).map_err(|error| failure(self.tool, &error, &name))?;
        let after = before.with_text(edited.text.clone()).map_err(|error| {
            Failure::new(Code::InvalidArguments, format!("{name}: {error}"))
                .with("path", name.as_str())
        })?;
        self.check_known(&files, &loaded, (&before, &after), &name)?;
        let bytes = after.encode().into_owned();
        files.replace(&path, &loaded, &bytes)?;
        let (diff, _) = diff_text(Some(before.text()), after.text(), &name);
        let hashes = (loaded.hash(), ContentHash::of(&bytes));
        let hash = match &self.place.expected_hash {
            None => {
                let lines = LineFacts::of(after.text()).count;
                files.record_change(&loaded.key, hashes, &diff, (lines, 0))
            }
            Some(_) => files.record_expected(&loaded.key, hashes.1),
        };
        let change = ChangeFacts::new(name, false, bytes.len(), hash, &diff);
        Ok(reply(self.tool, change, &edited))
    }

    /// Refuses a file that the session does not know, with the lines that the edit would change.
    fn check_known(
        &self,
        files: &WorkspaceFiles,
        loaded: &LoadedFile,
        (before, after): (&Document, &Document),
        name: &str,
    ) -> Result<(), Failure> {
        let expected = self.place.expected_hash.as_deref();
        let known = files.check(loaded, expected, RequiredExtent::Part, ("edit", name));
        known.map_err(|refusal| {
            RefusedEdit::of(before, after).show(files, &loaded.key, loaded.hash(), refusal)
        })
    }
}

/// Returns the file of an edit: the one that the caller named, or that of the only definition.
fn file_of(
    context: &ToolContext,
    files: &WorkspaceFiles,
    symbol: &str,
    place: &Place,
    cancel: &Cancel,
) -> Result<PathBuf, Failure> {
    if let Some(path) = &place.file_path {
        return required_path(files, "file_path", path);
    }
    let query = SymbolQuery::new(&files.workspace, symbol, None, place.line)?;
    let fresh = refresh(context, &files.workspace, cancel)?;
    let found = query.find(&fresh)?;
    let Some((first, rest)) = found.split_first() else { return Err(query.ambiguous(&found)) };
    if !rest.iter().all(|one| one.file == first.file) {
        return Err(query.ambiguous(&found));
    }
    if let Some(pending) = fresh.pending() {
        let (file, line) = (shown(&first.file), first.line);
        let message = format!(
            "{symbol} is defined at {file}:{line}, and there may be further definitions: {pending}; give file_path"
        );
        return Err(Failure::new(Code::SymbolAmbiguous, message).with("symbol", symbol));
    }
    Ok(first.file.clone())
}

pub(super) fn line_number(line: Option<u64>) -> Option<usize> {
    line.and_then(|line| usize::try_from(line).ok())
}

/// Returns the target of an edit in its file. Module names before the path count only for the lookup of the file.
pub(super) fn target(symbol: &str, line: Option<u64>) -> Result<SymbolTarget, EditError> {
    let target = SymbolTarget::parse(symbol)?;
    Ok(line_number(line).map_or(target.clone(), |line| target.at_line(line)))
}

fn reply(tool: &str, change: ChangeFacts, edited: &EditedSource) -> Reply<EditFacts> {
    let path = |one: &AffectedSymbol| one.path.join("::");
    let symbols: Vec<_> = edited.symbols.iter().map(path).collect();
    let (first_line, last_line) = edited.change.new_lines;
    let at = edited.symbols.first().map_or(first_line, |one| one.line);
    let mut text = format!("{tool}: modified {} at line {at}", change.path);
    let (added, removed) = (change.added, change.removed);
    line(&mut text, &format!("{}: +{added} -{removed} lines", symbols.join(", ")));
    Reply::text(text, EditFacts { change, symbols, first_line, last_line, calls: None })
}

pub(super) fn failure(tool: &str, error: &EditError, path: &str) -> Failure {
    let code = match error {
        EditError::Target(TargetError::NotFound { .. } | TargetError::NoMethod { .. }) => {
            Code::SymbolNotFound
        }
        EditError::Target(TargetError::Ambiguous { .. }) => Code::SymbolAmbiguous,
        EditError::Target(TargetError::NoName { .. })
        | EditError::NotCallable { .. }
        | EditError::NoBody { .. }
        | EditError::EmptyFragment => Code::InvalidArguments,
        EditError::FragmentTooLarge { .. } => Code::TooLarge,
        EditError::NoFunctions { .. } | EditError::Syntax(_) => Code::UnsupportedLanguage,
        EditError::Broken { .. }
        | EditError::Conditional { .. }
        | EditError::NotAMethod { .. }
        | EditError::DidNotParse(_)
        | EditError::Escapes(_) => Code::ReplacementInvalid,
        EditError::NoChange => Code::EditNoChange,
    };
    Failure::new(code, format!("{tool}: {path}: {error}")).with("path", path)
}
