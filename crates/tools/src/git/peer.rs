//! Whom git deals with, what it takes to get there, and who git says it is.

use std::path::Path;

use carrel_domain::{Code, Network, Secret};

use super::address::{Address, directory_of, refused};
use super::credentials::{Credential, CredentialSource, Handover, variable_of};
use super::operand::{Ground, outside};
use super::operation::Operation;
use super::settings::{Found, Settings, other_end};
use crate::failure::Failure;

/// What a call needs to deal with others.
#[derive(Debug, Default)]
pub(super) struct Contact {
    pub(super) network: Network,
    /// More flags for git.
    pub(super) flags: Vec<String>,
    /// What helpers read credentials from.
    pub(super) handovers: Vec<Handover>,
    /// What must not be in the answer.
    pub(super) secrets: Vec<Secret>,
    /// Where to look for a token that is missing.
    pub(super) hints: Vec<String>,
}

/// Who git says it is.
pub(super) struct Identity<'a> {
    pub(super) workspace: &'a str,
    /// The first that knows a machine is asked.
    pub(super) sources: Vec<&'a dyn CredentialSource>,
    /// Who vouches for machines, if not the authorities of the system.
    pub(super) authorities: Option<&'a [u8]>,
}

impl Identity<'_> {
    fn for_host(&self, host: &str) -> Option<Credential> {
        self.sources.iter().find_map(|source| source.for_host(self.workspace, host))
    }
}

impl Contact {
    /// Prepares to deal with addresses, and with nobody else.
    pub(super) fn with(
        addresses: &[Address],
        operation: Operation,
        identity: &Identity<'_>,
        settings: &mut Settings,
    ) -> Result<Self, Failure> {
        let network = addresses.iter().map(Address::network).max().unwrap_or_default();
        let mut contact = Self { network, ..Self::default() };
        let own = addresses.iter().find(|address| address.network() == Network::Loopback);
        if let (Network::Full, Some(own)) = (contact.network, own) {
            let text = own.text(Path::new("/"));
            return Err(refused(
                &text,
                "the loopback of the workspace and other machines are not reached at once",
            ));
        }
        let mut protocols: Vec<_> = addresses.iter().map(Address::protocol).collect();
        protocols.sort_unstable();
        protocols.dedup();
        settings.protocols(&protocols);
        if protocols.contains(&"file") {
            let flag = match operation {
                Operation::Push => format!("--receive-pack={}", other_end("receive-pack")),
                _ => format!("--upload-pack={}", other_end("upload-pack")),
            };
            contact.flags.push(flag);
        }
        contact.credentials(addresses, identity, settings)?;
        contact.authorities(identity, settings)?;
        Ok(contact)
    }

    /// Tells git who vouches for machines.
    fn authorities(
        &mut self,
        identity: &Identity<'_>,
        settings: &mut Settings,
    ) -> Result<(), Failure> {
        let Some(pem) = identity.authorities.filter(|_| self.network == Network::Full) else {
            return Ok(());
        };
        let index = u32::try_from(self.handovers.len()).unwrap_or(u32::MAX);
        let handover = Handover::authorities(pem, index).map_err(|error| {
            let message = format!("could not hand certificates to git: {error}");
            Failure::new(Code::Io, message)
        })?;
        settings.setting(handover.settings.0.clone(), handover.settings.1.clone());
        self.handovers.push(handover);
        Ok(())
    }

    fn credentials(
        &mut self,
        addresses: &[Address],
        identity: &Identity<'_>,
        settings: &mut Settings,
    ) -> Result<(), Failure> {
        let mut asking: Vec<_> = addresses.iter().filter_map(Address::asks).collect();
        asking.sort_unstable();
        asking.dedup();
        for (host, base) in asking {
            let Some(credential) = identity.for_host(host) else {
                self.hints.push(format!(
                    "no credential is known for {host}; the operator sets {}",
                    variable_of(host)
                ));
                continue;
            };
            let index = u32::try_from(self.handovers.len()).unwrap_or(u32::MAX);
            let handover = Handover::new(&credential, &base, index).map_err(|error| {
                Failure::new(
                    Code::Io,
                    format!("could not hand the credential for {host} to git: {error}"),
                )
            })?;
            settings.setting(handover.settings.0.clone(), handover.settings.1.clone());
            self.handovers.push(handover);
            self.secrets.push(credential.password);
        }
        Ok(())
    }
}

/// A copy that is to be made.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) source: Address,
    /// Where it goes, relative to the workspace.
    pub(super) destination: std::path::PathBuf,
}

impl Copy {
    pub(super) fn read(
        source: &str,
        directory: Option<&str>,
        bare: bool,
        ground: &Ground<'_>,
        hosts: &[String],
    ) -> Result<Self, Failure> {
        let address = Address::read(source, ground, hosts)?;
        let named =
            directory.map_or_else(|| directory_of(source, bare), |name| Ok(name.to_owned()))?;
        if named.is_empty() || named.starts_with('-') {
            return Err(refused(&named, "it is no directory"));
        }
        let destination = ground.inside(&named).ok_or_else(|| outside(&named))?;
        Ok(Self { source: address, destination })
    }
}

/// Returns the remote that git chooses for a branch when none is named.
pub(super) fn default_remote(found: &Found, branch: Option<&str>, operation: Operation) -> String {
    let of_branch =
        |name: &str| branch.and_then(|branch| found.value(&format!("branch.{branch}.{name}")));
    let push = match operation {
        Operation::Push => of_branch("pushremote").or_else(|| found.value("remote.pushdefault")),
        _ => None,
    };
    let only = match found.remotes()[..] {
        [only] => Some(only),
        _ => None,
    };
    push.or_else(|| of_branch("remote")).or(only).unwrap_or("origin").to_owned()
}

/// Returns the addresses of a remote, and how git is to be told of it.
pub(super) fn addresses(
    word: &str,
    operation: Operation,
    found: &Found,
    ground: &Ground<'_>,
    top: &Path,
    hosts: &[String],
) -> Result<(Vec<Address>, String), Failure> {
    if found.remotes().contains(&word) {
        let of = |name: &str| found.values(&format!("remote.{word}.{name}"));
        let mut urls = if operation == Operation::Push { of("pushurl") } else { Vec::new() };
        if urls.is_empty() {
            urls = of("url");
        }
        // Git starts at the top, whatever the directory of the call.
        let top = Ground { directory: top, ..*ground };
        let read = |url: &&str| {
            Address::read(url, &top, hosts)
                .map_err(|failure| failure.during(&format!("remote {word}")))
        };
        return Ok((urls.iter().map(read).collect::<Result<_, _>>()?, word.to_owned()));
    }
    let address = Address::read(word, ground, hosts)?;
    let text = address.text(ground.workspace);
    Ok((vec![address], text))
}

/// Says that a remote is unknown.
pub(super) fn unknown_remote(word: &str, found: &Found) -> Failure {
    let names = found.remotes();
    let known = if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("known: {}", names.join(", "))
    };
    let message =
        format!("git: no remote, and no directory of the workspace, is called `{word}`; {known}");
    Failure::new(Code::GitRefused, message).with("remote", word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn git_and_carrel_choose_the_same_remote() {
        let found = |text: &str| {
            let lines = text.lines().map(|line| line.replace(' ', "\n"));
            let listed = format!("local\0{}\0", lines.collect::<Vec<_>>().join("\0local\0"));
            Found::read(listed.as_bytes()).unwrap()
        };
        let two =
            found("remote.a.url x\nremote.b.url y\nbranch.main.remote b\nbranch.main.pushremote a");
        assert_eq!(default_remote(&two, Some("main"), Operation::Fetch), "b");
        assert_eq!(default_remote(&two, Some("main"), Operation::Push), "a");
        assert_eq!(default_remote(&two, Some("other"), Operation::Push), "origin");
        let one = found("remote.up.url x");
        assert_eq!(default_remote(&one, None, Operation::Pull), "up");
        assert_eq!(default_remote(&Found::default(), None, Operation::Pull), "origin");
    }
}
