//! Decoding and encoding of request paths.

use carrel_client::percent_encode;

use crate::tool::ToolRefusal;

/// Segments of a path. No API of a tracker has nearly as many.
const MAX_SEGMENTS: usize = 64;

/// Splits a path into decoded segments. `slashed` is the only segment that may contain a slash, and `fill`
/// returns the values of placeholders.
pub(super) fn segments(
    path: &str,
    slashed: Option<&str>,
    fill: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, ToolRefusal> {
    let refused = |rule: &str| ToolRefusal::Arguments(format!("the path {path:?} {rule}"));
    let rest = path.strip_prefix('/').ok_or_else(|| refused("does not begin with /"))?;
    if rest.contains(['?', '#']) {
        return Err(refused("has a query; use the query argument"));
    }
    let parts: Vec<&str> = rest.split('/').collect();
    if parts.len() > MAX_SEGMENTS {
        return Err(refused("has too many segments"));
    }
    let one = |part: &str| match fill(part) {
        Some(filled) => Ok(filled),
        None => decoded(part, slashed).map_err(refused),
    };
    parts.into_iter().map(one).collect()
}

/// Decodes a segment, and refuses it if a server could read it in two ways.
fn decoded(part: &str, slashed: Option<&str>) -> Result<String, &'static str> {
    let text = unescape(part).ok_or("has an invalid escape or invalid UTF-8")?;
    if slashed.is_some_and(|allowed| allowed.eq_ignore_ascii_case(&text)) {
        return Ok(text);
    }
    match text.as_str() {
        "" => Err("has an empty segment"),
        "." | ".." => Err("has a `.` or `..` segment"),
        _ if text.contains(['/', '\\']) => Err("has an escaped slash"),
        _ if text.contains(['%', ';']) => Err("has a `%` or `;` that is ambiguous"),
        _ if text.contains(['{', '}']) || text.starts_with(':') => {
            Err("has an unknown placeholder")
        }
        _ if text.chars().any(char::is_control) => Err("has a control character"),
        _ => Ok(text),
    }
}

fn unescape(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (char::from(rest.next()?), char::from(rest.next()?));
            let value = high.to_digit(16)? * 16 + low.to_digit(16)?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn join(pieces: &[String]) -> String {
    pieces.iter().flat_map(|part| ["/".to_owned(), percent_encode(part)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    fn at(path: &str) -> Result<Vec<String>, ToolRefusal> {
        segments(path, Some("acme/web"), |part| (part == ":id").then(|| "acme/web".to_owned()))
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for path in [
            "",
            "repos",
            "//repos",
            "/",
            "/repos/",
            "/repos//x",
            "/repos/./x",
            "/repos/../x",
            "/repos/%2e%2e/x",
            "/repos/.%2E/x",
            "/repos/a%2Fb",
            "/repos/a%2fb",
            "/repos/a%5cb",
            "/repos/a\\b",
            "/repos/%",
            "/repos/%2",
            "/repos/%zz",
            "/repos/%252e%252e",
            "/repos/a%00b",
            "/repos/a\nb",
            "/repos/x?y=1",
            "/repos/x#y",
            "/repos/x;y=1",
            "https://evil.example/",
            "/repos/{owner}",
            "/repos/:other",
            "/repos/%ff",
        ] {
            assert!(matches!(at(path), Err(ToolRefusal::Arguments(_))), "{path}");
        }
        assert_eq!(at("/projects/:id/issues").unwrap(), ["projects", "acme/web", "issues"]);
        assert_eq!(at("/projects/ACME%2Fweb/a%20b").unwrap(), ["projects", "ACME/web", "a b"]);
    }

    proptest! {
        /// The segments that are sent are the segments that were checked, for any spelling.
        #[test]
        fn the_checked_segments_are_the_sent_segments(path in "/[a-z%./2eEfF:;\\\\ ?#{}\u{e4}]{0,20}") {
            let Ok(parts) = at(&path) else { return Ok(()) };
            let target = join(&parts);
            let sent: Vec<String> =
                target.split('/').skip(1).map(|part| unescape(part).unwrap()).collect();
            prop_assert_eq!(&sent, &parts);
            prop_assert!(target.bytes().all(|byte| byte.is_ascii_graphic()));
            for part in &sent {
                prop_assert!(!part.is_empty() && part != "." && part != "..");
                prop_assert!(part == "acme/web" || !part.contains('/'));
            }
        }
    }
}
