//! Who git says it is, where a machine asks.
//!
//! A credential is never part of an address, an argument, a variable, a configuration or a file: git
//! is given a helper that reads it from a descriptor, and that only the addresses of one machine use.

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

/// What is said for a user where only a token is known. GitHub and GitLab take any.
const ANY_USER: &str = "x-access-token";

/// More would not fit into a pipe that nobody reads yet.
const MAX_BYTES: usize = 4096;

/// What a machine is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The user.
    pub username: String,
    /// The password or token.
    pub password: Secret,
}

/// Knows what machines are to be told.
pub trait CredentialSource: Send + Sync + fmt::Debug + 'static {
    /// Returns what to tell a machine for a workspace, if anything. `host` is in small letters and has
    /// its port, if that is not the usual one: `github.com`, `git.example.com:8443`.
    fn for_host(&self, workspace: &str, host: &str) -> Option<Credential>;

    /// Returns every value that must not be in an answer, with a name for it.
    fn known(&self) -> Vec<(String, Secret)>;
}

/// Credentials from `CARREL_GIT_TOKEN_<HOST>`: the name of the machine in capitals, with `_` for a dot,
/// `__` for a hyphen and `___` before a port, so that no two machines share a variable. The value is a
/// token, or `user:password`. They are the same for every workspace, and no tool hands them out.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentCredentials {
    tokens: BTreeMap<String, Secret>,
}

impl EnvironmentCredentials {
    /// Takes them from an environment.
    pub fn new(environment: &Environment) -> Self {
        let tokens = environment.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?.trim());
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
        let value = self.tokens.get(&variable_of(host))?.expose();
        let (username, password) = value.split_once(':').unwrap_or((ANY_USER, value));
        Some(Credential { username: username.to_owned(), password: Secret::new(password) })
    }
}

/// Returns the variable with the token for a machine. Names of machines have no `_`, and no hyphen
/// beside a dot, so each has a variable of its own.
pub(super) fn variable_of(host: &str) -> String {
    let host = host.to_ascii_uppercase().replace('-', "__").replace('.', "_").replace(':', "___");
    format!("{GIT_TOKEN_PREFIX}{host}")
}

/// A credential on its way to git.
#[derive(Debug)]
pub(super) struct Handover {
    /// What the helper reads.
    pub(super) descriptor: OwnedFd,
    /// What git is told about the helper.
    pub(super) settings: (String, String),
}

impl Handover {
    /// Puts a credential where only a helper for addresses that begin with `base` reads it. `index` is
    /// its place among the descriptors that the command inherits.
    pub(super) fn new(credential: &Credential, base: &str, index: u32) -> io::Result<Self> {
        let Credential { username, password } = credential;
        let password = password.expose();
        let text = format!("username={username}\npassword={password}\n");
        if text.len() > MAX_BYTES
            || [username, password].iter().any(|value| value.contains(['\n', '\0']))
        {
            return Err(io::Error::other("a credential that is no line of text"));
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        std::fs::File::from(writer).write_all(text.as_bytes())?;
        // The command may be another user, and opens it by its name. Only those who have it find that.
        fchmod(&reader, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        let number = CommandSpec::FIRST_INHERITED + index;
        // Git adds `get`, `store` or `erase`. Shells do not take a number of three digits behind `<&`.
        let helper = format!("!f() {{ test \"$1\" != get || cat /proc/self/fd/{number}; }}; f");
        Ok(Self { descriptor: reader, settings: (format!("credential.{base}.helper"), helper) })
    }

    /// Puts certificates where git reads them, as often as it likes. The operator's file may lie where
    /// the command sees nothing.
    pub(super) fn authorities(pem: &[u8], index: u32) -> io::Result<Self> {
        let file = memfd_create("authorities", MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        file.write_all(pem)?;
        fchmod(&file, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        let number = CommandSpec::FIRST_INHERITED + index;
        let settings = ("http.sslCAInfo".to_owned(), format!("/proc/self/fd/{number}"));
        Ok(Self { descriptor: file.into(), settings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn tokens_of_the_environment_are_for_one_machine_and_port() {
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
        assert_eq!(
            found("github-com"),
            None,
            "a machine that only looks alike once written as a variable"
        );
        assert_eq!(variable_of("git-hub.com"), "CARREL_GIT_TOKEN_GIT__HUB_COM");
        assert!(!format!("{source:?}").contains("ghp_token"));
    }

    #[test]
    fn a_credential_is_behind_a_descriptor_and_one_line_each() {
        let credential =
            |password: &str| Credential { username: "ann".into(), password: Secret::new(password) };
        let handover = Handover::new(&credential("hunter2"), "https://github.com", 0).unwrap();
        assert_eq!(handover.settings.0, "credential.https://github.com.helper");
        assert!(
            handover.settings.1.contains("/proc/self/fd/100")
                && !handover.settings.1.contains("hunter2")
        );
        let mut text = String::new();
        io::Read::read_to_string(&mut std::fs::File::from(handover.descriptor), &mut text).unwrap();
        assert_eq!(text, "username=ann\npassword=hunter2\n");
        assert!(Handover::new(&credential("a\nhost=evil"), "https://github.com", 0).is_err());
    }
}
