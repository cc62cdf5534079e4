//! The calls of a function whose head was changed, and those of them that no longer fit.
//!
//! Arguments are counted in the syntax trees of the files that use the name (`carrel_code::call_sites`). In languages
//! whose calls are not known there, and for decorated functions, all uses are listed.

use std::collections::BTreeMap;

use carrel_code::{CallFit, FileUses, Language, NamePath, Parameters, SyntaxTree, call_sites};
use carrel_domain::Failure;
use schemars::JsonSchema;
use serde::Serialize;

use super::source_file::SourceFile;
use super::symbol_edit::EditFacts;
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::response::{Reply, ToolContent};
use crate::text::line;
use crate::tool_context::ToolContext;

/// The places that a reply names, of each kind.
const MAX_NAMED: usize = 10;

/// The files whose calls are looked at. Uses in further files are listed as unknown.
const MAX_FILES: usize = 1_000;

/// The uses of a function whose head was changed.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(super) struct CallFacts {
    /// Calls with a number of arguments that the new head does not take, as `path:line`.
    misfits: Vec<String>,
    /// Uses of which that cannot be told: keywords, spread arguments, and uses that are no calls.
    unknown: Vec<String>,
    /// Calls that fit.
    fitting: usize,
    /// False if the arguments of this function cannot be counted; all uses are unknown then.
    counted: bool,
    /// The part of the workspace that was not looked at.
    missing: Option<String>,
}

/// The function whose head was changed.
struct Function {
    language: Language,
    name: String,
    /// The type around it.
    container: Option<String>,
    parameters: Option<Parameters>,
}

/// Adds the calls that no longer fit to the reply of a changed head.
pub(super) async fn add(
    context: &ToolContext,
    reply: &mut Reply<EditFacts>,
) -> Result<(), Failure> {
    let Some(path) = reply.facts.symbols.first().and_then(|path| NamePath::parse(path)) else {
        return Ok(());
    };
    let (file, at) = (reply.facts.change.path.clone(), reply.facts.first_line);
    let (own, name) = (context.clone(), path.last().to_owned());
    let found = run_cancellable(context, move |workspace, cancel| {
        let files = WorkspaceFiles::of(&own);
        let symbol = path.to_string();
        let function = function(&own, &files, (&file, &symbol, at))?;
        let fresh = refresh(&own, workspace, cancel)?;
        let (uses, definitions) = {
            let view = fresh.view();
            let all = NamePath::parse(&function.name);
            (view.uses(&function.name), all.map_or(0, |all| view.definitions(&all).len()))
        };
        let mut facts = CallFacts {
            counted: function.parameters.is_some(),
            missing: fresh.missing(),
            ..CallFacts::default()
        };
        for (number, file) in uses.iter().enumerate() {
            facts.add_file(&own, &files, (number < MAX_FILES).then_some(&function), file);
        }
        Ok((facts, definitions))
    });
    let (facts, definitions) = found.await?;
    if let Some(ToolContent::Text(text)) = reply.content.first_mut() {
        facts.show(text);
        if definitions > 1 {
            line(
                text,
                &format!("[{name} has {definitions} definitions; a use may mean another one]"),
            );
        }
    }
    reply.facts.calls = Some(facts);
    Ok(())
}

/// Returns the function as it is now.
fn function(
    context: &ToolContext,
    files: &WorkspaceFiles,
    (path, symbol, at): (&str, &str, usize),
) -> Result<Function, Failure> {
    let path = files.workspace.relative(path);
    let file = SourceFile::load(files, &context.toolbox.symbols, &path)?;
    let language =
        Language::of_path(&path).ok_or_else(|| super::source_file::unsupported(&file.shown))?;
    let same = file.definitions.iter().filter(|one| one.path.join("::") == symbol);
    let definition = same.min_by_key(|one| one.line.abs_diff(at));
    let mut names = symbol.rsplit("::");
    let name = names.next().unwrap_or(symbol).to_owned();
    let container = names.next().map(str::to_owned);
    let parameters = definition.and_then(|definition| {
        let tree = SyntaxTree::parse(language, &file.source).ok()?;
        Parameters::of_function(&tree, &file.source, &name, definition.line)
    });
    Ok(Function { language, name, container, parameters })
}

impl CallFacts {
    /// Sorts the uses of a file; all are unknown without a function.
    fn add_file(
        &mut self,
        context: &ToolContext,
        files: &WorkspaceFiles,
        function: Option<&Function>,
        uses: &FileUses,
    ) {
        let path = shown(&uses.file);
        let sites = function.and_then(|function| sites(context, files, function, uses));
        let lines = sites.unwrap_or_else(|| {
            let others = uses.lines.iter().filter(|one| !one.is_definition);
            others.map(|one| (one.line, CallFit::Unknown)).collect()
        });
        for (at, fit) in lines {
            match fit {
                CallFit::Fits => self.fitting += 1,
                CallFit::Misfits => self.misfits.push(format!("{path}:{at}")),
                CallFit::Unknown => self.unknown.push(format!("{path}:{at}")),
            }
        }
    }

    fn show(&self, text: &mut String) {
        let count = self.misfits.len() + self.unknown.len() + self.fitting;
        if count == 0 {
            line(
                text,
                match self.missing {
                    Some(_) => "no other line of the index has its name",
                    None => "no other line has its name",
                },
            );
        }
        if !self.counted && count > 0 {
            line(text, &format!("used at {} (arguments were not counted)", named(&self.unknown)));
        } else {
            if !self.misfits.is_empty() {
                let count = self.misfits.len();
                line(text, &format!("{count} call(s) no longer fit: {}", named(&self.misfits)));
            }
            if !self.unknown.is_empty() {
                let unknown = named(&self.unknown);
                line(
                    text,
                    &format!("cannot be told (keywords, spread arguments, no call): {unknown}"),
                );
            }
            if self.fitting > 0 {
                line(text, &format!("{} call(s) fit", self.fitting));
            }
        }
        if let Some(missing) = &self.missing {
            line(text, &format!("[incomplete: {missing}]"));
        }
    }
}

/// Returns the lines of a file that use a function, each once with the worst of its uses. None if they cannot be told.
fn sites(
    context: &ToolContext,
    files: &WorkspaceFiles,
    function: &Function,
    uses: &FileUses,
) -> Option<BTreeMap<usize, CallFit>> {
    let parameters = function.parameters.as_ref()?;
    let language = Language::of_path(&uses.file)?;
    if family(language) != family(function.language) {
        return None;
    }
    let file = SourceFile::load(files, &context.toolbox.symbols, &uses.file).ok()?;
    let tree = SyntaxTree::parse(language, &file.source).ok()?;
    let names = (function.name.as_str(), function.container.as_deref());
    let mut lines = BTreeMap::new();
    for site in call_sites(&tree, &file.source, names, parameters) {
        let worst = lines.entry(site.line).or_insert(site.fit);
        let rank = |fit: CallFit| match fit {
            CallFit::Fits => 0,
            CallFit::Unknown => 1,
            CallFit::Misfits => 2,
        };
        if rank(site.fit) > rank(*worst) {
            *worst = site.fit;
        }
    }
    Some(lines)
}

/// Returns the language that stands for a family of languages that call each other.
pub(super) fn family(language: Language) -> Language {
    match language {
        Language::JavaScript | Language::Tsx => Language::TypeScript,
        Language::Cpp => Language::C,
        other => other,
    }
}

fn named(places: &[String]) -> String {
    let first = places.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match places.len().saturating_sub(MAX_NAMED) {
        0 => first,
        rest => format!("{first} and {rest} more; find_references has them"),
    }
}
