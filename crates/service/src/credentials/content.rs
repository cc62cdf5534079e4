//! What a credential holds.

use std::collections::BTreeMap;
use std::fmt;

use carrel_domain::ByteSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ssh_key;
use crate::request::InvalidRequest;

/// A credential as a whole.
pub const MAX_CREDENTIAL_BYTES: ByteSize = ByteSize::kib(64);

/// Variables of one credential.
const MAX_VARIABLES: usize = 100;

/// Characters of a credential's name, and of a variable's.
const MAX_NAME_CHARS: usize = 64;

/// A git token has to fit into a pipe that nobody reads yet.
const MAX_TOKEN_BYTES: usize = 2048;

/// So does its user.
const MAX_USER_BYTES: usize = 255;

/// What both consist of, for schemas.
const PRINTED: &str = "^[ -~]*$";

/// Variables that decide what runs and where, rather than what it knows.
const RESERVED: [&str; 9] =
    ["PATH", "HOME", "SHELL", "TMPDIR", "PWD", "IFS", "ENV", "BASH_ENV", "SSH_AUTH_SOCK"];

/// Beginnings of such names.
const RESERVED_PREFIXES: [&str; 4] = ["LD_", "GIT_", "CARREL_", "BASH_FUNC_"];

/// What a credential holds: any of these, and at least one.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Credential", extend("minProperties" = 1))]
pub struct CredentialContent {
    /// Variables for the commands of a step. What decides how commands run is no variable: `PATH`, `HOME`,
    /// `LD_…`, `GIT_…`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = MAX_VARIABLES,
        "propertyNames" = { "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$" },
    ))]
    pub(super) env_vars: BTreeMap<String, String>,
    /// Who commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub(super) git_name: Option<String>,
    /// The mail address of who commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub(super) git_email: Option<String>,
    /// What a machine is told when git asks there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git_token: Option<GitToken>,
    /// A private key without a passphrase, as `ssh-keygen` writes it. Commands of a step can use it through
    /// `SSH_AUTH_SOCK`, and cannot read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = ssh_key::MAX_BYTES))]
    pub(super) ssh_private_key: Option<String>,
}

/// What a machine is told when git asks there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitToken {
    /// The machine, with its port if that is not the usual one: `github.com`.
    #[schemars(regex(pattern = "^[A-Za-z0-9.:-]{1,255}$"))]
    pub(super) host: String,
    /// The user, if the machine wants to know one.
    #[schemars(length(min = 1, max = MAX_USER_BYTES), regex(pattern = PRINTED))]
    pub(super) username: Option<String>,
    /// The token or password.
    #[schemars(length(min = 1, max = MAX_TOKEN_BYTES), regex(pattern = PRINTED))]
    pub(super) token: String,
}

impl fmt::Debug for CredentialContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialContent").finish_non_exhaustive()
    }
}

impl CredentialContent {
    /// Refuses what could not be used.
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
            check_person(field, value.as_deref())?;
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
            let rule = "is the name of a machine, with its port if that is not the usual one";
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
                let rule = format!("is 1 to {most} printed characters of ASCII");
                return Err(InvalidRequest::new(format!("git_token.{field}"), rule));
            }
        }
        Ok(())
    }
}

/// Refuses what cannot be the name of a credential.
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
        return refused("is no name of a variable");
    }
    let reserved =
        RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    match () {
        () if reserved => refused("decides how commands run, and is Carrel's to set"),
        () if value.contains('\0') => refused("holds a NUL byte"),
        () => Ok(()),
    }
}

fn check_person(field: &str, value: Option<&str>) -> Result<(), InvalidRequest> {
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
    fn only_what_could_be_used_is_taken() {
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
            (json!({ "env_vars": { "a b": "x" } }), "no name"),
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
    fn a_credential_prints_nothing_of_what_it_holds() {
        let content: CredentialContent =
            serde_json::from_value(json!({ "env_vars": { "API_KEY": "hunter2" } })).unwrap();
        let shown = format!("{content:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("API_KEY"), "{shown}");
    }
}
