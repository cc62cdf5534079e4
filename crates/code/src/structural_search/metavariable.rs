//! Metavariables in the text of patterns and replacements: `$NAME` for one node, `$$$NAME` for any number.

use std::ops::Range;

/// A metavariable in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metavariable<'t> {
    /// Its place, with the dollar signs.
    pub(crate) range: Range<usize>,
    /// Its name; empty for a nameless `$$$`.
    pub(crate) name: &'t str,
    /// The number of dollar signs.
    pub(crate) dollars: usize,
}

impl Metavariable<'_> {
    /// Returns true if it stands for any number of nodes.
    pub(crate) fn is_variadic(&self) -> bool {
        self.dollars == 3
    }

    /// Returns true if it captures nothing.
    pub(crate) fn is_nameless(&self) -> bool {
        self.name.is_empty() || self.name.starts_with('_')
    }
}

/// Finds the metavariables of a text: upper-case names behind one to three dollar signs.
pub(crate) fn metavariables(text: &str) -> Vec<Metavariable<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'$', &bytes[at..]) {
        let start = at + offset;
        let dollars = bytes[start..].iter().take_while(|byte| **byte == b'$').count();
        let from = start + dollars;
        let is_first = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
        let is_further = |byte: &&u8| is_first(**byte) || byte.is_ascii_digit();
        let length = if bytes.get(from).copied().is_some_and(is_first) {
            bytes[from..].iter().take_while(is_further).count()
        } else {
            0
        };
        let end = from + length;
        let goes_on = bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
        if dollars <= 3 && !goes_on && (length > 0 || dollars == 3) {
            found.push(Metavariable { range: start..end, name: &text[from..end], dollars });
        }
        at = end.max(from);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn variables_are_upper_case_names_behind_dollar_signs() {
        let found = |text| {
            let found = metavariables(text).into_iter();
            found.map(|one| format!("{}{}", one.dollars, one.name)).collect::<Vec<_>>()
        };
        assert_eq!(found("$A.f($$$ARGS, $_, $$B, $$$)"), ["1A", "3ARGS", "1_", "2B", "3"]);
        assert_eq!(found("$x $Foo ${A} $(a) $ $$ $1 $$$$A a$A_1"), ["1A_1"]);
        assert_eq!(found("$$$ $$$_ é$É"), ["3", "3_"]);
    }
}
