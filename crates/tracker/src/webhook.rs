//! Verification of webhooks.
//!
//! A webhook only triggers a poll, and its contents are never used. It is verified all the same, since
//! otherwise any client could exhaust the tracker's rate limit. Each tracker signs in its own way:
//!
//! | tracker | header | signature |
//! |---|---|---|
//! | GitHub | `x-hub-signature-256` | `sha256=` and the HMAC-SHA256 of the body in hex |
//! | Jira | `x-hub-signature` | the same |
//! | Linear | `linear-signature` | the HMAC-SHA256 in hex; `webhookTimestamp` in the body must be recent |
//! | Asana | `x-hook-signature` | the HMAC-SHA256 in hex, with a secret that Asana chose (`x-hook-secret`) |
//! | GitLab | `x-gitlab-token` | the secret itself |
//!
//! A signature header must occur exactly once. Signatures and tokens are compared in constant time.

use std::time::Duration;

use carrel_config::TrackerKind;
use carrel_domain::{Secret, Timestamp, hex};
use hyper::HeaderMap;
use ring::hmac;
use serde_json::Value;

/// The age of a webhook of Linear, in either direction. An older one may be a replay.
const LINEAR_MAX_AGE: Duration = Duration::from_mins(1);

/// A verified webhook. It carries nothing of the request but the secret of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// A change in the tracker: poll now. The contents of the webhook are not used.
    Wake,
    /// Asana's handshake when a webhook is created. The secret has to be stored and returned in
    /// [`ASANA_SECRET`]; later webhooks are signed with it. The handshake itself is not authenticated.
    Handshake(Secret),
}

/// The reason for which a webhook is rejected. No poll is triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// The tracker has no webhooks, which holds for the embedded one.
    #[error("this tracker has no webhooks")]
    Unsupported,
    /// No secret is configured, so no signature can be verified.
    #[error("no secret for webhooks is configured")]
    NotConfigured,
    /// The signature header is missing, repeated or malformed; it carries the name of the header.
    #[error("the header {0} is missing or malformed")]
    Unsigned(&'static str),
    /// The signature does not match the body and the secret.
    #[error("the signature does not match")]
    Forged,
    /// The timestamp is missing or more than a minute from now; only Linear sends one.
    #[error("the webhook is too old or has no timestamp")]
    Stale,
}

/// The header of GitHub's signature: `sha256=` and hexadecimal digits.
pub const GITHUB_SIGNATURE: &str = "x-hub-signature-256";
/// The header of Linear's signature: hexadecimal digits.
pub const LINEAR_SIGNATURE: &str = "linear-signature";
/// The header of GitLab's token, which is the configured secret itself.
pub const GITLAB_TOKEN: &str = "x-gitlab-token";
/// The header of Jira's signature, in the format of GitHub's.
pub const JIRA_SIGNATURE: &str = "x-hub-signature";
/// The header of Asana's signature: hexadecimal digits, made with the secret of the handshake.
pub const ASANA_SIGNATURE: &str = "x-hook-signature";
/// The header of Asana's handshake, in request and response.
pub const ASANA_SECRET: &str = "x-hook-secret";

/// Verifies a webhook. `body` must be the exact bytes of the request.
pub fn verify_webhook(
    kind: TrackerKind,
    secret: Option<&Secret>,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<Webhook, WebhookError> {
    if kind == TrackerKind::Asana && headers.contains_key(ASANA_SECRET) {
        return Ok(Webhook::Handshake(Secret::new(single(headers, ASANA_SECRET)?)));
    }
    let (name, prefix) = match kind {
        TrackerKind::Github => (GITHUB_SIGNATURE, "sha256="),
        TrackerKind::Jira => (JIRA_SIGNATURE, "sha256="),
        TrackerKind::Asana => (ASANA_SIGNATURE, ""),
        TrackerKind::Linear => (LINEAR_SIGNATURE, ""),
        TrackerKind::Gitlab => (GITLAB_TOKEN, ""),
        TrackerKind::Local => return Err(WebhookError::Unsupported),
    };
    let secret =
        secret.map(|secret| secret.expose().as_bytes()).filter(|secret| !secret.is_empty());
    let secret = secret.ok_or(WebhookError::NotConfigured)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let unsigned = WebhookError::Unsigned(name);
    let signature = single(headers, name)?.strip_prefix(prefix).ok_or(unsigned)?;
    if kind == TrackerKind::Gitlab {
        // HMACs of both tokens are compared, in constant time and independent of their lengths.
        hmac::verify(&key, signature.as_bytes(), hmac::sign(&key, secret).as_ref())
    } else {
        hmac::verify(&key, body, &hex::decode(signature).ok_or(unsigned)?)
    }
    .map_err(|_| WebhookError::Forged)?;
    if kind == TrackerKind::Linear {
        verify_timestamp(body, now)?;
    }
    Ok(Webhook::Wake)
}

fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, WebhookError> {
    let mut values = headers.get_all(name).iter();
    let header = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    };
    header.filter(|text| !text.is_empty()).ok_or(WebhookError::Unsigned(name))
}

fn verify_timestamp(body: &[u8], now: Timestamp) -> Result<(), WebhookError> {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let at = json["webhookTimestamp"].as_i64().ok_or(WebhookError::Stale)?;
    let apart = Duration::from_millis(now.as_millis().abs_diff(at));
    if apart <= LINEAR_MAX_AGE { Ok(()) } else { Err(WebhookError::Stale) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};
    use pretty_assertions::assert_eq;

    const NOW: i64 = 1_700_000_000_000;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn sign(secret: &str, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hex::encode(hmac::sign(&key, body).as_ref())
    }

    fn verify(
        kind: TrackerKind,
        header: &[(&'static str, &str)],
        body: &[u8],
    ) -> Result<Webhook, WebhookError> {
        let secret = Secret::new("hook-secret");
        verify_webhook(kind, Some(&secret), &headers(header), body, Timestamp::from_millis(NOW))
    }

    #[test]
    fn the_documented_signature_of_github_verifies() {
        let secret = Secret::new("It's a Secret to Everybody");
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let header = headers(&[(GITHUB_SIGNATURE, signature)]);
        let now = Timestamp::from_millis(NOW);
        let verdict =
            verify_webhook(TrackerKind::Github, Some(&secret), &header, b"Hello, World!", now);
        assert_eq!(verdict, Ok(Webhook::Wake));
    }

    #[test]
    fn signed_webhooks_wake() {
        let body = format!("{{\"webhookTimestamp\":{}}}", NOW - 30_000);
        let plain = sign("hook-secret", body.as_bytes());
        let named = format!("sha256={plain}");
        for (kind, header, value) in [
            (TrackerKind::Github, GITHUB_SIGNATURE, named.as_str()),
            (TrackerKind::Jira, JIRA_SIGNATURE, named.as_str()),
            (TrackerKind::Linear, LINEAR_SIGNATURE, plain.as_str()),
            (TrackerKind::Asana, ASANA_SIGNATURE, plain.as_str()),
            (TrackerKind::Gitlab, GITLAB_TOKEN, "hook-secret"),
        ] {
            let kind_name = kind.as_str();
            let check =
                |header: &[(&'static str, &str)], body: &str| verify(kind, header, body.as_bytes());
            assert_eq!(check(&[(header, value)], &body), Ok(Webhook::Wake), "{kind_name}");
            assert_eq!(check(&[], &body), Err(WebhookError::Unsigned(header)), "{kind_name}");
            let twice = [(header, value), (header, value)];
            let mut both = HeaderMap::new();
            for (name, value) in twice {
                both.append(name, HeaderValue::from_str(value).unwrap());
            }
            let now = Timestamp::from_millis(NOW);
            let secret = Secret::new("hook-secret");
            let verdict = verify_webhook(kind, Some(&secret), &both, body.as_bytes(), now);
            assert_eq!(verdict, Err(WebhookError::Unsigned(header)), "{kind_name}");
            for secret in [None, Some(&Secret::new(""))] {
                let header = headers(&[(header, value)]);
                let verdict = verify_webhook(kind, secret, &header, body.as_bytes(), now);
                assert_eq!(verdict, Err(WebhookError::NotConfigured), "{kind_name}");
            }
            if kind != TrackerKind::Gitlab {
                let other = body.replace('3', "4") + " ";
                assert_eq!(
                    check(&[(header, value)], &other),
                    Err(WebhookError::Forged),
                    "{kind_name}"
                );
            }
        }
    }

    #[test]
    fn forgeries_are_refused() {
        let forged = sign("other-secret", b"{}");
        let short = &forged[..62];
        let sha1 = format!("sha1={forged}");
        for (kind, header, value, error) in [
            (
                TrackerKind::Github,
                GITHUB_SIGNATURE,
                format!("sha256={forged}"),
                WebhookError::Forged,
            ),
            (
                TrackerKind::Github,
                GITHUB_SIGNATURE,
                forged.clone(),
                WebhookError::Unsigned(GITHUB_SIGNATURE),
            ),
            (TrackerKind::Github, GITHUB_SIGNATURE, "sha256=".into(), WebhookError::Forged),
            (
                TrackerKind::Github,
                GITHUB_SIGNATURE,
                "sha256=zz".into(),
                WebhookError::Unsigned(GITHUB_SIGNATURE),
            ),
            (
                TrackerKind::Github,
                GITHUB_SIGNATURE,
                "sha256=abc".into(),
                WebhookError::Unsigned(GITHUB_SIGNATURE),
            ),
            (TrackerKind::Jira, JIRA_SIGNATURE, sha1, WebhookError::Unsigned(JIRA_SIGNATURE)),
            (TrackerKind::Jira, JIRA_SIGNATURE, format!("sha256={short}"), WebhookError::Forged),
            (TrackerKind::Linear, LINEAR_SIGNATURE, forged.clone(), WebhookError::Forged),
            (TrackerKind::Asana, ASANA_SIGNATURE, forged.clone(), WebhookError::Forged),
            (TrackerKind::Gitlab, GITLAB_TOKEN, "hook-secre".into(), WebhookError::Forged),
            (TrackerKind::Gitlab, GITLAB_TOKEN, "hook-secret2".into(), WebhookError::Forged),
            (TrackerKind::Local, GITLAB_TOKEN, "hook-secret".into(), WebhookError::Unsupported),
        ] {
            assert_eq!(
                verify(kind, &[(header, &value)], b"{}"),
                Err(error),
                "{} {value}",
                kind.as_str()
            );
        }
    }

    #[test]
    fn webhooks_of_linear_expire() {
        for (body, verdict) in [
            (format!("{{\"webhookTimestamp\":{}}}", NOW + 59_000), Ok(Webhook::Wake)),
            (format!("{{\"webhookTimestamp\":{}}}", NOW - 61_000), Err(WebhookError::Stale)),
            (format!("{{\"webhookTimestamp\":{}}}", NOW + 61_000), Err(WebhookError::Stale)),
            ("{}".to_owned(), Err(WebhookError::Stale)),
            ("{\"webhookTimestamp\":-9223372036854775808}".to_owned(), Err(WebhookError::Stale)),
            ("no JSON".to_owned(), Err(WebhookError::Stale)),
        ] {
            let signature = sign("hook-secret", body.as_bytes());
            let header = [(LINEAR_SIGNATURE, signature.as_str())];
            assert_eq!(verify(TrackerKind::Linear, &header, body.as_bytes()), verdict, "{body}");
        }
    }

    #[test]
    fn the_handshake_of_asana_has_no_signature() {
        let header = [(ASANA_SECRET, "new-secret")];
        let expected = Ok(Webhook::Handshake(Secret::new("new-secret")));
        assert_eq!(verify(TrackerKind::Asana, &header, b""), expected);
        // To another tracker, the header means nothing.
        let verdict = verify(TrackerKind::Github, &header, b"");
        assert_eq!(verdict, Err(WebhookError::Unsigned(GITHUB_SIGNATURE)));
        assert_eq!(format!("{expected:?}"), "Ok(Handshake(***))");
    }
}
