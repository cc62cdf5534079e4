//! Whether a call from outside comes from the tracker.
//!
//! A webhook only wakes the poll; nothing that it says is believed. Still it must come from the tracker,
//! or anybody could make us ask it over and over.

use std::time::Duration;

use carrel_config::TrackerKind;
use carrel_domain::{Secret, Timestamp, hex};
use hyper::HeaderMap;
use ring::hmac;
use serde_json::Value;

/// How old a call of Linear may be, and how far ahead its clock.
const LINEAR_PATIENCE: Duration = Duration::from_mins(1);

/// What a call from outside is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// Something has changed; it is worth asking.
    Wake,
    /// Asana introduces itself. It wants its secret back in [`ASANA_SECRET`], and signs with it from now on:
    /// it has to be kept. Anybody can say this much, so it counts only while a webhook is being made.
    Handshake(Secret),
}

/// Why a call from outside is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// This tracker calls nobody.
    #[error("this tracker has no webhooks")]
    Unsupported,
    /// There is nothing to hold a signature against.
    #[error("no secret for webhooks is configured")]
    NotConfigured,
    /// The header is not there, is there twice, or makes no sense.
    #[error("the header {0} is missing or malformed")]
    Unsigned(&'static str),
    /// Somebody else signed it, or something else.
    #[error("the signature does not fit")]
    Forged,
    /// It was signed too long ago, or does not say when.
    #[error("the call is too old, or does not say when it was made")]
    Stale,
}

/// The header of GitHub's signature.
pub const GITHUB_SIGNATURE: &str = "x-hub-signature-256";
/// The header of Linear's signature.
pub const LINEAR_SIGNATURE: &str = "linear-signature";
/// The header of GitLab's token.
pub const GITLAB_TOKEN: &str = "x-gitlab-token";
/// The header of Jira's signature.
pub const JIRA_SIGNATURE: &str = "x-hub-signature";
/// The header of Asana's signature.
pub const ASANA_SIGNATURE: &str = "x-hook-signature";
/// The header that Asana introduces itself with, and wants to see in the answer.
pub const ASANA_SECRET: &str = "x-hook-secret";

/// Tells what a call from outside is, if it comes from the tracker. The body is as it came, byte for byte.
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
    let secret = secret.filter(|secret| !secret.expose().is_empty());
    let key = || {
        let secret = secret.ok_or(WebhookError::NotConfigured)?;
        Ok(hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()))
    };
    match kind {
        TrackerKind::Github => {
            signed(&key()?, body, single(headers, GITHUB_SIGNATURE)?, GITHUB_SIGNATURE)
        }
        TrackerKind::Jira => {
            signed(&key()?, body, single(headers, JIRA_SIGNATURE)?, JIRA_SIGNATURE)
        }
        TrackerKind::Asana => {
            fits(&key()?, body, single(headers, ASANA_SIGNATURE)?, ASANA_SIGNATURE)
        }
        TrackerKind::Linear => {
            fits(&key()?, body, single(headers, LINEAR_SIGNATURE)?, LINEAR_SIGNATURE)?;
            fresh(body, now)
        }
        TrackerKind::Gitlab => {
            // Digests have the same length whatever was sent, and are compared in constant time.
            let (key, told) = (key()?, single(headers, GITLAB_TOKEN)?);
            let own = secret.ok_or(WebhookError::NotConfigured)?.expose();
            let tag = hmac::sign(&key, own.as_bytes());
            hmac::verify(&key, told.as_bytes(), tag.as_ref()).map_err(|_| WebhookError::Forged)
        }
        TrackerKind::Local => Err(WebhookError::Unsupported),
    }?;
    Ok(Webhook::Wake)
}

/// Returns what a header says, if it is there once.
fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, WebhookError> {
    let mut values = headers.get_all(name).iter();
    let told = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    };
    told.filter(|text| !text.is_empty()).ok_or(WebhookError::Unsigned(name))
}

/// Checks a signature that names its method.
fn signed(
    key: &hmac::Key,
    body: &[u8],
    told: &str,
    name: &'static str,
) -> Result<(), WebhookError> {
    let digits = told.strip_prefix("sha256=").ok_or(WebhookError::Unsigned(name))?;
    fits(key, body, digits, name)
}

fn fits(
    key: &hmac::Key,
    body: &[u8],
    digits: &str,
    name: &'static str,
) -> Result<(), WebhookError> {
    let tag = hex::decode(digits).ok_or(WebhookError::Unsigned(name))?;
    hmac::verify(key, body, &tag).map_err(|_| WebhookError::Forged)
}

fn fresh(body: &[u8], now: Timestamp) -> Result<(), WebhookError> {
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let at = told["webhookTimestamp"].as_i64().ok_or(WebhookError::Stale)?;
    let apart = Duration::from_millis(now.as_millis().abs_diff(at));
    if apart <= LINEAR_PATIENCE { Ok(()) } else { Err(WebhookError::Stale) }
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
        told: &[(&'static str, &str)],
        body: &[u8],
    ) -> Result<Webhook, WebhookError> {
        let secret = Secret::new("hook-secret");
        verify_webhook(kind, Some(&secret), &headers(told), body, Timestamp::from_millis(NOW))
    }

    /// The example that GitHub documents.
    #[test]
    fn the_documented_signature_of_github_fits() {
        let secret = Secret::new("It's a Secret to Everybody");
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let told = headers(&[(GITHUB_SIGNATURE, signature)]);
        let now = Timestamp::from_millis(NOW);
        let verdict =
            verify_webhook(TrackerKind::Github, Some(&secret), &told, b"Hello, World!", now);
        assert_eq!(verdict, Ok(Webhook::Wake));
    }

    #[test]
    fn what_the_tracker_signed_wakes() {
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
                |told: &[(&'static str, &str)], body: &str| verify(kind, told, body.as_bytes());
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
                let told = headers(&[(header, value)]);
                let verdict = verify_webhook(kind, secret, &told, body.as_bytes(), now);
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
    fn calls_of_linear_do_not_keep() {
        for (body, verdict) in [
            (format!("{{\"webhookTimestamp\":{}}}", NOW + 59_000), Ok(Webhook::Wake)),
            (format!("{{\"webhookTimestamp\":{}}}", NOW - 61_000), Err(WebhookError::Stale)),
            (format!("{{\"webhookTimestamp\":{}}}", NOW + 61_000), Err(WebhookError::Stale)),
            ("{}".to_owned(), Err(WebhookError::Stale)),
            ("{\"webhookTimestamp\":-9223372036854775808}".to_owned(), Err(WebhookError::Stale)),
            ("no JSON".to_owned(), Err(WebhookError::Stale)),
        ] {
            let signature = sign("hook-secret", body.as_bytes());
            let told = [(LINEAR_SIGNATURE, signature.as_str())];
            assert_eq!(verify(TrackerKind::Linear, &told, body.as_bytes()), verdict, "{body}");
        }
    }

    #[test]
    fn asana_introduces_itself_without_a_signature() {
        let told = [(ASANA_SECRET, "new-secret")];
        let expected = Ok(Webhook::Handshake(Secret::new("new-secret")));
        assert_eq!(verify(TrackerKind::Asana, &told, b""), expected);
        // To another tracker, the header means nothing.
        let verdict = verify(TrackerKind::Github, &told, b"");
        assert_eq!(verdict, Err(WebhookError::Unsigned(GITHUB_SIGNATURE)));
        assert_eq!(format!("{expected:?}"), "Ok(Handshake(***))");
    }
}
