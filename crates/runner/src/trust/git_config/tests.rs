use super::*;

fn read(text: &str) -> Vec<(String, Option<String>)> {
    let text_of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let parsed = parse(text.as_bytes()).unwrap();
    let entries = parsed.entries.iter();
    entries.map(|entry| (text_of(&entry.key), entry.value.as_deref().map(text_of))).collect()
}

fn one(text: &str) -> (String, Option<String>) {
    let entries = read(text);
    assert_eq!(entries.len(), 1, "{text:?}");
    entries.into_iter().next().unwrap()
}

#[test]
fn names_fold_case_except_in_quotes() {
    for (text, key) in [
        ("[core]\n\thooksPath = x\n", "core.hookspath"),
        ("[CORE]HOOKSPATH=x", "core.hookspath"),
        ("[filter \"LFS\"]\nclean = x", "filter.LFS.clean"),
        ("[filter.LFS]\nclean = x", "filter.lfs.clean"),
        ("[a.b \"C.d\"]\nE = x", "a.b.C.d.e"),
        ("[a   \"q\\\"\\\\\\z\"] k = x", "a.q\"\\z.k"),
        ("\u{feff}[a]\nk = x", "a.k"),
        ("[a]\r\nk = x\r\n", "a.k"),
    ] {
        assert_eq!(one(text), (key.to_owned(), Some("x".to_owned())), "{text:?}");
    }
}

#[test]
fn values_lose_quotes_escapes_comments_and_outer_space() {
    for (line, value) in [
        ("k =   a  b   ", Some("a  b")),
        ("k = a # b", Some("a")),
        ("k = \"a # b\" ; c", Some("a # b")),
        ("k = a\\\n  b", Some("a  b")),
        ("k = \\\"\\t\\n\\\\", Some("\"\t\n\\")),
        ("k = \" a \" b\" \"", Some(" a  b ")),
        ("k =", Some("")),
        ("k", None),
        ("k   ", None),
        ("k = a\\", Some("a")),
    ] {
        assert_eq!(one(&format!("[s]\n{line}")).1.as_deref(), value, "{line:?}");
    }
}

#[test]
fn files_that_git_refuses_are_refused() {
    for text in [
        "[",
        "[]",
        "[a",
        "[a\n]",
        "[a b]",
        "[a \"b]",
        "[a \"b\"",
        "[a \"b\nc\"]",
        "[a_b]",
        "=",
        "1",
        "[a]\n1 = 2",
        "[a]\nk : v",
        "[a]\nk # c",
        "[a]\nk = \"x",
        "[a]\nk = \\q",
        "[a]\nk = \"x\ny\"",
        "[a]\nk.l = v",
        "[a]\nk = \0",
        "\u{feff}\u{feff}[a]",
    ] {
        assert_eq!(parse(text.as_bytes()), Err(Malformed), "{text:?}");
    }
}

#[test]
fn spans_cover_an_entry_without_its_line_end() {
    let text = b"[a] k = v # c\r\n\tl = x\\\ny\nm";
    let parsed = parse(text).unwrap();
    let spans: Vec<_> = parsed.entries.iter().map(|entry| &text[entry.span.clone()]).collect();
    assert_eq!(spans, [&b"k = v # c"[..], b"l = x\\\ny", b"m"]);
    assert_eq!(parsed.sections, std::slice::from_ref(&(0..3)));
}

/// Texts made of pieces that matter to the parser, most of them in an order that is valid.
fn random_text(random: &mut fastrand::Rng) -> String {
    const HEADERS: [&str; 6] =
        ["[core]", "[a \"b\"]", "[A.B]", "[a \"q\\\"\\\\x\"] ", "\t[c \"\"]# c", "[C-1 \t\"d.E\"]"];
    const NAMES: [&str; 5] = ["hooksPath", "k-1", "  Name", "\tx", "PAGER"];
    const BETWEEN: [&str; 7] = ["=", " = ", "\t=", "= \t", "", "  ", " =\\\n"];
    const VALUES: [&str; 20] = [
        "x", " ", "\t", "\"a b\"", "\\t", "\\n", "\\\\", "\\\"", "\\\n", "\\\r\n", "!cmd", "# c",
        ";", "\"#\"", "é", "\"", "\r", "\u{b}", "\\q", "[",
    ];
    const ENDS: [&str; 8] = ["\n", "\n", "\n", "\r\n", " \n", "# c\n", "\n\n; c\\\n", ""];
    let mut text = String::from(["", "\u{feff}", "\n", "# c\n"][random.usize(..4)]);
    for _ in 0..random.usize(0..6) {
        let mut add = |pieces: &[&str]| text.push_str(pieces[random.usize(..pieces.len())]);
        add(&HEADERS);
        add(&ENDS);
        add(&NAMES);
        add(&BETWEEN);
        (0..3).for_each(|_| add(&VALUES));
        add(&ENDS);
    }
    text
}

/// A name and a value.
type Read = (Vec<u8>, Option<Vec<u8>>);

/// Returns the entries that git reads; `None` when it refuses the file.
#[expect(clippy::disallowed_methods, reason = "git is the judge in this test")]
fn as_git_reads(text: &str) -> Option<Vec<Read>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    std::fs::write(&path, text).unwrap();
    let mut git = std::process::Command::new("git");
    git.current_dir(directory.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
    let output =
        git.args(["config", "--no-includes", "--list", "-z", "--file"]).arg(&path).output();
    let output = output.unwrap();
    output.status.success().then(|| {
        let items = output.stdout.split(|byte| *byte == 0).filter(|item| !item.is_empty());
        let entry = |item: &[u8]| match item.iter().position(|byte| *byte == b'\n') {
            Some(at) => (item[..at].to_vec(), Some(spaced(item[at + 1..].to_vec()))),
            None => (item.to_vec(), None),
        };
        items.map(entry).collect()
    })
}

/// Before version 2.45, git turned white space inside a value into spaces.
fn spaced(value: Vec<u8>) -> Vec<u8> {
    value.into_iter().map(|byte| if matches!(byte, b'\t' | b'\r') { b' ' } else { byte }).collect()
}

#[test]
fn git_reads_random_files_the_same_way() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut accepted = 0;
    for _ in 0..500 {
        let text = random_text(&mut random);
        let ours = parse(text.as_bytes()).ok().map(|parsed| {
            let entries = parsed.entries.into_iter();
            entries.map(|entry| (entry.key, entry.value.map(spaced))).collect::<Vec<Read>>()
        });
        let theirs = as_git_reads(&text);
        assert_eq!(ours, theirs, "{text:?}");
        accepted += usize::from(theirs.is_some_and(|entries| !entries.is_empty()));
    }
    assert!(accepted > 60, "only {accepted} files had entries");
}
