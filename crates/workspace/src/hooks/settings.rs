//! The scripts, deadline and environment of hooks.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use carrel_config::{Environment, HooksConfig};
use carrel_domain::Secret;
use carrel_exec::Captured;

use super::{Hook, HookSite};

/// Variables of the operator that every hook gets.
const PASSED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR", "SSH_AUTH_SOCK"];

/// The prefix of locale variables, which are all passed.
const PASSED_PREFIX: &str = "LC_";

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The settings of hooks: scripts, deadline, variables, and the secrets that are masked in their output.
#[derive(Debug)]
pub struct HookSettings {
    config: HooksConfig,
    variables: Vec<(OsString, OsString)>,
    /// Further variables for every hook.
    own: Vec<(OsString, OsString)>,
    secrets: Vec<Secret>,
}

impl HookSettings {
    /// Takes the scripts of a workflow file, and from the operator's environment the variables that hooks
    /// may see. A variable whose value is one of the secrets is left out.
    pub fn new(config: HooksConfig, environment: &Environment, secrets: Vec<Secret>) -> Self {
        let is_passed = |name: &OsStr| {
            name.to_str().is_some_and(|name| {
                PASSED.contains(&name)
                    || name.starts_with(PASSED_PREFIX)
                    || config.env.iter().any(|extra| extra == name)
            })
        };
        let secret = |value: &OsStr| secrets.iter().any(|secret| value == secret.expose());
        let mut variables: Vec<_> = environment
            .iter()
            .filter(|(name, value)| is_passed(name) && !secret(value))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        if !variables.iter().any(|(name, _)| name == "PATH") {
            variables.push(("PATH".into(), DEFAULT_PATH.into()));
        }
        Self { config, variables, own: Vec::new(), secrets }
    }

    /// Adds a variable for every hook.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.own.push((name.into(), value.into()));
        self
    }

    pub(crate) fn script(&self, hook: Hook) -> Option<&str> {
        match hook {
            Hook::AfterCreate => self.config.after_create.as_deref(),
            Hook::BeforeRun => self.config.before_run.as_deref(),
            Hook::AfterRun => self.config.after_run.as_deref(),
            Hook::BeforeRemove => self.config.before_remove.as_deref(),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.config.timeout
    }

    pub(crate) fn is_sandboxed(&self) -> bool {
        self.config.sandbox
    }

    pub(crate) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Returns the environment of a hook. In a sandbox it is added to the environment of every command, and
    /// has only the operator's variables that the workflow file names.
    pub(crate) fn variables(&self, hook: Hook, site: &HookSite<'_>) -> Vec<(OsString, OsString)> {
        let named = |name: &OsStr| self.config.env.iter().any(|extra| name == extra.as_str());
        let passed = self.variables.iter().filter(|(name, _)| !self.config.sandbox || named(name));
        passed.chain(&self.own).cloned().chain(own_variables(hook, site)).collect()
    }

    /// Returns the beginning and the end of a hook's output, with known secrets masked. They are masked
    /// before the cut, which could leave half of one.
    pub(crate) fn excerpt(&self, printed: &Captured, limit: usize) -> String {
        let mask = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.secrets.iter().fold(text, |text, secret| secret.mask(&text)).into_bytes()
        };
        let whole = printed.omitted() == 0;
        let (head, tail) = if whole {
            (mask(&[printed.head.as_slice(), &printed.tail].concat()), Vec::new())
        } else {
            (mask(&printed.head), mask(&printed.tail))
        };
        let total_bytes = (head.len() + tail.len()) as u64 + printed.omitted();
        Captured { head, tail, total_bytes }.to_text(limit)
    }
}

fn own_variables(
    hook: Hook,
    site: &HookSite<'_>,
) -> impl Iterator<Item = (OsString, OsString)> + use<> {
    let attempt = site.attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
    let own: [(&str, OsString); 6] = [
        ("CARREL_HOOK", hook.as_str().into()),
        ("CARREL_ISSUE_ID", site.record.issue_id().into()),
        ("CARREL_ISSUE_IDENTIFIER", site.record.identifier.as_str().into()),
        ("CARREL_WORKSPACE", site.path().into()),
        ("CARREL_ATTEMPT", attempt.into()),
        // Keeps git from taking a repository around the root for the workspace's own.
        ("GIT_CEILING_DIRECTORIES", site.workspaces.path().into()),
    ];
    own.into_iter().map(|(name, value)| (name.into(), value))
}
