//! Extraction of paths from error messages.
//!
//! Quoted paths are preferred, then the text before the error phrase, then the text after it. Unquoted
//! absolute paths may contain spaces; unquoted relative ones need a slash.

/// The longest path that the kernel accepts.
const MAX_PATH_BYTES: usize = 4096;

/// The most paths in one message; a rename has two.
const MAX_PATHS: usize = 2;

/// Phrases between a path and the error, in lower case, in messages that begin with the path.
const BETWEEN: [&str; 7] = [
    "cannot open",
    "cannot mkdir",
    "cannot write",
    "cannot unlink",
    "cannot stat",
    "cannot utime",
    "bad interpreter",
];

/// Returns the paths in a message; `error` is the range of its error phrase.
pub(super) fn paths(line: &str, error: std::ops::Range<usize>) -> Vec<String> {
    let before = &line[..error.start];
    let words = &line[error.clone()];
    let after = &line[error.end..];
    let quoted = quoted(line).into_iter().filter(|text| !text.contains(words));
    let quoted: Vec<String> = quoted.filter(|text| is_path(text)).map(str::to_owned).collect();
    let found = [quoted, at_the_end(before), at_the_start(after)];
    let found = found.into_iter().find(|paths| !paths.is_empty()).unwrap_or_default();
    let short = found.into_iter().filter(|path| path.len() <= MAX_PATH_BYTES);
    short.take(MAX_PATHS).collect()
}

/// Returns the paths at the end of a text: after its last colon, or before a phrase of [`BETWEEN`].
pub(super) fn at_the_end(text: &str) -> Vec<String> {
    let text = text.trim_end_matches([':', ' ', '(']);
    let segments: Vec<&str> = text.split(": ").collect();
    let Some((last, front)) = segments.split_last() else { return Vec::new() };
    let between = |text: &str| BETWEEN.contains(&text.trim().to_ascii_lowercase().as_str());
    match front {
        // The very first segment is the name of the program.
        [_, .., named] if between(last) => in_segment(named),
        _ => in_segment(last),
    }
}

/// Returns the path at the start of a text, or the words in it that are absolute paths.
fn at_the_start(text: &str) -> Vec<String> {
    let text = text.trim_end();
    match text.strip_prefix(": ") {
        Some(path) if path.starts_with('/') => split_pair(path.trim_end_matches([')', '>'])),
        _ => text.split(' ').map(trim_word).filter(|word| word.starts_with('/')).collect(),
    }
}

/// Returns the paths at the end of a segment. An absolute one may contain spaces.
fn in_segment(segment: &str) -> Vec<String> {
    let segment = segment.trim();
    if segment.starts_with('/') {
        return split_pair(segment);
    }
    if let Some(at) = segment.find(" /") {
        return split_pair(&segment[at + 1..]);
    }
    let last = segment.rsplit(' ').next().map(trim_word);
    last.into_iter().filter(|word| is_path(word)).collect()
}

fn split_pair(text: &str) -> Vec<String> {
    let arrows = [" -> ", " => "].iter().find_map(|arrow| text.split_once(arrow));
    let pair = arrows.or_else(|| {
        let at = text.find(" to /")?;
        Some((&text[..at], &text[at + " to ".len()..]))
    });
    match pair {
        Some((first, second)) => vec![trim_word(first), trim_word(second)],
        None => vec![text.to_owned()],
    }
}

fn trim_word(word: &str) -> String {
    let edge = |c: char| matches!(c, ',' | ';' | ':' | '(' | ')' | '<' | '>' | '\'' | '"' | '`');
    word.trim_matches(edge).to_owned()
}

/// Returns whether a text looks like a path and not like a word or a URL.
fn is_path(text: &str) -> bool {
    let relative = text.contains('/') || text == ".git";
    (text.starts_with('/') || relative) && !text.contains("://") && !text.contains('\0')
}

fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some((at, mark)) = rest.char_indices().find(|(_, c)| closing(*c).is_some()) {
        let previous = rest[..at].chars().next_back().unwrap_or(before);
        let inner = &rest[at + mark.len_utf8()..];
        // An apostrophe inside a word opens nothing.
        let opens = !previous.is_alphanumeric();
        let end = closing(mark).filter(|_| opens).and_then(|close| end_of(inner, close));
        let taken = match end {
            Some((end, length)) => {
                found.push(&inner[..end]);
                end + length
            }
            None => 0,
        };
        rest = &inner[taken..];
        before = if taken == 0 { mark } else { ' ' };
    }
    found
}

/// Finds the closing quotation mark: one that is not followed by a letter or digit.
fn end_of(text: &str, close: [char; 2]) -> Option<(usize, usize)> {
    text.char_indices()
        .filter(|(_, c)| close.contains(c))
        .map(|(at, c)| (at, c.len_utf8()))
        .find(|(at, length)| !text[at + length..].starts_with(|c: char| c.is_alphanumeric()))
        .filter(|(at, _)| *at > 0)
}

fn closing(mark: char) -> Option<[char; 2]> {
    match mark {
        '\'' => Some(['\'', '\'']),
        '"' => Some(['"', '"']),
        '\u{2018}' => Some(['\u{2019}', '\u{2019}']),
        '`' => Some(['\'', '`']),
        _ => None,
    }
}
