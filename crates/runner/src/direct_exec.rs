//! Starts plain command lines without a shell.
//!
//! `bash -c 'git status'` loads bash, reads its settings, finds `git` and becomes it. Where a line is one
//! program with plain words, the program is started directly, with the variables that bash would have
//! added. In the benchmarks `bash -c true` takes 1.9 ms in tier `full` and `true` 1.2 ms, so this saves a
//! third of a short command. Anything that means something to a shell is left to it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// Builtins and reserved words of bash. `true` and `false` are left out: the programs of that name do the
/// same.
const SHELL_WORDS: &str = "\
    . : alias bg bind break builtin caller case cd command compgen complete compopt continue \
    coproc declare dirs disown do done echo elif else enable esac eval exec exit export fc fg fi \
    for function getopts hash help history if in jobs kill let local logout mapfile popd printf \
    pushd pwd read readarray readonly return select set shift shopt source suspend test then time \
    times trap type typeset ulimit umask unalias unset until wait while bash";

/// An argument list, and the variables that bash would add.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DirectCommand {
    pub(crate) argv: Vec<OsString>,
    pub(crate) variables: [(OsString, OsString); 3],
}

/// Returns the command of a line that bash would only start; `None` for every other line, and for a
/// program that does not exist, which bash reports.
pub(crate) fn direct(
    line: &str,
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Option<DirectCommand> {
    let words = plain_words(line)?;
    let name = *words.first()?;
    if name.contains(['/', '=']) || SHELL_WORDS.split(' ').any(|word| word == name) {
        return None;
    }
    if environment.iter().any(|(name, _)| is_for_the_shell(name)) {
        return None;
    }
    let program = find(name, environment)?;
    let variable = |name: &str, value: &OsStr| (name.into(), value.to_owned());
    Some(DirectCommand {
        argv: words.into_iter().map(Into::into).collect(),
        variables: [
            variable("PWD", directory.as_os_str()),
            variable("SHLVL", OsStr::new("0")),
            variable("_", program.as_os_str()),
        ],
    })
}

/// Splits a line into words, if it has no character with a meaning to the shell.
fn plain_words(line: &str) -> Option<Vec<&str>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./,:+=@%".contains(&byte);
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    line.bytes().all(plain).then_some(words)
}

/// Returns whether a variable changes what bash does before the command.
fn is_for_the_shell(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "BASH_ENV"
        || name == "SHELLOPTS"
        || name == "BASHOPTS"
        || name.starts_with("BASH_FUNC_")
}

/// Finds a program in `PATH` as bash would. Commands see the directories of their `PATH` as the host does.
fn find(name: &str, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
    let mut directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.find_map(|directory| {
        let program = directory.join(name);
        let there = accessat(CWD, &program, Access::EXEC_OK, AtFlags::empty()).is_ok();
        (there && program.is_file()).then_some(program)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv_of(line: &str) -> Option<Vec<String>> {
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let found = direct(line, Path::new("/w"), &environment)?;
        Some(found.argv.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn one_program_with_plain_words_needs_no_shell() {
        assert_eq!(
            argv_of("ls  -la src/a.b"),
            Some(vec!["ls".into(), "-la".into(), "src/a.b".into()])
        );
        assert_eq!(argv_of("env A=1 true"), Some(vec!["env".into(), "A=1".into(), "true".into()]));
        assert_eq!(argv_of("true"), Some(vec!["true".into()]));
    }

    #[test]
    fn lines_with_shell_syntax_are_left_to_the_shell() {
        for line in [
            "",
            " ",
            "ls | cat",
            "ls > x",
            "ls $HOME",
            "ls *",
            "ls ~",
            "ls 'a b'",
            "ls \"a\"",
            "ls \\a",
            "ls; ls",
            "ls & ls",
            "ls\nls",
            "(ls)",
            "{ ls",
            "ls #x",
            "ls `x`",
            "! ls",
            "A=1 ls",
            "cd src",
            "echo x",
            "./ls",
            "/bin/ls",
            "ls a?",
            "ls [a]",
            "ls {a,b}",
            "no-such-program-anywhere",
            "time ls",
            "ls \u{e9}",
            "ls\tx",
            "bash -x",
            "kill 1",
            "test -e x",
            "ls ^x",
            "ls !x",
        ] {
            assert_eq!(argv_of(line), None, "{line}");
        }
    }

    #[test]
    fn settings_for_the_shell_are_honoured_by_it() {
        for name in ["BASH_ENV", "BASH_FUNC_ls%%", "SHELLOPTS"] {
            let environment = [("PATH".into(), "/usr/bin:/bin".into()), (name.into(), "x".into())];
            assert_eq!(direct("ls", Path::new("/w"), &environment), None, "{name}");
        }
    }
}
