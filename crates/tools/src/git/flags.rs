//! Flags, and words held against the list of those that an operation takes.

use std::slice;

use carrel_domain::Code;

use super::operand::{self, Ground};
use crate::failure::Failure;

/// A flag that an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    short: Option<char>,
    long: Option<&'static str>,
    takes: Takes,
}

/// Whether a flag takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Only in the same word.
    Maybe(Kind),
    /// A revision; `HEAD` if nothing, or another flag, follows.
    OrHead,
    Value(Kind),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// Text without control characters.
    Line,
    /// Digits, which may be followed by a percent sign.
    Number,
    /// A revision.
    Revision,
    /// The name of a branch or a remote.
    Name,
    /// A file of the workspace.
    Path,
    /// One of these.
    One(&'static [&'static str]),
}

/// A flag with a long name.
pub(super) const fn long(long: &'static str) -> Flag {
    Flag { short: None, long: Some(long), takes: Takes::Nothing }
}

/// A flag with a letter alone.
pub(super) const fn short(short: char) -> Flag {
    Flag { short: Some(short), long: None, takes: Takes::Nothing }
}

/// A flag with both.
pub(super) const fn both(short: char, long: &'static str) -> Flag {
    Flag { short: Some(short), long: Some(long), takes: Takes::Nothing }
}

impl Flag {
    /// Takes a value.
    pub(super) const fn with(self, kind: Kind) -> Self {
        Self { takes: Takes::Value(kind), ..self }
    }

    /// Takes a value that may be left out.
    pub(super) const fn maybe(self, kind: Kind) -> Self {
        Self { takes: Takes::Maybe(kind), ..self }
    }

    /// Takes a revision, which is `HEAD` if none follows.
    pub(super) const fn or_head(self) -> Self {
        Self { takes: Takes::OrHead, ..self }
    }

    /// Returns how it is written in a list.
    fn shown(&self) -> String {
        let value = match self.takes {
            Takes::Nothing => "",
            Takes::Maybe(_) | Takes::OrHead => "[=…]",
            Takes::Value(_) => "=…",
        };
        match (self.short, self.long) {
            (Some(short), Some(long)) => format!("-{short}/--{long}{value}"),
            (None, Some(long)) => format!("--{long}{value}"),
            (Some(short), None) if value.is_empty() => format!("-{short}"),
            (Some(short), None) => format!("-{short}…"),
            (None, None) => String::new(),
        }
    }
}

/// The words of a call, told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    /// The flags, in their order.
    pub(super) flags: Vec<Given>,
    /// What is no flag, up to `--`.
    pub(super) operands: Vec<String>,
    /// What follows `--`, if there is one.
    pub(super) paths: Option<Vec<String>>,
}

/// A flag that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    flag: Flag,
    value: Option<String>,
}

impl Given {
    /// Returns the one word that says the same to git, whatever the value begins with.
    pub(super) fn word(&self) -> String {
        match (self.flag.long, self.flag.short, &self.value) {
            (Some(long), _, None) => format!("--{long}"),
            (Some(long), _, Some(value)) => format!("--{long}={value}"),
            (None, Some(short), None) => format!("-{short}"),
            (None, Some(short), Some(value)) => format!("-{short}{value}"),
            (None, None, _) => String::new(),
        }
    }
}

impl Parsed {
    /// Tells whether a flag was given, by its long name or its letter.
    pub(super) fn has(&self, name: &str) -> bool {
        let is = |flag: &Flag| {
            flag.long == Some(name)
                || (flag.long.is_none()
                    && flag.short.is_some_and(|short| name == short.to_string()))
        };
        self.flags.iter().any(|given| is(&given.flag))
    }

    /// Tells whether one of several flags was given.
    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Returns the flags as words, without those that the caller sets itself.
    pub(super) fn words(&self, without: &[&str]) -> Vec<String> {
        let kept = self
            .flags
            .iter()
            .filter(|given| given.flag.long.is_none_or(|long| !without.contains(&long)));
        kept.map(Given::word).collect()
    }
}

/// The flags of one operation, or of one way to call it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// How it is named in messages: `log`, `stash push`.
    pub(super) name: &'static str,
    /// What it takes.
    pub(super) flags: &'static [&'static [Flag]],
    /// Whether `-5` is a count.
    pub(super) counts: bool,
}

impl Table {
    /// Takes words apart. One that begins with a dash has to be in the table.
    pub(super) fn parse(&self, words: &[String], ground: &Ground<'_>) -> Result<Parsed, Failure> {
        let mut parsed = Parsed::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--" => {
                    parsed.paths = Some(words.as_slice().to_vec());
                    break;
                }
                _ if self.counts && is_count(word) => {
                    let flag = both('n', "max-count").with(Kind::Number);
                    parsed.flags.push(Given { flag, value: Some(word[1..].to_owned()) });
                }
                _ if word.starts_with("--") => {
                    let given = self.long(word, &mut words)?;
                    parsed.flags.push(self.checked(given, word, ground)?);
                }
                // A dash alone is a branch in some places and a file in others.
                _ if word.starts_with('-') => {
                    for given in self.bundle(word, &mut words)? {
                        parsed.flags.push(self.checked(given, word, ground)?);
                    }
                }
                _ => parsed.operands.push(word.clone()),
            }
        }
        Ok(parsed)
    }

    fn all(&self) -> impl Iterator<Item = &'static Flag> {
        self.flags.iter().flat_map(|part| part.iter())
    }

    fn long(&self, word: &str, rest: &mut slice::Iter<'_, String>) -> Result<Given, Failure> {
        let (name, value) = match word[2..].split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&word[2..], None),
        };
        let flag = self.all().find(|flag| flag.long == Some(name));
        let flag = *flag.ok_or_else(|| self.refused(word, reason(name)))?;
        match (flag.takes, value) {
            (Takes::Nothing, Some(_)) => Err(self.refused(word, "it takes no value")),
            (Takes::Value(_), None) => {
                let value = rest.next().ok_or_else(|| self.refused(word, "it needs a value"))?;
                Ok(Given { flag, value: Some(value.clone()) })
            }
            (Takes::OrHead, None) => Ok(Given { flag, value: Some(revision_or_head(rest)) }),
            (Takes::Nothing | Takes::Maybe(_) | Takes::OrHead | Takes::Value(_), value) => {
                Ok(Given { flag, value })
            }
        }
    }

    /// Takes letters in one word apart, as `-am` is `-a -m`.
    fn bundle(
        &self,
        word: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<Vec<Given>, Failure> {
        let mut given = Vec::new();
        let mut letters = word[1..].chars();
        if letters.as_str().is_empty() {
            return Err(self.refused(word, "it stands for no flag"));
        }
        while let Some(letter) = letters.next() {
            let flag = self.all().find(|flag| flag.short == Some(letter));
            let flag = *flag.ok_or_else(|| self.refused(word, reason(&letter.to_string())))?;
            let attached = Some(letters.as_str().to_owned()).filter(|text| !text.is_empty());
            let value = match (flag.takes, attached) {
                (Takes::Nothing, _) => None,
                (Takes::Maybe(_), attached)
                | (Takes::Value(_) | Takes::OrHead, attached @ Some(_)) => {
                    letters = "".chars();
                    attached
                }
                (Takes::OrHead, None) => Some(revision_or_head(rest)),
                (Takes::Value(_), None) => {
                    let value =
                        rest.next().ok_or_else(|| self.refused(word, "it needs a value"))?;
                    Some(value.clone())
                }
            };
            given.push(Given { flag, value });
        }
        Ok(given)
    }

    fn checked(&self, mut given: Given, word: &str, ground: &Ground<'_>) -> Result<Given, Failure> {
        let Some(value) = &given.value else { return Ok(given) };
        let kind = match given.flag.takes {
            Takes::Nothing => return Ok(given),
            Takes::OrHead => Kind::Revision,
            Takes::Maybe(kind) | Takes::Value(kind) => kind,
        };
        let wrong = |what: &str| self.refused(word, &format!("`{value}` is {what}"));
        match kind {
            Kind::Line if operand::has_control(value) => {
                return Err(wrong("more than one plain line"));
            }
            Kind::Text | Kind::Line => {}
            Kind::Number => {
                let digits = value.strip_suffix('%').unwrap_or(value);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(wrong("no number"));
                }
            }
            Kind::Revision => operand::revision(self.name, value)?,
            Kind::Name => operand::name(self.name, value)?,
            Kind::Path => given.value = Some(operand::path(ground, value)?),
            Kind::One(known) if known.contains(&value.as_str()) => {}
            Kind::One(known) => return Err(wrong(&format!("none of {}", known.join(", ")))),
        }
        Ok(given)
    }

    /// Refuses a word, and says what would pass.
    pub(super) fn refused(&self, word: &str, reason: &str) -> Failure {
        let mut allowed: Vec<_> = self.all().map(Flag::shown).collect();
        allowed.sort_unstable();
        allowed.dedup();
        let message = format!(
            "git {}: `{word}` is not allowed: {reason}. Flags that pass: {}",
            self.name,
            allowed.join(" ")
        );
        Failure::new(Code::GitRefused, message)
            .with("operation", self.name)
            .with("word", word)
            .with("allowed", allowed)
    }
}

fn revision_or_head(rest: &mut slice::Iter<'_, String>) -> String {
    match rest.as_slice().first() {
        Some(word) if !word.starts_with('-') => {
            rest.next();
            word.clone()
        }
        Some(_) | None => "HEAD".to_owned(),
    }
}

fn is_count(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// Says why a flag that git knows is not taken.
fn reason(name: &str) -> &'static str {
    match name {
        "c" | "config" | "config-env" => "configuration can name programs to run",
        "upload-pack" | "receive-pack" | "exec" | "exec-path" | "u" => "it names a program to run",
        "ext-diff"
        | "textconv"
        | "O"
        | "open-files-in-pager"
        | "trailer"
        | "show-signature"
        | "S"
        | "gpg-sign"
        | "signed" => "it runs a program that the repository configures",
        "output" | "output-directory" => "it writes a file of its own; the answer has the output",
        "no-index" => "it compares files outside the repository",
        "git-dir" | "work-tree" | "C" | "separate-git-dir" | "namespace" => {
            "use `cwd` to choose the repository"
        }
        "template" | "reference" | "reference-if-able" | "server-option" | "o" | "push-option" => {
            "it lets others than the repository decide"
        }
        "recurse-submodules" | "recursive" | "remote-submodules" => {
            "submodules are repositories of their own; use `cwd` to work in one"
        }
        "p" | "patch" | "i" | "interactive" | "e" | "edit" => "nobody is there to answer",
        _ => "it is not in this operation's list",
    }
}
