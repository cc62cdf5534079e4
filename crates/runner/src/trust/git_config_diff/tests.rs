use super::*;

fn config(text: &str) -> Config<'_> {
    Config::read(text.as_bytes(), 1).unwrap()
}

/// Rewrites `text` with the entries of `trusted`.
fn restored(trusted: &str, text: &str) -> String {
    String::from_utf8(config(text).with_entries_of(&config(trusted))).unwrap()
}

const PLAIN: &str = "[core]\n\tbare = false\n";

#[test]
fn changes_are_named_as_they_are_written() {
    let old = config("[core]\n\teditor = vim\n\tpager = less\n");
    let new = config("[CORE]\n\tPager = evil\n\thooksPath = x\n[alias]\n\tst = !x\n[user]\nname=y");
    assert_eq!(
        new.changes(&old),
        [
            (ChangeKind::Removed, "core.editor".to_owned()),
            (ChangeKind::Changed, "core.Pager".to_owned()),
            (ChangeKind::Added, "alias.st".to_owned()),
            (ChangeKind::Added, "core.hooksPath".to_owned()),
        ]
    );
}

#[test]
fn only_entries_that_count_are_taken_back() {
    let cases = [
        // Nothing else changed: the old file, byte for byte.
        ("[core]\n\tbare = false\n\thooksPath = evil\n", PLAIN),
        ("[core]\n\tbare = false\n[alias]\n\tst = !evil\n", PLAIN),
        ("[core] hooksPath = evil\n\tbare = false\n", "[core] \n\tbare = false\n"),
        // What else was written stays.
        (
            "[core]\n\tbare = false\n\thooksPath = evil\n[user]\n\tname = A ; me\n",
            "[core]\n\tbare = false\n[user]\n\tname = A ; me\n",
        ),
        (
            "[core]\r\n\tbare = false\r\n  hooksPath = a\\\r\nb # c\r\n# end",
            "[core]\r\n\tbare = false\r\n# end",
        ),
        ("[a]\n\tb = c\n[core]\n\tsshCommand = evil", "[a]\n\tb = c\n[core]\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(restored(PLAIN, text), expected, "{text:?}");
    }
}

#[test]
fn changed_and_removed_entries_come_back() {
    let old = "[core]\n\thooksPath = \"/opt/my hooks\" # ours\n[filter \"a\\\"b\"]\n\tclean = x\n";
    let text = "[core]\n\thooksPath = evil\n\tbare = false\n[user]\n\tname = A";
    assert_eq!(
        restored(old, text),
        "[core]\n\thooksPath = \"/opt/my hooks\" # ours\n\tbare = false\n[user]\n\tname = A\n\
         [filter \"a\\\"b\"]\n\tclean = x\n"
    );
}

#[test]
fn several_values_of_one_name_keep_their_order() {
    let old = "[credential]\n\thelper = a\n\thelper = b\n";
    let text = "[credential]\n\thelper = evil\n\thelper = a\n\thelper = b\n[user]\nname = x\n";
    assert_eq!(restored(old, text), "[credential]\n\thelper = a\n\thelper = b\n[user]\nname = x\n");
    let text = "[credential]\n\thelper = b\n[user]\nname = x\n";
    let result = restored(old, text);
    assert!(config(&result).changes(&config(old)).is_empty(), "{result}");
}

#[test]
fn random_edits_are_undone_and_nothing_else_moves() {
    const LINES: [&str; 14] = [
        "[core]\n",
        "[user]\n",
        "[alias]\n",
        "[filter \"x\"]\n",
        "\tname = A B\n",
        "\tpager = less\n",
        "\thooksPath = evil # c\n",
        "st = !x\n",
        "  clean = a\\\nb\n",
        "# comment\n",
        "\n",
        "\tbare\n",
        "[core] editor = e\n",
        "email = x ; y\r\n",
    ];
    let mut random = fastrand::Rng::with_seed(11);
    let mut text = || -> String {
        (0..random.usize(0..12)).map(|_| LINES[random.usize(..LINES.len())]).collect()
    };
    for _ in 0..5000 {
        let old = text();
        let new = text();
        let trusted = config(&old);
        let config = config(&new);
        let result = config.with_entries_of(&trusted);
        let after = Config::read(&result, 1).unwrap();
        assert!(after.changes(&trusted).is_empty(), "{old:?} {new:?}");
        let entries = |config: &Config<'_>| -> Vec<_> {
            let entries = config.parsed.entries.iter().filter(|entry| !config.is_sensitive(entry));
            entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect()
        };
        assert_eq!(entries(&after), entries(&config), "{old:?} {new:?}");
        if config.changes(&trusted).is_empty() {
            // An order among names may differ and mean the same; then the file is left alone by the caller.
            continue;
        }
        let unchanged = Config::read(&result, 1).unwrap().with_entries_of(&after);
        assert_eq!(unchanged, result);
    }
}
