//! Whoever signs tokens, and believes those it signed.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use carrel_config::Environment;
use carrel_domain::{Code, Coded, Secret, Timestamp, TokenScope, TokenScopes};

use super::caller::{Caller, Coverage};
use super::claims::{Claims, ExpectedClaims, NumericDate, StringOrList, subject};
use super::error::AuthError;
use super::jwt::{self, MAX_TOKEN_BYTES};
use super::key_file::{self, KeyError, ServerSecret};
use super::signing_key::{MIN_SECRET_BYTES, SigningKey};
use super::ticket::Tickets;

/// Something that tells who presents a token.
///
/// An implementation with keys of others answers from those it has; fetching them is not its job.
pub trait Verifier: fmt::Debug + Send + Sync {
    /// Returns the caller that a token stands for at this time.
    fn verify(&self, token: &str, now: Timestamp) -> Result<Caller, AuthError>;
}

/// What a token is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What the log calls the bearer.
    pub subject: Option<String>,
    /// Where they may do something.
    pub coverage: Coverage,
    /// What they may do there.
    pub scopes: TokenScopes,
    /// For how long.
    pub ttl: Duration,
    /// For whom it is, if not for the expecting audience.
    pub audience: Option<String>,
    /// From whom it is, if not from the expecting issuer.
    pub issuer: Option<String>,
}

impl Grant {
    /// Returns a grant with the scopes of a new token.
    pub fn new(coverage: Coverage, ttl: Duration) -> Self {
        let scopes = TokenScopes::STANDARD;
        Self { subject: None, coverage, scopes, ttl, audience: None, issuer: None }
    }
}

/// Why a token cannot be made: it would never be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// It covers nothing.
    #[error("a token needs at least one workspace")]
    NoWorkspace,
    /// It allows nothing.
    #[error("a token needs at least one scope")]
    NoScope,
    /// It would be over at once.
    #[error("a token needs a lifetime of at least one second")]
    NoTime,
    /// Its bearer's name does not fit into a line of a log.
    #[error(
        "the subject of a token is one line of at most {} bytes",
        super::claims::MAX_SUBJECT_BYTES
    )]
    Subject,
    /// It covers too much to be sent.
    #[error("the token would be longer than {MAX_TOKEN_BYTES} bytes; name fewer workspaces")]
    TooLong,
}

impl Coded for GrantError {
    fn code(&self) -> Code {
        Code::InvalidRequest
    }
}

/// A secret, and what is asked of tokens beside its signature.
#[derive(Clone, Debug)]
pub struct Authority {
    key: SigningKey,
    expected: ExpectedClaims,
}

impl Authority {
    /// Takes the secret of the environment if there is one, or else that of the data directory.
    pub fn load(environment: &Environment, data_dir: &Path) -> Result<Self, KeyError> {
        ServerSecret::TOKENS.load(environment, data_dir).map(|secret| Self::signing_with(&secret))
    }

    /// Takes the secret of a data directory, which gets one if it has none.
    pub fn open_or_create(data_dir: &Path) -> Result<Self, KeyError> {
        ServerSecret::TOKENS.open_or_create(data_dir).map(|secret| Self::signing_with(&secret))
    }

    /// Takes a secret of at least 32 bytes.
    pub fn from_secret(secret: &Secret) -> Result<Self, KeyError> {
        let secret = key_file::usable(secret.expose().as_bytes(), "the secret for tokens")?;
        Ok(Self::signing_with(&secret))
    }

    /// Takes a secret that nobody knows, for a server that believes no tokens.
    pub(crate) fn with_random_secret() -> Self {
        let mut secret = [0; MIN_SECRET_BYTES];
        getrandom::fill(&mut secret).expect("the system has random bytes");
        Self { key: SigningKey::new(&secret), expected: ExpectedClaims::default() }
    }

    fn signing_with(secret: &Secret) -> Self {
        Self {
            key: SigningKey::new(secret.expose().as_bytes()),
            expected: ExpectedClaims::default(),
        }
    }

    /// Asks for an audience and an issuer, and writes them into new tokens.
    #[must_use]
    pub fn expecting(self, expected: ExpectedClaims) -> Self {
        Self { expected, ..self }
    }

    /// Returns the tickets that follow from this secret.
    pub fn tickets(&self) -> Tickets {
        Tickets::new(&self.key)
    }

    /// Makes a token.
    pub fn issue(&self, grant: &Grant, now: Timestamp) -> Result<Secret, GrantError> {
        check(grant)?;
        let seconds = |at: Timestamp| NumericDate(at.as_millis().div_euclid(1000));
        let words: Vec<_> = grant.scopes.iter().map(TokenScope::as_str).collect();
        let mut claims = Claims {
            sub: grant.subject.clone(),
            exp: seconds(now.after(grant.ttl)),
            nbf: None,
            iat: Some(seconds(now)),
            aud: grant
                .audience
                .clone()
                .or_else(|| self.expected.audience.clone())
                .map(StringOrList::One),
            iss: grant.issuer.clone().or_else(|| self.expected.issuer.clone()),
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
}

impl Verifier for Authority {
    fn verify(&self, token: &str, now: Timestamp) -> Result<Caller, AuthError> {
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
