//! The rules for repositories of `git_clone` and `git_pull` steps: allowed URLs, directories, branches.
//!
//! URLs are restricted to `https` and to allowed hosts, because git supports transports that run
//! commands (`ext::`) or read local files, and a host in the operator's network must not be reachable
//! through a task.

use carrel_wire::limits::MAX_BRANCH_CHARS;

use crate::request::InvalidRequest;

/// The hosts that repositories may come from, unless the operator names others.
pub const DEFAULT_HOSTS: [&str; 3] = ["github.com", "gitlab.com", "bitbucket.org"];

/// A repository URL that the rules allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryUrl {
    pub(crate) host: String,
    /// The path between host and name: one segment, or several for GitLab groups.
    pub(crate) owner: String,
    pub(crate) name: String,
}

impl RepositoryUrl {
    /// Parses a URL: `https`, one of the hosts, no user, no port, an owner and a name.
    pub fn parse(text: &str, hosts: &[String]) -> Result<Self, InvalidRequest> {
        let invalid = |rule: &str| InvalidRequest::new("repo", rule);
        let other = || invalid("begins with https://; other transports are not allowed");
        let rest = text.strip_prefix("https://").ok_or_else(other)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.contains('@') {
            return Err(invalid("contains no user; store a credential instead"));
        }
        let host = host.to_ascii_lowercase();
        if !hosts.contains(&host) {
            let known = hosts.join(", ");
            let rule = format!("has a host that is not allowed: {host}; allowed are {known}");
            return Err(invalid(&rule));
        }
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let segments: Vec<&str> = path.split('/').collect();
        let (Some((name, owner)), true) =
            (segments.split_last(), segments.iter().all(|segment| is_plain(segment)))
        else {
            return Err(invalid("has segments of letters, digits, `.`, `_` and `-` only"));
        };
        if owner.is_empty() {
            return Err(invalid("names an owner and a repository"));
        }
        Ok(Self { host, owner: owner.join("/"), name: (*name).to_owned() })
    }

    /// Returns the normalised URL, which ends in `.git`.
    pub fn url(&self) -> String {
        format!("https://{}/{}/{}.git", self.host, self.owner, self.name)
    }

    /// Returns the names of directories for a clone, in order of preference: the repository's name, and
    /// with its owner in case the first is taken by another repository.
    pub fn directories(&self) -> [String; 2] {
        [self.name.clone(), format!("{}-{}", self.owner.replace('/', "-"), self.name)]
    }

    /// Returns whether a URL from a git configuration names the same repository.
    pub fn matches(&self, url: &str) -> bool {
        Self::parse(url, std::slice::from_ref(&self.host)).as_ref() == Ok(self)
    }
}

/// Returns whether a segment of a URL is safe as a file name.
fn is_plain(segment: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !segment.is_empty()
        && segment.bytes().all(plain)
        && !segment.starts_with(['-', '.'])
        && segment.len() <= 100
}

/// Checks the directory name of a repository.
pub fn check_name(name: &str) -> Result<(), InvalidRequest> {
    if is_plain(name) {
        return Ok(());
    }
    Err(InvalidRequest::new("repo_name", "is a name of letters, digits, `.`, `_` and `-`"))
}

/// Checks the name of a branch, which must not look like an option or a revision expression.
pub fn check_branch(branch: &str) -> Result<(), InvalidRequest> {
    let known =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    let good = branch.len() <= MAX_BRANCH_CHARS
        && branch.starts_with(|first: char| first.is_ascii_alphanumeric())
        && branch.bytes().all(known)
        && !branch.contains("..")
        && !branch.contains("//")
        && !branch.ends_with(['/', '.'])
        && branch.strip_suffix(".lock").is_none();
    if good {
        return Ok(());
    }
    let rule =
        "is a name of letters, digits, `.`, `_`, `-` and `/` that begins with a letter or digit";
    Err(InvalidRequest::new("branch", rule))
}

/// Returns the URL of the remote `origin` in a git configuration.
pub(crate) fn origin(configuration: &str) -> Option<String> {
    let mut inside = false;
    for line in configuration.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[remote \"origin\"]";
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn parse(text: &str) -> Result<RepositoryUrl, InvalidRequest> {
        RepositoryUrl::parse(text, &DEFAULT_HOSTS.map(str::to_owned))
    }

    #[test]
    fn urls_are_parsed_by_the_table() {
        for text in [
            "https://github.com/a/app",
            "https://github.com/a/app.git",
            "https://GITHUB.com/a/app/",
        ] {
            assert_eq!(parse(text).unwrap().url(), "https://github.com/a/app.git", "{text}");
        }
        assert_eq!(parse("https://gitlab.com/a/b/app").unwrap().directories(), ["app", "a-b-app"]);
        for text in [
            "http://github.com/a/b",
            "ssh://git@github.com/a/b",
            "file:///workspaces/x",
            "ext::sh -c id",
            "https://user:token@github.com/a/b",
            "https://github.com:8443/a/b",
            "https://github.com/a",
            "https://github.com/a/..",
            "https://github.com/../b",
            "https://github.com/.git",
            "https://github.com/a/.git",
            "https://github.com/a/b?u=https://github.com",
            "https://github.com/a/b#x",
            "https://github.com/a/-b",
            "https://github.com/a//b",
            "https://github.com/a/b c",
            "https://10.0.0.5/a/b",
            "https://github.com.evil.org/a/b",
            "--upload-pack=evil",
            "",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn branches_are_read_by_the_table() {
        for branch in ["main", "feature/x-1", "v1.0", "0.1"] {
            assert_eq!(check_branch(branch), Ok(()), "{branch}");
        }
        for branch in
            ["-x", "--upload-pack=x", "a..b", "a@{1}", "a b", "", "/a", "a/", "a.lock", "a\n"]
        {
            assert!(check_branch(branch).is_err(), "{branch}");
        }
    }

    #[test]
    fn the_origin_is_that_of_its_own_section() {
        let text =
            "[core]\n\turl = x\n[remote \"origin\"]\n\tfetch = y\n\turl = https://github.com/a/b\n";
        assert_eq!(origin(text).as_deref(), Some("https://github.com/a/b"));
        assert_eq!(origin("[remote \"other\"]\n url = x\n"), None);
    }
}
