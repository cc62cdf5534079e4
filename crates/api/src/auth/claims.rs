//! Claims of a token whose signature is valid, and the caller that they describe.
//!
//! Registered claims follow RFC 7519. Two are our own: `workspace_id` for one workspace, and `workspaces` for
//! a list or `"*"`. A token without either covers nothing and is rejected.

use std::collections::BTreeSet;
use std::time::Duration;

use carrel_domain::{Timestamp, TokenScope, TokenScopes, WorkspaceId};
use serde::{Deserialize, Deserializer, Serialize};

use super::caller::{Caller, Coverage};
use super::error::RejectReason;

/// Time that the issuer's clock may be ahead of ours, for `nbf` and `iat`. `exp` has no tolerance.
pub const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// The longest subject that is accepted, since it is written into logs.
pub const MAX_SUBJECT_BYTES: usize = 256;

const EVERY_WORKSPACE: &str = "*";

const LAST_SECOND: f64 = 253_402_300_799.0;

/// The audience and issuer that tokens must have. An absent one is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedClaims {
    /// The audience that `aud` must contain. Without it, a token with any `aud` is rejected: it was issued
    /// for another service.
    pub audience: Option<String>,
    /// The issuer that `iss` must be.
    pub issuer: Option<String>,
}

/// The claims that are read. A repeated claim is an error; unknown ones are ignored.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Claims {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sub: Option<String>,
    pub(super) exp: NumericDate,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<NumericDate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) iat: Option<NumericDate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) aud: Option<StringOrList>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) iss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<StringOrList>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspaces: Option<StringOrList>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum StringOrList {
    One(String),
    Many(Vec<String>),
}

impl StringOrList {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        }
    }
}

/// Seconds since the epoch, possibly with a fraction (RFC 7519, 2).
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct NumericDate(pub(super) i64);

impl NumericDate {
    fn timestamp(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(1000))
    }
}

impl<'de> Deserialize<'de> for NumericDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        if !(0.0..=LAST_SECOND).contains(&seconds) {
            return Err(serde::de::Error::custom("not a time"));
        }
        let whole = Duration::from_secs_f64(seconds).as_secs();
        i64::try_from(whole).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Claims {
    pub(super) fn caller(
        self,
        expected: &ExpectedClaims,
        now: Timestamp,
    ) -> Result<Caller, RejectReason> {
        self.check_time(now)?;
        self.check_expected(expected)?;
        Ok(Caller {
            coverage: self.coverage().ok_or(RejectReason::Claims)?,
            scopes: self.scopes()?,
            expires_at: self.exp.timestamp(),
            subject: self.sub.map(subject).transpose()?,
        })
    }

    fn check_time(&self, now: Timestamp) -> Result<(), RejectReason> {
        if self.exp.timestamp() <= now {
            return Err(RejectReason::Expired);
        }
        let latest = now.after(CLOCK_SKEW);
        let early = [self.nbf, self.iat].into_iter().flatten().any(|at| at.timestamp() > latest);
        if early { Err(RejectReason::Claims) } else { Ok(()) }
    }

    fn check_expected(&self, expected: &ExpectedClaims) -> Result<(), RejectReason> {
        if expected.issuer.is_some() && expected.issuer != self.iss {
            return Err(RejectReason::Issuer);
        }
        match (&expected.audience, &self.aud) {
            (None, None) => Ok(()),
            (Some(pin), Some(named)) if named.as_slice().contains(pin) => Ok(()),
            (Some(_), _) | (None, Some(_)) => Err(RejectReason::Audience),
        }
    }

    fn scopes(&self) -> Result<TokenScopes, RejectReason> {
        let scopes = match &self.scope {
            None => Ok(TokenScopes::NONE),
            Some(StringOrList::One(words)) => TokenScopes::of_words(words),
            Some(StringOrList::Many(words)) => {
                words.iter().map(|word| word.parse::<TokenScope>()).collect()
            }
        };
        scopes.map_err(|_| RejectReason::Claims)
    }

    /// Returns `None` for a token without a workspace, or with an invalid id.
    fn coverage(&self) -> Option<Coverage> {
        let named = self.workspace_id.as_deref().map(str::parse::<WorkspaceId>).transpose().ok()?;
        let listed = match &self.workspaces {
            None => &[][..],
            Some(StringOrList::One(word)) if word == EVERY_WORKSPACE => return Some(Coverage::All),
            Some(StringOrList::One(_)) => return None,
            Some(StringOrList::Many(ids)) => ids,
        };
        let listed: BTreeSet<WorkspaceId> =
            listed.iter().map(|id| id.parse()).collect::<Result<_, _>>().ok()?;
        let covered: BTreeSet<_> = listed.into_iter().chain(named).collect();
        (!covered.is_empty()).then_some(Coverage::Only(covered))
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("claims are plain data")
    }

    pub(super) fn cover(&mut self, coverage: &Coverage) {
        match coverage {
            Coverage::All => self.workspaces = Some(StringOrList::One(EVERY_WORKSPACE.to_owned())),
            Coverage::Only(covered) if covered.len() == 1 => {
                self.workspace_id = covered.first().map(ToString::to_string);
            }
            Coverage::Only(covered) => {
                self.workspaces =
                    Some(StringOrList::Many(covered.iter().map(ToString::to_string).collect()));
            }
        }
    }
}

/// Accepts a subject that fits into one line of a log.
pub(super) fn subject(name: String) -> Result<String, RejectReason> {
    let fits = name.len() <= MAX_SUBJECT_BYTES && !name.chars().any(char::is_control);
    if fits { Ok(name) } else { Err(RejectReason::Claims) }
}
