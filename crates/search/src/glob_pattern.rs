//! Compilation of globs, with the position of syntax errors.
//!
//! A glob without `/` matches names at any depth. One with `/` matches paths, relative either to
//! the searched directory or to the workspace's root: callers mean one or the other, so both forms
//! are compiled. A leading `/` anchors a glob at the workspace's root, a leading `./` is ignored,
//! and a trailing `/` matches everything below a directory.
//!
//! The glob library does not report where a pattern is invalid. The position is found by compiling
//! shorter prefixes until one is valid.

use std::borrow::Cow;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use crate::error::Error;

/// Bounds the length of one glob.
pub const MAX_GLOB_BYTES: usize = 4096;

/// Bounds the globs, and the file types, of one search.
pub const MAX_GLOBS: usize = 100;

/// A glob over paths relative to the workspace's root.
#[derive(Debug)]
pub(crate) struct PathGlob(GlobSet);

impl PathGlob {
    /// Compiles a glob for a search in `directory`, which is relative to the workspace's root.
    pub(crate) fn compile(glob: &str, directory: &Path) -> Result<Self, Error> {
        let pattern = strip_here(glob);
        let mut set = GlobSetBuilder::new();
        for form in forms(&with_contents(pattern), directory) {
            let form = if form.contains('/') { form } else { format!("**/{form}") };
            let compiled = parse(form.trim_start_matches('/'));
            set.add(compiled.map_err(|_| explain(glob, pattern))?);
        }
        set.build().map(Self).map_err(|error| invalid(glob, pattern, &error))
    }

    pub(crate) fn matches(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

/// Compiles globs that select files; a leading `!` excludes, and the last match decides.
pub(crate) fn compile_filter(globs: &[String], directory: &Path) -> Result<Override, Error> {
    if globs.len() > MAX_GLOBS {
        return Err(Error::TooMany { what: "globs", limit: MAX_GLOBS });
    }
    // Paths are relative to the workspace's root, so the builder has no prefix to strip.
    let mut builder = OverrideBuilder::new(".");
    for glob in globs {
        let (sign, pattern) = match glob.strip_prefix('!') {
            Some(rest) => ("!", strip_here(rest)),
            None => ("", strip_here(glob)),
        };
        parse(pattern).map_err(|_| explain(glob, pattern))?;
        // An excluded directory is not entered, so its contents need no pattern.
        let pattern = &if sign.is_empty() { with_contents(pattern) } else { pattern.into() };
        for form in forms(pattern, directory) {
            // The builder parses lines of ignore files, in which these start a comment or a negation.
            let escape = if form.starts_with(['#', '!']) { "\\" } else { "" };
            builder
                .add(&format!("{sign}{escape}{form}"))
                .map_err(|error| invalid(glob, pattern, &error))?;
        }
    }
    builder.build().map_err(|error| invalid(&globs.join(" "), "", &error))
}

/// Returns the forms of a glob relative to the workspace's root.
fn forms(pattern: &str, directory: &Path) -> Vec<String> {
    let mut forms = vec![pattern.to_owned()];
    let is_path = pattern.trim_end_matches('/').contains('/') && !pattern.starts_with('/');
    if let (true, Some(directory)) = (is_path, directory.to_str().filter(|path| !path.is_empty())) {
        forms.push(format!("{}/{pattern}", globset::escape(directory)));
    }
    forms
}

/// Extends a glob that ends in `/` to everything below such directories.
fn with_contents(pattern: &str) -> Cow<'_, str> {
    match pattern.strip_suffix('/') {
        Some("") | None => pattern.into(),
        Some(directory) if directory.contains('/') => format!("{pattern}**").into(),
        Some(_) => format!("**/{pattern}**").into(),
    }
}

fn strip_here(glob: &str) -> &str {
    let mut glob = glob;
    while let Some(rest) = glob.strip_prefix("./") {
        glob = rest;
    }
    glob
}

fn parse(pattern: &str) -> Result<Glob, globset::Error> {
    if pattern.len() > MAX_GLOB_BYTES {
        // Too long to compile its prefixes; any error will do.
        return Glob::new("[");
    }
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
}

/// Creates the error for a glob that does not compile.
fn explain(glob: &str, pattern: &str) -> Error {
    if pattern.len() > MAX_GLOB_BYTES {
        return Error::TooLong { what: "a glob", limit: MAX_GLOB_BYTES };
    }
    match parse(pattern) {
        Err(error) => invalid(glob, pattern, error.kind()),
        Ok(_) => invalid(glob, pattern, &"it cannot be used here"),
    }
}

fn invalid(glob: &str, pattern: &str, reason: &impl std::fmt::Display) -> Error {
    let sane = |end: &usize| parse(&pattern[..*end]).is_ok();
    let ends = (0..pattern.len()).rev().filter(|end| pattern.is_char_boundary(*end));
    let longest = ends.take(MAX_GLOB_BYTES).find(sane).unwrap_or(0);
    let before = glob.len() - pattern.len().min(glob.len()) + longest;
    let position = glob.get(..before).map_or(before, |start| start.chars().count()) + 1;
    Error::Glob { glob: glob.to_owned(), position, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, directory: &str, path: &str) -> bool {
        PathGlob::compile(glob, Path::new(directory)).unwrap().matches(Path::new(path))
    }

    #[test]
    fn globs_match_names_and_paths() {
        for (glob, directory, path, expected) in [
            ("*.go", "", "a.go", true),
            ("*.go", "", "deep/er/a.go", true),
            ("*.go", "", "a.rs", false),
            ("**/*.go", "", "a.go", true),
            ("**/*.go", "", "x/y/a.go", true),
            ("src/*.go", "", "src/a.go", true),
            ("src/*.go", "", "src/x/a.go", false),
            ("src/**/*.go", "", "src/a.go", true),
            ("src/**", "", "src/x/y", true),
            ("a?c", "", "abc", true),
            ("a?c", "", "a/c", false),
            ("f[0-9].rs", "", "f1.rs", true),
            ("f[!0-9].rs", "", "f1.rs", false),
            ("*.{rs,go}", "", "x/a.rs", true),
            ("*.{rs,go}", "", "x/a.py", false),
            ("./a/*.rs", "", "a/b.rs", true),
            ("././*.rs", "", "a/b.rs", true),
            ("sub/*.rs", "sub", "sub/a.rs", true),
            ("inner/*.rs", "sub", "sub/inner/a.rs", true),
            ("inner/*.rs", "sub", "inner/a.rs", true),
            ("inner/*.rs", "s[u]b", "s[u]b/inner/a.rs", true),
            ("/inner/*.rs", "sub", "sub/inner/a.rs", false),
            ("/inner/*.rs", "sub", "inner/a.rs", true),
            ("/top", "", "top", true),
            ("*.GO", "", "a.go", false),
            ("src/", "", "src/deep/a.go", true),
            ("src/", "", "a/src/b", true),
            ("a/src/", "", "b/a/src/c", false),
            ("src/", "", "src", false),
        ] {
            assert_eq!(
                matches(glob, directory, path),
                expected,
                "{glob} in {directory:?} on {path}"
            );
        }
    }

    #[test]
    fn the_position_of_an_error_is_reported() {
        for (glob, position) in
            [("a[bc", 2), ("src/{a,b", 5), ("x}", 2), ("é[z-a]", 2), ("abc\\", 4), ("./q[", 4)]
        {
            let Error::Glob { position: found, .. } =
                PathGlob::compile(glob, Path::new("")).unwrap_err()
            else {
                panic!("{glob} gives another error")
            };
            assert_eq!(found, position, "{glob}");
        }
        let error = compile_filter(&["*.rs".into(), "!a[".into()], Path::new("")).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("invalid glob `!a[` at character 3: unclosed"), "{text}");
    }

    #[test]
    fn the_last_matching_glob_of_a_filter_decides() {
        let filter = |globs: &[&str], path: &str| {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            let filter = compile_filter(&globs, Path::new("sub")).unwrap();
            !filter.matched(path, false).is_ignore()
        };
        assert!(filter(&["*.rs"], "sub/a.rs"));
        assert!(!filter(&["*.rs"], "sub/a.py"));
        assert!(!filter(&["!*.rs"], "sub/a.rs"));
        assert!(filter(&["!*.rs"], "sub/a.py"));
        assert!(!filter(&["*.rs", "!a.rs"], "sub/a.rs"));
        assert!(filter(&["!a.rs", "*.rs"], "sub/a.rs"));
        assert!(filter(&["in/*.rs"], "sub/in/a.rs"));
        assert!(filter(&["sub/in/*.rs"], "sub/in/a.rs"));
        assert!(filter(&["#x"], "sub/#x"));
        assert!(filter(&["in/"], "sub/in/deep/a.rs"));
        assert!(!filter(&["in/"], "sub/out/a.rs"));
        assert!(filter(&["*.{rs,py}"], "sub/a.py"));
    }
}
