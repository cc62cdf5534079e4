//! Settings of an identity provider, from the environment.
//!
//! `CARREL_JWKS_URL` enables the provider. Issuer and audience are required with it: a provider signs tokens
//! for many applications with the same keys, and only these claims tell them apart. A setting without the URL
//! is an error rather than ignored, so that a typo in the variable's name does not silently leave the server
//! with local tokens.

use carrel_client::ServerUrl;
use carrel_config::Environment;
use carrel_config::environment::{
    CARREL_JWKS_URL, CARREL_JWT_AUDIENCE, CARREL_JWT_ISSUER, CARREL_JWT_SCOPE_CLAIM,
    CARREL_JWT_WORKSPACE_CLAIM, CARREL_JWT_WORKSPACES_CLAIM, CARREL_LOCAL_TOKENS,
};
use serde_json::Value;

use crate::auth::claims::ExpectedClaims;

/// An invalid setting of the identity provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderSettingsError {
    /// The URL is invalid, or keys would travel unencrypted.
    #[error(
        "CARREL_JWKS_URL={url} cannot be used; it must be an https URL, or http on the loopback interface"
    )]
    Url {
        /// The value.
        url: String,
    },
    /// Issuer or audience is missing: tokens for other applications of the provider would be accepted.
    #[error(
        "CARREL_JWKS_URL is set without {name}; a token of the same provider for another application would be accepted"
    )]
    Missing {
        /// The environment variable.
        name: &'static str,
    },
    /// `CARREL_LOCAL_TOKENS` is neither `on` nor `off`.
    #[error("CARREL_LOCAL_TOKENS={value} cannot be used; it must be on or off")]
    LocalTokens {
        /// The value.
        value: String,
    },
    /// A setting has no effect without a provider.
    #[error("{name} is set without CARREL_JWKS_URL, and would do nothing")]
    Alone {
        /// The environment variable.
        name: &'static str,
    },
}

/// The name of a claim, or a JSON pointer to a nested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimName(String);

impl ClaimName {
    pub(super) fn find<'a>(&self, payload: &'a Value) -> Option<&'a Value> {
        if self.0.starts_with('/') { payload.pointer(&self.0) } else { payload.get(&self.0) }
    }
}

/// The names of the claims for workspaces and scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimNames {
    pub(super) workspace: ClaimName,
    pub(super) workspaces: ClaimName,
    pub(super) scope: ClaimName,
}

/// The configuration of an identity provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderOptions {
    pub(super) url: String,
    issuer: String,
    audience: String,
    pub(super) claims: ClaimNames,
    /// `CARREL_LOCAL_TOKENS=off`: tokens of this server are rejected.
    exclusive: bool,
}

impl ProviderOptions {
    /// Returns `true` if tokens of this server are rejected.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Reads the settings. Returns `None` without a provider.
    pub fn read(environment: &Environment) -> Result<Option<Self>, ProviderSettingsError> {
        let text =
            |name| environment.get_str(name).map(str::trim).filter(|value| !value.is_empty());
        let exclusive = match text(CARREL_LOCAL_TOKENS) {
            None | Some("on") => false,
            Some("off") => true,
            Some(value) => {
                return Err(ProviderSettingsError::LocalTokens {
                    value: value.chars().take(40).collect(),
                });
            }
        };
        let Some(url) = text(CARREL_JWKS_URL) else {
            let alone = [
                CARREL_JWT_ISSUER,
                CARREL_JWT_AUDIENCE,
                CARREL_JWT_WORKSPACE_CLAIM,
                CARREL_JWT_WORKSPACES_CLAIM,
                CARREL_JWT_SCOPE_CLAIM,
            ];
            let closed = exclusive.then_some(CARREL_LOCAL_TOKENS);
            let found = alone.into_iter().find(|name| text(name).is_some()).or(closed);
            return found.map_or(Ok(None), |name| Err(ProviderSettingsError::Alone { name }));
        };
        check_url(url)?;
        let required = |name: &'static str| {
            text(name).map(str::to_owned).ok_or(ProviderSettingsError::Missing { name })
        };
        let claim = |name, usual: &str| ClaimName(text(name).unwrap_or(usual).to_owned());
        Ok(Some(Self {
            url: url.to_owned(),
            issuer: required(CARREL_JWT_ISSUER)?,
            audience: required(CARREL_JWT_AUDIENCE)?,
            claims: ClaimNames {
                workspace: claim(CARREL_JWT_WORKSPACE_CLAIM, "workspace_id"),
                workspaces: claim(CARREL_JWT_WORKSPACES_CLAIM, "workspaces"),
                scope: claim(CARREL_JWT_SCOPE_CLAIM, "scope"),
            },
            exclusive,
        }))
    }

    pub(super) fn expected(&self) -> ExpectedClaims {
        ExpectedClaims { audience: Some(self.audience.clone()), issuer: Some(self.issuer.clone()) }
    }
}

fn check_url(url: &str) -> Result<(), ProviderSettingsError> {
    let base = url.split_once('?').map_or(url, |(base, _)| base);
    let server = base.parse::<ServerUrl>().ok().filter(|server| !server.is_cleartext_remote());
    // A URL with credentials is not repeated.
    let shown = if url.contains('@') { "***" } else { url };
    server.map(drop).ok_or_else(|| ProviderSettingsError::Url { url: shown.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Option<ProviderOptions>, String> {
        let environment = Environment::from_pairs(pairs.iter().copied());
        ProviderOptions::read(&environment).map_err(|error| error.to_string())
    }

    #[test]
    fn issuer_and_audience_are_not_left_to_chance() {
        const URL: (&str, &str) = ("CARREL_JWKS_URL", "https://id.example/jwks?p=x");
        const ISSUER: (&str, &str) = ("CARREL_JWT_ISSUER", "https://id.example/");
        const AUDIENCE: (&str, &str) = ("CARREL_JWT_AUDIENCE", "carrel");
        assert_eq!(read(&[]), Ok(None));
        assert!(read(&[URL, ISSUER, AUDIENCE]).unwrap().is_some());
        let local = |word| read(&[URL, ISSUER, AUDIENCE, ("CARREL_LOCAL_TOKENS", word)]);
        assert!(local("off").unwrap().unwrap().is_exclusive());
        assert!(!local("on").unwrap().unwrap().is_exclusive());
        assert!(local("no").unwrap_err().contains("on or off"));
        for (pairs, name) in [
            (vec![URL], "CARREL_JWT_ISSUER"),
            (vec![URL, ISSUER], "CARREL_JWT_AUDIENCE"),
            (vec![URL, AUDIENCE], "CARREL_JWT_ISSUER"),
            (vec![URL, ("CARREL_JWT_ISSUER", " "), AUDIENCE], "CARREL_JWT_ISSUER"),
            (vec![AUDIENCE], "CARREL_JWT_AUDIENCE"),
            (vec![("CARREL_JWT_SCOPE_CLAIM", "x")], "CARREL_JWT_SCOPE_CLAIM"),
            (vec![("CARREL_LOCAL_TOKENS", "off")], "CARREL_LOCAL_TOKENS"),
        ] {
            let error = read(&pairs).unwrap_err();
            assert!(error.contains(name) && error.contains("CARREL_JWKS_URL"), "{error}");
        }
    }

    #[test]
    fn keys_come_over_https_or_loopback() {
        for url in ["https://id.example/jwks", "http://127.0.0.1:9/k", "http://localhost:9/k"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in [
            "http://id.example/jwks",
            "ftp://id.example",
            "file:///etc/passwd",
            "id.example",
            "https://user:hunter2@id.example/jwks",
        ] {
            let error = check_url(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
