//! The environment of a command, built from nothing: no variable of the operator is inherited.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use carrel_domain::Network;

use crate::request::RunRequest;
use crate::runner::RunnerInner;
use crate::sandbox_cell::ExecutionSite;
use crate::workspace_handle::WorkspaceHandle;

const SYSTEM_PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The value of `TERM` unless the request sets another.
const PLAIN_TERMINAL: &str = "dumb";

/// UTF-8 text, independent of the operator's language.
const LANGUAGE: &str = "C.UTF-8";

impl RunnerInner {
    /// Returns the variables of a command. Later sources win: defaults, toolchains, policy, request.
    pub(crate) fn environment(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        site: &ExecutionSite,
        network: Network,
    ) -> Vec<(OsString, OsString)> {
        let policy = &self.options.policy;
        let toolchains = &self.toolchains;
        let system = SYSTEM_PATH.map(OsStr::new);
        let path: Vec<&OsStr> = self.programs().map(Path::as_os_str).chain(system).collect();
        let mut variables = Variables::default();
        variables.set("PATH", path.join(OsStr::new(":")));
        variables.set("HOME", workspace.path());
        variables.set("LANG", LANGUAGE);
        variables.set("TERM", PLAIN_TERMINAL);
        variables.set("TMPDIR", site.temporary());
        if let Some(plan) = site.plan() {
            variables.set("GIT_CONFIG_GLOBAL", plan.git_settings());
        }
        for (name, value) in toolchains.environment(network) {
            variables.set(name, value);
        }
        for (name, value) in policy.environment.iter() {
            variables.set(name, value);
        }
        for (name, value) in &request.environment {
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
