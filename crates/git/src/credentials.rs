//! Credentials for remotes, and their way to git.
//!
//! A credential is never part of an address, an argument, a variable, a setting or a file: other processes
//! of the workspace could read those. It is written into a pipe whose reading end git inherits. The setting
//! `credential.<host>.helper` names a helper that reads this descriptor, so git offers the credential to
//! one host only, and a second read finds the pipe empty.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use carrel_config::Environment;
use carrel_config::environment::GIT_TOKEN_PREFIX;
use carrel_domain::Secret;
use carrel_exec::CommandSpec;
use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

/// The user name for a bare token. GitHub and GitLab accept any.
const TOKEN_USER: &str = "x-access-token";

/// The capacity that every pipe has: the text is written before the other end is read.
const MAX_BYTES: usize = 4096;

/// A user name and a password for one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The user name.
    pub username: String,
    /// The password or token.
    pub password: Secret,
}

/// A source of credentials, asked for each host that a transfer reaches.
pub trait CredentialSource: Send + Sync + fmt::Debug + 'static {
    /// Returns the credential of a workspace for a host. `host` is in lower case, with the port unless it
    /// is the default: `github.com`, `git.example.com:8443`.
    fn for_host(&self, workspace: &str, host: &str) -> Option<Credential>;

    /// Returns every password that has to be masked in replies, with the name that stands in its place.
    fn known(&self) -> Vec<(String, Secret)>;
}

/// Credentials from `CARREL_GIT_TOKEN_<HOST>`: the host in capitals, with `_` for a dot, `__` for a hyphen
/// and `___` before a port, so that no two hosts share a variable. The value is a token, or
/// `user:password`. All workspaces share them, and no tool returns them.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentCredentials {
    tokens: BTreeMap<String, Secret>,
}

impl EnvironmentCredentials {
    /// Reads the variables of an environment; empty ones are ignored.
    pub fn new(environment: &Environment) -> Self {
        let tokens = environment.iter().filter_map(|(name, value)| {
            let name = name.to_str()?;
            let value = value.to_str()?.trim();
            let known = name.starts_with(GIT_TOKEN_PREFIX) && !value.is_empty();
            known.then(|| (name.to_owned(), Secret::new(value)))
        });
        Self { tokens: tokens.collect() }
    }
}

impl CredentialSource for EnvironmentCredentials {
    fn known(&self) -> Vec<(String, Secret)> {
        let passwords = self.tokens.iter().map(|(name, value)| {
            let value = value.expose();
            let password = value.split_once(':').map_or(value, |(_, password)| password);
            (name.to_lowercase(), Secret::new(password))
        });
        passwords.collect()
    }

    fn for_host(&self, _workspace: &str, host: &str) -> Option<Credential> {
        let value = self.tokens.get(&token_variable(host))?.expose();
        let (username, password) = value.split_once(':').unwrap_or((TOKEN_USER, value));
        Some(Credential { username: username.to_owned(), password: Secret::new(password) })
    }
}

/// Returns the variable with the token for a host. Host names have no `_`, and no hyphen beside a dot, so
/// the mapping is one to one.
pub(crate) fn token_variable(host: &str) -> String {
    let host = host.to_ascii_uppercase().replace('-', "__").replace('.', "_").replace(':', "___");
    format!("{GIT_TOKEN_PREFIX}{host}")
}

/// A descriptor that git inherits, with the setting that makes git read it.
#[derive(Debug)]
pub struct InheritedFile {
    /// The descriptor; its number in git follows from its position among all inherited ones.
    pub descriptor: OwnedFd,
    pub(crate) setting: (String, String),
}

impl InheritedFile {
    /// Writes a credential into a pipe, for a helper that git uses for addresses with the prefix `base`.
    /// `index` is its position among the inherited descriptors.
    pub(crate) fn credential(credential: &Credential, base: &str, index: u32) -> io::Result<Self> {
        let Credential { username, password } = credential;
        let password = password.expose();
        let text = format!("username={username}\npassword={password}\n");
        if text.len() > MAX_BYTES
            || [username, password].iter().any(|value| value.contains(['\n', '\0']))
        {
            return Err(io::Error::other("the credential is too long or has several lines"));
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        std::fs::File::from(writer).write_all(text.as_bytes())?;
        // The helper opens `/proc/self/fd/N`, possibly as another user; only processes that inherited the
        // descriptor have that name.
        fchmod(&reader, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        let number = CommandSpec::FIRST_INHERITED + index;
        // Git appends `get`, `store` or `erase`. `cat` and not `<&`, which takes one digit in some shells.
        let helper = format!("!f() {{ test \"$1\" != get || cat /proc/self/fd/{number}; }}; f");
        Ok(Self { descriptor: reader, setting: (format!("credential.{base}.helper"), helper) })
    }

    /// Writes certificates into an anonymous file, which git may read several times. The operator's own
    /// file may lie outside what the sandbox shows.
    pub(crate) fn certificates(pem: &[u8], index: u32) -> io::Result<Self> {
        let file = memfd_create("authorities", MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        file.write_all(pem)?;
        fchmod(&file, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        let number = CommandSpec::FIRST_INHERITED + index;
        let setting = ("http.sslCAInfo".to_owned(), format!("/proc/self/fd/{number}"));
        Ok(Self { descriptor: file.into(), setting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_token_of_the_environment_is_for_one_host_and_port() {
        let environment = Environment::from_pairs([
            ("CARREL_GIT_TOKEN_GITHUB_COM", "ghp_token"),
            ("CARREL_GIT_TOKEN_GIT_EXAMPLE_COM___8443", "ann:pass:word"),
            ("CARREL_GIT_TOKEN_EMPTY", ""),
        ]);
        let source = EnvironmentCredentials::new(&environment);
        let found = |host: &str| {
            let found = source.for_host("main", host)?;
            Some((found.username, found.password.expose().to_owned()))
        };
        assert_eq!(found("github.com"), Some(("x-access-token".into(), "ghp_token".into())));
        assert_eq!(found("git.example.com:8443"), Some(("ann".into(), "pass:word".into())));
        assert_eq!(found("git.example.com"), None);
        assert_eq!(found("github.com:8443"), None);
        assert_eq!(found("empty"), None);
        assert_eq!(found("github-com"), None, "a host that maps to a similar variable");
        assert_eq!(token_variable("git-hub.com"), "CARREL_GIT_TOKEN_GIT__HUB_COM");
        assert!(!format!("{source:?}").contains("ghp_token"));
    }

    #[test]
    fn a_credential_is_read_from_a_descriptor() {
        let credential =
            |password: &str| Credential { username: "ann".into(), password: Secret::new(password) };
        let inherited =
            InheritedFile::credential(&credential("hunter2"), "https://github.com", 0).unwrap();
        assert_eq!(inherited.setting.0, "credential.https://github.com.helper");
        assert!(
            inherited.setting.1.contains("/proc/self/fd/100")
                && !inherited.setting.1.contains("hunter2")
        );
        let mut text = String::new();
        io::Read::read_to_string(&mut std::fs::File::from(inherited.descriptor), &mut text)
            .unwrap();
        assert_eq!(text, "username=ann\npassword=hunter2\n");
        assert!(
            InheritedFile::credential(&credential("a\nhost=evil"), "https://github.com", 0)
                .is_err()
        );
    }
}
