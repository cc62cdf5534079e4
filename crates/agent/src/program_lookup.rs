//! What of the host an agent's program needs to be seen.
//!
//! Programs of the operator are often below home, where no command looks. The program that a command line
//! begins with is looked up as the operator's shell would, and what it consists of is shown to the agent:
//! the directory it was found in, the directory that it really is in, and for what npm installed, the
//! packages beside it.

use std::path::{Path, PathBuf};

use carrel_config::Environment;
use carrel_runner::Runner;
use rustix::fs::{Access, AtFlags, CWD, accessat};

/// The directory that npm installs packages into.
const PACKAGES: &str = "node_modules";

/// Words that stand before the program.
const BEFORE: [&str; 5] = ["exec", "env", "command", "nice", "time"];

/// Programs that run packages or scripts.
const RUNNERS: [&str; 4] = ["npx", "bunx", "pnpx", "node"];

/// What is shown of the host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramGrants {
    /// What the agent may read.
    pub(crate) readable: Vec<PathBuf>,
    /// Where it finds programs, besides the system.
    pub(crate) path: Vec<PathBuf>,
    /// The command line, with its program by the path at which the agent sees it.
    pub(crate) command: String,
}

/// Looks for the program of a command line.
pub(crate) fn find(command: &str, runner: &Runner) -> ProgramGrants {
    let own: Vec<PathBuf> = runner.programs().map(Path::to_owned).collect();
    let mut found = ProgramGrants { readable: Vec::new(), path: own, command: command.to_owned() };
    let environment = runner.environment();
    let Some(name) = name_of(command) else { return found };
    let too_much = too_much(environment);
    let program = look_up(name, environment).and_then(|path| at_real_place(&path, &too_much));
    let Some(program) = program else { return found };
    if name.contains('/') {
        found.command = command.replacen(name, &program.to_string_lossy(), 1);
    }
    for part in parts(&program, &too_much) {
        if part.is_dir() && program.parent() == Some(&part) && !found.path.contains(&part) {
            found.path.insert(0, part.clone());
        }
        found.readable.push(part);
    }
    found
}

/// Returns the program that a line begins with, if that is plain to see.
fn name_of(command: &str) -> Option<&str> {
    let name = words_from_program(command).next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+@".contains(&byte);
    name.bytes().all(plain).then_some(name)
}

fn words_from_program(command: &str) -> impl Iterator<Item = &str> {
    let before = |word: &&str| BEFORE.contains(word) || word.contains('=');
    command.split_whitespace().skip_while(before)
}

/// Returns what a line runs, by its last name: the program, or the package or script that a program
/// which runs those is given.
pub(crate) fn names(command: &str) -> impl Iterator<Item = &str> {
    let mut words = words_from_program(command).filter(|word| !word.starts_with('-'));
    let program = words.next();
    let name = program.and_then(|word| word.rsplit('/').next());
    let runs_others = name.is_some_and(|name| RUNNERS.contains(&name));
    let other = words.next().filter(|_| runs_others);
    [program, other].into_iter().flatten().filter_map(|word| word.rsplit('/').next())
}

/// Finds a program on the operator's path.
fn look_up(name: &str, environment: &Environment) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.is_file() && accessat(CWD, path, Access::EXEC_OK, AtFlags::empty()).is_ok()
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute()).filter(is_program);
    }
    let path = environment.get("PATH")?;
    let mut places = std::env::split_paths(path).filter(|place| place.is_absolute());
    places.find_map(|place| Some(place.join(name)).filter(is_program))
}

/// Lists directories that hold much besides programs, and what is above them.
fn too_much(environment: &Environment) -> Vec<PathBuf> {
    let places = [environment.home(), Some(environment.temp_dir())];
    let places = places.into_iter().flatten();
    places.chain(["/tmp", "/var/tmp", "/srv", "/mnt"].map(PathBuf::from)).collect()
}

/// Returns what a program consists of, each part once.
fn parts(program: &Path, too_much: &[PathBuf]) -> Vec<PathBuf> {
    let real = real(program);
    let mut parts: Vec<PathBuf> = Vec::new();
    for file in [Some(program), real.as_deref()].into_iter().flatten() {
        let part = part_of(file, too_much);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Returns the directory that a program belongs to; the program alone where that would show too much.
fn part_of(file: &Path, too_much: &[PathBuf]) -> PathBuf {
    let is_packages = |path: &&Path| path.file_name().is_some_and(|name| name == PACKAGES);
    let packages = file.ancestors().filter(is_packages).last();
    let directory = packages.or(file.parent()).unwrap_or(file);
    let shows_too_much = too_much.iter().any(|place| place.starts_with(directory));
    if shows_too_much { file.to_owned() } else { directory.to_owned() }
}

/// Returns a program in the directory that its own really is: agents see no link on the way there. One that
/// is seen alone is taken for what it leads to.
fn at_real_place(program: &Path, too_much: &[PathBuf]) -> Option<PathBuf> {
    let program = real(program.parent()?)?.join(program.file_name()?);
    if part_of(&program, too_much) == program { real(&program) } else { Some(program) }
}

#[expect(clippy::disallowed_methods, reason = "a program of the operator's, which is on the host")]
fn real(path: &Path) -> Option<PathBuf> {
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
        let too_much = too_much(&environment);
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
            assert_eq!(part_of(Path::new(file), &too_much), Path::new(part), "{file}");
        }
    }
}
