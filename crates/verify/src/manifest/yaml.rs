//! The one thing that is read from YAML: lists of texts under a top-level key.

use saphyr_parser::{Event, Parser};

use crate::profile::ProfileProblem;

/// Bounds the events of one file; a list of packages has a few dozen.
const MAX_EVENTS: usize = 20_000;

/// Returns the texts of the list under a key at the top of a file.
pub(crate) fn string_list(
    file: &str,
    text: &str,
    key: &str,
) -> Result<Vec<String>, ProfileProblem> {
    let mut depth = 0_usize;
    // At the top of the mapping, keys and values follow each other in turn.
    let mut expect_key = true;
    let mut inside = false;
    let mut items = Vec::new();
    for event in Parser::new_from_str(text).take(MAX_EVENTS) {
        let (event, span) = event.map_err(|error| ProfileProblem {
            file: file.to_owned(),
            line: Some(error.marker().line()),
            message: format!("this is not YAML: {}", error.info()),
        })?;
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => {
                depth = depth.saturating_sub(1);
                if depth == 1 {
                    (inside, expect_key) = (false, true);
                }
            }
            Event::Scalar(value, ..) if depth == 1 && expect_key => {
                (inside, expect_key) = (value == key, false);
            }
            Event::Scalar(value, ..) if depth == 1 => {
                if inside && !value.is_empty() {
                    return Err(ProfileProblem {
                        file: file.to_owned(),
                        line: Some(span.start.line()),
                        message: format!("`{key}` must be a list"),
                    });
                }
                (inside, expect_key) = (false, true);
            }
            Event::Scalar(value, ..) if depth == 2 && inside => items.push(value.into_owned()),
            _ => {}
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_list_under_the_key_is_read() {
        let text = "catalog:\n  react: ^18\n  packages: no\npackages:\n  - 'packages/*' # all\n  - \"!**/test/**\"\nother: [a, b]\n";
        assert_eq!(
            string_list("f", text, "packages"),
            Ok(vec!["packages/*".to_owned(), "!**/test/**".to_owned()])
        );
        assert_eq!(string_list("f", "packages: [a, b]", "packages").unwrap(), ["a", "b"]);
        assert_eq!(string_list("f", "", "packages"), Ok(vec![]));
    }

    #[test]
    fn what_is_no_list_or_no_yaml_is_a_problem_with_a_line() {
        assert_eq!(
            string_list("f", "a: 1\npackages: all\n", "packages").unwrap_err().line,
            Some(2)
        );
        let broken = string_list("f", "packages:\n  - 'a\n", "packages").unwrap_err();
        assert!(broken.line.is_some());
    }
}
