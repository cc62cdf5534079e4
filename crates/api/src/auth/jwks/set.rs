//! The keys of a provider, and the tokens that they verify.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::key::{Key, RawKey};
use crate::auth::error::RejectReason;
use crate::auth::jwt::{CompactToken, decode, object};

/// Keys that are kept of a set. Providers have a handful.
const MAX_KEYS: usize = 64;

/// What stands in the header of a token of a provider. The rest is passed over, as providers have
/// fields of their own there.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    /// What has to be understood, and is not.
    crit: Option<Value>,
    /// Keys and places of keys. Nobody chooses here what a token is verified with.
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

/// A token that names a key that is not in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnknownKey;

/// The keys that a provider publishes and that can be used here.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a set. Keys of other kinds are passed over; one without any that can be used is none.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let published: Published = serde_json::from_slice(text).ok()?;
        let read = |key| Key::of(serde_json::from_value::<RawKey>(key).ok()?);
        let keys: Vec<_> = published.keys.into_iter().filter_map(read).take(MAX_KEYS).collect();
        (!keys.is_empty()).then_some(Self { keys })
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns what a token says, if one of the keys signed it. The payload is not looked at before.
    pub(super) fn open(
        &self,
        token: &str,
    ) -> Result<Result<Map<String, Value>, RejectReason>, UnknownKey> {
        let Some((parts, header)) = read(token) else { return Ok(Err(RejectReason::Malformed)) };
        let Some(key) = self.find(&header)? else { return Ok(Err(RejectReason::Signature)) };
        // The key says which algorithm it is for; the token only repeats it.
        if header.alg != key.algorithm() {
            return Ok(Err(RejectReason::Signature));
        }
        let Some(signature) = decode(parts.signature) else {
            return Ok(Err(RejectReason::Malformed));
        };
        if !key.has_signed(parts.signed.as_bytes(), &signature) {
            return Ok(Err(RejectReason::Signature));
        }
        let payload = decode(parts.payload).and_then(|payload| object(&payload));
        Ok(payload.ok_or(RejectReason::Claims))
    }

    /// Finds the key of a token: the one that it names, or the only one there is.
    fn find(&self, header: &Header) -> Result<Option<&Key>, UnknownKey> {
        match (&header.kid, &self.keys[..]) {
            (Some(_), keys) => {
                let named = keys.iter().find(|key| key.id == header.kid);
                named.map(Some).ok_or(UnknownKey)
            }
            (None, [only]) => Ok(Some(only)),
            (None, _) => Ok(None),
        }
    }
}

fn read(token: &str) -> Option<(CompactToken<'_>, Header)> {
    let parts = CompactToken::of(token)?;
    let header: Header = object(&decode(parts.header)?)?;
    header.is_plain().then_some((parts, header))
}
