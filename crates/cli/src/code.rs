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
        common: CommonArguments,
    },
    /// Print the source of a symbol
    Read {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Print the definitions of a symbol
    Def {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Print the uses of a symbol, by file
    Refs {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Print the implementations of an interface, trait or abstract method
    Impls {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Print the type and documentation of a symbol
    Hover {
        #[command(flatten)]
        symbol: SymbolArguments,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Print the problems of a file or directory
    Diag {
        /// The file or directory; the workspace if none is given
        path: Option<String>,
        #[command(flatten)]
        common: CommonArguments,
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
        common: CommonArguments,
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
        common: CommonArguments,
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
        common: CommonArguments,
    },
    /// Print the most used symbols, of the repository or around files
    Map {
        /// Files or directories whose neighbourhood is wanted
        files: Vec<String>,
        #[command(flatten)]
        common: CommonArguments,
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
pub(crate) struct CommonArguments {
    /// Most bytes of the answer: 1000 to 102400
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    #[command(flatten)]
    toolbox: ToolboxArguments,
}

pub(crate) fn run(command: &CodeCommand, cli: &Invocation) -> Result<ExitCode> {
    let (name, mut arguments, common) = call_of(command);
    if let Some(bytes) = common.max_bytes {
        arguments.insert("max_bytes".into(), bytes.into());
    }
    let called = tool::call(name, arguments, &common.toolbox, cli);
    let answer = crate::runtime()?.block_on(called)?;
    if answer.is_error || cli.format == Format::Json || !console::colors_enabled() {
        return tool::print(&answer, cli.format);
    }
    output::write(coloured(&answer.text()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the tool of a command and its arguments.
fn call_of(command: &CodeCommand) -> (&'static str, Map<String, Value>, &CommonArguments) {
    let (name, arguments, common) = match command {
        CodeCommand::Outline { path, common } => ("outline", json!({ "path": path }), common),
        CodeCommand::Read { symbol, common } => {
            ("read_symbol", json!({ "symbol": symbol.symbol, "file_path": symbol.below }), common)
        }
        CodeCommand::Def { symbol, common } => ("find_definition", symbol.target(), common),
        CodeCommand::Refs { symbol, common } => ("find_references", symbol.target(), common),
        CodeCommand::Search { words, kind, path, limit, common } => {
            let query = words.join(" ");
            let arguments = json!({ "query": query, "kind": kind, "path": path, "limit": limit });
            ("search_code", arguments, common)
        }
        CodeCommand::Impls { symbol, common } => ("find_implementations", symbol.target(), common),
        CodeCommand::Hover { symbol, common } => ("hover", symbol.target(), common),
        CodeCommand::Diag { path, common } => ("diagnostics", json!({ "path": path }), common),
        CodeCommand::Rename { symbol, new_name, dry_run, force, common } => {
            let mut arguments = symbol.target();
            arguments["new_name"] = json!(new_name);
            arguments["dry_run"] = json!(dry_run);
            arguments["force"] = json!(force);
            ("rename_symbol", arguments, common)
        }
        CodeCommand::Scan { pattern, path, replace: None, language, common, .. } => {
            let arguments = json!({ "pattern": pattern, "path": path, "language": language });
            ("code_scan", arguments, common)
        }
        CodeCommand::Scan { pattern, path, replace: Some(new), dry_run, language, common } => {
            let edit = json!({ "op": "replace", "rule": pattern, "replacement": new });
            let path = path.as_deref().unwrap_or(".");
            let arguments =
                json!({ "path": path, "edits": [edit], "dry_run": dry_run, "language": language });
            ("code_edit", arguments, common)
        }
        CodeCommand::Map { files, common } => ("repo_map", json!({ "files": files }), common),
    };
    let Value::Object(mut arguments) = arguments else { unreachable!("all are objects") };
    arguments.retain(|_, value| !value.is_null());
    (name, arguments, common)
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
