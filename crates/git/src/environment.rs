//! The environment of one git process: variables, and settings that override every file.
//!
//! Settings in `GIT_CONFIG_KEY_<n>` take precedence over those of the repository. Names that are known in
//! advance (hooks, file system monitor, signing, editors, credential helpers) are set here for every
//! process. Names with a part that the repository chooses, such as `filter.<name>.clean`, have to be read
//! from the repository first; [`RepositoryConfig::neutralize`](crate::RepositoryConfig::neutralize) adds
//! them.
//!
//! Two gaps remain, and both end in the sandbox of the workspace: a process that still runs there can
//! write a setting between the reading and the start of git; and an operation that makes git look for
//! changes in submodules can run a filter of a submodule that neither `.git/modules` nor `.gitmodules`
//! names, such as a submodule of a submodule whose own `.git` is a file.

use std::ffi::OsString;
use std::path::Path;

const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    // Runs where a repository borrows objects of another; `true` prints no refs to borrow.
    ("core.alternateRefsCommand", "true"),
    ("core.quotePath", "false"),
    // An empty value clears the list of helpers.
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("commit.gpgSign", "false"),
    ("commit.verbose", "false"),
    ("push.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    // The format `%G?` verifies signatures too.
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("transfer.bundleURI", "false"),
    ("protocol.ext.allow", "never"),
    ("safe.directory", "*"),
    ("safe.bareRepository", "explicit"),
    ("user.useConfigOnly", "true"),
    ("color.ui", "false"),
    ("column.ui", "never"),
];

const VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // An empty value runs nothing, and keeps git from trying `core.askPass` and `SSH_ASKPASS`.
    ("GIT_ASKPASS", ""),
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_SSH_COMMAND", "false"),
    // Git treats `:` as an editor that changes nothing, without starting it.
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_PAGER", "cat"),
    ("GIT_ADVICE", "0"),
    // A partial clone would fetch missing objects with the program that its remote configures.
    ("GIT_NO_LAZY_FETCH", "1"),
    // The home directory of a command is the workspace, where an agent could write `.gitconfig`.
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C.UTF-8"),
];

/// Variables and settings for one git process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitEnvironment {
    variables: Vec<(String, String)>,
    pub(crate) settings: Vec<(String, String)>,
}

impl GitEnvironment {
    /// Makes the environment of every process. It allows no protocol, so git reaches no remote.
    pub fn new() -> Self {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut environment = Self { variables: owned(VARIABLES), settings: owned(SETTINGS) };
        environment.allow_protocols(&[]);
        environment
    }

    /// Sets a variable, in place of an earlier one of the same name.
    pub fn set_variable(&mut self, name: &str, value: impl Into<String>) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.into()));
    }

    /// Adds a setting. The last one of a name takes precedence.
    pub fn set_config(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.settings.push((name.into(), value.into()));
    }

    /// Fixes the repository, so that git does not search parent directories for one.
    pub fn set_repository(&mut self, top: &Path) {
        self.set_variable("GIT_DIR", top.join(".git").to_string_lossy());
        self.set_variable("GIT_WORK_TREE", top.to_string_lossy());
    }

    /// Sets the transports that git may use. No setting of a repository can widen this list.
    pub fn allow_protocols(&mut self, names: &[&str]) {
        self.set_variable("GIT_ALLOW_PROTOCOL", names.join(":"));
    }

    /// Returns all variables, with the settings encoded in them.
    pub fn into_variables(self) -> Vec<(OsString, OsString)> {
        let mut variables = self.variables;
        variables.push(("GIT_CONFIG_COUNT".to_owned(), self.settings.len().to_string()));
        for (index, (name, value)) in self.settings.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{index}"), name));
            variables.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }
}

/// Settings for `upload-pack` and `receive-pack` of a directory in the workspace. Git clears
/// `GIT_CONFIG_*` before it starts them, so they are passed as `-c`.
const LOCAL_TRANSPORT: &[&str] = &[
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "receive.denyCurrentBranch=refuse",
    "receive.autogc=false",
    "gc.auto=0",
];

/// Returns the command that git starts at the other end of a local transport.
pub(crate) fn local_transport_command(program: &str) -> String {
    format!("git -c '{}' {program}", LOCAL_TRANSPORT.join("' -c '"))
}
