//! Token sources that the operator has configured, read from the environment.
//!
//! An app needs its id and its key, and either alone is an error: a half-configured source would look like
//! missing access. URLs must be `https`, or `http` on loopback for tests, since tokens are sent there. The
//! operator's token is used only if grants exist.

use std::sync::{Arc, Mutex};

use carrel_client::{HttpClient, ServerUrl};
use carrel_config::Environment;
use carrel_config::environment::{
    CARREL_COMPOSIO_URL, CARREL_GITHUB_ALLOW, CARREL_GITHUB_API_URL, CARREL_GITHUB_HOST,
    COMPOSIO_API_KEY, GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY, GITHUB_APP_PRIVATE_KEY_FILE,
    GITHUB_TOKEN,
};
use carrel_domain::{Secret, SystemClock};

use crate::TokenSource;
use crate::app::GitHubApp;
use crate::app_signer::AppSigner;
use crate::composio::Composio;
use crate::grants::Grants;
use crate::operator_token::OperatorToken;
use crate::provider_client::ProviderClient;

const GITHUB: &str = "https://api.github.com";

const HOST: &str = "github.com";

const COMPOSIO: &str = "https://backend.composio.dev";

/// An invalid setting. No variant contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum GitHubSettingsError {
    /// A URL is invalid, or tokens would travel unencrypted.
    #[error("{name} cannot be used; it must be an https URL, or http on the loopback interface")]
    Address {
        /// The environment variable.
        name: &'static str,
    },
    /// An entry of `CARREL_GITHUB_ALLOW` is invalid.
    #[error("CARREL_GITHUB_ALLOW cannot be used")]
    Grants(#[from] crate::InvalidGrant),
    /// Only one of id and key of an app is set.
    #[error(
        "{missing} is missing; an app needs GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY or GITHUB_APP_PRIVATE_KEY_FILE"
    )]
    IncompleteApp {
        /// The environment variable.
        missing: &'static str,
    },
    /// The key file of the app cannot be read.
    #[error("the key of the GitHub App cannot be read from {path}")]
    KeyFile {
        /// The path of the file.
        path: String,
        /// The error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The key of the app is not an RSA key in PEM.
    #[error("the key of the GitHub App is not an RSA key in PEM of at least 2048 bits")]
    Key,
}

/// Token sources that the operator has configured, read from the environment.
///
/// An app needs its id and its key, and either alone is an error: a half-configured source would look like
/// missing access. URLs must be `https`, or `http` on loopback for tests, since tokens are sent there. The
/// operator's token is used only if grants exist.
#[derive(Debug)]
pub struct GitHubSettings {
    pub(crate) host: String,
    github: ServerUrl,
    composio: Option<(ServerUrl, Secret)>,
    app: Option<AppSigner>,
    operator: Option<Secret>,
    grants: Grants,
}

impl GitHubSettings {
    /// Reads the environment. Blank variables count as unset.
    pub fn read(environment: &Environment) -> Result<Self, GitHubSettingsError> {
        let text =
            |name| environment.get_str(name).map(str::trim).filter(|value| !value.is_empty());
        let server = |name: &'static str, usual| {
            let server = text(name).unwrap_or(usual).parse::<ServerUrl>().ok();
            let safe = server.filter(|server| !server.is_cleartext_remote());
            safe.ok_or(GitHubSettingsError::Address { name })
        };
        let key = text(COMPOSIO_API_KEY).map(Secret::new);
        let composio = server(CARREL_COMPOSIO_URL, COMPOSIO)?;
        Ok(Self {
            host: text(CARREL_GITHUB_HOST).unwrap_or(HOST).to_ascii_lowercase(),
            github: server(CARREL_GITHUB_API_URL, GITHUB)?,
            composio: key.map(|key| (composio, key)),
            app: app(environment)?,
            operator: text(GITHUB_TOKEN).map(Secret::new),
            grants: text(CARREL_GITHUB_ALLOW).unwrap_or_default().parse()?,
        })
    }

    /// Returns the sources in the order in which they are asked.
    pub(crate) fn into_sources(self) -> (ProviderClient, Vec<Box<dyn TokenSource>>) {
        let connections = HttpClient::new();
        let github = ProviderClient::new(connections.clone(), self.github, "GitHub");
        let mut sources: Vec<Box<dyn TokenSource>> = Vec::new();
        if let Some(signer) = self.app {
            sources.push(Box::new(GitHubApp {
                api: github.clone(),
                signer,
                grants: self.grants.clone(),
                clock: Arc::new(SystemClock),
                cached: Mutex::default(),
            }));
        }
        if let Some((server, key)) = self.composio {
            let api = ProviderClient::new(connections, server, "Composio");
            sources.push(Box::new(Composio { api, key }));
        }
        // Without a grant, the token would never be used.
        if let Some(token) = self.operator.filter(|_| self.grants != Grants::default()) {
            sources.push(Box::new(OperatorToken { token, grants: self.grants }));
        }
        (github, sources)
    }
}

#[expect(clippy::disallowed_methods, reason = "the operator's own file, in no workspace")]
fn app(environment: &Environment) -> Result<Option<AppSigner>, GitHubSettingsError> {
    let text = |name| environment.get_str(name).map(str::trim).filter(|value| !value.is_empty());
    let key = match (text(GITHUB_APP_PRIVATE_KEY), text(GITHUB_APP_PRIVATE_KEY_FILE)) {
        (Some(key), _) => Some(key.to_owned()),
        (None, Some(path)) => Some(
            std::fs::read_to_string(path)
                .map_err(|source| GitHubSettingsError::KeyFile { path: path.to_owned(), source })?,
        ),
        (None, None) => None,
    };
    match (text(GITHUB_APP_ID), key.map(Secret::new)) {
        (Some(id), Some(key)) => {
            AppSigner::new(id.to_owned(), &key).map(Some).ok_or(GitHubSettingsError::Key)
        }
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(GitHubSettingsError::IncompleteApp { missing: GITHUB_APP_PRIVATE_KEY })
        }
        (None, Some(_)) => Err(GitHubSettingsError::IncompleteApp { missing: GITHUB_APP_ID }),
    }
}
