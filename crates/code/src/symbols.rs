//! The symbols of a file, and the names and words in it, in one walk over its syntax tree.

use tree_sitter::{Node, TreeCursor};

use crate::definitions::{DefinitionRule, Naming, Role, Roles};
use crate::index::Definition;
use crate::language::Language;
use crate::symbol::{Symbol, SymbolKind, path_of};
use crate::syntax::{MAX_DEPTH, SyntaxTree};

/// The most symbols of one file. A data file with a million keys is no outline.
pub const MAX_SYMBOLS: usize = 200_000;

/// The longest name of a symbol. Selectors and keys may be any text.
const MAX_NAME_BYTES: usize = 200;

/// The levels of keys in data files that are symbols.
const MAX_KEY_DEPTH: usize = 4;

/// The symbols of a source file, parents before their children, in the order of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSymbols {
    /// The symbols.
    pub symbols: Vec<Symbol>,
    /// A part of the file was not understood, so that symbols may be missing.
    pub has_error: bool,
    /// There are more than [`MAX_SYMBOLS`].
    pub is_cut: bool,
}

impl FileSymbols {
    /// Collects the symbols of a parsed source.
    pub fn of(tree: &SyntaxTree, source: &str) -> Self {
        collect(tree, source, &mut ())
    }

    /// Returns the names from the outermost symbol to this one.
    pub fn path(&self, index: usize) -> Vec<&str> {
        path_of(&self.symbols, index)
    }

    /// Returns the innermost symbol whose lines contain this one, counted from 1.
    pub fn enclosing(&self, line: usize) -> Option<usize> {
        let contains = |symbol: &Symbol| (symbol.lines.0..=symbol.lines.1).contains(&line);
        self.symbols.iter().rposition(contains)
    }
}

/// A receiver of the names and words that a walk passes.
pub(crate) trait WordSink {
    /// Takes a name of the program that is no definition's.
    fn name(&mut self, text: &str, row: usize);
    /// Takes the text of a comment, which begins in this row.
    fn comment(&mut self, text: &str, row: usize);
}

impl WordSink for () {
    fn name(&mut self, _: &str, _: usize) {}
    fn comment(&mut self, _: &str, _: usize) {}
}

/// Collects the symbols, and passes all names and comments on.
pub(crate) fn collect(tree: &SyntaxTree, source: &str, sink: &mut impl WordSink) -> FileSymbols {
    let language = tree.language();
    let mut walk = Walk {
        language,
        roles: Roles::of(language),
        source,
        symbols: Vec::new(),
        containers: Vec::new(),
        mentions_exports: source.contains("exports"),
        is_cut: false,
        sink,
    };
    walk.run(tree.root().walk());
    FileSymbols { symbols: walk.symbols, has_error: tree.has_error(), is_cut: walk.is_cut }
}

struct Walk<'a, S> {
    language: Language,
    roles: &'static Roles,
    source: &'a str,
    symbols: Vec<Symbol>,
    /// The symbols around the current node, with the depth of their nodes.
    containers: Vec<(usize, usize)>,
    /// The source has the word with which modules of Node name what they export.
    mentions_exports: bool,
    is_cut: bool,
    sink: &'a mut S,
}

impl<S: WordSink> Walk<'_, S> {
    fn run(&mut self, mut cursor: TreeCursor<'_>) {
        let mut depth = 0;
        loop {
            self.visit(cursor.node(), depth);
            if depth < MAX_DEPTH && cursor.goto_first_child() {
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                depth -= 1;
            }
            while self.containers.last().is_some_and(|(_, at)| *at >= depth) {
                self.containers.pop();
            }
        }
    }

    fn visit(&mut self, node: Node<'_>, depth: usize) {
        match self.roles.role(node.kind_id()) {
            Role::Name if node.child_count() == 0 => {
                let text = self.source.get(node.byte_range()).unwrap_or_default();
                self.sink.name(text, node.start_position().row);
            }
            Role::None | Role::Attribute | Role::Name => {}
            Role::Comment => {
                let text = self.source.get(node.byte_range()).unwrap_or_default();
                self.sink.comment(text, node.start_position().row);
            }
            Role::Definition(rule) => self.define(rule, node, depth),
        }
        if node.kind() == "string" && is_docstring(node) {
            let text = self.source.get(node.byte_range()).unwrap_or_default();
            self.sink.comment(text, node.start_position().row);
        }
    }

    fn define(&mut self, rule: &DefinitionRule, node: Node<'_>, depth: usize) {
        let mut parent = self.containers.last().map(|(index, _)| *index);
        let mut parent_kind = parent.map(|parent| self.symbols[parent].kind);
        // C has no functions in functions: a brace that a macro hides makes the rest of the file look so.
        if self.language == Language::C
            && rule.kind == SymbolKind::Function
            && parent_kind.is_some_and(SymbolKind::is_callable)
        {
            (parent, parent_kind) = (None, None);
        }
        if !rule.in_functions && parent_kind.is_some_and(SymbolKind::is_callable) {
            return;
        }
        if rule.kind == SymbolKind::Key && self.containers.len() >= MAX_KEY_DEPTH {
            return;
        }
        for naming in rule.name.find(node, self.source) {
            if self.symbols.len() >= MAX_SYMBOLS {
                self.is_cut = true;
                return;
            }
            // A definition that is its name alone contains nothing.
            let contains = naming.definition.is_none();
            let Some(symbol) = self.symbol(rule, node, naming, parent) else { continue };
            self.symbols.push(symbol);
            if contains {
                self.containers.push((self.symbols.len() - 1, depth));
            }
        }
    }

    fn symbol(
        &self,
        rule: &DefinitionRule,
        node: Node<'_>,
        naming: Naming<'_>,
        parent: Option<usize>,
    ) -> Option<Symbol> {
        let name = self.source.get(naming.name.byte_range())?;
        let name = shortened(name.trim().trim_matches(['"', '\'']));
        // A macro that the parser does not know makes it take a type for a name.
        if name.is_empty() || naming.name.kind() == "primitive_type" {
            return None;
        }
        let node = naming.definition.unwrap_or(node);
        let definition = self.wrapped(node);
        let start = self.start_with_comments(definition);
        // Some nodes end with the line feed behind them.
        let end = self.source[..definition.end_byte()].trim_end().len().max(naming.name.end_byte());
        let parent_kind = parent.map(|parent| self.symbols[parent].kind);
        let kind = match naming.kind.unwrap_or(rule.kind) {
            SymbolKind::Function
                if naming.receiver.is_some()
                    || parent_kind.is_some_and(SymbolKind::has_methods) =>
            {
                SymbolKind::Method
            }
            SymbolKind::Variable if is_constant_name(&name) => SymbolKind::Constant,
            SymbolKind::Variable if parent_kind.is_some_and(SymbolKind::has_methods) => {
                SymbolKind::Field
            }
            kind => kind,
        };
        let body = naming.body.or_else(|| self.body_of(node));
        let lines = self.source[start..end].matches('\n').count();
        let first = self.row_of(start, definition) + 1;
        let is_exported = self.is_exported(&name, kind, node, definition);
        Some(Symbol {
            name,
            kind,
            is_exported,
            parent,
            receiver: naming.receiver,
            whole: start..end,
            definition: definition.start_byte()..end,
            head: head_of(definition, node),
            name_range: naming.name.byte_range(),
            body: body.map(|body| body.start_byte()..body.end_byte().min(end)),
            lines: (first, first + lines),
            line: naming.name.start_position().row + 1,
            body_line: body.map_or(first + lines, |body| body.start_position().row + 1),
        })
    }

    /// Tells whether files of other directories can use a definition.
    fn is_exported(
        &self,
        name: &str,
        kind: SymbolKind,
        node: Node<'_>,
        definition: Node<'_>,
    ) -> bool {
        let has = |kind: &str| {
            let mut cursor = node.walk();
            node.children(&mut cursor).any(|child| child.kind() == kind)
        };
        let is_inside = |kinds: &[SymbolKind]| {
            let parent = self.containers.last().map(|(index, _)| self.symbols[*index].kind);
            parent.is_some_and(|parent| kinds.contains(&parent))
        };
        match self.language {
            Language::Rust => {
                has("visibility_modifier")
                    || matches!(kind, SymbolKind::Macro | SymbolKind::Variant | SymbolKind::Impl)
                    || is_inside(&[SymbolKind::Trait])
            }
            Language::Go => name.starts_with(char::is_uppercase),
            Language::Python => !name.starts_with('_'),
            Language::C => {
                let head = self.source.get(node.start_byte()..).unwrap_or_default();
                !head.starts_with("static ")
            }
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                !self.containers.is_empty()
                    || definition.kind() == "export_statement"
                    || self.mentions_exports
            }
            _ => true,
        }
    }

    fn body_of<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        const BODIES: [&str; 5] =
            ["class_body", "function_body", "enum_class_body", "block", "declaration_list"];
        node.child_by_field_name("body").or_else(|| {
            if self.language != Language::Kotlin {
                return None;
            }
            let mut cursor = node.walk();
            node.named_children(&mut cursor).find(|child| BODIES.contains(&child.kind()))
        })
    }

    /// Returns the outermost node that belongs to this definition alone.
    fn wrapped<'t>(&self, node: Node<'t>) -> Node<'t> {
        let mut node = node;
        while let Some(parent) = node.parent().filter(|parent| self.wraps(*parent, node)) {
            node = parent;
        }
        node
    }

    fn wraps(&self, parent: Node<'_>, node: Node<'_>) -> bool {
        if !self.roles.is_wrapper(parent.kind_id()) {
            return false;
        }
        let defines = |child: &Node<'_>| {
            child.kind_id() == node.kind_id()
                || matches!(self.roles.role(child.kind_id()), Role::Definition(_))
        };
        let mut cursor = parent.walk();
        // A list of thousands of variables is not counted for each of them.
        parent.named_children(&mut cursor).filter(defines).take(2).count() == 1
    }

    /// Returns the start of the comments and attributes right above a node, each on lines of its own.
    fn start_with_comments(&self, node: Node<'_>) -> usize {
        let mut start = node.start_byte();
        let mut previous = node.prev_sibling();
        while let Some(above) = previous {
            let belongs =
                matches!(self.roles.role(above.kind_id()), Role::Comment | Role::Attribute);
            if !belongs || !self.is_right_above(above, start) || !self.begins_its_line(above) {
                break;
            }
            if is_inner_comment(&self.source[above.byte_range()]) {
                break;
            }
            start = above.start_byte();
            previous = above.prev_sibling();
        }
        start
    }

    fn is_right_above(&self, above: Node<'_>, start: usize) -> bool {
        let end = self.source[..above.end_byte()].trim_end_matches(['\n', '\r']).len();
        let gap = self.source.get(end..start).unwrap_or("x");
        gap.chars().all(char::is_whitespace) && gap.matches('\n').count() <= 1
    }

    fn begins_its_line(&self, node: Node<'_>) -> bool {
        let before = &self.source[..node.start_byte()];
        let line = before.rfind('\n').map_or(0, |feed| feed + 1);
        before[line..].trim().is_empty()
    }

    fn row_of(&self, start: usize, definition: Node<'_>) -> usize {
        let row = definition.start_position().row;
        let between = self.source.get(start..definition.start_byte());
        row - between.unwrap_or_default().matches('\n').count()
    }
}

/// Returns the start of a definition behind its decorators.
fn head_of(definition: Node<'_>, node: Node<'_>) -> usize {
    let own = if definition.kind() == "decorated_definition" { node } else { definition };
    let mut cursor = own.walk();
    let mut children = own.children(&mut cursor);
    let first = children.find(|child| child.kind() != "decorator");
    first.map_or(own.start_byte(), |first| first.start_byte())
}

/// Tells whether a comment documents what is around it and not what follows.
fn is_inner_comment(comment: &str) -> bool {
    comment.starts_with("//!") || comment.starts_with("/*!") || comment.starts_with("#!")
}

fn is_docstring(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        parent.kind() == "expression_statement" && parent.named_child_count() == 1
    })
}

/// Tells whether a name is written as constants are.
fn is_constant_name(name: &str) -> bool {
    let mut letters = name.chars().filter(|c| c.is_alphabetic());
    letters.clone().count() > 1 && letters.all(char::is_uppercase)
}

fn shortened(name: &str) -> String {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.len() > MAX_NAME_BYTES {
        return name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
    }
    name
}

/// The longest signature that is shown.
const MAX_SIGNATURE_BYTES: usize = 200;

/// Returns a definition up to its body, on one line, without decorators.
pub fn signature(symbol: &Symbol, source: &str) -> String {
    let end = match &symbol.body {
        Some(body) if body.start > symbol.name_range.start => body.start,
        _ => symbol.definition.end,
    };
    one_line(symbol.kind, source.get(symbol.head..end).unwrap_or_default())
}

/// Does the same for a definition of an index, with the source of its file.
pub fn signature_of(definition: &Definition, source: &str) -> String {
    let (_, head, end) = definition.bytes;
    one_line(definition.kind, source.get(head..end).unwrap_or_default())
}

fn one_line(kind: SymbolKind, text: &str) -> String {
    let text = match kind {
        SymbolKind::Heading | SymbolKind::Key | SymbolKind::Selector | SymbolKind::Element => {
            text.lines().next().unwrap_or_default()
        }
        _ => text,
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches(['{', ':', ' ', '=', ';']).trim_end_matches("=>").trim_end();
    if line.len() > MAX_SIGNATURE_BYTES {
        return format!("{}…", &line[..line.floor_char_boundary(MAX_SIGNATURE_BYTES)]);
    }
    line.to_owned()
}
