//! The unsealed credentials of one step.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use carrel_domain::Secret;
use carrel_git::{Credential, CredentialSource};
use carrel_tools::CommandSettings;

use super::content::{CredentialContent, GitToken};
use super::ssh_key;

/// The user name for tokens without one. GitHub and GitLab accept any.
const DEFAULT_USER: &str = "x-access-token";

/// Shorter values are not masked: they would mask parts of ordinary words.
const MIN_MASKED_BYTES: usize = 6;

/// The merged credentials of a step. Dropped with the step; its `Debug` form shows nothing.
#[derive(Clone, Default)]
pub(crate) struct StepCredentials {
    variables: BTreeMap<String, Secret>,
    /// By host, each with the name of its credential.
    tokens: BTreeMap<String, (String, Credential)>,
    /// With the name of its credential.
    ssh_key: Option<(String, Secret)>,
    /// Name and email.
    author: (Option<String>, Option<String>),
}

impl fmt::Debug for StepCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCredentials").finish_non_exhaustive()
    }
}

impl StepCredentials {
    /// Adds a credential. Its values replace those of earlier ones.
    pub(super) fn add(&mut self, name: &str, content: CredentialContent) {
        let CredentialContent { env_vars, git_name, git_email, git_token, ssh_private_key } =
            content;
        let variables = env_vars.into_iter().map(|(name, value)| (name, Secret::new(value)));
        self.variables.extend(variables);
        if let Some(GitToken { host, username, token }) = git_token {
            let username = username.unwrap_or_else(|| DEFAULT_USER.to_owned());
            let credential = Credential { username, password: Secret::new(token) };
            self.tokens.insert(host.to_ascii_lowercase(), (name.to_owned(), credential));
        }
        if let Some(key) = ssh_private_key {
            self.ssh_key = Some((name.to_owned(), Secret::new(ssh_key::normalize(&key))));
        }
        self.author = (git_name.or(self.author.0.take()), git_email.or(self.author.1.take()));
    }

    /// Adds a token for a host, unless a credential of the step has one.
    pub(crate) fn add_token(&mut self, host: &str, name: &str, token: Secret) {
        let credential = Credential { username: DEFAULT_USER.to_owned(), password: token };
        self.tokens.entry(host.to_owned()).or_insert_with(|| (name.to_owned(), credential));
    }

    /// Passes the credentials to a tool call.
    pub(crate) fn fill(&self, settings: &mut CommandSettings) {
        settings.environment = self.variables.clone().into_iter().collect();
        settings.ssh_key = self.ssh_key.as_ref().map(|(_, key)| key.clone());
        settings.author = self.author.clone();
        if !self.tokens.is_empty() {
            settings.credentials = Some(Arc::new(self.clone()));
        }
    }

    /// Returns every value to mask, with the name that replaces it. A value of several lines is returned
    /// whole and line by line, since output is masked by lines.
    pub(crate) fn secrets(&self) -> Vec<(String, Secret)> {
        let variables = self.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        let tokens =
            self.tokens.values().map(|(name, token)| (name.clone(), token.password.clone()));
        let whole: Vec<_> = variables.chain(tokens).chain(self.ssh_key.iter().cloned()).collect();
        let lines = whole.iter().flat_map(|(name, secret)| {
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
