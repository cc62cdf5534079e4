//! Settings of a repository, as `git config --list` reports them.
//!
//! The repository's own `local` and `worktree` settings are data that an agent can write. Three uses are
//! made of them: remotes and their addresses, programs that have to be overridden by name
//! ([`RepositoryConfig::neutralize`]), and settings that would redirect a transport, which refuse every
//! operation with a remote ([`RepositoryConfig::check_transport`]).
//!
//! Starting git to list settings costs a few milliseconds, so a configuration file that holds nothing but
//! lines git itself writes ([`is_default_config`]) is not listed for operations without a remote.

use carrel_domain::{Code, Failure};

use crate::environment::GitEnvironment;

/// A larger configuration file is not taken for a default one.
pub(crate) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Settings of a repository in the order in which git reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryConfig {
    entries: Vec<(String, String)>,
}

impl RepositoryConfig {
    /// Parses the output of `git config --list --show-scope -z`, and keeps the scopes `local` and
    /// `worktree`.
    pub fn parse(output: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(output).map_err(|_| unreadable_config("it is not UTF-8"))?;
        let mut fields = text.split_terminator('\0');
        let mut entries = Vec::new();
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            if matches!(scope, "local" | "worktree") {
                let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
                entries.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(Self { entries })
    }

    /// Parses the output of `git config --list --name-only -z`.
    pub fn parse_names(output: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(output).map_err(|_| unreadable_config("it is not UTF-8"))?;
        let entries = text.split_terminator('\0').map(|name| (name.to_owned(), String::new()));
        Ok(Self { entries: entries.collect() })
    }

    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let entries = self.entries.iter().filter(|(known, _)| known == name);
        entries.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the value in effect: the last one.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).pop()
    }

    /// Returns the names of all remotes, sorted.
    pub fn remotes(&self) -> Vec<&str> {
        let remote = |name| match split_name(name) {
            ("remote", Some(remote), "url" | "pushurl") => Some(remote),
            _ => None,
        };
        let mut names: Vec<_> = self.entries.iter().filter_map(|(name, _)| remote(name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Overrides filters, merge drivers and configured hooks, and returns their names, sorted:
    /// `filter.lfs`, `merge.union`.
    pub fn neutralize(&self, environment: &mut GitEnvironment) -> Vec<String> {
        let mut neutralized = Vec::new();
        for (name, _) in &self.entries {
            let (section, middle, last) = split_name(name);
            let Some(middle) = middle else { continue };
            let sibling = |last: &str| format!("{section}.{middle}.{last}");
            match (section, last) {
                ("filter", "clean" | "smudge" | "process") => {
                    environment.set_config(name, "");
                    environment.set_config(sibling("required"), "false");
                }
                // The merge that git does without a driver.
                ("merge", "driver") => {
                    environment.set_config(name, "git merge-file -q --marker-size=%L %A %O %B");
                }
                ("hook", "command") => {
                    environment.set_config(name, "true");
                    environment.set_config(sibling("enabled"), "false");
                }
                ("submodule", "ignore") => {
                    environment.set_config(name, "dirty");
                    continue;
                }
                _ => continue,
            }
            neutralized.push(format!("{section}.{middle}"));
        }
        neutralized.sort_unstable();
        neutralized.dedup();
        neutralized
    }

    /// Refuses settings that would send a transfer, or its credentials, to another host, or that weaken
    /// TLS. They cannot be overridden without knowing what the operator would have set.
    pub fn check_transport(&self) -> Result<(), Failure> {
        let redirects = |name: &&str| {
            let (section, _, last) = split_name(name);
            lists(REDIRECTING_KEYS, section, last)
        };
        match self.entries.iter().map(|(name, _)| name.as_str()).find(redirects) {
            None => Ok(()),
            Some(name) => {
                let message = format!(
                    "git: the repository sets `{name}`, which can redirect a transfer; remove it to \
                     work with remotes"
                );
                Err(Failure::new(Code::GitRefused, message).with("setting", name))
            }
        }
    }
}

/// Refuses a repository whose settings cannot be listed or parsed.
pub fn unreadable_config(reason: &str) -> Failure {
    let message = format!("git: the repository's configuration cannot be checked: {reason}");
    Failure::new(Code::GitRefused, message)
}

/// Splits `section.middle.last`. The middle may contain dots; a name with one dot has none.
fn split_name(name: &str) -> (&str, Option<&str>, &str) {
    let Some((section, rest)) = name.split_once('.') else { return (name, None, "") };
    match rest.rsplit_once('.') {
        Some((middle, last)) => (section, Some(middle), last),
        None => (section, None, rest),
    }
}

/// Tells whether a configuration file holds only settings that git itself writes, in the form in which
/// git writes them. Comments, continued lines, quotes and other capitalisation make it another configuration.
pub(crate) fn is_default_config(config: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(config) else { return false };
    let mut section = "";
    text.lines().all(|line| {
        if let Some(header) = line.strip_prefix('[') {
            let Some(header) = header.strip_suffix(']') else { return false };
            let (name, middle) = header.split_once(" \"").unwrap_or((header, "\""));
            section = name;
            let middle = middle.strip_suffix('"');
            return middle.is_some_and(|middle| !middle.contains(['"', '\\', '[', ']']));
        }
        let Some((key, value)) = line.split_once(" = ") else { return line.trim().is_empty() };
        lists(DEFAULT_KEYS, section, key.trim_start())
            && !value.contains(['"', '\\', '#', ';', '\r'])
    })
}

/// Settings that git writes itself and that name no program, by section.
const DEFAULT_KEYS: &[(&str, &str)] = &[
    ("core", "repositoryformatversion filemode bare logallrefupdates ignorecase symlinks"),
    ("extensions", "objectformat refstorage"),
    ("remote", "url fetch pushurl tagOpt"),
    ("branch", "remote merge rebase vscode-merge-base"),
    ("user", "name email"),
    ("init", "defaultBranch"),
    ("pull", "rebase ff"),
    ("push", "default autoSetupRemote"),
];

/// Settings that redirect a transfer or weaken TLS, by section.
const REDIRECTING_KEYS: &[(&str, &str)] = &[
    ("url", "insteadof pushinsteadof"),
    ("remote", "vcs proxy proxyauthmethod"),
    (
        "http",
        "proxy sslverify sslcainfo sslcapath cookiefile savecookies curloptresolve pinnedpubkey \
         followredirects proxysslcainfo schannelcheckrevoke",
    ),
];

fn lists(table: &[(&str, &str)], section: &str, key: &str) -> bool {
    let has_key = |keys: &str| keys.split(' ').any(|known| known == key);
    table.iter().any(|(name, keys)| *name == section && has_key(keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const NEW: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
        \tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://x/y\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\
        \tmerge = refs/heads/main\n";

    #[test]
    fn only_what_git_writes_itself_is_default_config() {
        assert!(is_default_config(NEW.as_bytes()));
        assert!(is_default_config(b""));
        for added in [
            "[filter \"x\"]\n\tclean = evil\n",
            "[core] fsmonitor = evil\n",
            "[core]\n\tfsmonitor = evil\n",
            "[include]\n\tpath = evil\n",
            "[core]\n\tbare = false\\\n[filter \"x\"]\n\tclean = evil\n",
            "[core]\n\tbare = false ; [filter]\n",
            "[core]\nbare\n",
            "[Core]\n\tbare = false\n",
            "[branch \"a\\\"b\"]\n\tremote = x\n",
            "[core][filter \"x\"]\n\turl = x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "\tclean = evil\n",
        ] {
            assert!(!is_default_config(format!("{NEW}{added}").as_bytes()), "{added}");
        }
        assert!(!is_default_config(b"\xff"));
    }

    #[test]
    fn configured_programs_are_overridden_by_name() {
        let listed = "global\0user.name\nA\0local\0filter.a.b.clean\nevil\0local\0filter.a.b.required\ntrue\0\
            worktree\0merge.m.driver\nevil %A\0local\0remote.origin.url\nhttps://x/y\0local\0core.bare\0\
            command\0filter.own.clean\nx\0local\0submodule.s.ignore\nnone\0";
        let config = RepositoryConfig::parse(listed.as_bytes()).unwrap();
        assert_eq!(config.remotes(), ["origin"]);
        assert_eq!(config.value("core.bare"), Some("true"));
        let mut environment = GitEnvironment::default();
        assert_eq!(config.neutralize(&mut environment), ["filter.a.b", "merge.m"]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("filter.a.b.clean", ""),
            pair("filter.a.b.required", "false"),
            pair("merge.m.driver", "git merge-file -q --marker-size=%L %A %O %B"),
            pair("submodule.s.ignore", "dirty"),
        ];
        assert_eq!(environment.settings, expected);
        assert_eq!(config.check_transport(), Ok(()));
    }

    #[test]
    fn settings_that_redirect_a_transport_are_named() {
        for name in [
            "url.https://evil/.insteadof",
            "http.sslverify",
            "http.https://x/.proxy",
            "remote.origin.vcs",
        ] {
            let listed = format!("local\0{name}\nx\0");
            let failure =
                RepositoryConfig::parse(listed.as_bytes()).unwrap().check_transport().unwrap_err();
            assert!(failure.message.contains(name), "{}", failure.message);
        }
    }
}
