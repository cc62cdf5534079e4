//! Tokens made without the code under test.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carrel_api::auth::{Authority, ExpectedClaims};
use carrel_domain::{Secret, Timestamp};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(crate) const SECRET: &str = "a secret of more than thirty-two bytes";
pub(crate) const WORKSPACE: &str = "0198c0de-7a11-7000-8000-000000000001";
pub(crate) const OTHER: &str = "0198c0de-7a11-7000-8000-000000000002";

/// The second at which every test takes place.
pub(crate) const NOW: i64 = 1_700_000_000;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(NOW * 1000)
}

pub(crate) fn authority() -> Authority {
    Authority::from_secret(&Secret::new(SECRET)).unwrap()
}

pub(crate) fn expecting() -> Authority {
    let (audience, issuer) = (Some("carrel".to_owned()), Some("https://id.example".to_owned()));
    authority().expecting(ExpectedClaims { audience, issuer })
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Signs any header and payload with any secret, always by HMAC with SHA-256.
pub(crate) fn token_of(secret: &str, header: &str, payload: &str) -> String {
    let signed = format!("{}.{}", encode(header), encode(payload));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(signed.as_bytes());
    format!("{signed}.{}", encode(mac.finalize().into_bytes()))
}

/// Signs a payload as a well-behaved program would.
pub(crate) fn token(payload: &str) -> String {
    token_of(SECRET, r#"{"alg":"HS256","typ":"JWT"}"#, payload)
}

/// Returns a payload that is believed, with one more claim at its end.
pub(crate) fn claims(more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    let exp = NOW + 60;
    format!(r#"{{"exp":{exp},"workspace_id":"{WORKSPACE}","scope":"read"{comma}{more}}}"#)
}
