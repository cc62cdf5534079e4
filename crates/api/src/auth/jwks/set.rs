//! The key set of a provider, and verification with it.
//!
//! The header of a token selects a key by its id, and nothing else: a header that carries a key (`jwk`,
//! `x5c`), points to one (`jku`, `x5u`) or lists critical extensions is refused. A token without a key id is
//! accepted only if the set has a single key. An unknown key id is not yet a rejection: the provider may have
//! rotated its keys, and the caller of this module fetches them again.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::key::{Key, RawKey};
use crate::auth::error::RejectReason;
use crate::auth::jwt::{CompactToken, decode, object};

/// Keys of a set that are used. Providers publish a handful.
const MAX_KEYS: usize = 64;

/// The header of a provider's token. Providers add members of their own, so that unknown ones are ignored.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    /// Critical extensions, none of which are supported.
    crit: Option<Value>,
    /// Members that bring or locate a key. A token must not choose the key that verifies it.
    jku: Option<Value>,
    jwk: Option<Value>,
    x5u: Option<Value>,
    x5c: Option<Value>,
}

impl Header {
    fn is_plain(&self) -> bool {
        let asks = [&self.crit, &self.jku, &self.jwk, &self.x5u, &self.x5c];
        let kind =
            |typ: &str| ["JWT", "at+jwt"].iter().any(|known| typ.eq_ignore_ascii_case(known));
        asks.iter().all(|field| field.is_none()) && self.typ.as_deref().is_none_or(kind)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeySetError {
    /// The key id of the token is not in the set.
    UnknownKey,
    Rejected(RejectReason),
}

impl From<RejectReason> for KeySetError {
    fn from(reason: RejectReason) -> Self {
        Self::Rejected(reason)
    }
}

#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a set. Returns `None` if it has no usable key.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let published: Published = serde_json::from_slice(text).ok()?;
        let read = |key| Key::of(serde_json::from_value::<RawKey>(key).ok()?);
        let keys: Vec<_> = published.keys.into_iter().filter_map(read).take(MAX_KEYS).collect();
        (!keys.is_empty()).then_some(Self { keys })
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the payload of a token that one of the keys signed.
    pub(super) fn open(&self, token: &str) -> Result<Map<String, Value>, KeySetError> {
        let (parts, header) = read(token).ok_or(RejectReason::Malformed)?;
        let key = self.find(&header)?;
        // The key determines the algorithm; the token must name the same.
        if header.alg != key.algorithm() {
            return Err(RejectReason::Signature.into());
        }
        let signature = decode(parts.signature).ok_or(RejectReason::Malformed)?;
        if !key.has_signed(parts.signed.as_bytes(), &signature) {
            return Err(RejectReason::Signature.into());
        }
        let payload = decode(parts.payload).and_then(|payload| object(&payload));
        Ok(payload.ok_or(RejectReason::Claims)?)
    }

    /// Returns the key that a token names, or the only one.
    fn find(&self, header: &Header) -> Result<&Key, KeySetError> {
        match (&header.kid, &self.keys[..]) {
            (Some(_), keys) => {
                keys.iter().find(|key| key.id == header.kid).ok_or(KeySetError::UnknownKey)
            }
            (None, [only]) => Ok(only),
            (None, _) => Err(RejectReason::Signature.into()),
        }
    }
}

fn read(token: &str) -> Option<(CompactToken<'_>, Header)> {
    let parts = CompactToken::of(token)?;
    let header: Header = object(&decode(parts.header)?)?;
    header.is_plain().then_some((parts, header))
}
