//! The pages of `docs/errors/` say what the table of codes says.
#![expect(clippy::disallowed_methods, reason = "documentation is no workspace file")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use carrel_domain::Code;
use pretty_assertions::assert_eq;

const INDEX: &str = "README.md";

#[test]
fn every_code_has_a_page_and_no_page_is_left_over() {
    let entries = fs::read_dir(directory()).unwrap();
    let present: BTreeSet<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let pages = Code::ALL.iter().map(|code| format!("{}.md", code.name()));
    assert_eq!(present, pages.chain([INDEX.to_owned()]).collect());
}

#[test]
fn a_page_begins_with_the_meaning_and_the_identity_of_its_code() {
    for code in Code::ALL {
        let (name, kind, status) = (code.name(), code.kind(), code.status());
        let start = format!(
            "# {name}\n\n{}\n\n| | |\n|---|---|\n| code | `{name}` |\n| kind | `{kind}` |\n\
             | HTTP status | {status} |\n\n## Why\n\n",
            code.meaning(),
        );
        let page = page(*code);
        assert_eq!(page.get(..start.len()).unwrap_or(&page), start);
    }
}

#[test]
fn a_page_gives_reasons_causes_remedies_and_an_example() {
    for code in Code::ALL {
        let (name, page) = (code.name(), page(*code));
        for heading in ["Why", "Usual causes", "What to do"] {
            assert!(section(&page, heading).ends_with('.'), "{name}: {heading}");
        }
        let first = section(&page, "What to do").lines().next().unwrap();
        assert_eq!(first, format!("- {}.", capitalised(code.remedy())), "{name}");
        assert!(section(&page, "Example").contains(name), "{name} is not in its example");
    }
}

#[test]
fn the_index_lists_every_code_with_its_meaning() {
    let rows = Code::ALL.iter().map(|code| {
        let (name, kind, status) = (code.name(), code.kind(), code.status());
        format!("| [{name}]({name}.md) | `{kind}` | {status} | {} |\n", code.meaning())
    });
    let index = fs::read_to_string(directory().join(INDEX)).unwrap();
    let (_, table) = index.split_once("|---|---|---|---|\n").unwrap();
    assert_eq!(table, rows.collect::<String>());
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn page(code: Code) -> String {
    fs::read_to_string(directory().join(format!("{}.md", code.name())))
        .expect("each code has a page")
}

/// Returns the text below a heading, up to the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, text) = page.split_once(&format!("\n## {heading}\n\n")).unwrap_or_default();
    text.split("\n## ").next().unwrap_or_default().trim()
}

fn capitalised(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
