//! What is believed, and what is not.

use std::collections::BTreeSet;

use carrel_api::auth::jwks::Provider;
use carrel_api::auth::{Caller, Coverage, RejectReason};
use carrel_domain::{Timestamp, TokenScope, TokenScopes};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::keys::Signer;
use super::server::{Published, until};
use super::{claims, claims_but, options, ready, reason};
use crate::forge::{NOW, OTHER, WORKSPACE, encode, now, token_of};

#[tokio::test]
async fn tokens_with_either_algorithm_are_accepted_for_what_they_say() {
    let (rsa, p256) = (Signer::rsa("r"), Signer::p256("e"));
    let (_server, provider) = ready(&[&rsa, &p256]).await;
    let expected = Caller {
        subject: Some("user_1".to_owned()),
        coverage: Coverage::one(WORKSPACE.parse().unwrap()),
        scopes: TokenScopes::of(&[TokenScope::Read, TokenScope::Exec]),
        expires_at: Timestamp::from_millis((NOW + 60) * 1000),
    };
    for signer in [&rsa, &p256] {
        assert_eq!(provider.verify(&signer.sign(&claims()), now()).await, Ok(expected.clone()));
    }
}

#[tokio::test]
async fn claims_have_the_names_that_the_operator_gives_them() {
    let signer = Signer::p256("e");
    let server = Published::start(Signer::set(&[&signer])).await;
    let names = [
        ("CARREL_JWT_WORKSPACE_CLAIM", "/metadata/home"),
        ("CARREL_JWT_WORKSPACES_CLAIM", "https://carrel.example/workspaces"),
        ("CARREL_JWT_SCOPE_CLAIM", "permissions"),
    ];
    let provider = Provider::new(options(&server.url, &names));
    tokio::spawn(provider.clone().run(CancellationToken::new()));
    until(|| provider.is_ready()).await;
    let mut said = claims();
    said["workspace_id"] = json!("0198c0de-7a11-7000-8000-000000000009");
    said["scope"] = json!("admin");
    said["metadata"] = json!({ "home": WORKSPACE });
    said["https://carrel.example/workspaces"] = json!([OTHER]);
    said["permissions"] = json!(["read", "billing:read", "write"]);
    let caller = provider.verify(&signer.sign(&said), now()).await.unwrap();
    let both = BTreeSet::from([WORKSPACE.parse().unwrap(), OTHER.parse().unwrap()]);
    assert_eq!(
        (caller.coverage, caller.scopes),
        (Coverage::Only(both), TokenScopes::of(&[TokenScope::Read, TokenScope::Write]))
    );
}

#[tokio::test]
async fn claims_for_another_audience_or_time_are_not_accepted() {
    let signer = Signer::p256("e");
    let (_server, provider) = ready(&[&signer]).await;
    for (name, value, why) in [
        ("iss", json!("https://id.example"), RejectReason::Issuer),
        ("iss", Value::Null, RejectReason::Issuer),
        ("aud", json!("another"), RejectReason::Audience),
        ("aud", json!([]), RejectReason::Audience),
        ("aud", Value::Null, RejectReason::Audience),
        ("exp", json!(NOW), RejectReason::Expired),
        ("exp", Value::Null, RejectReason::Claims),
        ("exp", json!("never"), RejectReason::Claims),
        ("nbf", json!(NOW + 61), RejectReason::Claims),
        ("iat", json!(NOW + 3600), RejectReason::Claims),
        ("workspace_id", Value::Null, RejectReason::Claims),
        ("workspace_id", json!("*"), RejectReason::Claims),
        ("sub", json!("a\nb"), RejectReason::Claims),
    ] {
        let token = signer.sign(&claims_but(name, value.clone()));
        assert_eq!(reason(&provider, &token).await, Err(Some(why)), "{name} {value}");
    }
    // The clocks of two machines differ by a little.
    let token = signer.sign(&claims_but("nbf", json!(NOW + 30)));
    assert!(provider.verify(&token, now()).await.is_ok());
    // Without a scope there is a caller who may do nothing.
    let token = signer.sign(&claims_but("scope", json!("openid")));
    assert_eq!(provider.verify(&token, now()).await.unwrap().scopes, TokenScopes::NONE);
}

#[tokio::test]
async fn no_token_chooses_how_it_is_verified() {
    use RejectReason::{Malformed, Signature};

    let (rsa, p256, stranger) = (Signer::rsa("r"), Signer::p256("e"), Signer::p256("e"));
    let (server, provider) = ready(&[&rsa, &p256]).await;
    let said = claims();
    let good = p256.sign(&said);
    let (signed, _) = good.rsplit_once('.').unwrap();
    let header = |alg: &str, kid: &str| json!({ "alg": alg, "kid": kid });
    let hmac = |key: &[u8], kid: &str| {
        let key: String = key.iter().map(|byte| char::from(*byte)).collect();
        token_of(&key, &header("HS256", kid).to_string(), &said.to_string())
    };
    let jwk = stranger.published();
    let with = |name: &str, value: Value| {
        let mut header = header("ES256", "e");
        header[name] = value;
        header
    };
    for (name, token, why) in [
        (
            "none",
            format!("{}.{}.", encode(header("none", "r").to_string()), encode(said.to_string())),
            Signature,
        ),
        (
            "none in capitals",
            format!("{}.{}.", encode(header("NONE", "e").to_string()), encode(said.to_string())),
            Signature,
        ),
        ("no signature", format!("{signed}."), Signature),
        ("the public key as a secret", hmac(&rsa.public(), "r"), Signature),
        (
            "the published text as a secret",
            hmac(rsa.published().to_string().as_bytes(), "r"),
            Signature,
        ),
        ("the point as a secret", hmac(&p256.public(), "e"), Signature),
        ("the other key's algorithm", p256.sign_as(&header("RS256", "e"), &said), Signature),
        ("the other key's name", p256.sign_as(&header("ES256", "r"), &said), Signature),
        ("a stronger algorithm", rsa.sign_as(&header("RS512", "r"), &said), Signature),
        ("padding of another kind", rsa.sign_as(&header("PS256", "r"), &said), Signature),
        ("a stranger with a known name", stranger.sign(&said), Signature),
        ("no name among several", p256.sign_as(&json!({ "alg": "ES256" }), &said), Signature),
        ("a key in the token", stranger.sign_as(&with("jwk", jwk), &said), Malformed),
        (
            "a place of keys in the token",
            stranger.sign_as(&with("jku", json!("http://127.0.0.1:1/")), &said),
            Malformed,
        ),
        (
            "a certificate in the token",
            stranger.sign_as(&with("x5c", json!(["x"])), &said),
            Malformed,
        ),
        (
            "something that must be understood",
            p256.sign_as(&with("crit", json!(["exp"])), &said),
            Malformed,
        ),
        (
            "another kind of token",
            p256.sign_as(&with("typ", json!("secevent+jwt")), &said),
            Malformed,
        ),
        ("a signature of another form", p256.sign_with_asn1(&said), Signature),
        (
            "a changed payload",
            good.replace(
                &encode(said.to_string()),
                &encode(claims_but("scope", json!("admin")).to_string()),
            ),
            Signature,
        ),
        ("no token", "nonsense".to_owned(), Malformed),
        ("five parts", format!("{good}.a.b"), Malformed),
        ("too long", format!("{good}{}", "A".repeat(9000)), Malformed),
        ("a name that nobody has", p256.sign_as(&header("ES256", "../e"), &said), Signature),
        ("an empty name", p256.sign_as(&header("ES256", ""), &said), Signature),
    ] {
        assert_eq!(reason(&provider, &token).await, Err(Some(why)), "{name}");
    }
    assert!(provider.verify(&good, now()).await.is_ok());
    assert_eq!(server.asked(), 1, "what was asked within the pause");
    // The only key there is needs no name.
    let (_server, provider) = ready(&[&p256]).await;
    assert!(provider.verify(&p256.sign_as(&json!({ "alg": "ES256" }), &said), now()).await.is_ok());
}
