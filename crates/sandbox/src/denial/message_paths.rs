//! Finding paths in the messages of programs.

/// The longest path that is taken from a message: the kernel takes none that is longer.
const MAX_PATH_BYTES: usize = 4096;

/// How many paths one message may name. The calls of the kernel take two.
const MAX_PATHS: usize = 2;

/// What stands between a path and the error where the path comes first, in small letters.
const BETWEEN: [&str; 7] = [
    "cannot open",
    "cannot mkdir",
    "cannot write",
    "cannot unlink",
    "cannot stat",
    "cannot utime",
    "bad interpreter",
];

/// Returns the paths that a message names; `error` is where the words for the error stand in it.
pub(super) fn paths(line: &str, error: std::ops::Range<usize>) -> Vec<String> {
    let (before, words, after) = (&line[..error.start], &line[error.clone()], &line[error.end..]);
    let quoted = quoted(line).into_iter().filter(|text| !text.contains(words));
    let quoted: Vec<String> = quoted.filter(|text| is_path(text)).map(str::to_owned).collect();
    let found = [quoted, at_the_end(before), at_the_start(after)];
    let found = found.into_iter().find(|paths| !paths.is_empty()).unwrap_or_default();
    let short = found.into_iter().filter(|path| path.len() <= MAX_PATH_BYTES);
    short.take(MAX_PATHS).collect()
}

/// Returns the paths at the end of a text: after its last colon, or before a phrase that says
/// what could not be done with them.
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

/// Returns the path that begins a text, or stands in it as a word.
fn at_the_start(text: &str) -> Vec<String> {
    let text = text.trim_end();
    match text.strip_prefix(": ") {
        Some(path) if path.starts_with('/') => split_pair(path.trim_end_matches([')', '>'])),
        _ => text.split(' ').map(trim_word).filter(|word| word.starts_with('/')).collect(),
    }
}

/// Returns the paths that a part of a message ends with. One that is absolute may have spaces.
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

/// Returns whether a text looks like a path, and not like a word or an address.
fn is_path(text: &str) -> bool {
    let relative = text.contains('/') || text == ".git";
    (text.starts_with('/') || relative) && !text.contains("://") && !text.contains('\0')
}

/// Returns the texts between quotation marks.
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

/// Finds the mark that closes a quotation: nothing that belongs to a word follows it.
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
