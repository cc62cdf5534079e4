//! Words of names and texts, as a search compares them.
//!
//! A name counts as a whole and in its parts: `HttpServer2` is `httpserver2`, `http`, `server` and `2`. Case does
//! not matter, and neither does the `s` of a plural.

/// Words of a question that say nothing about code.
const STOP_WORDS: [&str; 22] = [
    "a", "an", "and", "are", "as", "at", "by", "does", "for", "how", "in", "is", "it", "of", "on",
    "or", "that", "the", "this", "to", "where", "with",
];

/// Words shorter than this keep their final `s`.
const MIN_PLURAL_BYTES: usize = 4;

/// The longest word; longer ones are data.
const MAX_WORD_BYTES: usize = 64;

/// Calls `take` with each word of a name: the whole name first, then its parts if there are several.
pub(crate) fn of_name(name: &str, mut take: impl FnMut(&str)) {
    let whole = name.trim_matches(|c: char| !c.is_alphanumeric());
    if whole.is_empty() || whole.len() > MAX_WORD_BYTES {
        return;
    }
    let mut buffer = String::with_capacity(whole.len());
    let mut emit = |part: &str| {
        buffer.clear();
        buffer.extend(part.chars().flat_map(char::to_lowercase));
        take(singular(&buffer));
    };
    let parts = parts(whole);
    emit(whole);
    if parts.len() > 1 {
        parts.into_iter().for_each(emit);
    }
}

/// Calls `take` with each word of a text.
pub(crate) fn of_text(text: &str, mut take: impl FnMut(&str)) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for word in text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()) {
        of_name(word, &mut take);
    }
}

/// Returns the distinct words of a query without stop words, unless it has no others.
pub(crate) fn of_query(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    of_text(query, |word| {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    });
    let telling: Vec<_> =
        words.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).cloned().collect();
    if telling.is_empty() { words } else { telling }
}

fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if word.len() >= MIN_PLURAL_BYTES && !stem.ends_with('s') => stem,
        _ => word,
    }
}

/// Splits a name at separators, at changes of case and around digits.
fn parts(name: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Lower,
        Upper,
        Digit,
        Other,
    }
    let class = |c: char| match c {
        _ if c.is_ascii_digit() => Class::Digit,
        _ if c.is_uppercase() => Class::Upper,
        _ if c.is_alphanumeric() => Class::Lower,
        _ => Class::Other,
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before = Class::Other;
    let mut cut = |from: usize, to: usize| {
        let part = name[from..to].trim_matches(|c: char| !c.is_alphanumeric());
        if !part.is_empty() {
            parts.push(part);
        }
    };
    let mut previous = 0;
    for (at, c) in name.char_indices() {
        let now = class(c);
        match (before, now) {
            // The last capital of an acronym begins the next word, as in `HTTPServer`, unless the acronym is a
            // plural, as in `getURLs`.
            (Class::Upper, Class::Lower) => {
                let is_plural = c == 's' && !name[at + 1..].starts_with(char::is_lowercase);
                if previous > start && !is_plural {
                    cut(start, previous);
                    start = previous;
                }
            }
            (one, other) if one == other => {}
            _ => {
                cut(start, at);
                start = at;
            }
        }
        before = now;
        previous = at;
    }
    cut(start, name.len());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn words(name: &str) -> Vec<String> {
        let mut all = Vec::new();
        of_name(name, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn a_name_counts_as_a_whole_and_in_its_parts() {
        for (name, expected) in [
            ("run", vec!["run"]),
            ("HTTPServer2", vec!["httpserver2", "http", "server", "2"]),
            ("parse_query_params", vec!["parse_query_param", "parse", "query", "param"]),
            ("getURLs", vec!["geturl", "get", "url"]),
            ("_private", vec!["private"]),
            ("MAX_SIZE", vec!["max_size", "max", "size"]),
            ("class", vec!["class"]),
            ("___", vec![]),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn a_query_is_its_telling_words() {
        assert_eq!(of_query("where is the Rate limit handled"), ["rate", "limit", "handled"]);
        assert_eq!(of_query("where is it"), ["where", "is", "it"]);
        assert_eq!(of_query("?!"), Vec::<String>::new());
    }
}
