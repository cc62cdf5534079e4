//! The content of a credential and the rules for it.

use std::collections::BTreeMap;
use std::fmt;

use carrel_domain::ByteSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ssh_key;
use crate::request::InvalidRequest;

/// The largest credential, as JSON.
pub const MAX_CREDENTIAL_BYTES: ByteSize = ByteSize::kib(64);

const MAX_VARIABLES: usize = 100;

/// The longest name of a credential or of a variable.
const MAX_NAME_CHARS: usize = 64;

/// Token and user have to fit into the buffer of a pipe that git has not begun to read.
const MAX_TOKEN_BYTES: usize = 2048;

const MAX_USER_BYTES: usize = 255;

/// The regular expression of tokens and users, for schemas.
const PRINTABLE: &str = "^[ -~]*$";

/// Variables that decide which code runs, and which Carrel sets itself.
const RESERVED: [&str; 9] =
    ["PATH", "HOME", "SHELL", "TMPDIR", "PWD", "IFS", "ENV", "BASH_ENV", "SSH_AUTH_SOCK"];

const RESERVED_PREFIXES: [&str; 4] = ["LD_", "GIT_", "CARREL_", "BASH_FUNC_"];

/// The content of a credential: any of these fields, and at least one.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Credential", extend("minProperties" = 1))]
pub struct CredentialContent {
    /// Environment variables for the commands of a step. Variables that decide how commands run are
    /// refused: `PATH`, `HOME`, `LD_…`, `GIT_…`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = MAX_VARIABLES,
        "propertyNames" = { "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$" },
    ))]
    pub(super) env_vars: BTreeMap<String, String>,
    /// The author name of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub(super) git_name: Option<String>,
    /// The author email of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub(super) git_email: Option<String>,
    /// The token that git sends to a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git_token: Option<GitToken>,
    /// A private key without a passphrase, as `ssh-keygen` writes it. Commands of a step can use it through
    /// `SSH_AUTH_SOCK`, and cannot read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = ssh_key::MAX_BYTES))]
    pub(super) ssh_private_key: Option<String>,
}

/// The token that git sends to a host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitToken {
    /// The host, with its port if that is not 443: `github.com`.
    #[schemars(regex(pattern = "^[A-Za-z0-9.:-]{1,255}$"))]
    pub(super) host: String,
    /// The user name, if the host expects one.
    #[schemars(length(min = 1, max = MAX_USER_BYTES), regex(pattern = PRINTABLE))]
    pub(super) username: Option<String>,
    /// The token or password.
    #[schemars(length(min = 1, max = MAX_TOKEN_BYTES), regex(pattern = PRINTABLE))]
    pub(super) token: String,
}

impl fmt::Debug for CredentialContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialContent").finish_non_exhaustive()
    }
}

impl CredentialContent {
    /// Checks every field. The error names the field and never contains its value.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        if *self == Self::default() {
            let rule = "holds at least one of env_vars, git_name, git_email, git_token and ssh_private_key";
            return Err(InvalidRequest::new("body", rule));
        }
        if self.env_vars.len() > MAX_VARIABLES {
            let rule = format!("has at most {MAX_VARIABLES} variables");
            return Err(InvalidRequest::new("env_vars", rule));
        }
        for (name, value) in &self.env_vars {
            check_variable(name, value)?;
        }
        for (field, value) in [("git_name", &self.git_name), ("git_email", &self.git_email)] {
            check_author(field, value.as_deref())?;
        }
        self.git_token.as_ref().map_or(Ok(()), GitToken::check)?;
        self.ssh_private_key.as_deref().map_or(Ok(()), ssh_key::check)
    }
}

impl GitToken {
    fn check(&self) -> Result<(), InvalidRequest> {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
        let host = &self.host;
        if host.is_empty() || host.len() > 255 || !host.bytes().all(is_host) {
            let rule = "is a host name, with its port if that is not 443";
            return Err(InvalidRequest::new("git_token.host", rule));
        }
        let words = [
            ("token", Some(&self.token), MAX_TOKEN_BYTES),
            ("username", self.username.as_ref(), MAX_USER_BYTES),
        ];
        for (field, value, most) in words {
            let is_line = |value: &String| {
                let printed = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
                printed && (1..=most).contains(&value.len())
            };
            if !value.is_none_or(is_line) {
                let rule = format!("is 1 to {most} printable ASCII characters");
                return Err(InvalidRequest::new(format!("git_token.{field}"), rule));
            }
        }
        Ok(())
    }
}

/// Checks the name of a credential; `field` is the name of the request's field in the error.
pub fn check_credential_name(field: &str, name: &str) -> Result<(), InvalidRequest> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts && name.len() <= MAX_NAME_CHARS && name.bytes().all(plain) {
        return Ok(());
    }
    let rule = format!(
        "is the name of a credential: 1 to {MAX_NAME_CHARS} letters, digits, dots, hyphens and underscores"
    );
    Err(InvalidRequest::new(field, rule))
}

fn check_variable(name: &str, value: &str) -> Result<(), InvalidRequest> {
    let refused = |rule: &str| {
        let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
        Err(InvalidRequest::new(format!("env_vars.{shown}"), rule))
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if !starts || name.len() > MAX_NAME_CHARS || !name.bytes().all(is_word) {
        return refused("is not a valid variable name");
    }
    let reserved =
        RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if reserved {
        refused("is reserved: it decides how commands run")
    } else if value.contains('\0') {
        refused("contains a NUL byte")
    } else {
        Ok(())
    }
}

fn check_author(field: &str, value: Option<&str>) -> Result<(), InvalidRequest> {
    let is_plain = |value: &str| {
        let length = value.chars().count();
        !value.trim().is_empty()
            && length <= 200
            && !value.contains(['<', '>'])
            && !value.contains(char::is_control)
    };
    if value.is_none_or(is_plain) {
        return Ok(());
    }
    Err(InvalidRequest::new(field, "is one plain line of 1 to 200 characters without `<` and `>`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    fn check(value: Value) -> Result<(), String> {
        let content: CredentialContent =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        content.check().map_err(|error| error.to_string())
    }

    #[test]
    fn only_usable_contents_are_accepted() {
        for good in [
            json!({ "env_vars": { "API_KEY": "k", "_x9": "" } }),
            json!({ "git_name": "Ada", "git_email": "ada@example.com" }),
            json!({ "git_token": { "host": "git.example.com:8443", "token": "t" } }),
        ] {
            assert_eq!(check(good.clone()), Ok(()), "{good}");
        }
        for (bad, named) in [
            (json!({}), "at least one"),
            (json!({ "env_vars": {} }), "at least one"),
            (json!({ "env_vars": { "PATH": "/tmp" } }), "env_vars.PATH"),
            (json!({ "env_vars": { "GIT_SSH_COMMAND": "x" } }), "env_vars.GIT_SSH_COMMAND"),
            (json!({ "env_vars": { "LD_PRELOAD": "x" } }), "env_vars.LD_PRELOAD"),
            (json!({ "env_vars": { "a b": "x" } }), "valid variable name"),
            (json!({ "env_vars": { "A": "\0" } }), "NUL"),
            (json!({ "git_name": "a <b>" }), "git_name"),
            (json!({ "git_token": { "host": "a/b", "token": "t" } }), "git_token.host"),
            (json!({ "git_token": { "host": "a", "token": "t\nhost=b" } }), "git_token.token"),
            (json!({ "ssh": "x" }), "unknown field"),
        ] {
            let refused = check(bad.clone()).unwrap_err();
            assert!(refused.contains(named), "{bad}: {refused}");
        }
    }

    #[test]
    fn the_debug_form_of_a_credential_shows_nothing() {
        let content: CredentialContent =
            serde_json::from_value(json!({ "env_vars": { "API_KEY": "hunter2" } })).unwrap();
        let shown = format!("{content:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("API_KEY"), "{shown}");
    }
}
