//! The parts of YAML that project files need: a list of strings, or the keys of a mapping, under a
//! top-level key.

use saphyr_parser::{Event, Parser};

use crate::profile::ProfileProblem;

/// Bounds the parser events of one file; a list of packages has a few dozen.
const MAX_EVENTS: usize = 20_000;

/// Returns the strings of the list under a top-level key; empty if there is no such key.
pub(crate) fn string_list(
    file: &str,
    text: &str,
    key: &str,
) -> Result<Vec<String>, ProfileProblem> {
    let mut depth = 0_usize;
    // At depth 1 keys and values alternate.
    let mut expect_key = true;
    let mut inside = false;
    let mut items = Vec::new();
    for event in Parser::new_from_str(text).take(MAX_EVENTS) {
        let (event, span) = event.map_err(|error| ProfileProblem {
            file: file.to_owned(),
            line: Some(error.marker().line()),
            message: format!("invalid YAML: {}", error.info()),
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

/// Returns the keys of the mapping under a top-level key; empty if there is no such mapping.
pub(crate) fn keys(file: &str, text: &str, key: &str) -> Result<Vec<String>, ProfileProblem> {
    let mut depth = 0_usize;
    // Keys and values alternate at each depth that is looked at: the document and the mapping.
    let mut expect_key = [true; 2];
    let mut inside = false;
    let mut found = Vec::new();
    for event in Parser::new_from_str(text).take(MAX_EVENTS) {
        let (event, _) = event.map_err(|error| ProfileProblem {
            file: file.to_owned(),
            line: Some(error.marker().line()),
            message: format!("invalid YAML: {}", error.info()),
        })?;
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                depth += 1;
                if depth == 2 {
                    expect_key[1] = true;
                }
            }
            Event::MappingEnd | Event::SequenceEnd => {
                depth = depth.saturating_sub(1);
                if (1..=2).contains(&depth) {
                    expect_key[depth - 1] = true;
                }
            }
            Event::Scalar(value, ..) if (1..=2).contains(&depth) => {
                let is_key = expect_key[depth - 1];
                expect_key[depth - 1] = !is_key;
                match (depth, is_key) {
                    (1, true) => inside = value == key,
                    (2, true) if inside => found.push(value.into_owned()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(found)
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
    fn only_the_keys_of_the_mapping_under_the_key_are_read() {
        let text = "version: '3'\nvars: {A: 1}\ntasks:\n  test: go test\n  lint:\n    cmds: [a, b]\n    desc: x\n  fmt: gofmt\nother:\n  no: 1\n";
        assert_eq!(keys("f", text, "tasks").unwrap(), ["test", "lint", "fmt"]);
        assert_eq!(keys("f", "tasks: 1\n", "tasks"), Ok(vec![]));
    }

    #[test]
    fn invalid_yaml_and_other_types_are_reported_with_a_line() {
        assert_eq!(
            string_list("f", "a: 1\npackages: all\n", "packages").unwrap_err().line,
            Some(2)
        );
        let broken = string_list("f", "packages:\n  - 'a\n", "packages").unwrap_err();
        assert!(broken.line.is_some());
    }
}
