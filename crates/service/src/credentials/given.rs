//! What a step gets of the credentials that it names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use carrel_domain::Secret;
use carrel_git::{Credential, CredentialSource};
use carrel_tools::CommandSettings;

use super::content::{CredentialContent, GitToken};
use super::ssh_key;

/// What is said for a user where only a token is known. GitHub and GitLab take any.
const ANY_USER: &str = "x-access-token";

/// A shorter value is part of too many other words to be masked.
const MIN_MASKED_BYTES: usize = 6;

/// What a step gets. It is gone with the step.
#[derive(Clone, Default)]
pub(crate) struct StepCredentials {
    variables: BTreeMap<String, Secret>,
    tokens: BTreeMap<String, (String, Credential)>,
    /// With the name of the credential.
    ssh_key: Option<(String, Secret)>,
    author: (Option<String>, Option<String>),
}

impl fmt::Debug for StepCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCredentials").finish_non_exhaustive()
    }
}

impl StepCredentials {
    /// Adds a credential. What it says beats what earlier ones said.
    pub(super) fn add(&mut self, name: &str, content: CredentialContent) {
        let CredentialContent { env_vars, git_name, git_email, git_token, ssh_private_key } =
            content;
        let variables = env_vars.into_iter().map(|(name, value)| (name, Secret::new(value)));
        self.variables.extend(variables);
        if let Some(GitToken { host, username, token }) = git_token {
            let username = username.unwrap_or_else(|| ANY_USER.to_owned());
            let credential = Credential { username, password: Secret::new(token) };
            self.tokens.insert(host.to_ascii_lowercase(), (name.to_owned(), credential));
        }
        if let Some(key) = ssh_private_key {
            self.ssh_key = Some((name.to_owned(), Secret::new(ssh_key::normal(&key))));
        }
        self.author = (git_name.or(self.author.0.take()), git_email.or(self.author.1.take()));
    }

    /// Adds a token for a machine that none of the credentials is for.
    pub(crate) fn lend(&mut self, host: &str, name: &str, token: Secret) {
        let credential = Credential { username: ANY_USER.to_owned(), password: token };
        self.tokens.entry(host.to_owned()).or_insert_with(|| (name.to_owned(), credential));
    }

    /// Puts everything where the step's tools find it.
    pub(crate) fn fill(&self, settings: &mut CommandSettings) {
        settings.environment = self.variables.clone().into_iter().collect();
        settings.ssh_key = self.ssh_key.as_ref().map(|(_, key)| key.clone());
        settings.author = self.author.clone();
        if !self.tokens.is_empty() {
            settings.credentials = Some(Arc::new(self.clone()));
        }
    }

    /// Returns every value that must not be told, with the name that stands for it.
    pub(crate) fn secrets(&self) -> Vec<(String, Secret)> {
        let variables = self.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        let tokens =
            self.tokens.values().map(|(name, token)| (name.clone(), token.password.clone()));
        let whole: Vec<_> = variables.chain(tokens).chain(self.ssh_key.iter().cloned()).collect();
        let lines = whole.iter().flat_map(|(name, secret)| {
            // Output is told line by line, and so is a secret that has several.
            secret.expose().lines().map(|line| (name.clone(), Secret::new(line)))
        });
        let mut all: Vec<_> = lines.chain(whole.iter().cloned()).collect();
        all.retain(|(_, secret)| secret.expose().len() >= MIN_MASKED_BYTES);
        all
    }
}

impl CredentialSource for StepCredentials {
    fn for_host(&self, _workspace: &str, host: &str) -> Option<Credential> {
        self.tokens.get(host).map(|(_, credential)| credential.clone())
    }

    fn known(&self) -> Vec<(String, Secret)> {
        self.secrets()
    }
}
