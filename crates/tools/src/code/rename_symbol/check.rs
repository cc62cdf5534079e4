//! Checks of a rename that a language server has worked out, before anything is written.
//!
//! A server does not know code that its configuration leaves out, some leave re-exports and overrides as they are, and
//! some take any text for a name. The index of the workspace knows every use of a name in code, so what a rename
//! leaves over can be told from it:
//!
//! | found | refused because |
//! |---|---|
//! | the new name is defined beside the old one | two symbols would become one |
//! | a changed file has more syntax errors | the new name is a word of the language |
//! | a use in code of a name with one definition | it would name nothing afterwards |
//! | an implementation or override that keeps its name | it would no longer be one |
//!
//! `force` renames all the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use carrel_code::{Definition, IndexView, Language, NamePath, SyntaxTree};
use carrel_domain::{Code, Failure};
use carrel_lsp::{Location, Target, WorkspaceChange};

use super::edited;
use crate::code::question::{Question, column_of};
use crate::code::semantics::{self, Semantics, ask};
use crate::code::source_file::SourceFile;
use crate::code::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::tool_context::ToolContext;

/// Places that a refusal names.
const MAX_NAMED: usize = 8;

/// Uses that a server is asked about, one by one. A name that is used more often beside the renamed symbol is a word.
const MAX_ASKED: usize = 40;

/// A place in the workspace, by file and line.
type Places = BTreeSet<(PathBuf, usize)>;

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
        let changed = changed_places(&files, &change)?;
        let fresh = refresh(&own, workspace, cancel)?;
        check_taken(&fresh.view(), &definitions, &new, &change)?;
        let kept: Places = implementations.difference(&changed).cloned().collect();
        refuse_if_any(&kept, &format!("implementations or overrides of {name} keep their name"))?;
        let left = uses_left(&fresh.view(), &name, &changed);
        Ok((changed, targets(&own, &files, &name, left)))
    });
    let (changed, left) = looked_at.await?;
    let mut missed = Places::new();
    for (place, target) in left {
        if !means_another(context, &target, &changed).await {
            missed.insert(place);
        }
    }
    refuse_if_any(&missed, &format!("lines of code that the server does not change use {old}"))
}

/// Returns the lines of code with the old name that a change leaves as they are; none for a name of several
/// definitions, whose uses the index cannot tell apart.
fn uses_left(view: &IndexView<'_>, old: &str, changed: &Places) -> Places {
    if view.definitions_of_name(old).len() > 1 {
        return Places::new();
    }
    let uses = view.uses(old).into_iter().flat_map(|file| {
        let path = file.file;
        file.lines.into_iter().map(move |one| (path.clone(), one.line))
    });
    uses.filter(|place| !changed.contains(place)).collect()
}

/// Returns the places to ask a server about.
fn targets(
    context: &ToolContext,
    files: &WorkspaceFiles,
    name: &str,
    left: Places,
) -> Vec<((PathBuf, usize), Target)> {
    let target = |(path, line): (PathBuf, usize)| {
        let file = SourceFile::load(files, &context.toolbox.symbols, &path).ok()?;
        let text = file.lines().get(line - 1).copied()?.to_owned();
        let offset = file.offset_of(line, column_of(&text, name))?;
        Some(((path, line), semantics::target(&file, offset)))
    };
    left.into_iter().take(MAX_ASKED).filter_map(target).collect()
}

/// Tells whether a server knows that a use means another symbol: a parameter of the same name, for example.
async fn means_another(context: &ToolContext, target: &Target, changed: &Places) -> bool {
    let found = ask(context, async |servers, query| servers.definition(query, target).await).await;
    let Semantics::Answered(found) = found else { return false };
    let is_changed = |location: &Location| match location {
        Location::Inside { path, range } => changed.contains(&(path.clone(), range.start.line)),
        Location::Outside { .. } => false,
    };
    !found.value.list.is_empty() && !found.value.list.iter().any(is_changed)
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

/// Returns the lines that a change edits. A file that would have more syntax errors is refused.
fn changed_places(files: &WorkspaceFiles, change: &WorkspaceChange) -> Result<Places, Failure> {
    let mut places = Places::new();
    for edits in &change.files {
        let loaded = files.load(&edits.path)?;
        let new = edited(&loaded, edits)?;
        let old = String::from_utf8_lossy(&loaded.bytes);
        check_syntax(&edits.path, &old, &new)?;
        for edit in &edits.edits {
            let before = old.as_bytes().get(..edit.range.start).unwrap_or_default();
            let line = before.iter().fold(1, |line, byte| line + usize::from(*byte == b'\n'));
            places.insert((edits.path.clone(), line));
        }
    }
    Ok(places)
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
