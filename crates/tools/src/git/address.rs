//! Where a repository is: one reader for every address that git is given.

use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Network};

use super::operand::{Ground, has_control, outside};
use crate::failure::Failure;

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// On another machine.
    Https {
        /// Its name in small letters, with the port unless it is the usual one.
        host: String,
        /// The address, written anew.
        text: String,
    },
    /// On the workspace's own loopback.
    Loopback { scheme: Scheme, host: String, text: String },
    /// A directory of the workspace, relative to it.
    Inside(PathBuf),
}

/// A way to talk that is not safe on a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Git,
}

impl Address {
    /// Reads an address. `hosts` are the machines that may be reached; all if there are none.
    pub(super) fn read(word: &str, ground: &Ground<'_>, hosts: &[String]) -> Result<Self, Failure> {
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
                Some(_) | None => Self::inside(word, word, ground),
            };
        };
        match scheme.to_ascii_lowercase().as_str() {
            "https" => Self::web(word, rest, "https", 443, hosts),
            "http" => Self::web(word, rest, "http", 80, hosts),
            "git" => Self::web(word, rest, "git", 9418, hosts),
            "file" => {
                let path = rest.strip_prefix("localhost").unwrap_or(rest);
                if !path.starts_with('/') || path.contains('%') {
                    return Err(refused(word, "give the directory as a path inside the workspace"));
                }
                Self::inside(word, path, ground)
            }
            "ssh" | "git+ssh" | "ssh+git" => Err(refused(word, NO_SSH)),
            _ => {
                Err(refused(word, "only https addresses and directories of the workspace are used"))
            }
        }
    }

    fn inside(word: &str, path: &str, ground: &Ground<'_>) -> Result<Self, Failure> {
        if path.starts_with('~') {
            return Err(refused(
                word,
                "nothing expands `~`; give the path relative to the workspace",
            ));
        }
        ground.inside(path).map(Self::Inside).ok_or_else(|| outside(word))
    }

    fn web(
        word: &str,
        rest: &str,
        scheme: &'static str,
        usual_port: u16,
        hosts: &[String],
    ) -> Result<Self, Failure> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(with_credentials(scheme, rest));
        }
        let (name, port) =
            name_and_port(authority).ok_or_else(|| refused(word, "it names no machine"))?;
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
            Some(port) if port != usual_port => format!("{name}:{port}"),
            Some(_) | None => name.clone(),
        };
        let text = format!("{scheme}://{host}/{path}");
        if is_loopback(&name) && scheme != "https" {
            let scheme = if scheme == "git" { Scheme::Git } else { Scheme::Http };
            return Ok(Self::Loopback { scheme, host, text });
        }
        if scheme != "https" {
            return Err(refused(word, "it would travel unprotected; use https"));
        }
        let allowed = |pattern: &String| {
            name == *pattern || host == *pattern || name.ends_with(&format!(".{pattern}"))
        };
        if !hosts.is_empty() && !hosts.iter().any(allowed) {
            let reason =
                format!("`{host}` is none of the hosts that git may reach: {}", hosts.join(", "));
            return Err(refused(word, &reason).with("host", host));
        }
        Ok(Self::Https { host, text })
    }

    /// Returns the network that it takes to get there.
    pub(super) fn network(&self) -> Network {
        match self {
            Self::Https { .. } => Network::Full,
            Self::Loopback { .. } => Network::Loopback,
            Self::Inside(_) => Network::None,
        }
    }

    /// Returns git's name of the way to get there.
    pub(super) fn protocol(&self) -> &'static str {
        match self {
            Self::Https { .. } => "https",
            Self::Loopback { scheme: Scheme::Http, .. } => "http",
            Self::Loopback { scheme: Scheme::Git, .. } => "git",
            Self::Inside(_) => "file",
        }
    }

    /// Returns the machine that may ask who is calling, with the beginning of its addresses.
    pub(super) fn asks(&self) -> Option<(&str, String)> {
        match self {
            Self::Https { host, .. } => Some((host, format!("https://{host}"))),
            Self::Loopback { scheme: Scheme::Http, host, .. } => {
                Some((host, format!("http://{host}")))
            }
            Self::Loopback { scheme: Scheme::Git, .. } | Self::Inside(_) => None,
        }
    }

    /// Returns the address as git is given it.
    pub(super) fn text(&self, workspace: &Path) -> String {
        match self {
            Self::Https { text, .. } | Self::Loopback { text, .. } => text.clone(),
            Self::Inside(path) => workspace.join(path).to_string_lossy().into_owned(),
        }
    }
}

/// Returns the directory that a copy gets when nobody names one.
pub(super) fn directory_of(source: &str, bare: bool) -> Result<String, Failure> {
    let trimmed = source.trim_end_matches('/');
    // The directory of a repository's own files stands for the work tree around it.
    let local = !source.contains("://");
    let trimmed = trimmed.strip_suffix("/.git").filter(|_| local).unwrap_or(trimmed);
    let last = trimmed.rsplit(['/', ':']).next().unwrap_or_default();
    let name = last.strip_suffix(".git").unwrap_or(last);
    if name.is_empty() || matches!(name, "." | "..") || name.starts_with('-') || has_control(name) {
        return Err(refused(
            source,
            "no directory follows from it; name one as the second argument",
        ));
    }
    Ok(if bare { format!("{name}.git") } else { name.to_owned() })
}

const NO_SSH: &str = "ssh is not set up; use the https address of the repository";

/// Refuses an address.
pub(super) fn refused(word: &str, reason: &str) -> Failure {
    // A password that somebody wrote into it goes no further.
    let shown = match word.split_once("://") {
        Some((scheme, rest))
            if rest.split('/').next().is_some_and(|authority| authority.contains('@')) =>
        {
            format!("{scheme}://…")
        }
        Some(_) | None => word.to_owned(),
    };
    let message = format!("git: `{}` is not used: {reason}", shown.escape_debug());
    Failure::new(Code::GitRefused, message).with("address", shown)
}

fn with_credentials(scheme: &str, rest: &str) -> Failure {
    let (_, host) = rest.split('/').next().unwrap_or_default().rsplit_once('@').unwrap_or_default();
    let message = format!(
        "git: an address with a user or password is not used: it would be kept in the repository's \
         configuration. Give `{scheme}://{host}/…` alone; the operator's credential source is asked for \
         {host} ({})",
        super::credentials::variable_of(host)
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

/// Tells whether a text can be between the dots of a machine's name.
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

    fn read(word: &str) -> Result<Address, Failure> {
        read_with(word, &[])
    }

    fn read_with(word: &str, hosts: &[&str]) -> Result<Address, Failure> {
        let relative =
            |path: &str| Path::new(path).strip_prefix("/w").unwrap_or(Path::new(path)).to_owned();
        let ground =
            Ground { workspace: Path::new("/w"), directory: Path::new("a"), relative: &relative };
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Address::read(word, &ground, &hosts)
    }

    #[test]
    fn addresses_are_read_and_written_anew() {
        let https =
            |host: &str, text: &str| Address::Https { host: host.into(), text: text.into() };
        for (word, host, text) in [
            ("https://github.com/a/b", "github.com", "https://github.com/a/b"),
            ("https://GITHUB.com/a/B.git/", "github.com", "https://github.com/a/B.git"),
            ("HTTPS://github.com:443/a/b", "github.com", "https://github.com/a/b"),
            ("https://github.com:8443/x", "github.com:8443", "https://github.com:8443/x"),
            ("https://[2001:db8::1]:8443/x", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443/x"),
        ] {
            assert_eq!(read(word).unwrap(), https(host, text), "{word}");
        }
        for word in
            ["http://localhost:3000/x", "http://127.0.0.1/x", "git://localhost/x", "http://[::1]/x"]
        {
            assert_eq!(read(word).unwrap().network(), Network::Loopback, "{word}");
        }
        for (word, path) in [
            ("../origin.git", "origin.git"),
            ("b", "a/b"),
            ("/w/c", "c"),
            ("file:///w/c", "c"),
            ("./x:y", "a/x:y"),
        ] {
            assert_eq!(read(word).unwrap(), Address::Inside(path.into()), "{word}");
        }
    }

    #[test]
    fn what_runs_programs_leaves_or_tells_is_refused() {
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
            let failure = read(word).unwrap_err();
            assert!(matches!(failure.code, Code::GitRefused | Code::SandboxViolation), "{word}");
            assert!(
                !failure.message.contains("hunter2")
                    && !failure.detail.to_string().contains("hunter2")
            );
        }
        let told = read("https://user:hunter2@github.com/a/b").unwrap_err().message;
        assert!(
            told.contains("https://github.com/…") && told.contains("CARREL_GIT_TOKEN_GITHUB_COM"),
            "{told}"
        );
        assert!(read("git@github.com:a/b").unwrap_err().message.contains("ssh is not set up"));
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
            assert_eq!(read_with(word, &["github.com"]).is_ok(), allowed, "{word}");
        }
    }

    #[test]
    fn a_copy_gets_a_name_of_its_own_or_none() {
        for (source, name) in [
            ("https://x/a/app", "app"),
            ("https://x/a/app.git", "app"),
            ("../o.git", "o"),
            ("x/repo/.git", "repo"),
            ("https://x/a/my-cool-app/", "my-cool-app"),
        ] {
            assert_eq!(directory_of(source, false).unwrap(), name);
        }
        assert_eq!(directory_of("https://x/a/app", true).unwrap(), "app.git");
        for source in ["https://x/a/..", "https://x/.git", "..", ".", "https://x/-a"] {
            assert_eq!(directory_of(source, false).unwrap_err().code, Code::GitRefused, "{source}");
        }
    }
}
