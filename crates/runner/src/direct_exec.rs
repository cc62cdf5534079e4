//! Lines that a shell would only hand on.
//!
//! `bash -c 'git status'` reads its own libraries and settings, finds `git` and becomes it. Where a line
//! is one program with plain words, the program is started at once, with what the shell would have added
//! to its environment. That is half the time of a short command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// What the shell does itself, and what means something to it. `true` and `false` are programs as well,
/// which do the same.
const WORDS_OF_THE_SHELL: [&str; 76] = [
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "bash",
];

/// A program with its arguments, and what a shell would add to its environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Direct {
    pub(crate) argv: Vec<OsString>,
    pub(crate) variables: [(OsString, OsString); 3],
}

/// Returns what a line comes to, if a shell would add nothing. A program that is not there is left to
/// the shell, which says so.
pub(crate) fn direct(
    line: &str,
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Option<Direct> {
    let words = plain_words(line)?;
    let name = *words.first()?;
    if name.contains(['/', '=']) || WORDS_OF_THE_SHELL.contains(&name) {
        return None;
    }
    if environment.iter().any(|(name, _)| is_for_the_shell(name)) {
        return None;
    }
    let program = find(name, environment)?;
    let variable = |name: &str, value: &OsStr| (name.into(), value.to_owned());
    Some(Direct {
        argv: words.into_iter().map(Into::into).collect(),
        variables: [
            variable("PWD", directory.as_os_str()),
            variable("SHLVL", OsStr::new("0")),
            variable("_", program.as_os_str()),
        ],
    })
}

/// Splits a line into words, if nothing in it means anything to a shell.
fn plain_words(line: &str) -> Option<Vec<&str>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./,:+=@%".contains(&byte);
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    line.bytes().all(plain).then_some(words)
}

/// Variables that change what a shell does before the command.
fn is_for_the_shell(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "BASH_ENV"
        || name == "SHELLOPTS"
        || name == "BASHOPTS"
        || name.starts_with("BASH_FUNC_")
}

/// Finds a program as a shell would. What is on the path of commands is seen by them as it is here.
fn find(name: &str, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
    let mut places = std::env::split_paths(path).filter(|place| place.is_absolute());
    places.find_map(|place| {
        let program = place.join(name);
        let there = accessat(CWD, &program, Access::EXEC_OK, AtFlags::empty()).is_ok();
        (there && program.is_file()).then_some(program)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come_to(line: &str) -> Option<Vec<String>> {
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let found = direct(line, Path::new("/w"), &environment)?;
        Some(found.argv.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn one_program_with_plain_words_needs_no_shell() {
        assert_eq!(
            come_to("ls  -la src/a.b"),
            Some(vec!["ls".into(), "-la".into(), "src/a.b".into()])
        );
        assert_eq!(come_to("env A=1 true"), Some(vec!["env".into(), "A=1".into(), "true".into()]));
        assert_eq!(come_to("true"), Some(vec!["true".into()]));
    }

    #[test]
    fn whatever_means_something_to_a_shell_is_left_to_it() {
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
            assert_eq!(come_to(line), None, "{line}");
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
