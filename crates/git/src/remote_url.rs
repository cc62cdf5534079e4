//! Addresses of repositories, parsed once and written anew.
//!
//! Git gets the text that this module wrote, never the caller's, so that the host which was checked is the
//! host which is reached. Accepted are `https://`, `http://` and `git://` on loopback, and directories of
//! the workspace. Everything else is refused: `ext::` and `fd::` run programs, ssh has no keys here, and
//! an address with a user or a password would be stored in the repository's configuration.

use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure, Network};

use crate::operand::{PathResolver, has_control, outside};

/// The address of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteUrl {
    /// A server: any host over https; on the loopback interface of the workspace's commands also without
    /// encryption.
    Server {
        /// `https`, or on loopback `http` or `git`.
        scheme: &'static str,
        /// In lower case, with the port unless it is the scheme's default.
        host: String,
        /// The normalised address.
        text: String,
    },
    /// A directory, relative to the workspace.
    Directory(PathBuf),
}

impl RemoteUrl {
    /// Parses an address or a directory. `hosts` are the allowed hosts with their subdomains; an empty
    /// list allows all.
    pub fn parse(word: &str, paths: &PathResolver<'_>, hosts: &[String]) -> Result<Self, Failure> {
        if word.is_empty()
            || word.starts_with('-')
            || has_control(word)
            || word.contains(char::is_whitespace)
        {
            return Err(refused(word, "it is no address"));
        }
        if let Some((transport, _)) = word.split_once("::")
            && transport
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        {
            return Err(refused(word, &format!("the transport `{transport}::` runs programs")));
        }
        let Some((scheme, rest)) = word.split_once("://") else {
            return match word.split_once(':') {
                Some((host, _)) if !host.contains('/') => Err(refused(word, NO_SSH)),
                Some(_) | None => Self::directory(word, word, paths),
            };
        };
        match scheme.to_ascii_lowercase().as_str() {
            "https" => Self::host(word, rest, "https", 443, hosts),
            "http" => Self::host(word, rest, "http", 80, hosts),
            "git" => Self::host(word, rest, "git", 9418, hosts),
            "file" => {
                let path = rest.strip_prefix("localhost").unwrap_or(rest);
                if !path.starts_with('/') || path.contains('%') {
                    return Err(refused(word, "give the directory as a path inside the workspace"));
                }
                Self::directory(word, path, paths)
            }
            "ssh" | "git+ssh" | "ssh+git" => Err(refused(word, NO_SSH)),
            _ => {
                Err(refused(word, "only https addresses and directories of the workspace are used"))
            }
        }
    }

    fn directory(word: &str, path: &str, paths: &PathResolver<'_>) -> Result<Self, Failure> {
        if path.starts_with('~') {
            return Err(refused(
                word,
                "nothing expands `~`; give the path relative to the workspace",
            ));
        }
        paths.resolve(path).map(Self::Directory).ok_or_else(|| outside(word))
    }

    fn host(
        word: &str,
        rest: &str,
        scheme: &'static str,
        default_port: u16,
        hosts: &[String],
    ) -> Result<Self, Failure> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(with_credentials(scheme, rest));
        }
        let (name, port) =
            name_and_port(authority).ok_or_else(|| refused(word, "it names no host"))?;
        let path = path.trim_end_matches('/');
        if path.contains(['?', '#', '\\']) {
            return Err(refused(word, "an address of a repository has no query and no fragment"));
        }
        let climbs = |part: &str| {
            matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
        };
        if path.is_empty() || path.split('/').any(climbs) {
            return Err(refused(word, "it names no repository"));
        }
        let host = match port {
            Some(port) if port != default_port => format!("{name}:{port}"),
            Some(_) | None => name.clone(),
        };
        let text = format!("{scheme}://{host}/{path}");
        let is_encrypted = scheme == "https";
        if !is_encrypted && !is_loopback(&name) {
            return Err(refused(word, "it is not encrypted; use https"));
        }
        let allowed = |pattern: &String| {
            name == *pattern || host == *pattern || name.ends_with(&format!(".{pattern}"))
        };
        if is_encrypted && !hosts.is_empty() && !hosts.iter().any(allowed) {
            let reason =
                format!("`{host}` is none of the hosts that git may reach: {}", hosts.join(", "));
            return Err(refused(word, &reason).with("host", host));
        }
        Ok(Self::Server { scheme, host, text })
    }

    /// Returns the network access that a transfer needs.
    pub fn network(&self) -> Network {
        match self {
            Self::Server { scheme: "https", .. } => Network::Full,
            Self::Server { .. } => Network::Loopback,
            Self::Directory(_) => Network::None,
        }
    }

    /// Returns the name that `GIT_ALLOW_PROTOCOL` uses.
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Server { scheme, .. } => scheme,
            Self::Directory(_) => "file",
        }
    }

    /// Returns the host that may ask for a credential, and the prefix of the addresses that the credential
    /// is for.
    pub fn credential_scope(&self) -> Option<(&str, String)> {
        match self {
            Self::Server { scheme: "git", .. } | Self::Directory(_) => None,
            Self::Server { scheme, host, .. } => Some((host, format!("{scheme}://{host}"))),
        }
    }

    /// Returns the address for git.
    pub fn text(&self, workspace: &Path) -> String {
        match self {
            Self::Server { text, .. } => text.clone(),
            Self::Directory(path) => workspace.join(path).to_string_lossy().into_owned(),
        }
    }
}

/// Derives the directory of a clone from its source, as git does.
pub(crate) fn clone_directory(source: &str, bare: bool) -> Result<String, Failure> {
    let trimmed = source.trim_end_matches('/');
    // A `.git` directory stands for the work tree around it.
    let local = !source.contains("://");
    let trimmed = trimmed.strip_suffix("/.git").filter(|_| local).unwrap_or(trimmed);
    let last = trimmed.rsplit(['/', ':']).next().unwrap_or_default();
    let name = last.strip_suffix(".git").unwrap_or(last);
    if name.is_empty() || matches!(name, "." | "..") || name.starts_with('-') || has_control(name) {
        return Err(refused(
            source,
            "no directory name follows from it; give one as the second argument",
        ));
    }
    Ok(if bare { format!("{name}.git") } else { name.to_owned() })
}

const NO_SSH: &str = "ssh is not set up; use the https address of the repository";

/// Refuses an address. A user and password in it are left out of the message.
pub(crate) fn refused(word: &str, reason: &str) -> Failure {
    let shown = match word.split_once("://") {
        Some((scheme, rest))
            if rest.split('/').next().is_some_and(|authority| authority.contains('@')) =>
        {
            format!("{scheme}://…")
        }
        Some(_) | None => word.to_owned(),
    };
    let message = format!("git: `{}` is refused: {reason}", shown.escape_debug());
    Failure::new(Code::GitRefused, message).with("address", shown)
}

fn with_credentials(scheme: &str, rest: &str) -> Failure {
    let (_, host) = rest.split('/').next().unwrap_or_default().rsplit_once('@').unwrap_or_default();
    let message = format!(
        "git: an address with a user or password is refused: it would be stored in the repository's \
         configuration. Use `{scheme}://{host}/…`; the credential for {host} comes from the operator ({})",
        crate::credentials::token_variable(host)
    );
    Failure::new(Code::GitRefused, message).with("host", host)
}

fn name_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = if let Some(numbers) = authority.strip_prefix('[') {
        let (address, rest) = numbers.split_once(']')?;
        address.parse::<Ipv6Addr>().ok()?;
        (format!("[{address}]"), rest.strip_prefix(':').or(rest.is_empty().then_some(""))?)
    } else {
        let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
        (name.split('.').all(is_label).then(|| name.to_owned())?, port)
    };
    let port =
        if port.is_empty() { None } else { Some(port.parse().ok().filter(|port| *port > 0)?) };
    Some((name.to_ascii_lowercase(), port))
}

fn is_label(part: &str) -> bool {
    let plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
}

fn is_loopback(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn parse(word: &str) -> Result<RemoteUrl, Failure> {
        parse_with(word, &[])
    }

    fn parse_with(word: &str, hosts: &[&str]) -> Result<RemoteUrl, Failure> {
        let paths = PathResolver {
            workspace: Path::new("/w"),
            directory: Path::new("a"),
            alias: Path::new("/w"),
        };
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        RemoteUrl::parse(word, &paths, &hosts)
    }

    #[test]
    fn addresses_are_parsed_and_normalised() {
        let https = |host: &str, text: &str| RemoteUrl::Server {
            scheme: "https",
            host: host.into(),
            text: text.into(),
        };
        for (word, host, text) in [
            ("https://github.com/a/b", "github.com", "https://github.com/a/b"),
            ("https://GITHUB.com/a/B.git/", "github.com", "https://github.com/a/B.git"),
            ("HTTPS://github.com:443/a/b", "github.com", "https://github.com/a/b"),
            ("https://github.com:8443/x", "github.com:8443", "https://github.com:8443/x"),
            ("https://[2001:db8::1]:8443/x", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443/x"),
        ] {
            assert_eq!(parse(word).unwrap(), https(host, text), "{word}");
        }
        for word in
            ["http://localhost:3000/x", "http://127.0.0.1/x", "git://localhost/x", "http://[::1]/x"]
        {
            assert_eq!(parse(word).unwrap().network(), Network::Loopback, "{word}");
        }
        for (word, path) in [
            ("../origin.git", "origin.git"),
            ("b", "a/b"),
            ("/w/c", "c"),
            ("file:///w/c", "c"),
            ("./x:y", "a/x:y"),
        ] {
            assert_eq!(parse(word).unwrap(), RemoteUrl::Directory(path.into()), "{word}");
        }
    }

    #[test]
    fn addresses_that_run_programs_or_leave_the_workspace_are_refused() {
        for word in [
            "ext::sh -c id",
            "ext::id",
            "fd::17/foo",
            "EXT::id",
            "--upload-pack=id",
            "-u",
            "",
            "http://10.0.0.5/x",
            "http://github.com/a/b",
            "ssh://git@github.com/a/b",
            "git@github.com:a/b",
            "github.com:a/b",
            "ftp://x/y",
            "file:///etc",
            "file://host/w/c",
            "file:///workspaces/other/repos/x",
            "https://",
            "https:///x",
            "https://github.com",
            "https://github.com/",
            "https://github.com/..",
            "https://github.com/a/%2E%2e/b",
            "https://github.com/a/b?u=https://github.com",
            "https://github.com/a/b#x",
            "https://-x/a",
            "https://a.-b/c",
            "https://a..b/c",
            "https://a_b/c",
            "https://a b/c",
            "https://github.com:0/x",
            "https://github.com:x/y",
            "https://user:hunter2@github.com/a/b",
            "https://github.com/a\nb",
            "../../x",
            "/etc",
            "~/x",
        ] {
            let failure = parse(word).unwrap_err();
            assert!(matches!(failure.code, Code::GitRefused | Code::SandboxViolation), "{word}");
            assert!(
                !failure.message.contains("hunter2")
                    && !failure.detail.to_string().contains("hunter2")
            );
        }
        let told = parse("https://user:hunter2@github.com/a/b").unwrap_err().message;
        assert!(
            told.contains("https://github.com/…") && told.contains("CARREL_GIT_TOKEN_GITHUB_COM"),
            "{told}"
        );
        assert!(parse("git@github.com:a/b").unwrap_err().message.contains("ssh is not set up"));
    }

    #[test]
    fn only_allowed_hosts_are_reached() {
        for (word, allowed) in [
            ("https://github.com/a/b", true),
            ("https://api.github.com/a/b", true),
            ("https://github.com:8443/a/b", true),
            ("https://evilgithub.com/a/b", false),
            ("https://github.com.evil/a/b", false),
        ] {
            assert_eq!(parse_with(word, &["github.com"]).is_ok(), allowed, "{word}");
        }
    }

    #[test]
    fn a_clone_gets_the_name_of_its_source() {
        for (source, name) in [
            ("https://x/a/app", "app"),
            ("https://x/a/app.git", "app"),
            ("../o.git", "o"),
            ("x/repo/.git", "repo"),
            ("https://x/a/my-cool-app/", "my-cool-app"),
        ] {
            assert_eq!(clone_directory(source, false).unwrap(), name);
        }
        assert_eq!(clone_directory("https://x/a/app", true).unwrap(), "app.git");
        for source in ["https://x/a/..", "https://x/.git", "..", ".", "https://x/-a"] {
            assert_eq!(
                clone_directory(source, false).unwrap_err().code,
                Code::GitRefused,
                "{source}"
            );
        }
    }
}
