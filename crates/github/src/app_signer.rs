//! The JWT that authenticates a GitHub App (RS256).
//!
//! GitHub accepts a lifetime of at most ten minutes and rejects an `iat` in the future. The token is
//! therefore valid for nine minutes and dated a minute back, so that clocks may differ by a minute in either
//! direction. A new one is signed for each
//! request.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use carrel_domain::{Secret, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;

/// Lifetime of the JWT in seconds. GitHub accepts at most ten minutes.
const LIFETIME: i64 = 9 * 60;

/// Seconds that our clock may be ahead of GitHub's: `iat` is set that far in the past.
const SKEW: i64 = 60;

pub(crate) struct AppSigner {
    app: String,
    key: RsaKeyPair,
}

impl fmt::Debug for AppSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppSigner").field("app", &self.app).finish_non_exhaustive()
    }
}

impl AppSigner {
    /// Parses a PEM key, PKCS#8 or PKCS#1. Returns `None` for anything else, and for fewer than 2048 bits.
    pub(crate) fn new(app: String, pem: &Secret) -> Option<Self> {
        // An environment variable holds line breaks as `\n`.
        let pem = pem.expose().replace("\\n", "\n");
        let inside = pem.lines().map(str::trim).skip_while(|line| !line.starts_with("-----BEGIN"));
        let base: String =
            inside.skip(1).take_while(|line| !line.starts_with("-----END")).collect();
        let der = STANDARD.decode(base).ok()?;
        let key = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der)).ok()?;
        Some(Self { app, key })
    }

    /// Returns a JWT that is valid from a minute before `now`.
    pub(crate) fn sign(&self, now: Timestamp) -> Option<Secret> {
        let now = now.as_millis().div_euclid(1000);
        let claims = json!({ "iat": now - SKEW, "exp": now + LIFETIME, "iss": self.app });
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        self.key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).ok()?;
        Some(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}
