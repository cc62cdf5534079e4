//! Tokens that this server signs and verifies.
//!
//! A token is a JWT with HS256. The secret comes from `CARREL_TOKEN_SECRET` or from a file of the data
//! directory ([`ServerSecret`]); `carrel token new` signs with the same secret, so that no route issues
//! tokens. There is no revocation list: tokens expire, and a new secret invalidates all of them.

use std::path::Path;
use std::time::Duration;

use carrel_config::Environment;
use carrel_domain::{Code, Coded, Secret, Timestamp, TokenScope, TokenScopes};

use super::caller::{Caller, Coverage};
use super::claims::{Claims, ExpectedClaims, NumericDate, StringOrList, subject};
use super::error::AuthError;
use super::jwt::{self, MAX_TOKEN_BYTES};
use super::key_file::{self, KeyError, ServerSecret};
use super::random::random;
use super::signing_key::{MIN_SECRET_BYTES, SigningKey};
use super::ticket::Tickets;

/// The content of a token to issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The name of the bearer in logs.
    pub subject: Option<String>,
    /// The workspaces that the bearer may use.
    pub coverage: Coverage,
    /// The kinds of work that the bearer may do there.
    pub scopes: TokenScopes,
    /// The lifetime.
    pub ttl: Duration,
    /// The audience, if not the expected one of the authority.
    pub audience: Option<String>,
    /// The issuer, if not the expected one of the authority.
    pub issuer: Option<String>,
}

impl Grant {
    /// Returns a grant with the default scopes.
    pub fn new(coverage: Coverage, ttl: Duration) -> Self {
        let scopes = TokenScopes::STANDARD;
        Self { subject: None, coverage, scopes, ttl, audience: None, issuer: None }
    }
}

/// The reason that a grant is refused: the token would never be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The coverage is empty.
    #[error("a token needs at least one workspace")]
    NoWorkspace,
    /// The scopes are empty.
    #[error("a token needs at least one scope")]
    NoScope,
    /// The lifetime is below a second.
    #[error("a token needs a lifetime of at least one second")]
    NoTime,
    /// The subject does not fit into one line of a log.
    #[error(
        "the subject of a token is one line of at most {} bytes",
        super::claims::MAX_SUBJECT_BYTES
    )]
    Subject,
    /// The token would exceed [`MAX_TOKEN_BYTES`].
    #[error("the token would be longer than {MAX_TOKEN_BYTES} bytes; name fewer workspaces")]
    TooLong,
}

impl Coded for GrantError {
    fn code(&self) -> Code {
        Code::InvalidRequest
    }
}

/// A signing secret and the claims that its tokens must have.
#[derive(Clone, Debug)]
pub struct Authority {
    key: SigningKey,
    expected: ExpectedClaims,
}

impl Authority {
    /// Loads the secret of the environment, or else that of the data directory, which is created if missing.
    pub fn load(environment: &Environment, data_dir: &Path) -> Result<Self, KeyError> {
        ServerSecret::TOKENS.load(environment, data_dir).map(|secret| Self::signing_with(&secret))
    }

    /// Loads the secret of a data directory, which is created if missing.
    pub fn open_or_create(data_dir: &Path) -> Result<Self, KeyError> {
        ServerSecret::TOKENS.open_or_create(data_dir).map(|secret| Self::signing_with(&secret))
    }

    /// Uses a secret of at least [`MIN_SECRET_BYTES`].
    pub fn from_secret(secret: &Secret) -> Result<Self, KeyError> {
        let secret = key_file::usable(secret.expose().as_bytes(), "the secret for tokens")?;
        Ok(Self::signing_with(&secret))
    }

    /// Uses a random secret, for a server that accepts no tokens.
    pub fn with_random_secret() -> Self {
        let key = SigningKey::new(&random::<MIN_SECRET_BYTES>());
        Self { key, expected: ExpectedClaims::default() }
    }

    fn signing_with(secret: &Secret) -> Self {
        let key = SigningKey::new(secret.expose().as_bytes());
        Self { key, expected: ExpectedClaims::default() }
    }

    /// Sets the audience and issuer that tokens must have and new tokens get.
    #[must_use]
    pub fn expecting(self, expected: ExpectedClaims) -> Self {
        Self { expected, ..self }
    }

    /// Returns the tickets whose key derives from this secret.
    pub fn tickets(&self) -> Tickets {
        Tickets::new(&self.key)
    }

    /// Issues a token.
    pub fn issue(&self, grant: &Grant, now: Timestamp) -> Result<Secret, GrantError> {
        check(grant)?;
        let seconds = |at: Timestamp| NumericDate(at.as_millis().div_euclid(1000));
        let expected = &self.expected;
        let words: Vec<_> = grant.scopes.iter().map(TokenScope::as_str).collect();
        let mut claims = Claims {
            sub: grant.subject.clone(),
            exp: seconds(now.after(grant.ttl)),
            nbf: None,
            iat: Some(seconds(now)),
            aud: grant
                .audience
                .as_ref()
                .or(expected.audience.as_ref())
                .cloned()
                .map(StringOrList::One),
            iss: grant.issuer.as_ref().or(expected.issuer.as_ref()).cloned(),
            scope: Some(StringOrList::One(words.join(" "))),
            workspace_id: None,
            workspaces: None,
        };
        claims.cover(&grant.coverage);
        let token = jwt::seal(&self.key, &claims.payload());
        if token.len() > MAX_TOKEN_BYTES {
            Err(GrantError::TooLong)
        } else {
            Ok(Secret::new(token))
        }
    }

    /// Returns the caller of a token that is valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Caller, AuthError> {
        jwt::open::<Claims>(&self.key, token)
            .and_then(|claims| claims.caller(&self.expected, now))
            .map_err(AuthError::unauthenticated)
    }
}

fn check(grant: &Grant) -> Result<(), GrantError> {
    if matches!(&grant.coverage, Coverage::Only(covered) if covered.is_empty()) {
        return Err(GrantError::NoWorkspace);
    }
    if grant.scopes == TokenScopes::NONE {
        return Err(GrantError::NoScope);
    }
    if grant.ttl < Duration::from_secs(1) {
        return Err(GrantError::NoTime);
    }
    match grant.subject.clone().map(subject) {
        Some(Err(_)) => Err(GrantError::Subject),
        Some(Ok(_)) | None => Ok(()),
    }
}
