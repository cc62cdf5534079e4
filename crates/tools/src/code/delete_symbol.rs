//! The tool `delete_symbol`.

use carrel_code::{FileUses, ParsedSource};
use carrel_domain::{Code, Failure, ToolGroup};
use schemars::JsonSchema;
use serde::Deserialize;

use super::symbol_edit::{EditFacts, Place, SymbolEdit, target};
use super::symbol_indexes::refresh;
use super::symbol_query::SymbolQuery;
use super::unindexed::unseen_uses;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::tool::{About, CallRules, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;

/// The uses that a refusal names.
const MAX_NAMED_USES: usize = 10;

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
        let files = WorkspaceFiles::of(&own);
        if let Some(reason) = unseen_uses(&files, &fresh, query.name(), cancel)? {
            return Err(may_be_in_use(&symbol, &reason));
        }
        let mut uses = fresh.view().uses(query.name());
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

fn may_be_in_use(symbol: &str, reason: &str) -> Failure {
    let message = format!(
        "{symbol} may be used where the index of symbols does not look: {reason}; call again when it does, or pass \
         force"
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
