//! The pages of `docs/errors/`, generated from the codes and their guide.
//!
//! A page says what happened, why the rule exists, the usual causes, what to do, and shows one example. A test
//! compares the checked-in pages with the generated ones.

use std::fmt::Write as _;

use crate::code::Code;
use crate::error_guide::Example;

const INDEX: &str = "README.md";

/// Returns every page of `docs/errors/` with its file name: one for each code, and the index.
pub fn error_pages() -> Vec<(String, String)> {
    let pages = Code::ALL.iter().map(|code| (format!("{}.md", code.name()), code.page()));
    pages.chain([(INDEX.to_owned(), index())]).collect()
}

impl Code {
    /// Returns the text of the code's page below `docs/errors/`.
    pub fn page(self) -> String {
        let name = self.name();
        let kind = self.kind();
        let status = self.status();
        let mut page = format!(
            "# {name}\n\n\
             {meaning}\n\n\
             | | |\n|---|---|\n\
             | code | `{name}` |\n\
             | kind | `{kind}` |\n\
             | HTTP status | {status} |\n\n\
             ## Why\n\n\
             {reason}\n",
            meaning = self.meaning(),
            reason = self.reason(),
        );
        add_list(&mut page, "Usual causes", self.causes());
        add_list(&mut page, "What to do", self.remedies());
        add(&mut page, format_args!("\n## Example\n\n```text\n{}\n```\n", self.shown_example()));
        page.push_str(
            "\nAll codes are listed in [the index](README.md). \
             This page is generated; `make docs` writes it anew.\n",
        );
        page
    }

    /// Returns the example as a caller sees it. The command line appends the first remedy to its own errors,
    /// and not to those of tools.
    fn shown_example(self) -> String {
        let Example { call, message } = self.example();
        let name = self.name();
        let first_word = call.split(' ').next().unwrap_or_default();
        let response = match first_word {
            "$" if call.starts_with("$ carrel tool") => format!("error: {message} [{name}]"),
            "$" => match self.remedies().first() {
                Some(remedy) => format!("error: {message}; {remedy} [{name}]"),
                None => format!("error: {message} [{name}]"),
            },
            "GET" | "POST" | "PUT" | "DELETE" => format!("{} {name}: {message}", self.status()),
            _ => format!("{name}: {message}"),
        };
        format!("{call}\n{response}")
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

/// Turns a phrase of the guide into a sentence. Messages use the phrase unchanged.
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
        let name = code.name();
        let kind = code.kind();
        let status = code.status();
        let meaning = code.meaning();
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
