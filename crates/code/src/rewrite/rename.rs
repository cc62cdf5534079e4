//! Renames of identifiers.
//!
//! In JavaScript and TypeScript a local name and a member of the same spelling are two things. Which one is meant
//! follows from the declarations in the region, or from the caller; without any, all places are renamed. In
//! other languages all exact identifiers of the region are renamed, or those of one kind.

use tree_sitter::Node;

use super::names::{NameRole, is_javascript, occurrences, role};
use super::region::Limits;
use super::{Rename, RenameTarget, RewriteProblem, Substitution};
use crate::structural_edit::{ParsedSource, line_of};
use crate::structural_search::{MAX_MATCHES, TimeBudget};

/// The longest name.
const MAX_NAME_BYTES: usize = 200;

pub(super) fn substitutions(
    source: &ParsedSource<'_>,
    edit: &Rename,
    budget: &TimeBudget<'_>,
) -> Result<Vec<Substitution>, RewriteProblem> {
    for name in [&edit.from, &edit.to] {
        if !is_name(name) {
            return Err(RewriteProblem::NotAName { name: name.chars().take(40).collect() });
        }
    }
    budget.check()?;
    let limits = Limits::of(source, &edit.region, budget)?;
    let language = source.language();
    let found = occurrences(source, &edit.from);
    let found = found.into_iter().filter(|node| limits.contain(&node.byte_range()));
    let found: Vec<(Node<'_>, NameRole)> = found.map(|node| (node, role(language, node))).collect();
    let renaming = Renaming { source, edit, found: &found };
    let target = renaming.target()?;
    if is_javascript(language) && target == Some(RenameTarget::Local) {
        renaming.check_collisions(budget)?;
    }
    let is_meant = |role: NameRole| match (target, is_javascript(language)) {
        (None, _) => true,
        (Some(RenameTarget::Local), _) => role.is_local(),
        (Some(RenameTarget::Member), true) => {
            matches!(role, NameRole::MemberDeclaration | NameRole::OwnMember)
        }
        (Some(RenameTarget::Member), false) => !role.is_local(),
    };
    let meant = found.iter().filter(|(_, role)| is_meant(*role));
    let substitutions: Vec<_> =
        meant.map(|(node, _)| renaming.substitution(*node, target)).collect();
    match substitutions.len() {
        0 => {
            Err(RewriteProblem::NoMatch { summary: format!("the name {}", edit.from), hint: None })
        }
        1..=MAX_MATCHES => Ok(substitutions),
        _ => Err(RewriteProblem::TooManyMatches),
    }
}

/// Tells whether a text can be an identifier in some language.
fn is_name(name: &str) -> bool {
    let bare = name.trim_start_matches(['#', '@', '$']);
    !bare.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '!' | '?'))
}

struct Renaming<'a, 's, 't> {
    source: &'a ParsedSource<'s>,
    edit: &'a Rename,
    found: &'a [(Node<'t>, NameRole)],
}

impl Renaming<'_, '_, '_> {
    /// Chooses between locals and members. None means all.
    fn target(&self) -> Result<Option<RenameTarget>, RewriteProblem> {
        let line = |role: NameRole| {
            let first = self.found.iter().find(|(_, other)| *other == role);
            first.map(|(node, _)| node.start_position().row + 1)
        };
        let local = line(NameRole::LocalDeclaration);
        let member = line(NameRole::MemberDeclaration);
        let from = || self.edit.from.clone();
        let declares = is_javascript(self.source.language());
        match (self.edit.target, local, member) {
            (Some(RenameTarget::Local), None, _) if declares => {
                Err(RewriteProblem::NotDeclared { from: from(), target: "local" })
            }
            (Some(RenameTarget::Member), _, None) if declares => {
                Err(RewriteProblem::NotDeclared { from: from(), target: "member" })
            }
            (Some(target), _, _) => Ok(Some(target)),
            (None, Some(local), Some(member)) => {
                Err(RewriteProblem::AmbiguousTarget { from: from(), local, member })
            }
            (None, Some(_), None) => Ok(Some(RenameTarget::Local)),
            (None, None, Some(_)) => Ok(Some(RenameTarget::Member)),
            (None, None, None) => Ok(None),
        }
    }

    /// Refuses a new name that is used in the scope of a declaration, which one of the two would hide.
    fn check_collisions(&self, budget: &TimeBudget<'_>) -> Result<(), RewriteProblem> {
        let language = self.source.language();
        let taken = occurrences(self.source, &self.edit.to);
        let taken: Vec<_> =
            taken.into_iter().filter(|node| role(language, *node).is_local()).collect();
        let declarations =
            self.found.iter().filter(|(_, role)| *role == NameRole::LocalDeclaration);
        for (node, _) in declarations {
            budget.step()?;
            let scope = scope(*node).byte_range();
            let first = taken.partition_point(|other| other.start_byte() < scope.start);
            let inside = taken.get(first).filter(|other| other.end_byte() <= scope.end);
            if let Some(other) = inside {
                return Err(RewriteProblem::Collision {
                    from: self.edit.from.clone(),
                    to: self.edit.to.clone(),
                    line: line_of(self.source.text(), other.start_byte()),
                    declared: node.start_position().row + 1,
                });
            }
        }
        Ok(())
    }

    fn substitution(&self, node: Node<'_>, target: Option<RenameTarget>) -> Substitution {
        let Rename { from, to, .. } = self.edit;
        let parent = node.parent();
        let is_alone = |kind: &str| {
            parent.is_some_and(|parent| {
                parent.kind() == kind && parent.child_by_field_name("alias").is_none()
            })
        };
        let is_shorthand = node.kind().starts_with("shorthand_")
            || parent.is_some_and(|parent| parent.kind() == "shorthand_field_initializer");
        // The property, or the name in the other module, keeps its name.
        let new = match target {
            Some(RenameTarget::Local) if is_shorthand => format!("{from}: {to}"),
            Some(RenameTarget::Local) if is_alone("import_specifier") => format!("{from} as {to}"),
            Some(RenameTarget::Local) if is_alone("export_specifier") => format!("{to} as {from}"),
            _ => to.clone(),
        };
        Substitution { range: node.byte_range(), new }
    }
}

/// Returns the function around a declaration, or the file. The name of a function is declared around it.
fn scope(node: Node<'_>) -> Node<'_> {
    const FUNCTIONS: [&str; 7] = [
        "function_declaration",
        "function_expression",
        "generator_function_declaration",
        "generator_function",
        "arrow_function",
        "method_definition",
        "class_static_block",
    ];
    let mut inner = node;
    while let Some(outer) = inner.parent() {
        let is_own_name = outer.child_by_field_name("name") == Some(node);
        if FUNCTIONS.contains(&outer.kind()) && !is_own_name {
            return outer;
        }
        inner = outer;
    }
    inner
}
