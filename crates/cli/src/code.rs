//! `carrel code`: code intelligence for people, through the same tools that agents call.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use console::Style;
use serde_json::{Map, Value, json};

use crate::arguments::ToolboxArguments;
use crate::error::Result;
use crate::output::{self, Format, Invocation};
use crate::tool;

#[derive(Debug, Subcommand)]
pub(crate) enum CodeCommand {
    /// Print the symbols of a file, or those of each file of a directory
    Outline {
        /// The file or directory; the workspace if none is given
        path: Option<String>,
        #[command(flatten)]
        limited: LimitedArguments,
    },
    /// Print the source of a symbol
    Read {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        limited: LimitedArguments,
    },
    /// Print the definitions of a symbol
    Def {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Print the uses of a symbol, by file
    Refs {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        limited: LimitedArguments,
    },
    /// Print the implementations of an interface, trait or abstract method
    Impls {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Print the type and documentation of a symbol
    Hover {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Print the problems of a file or directory
    Diag {
        /// The file or directory; the workspace if none is given
        path: Option<String>,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Rename a symbol in all files, by a language server
    Rename {
        #[command(flatten)]
        symbol: SymbolArguments,
        /// The new name
        new_name: String,
        /// Only print what would change
        #[arg(long)]
        dry_run: bool,
        /// Rename although the language server does not know everything
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        limited: LimitedArguments,
    },
    /// Find code by its structure: `$A.unwrap_or($B)`
    Scan {
        /// Source text with `$A` for one node and `$$$A` for any number of them
        pattern: String,
        /// The file or directory; the workspace if none is given
        path: Option<String>,
        /// Replace each match by this text, with the same variables
        #[arg(long, value_name = "TEXT")]
        replace: Option<String>,
        /// Only print what `--replace` would change
        #[arg(long, requires = "replace")]
        dry_run: bool,
        /// Only files of this language
        #[arg(long)]
        language: Option<String>,
        #[command(flatten)]
        limited: LimitedArguments,
    },
    /// Search for symbols by words of their names, comments and bodies
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
        /// Only symbols of this kind, such as function or class
        #[arg(long)]
        kind: Option<String>,
        /// Only below this directory, or in this file
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Maximum number of hits
        #[arg(long, default_value_t = 10)]
        limit: usize,
        #[command(flatten)]
        toolbox: ToolboxArguments,
    },
    /// Print the most used symbols, of the repository or around files
    Map {
        /// Files or directories whose neighbourhood is wanted
        files: Vec<String>,
        #[command(flatten)]
        limited: LimitedArguments,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SymbolArguments {
    /// The name or a path such as `Type::method`, or a place: `FILE:LINE:COLUMN`
    symbol: String,
    /// Only in this file or directory
    #[arg(long = "in", value_name = "PATH")]
    below: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct LimitedArguments {
    /// Most bytes of the answer: 1000 to 102400
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    #[command(flatten)]
    toolbox: ToolboxArguments,
}

pub(crate) fn run(command: &CodeCommand, cli: &Invocation) -> Result<ExitCode> {
    let ToolCall { name, mut arguments, limit, toolbox } = call_of(command);
    if let Some(bytes) = limit {
        arguments.insert("max_bytes".into(), bytes.into());
    }
    let called = tool::call(name, arguments, toolbox, cli);
    let answer = crate::runtime()?.block_on(called)?;
    if answer.is_error || cli.format == Format::Json || !console::colors_enabled() {
        return tool::print(&answer, cli.format);
    }
    output::write(coloured(&answer.text()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The call of a tool that a command stands for.
struct ToolCall<'a> {
    name: &'static str,
    arguments: Map<String, Value>,
    /// Most bytes of the answer, of tools that can be told.
    limit: Option<u64>,
    toolbox: &'a ToolboxArguments,
}

/// Returns the tool of a command and its arguments.
fn call_of(command: &CodeCommand) -> ToolCall<'_> {
    match command {
        CodeCommand::Outline { path, limited } => limited.call("outline", json!({ "path": path })),
        CodeCommand::Read { symbol, limited } => limited
            .call("read_symbol", json!({ "symbol": symbol.symbol, "file_path": symbol.below })),
        CodeCommand::Def { symbol, toolbox } => call("find_definition", symbol.target(), toolbox),
        CodeCommand::Refs { symbol, limited } => limited.call("find_references", symbol.target()),
        CodeCommand::Search { words, kind, path, limit, toolbox } => {
            let query = words.join(" ");
            let arguments = json!({ "query": query, "kind": kind, "path": path, "limit": limit });
            call("search_code", arguments, toolbox)
        }
        CodeCommand::Impls { symbol, toolbox } => {
            call("find_implementations", symbol.target(), toolbox)
        }
        CodeCommand::Hover { symbol, toolbox } => call("hover", symbol.target(), toolbox),
        CodeCommand::Diag { path, toolbox } => {
            call("diagnostics", json!({ "path": path }), toolbox)
        }
        CodeCommand::Rename { symbol, new_name, dry_run, force, limited } => {
            let mut arguments = symbol.target();
            arguments["new_name"] = json!(new_name);
            arguments["dry_run"] = json!(dry_run);
            arguments["force"] = json!(force);
            limited.call("rename_symbol", arguments)
        }
        CodeCommand::Scan { pattern, path, replace: None, language, limited, .. } => {
            let arguments = json!({ "pattern": pattern, "path": path, "language": language });
            limited.call("code_scan", arguments)
        }
        CodeCommand::Scan { pattern, path, replace: Some(new), dry_run, language, limited } => {
            let edit = json!({ "op": "replace", "rule": pattern, "replacement": new });
            let path = path.as_deref().unwrap_or(".");
            let arguments =
                json!({ "path": path, "edits": [edit], "dry_run": dry_run, "language": language });
            limited.call("code_edit", arguments)
        }
        CodeCommand::Map { files, limited } => limited.call("repo_map", json!({ "files": files })),
    }
}

fn call<'a>(name: &'static str, arguments: Value, toolbox: &'a ToolboxArguments) -> ToolCall<'a> {
    let Value::Object(mut arguments) = arguments else { unreachable!("all are objects") };
    arguments.retain(|_, value| !value.is_null());
    ToolCall { name, arguments, limit: None, toolbox }
}

impl LimitedArguments {
    fn call(&self, name: &'static str, arguments: Value) -> ToolCall<'_> {
        ToolCall { limit: self.max_bytes, ..call(name, arguments, &self.toolbox) }
    }
}

impl SymbolArguments {
    fn target(&self) -> Value {
        match self.place() {
            Some((file, line, col)) => json!({ "file_path": file, "line": line, "col": col }),
            None => json!({ "symbol": self.symbol, "file_path": self.below }),
        }
    }

    /// Splits `FILE:LINE:COLUMN`.
    fn place(&self) -> Option<(&str, u64, u64)> {
        let (rest, col) = self.symbol.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        Some((file, line.parse().ok()?, col.parse().ok()?))
    }
}

/// Returns an answer with colours: file names, and the numbers of lines.
fn coloured(text: &str) -> String {
    let (file, number, note) = (Style::new().magenta(), Style::new().green(), Style::new().dim());
    let line = |line: &str| {
        let body = line.trim_start();
        let indent = &line[..line.len() - body.len()];
        let digits = body.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(body.len());
        let (start, rest) = body.split_at(digits);
        let is_numbered = !start.is_empty() && rest.starts_with([' ', '\t']);
        match body {
            _ if body.starts_with('[') => format!("{indent}{}", note.apply_to(body)),
            _ if is_numbered => format!("{indent}{}{rest}", number.apply_to(start)),
            _ if indent.is_empty() && !body.contains(' ') => file.apply_to(body).to_string(),
            _ => line.to_owned(),
        }
    };
    text.lines().map(|one| line(one) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_place_is_a_file_a_line_and_a_column() {
        let target = |symbol: &str| SymbolArguments { symbol: symbol.into(), below: None }.target();
        assert_eq!(target("a/b.py:3:7"), json!({ "file_path": "a/b.py", "line": 3, "col": 7 }));
        assert_eq!(target("Type::method"), json!({ "symbol": "Type::method", "file_path": null }));
        assert_eq!(target("a::3"), json!({ "symbol": "a::3", "file_path": null }));
    }
}
