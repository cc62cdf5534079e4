//! JWS compact serialization with HS256: `header.payload.signature`, each in base64url.
//!
//! Verification is strict. The header may name the algorithm and the type, nothing else, so that no field can
//! select a key or an algorithm. The payload is not parsed before the signature is checked, and base64 has a
//! single accepted spelling.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::RejectReason;
use super::signing_key::SigningKey;

/// The longest token that is parsed, which bounds the work for garbage.
pub const MAX_TOKEN_BYTES: usize = 8 << 10;

const ALGORITHM: &str = "HS256";

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// A token split at its dots. Nothing in it is verified.
#[derive(Debug)]
pub(super) struct CompactToken<'a> {
    pub(super) header: &'a str,
    pub(super) payload: &'a str,
    /// Header and payload with the dot between them, the input of the signature.
    pub(super) signed: &'a str,
    pub(super) signature: &'a str,
}

impl<'a> CompactToken<'a> {
    pub(super) fn of(token: &'a str) -> Option<Self> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.').filter(|(_, rest)| !rest.contains('.'))?;
        Some(Self { header, payload, signed, signature })
    }
}

/// The only header that is accepted. Fields that select a key (`kid`, `jku`, `jwk`, `x5u`) or extensions
/// (`crit`, `zip`) make parsing fail.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: Option<String>,
}

impl Header {
    fn check(&self) -> Result<(), RejectReason> {
        if self.typ.as_ref().is_some_and(|typ| !typ.eq_ignore_ascii_case("JWT")) {
            return Err(RejectReason::Malformed);
        }
        if self.alg == ALGORITHM { Ok(()) } else { Err(RejectReason::Signature) }
    }
}

pub(super) fn open<T: DeserializeOwned>(key: &SigningKey, token: &str) -> Result<T, RejectReason> {
    let parts = CompactToken::of(token).ok_or(RejectReason::Malformed)?;
    let header = decode(parts.header).ok_or(RejectReason::Malformed)?;
    object::<Header>(&header).ok_or(RejectReason::Malformed)?.check()?;
    let signature = decode(parts.signature).ok_or(RejectReason::Malformed)?;
    if !key.has_signed(parts.signed.as_bytes(), &signature) {
        return Err(RejectReason::Signature);
    }
    let payload = decode(parts.payload).ok_or(RejectReason::Malformed)?;
    object(&payload).ok_or(RejectReason::Claims)
}

/// Returns `true` if the header claims HS256. The claim only selects the verifier.
pub(super) fn is_signed_with_a_secret(token: &str) -> bool {
    #[derive(Deserialize)]
    struct Said {
        alg: String,
    }
    let said = CompactToken::of(token).and_then(|parts| object::<Said>(&decode(parts.header)?));
    said.is_some_and(|said| said.alg == ALGORITHM)
}

pub(super) fn seal(key: &SigningKey, payload: &[u8]) -> String {
    let mut token = encode(HEADER.as_bytes());
    token.push('.');
    token.push_str(&encode(payload));
    let signature = key.sign(token.as_bytes());
    token.push('.');
    token.push_str(&encode(&signature));
    token
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url without padding. Non-zero trailing bits are an error, so that a token has one spelling.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Parses a JSON object. Serde would fill a struct from a list as well.
pub(super) fn object<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    bytes.starts_with(b"{").then(|| serde_json::from_slice(bytes).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    fn key() -> SigningKey {
        SigningKey::new(b"0123456789abcdef0123456789abcdef")
    }

    /// The example of RFC 7515, appendix A.1.
    #[test]
    fn a_published_token_is_read() {
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let key = SigningKey::new(&decode(secret).unwrap());
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let said = json!({"iss": "joe", "exp": 1_300_819_380, "http://example.com/is_root": true});
        assert_eq!(open::<Value>(&key, token), Ok(said));
    }

    #[test]
    fn what_is_sealed_can_be_opened_by_the_same_key_alone() {
        let token = seal(&key(), br#"{"a":1}"#);
        assert_eq!(open(&key(), &token), Ok(json!({"a": 1})));
        assert_eq!(
            open::<Value>(&SigningKey::new(b"another"), &token),
            Err(RejectReason::Signature)
        );
    }

    #[test]
    fn the_payload_of_a_forgery_is_not_parsed() {
        let forged = format!("{}.!!!.{}", encode(HEADER.as_bytes()), encode(&[0; 32]));
        assert_eq!(open::<Value>(&key(), &forged), Err(RejectReason::Signature));
    }

    #[test]
    fn a_genuine_payload_is_an_object() {
        for payload in ["", "[1]", "null", "\"a\"", "{} {}", " {}", "{"] {
            let token = seal(&key(), payload.as_bytes());
            assert_eq!(open::<Value>(&key(), &token), Err(RejectReason::Claims), "{payload}");
        }
    }
}
