//! Access to remotes for one operation: network, protocols, credentials, certificates.
//!
//! The caller names a remote; its addresses come from the repository's configuration, which is untrusted.
//! Each address is parsed and checked ([`RemoteUrl`]), and [`RemoteAccess::prepare`] then allows git
//! exactly the protocols of these addresses and hands it one credential for each host.

use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure, Network, Secret};

use crate::credentials::{Credential, CredentialSource, InheritedFile, token_variable};
use crate::environment::{GitEnvironment, local_transport_command};
use crate::operand::{PathResolver, outside};
use crate::operation::GitOperation;
use crate::remote_url::{RemoteUrl, clone_directory, refused};
use crate::repository_config::RepositoryConfig;

/// The access that one git process gets to remotes.
#[derive(Debug, Default)]
pub struct RemoteAccess {
    /// The network that the addresses need.
    pub network: Network,
    /// Flags to add to the command line.
    pub flags: Vec<String>,
    /// Descriptors that git inherits, in this order.
    pub inherited: Vec<InheritedFile>,
    /// Passwords to mask in the output.
    pub secrets: Vec<Secret>,
    /// For each host without a credential: the variable that the operator can set.
    pub hints: Vec<String>,
}

/// The sources of credentials for one operation.
#[derive(Debug)]
pub struct CredentialLookup<'a> {
    /// The name of the workspace.
    pub workspace: &'a str,
    /// Asked in order; the first that knows a host decides.
    pub sources: Vec<&'a dyn CredentialSource>,
    /// Certificate authorities as PEM; those of the system if none.
    pub certificates: Option<&'a [u8]>,
}

impl CredentialLookup<'_> {
    fn for_host(&self, host: &str) -> Option<Credential> {
        self.sources.iter().find_map(|source| source.for_host(self.workspace, host))
    }
}

impl RemoteAccess {
    /// Prepares access to these addresses and to no others. Loopback and other hosts cannot be combined,
    /// because a sandbox has one network.
    pub fn prepare(
        urls: &[RemoteUrl],
        operation: GitOperation,
        credentials: &CredentialLookup<'_>,
        environment: &mut GitEnvironment,
    ) -> Result<Self, Failure> {
        let network = urls.iter().map(RemoteUrl::network).max().unwrap_or_default();
        let mut access = Self { network, ..Self::default() };
        let loopback = urls.iter().find(|url| url.network() == Network::Loopback);
        if let (Network::Full, Some(loopback)) = (network, loopback) {
            let text = loopback.text(Path::new("/"));
            let reason = "one operation cannot reach both loopback and other hosts";
            return Err(refused(&text, reason));
        }
        let mut protocols: Vec<_> = urls.iter().map(RemoteUrl::protocol).collect();
        protocols.sort_unstable();
        protocols.dedup();
        environment.allow_protocols(&protocols);
        if protocols.contains(&"file") {
            let program = match operation {
                GitOperation::Push => "receive-pack",
                _ => "upload-pack",
            };
            access.flags.push(format!("--{program}={}", local_transport_command(program)));
        }
        access.add_credentials(urls, credentials, environment)?;
        access.add_certificates(credentials, environment)?;
        Ok(access)
    }

    fn add_certificates(
        &mut self,
        credentials: &CredentialLookup<'_>,
        environment: &mut GitEnvironment,
    ) -> Result<(), Failure> {
        let Some(pem) = credentials.certificates.filter(|_| self.network == Network::Full) else {
            return Ok(());
        };
        let inherited = InheritedFile::certificates(pem, self.next_index());
        self.inherit("certificates", inherited, environment)
    }

    fn add_credentials(
        &mut self,
        urls: &[RemoteUrl],
        credentials: &CredentialLookup<'_>,
        environment: &mut GitEnvironment,
    ) -> Result<(), Failure> {
        let mut scopes: Vec<_> = urls.iter().filter_map(RemoteUrl::credential_scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        for (host, base) in scopes {
            let Some(credential) = credentials.for_host(host) else {
                self.hints.push(format!(
                    "there is no credential for {host}; the operator can set {}",
                    token_variable(host)
                ));
                continue;
            };
            let inherited = InheritedFile::credential(&credential, &base, self.next_index());
            self.inherit(&format!("the credential for {host}"), inherited, environment)?;
            self.secrets.push(credential.password);
        }
        Ok(())
    }

    fn next_index(&self) -> u32 {
        u32::try_from(self.inherited.len()).unwrap_or(u32::MAX)
    }

    fn inherit(
        &mut self,
        what: &str,
        inherited: io::Result<InheritedFile>,
        environment: &mut GitEnvironment,
    ) -> Result<(), Failure> {
        let inherited = inherited.map_err(|error| {
            Failure::new(Code::Io, format!("could not pass {what} to git: {error}"))
        })?;
        let (name, value) = inherited.setting.clone();
        environment.set_config(name, value);
        self.inherited.push(inherited);
        Ok(())
    }
}

/// The source and the destination of a clone.
#[derive(Debug)]
pub struct CloneTarget {
    /// The repository to clone.
    pub source: RemoteUrl,
    /// The new directory, relative to the workspace.
    pub destination: PathBuf,
}

impl CloneTarget {
    /// Parses the source, and resolves the directory or derives it from the source.
    pub fn parse(
        source: &str,
        directory: Option<&str>,
        bare: bool,
        paths: &PathResolver<'_>,
        hosts: &[String],
    ) -> Result<Self, Failure> {
        let address = RemoteUrl::parse(source, paths, hosts)?;
        let named =
            directory.map_or_else(|| clone_directory(source, bare), |name| Ok(name.to_owned()))?;
        if named.is_empty() || named.starts_with('-') {
            return Err(refused(&named, "it is no directory"));
        }
        let destination = paths.resolve(&named).ok_or_else(|| outside(&named))?;
        Ok(Self { source: address, destination })
    }
}

/// Returns the remote that git chooses for a branch when the command line names none.
pub fn default_remote(
    config: &RepositoryConfig,
    branch: Option<&str>,
    operation: GitOperation,
) -> String {
    let of_branch =
        |name: &str| branch.and_then(|branch| config.value(&format!("branch.{branch}.{name}")));
    let push = match operation {
        GitOperation::Push => {
            of_branch("pushremote").or_else(|| config.value("remote.pushdefault"))
        }
        _ => None,
    };
    let only = match config.remotes()[..] {
        [only] => Some(only),
        _ => None,
    };
    push.or_else(|| of_branch("remote")).or(only).unwrap_or("origin").to_owned()
}

/// Returns the addresses of a remote, and the argument that names it to git: a configured remote's name,
/// or the normalised address. `top` is the top of the work tree, relative to the workspace.
pub fn remote_urls(
    word: &str,
    operation: GitOperation,
    config: &RepositoryConfig,
    paths: &PathResolver<'_>,
    top: &Path,
    hosts: &[String],
) -> Result<(Vec<RemoteUrl>, String), Failure> {
    if config.remotes().contains(&word) {
        let of = |name: &str| config.values(&format!("remote.{word}.{name}"));
        let mut urls = if operation == GitOperation::Push { of("pushurl") } else { Vec::new() };
        if urls.is_empty() {
            urls = of("url");
        }
        // Git resolves relative addresses of a remote at the top of the work tree.
        let top = PathResolver { directory: top, ..*paths };
        let read = |url: &&str| {
            RemoteUrl::parse(url, &top, hosts)
                .map_err(|failure| failure.during(&format!("remote {word}")))
        };
        return Ok((urls.iter().map(read).collect::<Result<_, _>>()?, word.to_owned()));
    }
    let url = RemoteUrl::parse(word, paths, hosts)?;
    let text = url.text(paths.workspace);
    Ok((vec![url], text))
}

/// Refuses a name that is neither a remote nor a directory of the workspace.
pub fn unknown_remote(word: &str, config: &RepositoryConfig) -> Failure {
    let names = config.remotes();
    let known = if names.is_empty() {
        "there are no remotes".to_owned()
    } else {
        format!("remotes: {}", names.join(", "))
    };
    let message =
        format!("git: `{word}` is neither a remote nor a directory of the workspace; {known}");
    Failure::new(Code::GitRefused, message).with("remote", word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn git_and_carrel_choose_the_same_remote() {
        let config = |text: &str| {
            let lines = text.lines().map(|line| line.replace(' ', "\n"));
            let listed = format!("local\0{}\0", lines.collect::<Vec<_>>().join("\0local\0"));
            RepositoryConfig::parse(listed.as_bytes()).unwrap()
        };
        let two = config(
            "remote.a.url x\nremote.b.url y\nbranch.main.remote b\nbranch.main.pushremote a",
        );
        assert_eq!(default_remote(&two, Some("main"), GitOperation::Fetch), "b");
        assert_eq!(default_remote(&two, Some("main"), GitOperation::Push), "a");
        assert_eq!(default_remote(&two, Some("other"), GitOperation::Push), "origin");
        let one = config("remote.up.url x");
        assert_eq!(default_remote(&one, None, GitOperation::Pull), "up");
        assert_eq!(
            default_remote(&RepositoryConfig::default(), None, GitOperation::Pull),
            "origin"
        );
    }
}
