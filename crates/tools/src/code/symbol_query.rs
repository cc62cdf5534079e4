//! The symbol that a call names: by its name path, or by its place in a file.
//!
//! A name path may begin with modules, as in `click.utils.echo`, and may leave out all but its last name. If it
//! fits several definitions, those with a body count before declarations and blocks of methods; if there are
//! still several, the caller chooses by the file or the line.

use std::path::{Path, PathBuf};

use carrel_code::{Definition, IndexView, NamePath, SymbolKind};
use carrel_domain::{Code, Failure};
use serde_json::json;

use super::symbol_indexes::FreshIndex;
use crate::named_workspace::NamedWorkspace;

/// The definitions that a refusal lists.
const MAX_CANDIDATES: usize = 20;

/// The longest name path.
const MAX_PATH_BYTES: usize = 500;

/// A symbol by its name path, in the whole workspace or a part of it.
#[derive(Debug)]
pub(super) struct SymbolQuery {
    path: NamePath,
    /// A file or directory; empty for the workspace.
    below: PathBuf,
    line: Option<usize>,
}

impl SymbolQuery {
    pub(super) fn new(
        workspace: &NamedWorkspace,
        symbol: &str,
        file_path: Option<&str>,
        line: Option<u64>,
    ) -> Result<Self, Failure> {
        let path = Some(symbol).filter(|symbol| symbol.len() <= MAX_PATH_BYTES);
        let path = path.and_then(NamePath::parse).ok_or_else(|| {
            Failure::argument(
                "symbol",
                "symbol is a name such as `Type::method` or `module.function`",
            )
        })?;
        let below = workspace.relative_or_top(file_path);
        let line = line.map(|line| usize::try_from(line).unwrap_or(usize::MAX));
        Ok(Self { path, below, line })
    }

    /// Returns the last name.
    pub(super) fn name(&self) -> &str {
        self.path.last()
    }

    /// Returns the definitions that fit, the likely ones alone if some are likelier. A refusal says what the index
    /// does not have.
    pub(super) fn find(&self, fresh: &FreshIndex) -> Result<Vec<Definition>, Failure> {
        let missing = fresh.missing();
        self.find_in(&fresh.view(), missing.as_deref())
    }

    fn find_in(
        &self,
        view: &IndexView<'_>,
        missing: Option<&str>,
    ) -> Result<Vec<Definition>, Failure> {
        let mut found = view.definitions(&self.path);
        found.retain(|definition| definition.file.starts_with(&self.below));
        if let Some(line) = self.line {
            let (first, last) = (|one: &Definition| one.lines.0, |one: &Definition| one.lines.1);
            found.retain(|definition| (first(definition)..=last(definition)).contains(&line));
        }
        if found.is_empty() {
            return Err(self.not_found(view, missing));
        }
        Ok(likeliest(found))
    }

    /// Returns the refusal that lists the definitions among which the caller has to choose.
    pub(super) fn ambiguous(&self, found: &[Definition]) -> Failure {
        ambiguous(&self.path.to_string(), found)
    }

    fn not_found(&self, view: &IndexView<'_>, missing: Option<&str>) -> Failure {
        let name = self.path.to_string();
        let elsewhere = view.definitions(&self.path);
        let message = if elsewhere.is_empty() {
            not_defined(&name, view, self.path.last(), missing)
        } else {
            let place = place_of(&self.below, self.line);
            let first = &elsewhere[0];
            format!("{name} is not defined {place}, but in {}:{}", first.file.display(), first.line)
        };
        let near = view.near(self.path.last());
        let detail = json!({ "symbol": name, "near": near, "complete": missing.is_none() });
        Failure { code: Code::SymbolNotFound, message, detail }
    }
}

/// Returns the refusal that lists the definitions of a symbol.
pub(super) fn ambiguous(symbol: &str, found: &[Definition]) -> Failure {
    let count = found.len();
    let mut message =
        format!("{symbol} is defined {count} times; give more of its path, or file_path and line:");
    for one in found.iter().take(MAX_CANDIDATES) {
        let (file, line, path) = (one.file.display(), one.line, one.path.join("::"));
        append(&mut message, &format!("{file}:{line} {} {path}", one.kind));
    }
    if count > MAX_CANDIDATES {
        append(&mut message, &format!("… {} more", count - MAX_CANDIDATES));
    }
    Failure::new(Code::SymbolAmbiguous, message).with("symbol", symbol)
}

/// Appends a line to a message, which has no line feed at its end.
fn append(message: &mut String, text: &str) {
    message.push('\n');
    message.push_str(text);
}

fn place_of(below: &Path, line: Option<usize>) -> String {
    let path = if below.as_os_str().is_empty() {
        "here".into()
    } else {
        format!("in {}", below.display())
    };
    line.map_or(path.clone(), |line| format!("{path} at line {line}"))
}

fn not_defined(name: &str, view: &IndexView<'_>, last: &str, missing: Option<&str>) -> String {
    let Some(missing) = missing else { return not_in(name, view, last, "defined") };
    let message = not_in(name, view, last, "in the index");
    format!("{message} [incomplete: {missing}]")
}

/// Says that a name is not there, with near names.
fn not_in(name: &str, view: &IndexView<'_>, last: &str, there: &str) -> String {
    let near = view.near(last);
    if near.iter().any(|near| near == last) {
        let last = NamePath::parse(last).map_or_else(Vec::new, |last| view.definitions(&last));
        let paths: Vec<_> =
            last.iter().take(MAX_CANDIDATES).map(|one| one.path.join("::")).collect();
        return format!("{name} is not {there}; there is {}", paths.join(", "));
    }
    match near.as_slice() {
        [] => format!("{name} is not {there}; ignored files are not searched"),
        near => format!("{name} is not {there}; there is {}", near.join(", ")),
    }
}

/// Leaves out declarations and blocks of methods where there are definitions too.
fn likeliest(found: Vec<Definition>) -> Vec<Definition> {
    let keeps: [fn(&Definition) -> bool; 3] = [
        // The heading of a document may have the name of what it is about.
        |one| one.language.is_program(),
        |one| one.kind != SymbolKind::Impl,
        |one| one.has_body || !matches!(one.kind, SymbolKind::Function | SymbolKind::Method),
    ];
    let mut found = found;
    for keep in keeps {
        if found.iter().any(keep) {
            found.retain(keep);
        }
    }
    found
}
