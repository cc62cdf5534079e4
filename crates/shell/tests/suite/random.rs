//! Arbitrary and mutated text: no panic, and one verdict for every spelling.

use carrel_shell::{Preset, parse};
use proptest::prelude::*;

use crate::{rule, verdict};

const SEEDS: [&str; 12] = [
    "cat <<E | grep x > out\nhi $(sudo ls) `id` ${x}\nE\nls",
    "for i in 1 {1..3} *.py; do ls \"$i\"; done > out 2>&1",
    "case $x in a|b*) ls;; *) wc;; esac",
    "if [ -d x ]; then ls; elif [[ $y =~ ^a ]]; then z; else w; fi",
    "bash -c 'env A=1 xargs -I{} rm -rf {}' <<< \"a b\"",
    "find . -name '*.x' -exec chmod 777 {} \\; -o -delete",
    "a=(1 $(sudo x) 2); export A=${a[@]:-$((1+2))} && f() { ls; }; f &",
    "echo $'a\\x6f\\'' \"x\\\"$(ls `id`)\" 'q' $\"t\" \\  #c",
    "while read l; do echo \"$l\" >> /dev/null; done < <(ls)",
    "time ! ls | wc |& tee >(cat)",
    "eval 'trap \"sudo ls\" EXIT'; timeout -k 5 10 nice -n 3 ls",
    "cat <<-'A B' && ls\n\tx\n\tA B\n",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "sudo",
        " ",
        "\n",
        "\t",
        "\\",
        "'",
        "\"",
        "`",
        "$(",
        ")",
        "(",
        "${",
        "}",
        "{",
        "<<E",
        "\nE\n",
        "<<<",
        "<(",
        ">",
        ">&",
        "|",
        "&",
        ";",
        ";;",
        "$x",
        "$((",
        "))",
        "[[",
        "]]",
        "[ ",
        " ]",
        "if ",
        "then ",
        "fi",
        "for ",
        "in ",
        "do ",
        "done",
        "case ",
        "esac",
        "=",
        "a=",
        "#",
        "*",
        "~",
        "/dev/",
        "é",
        "\u{0}",
        "-c ",
        "bash ",
        "eval ",
        "find . -exec ",
        "xargs ",
        "$'",
        "\\'",
        "!",
        "function ",
        "()",
        "@",
        ",",
        "..",
        "1",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..3_u8, any::<char>());
    (prop::sample::select(SEEDS.to_vec()), prop::collection::vec(edit, 0..6)).prop_map(
        |(seed, edits)| {
            let mut chars: Vec<char> = seed.chars().collect();
            for (index, kind, c) in edits {
                let at = index.index(chars.len() + 1);
                match kind {
                    0 => chars.insert(at, c),
                    1 if at < chars.len() => drop(chars.remove(at)),
                    _ => chars.truncate(at.max(3)),
                }
            }
            chars.into_iter().collect()
        },
    )
}

fn judged(text: &str) {
    let _ = parse(text);
    for preset in [Preset::Allowlist, Preset::Denylist, Preset::Open] {
        let verdict = verdict(text, preset);
        if let Some(refusal) = verdict.refusal() {
            assert!(refusal.position <= text.len());
        }
        serde_json::to_string(&verdict).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_judgement_panic(text in prop_oneof![".{0,60}", pieces(), mutated()]) {
        judged(&text);
    }

    #[test]
    fn quoting_does_not_change_a_verdict(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "ls", "sudo", "rm", "-rf", "/", "chmod", "777", "a+w", "/dev/sda", "x", "-r", "/srv/w/one/x", "git",
                "env", "perl", "./x", "--", "nice", "cat", "/dev/null", "755",
            ]), 1..6),
        style in prop::collection::vec(0..4_u8, 6),
    ) {
        let quoted: Vec<String> = words.iter().zip(&style).map(|(word, style)| match style {
            0 => format!("'{word}'"),
            1 => format!("\"{word}\""),
            2 => word.chars().flat_map(|c| ['\\', c]).collect(),
            _ => (*word).to_owned(),
        }).collect();
        prop_assert_eq!(rule(&words.join(" ")), rule(&quoted.join(" ")));
        let joined = shlex::try_join(words.iter().copied()).unwrap();
        prop_assert_eq!(rule(&words.join(" ")), rule(&joined));
    }

    #[test]
    fn quoted_text_is_data(text in "[^\u{0}]{0,40}") {
        let quoted = shlex::try_quote(&text).unwrap();
        prop_assert_eq!(rule(&format!("git commit -m x{quoted}")), "allow");
    }
}
