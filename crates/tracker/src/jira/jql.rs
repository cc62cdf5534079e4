//! Confinement of JQL searches to a project.
//!
//! ```text
//! status = Done OR project = OPS   ─►   project = "WEB" AND (status = Done OR project = OPS)
//! a = 1) OR (project = OPS         ─►   refused
//! ```
//!
//! The scanner knows quotes, escapes and parentheses, and no more of JQL: it need not understand a search to
//! keep it inside its parentheses. A backslash outside quotes is refused, since Jira may read it as an escape.

use super::quoted;
use crate::tool::ToolRefusal;

/// Restricts a search to the project: `project = "KEY" AND (search) ORDER BY …`.
///
/// A search whose parentheses or quotes are not balanced is refused, since it could escape from the
/// parentheses around it.
pub(super) fn scoped(jql: &str, project: &str) -> Result<String, ToolRefusal> {
    let (filter, order) = split(jql)?;
    let own = format!("project = {}", quoted(project));
    let filter = filter.trim();
    let held = if filter.is_empty() { own } else { format!("{own} AND ({filter})") };
    Ok(format!("{held} {}", order.trim()).trim_end().to_owned())
}

/// Splits a search into its condition and its `ORDER BY` clause.
fn split(jql: &str) -> Result<(&str, &str), ToolRefusal> {
    let refused = |rule: &str| ToolRefusal::Arguments(format!("the search {jql:?} {rule}"));
    let (mut depth, mut quote, mut escaped, mut order) = (0_usize, None, false, None);
    for (index, c) in jql.char_indices() {
        if let Some(open) = quote {
            if !escaped && c == open {
                quote = None;
            }
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' | '\'' => quote = Some(c),
            '\\' => return Err(refused("has a backslash outside quotes")),
            '(' => depth += 1,
            ')' => {
                let outer = depth.checked_sub(1);
                depth = outer.ok_or_else(|| refused("has an unmatched `)`"))?;
            }
            _ if depth == 0 && order.is_none() && begins_order(jql, index) => order = Some(index),
            _ => {}
        }
    }
    if quote.is_some() || depth > 0 {
        return Err(refused("has an unclosed quote or parenthesis"));
    }
    Ok(jql.split_at(order.unwrap_or(jql.len())))
}

/// Returns true if `ORDER BY` begins at `index`.
fn begins_order(jql: &str, index: usize) -> bool {
    let boundary = |c: char| c.is_whitespace() || "()\"'".contains(c);
    let after_word = jql[..index].chars().next_back().is_some_and(|c| !boundary(c));
    let mut words = jql[index..].split_whitespace();
    let mut is = |word: &str| words.next().is_some_and(|next| next.eq_ignore_ascii_case(word));
    !after_word && is("order") && is("by")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn searches_stay_in_the_project() {
        for (jql, expected) in [
            ("", r#"project = "WEB""#),
            ("status = Done", r#"project = "WEB" AND (status = Done)"#),
            ("a = 1 OR project = OPS", r#"project = "WEB" AND (a = 1 OR project = OPS)"#),
            (
                "a in (1, 2) order  BY created",
                r#"project = "WEB" AND (a in (1, 2)) order  BY created"#,
            ),
            ("ORDER BY rank", r#"project = "WEB" ORDER BY rank"#),
            (r#"text ~ "a) order by (b""#, r#"project = "WEB" AND (text ~ "a) order by (b")"#),
            (r"text ~ 'it\'s)'", r#"project = "WEB" AND (text ~ 'it\'s)')"#),
            ("reorder by = 1", r#"project = "WEB" AND (reorder by = 1)"#),
        ] {
            assert_eq!(scoped(jql, "WEB").unwrap(), expected, "{jql}");
        }
        for jql in [
            "a = 1) OR (project = OPS",
            "a = 1) OR project = OPS",
            "a = 1 OR (b = 2",
            "a = \"x",
            "a = 'x",
            "order by created) OR (1 = 1",
            r"a = \) OR project = OPS",
            ")(",
        ] {
            assert!(matches!(scoped(jql, "WEB"), Err(ToolRefusal::Arguments(_))), "{jql}");
        }
    }
}
