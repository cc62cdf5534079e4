//! What an agent keeps for itself on the host: who it is logged in as, and its conversations.
//!
//! Agents keep both in one directory below home, together with settings that they obey when they are run
//! by hand later, outside any wall. So an agent gets a directory of its own inside that one, with links to
//! the few files that it shares: it may renew its credentials, read its settings and change neither.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use carrel_config::Environment;
use tracing::warn;

use crate::program_lookup;

/// The directory of its own that an agent gets.
const OWN: &str = "carrel";

/// How a known agent keeps what is its own.
struct KnownAgent {
    /// How its programs begin.
    program: &'static str,
    /// The variable that says where it is.
    variable: &'static str,
    /// Where it is otherwise, below home.
    directory: &'static str,
    /// What it has to be able to renew.
    renewed: &'static [&'static str],
    /// What it may read.
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

/// What an agent sees of its own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// Finds what the agent of a command line keeps, and makes its own directory. An agent that nobody knows
/// here has nothing.
pub(crate) fn of(command: &str, environment: &Environment) -> Credentials {
    let Some(known) = KNOWN.iter().find(|known| known.is_in(command)) else {
        return Credentials::default();
    };
    let Some(home) = known.home(environment) else { return Credentials::default() };
    match known.prepare(&home) {
        Ok(credentials) => credentials,
        Err(error) => {
            let directory = home.display().to_string();
            warn!(%error, directory, "the agent cannot have a directory of its own there");
            Credentials::default()
        }
    }
}

impl KnownAgent {
    /// Tells whether a command line runs one of its programs or packages.
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
        // No link on the way there is seen by agents.
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

/// Leads from the agent's own directory to what it shares. What is there already stays.
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
