//! Commands that run other commands.

use carrel_shell::parse;

use crate::table;

/// Returns the commands of a text as they are shown.
fn commands(text: &str) -> Vec<String> {
    parse(text).unwrap().commands.iter().map(carrel_shell::Command::shown).collect()
}

#[test]
fn wrapped_commands_are_listed_after_the_written_ones() {
    for (text, want) in [
        ("sh -c 'ls; wc'", vec!["sh -c 'ls; wc'", "ls", "wc"]),
        ("bash -eo pipefail -c 'ls'", vec!["bash -eo pipefail -c 'ls'", "ls"]),
        ("env -i A=1 B=\"$x\" ls -l", vec!["env -i A=1 B=\"$x\" ls -l", "ls -l"]),
        ("env -u A nice -n 5 ls", vec!["env -u A nice -n 5 ls", "nice -n 5 ls", "ls"]),
        ("timeout -k 5 --signal=KILL 10 ls", vec!["timeout -k 5 --signal=KILL 10 ls", "ls"]),
        ("stdbuf -oL ls", vec!["stdbuf -oL ls", "ls"]),
        ("nohup ls", vec!["nohup ls", "ls"]),
        ("time -p ls", vec!["time -p ls", "ls"]),
        ("command -v sudo", vec!["command -v sudo"]),
        ("exec -a x ls", vec!["exec -a x ls", "ls"]),
        ("xargs -0 -n 1 grep x", vec!["xargs -0 -n 1 grep x", "grep x …"]),
        ("xargs -I{} mv {} x", vec!["xargs -I{} mv {} x", "mv {} x"]),
        (
            "find . -exec ls {} \\; -o -exec wc {} +",
            vec!["find . -exec ls {} \\; -o -exec wc {} +", "ls {}", "wc {}"],
        ),
        ("eval 'ls' -l", vec!["eval 'ls' -l", "ls -l"]),
        ("env", vec!["env"]),
        ("bash x.sh -c 'sudo'", vec!["bash x.sh -c 'sudo'"]),
    ] {
        assert_eq!(commands(text), want, "{text}");
    }
}

#[test]
fn wrappers_pass_when_what_they_run_passes() {
    table(&[
        ("nice", "nice -n 10 make -j4", "allow"),
        ("nested", "timeout 60 env A=1 nohup npm test", "allow"),
        ("xargs", "find . -name '*.py' | xargs grep -n x", "allow"),
        ("version", "bash --version", "allow"),
        ("file", "bash < x.sh", "allow"),
        ("variable", "bash \"$script\"", "allow"),
        ("listed", "env perl x", "not_listed"),
        ("path", "xargs ./x", "path"),
        ("unknown option", "timeout --frob 5 ls", "not_understood"),
        ("unfinished", "find . -exec ls", "not_understood"),
        ("setsid", "setsid ls", "not_listed"),
        ("missing", "bash -c", "not_understood"),
        ("function", "f() { ls; }; f", "allow"),
        ("function", "f; f() { ls; }", "not_listed"),
        ("function", "if false; then f() { ls; }; fi; f", "not_listed"),
        ("function", "f() { ls; }; unset -f f; f", "not_listed"),
        ("function", "f() { ls; } & f", "not_listed"),
        ("function", "f() { ls; }; bash -c f", "not_listed"),
    ]);
}

#[test]
fn wrappers_nest_only_so_deep() {
    let text = format!("{}ls", "env ".repeat(40));
    assert_eq!(crate::rule(&text), "not_understood");
}
