//! Wildcards in the member lists of workspaces, matched as strings: member directories are never
//! opened.

/// Bounds the components of patterns and paths, which come from untrusted files.
const MAX_PARTS: usize = 64;

/// Bounds the alternatives of one pattern.
const MAX_ALTERNATIVES: usize = 64;

/// Returns true if a path matches a pattern with `*` and `?` within a component, `**` for any number
/// of components, and `{a,b}` for alternatives. A leading `./` and a trailing `/` are ignored.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    alternatives(pattern).iter().any(|pattern| matches_one(pattern, path))
}

/// Expands `{a,b}`, at most [`MAX_ALTERNATIVES`] times; a brace without a partner is literal.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut open = vec![pattern.to_owned()];
    let mut done = Vec::new();
    while let Some(next) = open.pop() {
        let inner = next.rfind('{').and_then(|start| {
            let end = start + next[start..].find('}')?;
            Some((start, end))
        });
        match inner {
            Some((start, end)) if open.len() + done.len() < MAX_ALTERNATIVES => {
                let (front, back) = (&next[..start], &next[end + 1..]);
                open.extend(
                    next[start + 1..end].split(',').map(|one| format!("{front}{one}{back}")),
                );
            }
            _ => done.push(next),
        }
    }
    done.truncate(MAX_ALTERNATIVES);
    done
}

fn matches_one(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = parts(pattern);
    let path: Vec<&str> = parts(path);
    pattern.len() <= MAX_PARTS && path.len() <= MAX_PARTS && match_parts(&pattern, &path)
}

fn parts(text: &str) -> Vec<&str> {
    text.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

/// Matches by dynamic programming over prefixes, so that many `**` cost O(n·m) instead of
/// exponential time.
fn match_parts(pattern: &[&str], path: &[&str]) -> bool {
    let mut reach = vec![false; path.len() + 1];
    reach[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in 0..=path.len() {
            next[at] = if *part == "**" {
                reach[at] || (at > 0 && next[at - 1])
            } else {
                at > 0 && reach[at - 1] && match_part(part.as_bytes(), path[at - 1].as_bytes())
            };
        }
        reach = next;
    }
    reach[path.len()]
}

fn match_part(pattern: &[u8], text: &[u8]) -> bool {
    let mut p = 0;
    let mut t = 0;
    // Backtracking point: after the last star, one byte further in the text.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t + 1));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((after, from)) => {
                    (p, t) = (after, from);
                    retry = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        let cases = [
            ("packages/*", "packages/a", true),
            ("packages/*", "packages/a/b", false),
            ("packages/*", "packages", false),
            ("./packages/*/", "packages/a", true),
            ("packages/**", "packages/a/b", true),
            ("**/test/**", "a/test/b", true),
            ("**", "a", true),
            ("crates/*-sys", "crates/z-sys", true),
            ("crates/*-sys", "crates/z-system", false),
            ("a?c", "abc", true),
            ("a", "a", true),
            (".", ".", true),
            ("{apps,packages}/*", "packages/a", true),
            ("{apps,packages}/*", "tools/a", false),
            ("a/{b,c{d,e}}", "a/ce", true),
            ("a/{b", "a/{b", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_hostile_pattern_is_matched_in_polynomial_time() {
        let pattern = "*a".repeat(2_000);
        assert!(!matches(&pattern, &"a".repeat(1_000)));
        assert!(!matches(&"**/a/".repeat(32), &"b/".repeat(60)));
        assert!(!matches(&"{a,b,c}".repeat(200), "x"));
    }
}
