//! Extraction of messages, diffs, locations and JSON from output that is written for people.
//!
//! These functions are heuristics: they improve messages and locations, and no verdict depends on
//! them.

use std::borrow::Cow;

use serde_json::Value;

use crate::parse::{MAX_MESSAGE_BYTES, ParseContext};

const MAX_DIFF_LINES: usize = 40;

/// Stands in captured output for the middle that was dropped at the capture limit.
pub const DROPPED_OUTPUT: char = '\0';

/// Bounds the lines of unexplained output, per stream.
const MAX_TAIL_LINES: usize = 30;

/// Starts of lines with expected and actual values.
const DIFF_MARKS: [&str; 13] = [
    "left:",
    "- Expected",
    "+ actual",
    "--- Expected",
    "+++ Actual",
    "got:",
    "want:",
    "Diff:",
    "Full diff",
    "Differing items",
    "First differing",
    "Expected:",
    "expected:",
];

const TRACE_MARKS: [&str; 4] = ["stack backtrace:", "at ", "Traceback ", "note: run with"];

/// Decodes output without terminal escapes; invalid UTF-8 is replaced.
pub(crate) fn plain(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\u{1b}') { Cow::Owned(without_escapes(&text)) } else { text }
}

fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if rest.next_if_eq(&'[').is_some() {
            // A CSI sequence ends with a letter.
            while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
        } else if rest.next_if_eq(&'(').is_some() {
            // A character set selection has one letter.
            rest.next();
        }
    }
    plain
}

/// Truncates a message to [`MAX_MESSAGE_BYTES`] at a character boundary.
pub(crate) fn truncated(text: &str) -> String {
    let text = text.trim_end();
    if text.len() <= MAX_MESSAGE_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_MESSAGE_BYTES);
    format!("{}…", &text[..end])
}

/// Returns the part of a message with the expected and actual values.
pub(crate) fn diff(message: &str) -> Option<String> {
    let is_mark = |line: &&str| DIFF_MARKS.iter().any(|mark| line.trim_start().starts_with(mark));
    let start = message.lines().position(|line| is_mark(&line))?;
    let lines = message.lines().skip(start).take_while(|line| !is_trace(line)).take(MAX_DIFF_LINES);
    let diff: Vec<&str> = lines.collect();
    Some(truncated(&diff.join("\n")))
}

/// Returns a message without the stack trace after it.
pub(crate) fn without_trace(message: &str) -> String {
    let lines: Vec<&str> = message.lines().take_while(|line| !is_trace(line)).collect();
    truncated(lines.join("\n").trim())
}

fn is_trace(line: &str) -> bool {
    let line = line.trim_start();
    TRACE_MARKS.iter().any(|mark| line.starts_with(mark))
}

/// Returns the end of the output, standard error last.
pub(crate) fn tail(context: &ParseContext<'_>) -> Option<String> {
    let printed = [&context.stdout, &context.stderr].map(|text| last_lines(text));
    let parts: Vec<String> = printed.into_iter().filter(|part| !part.trim().is_empty()).collect();
    (!parts.is_empty()).then(|| truncated_front(&parts.join("\n")))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(MAX_TAIL_LINES)..].join("\n")
}

/// Truncates the start of a text, since the reason is at the end.
fn truncated_front(text: &str) -> String {
    let text = text.trim_matches('\n');
    if text.len() <= MAX_MESSAGE_BYTES {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - MAX_MESSAGE_BYTES);
    format!("…{}", &text[start..])
}

/// Returns the first JSON document in output that may have other lines around it, such as those of
/// a package manager.
pub(crate) fn json(text: &str) -> Option<Value> {
    let starts = |line: &str| line.starts_with(['{', '[']);
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if starts(line) {
            let mut values =
                serde_json::Deserializer::from_str(&text[offset..]).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                return Some(value);
            }
        }
        offset += line.len();
    }
    None
}

/// Returns the document of a report, as far as it goes if the report was cut at a limit.
pub(crate) fn document(context: &ParseContext<'_>, text: &str) -> Option<Value> {
    let cut = || context.truncated.then(|| serde_json::from_str(&closed(text)?).ok()).flatten();
    json(text).or_else(cut)
}

/// Closes a JSON document after the last complete element of a list. The text ends at the byte that
/// stands for dropped output ([`DROPPED_OUTPUT`]), which no document contains.
fn closed(text: &str) -> Option<String> {
    let start = text.find(['{', '['])?;
    let text = text[start..].split(DROPPED_OUTPUT).next()?;
    let mut open: Vec<u8> = Vec::new();
    let mut complete: Option<(usize, Vec<u8>)> = None;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                open.pop();
                if open.last() == Some(&b']') {
                    complete = Some((at + 1, open.clone()));
                }
            }
            _ => {}
        }
    }
    let (end, open) = complete?;
    let closers: String = open.iter().rev().map(|byte| char::from(*byte)).collect();
    Some(format!("{}{closers}", &text[..end]))
}

/// Splits `path:line:column` or `path:line` from the end of a text.
pub(crate) fn location(text: &str) -> Option<(&str, u64, Option<u64>)> {
    let (rest, last) = text.rsplit_once(':')?;
    let last: u64 = last.parse().ok()?;
    match rest.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?))) {
        Some((path, line)) if !path.is_empty() => Some((path, line, Some(last))),
        _ => Some((rest, last, None)),
    }
}

/// Returns the first location of user code in a JavaScript stack trace.
pub(crate) fn stack_location(context: &ParseContext<'_>, trace: &str) -> Option<(String, u64)> {
    trace.lines().find_map(|line| {
        let line = line.trim();
        let inner = line.rsplit_once('(').map_or(line, |(_, inner)| inner.trim_end_matches(')'));
        let inner = inner.strip_prefix("at ").unwrap_or(inner).trim_start_matches("async ");
        let (path, line, _) = location(inner)?;
        let file = context.file(path);
        (ParseContext::is_user_code(&file) && !path.contains(' ')).then_some((file, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_are_removed() {
        assert_eq!(plain(b"\x1b[1;31mred\x1b(B\x1b[0m text"), "red text");
    }

    #[test]
    fn locations_are_parsed_from_the_end() {
        assert_eq!(location("/a/b.js:5:38"), Some(("/a/b.js", 5, Some(38))));
        assert_eq!(location("a.py:11"), Some(("a.py", 11, None)));
        assert_eq!(location("file:///a.js:1:2"), Some(("file:///a.js", 1, Some(2))));
        assert_eq!(location("nothing"), None);
    }

    #[test]
    fn json_is_found_behind_other_lines() {
        assert_eq!(
            json("> x@1 lint\n> biome\n\n{\"a\":1}\ndone\n"),
            Some(serde_json::json!({"a": 1}))
        );
        assert_eq!(json("[warn] text\n"), None);
    }

    #[test]
    fn a_document_that_was_cut_is_closed_after_its_last_complete_element() {
        let cases = [
            (r#"[{"a":1},{"b":[1,2]},{"c"#, r#"[{"a":1},{"b":[1,2]}]"#),
            (
                r#"{"files":[{"x":["]"]},{"y":[{"z":1},{"#,
                r#"{"files":[{"x":["]"]},{"y":[{"z":1}]}]}"#,
            ),
            ("[{\"a\":1},{\"b\":\n\0\n3}]", r#"[{"a":1}]"#),
        ];
        for (cut, expected) in cases {
            assert_eq!(closed(cut).as_deref(), Some(expected), "{cut}");
        }
        assert_eq!(closed("[1, 2"), None);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let cut = truncated(&"ä".repeat(MAX_MESSAGE_BYTES));
        assert!(cut.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8() && cut.ends_with("ä…"));
    }
}
