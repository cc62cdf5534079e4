//! What an app signs to say that it is the app.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use carrel_domain::{Secret, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;

/// How long what is signed holds, in seconds; GitHub takes at most ten minutes.
const LIFETIME: i64 = 9 * 60;

/// How far our clock may be ahead of GitHub's, in seconds.
const SKEW: i64 = 60;

/// The private key of an app.
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
    /// Reads a key in either form of PEM. Returns nothing for something else.
    pub(crate) fn new(app: String, pem: &Secret) -> Option<Self> {
        // A variable of one line has its line breaks written out.
        let pem = pem.expose().replace("\\n", "\n");
        let inside = pem.lines().map(str::trim).skip_while(|line| !line.starts_with("-----BEGIN"));
        let base: String =
            inside.skip(1).take_while(|line| !line.starts_with("-----END")).collect();
        let der = STANDARD.decode(base).ok()?;
        let key = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der)).ok()?;
        Some(Self { app, key })
    }

    /// Returns a token that says that it is the app.
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
