//! The commands that are found in a text, and text that is not understood.

use carrel_shell::{Cause, MAX_COMMANDS, MAX_TEXT_BYTES, Meaning, Reason, parse};
use pretty_assertions::assert_eq;

fn words(text: &str) -> Vec<Meaning> {
    let script = parse(text).unwrap();
    script.commands[0].words.iter().map(|word| word.meaning.clone()).collect()
}

fn literal(text: &str) -> Meaning {
    Meaning::Literal(text.to_owned())
}

fn computed(cause: Cause, prefix: &str, splits: bool) -> Meaning {
    Meaning::Computed { cause, prefix: prefix.to_owned(), splits }
}

#[test]
fn words_lose_their_quotes() {
    assert_eq!(
        words(r#"l\s "a b"'c'd $'\x6f' a\ b "x\ny\"" '' HEAD@{1} {} x#y"#),
        ["ls", "a bcd", "o", "a b", r#"x\ny""#, "", "HEAD@{1}", "{}", "x#y"].map(literal)
    );
}

#[test]
fn computed_words_say_why_and_what_is_known() {
    assert_eq!(
        words(r#"ls $x "$x" a"$x" "$@" $(wc) <(wc) $((1+1)) *.py a/{b,c} {1..3} ~/x "a*"$x"#),
        [
            literal("ls"),
            computed(Cause::Variable, "", true),
            computed(Cause::Variable, "", false),
            computed(Cause::Variable, "a", false),
            computed(Cause::Variable, "", true),
            computed(Cause::Substitution, "", true),
            computed(Cause::ProcessSubstitution, "", false),
            computed(Cause::Arithmetic, "", false),
            computed(Cause::Glob, "", false),
            computed(Cause::Brace, "a/", false),
            computed(Cause::Brace, "", false),
            computed(Cause::Tilde, "", false),
            computed(Cause::Variable, "a*", true),
        ]
    );
}

#[test]
fn words_after_a_redirection_belong_to_the_command() {
    let script = parse("> out ls -l 2>&1 -a").unwrap();
    assert_eq!(script.commands[0].shown(), "ls -l -a");
    assert_eq!(script.commands[0].redirections.len(), 2);
}

#[test]
fn positions_are_bytes_of_the_text() {
    let script = parse("echo é; ls | wc").unwrap();
    let positions: Vec<_> = script.commands.iter().map(|command| command.position).collect();
    assert_eq!(positions, [0, 9, 14]);
    assert_eq!(parse("ls\n\nwc\n").unwrap().newlines, [2]);
    assert_eq!(parse("ls `wc`").unwrap().backticks, [3, 6]);
    assert_eq!(parse("ls \\\n -l").unwrap().newlines, [0; 0]);
}

#[test]
fn ordinary_scripts_are_understood() {
    for text in [
        "",
        "  \n",
        "# only a comment",
        "set -euo pipefail\ncd x && make -j4 || exit 1\n",
        "for f in *.py; do\n  echo \"$f\"\ndone",
        "while read -r l; do echo \"$l\"; done < f",
        "if [ -f x ] && [ \"$a\" = b ]; then ls; elif [[ $x == y* ]]; then wc; else :; fi",
        "case \"$1\" in\n  a|b) ls ;;\n  *) wc ;;\nesac",
        "x=$(git rev-parse HEAD); echo \"${x:0:7}\"",
        "cat > f <<'EOF'\na `b` $(c)\nEOF\n",
        "cat <<EOF\n$HOME ${x} \\$(y)\nEOF\nls",
        "[[ $x =~ ^[a-z]+$ ]]",
        "((i++))",
        "for ((i=0; i<3; i++)); do ls; done",
        "a=(1 2 3); echo \"${a[@]}\"",
        "ls | tee >(wc) > out",
        "diff <(ls a) <(ls b)",
        "echo $?",
        "echo \"$#\" $! $$",
        "cargo build \\\n  --release",
        "test ! -f x",
        "[ ! -f x ]",
        "git show HEAD^:x",
        "echo a=b",
        "ls -- -x",
        "echo ${#x} ${x%.*} ${x##*/}",
        "f() { local a=1; echo $a; }; f",
        "printf '%s\\n' \"a\" | sort -u",
        "! grep -q x f",
        "ls 2>&1 | head -n 5",
        "echo \"cost: 5$\"",
        "npm run build:prod -- --flag=x",
        "echo $((2 * (3 + 4)))",
        "true && (cd x; ls) &",
    ] {
        assert!(parse(text).is_ok(), "{text:?}: {:?}", parse(text));
    }
}

#[test]
fn texts_that_could_hide_a_command_are_not_understood() {
    for text in [
        "su\\\ndo ls",
        "ls \\ sudo",
        "echo $'a\\\\' ; sudo ls ; echo '",
        "\"${x:-'$(sudo ls)'}\"",
        "\"${x:-'}\"; sudo ls; echo \"'}\"",
        "[ a || sudo ls ]",
        "[ a > b ]",
        "[ a\nsudo ]",
        "ls;;evil",
        "cat <<E\n$\\\n(sudo ls)\nE",
        "cat <<E\nx\\\nE\nsudo ls\nE",
        "echo \"$\\\n(sudo ls)\"",
        "echo $\\\n(sudo ls)",
        "echo \"unterminated",
        "cat <<E\nx",
        "cat <<A <<B\nA\nB\n",
        "ls (x)",
        "ls )",
        "if ls",
        "} ls",
        "{ ls",
        "a=(",
        "echo \"`echo \\`sudo\\``\"",
        "cat <<E\n`sudo`\nE",
        "ls \u{0}",
        "fi",
        "then ls",
    ] {
        assert!(parse(text).is_err(), "{text:?}: {:#?}", parse(text));
    }
}

#[test]
fn the_place_and_the_rest_are_reported() {
    let problem = parse("ls; $x y; wc").unwrap_err();
    assert_eq!(problem.position, 4);
    assert_eq!(problem.reason, Reason::ComputedCommand { source_text: "$x".to_owned() });
    assert_eq!(problem.partial.commands.len(), 3);
}

#[test]
fn limits_hold() {
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(parse(&long).unwrap_err().reason, Reason::TooLong { limit: MAX_TEXT_BYTES });
    let many = "x;".repeat(MAX_COMMANDS + 1);
    assert_eq!(parse(&many).unwrap_err().reason, Reason::TooManyCommands { limit: MAX_COMMANDS });
    for (open, close) in
        [("(", ")"), ("$(", ")"), ("{ ", ";}"), ("\"$(", ")\""), ("${x:-", "}"), ("$((", "))")]
    {
        let deep = format!("echo {}ls{}", open.repeat(5000), close.repeat(5000));
        assert!(parse(&deep).is_err(), "{open}");
    }
    assert!(parse(&"x|".repeat(MAX_TEXT_BYTES / 2)).is_err());
    let chain = "ls && ".repeat(5000) + "ls";
    assert!(parse(&chain).is_err());
}

#[test]
fn characters_beyond_ascii_are_ordinary() {
    assert_eq!(words("écho {1😀..3} 'ü' ls\u{a0}x").len(), 4);
    assert_eq!(words("ls\u{2028}x"), [literal("ls\u{2028}x")]);
    for text in [
        "é=1",
        "echo {😀..3}",
        "echo $é",
        "cat <<é\né\né",
        "😀() { ls; }",
        "echo ${é}",
        "[ -é x ]",
        "2😀>x",
    ] {
        let _ = parse(text);
    }
}
