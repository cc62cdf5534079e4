//! The symbol that an edit is about, found by its name path.

use carrel_domain::suggest;

use super::{EditError, ParsedSource, line_of};
use crate::symbol::{NamePath, Symbol, SymbolKind};

/// The most names that a message lists.
pub const MAX_LISTED: usize = 12;

/// The edits after which a name is no longer near to another.
const MAX_DISTANCE: usize = 2;

/// The address of a symbol in a source.
///
/// The text is the end of a symbol's path as replies show it, or a name path in the spelling of any language.
/// The first comes first, because names of headings, keys and selectors may contain dots and slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolTarget {
    text: String,
    path: Option<NamePath>,
    line: Option<usize>,
    kind: Option<SymbolKind>,
}

impl SymbolTarget {
    /// Reads the address of the only symbol with a path.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let path = NamePath::parse(text);
        if text.is_empty() || text.chars().all(|c| "()".contains(c)) {
            return Err(TargetError::NoName { text: text.to_owned() });
        }
        Ok(Self { text: text.to_owned(), path, line: None, kind: None })
    }

    /// Tells whether it is the address of a symbol with this path, and is spelled as replies spell it.
    fn is_spelled(&self, path: &[&str]) -> bool {
        let path = path.join("::");
        // A long name is cut, perhaps at a blank.
        let before = path.trim_end().strip_suffix(self.text.as_str());
        before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
    }

    fn matches(&self, path: &[&str]) -> bool {
        self.path.as_ref().is_some_and(|own| own.matches(path))
    }

    /// Returns the last name.
    fn name(&self) -> &str {
        self.path.as_ref().map_or(&self.text, NamePath::last)
    }

    /// Narrows it to the symbol at a line.
    #[must_use]
    pub fn at_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Narrows it to symbols of a kind.
    #[must_use]
    pub fn of_kind(self, kind: SymbolKind) -> Self {
        Self { kind: Some(kind), ..self }
    }
}

/// The reason for which an address names no symbol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No symbol has the path.
    #[error("symbol {path} not found{}{}", near_text(.near), error_text(*.error_line))]
    NotFound {
        /// The path.
        path: String,
        /// Paths of symbols with a similar name.
        near: Vec<String>,
        /// The line of a syntax error, which may hide the symbol.
        error_line: Option<usize>,
    },
    /// A type has no such method.
    #[error(
        "method {method} not found on {receiver} {}{}",
        available_text(.available), error_text(*.error_line)
    )]
    NoMethod {
        /// The type.
        receiver: String,
        /// The method.
        method: String,
        /// The methods that the type has.
        available: Vec<String>,
        /// The line of a syntax error, which may hide the method.
        error_line: Option<usize>,
    },
    /// Several symbols have the path.
    #[error(
        "ambiguous: {path} matches {} declarations at {}; add a line or a longer path",
        .candidates.len(), candidates_text(.candidates)
    )]
    Ambiguous {
        /// The path.
        path: String,
        /// The symbols.
        candidates: Vec<Candidate>,
    },
    /// The text is no name path.
    #[error("`{text}` is no name; write `name`, `Type::method` or `(*T).Method`")]
    NoName {
        /// The text.
        text: String,
    },
}

/// One of several symbols with the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its whole path.
    pub path: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// The line of its name.
    pub line: usize,
}

fn near_text(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; near it: {}", near.join(", ")),
    }
}

fn error_text(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| {
        format!("; parse error: the file has a syntax error at line {line}, which may hide it")
    })
}

fn available_text(available: &[String]) -> String {
    match available {
        [] => "(no methods found on that receiver)".to_owned(),
        available => format!("(available: {})", available.join(", ")),
    }
}

fn candidates_text(candidates: &[Candidate]) -> String {
    let text = |candidate: &Candidate| {
        format!("line {} ({} {})", candidate.line, candidate.kind, candidate.path)
    };
    let shown: Vec<_> = candidates.iter().take(MAX_LISTED).map(text).collect();
    if candidates.len() > MAX_LISTED {
        format!("{}, …", shown.join(", "))
    } else {
        shown.join(", ")
    }
}

/// Returns a path in which the receiver of a definition, such as `ns::Box`, is several names.
pub(super) fn single_names<'n>(path: &[&'n str]) -> Vec<&'n str> {
    path.iter().flat_map(|name| name.split("::")).collect()
}

impl ParsedSource<'_> {
    /// Finds a symbol.
    pub fn find(&self, target: &SymbolTarget) -> Result<usize, TargetError> {
        let found = self.matching(target, |_| true);
        self.only(target, found)
    }

    /// Finds all symbols of an address, of which there is at least one.
    pub fn find_all(&self, target: &SymbolTarget) -> Result<Vec<usize>, TargetError> {
        let found = self.matching(target, |_| true);
        if found.is_empty() { Err(self.not_found(target)) } else { Ok(found) }
    }

    /// Finds a function or method; of a declaration and its definition the one that has a body.
    pub(super) fn find_callable(&self, target: &SymbolTarget) -> Result<usize, EditError> {
        if !self.language().is_program() {
            return Err(EditError::NoFunctions { language: self.language() });
        }
        let callable = self.matching(target, |symbol| symbol.kind.is_callable());
        if callable.is_empty() {
            let index = self.find(target)?;
            let kind = self.symbol(index).kind;
            return Err(EditError::NotCallable { path: self.path_text(index), kind });
        }
        Ok(self.only(target, callable)?)
    }

    /// Finds a function with a body. A declaration and its definition are not ambiguous here.
    pub(super) fn find_with_body(&self, target: &SymbolTarget) -> Result<usize, EditError> {
        let has_body = |symbol: &Symbol| symbol.kind.is_callable() && symbol.body.is_some();
        match self.matching(target, has_body)[..] {
            [index] => Ok(index),
            _ => self.find_callable(target),
        }
    }

    /// Finds a method of a type.
    pub(super) fn find_method(
        &self,
        receiver: &str,
        method: &str,
        line: Option<usize>,
    ) -> Result<usize, TargetError> {
        let of_type = NamePath::parse(receiver);
        let of_type = of_type.ok_or_else(|| TargetError::NoName { text: receiver.to_owned() })?;
        let name = NamePath::parse(method);
        let name = name.ok_or_else(|| TargetError::NoName { text: method.to_owned() })?;
        let all = &self.symbols.symbols;
        let methods: Vec<usize> = (0..all.len())
            .filter(|index| {
                let path = self.symbols.path(*index);
                let around = single_names(&path[..path.len() - 1]);
                all[*index].kind.is_callable() && of_type.matches(&around)
            })
            .collect();
        let named = methods.iter().copied().filter(|index| {
            let symbol = &all[*index];
            let at_line = |line| (symbol.lines.0..=symbol.lines.1).contains(&line);
            symbol.name == name.last() && line.is_none_or(at_line)
        });
        let target = SymbolTarget::parse(&format!("{}::{}", of_type.last(), name.last()))?;
        match named.collect::<Vec<_>>() {
            found if !found.is_empty() => self.only(&target, found),
            _ => Err(TargetError::NoMethod {
                receiver: of_type.last().to_owned(),
                method: name.last().to_owned(),
                available: self.method_names(&methods),
                error_line: self.first_error_line(),
            }),
        }
    }

    fn method_names(&self, methods: &[usize]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for index in methods {
            let name = &self.symbol(*index).name;
            if names.len() < MAX_LISTED && !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    fn matching(&self, target: &SymbolTarget, filter: impl Fn(&Symbol) -> bool) -> Vec<usize> {
        let fits = |index: &usize| {
            let symbol = self.symbol(*index);
            let at_line = |line| (symbol.lines.0..=symbol.lines.1).contains(&line);
            target.kind.is_none_or(|kind| kind == symbol.kind)
                && target.line.is_none_or(at_line)
                && filter(symbol)
        };
        let fitting = (0..self.symbols.symbols.len()).filter(fits);
        let (mut spelled, mut matching) = (Vec::new(), Vec::new());
        for index in fitting {
            let path = self.symbols.path(index);
            if target.is_spelled(&path) {
                spelled.push(index);
            } else if target.matches(&single_names(&path)) {
                matching.push(index);
            }
        }
        let found = if spelled.is_empty() { matching } else { spelled };
        // A line inside of two is meant for the one that begins there.
        let begins = |index: &usize| target.line == Some(self.symbol(*index).line);
        match found.iter().copied().filter(begins).collect::<Vec<_>>() {
            exact if !exact.is_empty() => exact,
            _ => found,
        }
    }

    fn only(&self, target: &SymbolTarget, found: Vec<usize>) -> Result<usize, TargetError> {
        match found[..] {
            [index] => Ok(index),
            [] => Err(self.not_found(target)),
            _ => Err(TargetError::Ambiguous {
                path: target.text.clone(),
                candidates: found.into_iter().map(|index| self.candidate(index)).collect(),
            }),
        }
    }

    fn candidate(&self, index: usize) -> Candidate {
        let symbol = self.symbol(index);
        Candidate { path: self.path_text(index), kind: symbol.kind, line: symbol.line }
    }

    fn not_found(&self, target: &SymbolTarget) -> TargetError {
        let name = target.name();
        let allowed = MAX_DISTANCE.min(name.chars().count() / 2);
        let mut near: Vec<(usize, String)> = Vec::new();
        for (index, symbol) in self.symbols.symbols.iter().enumerate() {
            let distance = suggest::distance(name, &symbol.name);
            if let Some(distance) = distance.filter(|distance| *distance <= allowed) {
                near.push((distance, self.path_text(index)));
            }
        }
        near.sort();
        near.dedup();
        let near = near.into_iter().take(MAX_LISTED).map(|(_, path)| path).collect();
        let path = target.text.clone();
        TargetError::NotFound { path, near, error_line: self.first_error_line() }
    }

    pub(super) fn first_error_line(&self) -> Option<usize> {
        let first = self.tree.errors().into_iter().next();
        first.map(|range| line_of(self.text, range.start))
    }
}
