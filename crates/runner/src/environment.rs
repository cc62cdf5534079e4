//! The environment of a command, built from nothing: no variable of the operator is inherited.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::command_run::CommandRun;

const SYSTEM_PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The value of `TERM` unless the request sets another.
const PLAIN_TERMINAL: &str = "dumb";

/// UTF-8 text, independent of the operator's language.
const LANGUAGE: &str = "C.UTF-8";

/// Variables that point offline commands to the operator's caches, and the caches in the home that commands with a
/// network fill. A workspace that has its own uses it: what was installed for it is there, and the operator's may
/// lack it.
const OWN_CACHES: [(&str, &str); 2] =
    [("CARGO_HOME", ".cargo/registry"), ("GOMODCACHE", "go/pkg/mod")];

impl CommandRun<'_> {
    /// Returns the variables of a command. Later sources win: defaults, toolchains, policy, request.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let Self { inner, site, .. } = self;
        let system = SYSTEM_PATH.map(OsStr::new);
        let path: Vec<&OsStr> = inner.programs().map(Path::as_os_str).chain(system).collect();
        let mut variables = Variables::default();
        variables.set("PATH", path.join(OsStr::new(":")));
        variables.set("HOME", site.home());
        variables.set("LANG", LANGUAGE);
        variables.set("TERM", PLAIN_TERMINAL);
        variables.set("TMPDIR", site.temporary());
        if let Some(plan) = site.plan() {
            variables.set("GIT_CONFIG_GLOBAL", plan.git_settings());
        }
        let is_replaced = |name: &str| {
            OWN_CACHES.iter().any(|(known, own)| *known == name && site.has_at_home(own))
        };
        for (name, value) in inner.toolchains.environment(self.network.network) {
            if !is_replaced(name) {
                variables.set(name, value);
            }
        }
        for (name, value) in inner.options.policy.environment.iter() {
            variables.set(name, value);
        }
        for (name, value) in &self.request.environment {
            variables.set(name, value);
        }
        variables.0
    }
}

/// Variables, each name once.
#[derive(Default)]
struct Variables(Vec<(OsString, OsString)>);

impl Variables {
    fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let name = name.as_ref();
        let value = value.as_ref().to_owned();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }
}
