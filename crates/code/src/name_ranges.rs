//! The places of a name in a source file.

use std::ops::Range;

use crate::definitions::{Role, Roles};
use crate::syntax::{SyntaxTree, preorder};

/// Returns the byte ranges at which a name stands in code, in order. Comments and strings do not count.
pub fn name_ranges(tree: &SyntaxTree, source: &str, name: &str) -> Vec<Range<usize>> {
    let roles = Roles::of(tree.language());
    let names = preorder(tree.root()).filter(|node| {
        node.child_count() == 0
            && matches!(roles.role(node.kind_id()), Role::Name)
            && source.get(node.byte_range()) == Some(name)
    });
    names.map(|node| node.byte_range()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_name_is_found_in_code_and_neither_in_strings_nor_in_comments() {
        for (language, source, count) in [
            (Language::Python, "def echo(): echo(\"echo\")  # echo\necho_all(x.echo)\n", 3),
            (Language::Rust, "fn echo() { self.echo(\"echo\"); vec![echo] } // echo\n", 3),
            (Language::Go, "func echo() { a.echo(`echo`); echo() }\n", 3),
            (Language::TypeScript, "class A { echo() { return { echo: `echo` }; } }\n", 2),
            (Language::C, "int echo(void); /* echo */ int a = echo();\n", 2),
        ] {
            let tree = SyntaxTree::parse(language, source).unwrap();
            let found = name_ranges(&tree, source, "echo");
            assert!(found.iter().all(|range| &source[range.clone()] == "echo"), "{language}");
            assert_eq!(found.len(), count, "{language} {found:?}");
        }
    }
}
