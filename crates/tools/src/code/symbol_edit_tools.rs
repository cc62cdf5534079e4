//! The tools that change a file by symbol.

use carrel_code::{LeadingComments, Side};
use carrel_domain::ToolGroup;
use schemars::JsonSchema;
use serde::Deserialize;

use super::signature_calls;
use super::symbol_edit::{EditFacts, Place, SymbolEdit, line_number, target};
use crate::tool::{About, CallRules, Tool, ToolResult, TrustMode};
use crate::tool_context::ToolContext;

/// What the tools have in common.
const SYMBOL_EDIT: About = About {
    group: ToolGroup::Code,
    in_default_set: false,
    rules: CallRules { trust: TrustMode::BeforeWrite, ..CallRules::WRITE },
    ..About::WRITE
};

pub(super) struct EditFunctionBody;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BodyInput {
    #[serde(flatten)]
    place: Place,
    /// The function, such as `run`, `Type::method` or `(*T).Method`.
    #[schemars(extend("x-brief" = ""))]
    function_name: String,
    /// The new body without its braces; any indentation.
    #[schemars(extend("x-brief" = "without braces"))]
    new_body: String,
}

impl Tool for EditFunctionBody {
    type Input = BodyInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "edit_function_body",
        title: "Replace the body of a function",
        description: "Replaces the body of a function; its head and comments stay.",
        ..SYMBOL_EDIT
    };

    async fn call(context: &ToolContext, input: BodyInput) -> ToolResult<EditFacts> {
        let BodyInput { place, function_name: symbol, new_body: text } = input;
        let (name, body, line) = (symbol.clone(), text.clone(), place.line);
        let operation = move |source: &carrel_code::ParsedSource<'_>| {
            source.replace_body(&target(&name, line)?, &on_own_lines(&body))
        };
        SymbolEdit { tool: Self::ABOUT.name, symbol, place, text, operation }.run(context).await
    }
}

/// Returns a body that stands on lines of its own between braces. Other delimiters have lines anyway.
fn on_own_lines(body: &str) -> String {
    if body.trim().is_empty() || body.starts_with(['\n', '\r']) {
        return body.to_owned();
    }
    format!("\n{}\n", body.trim_end())
}

pub(super) struct ChangeFunctionSignature;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SignatureInput {
    #[serde(flatten)]
    place: Place,
    /// The function, such as `run`, `Type::method` or `(*T).Method`.
    #[schemars(extend("x-brief" = ""))]
    function_name: String,
    /// The new head, up to the body.
    #[schemars(extend("x-brief" = "the head up to the body"))]
    new_signature: String,
}

impl Tool for ChangeFunctionSignature {
    type Input = SignatureInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "change_function_signature",
        title: "Replace the head of a function",
        description: "Replaces the head of a function and lists the calls that no longer fit; \
            comments, decorators and the body stay.",
        ..SYMBOL_EDIT
    };

    async fn call(context: &ToolContext, input: SignatureInput) -> ToolResult<EditFacts> {
        let SignatureInput { place, function_name: symbol, new_signature: text } = input;
        let (name, signature, line) = (symbol.clone(), text.clone(), place.line);
        let operation = move |source: &carrel_code::ParsedSource<'_>| {
            source.replace_signature(&target(&name, line)?, &signature)
        };
        let edit = SymbolEdit { tool: Self::ABOUT.name, symbol, place, text, operation };
        let mut reply = edit.run(context).await?;
        signature_calls::add(context, &mut reply).await?;
        Ok(reply)
    }
}

pub(super) struct InsertAfterMethod;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MethodInput {
    #[serde(flatten)]
    place: Place,
    /// The type.
    #[schemars(extend("x-brief" = ""))]
    receiver_type: String,
    /// The method of it, below which the new one comes.
    #[schemars(extend("x-brief" = ""))]
    method_name: String,
    /// The new method.
    #[schemars(extend("x-brief" = ""))]
    new_method: String,
}

impl Tool for InsertAfterMethod {
    type Input = MethodInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "insert_after_method",
        title: "Insert a method",
        description: "Inserts a method below another one of the same type.",
        ..SYMBOL_EDIT
    };

    async fn call(context: &ToolContext, input: MethodInput) -> ToolResult<EditFacts> {
        let MethodInput { place, receiver_type, method_name, new_method: text } = input;
        let symbol = format!("{receiver_type}.{method_name}");
        let (method, line) = (text.clone(), line_number(place.line));
        let operation = move |source: &carrel_code::ParsedSource<'_>| {
            source.insert_after_method(&receiver_type, &method_name, line, &method)
        };
        SymbolEdit { tool: Self::ABOUT.name, symbol, place, text, operation }.run(context).await
    }
}

/// A symbol and a text for its place or beside it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TextInput {
    #[serde(flatten)]
    place: Place,
    /// The name, or a path of names such as `Type::method`.
    #[schemars(extend("x-brief" = ""))]
    symbol: String,
    /// The new text; any indentation.
    #[schemars(extend("x-brief" = ""))]
    new_text: String,
}

pub(super) struct ReplaceSymbol;

impl Tool for ReplaceSymbol {
    type Input = TextInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "replace_symbol",
        title: "Replace a symbol",
        description: "Replaces a whole definition; the comments above it stay unless new_text \
            begins with some.",
        ..SYMBOL_EDIT
    };

    async fn call(context: &ToolContext, input: TextInput) -> ToolResult<EditFacts> {
        let TextInput { place, symbol, new_text: text } = input;
        let (name, new, line) = (symbol.clone(), text.clone(), place.line);
        let comments = if begins_with_comment(&new) {
            LeadingComments::Replace
        } else {
            LeadingComments::Keep
        };
        let operation = move |source: &carrel_code::ParsedSource<'_>| {
            source.replace_symbol(&target(&name, line)?, &new, comments)
        };
        SymbolEdit { tool: Self::ABOUT.name, symbol, place, text, operation }.run(context).await
    }
}

fn begins_with_comment(text: &str) -> bool {
    ["//", "/*", "#", "--", "<!--", "\"\"\""].iter().any(|mark| text.trim_start().starts_with(mark))
}

pub(super) struct InsertBeforeSymbol;

impl Tool for InsertBeforeSymbol {
    type Input = TextInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "insert_before_symbol",
        title: "Insert before a symbol",
        description: "Inserts text above a definition and its comments, at its indentation.",
        ..SYMBOL_EDIT
    };

    async fn call(context: &ToolContext, input: TextInput) -> ToolResult<EditFacts> {
        insert(context, Self::ABOUT.name, input, Side::Before).await
    }
}

pub(super) struct InsertAfterSymbol;

impl Tool for InsertAfterSymbol {
    type Input = TextInput;
    type Facts = EditFacts;

    const ABOUT: About = About {
        name: "insert_after_symbol",
        title: "Insert after a symbol",
        description: "Inserts text below a definition, at its indentation.",
        ..SYMBOL_EDIT
    };

    async fn call(context: &ToolContext, input: TextInput) -> ToolResult<EditFacts> {
        insert(context, Self::ABOUT.name, input, Side::After).await
    }
}

async fn insert(
    context: &ToolContext,
    tool: &'static str,
    input: TextInput,
    side: Side,
) -> ToolResult<EditFacts> {
    let TextInput { place, symbol, new_text: text } = input;
    let (name, new, line) = (symbol.clone(), text.clone(), place.line);
    let operation = move |source: &carrel_code::ParsedSource<'_>| {
        source.insert(&target(&name, line)?, side, &new)
    };
    SymbolEdit { tool, symbol, place, text, operation }.run(context).await
}
