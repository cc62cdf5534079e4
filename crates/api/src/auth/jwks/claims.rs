//! Claims of a provider's token, mapped to our names.
//!
//! Providers cannot always choose claim names, so that the operator names the claims for workspaces and
//! scopes; registered claims are the same everywhere. A provider also issues scopes for other applications:
//! unknown ones are ignored here, while our own tokens must not contain them.

use carrel_domain::{Timestamp, TokenScope};
use serde_json::{Map, Value};

use super::settings::{ClaimName, ProviderOptions};
use crate::auth::caller::Caller;
use crate::auth::claims::Claims;
use crate::auth::error::RejectReason;

/// Registered claims (RFC 7519, 4.1).
const REGISTERED: [&str; 6] = ["sub", "exp", "nbf", "iat", "aud", "iss"];

pub(super) fn caller(
    payload: Map<String, Value>,
    options: &ProviderOptions,
    now: Timestamp,
) -> Result<Caller, RejectReason> {
    let names = &options.claims;
    let payload = Value::Object(payload);
    let mut claims: Map<String, Value> = REGISTERED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), payload.get(name)?.clone())))
        .collect();
    let mut rename = |name: &ClaimName, own: &str, value: fn(&Value) -> Value| {
        if let Some(found) = name.find(&payload).filter(|found| !found.is_null()) {
            claims.insert(own.to_owned(), value(found));
        }
    };
    rename(&names.workspace, "workspace_id", Value::clone);
    rename(&names.workspaces, "workspaces", Value::clone);
    rename(&names.scope, "scope", known_scopes);
    let claims: Claims =
        serde_json::from_value(Value::Object(claims)).map_err(|_| RejectReason::Claims)?;
    claims.caller(&options.expected(), now)
}

fn known_scopes(found: &Value) -> Value {
    let words: Vec<&str> = match found {
        Value::String(words) => words.split(' ').collect(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    words.into_iter().filter(|word| word.parse::<TokenScope>().is_ok()).collect()
}
