//! Tokens of a provider, whose keys a server on loopback publishes.

mod attacks;
mod keys;
mod rotation;
mod server;

use carrel_api::auth::jwks::{Provider, ProviderOptions};
use carrel_api::auth::{AuthError, Caller, RejectReason};
use carrel_config::Environment;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::keys::Signer;
use self::server::Published;
use crate::forge::{NOW, WORKSPACE, now};

const ISSUER: &str = "https://id.example/";
const AUDIENCE: &str = "carrel";

/// What every token says that is believed.
fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": [AUDIENCE, "https://id.example/userinfo"],
        "sub": "user_1",
        "iat": NOW - 5,
        "nbf": NOW - 5,
        "exp": NOW + 60,
        "workspace_id": WORKSPACE,
        "scope": "openid profile read exec",
    })
}

/// The same with one claim as it should not be; null leaves it out.
fn claims_but(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

fn options(url: &str, more: &[(&'static str, &str)]) -> ProviderOptions {
    let usual = [
        ("CARREL_JWKS_URL", url),
        ("CARREL_JWT_ISSUER", ISSUER),
        ("CARREL_JWT_AUDIENCE", AUDIENCE),
    ];
    let pairs = usual.into_iter().chain(more.iter().copied());
    ProviderOptions::read(&Environment::from_pairs(pairs)).unwrap().unwrap()
}

/// A provider that keeps its keys fresh for as long as the test runs.
fn started(server: &Published) -> Provider {
    let provider = Provider::new(options(&server.url, &[]));
    tokio::spawn(provider.clone().run(CancellationToken::new()));
    provider
}

/// A provider that has the keys of these signers.
async fn ready(signers: &[&Signer]) -> (Published, Provider) {
    let server = Published::start(Signer::set(signers)).await;
    let provider = started(&server);
    server::until(|| provider.is_ready()).await;
    (server, provider)
}

async fn reason(provider: &Provider, token: &str) -> Result<Caller, Option<RejectReason>> {
    provider.verify(token, now()).await.map_err(|error: AuthError| error.reason())
}
