//! Grants for an agent's program.
//!
//! Programs of the operator are often below the home directory, which no sandbox shows. The program that a
//! command line begins with is looked up on the operator's `PATH`, and the directories it consists of
//! become readable: the one it was grants in, the one that symbolic links lead to, and for an npm package
//! the whole `node_modules`. A directory that holds much besides, such as the home directory or `/tmp`, is never
//! granted; then only the file is.

use std::path::{Path, PathBuf};

use carrel_config::Environment;
use carrel_runner::Runner;
use rustix::fs::{Access, AtFlags, CWD, accessat};

const PACKAGES: &str = "node_modules";

/// Words that may precede the program in a command line.
const PREFIXES: [&str; 5] = ["exec", "env", "command", "nice", "time"];

/// Programs that run a package or script given as their argument.
const RUNNERS: [&str; 4] = ["npx", "bunx", "pnpx", "node"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramGrants {
    pub(crate) readable: Vec<PathBuf>,
    /// Directories to prepend to `PATH`.
    pub(crate) path: Vec<PathBuf>,
    /// The command line, with the program's path as it is visible in the sandbox.
    pub(crate) command: String,
}

/// Looks up the program of a command line. An unknown program gets no grants; its start will fail with
/// its name.
pub(crate) fn find(command: &str, runner: &Runner) -> ProgramGrants {
    let own: Vec<PathBuf> = runner.programs().map(Path::to_owned).collect();
    let mut grants = ProgramGrants { readable: Vec::new(), path: own, command: command.to_owned() };
    let environment = runner.environment();
    let Some(name) = name_of(command) else { return grants };
    let too_broad = too_broad(environment);
    let program =
        find_executable(name, environment).and_then(|path| resolve_directory(&path, &too_broad));
    let Some(program) = program else { return grants };
    if name.contains('/') {
        grants.command = command.replacen(name, &program.to_string_lossy(), 1);
    }
    for part in components(&program, &too_broad) {
        if part.is_dir() && program.parent() == Some(&part) && !grants.path.contains(&part) {
            grants.path.insert(0, part.clone());
        }
        grants.readable.push(part);
    }
    grants
}

/// Returns the program of a command line; `None` if it is quoted or an expansion.
fn name_of(command: &str) -> Option<&str> {
    let name = words_from_program(command).next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+@".contains(&byte);
    name.bytes().all(plain).then_some(name)
}

fn words_from_program(command: &str) -> impl Iterator<Item = &str> {
    let is_prefix = |word: &&str| PREFIXES.contains(word) || word.contains('=');
    command.split_whitespace().skip_while(is_prefix)
}

/// Returns the file names that a command line runs: the program, and the package or script that a runner
/// such as `npx` is given.
pub(crate) fn names(command: &str) -> impl Iterator<Item = &str> {
    let mut words = words_from_program(command).filter(|word| !word.starts_with('-'));
    let program = words.next();
    let name = program.and_then(|word| word.rsplit('/').next());
    let runs_others = name.is_some_and(|name| RUNNERS.contains(&name));
    let other = words.next().filter(|_| runs_others);
    [program, other].into_iter().flatten().filter_map(|word| word.rsplit('/').next())
}

/// Finds an executable on the operator's `PATH`.
fn find_executable(name: &str, environment: &Environment) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.is_file() && accessat(CWD, path, Access::EXEC_OK, AtFlags::empty()).is_ok()
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute()).filter(is_program);
    }
    let path = environment.get("PATH")?;
    let mut directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.find_map(|directory| Some(directory.join(name)).filter(is_program))
}

/// Returns directories that must not be granted as a whole.
fn too_broad(environment: &Environment) -> Vec<PathBuf> {
    let directories = [environment.home(), Some(environment.temp_dir())];
    let directories = directories.into_iter().flatten();
    directories.chain(["/tmp", "/var/tmp", "/srv", "/mnt"].map(PathBuf::from)).collect()
}

/// Returns the paths that a program consists of, each once.
fn components(program: &Path, too_broad: &[PathBuf]) -> Vec<PathBuf> {
    let real = canonical(program);
    let mut parts: Vec<PathBuf> = Vec::new();
    for file in [Some(program), real.as_deref()].into_iter().flatten() {
        let part = component_of(file, too_broad);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Returns the directory of a program or its outermost `node_modules`; the file alone if the directory
/// is too broad.
fn component_of(file: &Path, too_broad: &[PathBuf]) -> PathBuf {
    let is_packages = |path: &&Path| path.file_name().is_some_and(|name| name == PACKAGES);
    let packages = file.ancestors().filter(is_packages).last();
    let directory = packages.or(file.parent()).unwrap_or(file);
    let is_too_broad = too_broad.iter().any(|broad| broad.starts_with(directory));
    if is_too_broad { file.to_owned() } else { directory.to_owned() }
}

/// Resolves the links in a program's directory, which do not exist in the sandbox. A program that is
/// granted alone is resolved itself.
fn resolve_directory(program: &Path, too_broad: &[PathBuf]) -> Option<PathBuf> {
    let program = canonical(program.parent()?)?.join(program.file_name()?);
    if component_of(&program, too_broad) == program { canonical(&program) } else { Some(program) }
}

#[expect(clippy::disallowed_methods, reason = "a program of the operator's, which is on the host")]
fn canonical(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_program_is_the_first_word_that_is_plain() {
        for (command, name) in [
            ("codex app-server", Some("codex")),
            ("exec codex", Some("codex")),
            ("A=1 env B=2 /opt/x/agent --y", Some("/opt/x/agent")),
            ("npx @zed-industries/codex-acp@0.1", Some("npx")),
            ("$AGENT go", None),
            ("'my agent'", None),
            ("", None),
        ] {
            assert_eq!(name_of(command), name, "{command}");
        }
    }

    #[test]
    fn neither_a_home_nor_a_temporary_directory_is_granted_as_a_whole() {
        let environment = Environment::from_pairs([("HOME", "/home/anna")]);
        let too_broad = too_broad(&environment);
        for (file, part) in [
            ("/home/anna/.local/bin/agent", "/home/anna/.local/bin"),
            ("/home/anna/agent", "/home/anna/agent"),
            ("/home/agent", "/home/agent"),
            ("/tmp/agent", "/tmp/agent"),
            ("/agent", "/agent"),
            ("/opt/agent/agent", "/opt/agent"),
            (
                "/home/anna/.nvm/v/lib/node_modules/@openai/codex/node_modules/x/bin/codex.js",
                "/home/anna/.nvm/v/lib/node_modules",
            ),
        ] {
            assert_eq!(component_of(Path::new(file), &too_broad), Path::new(part), "{file}");
        }
    }
}
