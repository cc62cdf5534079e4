//! A published key (JWK): RSA for RS256, P-256 for ES256.
//!
//! A key verifies with the one algorithm of its type. It is ignored if it declares another use than
//! signatures, another algorithm, or key operations without `verify`; RSA keys below 2048 bits are ignored as
//! well.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use crate::auth::jwt::decode;

const P256_BYTES: usize = 32;

const MIN_RSA_BYTES: usize = 256;

#[derive(Debug, Deserialize)]
pub(super) struct RawKey {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) id: Option<String>,
    public: Public,
}

#[derive(Debug)]
enum Public {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
}

impl Key {
    /// Returns `None` for a key of another type, or for another use.
    pub(super) fn of(raw: RawKey) -> Option<Self> {
        let part = |text: &Option<String>| text.as_deref().and_then(decode);
        let public = match (raw.kty.as_str(), raw.crv.as_deref()) {
            ("RSA", _) => Public::rsa(part(&raw.n)?, part(&raw.e)?)?,
            ("EC", Some("P-256")) => Public::p256(&part(&raw.x)?, &part(&raw.y)?)?,
            _ => return None,
        };
        let for_signatures = raw.r#use.as_deref().is_none_or(|purpose| purpose == "sig")
            && raw.alg.as_deref().is_none_or(|name| name == public.algorithm())
            && raw.key_ops.is_none_or(|ops| ops.iter().any(|word| word == "verify"));
        for_signatures.then_some(Self { id: raw.kid, public })
    }

    pub(super) fn algorithm(&self) -> &'static str {
        self.public.algorithm()
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.public {
            Public::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Public::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

impl Public {
    fn rsa(modulus: Vec<u8>, exponent: Vec<u8>) -> Option<Self> {
        // Some providers write a leading zero byte, which ring rejects.
        let plain = |bytes: Vec<u8>| match bytes.iter().position(|byte| *byte != 0) {
            Some(start) => bytes[start..].to_vec(),
            None => Vec::new(),
        };
        let (modulus, exponent) = (plain(modulus), plain(exponent));
        (modulus.len() >= MIN_RSA_BYTES).then_some(Self::Rsa { modulus, exponent })
    }

    fn p256(x: &[u8], y: &[u8]) -> Option<Self> {
        let whole = x.len() == P256_BYTES && y.len() == P256_BYTES;
        whole.then(|| Self::P256([&[4], x, y].concat()))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa { .. } => "RS256",
            Self::P256(_) => "ES256",
        }
    }
}
