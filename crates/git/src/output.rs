//! Facts in the output of git.

use carrel_wire::DiffStat;

/// Splits the output of `git diff --shortstat --patch` into the counts and the patch. Without a line of
/// counts the output is returned as it is.
pub fn split_shortstat(output: &str) -> (Option<DiffStat>, &str) {
    let Some((first, rest)) = output.split_once('\n') else { return (None, output) };
    let Some(stat) = parse_shortstat(first) else { return (None, output) };
    (Some(stat), rest.strip_prefix('\n').unwrap_or(rest))
}

/// Parses ` 2 files changed, 3 insertions(+), 1 deletion(-)`.
fn parse_shortstat(line: &str) -> Option<DiffStat> {
    let mut stat = DiffStat::default();
    for part in line.strip_prefix(' ')?.split(", ") {
        let (count, noun) = part.split_once(' ')?;
        let count = count.parse().ok()?;
        match noun.chars().next()? {
            'f' => stat.files = count,
            'i' => stat.insertions = count,
            'd' => stat.deletions = count,
            _ => return None,
        }
    }
    Some(stat)
}

/// Returns the commit that `git commit` reports in `[main (root-commit) 0123…] subject`, if it is a full
/// object name. Git prints full names with `core.abbrev=no`.
pub fn new_commit(output: &str) -> Option<String> {
    let line = output.lines().find(|line| line.starts_with('['))?;
    let (inside, _) = line[1..].split_once("] ")?;
    let commit = inside.rsplit(' ').next()?;
    let full = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    full.then(|| commit.to_owned())
}

/// Returns the records, each ended by a NUL byte, that come before a cut in captured output.
pub fn complete_records(output: &str, truncated: bool) -> String {
    if !truncated {
        return output.to_owned();
    }
    let head = output.split("[… ").next().unwrap_or_default();
    head.rsplit_once('\0').map_or(String::new(), |(complete, _)| format!("{complete}\0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn counts_are_split_off_a_patch() {
        let stat = |files, insertions, deletions| Some(DiffStat { files, insertions, deletions });
        assert_eq!(
            split_shortstat(" 1 file changed, 1 insertion(+)\n\ndiff --git a/a b/a\n"),
            (stat(1, 1, 0), "diff --git a/a b/a\n")
        );
        assert_eq!(split_shortstat(" 2 files changed, 3 deletions(-)\n\nx").0, stat(2, 0, 3));
        assert_eq!(split_shortstat("diff --git a/a b/a\n").0, None);
        assert_eq!(split_shortstat(" one\ntwo"), (None, " one\ntwo"));
    }

    #[test]
    fn the_new_commit_is_read() {
        let hash = "0123456789012345678901234567890123456789";
        for (line, expected) in [
            (format!("[main {hash}] a [b] c"), Some(hash)),
            (format!("[main (root-commit) {hash}] x"), Some(hash)),
            (format!("[detached HEAD {hash}] x\n 1 file changed"), Some(hash)),
            ("[main abc] x".to_owned(), None),
            ("On branch main".to_owned(), None),
        ] {
            assert_eq!(new_commit(&line).as_deref(), expected, "{line}");
        }
    }
}
