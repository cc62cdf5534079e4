//! Keys that come, go, and cannot be had.

use std::time::Duration;

use carrel_api::auth::jwks::{MAX_STALE, REFRESH, UNKNOWN_KEY_PAUSE};
use carrel_api::auth::{AuthError, RejectReason};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::keys::Signer;
use super::server::{Published, answer, pass, until};
use super::{claims, ready, reason, started};
use crate::forge::{encode, now};

#[tokio::test]
async fn a_new_key_is_found_by_its_first_token_and_strangers_do_not_make_us_ask_often() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let (server, provider) = ready(&[&old]).await;
    server.publish(&Signer::set(&[&old, &new]));
    pass(UNKNOWN_KEY_PAUSE).await;
    assert!(provider.verify(&new.sign(&claims()), now()).await.is_ok());
    assert!(provider.verify(&old.sign(&claims()), now()).await.is_ok());
    let asked = server.asked();
    for _ in 0..50 {
        let stranger = Signer::p256("stranger").sign(&claims());
        assert_eq!(reason(&provider, &stranger).await, Err(Some(RejectReason::Signature)));
    }
    assert_eq!(server.asked(), asked);
    pass(UNKNOWN_KEY_PAUSE).await;
    for _ in 0..5 {
        let _ = reason(&provider, &Signer::p256("stranger").sign(&claims())).await;
    }
    assert_eq!(server.asked(), asked + 1);
}

#[tokio::test]
async fn a_key_that_is_withdrawn_is_not_accepted_after_the_next_look() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let (server, provider) = ready(&[&old, &new]).await;
    let token = old.sign(&claims());
    assert!(provider.verify(&token, now()).await.is_ok());
    server.publish(&Signer::set(&[&new]));
    pass(REFRESH).await;
    until(|| server.asked() > 1).await;
    // The answer is on its way.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(reason(&provider, &token).await, Err(Some(RejectReason::Signature)));
    assert!(provider.verify(&new.sign(&claims()), now()).await.is_ok());
}

#[tokio::test]
async fn keys_outlive_their_provider_for_an_hour() {
    let signer = Signer::p256("e");
    let (server, provider) = ready(&[&signer]).await;
    server.say(Some(answer("500 Internal Server Error", "")));
    let token = signer.sign(&claims());
    pass(MAX_STALE.saturating_sub(Duration::from_secs(5))).await;
    assert!(provider.verify(&token, now()).await.is_ok());
    pass(Duration::from_secs(6)).await;
    assert_eq!(provider.verify(&token, now()).await, Err(AuthError::NoKeys));
    assert!(!provider.is_ready());
    server.publish(&Signer::set(&[&signer]));
    pass(Duration::from_mins(1)).await;
    until(|| provider.is_ready()).await;
    assert!(provider.verify(&token, now()).await.is_ok());
}

#[tokio::test]
async fn without_keys_every_token_is_refused() {
    let signer = Signer::p256("e");
    let point = signer.public();
    let set = Signer::set(&[&signer]);
    let weak = json!({ "kty": "RSA", "n": encode([0xc1; 128]), "e": "AQAB" });
    let curve = json!({ "kty": "EC", "crv": "P-384", "x": encode([1; 48]), "y": encode([1; 48]) });
    let secret = json!({ "kty": "oct", "k": encode("a secret of more than thirty-two bytes") });
    let short = json!({ "kty": "EC", "crv": "P-256", "x": encode([1; 8]), "y": encode([1; 8]) });
    let for_secrets = json!({ "kty": "EC", "crv": "P-256", "use": "enc", "x": encode(&point[1..33]), "y": encode(&point[33..]) });
    let elsewhere = Published::start(set.clone()).await;
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        elsewhere.url
    );
    let padded = format!("{}{}", set, " ".repeat(300 << 10));
    for (name, text) in [
        ("error", answer("500 Internal Server Error", &set)),
        ("redirect", redirect),
        ("page", answer("200 OK", "<html>")),
        ("list", answer("200 OK", "[]")),
        ("no keys", answer("200 OK", r#"{"keys":[]}"#)),
        (
            "unusable keys",
            answer(
                "200 OK",
                &json!({ "keys": [weak, curve, secret, short, for_secrets, 1] }).to_string(),
            ),
        ),
        ("too long", answer("200 OK", &padded)),
        ("cut off", answer("200 OK", &set).replace(&set, &set[..20])),
        ("nothing", String::new()),
    ] {
        let server = Published::saying(Some(text)).await;
        let provider = started(&server);
        until(|| server.asked() > 0).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let verified = provider.verify(&signer.sign(&claims()), now()).await;
        assert_eq!(verified, Err(AuthError::NoKeys), "{name}");
        // It goes on by itself when the provider is well.
        server.publish(&set);
        pass(Duration::from_secs(8)).await;
        until(|| provider.is_ready()).await;
        assert!(provider.verify(&signer.sign(&claims()), now()).await.is_ok(), "{name}");
    }
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn a_provider_that_hangs_delays_requests_for_a_bounded_time() {
    let signer = Signer::p256("e");
    let (server, provider) = ready(&[&signer]).await;
    server.say(None);
    pass(UNKNOWN_KEY_PAUSE).await;
    let asking = provider.clone();
    let stranger = Signer::p256("stranger").sign(&claims());
    let waiting = tokio::spawn(async move { reason(&asking, &stranger).await });
    until(|| server.asked() == 2).await;
    // Those with a known key do not wait.
    assert!(provider.verify(&signer.sign(&claims()), now()).await.is_ok());
    pass(Duration::from_secs(5)).await;
    assert_eq!(waiting.await.unwrap(), Err(Some(RejectReason::Signature)));
}
