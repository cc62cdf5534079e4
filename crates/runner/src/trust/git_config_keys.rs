//! The *sensitive* entries of a git configuration: those with which git would run, write or send
//! something that a sandboxed command chose.
//!
//! The list errs on the long side: an entry named here without need costs a line in a report, one that
//! is missing costs the operator's account. Beside the names that git and its companions document,
//! every name that *ends* like a command is sensitive, so that a key of a later git or of another tool is not
//! missed.
//!
//! Left out on purpose: `remote.*.url` and `branch.*` (a remote is ordinary work; only URLs of
//! transports that run a command are sensitive), `core.attributesFile` and `.git/info/attributes` (they choose among
//! filters, and a `.gitattributes` in the work tree can do the same; a filter's command is sensitive).

/// Names without a subsection.
const PLAIN: &str = "\
    core.alternaterefscommand core.askpass core.editor core.gitproxy core.hookspath core.pager \
    core.sshcommand core.virtualfilesystem diff.external gc.recentobjectshook gpg.program \
    include.path init.templatedir instaweb.browser instaweb.httpd instaweb.modulepath \
    interactive.difffilter protocol.allow sequence.editor svn.authors-prog svn.authorsprog \
    uploadpack.packobjectshook";

/// First and last part of names, with or without a subsection between.
///
/// A cookie file is written as well as read, anywhere the operator may write. Both of `url` send what the
/// operator pushes and fetches elsewhere, invisibly.
const PARTS: &str = "\
    browser.path credential.helper diff.textconv difftool.path filter.clean filter.process \
    filter.smudge http.cookiefile http.curloptresolve http.proxy http.savecookies http.sslcainfo \
    http.sslcapath http.sslverify includeif.path lfs.standalonetransferagent man.path merge.driver \
    mergetool.path protocol.allow remote.proxy remote.receivepack remote.uploadpack remote.vcs \
    sendemail.smtpserver url.insteadof url.pushinsteadof";

/// Prefixes of names that are all sensitive.
const SECTIONS: &[&str] = &["alias.", "hook.", "lfs.customtransfer.", "lfs.extension."];

/// Suffixes of names that always stand for a command.
const ENDS: &[&str] = &[
    "askpass", "cmd", "command", "editor", "helper", "hook", "pager", "program", "prog", "tunnel",
];

/// Returns whether an entry is sensitive. `depth` is that of the configuration's directory below the
/// workspace, from which a relative `core.worktree` starts.
pub(super) fn is_sensitive(key: &[u8], value: Option<&[u8]>, depth: usize) -> bool {
    let first = key.split(|byte| *byte == b'.').next().unwrap_or_default();
    let last = key.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    match (first, last) {
        // No program reads a name before the first section.
        _ if first.len() == key.len() => false,
        (b"pager", _) | (b"core", b"fsmonitor") => !is_boolean(value),
        (b"core", b"worktree") => !value.is_some_and(|value| stays_inside(value, depth)),
        (b"submodule", b"update") => value.is_some_and(|value| value.starts_with(b"!")),
        (b"remote" | b"submodule", b"url" | b"pushurl") => value.is_some_and(runs_a_command),
        _ => is_listed(key, first, last),
    }
}

fn is_listed(key: &[u8], first: &[u8], last: &[u8]) -> bool {
    let mut parts = PARTS.split(' ').filter_map(|name| name.split_once('.'));
    PLAIN.split(' ').any(|name| name.as_bytes() == key)
        || parts.any(|(begin, end)| begin.as_bytes() == first && end.as_bytes() == last)
        || SECTIONS.iter().any(|section| key.starts_with(section.as_bytes()))
        || ENDS.iter().any(|end| last.ends_with(end.as_bytes()))
}

/// Returns whether git takes a value for a boolean, and so for no command.
fn is_boolean(value: Option<&[u8]>) -> bool {
    const WORDS: [&[u8]; 9] = [b"", b"true", b"yes", b"on", b"1", b"false", b"no", b"off", b"0"];
    value.is_none_or(|value| WORDS.iter().any(|word| value.eq_ignore_ascii_case(word)))
}

/// Returns whether a relative path stays in the workspace: it climbs only at its start and no further.
fn stays_inside(path: &[u8], depth: usize) -> bool {
    let parts = || path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let climbs = parts().take_while(|part| *part == b"..").count();
    !path.starts_with(b"/") && climbs <= depth && parts().skip(climbs).all(|part| part != b"..")
}

/// Returns whether a URL names a transport that runs the rest of it as a command.
fn runs_a_command(address: &[u8]) -> bool {
    let prefix = address.split(|byte| *byte == b':').next().unwrap_or_default();
    address[prefix.len()..].starts_with(b"::") && (prefix == b"ext" || prefix == b"fd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_can_run_something_are_sensitive() {
        for (key, value) in [
            ("core.hookspath", "x"),
            ("core.fsmonitor", "./evil"),
            ("core.worktree", "/home/operator"),
            ("core.worktree", "../../.."),
            ("core.worktree", "a/../../.."),
            ("pager.log", "evil"),
            ("alias.st", "!evil"),
            ("alias.a.command", "evil"),
            ("credential.https://example.com.helper", "!evil"),
            ("diff.x.command", "evil"),
            ("diff.x.textconv", "evil"),
            ("filter.LFS.smudge", "evil"),
            ("gpg.ssh.program", "evil"),
            ("gpg.ssh.defaultkeycommand", "evil"),
            ("hook.x.event", "pre-commit"),
            ("includeif.gitdir:/a.b/.path", "evil"),
            ("remote.origin.uploadpack", "evil"),
            ("remote.origin.url", "ext::sh -c evil"),
            ("submodule.a.update", "!evil"),
            ("trailer.x.cmd", "evil"),
            ("tar.x.command", "evil"),
            ("imap.tunnel", "evil"),
            ("sendemail.work.smtpserver", "/evil"),
            ("future.tool.lintcommand", "evil"),
        ] {
            assert!(is_sensitive(key.as_bytes(), Some(value.as_bytes()), 2), "{key}");
        }
    }

    #[test]
    fn entries_of_ordinary_work_are_not_sensitive() {
        for (key, value) in [
            ("core.repositoryformatversion", "0"),
            ("core.bare", "false"),
            ("core.fsmonitor", "true"),
            ("core.worktree", "../../sub"),
            ("user.name", "A"),
            ("remote.origin.url", "https://example.com/a.git"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("branch.main.merge", "refs/heads/main"),
            ("submodule.a.update", "rebase"),
            ("submodule.a.active", "true"),
            ("pager.log", "false"),
            ("extensions.objectformat", "sha256"),
            ("core..hookspath", "x"),
        ] {
            assert!(!is_sensitive(key.as_bytes(), Some(value.as_bytes()), 2), "{key}");
        }
        assert!(!is_sensitive(b"pager.log", None, 0));
    }
}
