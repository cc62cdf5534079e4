//! The pages of `docs/errors/`, written from the codes themselves.

use std::fmt::Write as _;

use crate::code::Code;

/// The name of the page that lists all others.
const INDEX: &str = "README.md";

/// Returns every page of `docs/errors/`: its file name and its text.
pub fn error_pages() -> Vec<(String, String)> {
    let pages = Code::ALL.iter().map(|code| (format!("{}.md", code.name()), code.page()));
    pages.chain([(INDEX.to_owned(), index())]).collect()
}

impl Code {
    /// Returns the text of the code's page below `docs/errors/`.
    pub fn page(self) -> String {
        let (name, kind, status) = (self.name(), self.kind(), self.status());
        let mut page = format!(
            "# {name}\n\n\
             {meaning}\n\n\
             | | |\n|---|---|\n\
             | code | `{name}` |\n\
             | kind | `{kind}` |\n\
             | HTTP status | {status} |\n",
            meaning = self.meaning().trim(),
        );
        add_list(&mut page, "Usual causes", self.causes());
        add_list(&mut page, "What to do", self.remedies());
        page.push_str(
            "\nAll codes are listed in [the index](README.md). \
             This page is generated; `make docs` writes it anew.\n",
        );
        page
    }
}

fn add_list(page: &mut String, heading: &str, items: &[&str]) {
    if items.is_empty() {
        return;
    }
    add(page, format_args!("\n## {heading}\n\n"));
    for item in items {
        add(page, format_args!("- {}\n", sentence(item)));
    }
}

/// Turns a phrase of a guide, which messages repeat as it is, into a sentence.
fn sentence(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).chain(['.']).collect()
}

fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("writing to a string cannot fail");
}

fn index() -> String {
    let mut page = String::from(INTRODUCTION);
    for code in Code::ALL {
        let (name, kind, status) = (code.name(), code.kind(), code.status());
        let meaning = code.meaning().trim();
        add(&mut page, format_args!("| [{name}]({name}.md) | `{kind}` | {status} | {meaning} |\n"));
    }
    page
}

const INTRODUCTION: &str = r#"# Error codes

Every error has a code that programs may rely on. It is the same on the command line and over every interface that comes
later. The message is for people and may change; the code, the kind and the fields of `detail` do not.

On the command line the error is the last line of stderr, and the exit status is 1, or 2 for `E_USAGE`:

```text
error: no workspace "NOPE-1" in /home/user/carrel; list what there is with `carrel workspace ls` [E_WORKSPACE_NOT_FOUND]
```

With `--json` the same line is an object:

```json
{"error":{"code":"E_WORKSPACE_NOT_FOUND","kind":"workspace_not_found","message":"no workspace \"NOPE-1\" in /home/user/carrel; list what there is with `carrel workspace ls`","detail":{"identifier":"NOPE-1","root":"/home/user/carrel"}}}
```

A message ends with the first remedy of its code. The usual troubles are treated at length in
[troubleshooting](../troubleshooting.md).

These pages are generated from `crates/domain`; `make docs` writes them anew.

| code | kind | HTTP status | meaning |
|---|---|---|---|
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_becomes_a_sentence() {
        assert_eq!(sentence("run `chmod 700` on it"), "Run `chmod 700` on it.");
        assert_eq!(sentence("`df -h` tells"), "`df -h` tells.");
    }

    #[test]
    fn a_code_without_a_guide_has_a_short_page() {
        let mut page = String::new();
        add_list(&mut page, "What to do", &[]);
        assert_eq!(page, "");
    }

    #[test]
    fn guides_are_phrases_that_a_message_can_end_with() {
        for code in Code::ALL {
            for phrase in code.causes().iter().chain(code.remedies()) {
                let starts_low = !phrase.starts_with(|c: char| c.is_ascii_uppercase())
                    || ["Carrel", "Linux"].iter().any(|name| phrase.starts_with(name));
                assert!(starts_low && !phrase.ends_with('.'), "{}: {phrase}", code.name());
            }
        }
    }
}
