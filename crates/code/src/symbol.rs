//! Symbols: the named definitions of a source file.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// A named definition in a source file.
///
/// Ranges are bytes of the source. `whole` contains `definition`, which contains `name` and `body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name, as written.
    pub name: String,
    /// The kind of the definition.
    pub kind: SymbolKind,
    /// The symbol that lexically contains it, by its place in the list of the file.
    pub parent: Option<usize>,
    /// The type that a definition outside of it belongs to: the receiver of a method in Go, `A` of `A::f` in C++.
    pub receiver: Option<String>,
    /// The definition with the comments and attributes right above it.
    pub whole: Range<usize>,
    /// The definition, with decorators and `export` around it.
    pub definition: Range<usize>,
    /// The start of the definition behind its decorators.
    pub head: usize,
    /// The name alone.
    pub name_range: Range<usize>,
    /// The body, with its braces where the language has them. None for a declaration.
    pub body: Option<Range<usize>>,
    /// The lines of `whole`, counted from 1.
    pub lines: (usize, usize),
    /// The line of the name, counted from 1.
    pub line: usize,
    /// Files of other directories can use it, as far as the syntax tells.
    pub is_exported: bool,
    /// The first line of the body, or the last line of a definition without one.
    pub body_line: usize,
}

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum SymbolKind {
    Module,
    Class,
    Struct,
    Enum,
    Interface,
    Trait,
    /// A block of methods for a type that is defined elsewhere.
    Impl,
    Type,
    Function,
    Method,
    Field,
    /// A member of an enumeration.
    Variant,
    Constant,
    Variable,
    Macro,
    /// A heading of a document, with the section below it.
    Heading,
    /// A key of a data file.
    Key,
    /// The selector of a style rule.
    Selector,
    /// An element of a page that has an id.
    Element,
}

impl SymbolKind {
    /// Every kind, in the order of lists.
    pub const ALL: [Self; 19] = [
        Self::Module,
        Self::Class,
        Self::Struct,
        Self::Enum,
        Self::Interface,
        Self::Trait,
        Self::Impl,
        Self::Type,
        Self::Function,
        Self::Method,
        Self::Field,
        Self::Variant,
        Self::Constant,
        Self::Variable,
        Self::Macro,
        Self::Heading,
        Self::Key,
        Self::Selector,
        Self::Element,
    ];

    /// Returns the word in replies and arguments.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Class => "class",
            Self::Struct => "struct",
            Self::Enum => "enum",
            Self::Interface => "interface",
            Self::Trait => "trait",
            Self::Impl => "impl",
            Self::Type => "type",
            Self::Function => "function",
            Self::Method => "method",
            Self::Field => "field",
            Self::Variant => "variant",
            Self::Constant => "constant",
            Self::Variable => "variable",
            Self::Macro => "macro",
            Self::Heading => "heading",
            Self::Key => "key",
            Self::Selector => "selector",
            Self::Element => "element",
        }
    }

    /// Returns the kind of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns true for kinds whose functions are methods.
    pub const fn has_methods(self) -> bool {
        matches!(
            self,
            Self::Class | Self::Struct | Self::Enum | Self::Interface | Self::Trait | Self::Impl
        )
    }

    /// Returns true for functions and methods.
    pub const fn is_callable(self) -> bool {
        matches!(self, Self::Function | Self::Method)
    }

    /// Returns true for the data of a type, which an overview leaves out.
    pub const fn is_member(self) -> bool {
        matches!(self, Self::Field | Self::Variant)
    }
}

impl fmt::Display for SymbolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Appends the names from the outermost symbol to this one.
pub(crate) fn path_of(symbols: &[Symbol], index: usize) -> Vec<&str> {
    let mut path = Vec::new();
    let mut next = Some(index);
    while let Some(index) = next {
        let symbol = &symbols[index];
        path.push(symbol.name.as_str());
        path.extend(symbol.receiver.as_deref());
        next = symbol.parent;
    }
    path.reverse();
    path
}

/// A name path that a caller wrote, such as `Type::method`, `module.Class` or `(*T).Close`.
///
/// It matches a symbol whose own path ends with its names, so that the last name alone is enough where it is
/// unambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePath {
    names: Vec<String>,
}

/// The names of a path that a caller may write.
const MAX_NAMES: usize = 32;

impl NamePath {
    /// Parses names between `::`, `.`, `/`, `#` or `->`. Parentheses, stars and type arguments are left out.
    /// None if there is no name.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // A heading or a selector has blanks in it and is one name.
        if text.contains(char::is_whitespace) && !text.starts_with('(') {
            return Some(Self { names: vec![text.to_owned()] });
        }
        let text = text.replace("::", ".").replace("->", ".");
        let names = text.split(['.', '/', '#']).map(|name| {
            let name = name.trim_matches(['(', ')', '*', '&', ' ']);
            let end = name.find(['<', '[', '(']).filter(|end| *end > 0).unwrap_or(name.len());
            name[..end].to_owned()
        });
        let names: Vec<_> = names.filter(|name| !name.is_empty()).take(MAX_NAMES).collect();
        (!names.is_empty()).then_some(Self { names })
    }

    /// Returns the last name.
    pub fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Tells whether a symbol's path ends with these names.
    pub fn matches(&self, path: &[&str]) -> bool {
        self.names.len() <= path.len() && self.matches_in(path, Path::new(""))
    }

    /// Tells whether a symbol's path within its file ends with these names, or is the end of them and the
    /// names before it are those of the file's modules, as in `click.utils.echo`.
    pub fn matches_in(&self, path: &[&str], file: &Path) -> bool {
        let is_same = |(own, other): (&String, &&str)| own == other;
        let modules = self.names.len().saturating_sub(path.len());
        self.names.iter().rev().zip(path.iter().rev()).all(is_same)
            && is_module(&self.names[..modules], file)
    }
}

/// Files that are named after the module's place and not after the module.
const UNNAMED_MODULES: [&str; 5] = ["__init__", "index", "lib", "main", "mod"];

/// The names by which source refers to its own package or module.
const RELATIVE_MODULES: [&str; 3] = ["crate", "self", "super"];

/// Tells whether the path of a file ends with the names of modules.
fn is_module(names: &[String], file: &Path) -> bool {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let stem = stem.filter(|stem| !UNNAMED_MODULES.contains(stem));
    let above = file.parent().into_iter().flat_map(Path::components).rev();
    let above = above.filter_map(|part| part.as_os_str().to_str()).filter(|part| *part != "src");
    let mut parts = stem.into_iter().chain(above);
    let names = names.iter().filter(|name| !RELATIVE_MODULES.contains(&name.as_str()));
    names.rev().all(|name| parts.next().is_some_and(|part| is_same_module(name, part)))
}

/// Compares the name of a module with that of its file; packages write dashes where modules have underscores.
fn is_same_module(name: &str, part: &str) -> bool {
    name.len() == part.len()
        && name
            .bytes()
            .zip(part.bytes())
            .all(|(one, other)| one == other || (one, other) == (b'_', b'-'))
}

impl fmt::Display for NamePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join("::"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_name_path_is_read_in_the_spelling_of_every_language() {
        for (text, path) in [
            ("Foo", Some("Foo")),
            ("a::B::c", Some("a::B::c")),
            ("a.B.c", Some("a::B::c")),
            ("Foo#bar", Some("Foo::bar")),
            ("(*T).Close", Some("T::Close")),
            ("(T).Close()", Some("T::Close")),
            ("Vec<T>::push", Some("Vec::push")),
            ("Getting started", Some("Getting started")),
            ("(", None),
            ("()", None),
            ("", None),
        ] {
            assert_eq!(
                NamePath::parse(text).map(|path| path.to_string()).as_deref(),
                path,
                "{text}"
            );
        }
    }

    #[test]
    fn a_name_path_matches_the_end_of_a_symbols_path() {
        let path = NamePath::parse("B::c").unwrap();
        assert!(path.matches(&["a", "B", "c"]));
        assert!(path.matches(&["B", "c"]));
        assert!(!path.matches(&["c"]));
        assert!(!path.matches(&["B", "c", "d"]));
    }

    #[test]
    fn names_before_the_symbols_path_are_those_of_the_files_modules() {
        for (text, file, expected) in [
            ("click.utils.echo", "src/click/utils.py", true),
            ("utils.echo", "src/click/utils.py", true),
            ("click.echo", "src/click/__init__.py", true),
            ("click.core.echo", "src/click/utils.py", false),
            ("crate::http::echo", "crates/api/src/http/mod.rs", true),
            ("carrel_api::http::echo", "crates/carrel-api/src/http.rs", true),
            ("other::http::echo", "crates/api/src/http.rs", false),
            ("a.b.c.echo", "c.py", false),
        ] {
            let path = NamePath::parse(text).unwrap();
            assert_eq!(path.matches_in(&["echo"], Path::new(file)), expected, "{text} in {file}");
        }
    }
}
