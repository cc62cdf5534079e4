//! The tool `rename_symbol`.
//!
//! A language server says which places to change, with the contents that they are about. They are changed in all
//! files or in none ([`ChangeSet`]), and only if the server knows the whole project. The session can take its last
//! rename back. What is left of the old name, in comments, strings and documents, is listed.

mod check;
mod undo;

use std::fmt::Write as _;
use std::path::Path;

use carrel_domain::{Code, Failure, ToolGroup};
use carrel_lsp::{Answer, FileEdits, FileOperation, WorkspaceChange};
use carrel_search::{Cancel, GrepRequest, Scope, Syntax};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use undo::LastRename;

use super::answer::AnswerFacts;
use super::find_definition::prepare;
use super::question::{Question, TargetInput};
use super::semantics::require;
use crate::files::{
    After, Before, ChangeSet, LoadedFile, NewFile, WorkspaceFiles, diff_text, run_cancellable,
    shown,
};
use crate::named_workspace::NamedWorkspace;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;
use crate::verify::edit_feedback;

/// Lines with the old name that a reply shows.
const MAX_LEFT_OVER: usize = 10;

/// Files of a rename that a reply names.
const MAX_NAMED_FILES: usize = 40;

/// Bytes of the diff of a dry run unless the call sets a limit.
const DRY_RUN_BYTES: usize = 8_000;

/// The permissions that a file keeps under a new path.
const PERMISSIONS: u32 = 0o777;

/// The longest new name.
const MAX_NAME_BYTES: usize = 200;

pub(super) struct RenameSymbol;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(flatten)]
    target: TargetInput,
    /// The new name.
    #[schemars(extend("x-brief" = ""))]
    new_name: Option<String>,
    /// Only show what would change.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    dry_run: bool,
    /// Take the last rename of this session back.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    undo: bool,
    /// Rename although the language server does not know everything.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    force: bool,
    #[schemars(extend("x-brief" = false))]
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// None for an undone rename.
    answer: Option<AnswerFacts>,
    /// True if files were changed.
    applied: bool,
    files: Vec<FileFacts>,
    /// Lines that still have the old name.
    left_over: usize,
}

/// A file of a rename.
#[derive(Debug, Serialize, JsonSchema)]
struct FileFacts {
    path: String,
    edits: usize,
    /// After the change, for `expected_hash`.
    hash: Option<String>,
}

impl Tool for RenameSymbol {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "rename_symbol",
        title: "Rename a symbol",
        group: ToolGroup::Code,
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Renames a symbol in all files at once, by a language server, and lists what \
            still has the old name.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        if input.undo || !input.dry_run {
            context.refuse_frozen().await?;
        }
        if input.undo {
            return undo::run(context).await;
        }
        let new_name = checked(input.new_name.as_deref())?.to_owned();
        let (question, _) = prepare(context, input.target).await?;
        let place = question.only_place()?;
        if question.name == new_name {
            let message = format!("{new_name} has this name already; nothing was renamed");
            return Err(Failure::new(Code::EditNoChange, message));
        }
        let found =
            require(context, async |servers, query| servers.rename(query, &place, &new_name).await)
                .await?;
        if !input.dry_run && !input.force {
            check_complete(&found)?;
            let rename = (&question, new_name.as_str(), &found.value);
            check::run(context, rename, &place).await?;
        }
        let limit = context.reply_limit(input.max_bytes).min(match input.max_bytes {
            None => DRY_RUN_BYTES,
            Some(_) => usize::MAX,
        });
        let rename = Rename { question, new_name, found, limit, applies: !input.dry_run };
        let own = context.clone();
        let renaming =
            run_cancellable(context, move |workspace, cancel| rename.run(&own, workspace, cancel));
        let mut reply = renaming.await?;
        if reply.facts.applied {
            let files = reply.facts.files.iter_mut();
            let changed = files.filter_map(|file| Some((file.path.as_str(), file.hash.as_mut()?)));
            let changed = changed.collect();
            let formatted =
                edit_feedback::add_for_files(context, changed, &mut reply.content).await;
            undo::follow(context, &formatted).await?;
        }
        Ok(reply)
    }
}

fn checked(name: Option<&str>) -> Result<&str, Failure> {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::argument("new_name", "new_name is required"))?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '?' | '!' | '@');
    let is_name = name.len() <= MAX_NAME_BYTES
        && name.chars().all(is_part)
        && !name.starts_with(|c: char| c.is_numeric());
    is_name.then_some(name).ok_or_else(|| {
        Failure::argument(
            "new_name",
            "new_name is one identifier, without blanks and without its path",
        )
    })
}

fn check_complete(found: &Answer<WorkspaceChange>) -> Result<(), Failure> {
    let Some(missing) = &found.incomplete else { return Ok(()) };
    let message = format!(
        "refusing to rename: {} does not know everything ({missing}); dry_run shows what it knows, \
         force renames that",
        found.server
    );
    Err(Failure::new(Code::LanguageServer, message))
}

/// A rename that a server has worked out.
struct Rename {
    question: Question,
    new_name: String,
    found: Answer<WorkspaceChange>,
    limit: usize,
    applies: bool,
}

impl Rename {
    fn run(
        &self,
        context: &ToolContext,
        workspace: &NamedWorkspace,
        cancel: &Cancel,
    ) -> ToolResult<Facts> {
        let files = WorkspaceFiles::of(context);
        let change = &self.found.value;
        if change.files.is_empty() && change.operations.is_empty() {
            let message = format!("no rename available at {}", self.question.short_label());
            return Err(Failure::new(Code::SymbolNotFound, message));
        }
        let writing = if self.applies { Some(files.writing()?) } else { None };
        let set = change_set(&files, change)?;
        let mut text = String::new();
        let mut facts = Vec::new();
        let edits_of = |path: &Path| {
            let file = change.files.iter().find(|file| file.path == path);
            file.map_or(0, |file| file.edits.len())
        };
        if self.applies {
            set.commit(&files)?;
        } else {
            let (name, count) = (&self.new_name, change.files.len());
            line(&mut text, &format!("Rename → \"{name}\" would touch {count} file(s):"));
        }
        let mut diffs = String::new();
        for (path, new) in &set.after {
            let name = shown(path);
            let edits = edits_of(path);
            let hash = new.as_ref().and_then(|new| {
                let old = set.old(&files, path);
                let old = old.and_then(|old| old.document(&name).ok());
                let (diff, shown) =
                    diff_text(old.as_ref().map(carrel_edit::Document::text), &new.text, &name);
                diffs.push_str(&shown);
                self.applies.then(|| set.record(&files, path, (new, &diff)))
            });
            if new.is_none() && self.applies {
                set.forget(&files, path);
            }
            facts.push(FileFacts { path: name, edits, hash });
        }
        if self.applies {
            undo::remember(context, &files, &set);
        }
        drop(writing);
        let total: usize = facts.iter().map(|file| file.edits).sum();
        if self.applies {
            let (old, new) = (&self.question.name, &self.new_name);
            line(
                &mut text,
                &format!("Renamed {old} to {new}: {total} edits in {} files", facts.len()),
            );
        }
        for file in facts.iter().take(MAX_NAMED_FILES) {
            line(&mut text, &format!("  - {} ({} edit(s))", file.path, file.edits));
        }
        if facts.len() > MAX_NAMED_FILES {
            line(&mut text, &format!("  [{} more files]", facts.len() - MAX_NAMED_FILES));
        }
        if !self.applies {
            line(&mut text, &super::outline::cut(&diffs, self.limit));
        }
        let left_over = if self.applies {
            left_over(workspace, &self.question.name, cancel, &mut text)?
        } else {
            0
        };
        let answer = AnswerFacts::of_server(&self.found);
        answer.notes().for_each(|note| line(&mut text, &note));
        let applied = self.applies;
        Ok(Reply::text(text, Facts { answer: Some(answer), applied, files: facts, left_over }))
    }
}

/// Loads the files of a change and computes their new versions.
fn change_set(files: &WorkspaceFiles, change: &WorkspaceChange) -> Result<ChangeSet, Failure> {
    let mut set = ChangeSet { doing: "rename", before: Before::new(), after: After::new() };
    for edits in &change.files {
        let loaded = files.load(&edits.path)?;
        let text = edited(&loaded, edits)?;
        let new = NewFile { bytes: text.clone().into_bytes(), text, mode: None };
        set.before.insert(shown(&edits.path), Some(loaded));
        set.after.insert(edits.path.clone(), Some(new));
    }
    for operation in &change.operations {
        match operation {
            FileOperation::Create { path, text } => {
                let new =
                    NewFile { bytes: text.clone().into_bytes(), text: text.clone(), mode: None };
                set.before.entry(shown(path)).or_insert(None);
                set.after.insert(path.clone(), Some(new));
            }
            FileOperation::Delete { path } => {
                load(files, &mut set, path)?;
                set.after.insert(path.clone(), None);
            }
            FileOperation::Rename { from, to } => {
                load(files, &mut set, from)?;
                let edited = set.after.insert(from.clone(), None).flatten();
                let new = match edited {
                    Some(new) => new,
                    None => unchanged(&set, files, from)?,
                };
                let mode = set.old(files, from).map(|old| old.metadata.mode & PERMISSIONS);
                let new = NewFile { mode, ..new };
                set.before.entry(shown(to)).or_insert(None);
                set.after.insert(to.clone(), Some(new));
            }
        }
    }
    Ok(set)
}

fn load(files: &WorkspaceFiles, set: &mut ChangeSet, path: &Path) -> Result<(), Failure> {
    if let std::collections::btree_map::Entry::Vacant(e) = set.before.entry(shown(path)) {
        e.insert(Some(files.load(path)?));
    }
    Ok(())
}

fn unchanged(set: &ChangeSet, files: &WorkspaceFiles, path: &Path) -> Result<NewFile, Failure> {
    let old = set
        .old(files, path)
        .ok_or_else(|| Failure::new(Code::NotFound, format!("{} does not exist", shown(path))))?;
    let text = old.document(&shown(path))?.text().to_owned();
    Ok(NewFile { text, bytes: old.bytes.clone(), mode: None })
}

/// Returns the new text of a file, or refuses one that has changed since the server saw it.
pub(super) fn edited(loaded: &LoadedFile, edits: &FileEdits) -> Result<String, Failure> {
    let name = shown(&edits.path);
    let changed = || {
        let message = format!("{name} has changed meanwhile; nothing was renamed, call again");
        Failure::new(Code::ChangedSinceRead, message).with("path", name.as_str())
    };
    if carrel_lsp::ContentHash::of(&loaded.bytes) != edits.content {
        return Err(changed());
    }
    let old = std::str::from_utf8(&loaded.bytes).map_err(|_| changed())?;
    let mut new = String::with_capacity(old.len());
    let mut at = 0;
    for edit in &edits.edits {
        new.push_str(old.get(at..edit.range.start).ok_or_else(changed)?);
        new.push_str(&edit.text);
        at = edit.range.end;
    }
    new.push_str(old.get(at..).ok_or_else(changed)?);
    Ok(new)
}

/// Appends the lines that still have the old name, and returns their number.
fn left_over(
    workspace: &NamedWorkspace,
    name: &str,
    cancel: &Cancel,
    text: &mut String,
) -> Result<usize, Failure> {
    let request =
        GrepRequest { syntax: Syntax::Literal, whole_word: true, ..GrepRequest::new(name) };
    let report = carrel_search::grep(&Scope::whole(workspace.files()), &request, cancel)?;
    let lines: usize = report.files.iter().map(|file| file.lines.len()).sum();
    if lines == 0 {
        return Ok(0);
    }
    line(
        text,
        &format!("[{lines} lines still have {name}, in comments, strings or another meaning:]"),
    );
    let all = report.files.iter().flat_map(|file| file.lines.iter().map(move |one| (file, one)));
    for (file, one) in all.take(MAX_LEFT_OVER) {
        let source = super::outline::cut(one.text.trim(), super::find_definition::MAX_SOURCE_LINE);
        writeln!(text, "  {}:{}: {source}", shown(&file.path), one.number)
            .expect("writing to a string cannot fail");
    }
    if lines > MAX_LEFT_OVER {
        line(text, &format!("  [{} more]", lines - MAX_LEFT_OVER));
    }
    Ok(lines)
}
