//! Checks of a rename that a language server has worked out, before anything is written.
//!
//! A server does not know code that its configuration leaves out, some leave re-exports and overrides as they are, and
//! some take any text for a name. The index of the workspace knows every use of a name in code, so what a rename
//! leaves over can be told from it:
//!
//! | found | refused because |
//! |---|---|
//! | the index does not have all files | they may use the name |
//! | the new name is defined beside the old one | two symbols would become one |
//! | a changed file has more syntax errors | the new name is a word of the language |
//! | a use that the server itself resolves to a changed place | it would name nothing afterwards |
//! | a use that the server cannot resolve, of a name with one definition | the same, probably |
//! | an implementation or override that keeps its name | it would no longer be one |
//!
//! A use is a place in code, not a line: a line that the change edits may have another one.
//!
//! `force` renames all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_code::{Definition, IndexView, Language, NamePath, SyntaxTree, name_ranges};
use carrel_domain::{Code, Failure};
use carrel_lsp::{FileOperation, Location, Target, WorkspaceChange};
use tokio::time::Instant;

use super::edited;
use crate::code::question::Question;
use crate::code::semantics::{self, Semantics, ask};
use crate::code::signature_calls::family;
use crate::code::source_file::SourceFile;
use crate::code::symbol_indexes::refresh;
use crate::code::unindexed::unseen_uses;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::tool_context::ToolContext;

/// Places that a refusal names.
const MAX_NAMED: usize = 8;

/// Uses that a server is asked about, one by one. Further ones count as not resolved.
const MAX_ASKED: usize = 400;

/// The time for these questions. Uses beyond it count as not resolved.
const ASKING_TIME: Duration = Duration::from_secs(30);

/// A place in the workspace, by file and line.
type Places = BTreeSet<(PathBuf, usize)>;

/// The parts of files that a change replaces.
#[derive(Debug, Default)]
struct ChangedParts {
    ranges: BTreeMap<PathBuf, Vec<Range<usize>>>,
    lines: Places,
}

/// A use of the old name that a change leaves as it is.
#[derive(Debug)]
struct LeftUse {
    path: PathBuf,
    line: usize,
    /// None in a file that cannot be read.
    target: Option<Target>,
}

/// The meaning of a use, as far as its server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The symbol that is renamed.
    Renamed,
    /// Another symbol of the same name: a parameter, for example.
    Another,
    Unknown,
}

/// Refuses a rename that would leave code behind.
pub(super) async fn run(
    context: &ToolContext,
    (question, new_name, change): (&Question, &str, &WorkspaceChange),
    place: &Target,
) -> Result<(), Failure> {
    let is_method = question.definitions.iter().any(|one| one.depth > 0);
    let implementations =
        if is_method { implementations(context, place).await } else { Places::new() };
    let own = context.clone();
    let (old, new) = (question.name.clone(), new_name.to_owned());
    let (definitions, change) = (question.definitions.clone(), change.clone());
    let name = old.clone();
    let looked_at = run_cancellable(context, move |workspace, cancel| {
        let files = WorkspaceFiles::of(&own);
        let changed = changed_parts(&files, &change)?;
        let fresh = refresh(&own, workspace, cancel)?;
        if let Some(reason) = unseen_uses(&files, &fresh, &name, cancel)? {
            return Err(may_be_used(&name, &reason));
        }
        let is_only = {
            let view = fresh.view();
            check_taken(&view, &definitions, &new, &change)?;
            let mut found = view.definitions_of_name(&name);
            found.retain(|one| is_related(&one.file, &change));
            // Overloads are one definition.
            let found: BTreeSet<_> = found.iter().map(|one| (&one.file, &one.path)).collect();
            found.len() <= 1
        };
        let kept: Places = implementations.difference(&changed.lines).cloned().collect();
        refuse_if_any(&kept, &format!("implementations or overrides of {name} keep their name"))?;
        let mut uses = fresh.view().uses(&name);
        uses.retain(|file| is_related(&file.file, &change));
        let mut left = Vec::new();
        for file in uses {
            let lines = file.lines.iter().map(|one| one.line);
            left.extend(uses_left(&own, &files, (&file.file, lines), (&name, &changed)));
        }
        Ok((changed, left, is_only))
    });
    let (changed, left, is_only) = looked_at.await?;
    let missed = missed(context, left, &changed, is_only).await;
    refuse_if_any(&missed, &format!("lines of code that the server does not change use {old}"))
}

/// Returns the places of code that a change would leave behind. A use that cannot be resolved is one only if the
/// name has one definition: of several any may be meant.
async fn missed(
    context: &ToolContext,
    left: Vec<LeftUse>,
    changed: &ChangedParts,
    is_only: bool,
) -> Places {
    let until = Instant::now() + ASKING_TIME;
    let mut missed = Places::new();
    for (number, one) in left.into_iter().enumerate() {
        let meaning = match &one.target {
            Some(target) if number < MAX_ASKED && Instant::now() < until => {
                meaning(context, target, changed).await
            }
            Some(_) | None => Meaning::Unknown,
        };
        let is_missed = match meaning {
            Meaning::Renamed => true,
            Meaning::Another => false,
            Meaning::Unknown => is_only,
        };
        if is_missed {
            missed.insert((one.path, one.line));
        }
    }
    missed
}

/// Returns the uses of the old name in a file that a change leaves as they are.
fn uses_left(
    context: &ToolContext,
    files: &WorkspaceFiles,
    (path, lines): (&Path, impl Iterator<Item = usize>),
    (name, changed): (&str, &ChangedParts),
) -> Vec<LeftUse> {
    let Some((file, tree)) = parsed(context, files, path) else {
        let all = lines.filter(|line| !changed.lines.contains(&(path.to_owned(), *line)));
        return all.map(|line| LeftUse { path: path.to_owned(), line, target: None }).collect();
    };
    let mut uses = name_ranges(&tree, &file.source, name);
    uses.retain(|range| !changed.has(path, range));
    let left = |range: Range<usize>| LeftUse {
        path: path.to_owned(),
        line: line_of(file.source.as_bytes(), range.start),
        target: Some(semantics::target(&file, range.start)),
    };
    uses.into_iter().map(left).collect()
}

/// Tells whether code of a file can mean what a change renames. The same word in another language is another one.
fn is_related(path: &Path, change: &WorkspaceChange) -> bool {
    let operated = change.operations.iter().map(|operation| match operation {
        FileOperation::Create { path, .. } | FileOperation::Delete { path } => path,
        FileOperation::Rename { from, .. } => from,
    });
    let mut changed = change.files.iter().map(|file| &file.path).chain(operated);
    let language = Language::of_path(path).map(family);
    changed.any(|changed| Language::of_path(changed).map(family) == language)
}

fn parsed(
    context: &ToolContext,
    files: &WorkspaceFiles,
    path: &Path,
) -> Option<(SourceFile, SyntaxTree)> {
    let file = SourceFile::load(files, &context.toolbox.symbols, path).ok()?;
    let tree = SyntaxTree::parse(Language::of_path(path)?, &file.source).ok()?;
    Some((file, tree))
}

impl ChangedParts {
    fn has(&self, path: &Path, range: &Range<usize>) -> bool {
        let mut parts = self.ranges.get(path).into_iter().flatten();
        parts.any(|part| part.start < range.end && range.start < part.end)
    }
}

/// Returns the line of an offset, counted from 1.
fn line_of(text: &[u8], offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    before.iter().fold(1, |line, byte| line + usize::from(*byte == b'\n'))
}

async fn meaning(context: &ToolContext, target: &Target, changed: &ChangedParts) -> Meaning {
    let found = ask(context, async |servers, query| servers.definition(query, target).await).await;
    let Semantics::Answered(found) = found else { return Meaning::Unknown };
    let is_changed = |location: &Location| match location {
        Location::Inside { path, range } => {
            changed.has(path, &(range.start.offset..range.end.offset.max(range.start.offset + 1)))
        }
        Location::Outside { .. } => false,
    };
    match found.value.list.as_slice() {
        [] => Meaning::Unknown,
        all if all.iter().any(is_changed) => Meaning::Renamed,
        _ => Meaning::Another,
    }
}

/// Returns the implementations of a method that its server knows; none if it cannot tell.
async fn implementations(context: &ToolContext, place: &Target) -> Places {
    let found = ask(context, async |servers, query| servers.implementations(query, place).await);
    match found.await {
        Semantics::Answered(found) => found
            .value
            .list
            .iter()
            .filter_map(|location| match location {
                Location::Inside { path, range } => Some((path.clone(), range.start.line)),
                Location::Outside { .. } => None,
            })
            .collect(),
        Semantics::Unanswered(_) => Places::new(),
    }
}

/// Returns the parts that a change replaces. A file that would have more syntax errors is refused.
fn changed_parts(
    files: &WorkspaceFiles,
    change: &WorkspaceChange,
) -> Result<ChangedParts, Failure> {
    let mut changed = ChangedParts::default();
    for edits in &change.files {
        let loaded = files.load(&edits.path)?;
        let new = edited(&loaded, edits)?;
        let old = String::from_utf8_lossy(&loaded.bytes);
        check_syntax(&edits.path, &old, &new)?;
        for edit in &edits.edits {
            let line = line_of(&loaded.bytes, edit.range.start);
            changed.lines.insert((edits.path.clone(), line));
            let parts = changed.ranges.entry(edits.path.clone()).or_default();
            parts.push(edit.range.clone());
        }
    }
    Ok(changed)
}

fn check_syntax(path: &Path, old: &str, new: &str) -> Result<(), Failure> {
    let errors = |text: &str| {
        let tree = Language::of_path(path).and_then(|one| SyntaxTree::parse(one, text).ok());
        tree.map_or(0, |tree| tree.errors().len())
    };
    if errors(new) <= errors(old) {
        return Ok(());
    }
    let name = shown(path);
    let message = format!("{name} would not parse with the new name; nothing was renamed");
    Err(Failure::new(Code::ReplacementInvalid, message).with("path", name))
}

/// Refuses a name that a symbol beside the renamed one has.
fn check_taken(
    view: &IndexView<'_>,
    definitions: &[Definition],
    new: &str,
    change: &WorkspaceChange,
) -> Result<(), Failure> {
    let is_changed = |path: &Path| change.files.iter().any(|file| file.path == path);
    let around = |one: &Definition| one.path.split_last().map(|(_, above)| above.to_vec());
    let taken = view.definitions_of_name(new).into_iter().find(|taken| {
        is_changed(&taken.file)
            && definitions
                .iter()
                .any(|one| around(one) == around(taken) && one.language == taken.language)
    });
    let Some(taken) = taken else { return Ok(()) };
    let place = format!("{}:{}", shown(&taken.file), taken.line);
    let message =
        format!("{new} is defined at {place} already; choose another name, or pass force");
    Err(Failure::new(Code::CodeEditNoMatch, message).with("path", shown(&taken.file)))
}

fn may_be_used(name: &str, reason: &str) -> Failure {
    let message = format!(
        "refusing to rename: {name} may be used where the index of symbols does not look: {reason}; call again \
         when it does, or pass force"
    );
    Failure::new(Code::SymbolInUse, message).with("complete", false)
}

fn refuse_if_any(places: &Places, what: &str) -> Result<(), Failure> {
    if places.is_empty() {
        return Ok(());
    }
    let named = places.iter().take(MAX_NAMED).map(|(path, line)| format!("{}:{line}", shown(path)));
    let named = named.collect::<Vec<_>>().join(", ");
    let rest = places.len().saturating_sub(MAX_NAMED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let message = format!(
        "refusing to rename: {what}: {named}{rest}; change these by Edit or code_edit afterwards, with \
         force for the rest, or dry_run to see it"
    );
    Err(Failure::new(Code::SymbolInUse, message).with("places", places.len()))
}

/// Definitions by their last name.
trait DefinitionsOfName {
    fn definitions_of_name(&self, name: &str) -> Vec<Definition>;
}

impl DefinitionsOfName for IndexView<'_> {
    fn definitions_of_name(&self, name: &str) -> Vec<Definition> {
        let found = NamePath::parse(name).map_or_else(Vec::new, |path| self.definitions(&path));
        found.into_iter().filter(|one| one.language.is_program()).collect()
    }
}
