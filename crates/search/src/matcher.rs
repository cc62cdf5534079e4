//! Compilation of the pattern of a search, in bounded memory.
//!
//! Outside of multiline searches a match never contains a line ending, which lets the regex engine
//! skip lines quickly. `$` also matches before `\r\n`, unless the pattern itself mentions carriage
//! returns.

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use crate::{Case, Error, GrepRequest, Syntax};

const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// Bounds the memory of a compiled pattern, which excludes `(a{1000}){1000}`.
const MAX_REGEX_BYTES: usize = 16 * 1024 * 1024;

/// Bounds the lazy DFA cache of each thread.
const MAX_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Bounds the nesting of groups, and with it the recursion of the compiler.
const MAX_NESTING: u32 = 128;

const LINE_END: u8 = b'\n';

/// A compiled pattern and its line terminator.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) matcher: RegexMatcher,
    pub(crate) line_end: LineTerminator,
}

impl Pattern {
    pub(crate) fn compile(request: &GrepRequest) -> Result<Self, Error> {
        if request.pattern.len() > MAX_PATTERN_BYTES {
            return Err(Error::TooLong { what: "the pattern", limit: MAX_PATTERN_BYTES });
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .unicode(true)
            .word(request.whole_word)
            .fixed_strings(request.syntax == Syntax::Literal)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_CACHE_BYTES)
            .nest_limit(MAX_NESTING);
        match request.case {
            Case::Sensitive => {}
            Case::Insensitive => _ = builder.case_insensitive(true),
            Case::Smart => _ = builder.case_smart(true),
        }
        let mut line_end = LineTerminator::byte(LINE_END);
        if request.multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(LINE_END));
            if wants_either_line_end(request) {
                builder.crlf(true);
                line_end = LineTerminator::crlf();
            }
        }
        let matcher = builder.build(&request.pattern).map_err(|error| explain(&error, request))?;
        Ok(Self { matcher, line_end })
    }
}

/// Returns true if `$` should also match before `\r\n`. In that mode a pattern that contains `\r`
/// would match nothing, so such patterns are excluded.
fn wants_either_line_end(request: &GrepRequest) -> bool {
    let pattern = &request.pattern;
    request.syntax == Syntax::Regex
        && pattern.contains('$')
        && !["\\r", "\r", "\\x", "\\u", "\\s"].iter().any(|escape| pattern.contains(escape))
}

fn explain(error: &grep_regex::Error, request: &GrepRequest) -> Error {
    let mut explanation = error.to_string();
    if !request.multiline && (request.pattern.contains('\n') || request.pattern.contains("\\n")) {
        explanation.push_str("; a match over several lines needs a multiline search");
    }
    Error::Pattern { explanation }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grep_matcher::Matcher;

    fn explanation(request: &GrepRequest) -> String {
        Pattern::compile(request).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_pattern_is_explained() {
        let text = explanation(&GrepRequest::new("[unclosed"));
        assert!(text.contains("unclosed character class"), "{text}");
        let text = explanation(&GrepRequest::new("a\\nb"));
        assert!(text.contains("needs a multiline search"), "{text}");
    }

    #[test]
    fn a_pattern_cannot_take_much_memory() {
        let text = explanation(&GrepRequest::new("(\\w{1000}){1000}"));
        assert!(text.contains("size limit"), "{text}");
        let nested = "(".repeat(1000) + &")".repeat(1000);
        assert!(Pattern::compile(&GrepRequest::new(nested)).is_err());
        let long = GrepRequest::new("a".repeat(MAX_PATTERN_BYTES + 1));
        assert!(explanation(&long).contains("bytes"));
    }

    #[test]
    fn smart_case_is_sensitive_if_the_pattern_has_a_capital() {
        for (pattern, matches) in [("needle", true), ("Needle", false)] {
            let request = GrepRequest { case: Case::Smart, ..GrepRequest::new(pattern) };
            let matcher = Pattern::compile(&request).unwrap().matcher;
            assert_eq!(matcher.is_match(b"NEEDLE").unwrap(), matches, "{pattern}");
        }
    }
}
