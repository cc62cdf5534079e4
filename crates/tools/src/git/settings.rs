//! What git is told so that it runs nothing that a repository configures.
//!
//! Git's own settings for one command beat those of a repository. Most names are known: hooks, the
//! monitor of files, signatures, editors, helpers. Names with a part that the repository chooses
//! (`filter.<name>.clean`, `merge.<name>.driver`) have to be looked up first; see [`Found`].
//!
//! What is left runs behind the same walls as any command of the workspace: a program that a process
//! which is still running there configures between the look and the run; and, where an operation that
//! changes files makes git look for changes in submodules, a filter of one that neither `.git/modules`
//! nor `.gitmodules` names, such as a submodule of a submodule whose own `.git` is a file.

use std::path::Path;

use carrel_domain::Code;

use crate::failure::Failure;

/// A larger configuration is not looked through.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Settings that hold for every command.
const FIXED: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    // It is run where a repository borrows objects; this one says that there is nothing to borrow.
    ("core.alternateRefsCommand", "true"),
    ("core.quotePath", "false"),
    // An empty one takes back all that were named before.
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("commit.gpgSign", "false"),
    ("commit.verbose", "false"),
    ("push.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    // A format like `%G?` asks for signatures too.
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("transfer.bundleURI", "false"),
    ("protocol.ext.allow", "never"),
    ("safe.directory", "*"),
    ("safe.bareRepository", "explicit"),
    ("user.useConfigOnly", "true"),
    ("color.ui", "false"),
    ("column.ui", "never"),
];

/// Variables that hold for every command.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // One that is empty is not run, and keeps git from looking for another.
    ("GIT_ASKPASS", ""),
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_SSH_COMMAND", "false"),
    // Git itself knows that this one changes nothing.
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_PAGER", "cat"),
    ("GIT_ADVICE", "0"),
    // Objects that are missing would be fetched with whatever program the remote names.
    ("GIT_NO_LAZY_FETCH", "1"),
    // No settings, passwords or attributes from the home of a command, which is the workspace.
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C.UTF-8"),
];

/// What git is told for one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    variables: Vec<(String, String)>,
    settings: Vec<(String, String)>,
}

impl Settings {
    /// Begins with what always holds.
    pub(super) fn new() -> Self {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut settings = Self { variables: owned(VARIABLES), settings: owned(FIXED) };
        settings.protocols(&[]);
        settings
    }

    /// Sets a variable.
    pub(super) fn variable(&mut self, name: &str, value: impl Into<String>) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.into()));
    }

    /// Adds a setting behind all others.
    pub(super) fn setting(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.settings.push((name.into(), value.into()));
    }

    /// Says which repository it is, so that git looks for no other.
    pub(super) fn repository(&mut self, top: &Path) {
        self.variable("GIT_DIR", top.join(".git").to_string_lossy());
        self.variable("GIT_WORK_TREE", top.to_string_lossy());
    }

    /// Says how git may reach others. Nothing in a configuration changes that.
    pub(super) fn protocols(&mut self, names: &[&str]) {
        self.variable("GIT_ALLOW_PROTOCOL", names.join(":"));
    }

    /// Returns the variables for the command.
    pub(super) fn into_environment(self) -> Vec<(String, String)> {
        let mut environment = self.variables;
        environment.push(("GIT_CONFIG_COUNT".to_owned(), self.settings.len().to_string()));
        for (index, (name, value)) in self.settings.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{index}"), name));
            environment.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        environment
    }
}

/// Settings for the other end of a local transport, which does not get those of the command.
const OTHER_END: &[&str] = &[
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "receive.denyCurrentBranch=refuse",
    "receive.autogc=false",
    "gc.auto=0",
];

/// Returns the command that git starts at the other end of a local transport.
pub(super) fn other_end(program: &str) -> String {
    format!("git -c '{}' {program}", OTHER_END.join("' -c '"))
}

/// What a repository configures that has a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    entries: Vec<(String, String)>,
}

impl Found {
    /// Reads what `git config --list --show-scope -z` prints, as far as the repository says it.
    pub(super) fn read(output: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(output).map_err(|_| unreadable("it is not UTF-8"))?;
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

    /// Reads what `git config --list --name-only -z` prints.
    pub(super) fn names(output: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(output).map_err(|_| unreadable("it is not UTF-8"))?;
        let entries = text.split_terminator('\0').map(|name| (name.to_owned(), String::new()));
        Ok(Self { entries: entries.collect() })
    }

    /// Returns every value of a setting.
    pub(super) fn values(&self, name: &str) -> Vec<&str> {
        let found = self.entries.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the last value of a setting, which is the one that counts.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).pop()
    }

    /// Returns the names of all remotes.
    pub(super) fn remotes(&self) -> Vec<&str> {
        let remote = |name| match split(name) {
            ("remote", Some(remote), "url" | "pushurl") => Some(remote),
            _ => None,
        };
        let mut names: Vec<_> = self.entries.iter().filter_map(|(name, _)| remote(name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Takes back what would run a program, and returns the names of what is not run.
    pub(super) fn neutralize(&self, settings: &mut Settings) -> Vec<String> {
        let mut not_run = Vec::new();
        for (name, _) in &self.entries {
            let (section, middle, last) = split(name);
            let Some(middle) = middle else { continue };
            let below = |last: &str| format!("{section}.{middle}.{last}");
            match (section, last) {
                ("filter", "clean" | "smudge" | "process") => {
                    settings.setting(name, "");
                    settings.setting(below("required"), "false");
                }
                // What git does without a driver.
                ("merge", "driver") => {
                    settings.setting(name, "git merge-file -q --marker-size=%L %A %O %B");
                }
                ("hook", "command") => {
                    settings.setting(name, "true");
                    settings.setting(below("enabled"), "false");
                }
                ("submodule", "ignore") => {
                    settings.setting(name, "dirty");
                    continue;
                }
                _ => continue,
            }
            not_run.push(format!("{section}.{middle}"));
        }
        not_run.sort_unstable();
        not_run.dedup();
        not_run
    }

    /// Refuses what would lead a transport elsewhere, or open it to others, unseen.
    pub(super) fn check_transport(&self) -> Result<(), Failure> {
        let leads_astray = |name: &&str| {
            matches!(
                split(name),
                ("url", _, "insteadof" | "pushinsteadof")
                    | ("remote", _, "vcs" | "proxy" | "proxyauthmethod")
                    | (
                        "http",
                        _,
                        "proxy"
                            | "sslverify"
                            | "sslcainfo"
                            | "sslcapath"
                            | "cookiefile"
                            | "savecookies"
                            | "curloptresolve"
                            | "pinnedpubkey"
                            | "followredirects"
                            | "proxysslcainfo"
                            | "schannelcheckrevoke"
                    )
            )
        };
        match self.entries.iter().map(|(name, _)| name.as_str()).find(leads_astray) {
            None => Ok(()),
            Some(name) => {
                let message = format!(
                    "git: the repository's configuration sets `{name}`, which can lead what is sent \
                     elsewhere; take it out to work with remotes"
                );
                Err(Failure::new(Code::GitRefused, message).with("setting", name))
            }
        }
    }
}

/// Says that a configuration cannot be looked through.
pub(super) fn unreadable(reason: &str) -> Failure {
    let message = format!("git: the repository's configuration cannot be checked: {reason}");
    Failure::new(Code::GitRefused, message)
}

/// Takes a name apart: section, what is between, last part.
fn split(name: &str) -> (&str, Option<&str>, &str) {
    let Some((section, rest)) = name.split_once('.') else { return (name, None, "") };
    match rest.rsplit_once('.') {
        Some((middle, last)) => (section, Some(middle), last),
        None => (section, None, rest),
    }
}

/// Tells whether a configuration holds nothing but what git itself writes there: then it need not be
/// looked through. Whatever is written in another way is not taken for harmless.
pub(super) fn is_plain(config: &[u8]) -> bool {
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
        let known =
            PLAIN.iter().any(|(name, keys)| *name == section && keys.contains(&key.trim_start()));
        known && !value.contains(['"', '\\', '#', ';', '\r'])
    })
}

/// What git writes into a configuration, and nobody runs.
const PLAIN: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "symlinks",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("remote", &["url", "fetch", "pushurl", "tagOpt"]),
    ("branch", &["remote", "merge", "rebase", "vscode-merge-base"]),
    ("user", &["name", "email"]),
    ("init", &["defaultBranch"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autoSetupRemote"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const NEW: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
        \tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://x/y\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\
        \tmerge = refs/heads/main\n";

    #[test]
    fn only_what_git_writes_itself_is_plain() {
        assert!(is_plain(NEW.as_bytes()));
        assert!(is_plain(b""));
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
            assert!(!is_plain(format!("{NEW}{added}").as_bytes()), "{added}");
        }
        assert!(!is_plain(b"\xff"));
    }

    #[test]
    fn what_has_a_name_of_its_own_is_taken_back() {
        let listed = "global\0user.name\nA\0local\0filter.a.b.clean\nevil\0local\0filter.a.b.required\ntrue\0\
            worktree\0merge.m.driver\nevil %A\0local\0remote.origin.url\nhttps://x/y\0local\0core.bare\0\
            command\0filter.own.clean\nx\0local\0submodule.s.ignore\nnone\0";
        let found = Found::read(listed.as_bytes()).unwrap();
        assert_eq!(found.remotes(), ["origin"]);
        assert_eq!(found.value("core.bare"), Some("true"));
        let mut settings = Settings::default();
        assert_eq!(found.neutralize(&mut settings), ["filter.a.b", "merge.m"]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("filter.a.b.clean", ""),
            pair("filter.a.b.required", "false"),
            pair("merge.m.driver", "git merge-file -q --marker-size=%L %A %O %B"),
            pair("submodule.s.ignore", "dirty"),
        ];
        assert_eq!(settings.settings, expected);
        assert_eq!(found.check_transport(), Ok(()));
    }

    #[test]
    fn settings_that_lead_a_transport_astray_are_named() {
        for name in [
            "url.https://evil/.insteadof",
            "http.sslverify",
            "http.https://x/.proxy",
            "remote.origin.vcs",
        ] {
            let listed = format!("local\0{name}\nx\0");
            let failure = Found::read(listed.as_bytes()).unwrap().check_transport().unwrap_err();
            assert!(failure.message.contains(name), "{}", failure.message);
        }
    }
}
