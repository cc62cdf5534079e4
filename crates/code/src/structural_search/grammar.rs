//! A grammar as the matcher's library needs it.

use std::borrow::Cow;

use ast_grep_core::matcher::{PatternBuilder, PatternError as LibraryError};
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::tree_sitter::{LanguageExt, StrDoc, TSLanguage};
use ast_grep_core::{AstGrep, Pattern};

use super::metavariable::metavariables;
use super::readable_pattern::{STAND_IN, readable, undecorated};
use crate::language::{Language, MissingGrammar};
use crate::syntax::SyntaxTree;

/// A language whose grammar is compiled in, as the matcher needs it.
#[derive(Clone, Debug)]
pub(super) struct Grammar {
    language: Language,
    grammar: TSLanguage,
}

/// A document of the matcher.
pub(super) type Document = StrDoc<Grammar>;

impl Grammar {
    pub(super) fn of(language: Language) -> Result<Self, MissingGrammar> {
        Ok(Self { language, grammar: language.grammar()? })
    }

    pub(super) fn language(&self) -> Language {
        self.language
    }

    /// Makes a document of a tree that was parsed in bounded time.
    pub(super) fn document(&self, tree: &SyntaxTree, source: &str) -> AstGrep<Document> {
        let (src, tree) = (source.to_owned(), tree.tree().clone());
        AstGrep::doc(StrDoc { src, lang: self.clone(), tree })
    }

    /// Returns the ids of the kinds of this name.
    pub(super) fn kinds(&self, name: &str) -> Vec<u16> {
        let count = u16::try_from(self.grammar.node_kind_count()).unwrap_or(u16::MAX);
        let is_named = |id: &u16| self.grammar.node_kind_for_id(*id) == Some(name);
        (0..count).filter(is_named).collect()
    }

    /// Returns the names of all kinds that have one.
    pub(super) fn named_kinds(&self) -> impl Iterator<Item = &str> {
        let count = u16::try_from(self.grammar.node_kind_count()).unwrap_or(u16::MAX);
        let named = (0..count).filter(|id| self.grammar.node_kind_is_named(*id));
        named.map(|id| self.kind_name(id))
    }

    /// Returns the id of the field of this name.
    pub(super) fn field(&self, name: &str) -> Option<u16> {
        self.grammar.field_id_for_name(name).map(u16::from)
    }

    pub(super) fn kind_name(&self, id: u16) -> &str {
        self.grammar.node_kind_for_id(id).unwrap_or_default()
    }
}

impl ast_grep_core::Language for Grammar {
    fn expando_char(&self) -> char {
        STAND_IN
    }

    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        Cow::Owned(readable(self.language, query))
    }

    fn extract_meta_var(&self, source: &str) -> Option<MetaVariable> {
        let name = undecorated(self.language, source)?;
        let text: String = name.chars().map(|c| if c == STAND_IN { '$' } else { c }).collect();
        let found = metavariables(&text);
        let [variable] = &found[..] else { return None };
        if variable.range != (0..text.len()) {
            return None;
        }
        Some(match (variable.dollars, variable.is_nameless()) {
            (3, true) => MetaVariable::Multiple,
            (3, false) => MetaVariable::MultiCapture(variable.name.to_owned()),
            (dollars, true) => MetaVariable::Dropped(dollars == 1),
            (dollars, false) => MetaVariable::Capture(variable.name.to_owned(), dollars == 1),
        })
    }

    fn kind_to_id(&self, kind: &str) -> u16 {
        self.grammar.id_for_node_kind(kind, true)
    }

    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.field(field)
    }

    fn build_pattern(&self, builder: &PatternBuilder<'_>) -> Result<Pattern, LibraryError> {
        builder.build(|source| StrDoc::try_new(source, self.clone()))
    }
}

impl LanguageExt for Grammar {
    fn get_ts_language(&self) -> TSLanguage {
        self.grammar.clone()
    }
}
