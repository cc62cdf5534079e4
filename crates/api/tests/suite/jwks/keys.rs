//! Whoever signs tokens, well or badly.

use std::process::{Command, Stdio};

use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

use crate::forge::encode;

/// A key pair with a name.
pub(super) struct Signer {
    pub(super) kid: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256 { pkcs8: Vec<u8> },
}

impl Signer {
    pub(super) fn p256(kid: &'static str) -> Self {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self { kid, pair: Pair::P256 { pkcs8: made.unwrap().as_ref().to_vec() } }
    }

    /// Has openssl make one, as ring does not.
    pub(super) fn rsa(kid: &'static str) -> Self {
        let made = Command::new("openssl")
            .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
            .args(["-outform", "DER"])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let pair = RsaKeyPair::from_der(&made.stdout)
            .or_else(|_| RsaKeyPair::from_pkcs8(&made.stdout))
            .unwrap();
        Self { kid, pair: Pair::Rsa(Box::new(pair)) }
    }

    pub(super) fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256 { .. } => "ES256",
        }
    }

    /// The modulus, or the point.
    pub(super) fn public(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair) => PublicKeyComponents::<Vec<u8>>::from(pair.public()).n,
            Pair::P256 { pkcs8 } => p256(pkcs8, false).public_key().as_ref().to_vec(),
        }
    }

    /// The key as it is published.
    pub(super) fn published(&self) -> Value {
        let (kid, alg, public) = (self.kid, self.algorithm(), self.public());
        match &self.pair {
            Pair::Rsa(pair) => {
                let e = encode(PublicKeyComponents::<Vec<u8>>::from(pair.public()).e);
                json!({ "kty": "RSA", "kid": kid, "alg": alg, "use": "sig", "n": encode(&public), "e": e, "x5t": "x" })
            }
            Pair::P256 { .. } => {
                let (x, y) = (encode(&public[1..33]), encode(&public[33..]));
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "key_ops": ["verify"], "x": x, "y": y })
            }
        }
    }

    pub(super) fn set(signers: &[&Self]) -> String {
        let keys: Vec<_> = signers.iter().map(|signer| signer.published()).collect();
        json!({ "keys": keys }).to_string()
    }

    /// Signs with a header of one's own.
    pub(super) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let random = SystemRandom::new();
                pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
            Pair::P256 { pkcs8 } => {
                let signed = p256(pkcs8, false).sign(&SystemRandom::new(), signed.as_bytes());
                signed.unwrap().as_ref().to_vec()
            }
        };
        format!("{signed}.{}", encode(signature))
    }

    /// Signs as a well-behaved provider does.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": self.kid, "typ": "JWT", "cat": "x" });
        self.sign_as(&header, claims)
    }

    /// Signs with the form of signatures that certificates have and tokens do not.
    pub(super) fn sign_with_asn1(&self, claims: &Value) -> String {
        let Pair::P256 { pkcs8 } = &self.pair else { panic!("a key on a curve") };
        let header = json!({ "alg": "ES256", "kid": self.kid }).to_string();
        let signed = format!("{}.{}", encode(header), encode(claims.to_string()));
        let signature = p256(pkcs8, true).sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature))
    }
}

fn p256(pkcs8: &[u8], asn1: bool) -> EcdsaKeyPair {
    let form =
        if asn1 { &ECDSA_P256_SHA256_ASN1_SIGNING } else { &ECDSA_P256_SHA256_FIXED_SIGNING };
    EcdsaKeyPair::from_pkcs8(form, pkcs8, &SystemRandom::new()).unwrap()
}
