//! The tool `code_edit`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_code::{
    CodeEdit as Operation, Language, RewriteError, RewriteProblem, TimeBudget, rewrite,
};
use carrel_domain::{Code, Failure, ToolGroup};
use carrel_edit::diff::Diff;
use carrel_edit::{Document, LineFacts};
use carrel_search::{Cancel, Scope, source_files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::AnswerFacts;
use super::code_scan::{decoded, unsupported};
use super::left_out::LeftOut;
use super::outline::cut;
use crate::files::{
    After, Before, ChangeFacts, ChangeSet, LoadedFile, NewFile, RefusedEdit, WorkspaceFiles,
    diff_text, required_path, run_cancellable, shown,
};
use crate::read_tracker::{ReadExtent, RequiredExtent};
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;
use crate::verify::edit_feedback;

/// The time of a rewrite over all files.
const REWRITE_TIME: Duration = Duration::from_secs(30);

/// Bytes of a changed line in a reply.
const MAX_LINE: usize = 120;

/// Files that one call changes.
const MAX_FILES: usize = 500;

pub(super) struct CodeEdit;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file, or a directory all of whose files are changed together.
    #[schemars(extend("x-brief" = "file or directory"))]
    path: String,
    /// The operations, in order: `{"op": "replace", "rule": …, "replacement": "…"}` with a pattern or rule as in
    /// `code_scan`, or `{"op": "rename", "from": "…", "to": "…", "target": "local|member"}`. Each may have `within`
    /// (a rule), `withinSymbol` and `only` (numbers of matches).
    #[schemars(
        with = "Vec<serde_json::Map<String, Value>>",
        extend("x-brief" = "{op:replace,rule,replacement} or {op:rename,from,to}; within, withinSymbol, only")
    )]
    edits: Value,
    /// Only files of this language.
    #[schemars(extend("x-brief" = false))]
    language: Option<String>,
    /// Only show what would change.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    dry_run: bool,
    /// The `hash` of an earlier reply about the file, instead of reading it again.
    #[schemars(extend("x-brief" = false))]
    expected_hash: Option<String>,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// True if files were changed.
    applied: bool,
    files: Vec<ChangeFacts>,
    /// Nodes that match, in all files and operations.
    matches: usize,
    replaced: usize,
    /// The symbols that contain changes.
    symbols: Vec<String>,
    /// Files that could not be read or parsed, with the reason.
    skipped: Vec<String>,
}

impl Tool for CodeEdit {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "code_edit",
        title: "Rewrite by structure",
        group: ToolGroup::Code,
        in_default_set: false,
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Rewrites code by patterns, in one file or all files of a directory: \
            `$A.unwrap_or($B)` to `$A.unwrap_or_else(|| $B)`.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let edits: Vec<Operation> = decoded("edits", &input.edits)?;
        let language = input.language.as_deref().map(|word| {
            Language::of_name(word)
                .ok_or_else(|| Failure::argument("language", format!("no language \"{word}\"")))
        });
        let language = language.transpose()?;
        let limit = context.reply_limit(input.max_bytes);
        let own = context.clone();
        let editing = run_cancellable(context, move |_, cancel| {
            let files = WorkspaceFiles::of(&own);
            let path = required_path(&files, "path", &input.path)?;
            files.check_masks(&input.edits.to_string(), &input.path)?;
            let call = EditCall { edits, language, input: &input, limit };
            call.run(&files, &path, cancel)
        });
        let mut reply = editing.await?;
        if reply.facts.applied {
            let files = reply.facts.files.iter_mut();
            let changed = files.map(|file| (file.path.as_str(), &mut file.hash)).collect();
            edit_feedback::add_for_files(context, changed, &mut reply.content).await;
        }
        Ok(reply)
    }
}

struct EditCall<'a> {
    edits: Vec<Operation>,
    language: Option<Language>,
    input: &'a Input,
    limit: usize,
}

/// The outcome over all files.
#[derive(Default)]
struct Totals {
    matches: usize,
    replaced: usize,
    /// Matches inside of others that were replaced.
    nested: usize,
    symbols: Vec<String>,
    /// The refusal of the first file in which nothing matches.
    no_match: Option<Failure>,
    left_out: LeftOut,
}

impl EditCall<'_> {
    fn run(&self, files: &WorkspaceFiles, path: &Path, cancel: &Cancel) -> ToolResult<Facts> {
        let writing = if self.input.dry_run { None } else { Some(files.writing()?) };
        let since = SystemTime::now();
        let (paths, left_out) = self.files(files, path, cancel)?;
        let is_alone = paths.len() == 1 && paths[0] == path;
        let is_cancelled = || cancel.is_cancelled();
        let budget = TimeBudget::of(REWRITE_TIME);
        let budget = budget.cancelled_by(&is_cancelled);
        let mut set = ChangeSet { doing: "edit", before: Before::new(), after: After::new() };
        let mut totals = Totals { left_out, ..Totals::default() };
        for path in &paths {
            self.add(files, path, (&mut set, &mut totals), &budget, is_alone)?;
        }
        if set.after.is_empty() {
            let nothing = || Failure::new(Code::CodeEditNoMatch, "no file with a grammar is there");
            let mut failure = totals.no_match.unwrap_or_else(nothing);
            totals.left_out.notes("looked at").for_each(|note| line(&mut failure.message, &note));
            return Err(failure);
        }
        if set.after.len() > MAX_FILES {
            let message = format!(
                "{} files would change; at most {MAX_FILES} are changed at once, name a smaller directory",
                set.after.len()
            );
            return Err(Failure::new(Code::EditBatchTooLarge, message));
        }
        if !self.input.dry_run {
            self.check_known(files, &set)?;
            set.commit(files)?;
        }
        let reply = self.reply(files, &set, totals, since);
        drop(writing);
        Ok(reply)
    }

    fn files(
        &self,
        files: &WorkspaceFiles,
        path: &Path,
        cancel: &Cancel,
    ) -> Result<(Vec<PathBuf>, LeftOut), Failure> {
        let accepts = |path: &Path| {
            Language::of_path(path)
                .is_some_and(|found| self.language.map_or(found.is_program(), |one| one == found))
        };
        let scope =
            Scope::at(files.root(), if path == Path::new(".") { Path::new("") } else { path });
        let list = source_files(&scope, accepts, cancel)?;
        let left_out = LeftOut::of_walk(&list);
        Ok((list.files.into_iter().map(|file| file.path).collect(), left_out))
    }

    /// Rewrites one file in memory.
    fn add(
        &self,
        files: &WorkspaceFiles,
        path: &Path,
        (set, totals): (&mut ChangeSet, &mut Totals),
        budget: &TimeBudget<'_>,
        is_alone: bool,
    ) -> Result<(), Failure> {
        let name = shown(path);
        let Some(language) = Language::of_path(path) else {
            return Err(unsupported(path, Code::EditUnsupported));
        };
        let loaded = match files.load(path) {
            Ok(loaded) => loaded,
            Err(failure) if is_alone => return Err(failure),
            Err(failure) => {
                totals.left_out.add_unread(&name, &failure);
                return Ok(());
            }
        };
        let before = match loaded.document(&name) {
            Ok(document) => document,
            Err(failure) if is_alone => return Err(failure),
            Err(failure) => {
                totals.left_out.add_unread(&name, &failure);
                return Ok(());
            }
        };
        let rewritten = match rewrite(language, before.text(), &self.edits, budget) {
            Ok(rewritten) => rewritten,
            Err(error) => {
                let failure = failure(&error, &name);
                let is_miss = matches!(
                    error.problem,
                    RewriteProblem::NoMatch { .. } | RewriteProblem::NoChange
                );
                // A pattern of one language is no pattern of another one.
                let is_other = matches!(
                    error.problem,
                    RewriteProblem::Rule(_)
                        | RewriteProblem::Syntax(_)
                        | RewriteProblem::UnboundVariable { .. }
                );
                if is_alone || !(is_miss || is_other) {
                    return Err(failure);
                }
                match &error.problem {
                    RewriteProblem::Rule(_) => totals.left_out.add_language(language),
                    RewriteProblem::Syntax(problem) => {
                        totals.left_out.add(&name, &problem.to_string());
                    }
                    _ => {}
                }
                // A refusal tells more than that nothing matches.
                if is_other || totals.no_match.is_none() {
                    totals.no_match = Some(failure);
                }
                return Ok(());
            }
        };
        for effect in &rewritten.operations {
            totals.matches += effect.matches.len();
            totals.replaced += effect.replaced;
            totals.nested += effect.nested;
        }
        totals.symbols.extend(rewritten.symbols.iter().map(|path| path.join("::")));
        let after = before
            .with_text(rewritten.text)
            .map_err(|error| Failure::new(Code::InvalidArguments, format!("{name}: {error}")))?;
        let new = NewFile {
            text: after.text().to_owned(),
            bytes: after.encode().into_owned(),
            mode: None,
        };
        set.before.insert(name, Some(loaded));
        set.after.insert(path.to_owned(), Some(new));
        Ok(())
    }

    /// Refuses files that the session does not know, with the lines that would change.
    fn check_known(&self, files: &WorkspaceFiles, set: &ChangeSet) -> Result<(), Failure> {
        let expected = self.input.expected_hash.as_deref().filter(|_| set.after.len() == 1);
        let mut refused: Option<Failure> = None;
        for (path, new) in &set.after {
            let (Some(old), Some(new)) = (set.old(files, path), new) else { continue };
            let name = shown(path);
            let known = files.check(old, expected, RequiredExtent::Part, ("edit", &name));
            let Err(refusal) = known else { continue };
            let before = old.document(&name)?;
            let after = carrel_edit::Document::from_text(&new.text);
            let shown = RefusedEdit::of(&before, &after).show(files, &old.key, old.hash(), refusal);
            match &mut refused {
                // Each file that is shown counts as read, as far as the reply has room for it.
                Some(first) if first.message.len() < self.limit => {
                    line(&mut first.message, &shown.message);
                }
                Some(_) => {}
                None => refused = Some(shown),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn reply(
        &self,
        files: &WorkspaceFiles,
        set: &ChangeSet,
        totals: Totals,
        since: SystemTime,
    ) -> Reply<Facts> {
        let applied = !self.input.dry_run;
        let Totals { matches, replaced, nested, mut symbols, left_out, .. } = totals;
        symbols.dedup();
        let (verb, count) = (if applied { "changed" } else { "would change" }, set.after.len());
        let mut text =
            format!("{verb} {count} file(s): {replaced} of {matches} match(es) replaced");
        if nested > 0 {
            line(
                &mut text,
                &format!("[{nested} matches inside of these were left; call again for them]"),
            );
        }
        let mut changed = Vec::new();
        for (path, new) in &set.after {
            let (Some(old), Some(new)) = (set.old(files, path), new) else { continue };
            let name = shown(path);
            let before = old.document(&name).ok();
            let (diff, shown) =
                diff_text(before.as_ref().map(carrel_edit::Document::text), &new.text, &name);
            let hash = if applied {
                set.record(files, path, (new, &diff))
            } else {
                record_shown(files, old, (before.as_ref(), &new.text), &diff);
                old.hash().short()
            };
            let bytes = new.bytes.len();
            if applied {
                add_changed_lines(&mut text, &name, &new.text, &diff);
            } else if text.len() + shown.len() <= self.limit {
                line(&mut text, shown.trim_end());
            } else {
                line(&mut text, &format!("{name}: +{} -{} lines", diff.added, diff.removed));
            }
            changed.push(ChangeFacts::new(name, false, bytes, hash, &diff));
        }
        let mut text = cut(&text, self.limit.max(1) * 2);
        left_out.notes("looked at").for_each(|note| line(&mut text, &note));
        let (answer, skipped) = (left_out.answer(since, None), left_out.files());
        let files = changed;
        Reply::text(text, Facts { answer, applied, files, matches, replaced, symbols, skipped })
    }
}

/// Changed lines of a file that a reply shows. Its author knows the old ones and the rule.
const MAX_CHANGED_LINES: usize = 10;

/// Appends the new lines of a file.
fn add_changed_lines(text: &mut String, name: &str, new: &str, diff: &Diff) {
    let lines: Vec<_> = carrel_edit::lines(new).map(|line| line.text).collect();
    let changed: Vec<usize> = diff.changes.iter().flat_map(|change| change.new.clone()).collect();
    for at in changed.iter().take(MAX_CHANGED_LINES) {
        let source = lines.get(*at).copied().unwrap_or_default().trim();
        line(text, &format!("{name}:{}: {}", at + 1, cut(source, MAX_LINE)));
    }
    let rest = changed.len().saturating_sub(MAX_CHANGED_LINES);
    if rest > 0 || changed.is_empty() {
        line(text, &format!("{name}: {rest} more lines changed"));
    }
}

/// Records the lines that a dry run shows of a file as read, so that the rewrite itself can follow.
fn record_shown(
    files: &WorkspaceFiles,
    old: &LoadedFile,
    (before, new): (Option<&Document>, &str),
    diff: &Diff,
) {
    let text = before.map_or(new, Document::text);
    let lines = LineFacts::of(text).count;
    for change in &diff.changes {
        let (first, last) = (change.old.start.max(1), (change.old.end + 1).min(lines));
        if first <= last {
            let extent = ReadExtent::Lines(first, last, lines);
            files.record_read(old.key.clone(), old.hash(), &extent);
        }
    }
}

fn failure(error: &RewriteError, path: &str) -> Failure {
    let code = match &error.problem {
        RewriteProblem::OperationCount { .. } | RewriteProblem::NotAName { .. } => {
            Code::InvalidArguments
        }
        RewriteProblem::Rule(_) => Code::InvalidPattern,
        RewriteProblem::Search(carrel_code::SearchError::Cancelled) => Code::Cancelled,
        RewriteProblem::Search(_) => Code::Timeout,
        RewriteProblem::Syntax(_) => Code::EditUnsupported,
        RewriteProblem::Target(_)
        | RewriteProblem::NoMatch { .. }
        | RewriteProblem::AmbiguousTarget { .. }
        | RewriteProblem::NotDeclared { .. }
        | RewriteProblem::NoSuchMatch { .. }
        | RewriteProblem::Collision { .. } => Code::CodeEditNoMatch,
        RewriteProblem::UnboundVariable { .. } => Code::CodeEditUnbound,
        RewriteProblem::TooManyMatches | RewriteProblem::ResultTooLarge { .. } => Code::TooLarge,
        RewriteProblem::DidNotParse(_) => Code::ReplacementInvalid,
        RewriteProblem::NoChange => Code::EditNoChange,
    };
    Failure::new(code, format!("{path}: {error}")).with("path", path)
}
