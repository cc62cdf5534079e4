//! The root directory of workspaces, from a workflow file, the command line or the default.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::path_expansion::{self, ExpandedPath, PathError};

/// The directory below the system's temporary one that holds workspaces by default.
pub(crate) const DEFAULT_NAME: &str = "carrel_workspaces";

/// The source of the root.
#[expect(missing_docs, reason = "the names of the variants say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootOrigin {
    /// The built-in default below the temporary directory.
    Default,
    File,
    /// The variable that the workflow file or the command line names.
    Variable(String),
    CommandLine,
}

/// The directory that holds workspaces, as configured. Its path is absolute and has no `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedRoot {
    /// The directory.
    pub path: PathBuf,
    /// The source of the path, for messages.
    pub origin: RootOrigin,
    /// True if it was written as a relative path, which deserves a warning.
    pub relative: bool,
}

/// Resolves a root written in a workflow file (`RootOrigin::File`) or on the command line.
///
/// `directory` is where a relative root starts: the directory of the workflow
/// file, or the current one for the command line.
pub fn resolve_root(
    value: &OsStr,
    origin: RootOrigin,
    directory: &Path,
    environment: &Environment,
) -> Result<ResolvedRoot, PathError> {
    let ExpandedPath { path, variable, relative } =
        path_expansion::expand(value, directory, environment)?;
    Ok(ResolvedRoot { path, origin: variable.map_or(origin, RootOrigin::Variable), relative })
}

/// Returns the default root, `carrel_workspaces` in the temporary directory.
pub(crate) fn default_root(directory: &Path, environment: &Environment) -> ResolvedRoot {
    let path = directory.join(environment.temp_dir()).join(DEFAULT_NAME);
    ResolvedRoot { path, origin: RootOrigin::Default, relative: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn environment() -> Environment {
        Environment::from_pairs([
            ("HOME", "/home/anna"),
            ("WS", "/data/ws"),
            ("IN_HOME", "~/ws"),
            ("BESIDE", "ws"),
            ("EMPTY", ""),
            ("BLANK", "  "),
            ("NESTED", "$WS"),
        ])
    }

    fn resolve(value: &str) -> Result<ResolvedRoot, PathError> {
        resolve_root(OsStr::new(value), RootOrigin::File, Path::new("/etc/carrel"), &environment())
    }

    #[test]
    fn item_011_and_012_roots_resolve_by_the_table() {
        let variable = |name: &str| RootOrigin::Variable(name.to_owned());
        for (value, path, origin, relative) in [
            ("/var/ws", "/var/ws", RootOrigin::File, false),
            ("/var//ws/", "/var/ws", RootOrigin::File, false),
            ("/var/./a/../ws", "/var/ws", RootOrigin::File, false),
            ("/../../ws", "/ws", RootOrigin::File, false),
            ("~", "/home/anna", RootOrigin::File, false),
            ("~/ws", "/home/anna/ws", RootOrigin::File, false),
            ("~/a/../Å х 入", "/home/anna/Å х 入", RootOrigin::File, false),
            ("ws", "/etc/carrel/ws", RootOrigin::File, true),
            ("./ws", "/etc/carrel/ws", RootOrigin::File, true),
            ("../ws", "/etc/ws", RootOrigin::File, true),
            ("a~b", "/etc/carrel/a~b", RootOrigin::File, true),
            ("a$b", "/etc/carrel/a$b", RootOrigin::File, true),
            ("$WS", "/data/ws", variable("WS"), false),
            ("$IN_HOME", "/home/anna/ws", variable("IN_HOME"), false),
            ("$BESIDE", "/etc/carrel/ws", variable("BESIDE"), true),
        ] {
            let root = ResolvedRoot { path: path.into(), origin, relative };
            assert_eq!(resolve(value), Ok(root), "{value}");
        }
    }

    #[test]
    fn refused_roots_show_the_form_that_works() {
        for (value, message) in [
            ("", "the path is empty; write one such as ~/workspaces, or leave the setting out"),
            ("  ", "the path is empty; write one such as ~/workspaces, or leave the setting out"),
            ("a\0b", "the path contains a NUL byte"),
            ("$NOPE", "the variable NOPE is not set; set it to a path, or write the path itself"),
            (
                "$EMPTY",
                "the variable EMPTY is set but empty; set it to a path, or write the path itself",
            ),
            (
                "$BLANK",
                "the path is empty; write one such as ~/workspaces, or leave the setting out",
            ),
            ("$HOME/ws", r#""$HOME/ws" is not expanded; write ~/ws"#),
            ("${HOME}/ws", r#""${HOME}/ws" is not expanded; write ~/ws"#),
            ("${WS}", r#""${WS}" is not expanded; write $WS"#),
            ("$WS/x", r#""$WS/x" is not expanded; put the whole path into WS and write $WS"#),
            (
                "/data/$WS",
                r#""/data/$WS" is not expanded; put the whole path into WS and write $WS"#,
            ),
            ("$NESTED", r#""$WS" is not expanded; put the whole path into WS and write $WS"#),
            ("$", r#""$" is not expanded; write the path itself, or one variable as $NAME"#),
            (
                "~bert/ws",
                r#""~bert/ws" names another user's home directory; write the absolute path"#,
            ),
        ] {
            let refused = resolve(value).map_err(|error| error.to_string());
            assert_eq!(refused, Err(message.to_owned()), "{value}");
        }
    }

    #[test]
    fn a_home_that_is_missing_or_relative_is_an_error() {
        for environment in [Environment::default(), Environment::from_pairs([("HOME", "here")])] {
            let root =
                resolve_root(OsStr::new("~/ws"), RootOrigin::File, Path::new("/w"), &environment);
            assert_eq!(root, Err(PathError::NoHome));
        }
    }

    #[test]
    fn the_default_lies_in_the_temporary_directory_of_the_moment() {
        let root = |environment: &Environment| default_root(Path::new("/w"), environment).path;
        assert_eq!(root(&Environment::default()), Path::new("/tmp/carrel_workspaces"));
        let moved = Environment::from_pairs([("TMPDIR", "/scratch")]);
        assert_eq!(root(&moved), Path::new("/scratch/carrel_workspaces"));
    }
}
