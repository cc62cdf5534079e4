//! The tool `delete_symbol`.

use std::path::PathBuf;

use carrel_code::{FileUses, ParsedSource, SkipReason};
use carrel_domain::{Code, Failure, ToolGroup};
use carrel_search::{Cancel, GrepRequest, Scope, Syntax};
use schemars::JsonSchema;
use serde::Deserialize;

use super::symbol_edit::{EditFacts, Place, SymbolEdit, target};
use super::symbol_indexes::refresh;
use super::symbol_query::SymbolQuery;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::tool::{About, CallRules, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;

/// The uses that a refusal names.
const MAX_NAMED_USES: usize = 10;

/// The files without a syntax tree that are searched for the name.
const MAX_SKIPPED: usize = 500;

pub(super) struct DeleteSymbol;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(flatten)]
    place: Place,
    /// The name, or a path of names such as `Type::method`.
    #[schemars(extend("x-brief" = ""))]
    symbol: String,
    /// Delete it although its name is used elsewhere.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    force: bool,
}

impl Tool for DeleteSymbol {
    type Input = Input;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "delete_symbol",
        title: "Delete a symbol",
        group: ToolGroup::Code,
        in_default_set: false,
        rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
        description: "Deletes a definition with its comments. Refused while its name is used \
            elsewhere.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<EditFacts> {
        let Input { place, symbol, force } = input;
        if !force {
            check_unused(context, &symbol, &place).await?;
        }
        let (name, line) = (symbol.clone(), place.line);
        let operation =
            move |source: &ParsedSource<'_>| source.delete_symbol(&target(&name, line)?);
        let (tool, text) = (Self::ABOUT.name, String::new());
        SymbolEdit { tool, symbol, place, text, operation }.run(context).await
    }
}

/// Refuses a symbol whose name is used outside of its definitions.
async fn check_unused(context: &ToolContext, symbol: &str, place: &Place) -> Result<(), Failure> {
    let (own, symbol) = (context.clone(), symbol.to_owned());
    let (file_path, line) = (place.file_path.clone(), place.line);
    run_cancellable(context, move |workspace, cancel| {
        let query = SymbolQuery::new(workspace, &symbol, file_path.as_deref(), line)?;
        let fresh = refresh(&own, workspace, cancel)?;
        let found = query.find(&fresh)?;
        if let Some(unread) = fresh.unread() {
            return Err(may_be_in_use(&symbol, &unread));
        }
        let files = WorkspaceFiles::of(&own);
        let (mut uses, skipped) = {
            let view = fresh.view();
            (view.uses(query.name()), view.skipped())
        };
        check_skipped(&files, (&symbol, query.name()), &skipped, cancel)?;
        for file in &mut uses {
            let inside = |line: usize| {
                let mut here = found.iter().filter(|one| one.file == file.file);
                here.any(|one| (one.lines.0..=one.lines.1).contains(&line))
            };
            file.lines.retain(|one| !one.is_definition && !inside(one.line));
        }
        uses.retain(|file| !file.lines.is_empty());
        if uses.is_empty() { Ok(()) } else { Err(in_use(&symbol, &uses)) }
    })
    .await
}

/// Refuses a symbol whose name is in a file that the index leaves out.
fn check_skipped(
    files: &WorkspaceFiles,
    (symbol, name): (&str, &str),
    skipped: &[(PathBuf, SkipReason)],
    cancel: &Cancel,
) -> Result<(), Failure> {
    if skipped.len() > MAX_SKIPPED {
        let reason = format!("{} files have no syntax tree", skipped.len());
        return Err(may_be_in_use(symbol, &reason));
    }
    let request =
        GrepRequest { syntax: Syntax::Literal, whole_word: true, ..GrepRequest::new(name) };
    for (path, reason) in skipped {
        let found = carrel_search::grep(&Scope::at(files.root(), path), &request, cancel);
        let report = match found {
            Err(carrel_search::Error::Cancelled) => {
                return Err(Failure::new(Code::Cancelled, "the call was cancelled"));
            }
            found => found.ok(),
        };
        let is_without = report.is_some_and(|report| {
            let is_whole = report.truncation.is_none() && report.unreadable.total == 0;
            is_whole && report.files.is_empty() && report.binary_matches == 0
        });
        if !is_without {
            let reason = format!("{} ({}) has the word", shown(path), reason.as_str());
            return Err(may_be_in_use(symbol, &reason));
        }
    }
    Ok(())
}

fn may_be_in_use(symbol: &str, reason: &str) -> Failure {
    let message = format!(
        "{symbol} may be used where the index does not look: {reason}; call again when the index is complete, or \
         pass force"
    );
    Failure::new(Code::SymbolInUse, message).with("symbol", symbol).with("complete", false)
}

fn in_use(symbol: &str, uses: &[FileUses]) -> Failure {
    let places = uses.iter().flat_map(|file| {
        let path = shown(&file.file);
        file.lines.iter().map(move |one| format!("{path}:{}", one.line))
    });
    let places: Vec<_> = places.collect();
    let named = places.iter().take(MAX_NAMED_USES).cloned().collect::<Vec<_>>().join(", ");
    let rest = places.len().saturating_sub(MAX_NAMED_USES);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let message = format!(
        "{symbol} is used at {named}{rest}; remove the uses, or pass force if they mean another one"
    );
    Failure::new(Code::SymbolInUse, message).with("symbol", symbol).with("uses", places.len())
}
