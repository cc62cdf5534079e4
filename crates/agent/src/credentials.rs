//! Credentials and conversations of known agents.
//!
//! Codex and Claude Code keep their login, their conversations and their settings in one directory below
//! home, and obey those settings when the operator runs them later without a sandbox. So an agent must not be able to write
//! there. It gets a directory of its own inside (`carrel/`), with symbolic links to the few files that it
//! shares: credentials, which it may renew, and settings, which it may read.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use carrel_config::Environment;
use tracing::warn;

use crate::program_lookup;

/// The name of the agent's own directory.
const OWN: &str = "carrel";

struct KnownAgent {
    program: &'static str,
    variable: &'static str,
    directory: &'static str,
    renewed: &'static [&'static str],
    read: &'static [&'static str],
}

const KNOWN: [KnownAgent; 2] = [
    KnownAgent {
        program: "codex",
        variable: "CODEX_HOME",
        directory: ".codex",
        renewed: &["auth.json"],
        read: &["config.toml", "AGENTS.md", "prompts", "rules", "skills"],
    },
    KnownAgent {
        program: "claude",
        variable: "CLAUDE_CONFIG_DIR",
        directory: ".claude",
        renewed: &[".credentials.json"],
        read: &["settings.json", "CLAUDE.md", "agents", "commands", "skills"],
    },
];

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// Creates the directory of the agent that a command line runs, and returns its grants. An unknown agent
/// gets none.
pub(crate) fn of(command: &str, environment: &Environment) -> Credentials {
    let Some(known) = KNOWN.iter().find(|known| known.is_in(command)) else {
        return Credentials::default();
    };
    let Some(home) = known.home(environment) else { return Credentials::default() };
    match known.prepare(&home) {
        Ok(credentials) => credentials,
        Err(error) => {
            let directory = home.display().to_string();
            warn!(%error, directory, "could not create the agent's own directory");
            Credentials::default()
        }
    }
}

impl KnownAgent {
    /// Returns true if a command line runs one of its programs or packages.
    fn is_in(&self, command: &str) -> bool {
        program_lookup::names(command).any(|name| name.starts_with(self.program))
    }

    fn home(&self, environment: &Environment) -> Option<PathBuf> {
        let named = environment.get(self.variable).filter(|value| !value.is_empty());
        let usual = || Some(environment.home()?.join(self.directory));
        named.map(PathBuf::from).filter(|path| path.is_absolute()).or_else(usual)
    }

    fn prepare(&self, home: &Path) -> io::Result<Credentials> {
        let own = home.join(OWN);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
        // Links on the way do not exist in the sandbox.
        let home = &real(home)?;
        let own = home.join(OWN);
        for name in self.renewed.iter().chain(self.read) {
            link(&own, name)?;
        }
        let in_home = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
        let mut writable = in_home(self.renewed);
        writable.push(own.clone());
        Ok(Credentials {
            readable: in_home(self.read),
            writable,
            variables: vec![(self.variable.into(), own.into())],
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a directory of the operator's, which is on the host"
)]
fn real(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Links a shared file into the agent's own directory. An existing entry stays.
fn link(own: &Path, name: &str) -> io::Result<()> {
    match symlink(Path::new("..").join(name), own.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn an_agent_shares_what_it_needs_and_no_more() {
        let home = tempfile::tempdir().unwrap();
        let codex = home.path().join(".codex");
        let environment = Environment::from_pairs([("HOME", home.path())]);
        for _ in 0..2 {
            let found = of("exec codex app-server", &environment);
            assert_eq!(found.writable, [codex.join("auth.json"), codex.join("carrel")]);
            assert!(found.readable.contains(&codex.join("config.toml")), "{found:?}");
            assert_eq!(found.variables, [("CODEX_HOME".into(), codex.join("carrel").into())]);
        }
        let link = codex.join("carrel/auth.json");
        assert_eq!(rustix::fs::readlink(link, Vec::new()).unwrap().to_str(), Ok("../auth.json"));
    }

    #[test]
    fn the_operators_own_variable_is_honoured_and_unknown_agents_have_nothing() {
        let elsewhere = tempfile::tempdir().unwrap();
        let environment = Environment::from_pairs([("CLAUDE_CONFIG_DIR", elsewhere.path())]);
        let found = of("npx -y @zed-industries/claude-code-acp", &environment);
        let own = elsewhere.path().join("carrel");
        assert_eq!(found.variables, [("CLAUDE_CONFIG_DIR".into(), own.into())]);
        assert_eq!(of("./my-agent --model codex-mini codex", &environment), Credentials::default());
        assert_eq!(of("codex", &Environment::default()), Credentials::default());
    }
}
