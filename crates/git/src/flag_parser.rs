//! Parsing of arguments against a table of allowed flags.
//!
//! [`FlagTable::parse`] splits the arguments of one subcommand into flags, operands and the paths behind
//! `--`, as git itself would: `--name=value` and `--name value`, `-n 5` and `-n5`, bundles such as `-sb`
//! and `-in 5`, and `-5` as a count. An argument that begins with a dash has to be in the table. Long
//! flags have to be written in full: an abbreviation such as `--onel`, which git accepts, is in no table.
//!
//! Each flag is then written anew as one argument ([`FlagOccurrence::to_argument`]), so that git cannot
//! read a value as a flag: `--grep -x` becomes `--grep=-x`.

use std::slice;

use carrel_domain::{Code, Failure};

use crate::operand::{self, PathResolver};

/// A flag that a subcommand accepts, with the value that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    short: Option<char>,
    long: Option<&'static str>,
    arity: ValueArity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueArity {
    None,
    /// The value, if any, stands in the same argument: `--stat=80`, `-U5`.
    Optional(ValueKind),
    /// A revision in the same or the next argument; `HEAD` if no argument or another flag follows.
    RevisionOrHead,
    /// A value in the same or the next argument.
    Required(ValueKind),
}

/// The form that the value of a flag must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Text,
    /// Text without control characters.
    Line,
    /// Digits, optionally followed by a percent sign.
    Number,
    Revision,
    /// The name of a branch or a remote.
    Name,
    /// A path in the workspace.
    Path,
    OneOf(&'static [&'static str]),
}

pub(crate) const fn long(long: &'static str) -> Flag {
    Flag { short: None, long: Some(long), arity: ValueArity::None }
}

pub(crate) const fn short(short: char) -> Flag {
    Flag { short: Some(short), long: None, arity: ValueArity::None }
}

pub(crate) const fn both(short: char, long: &'static str) -> Flag {
    Flag { short: Some(short), long: Some(long), arity: ValueArity::None }
}

impl Flag {
    pub(crate) const fn value(self, kind: ValueKind) -> Self {
        Self { arity: ValueArity::Required(kind), ..self }
    }

    pub(crate) const fn optional_value(self, kind: ValueKind) -> Self {
        Self { arity: ValueArity::Optional(kind), ..self }
    }

    pub(crate) const fn revision_or_head(self) -> Self {
        Self { arity: ValueArity::RevisionOrHead, ..self }
    }

    /// Returns the flag as the list in a refusal shows it: `-n/--max-count=…`.
    fn usage(&self) -> String {
        let value = match self.arity {
            ValueArity::None => "",
            ValueArity::Optional(_) | ValueArity::RevisionOrHead => "[=…]",
            ValueArity::Required(_) => "=…",
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

/// The arguments of a subcommand, sorted into flags, operands and paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedArguments {
    /// In the order in which they were given.
    pub(crate) flags: Vec<FlagOccurrence>,
    /// Arguments before `--` that are no flags.
    pub(crate) operands: Vec<String>,
    /// Arguments behind `--`; none if there is no `--`.
    pub(crate) paths: Option<Vec<String>>,
}

/// A flag with the value that the caller gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagOccurrence {
    flag: Flag,
    value: Option<String>,
}

impl FlagOccurrence {
    /// Returns flag and value as one argument, which git reads the same way even if the value begins
    /// with a dash.
    fn to_argument(&self) -> String {
        match (self.flag.long, self.flag.short, &self.value) {
            (Some(long), _, None) => format!("--{long}"),
            (Some(long), _, Some(value)) => format!("--{long}={value}"),
            (None, Some(short), None) => format!("-{short}"),
            (None, Some(short), Some(value)) => format!("-{short}{value}"),
            (None, None, _) => String::new(),
        }
    }
}

impl ParsedArguments {
    /// Tells whether a flag was given, named by its long name or, if it has none, by its letter.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_named = |flag: &Flag| match flag.long {
            Some(long) => long == name,
            None => flag.short.is_some_and(|short| name == short.to_string()),
        };
        self.flags.iter().any(|occurrence| is_named(&occurrence.flag))
    }

    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Returns the flags as arguments for git, except those with the given long names.
    pub(crate) fn flag_arguments(&self, except: &[&str]) -> Vec<String> {
        let kept = self
            .flags
            .iter()
            .filter(|occurrence| occurrence.flag.long.is_none_or(|long| !except.contains(&long)));
        kept.map(FlagOccurrence::to_argument).collect()
    }
}

/// The allowed flags of one subcommand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlagTable {
    /// The subcommand in messages: `log`, `stash show`.
    pub(crate) name: &'static str,
    /// Groups of flags; groups are shared between subcommands.
    pub(crate) flags: &'static [&'static [Flag]],
    /// `-5` means `--max-count=5`.
    pub(crate) dash_number_is_count: bool,
}

impl FlagTable {
    /// Parses arguments, and refuses every flag that is not in the table and every value of the wrong
    /// kind.
    pub(crate) fn parse(
        &self,
        arguments: &[String],
        paths: &PathResolver<'_>,
    ) -> Result<ParsedArguments, Failure> {
        let mut parsed = ParsedArguments::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                parsed.paths = Some(rest.as_slice().to_vec());
                break;
            }
            if self.dash_number_is_count && is_dash_number(argument) {
                let flag = both('n', "max-count").value(ValueKind::Number);
                let value = Some(argument[1..].to_owned());
                parsed.flags.push(FlagOccurrence { flag, value });
            } else if argument.starts_with("--") {
                let occurrence = self.parse_long(argument, &mut rest)?;
                parsed.flags.push(self.check_value(occurrence, argument, paths)?);
            } else if argument.starts_with('-') {
                for occurrence in self.parse_bundle(argument, &mut rest)? {
                    parsed.flags.push(self.check_value(occurrence, argument, paths)?);
                }
            } else {
                parsed.operands.push(argument.clone());
            }
        }
        Ok(parsed)
    }

    fn all_flags(&self) -> impl Iterator<Item = &'static Flag> {
        self.flags.iter().flat_map(|group| group.iter())
    }

    fn parse_long(
        &self,
        argument: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<FlagOccurrence, Failure> {
        let (name, value) = match argument[2..].split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&argument[2..], None),
        };
        let flag = self.all_flags().find(|flag| flag.long == Some(name));
        let flag = *flag.ok_or_else(|| self.refuse(argument, why_refused(self.name, name)))?;
        match (flag.arity, value) {
            (ValueArity::None, Some(_)) => Err(self.refuse(argument, "it takes no value")),
            (ValueArity::Required(_), None) => {
                let value = rest.next().ok_or_else(|| self.refuse(argument, "it needs a value"))?;
                Ok(FlagOccurrence { flag, value: Some(value.clone()) })
            }
            (ValueArity::RevisionOrHead, None) => {
                Ok(FlagOccurrence { flag, value: Some(next_revision_or_head(rest)) })
            }
            (
                ValueArity::None
                | ValueArity::Optional(_)
                | ValueArity::RevisionOrHead
                | ValueArity::Required(_),
                value,
            ) => Ok(FlagOccurrence { flag, value }),
        }
    }

    /// Parses letters in one argument: `-sb` is `-s -b`, and `-U5` is `-U` with the value `5`.
    fn parse_bundle(
        &self,
        argument: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<Vec<FlagOccurrence>, Failure> {
        let mut occurrences = Vec::new();
        let mut letters = argument[1..].chars();
        if letters.as_str().is_empty() {
            return Err(self.refuse(argument, "it stands for no flag"));
        }
        while let Some(letter) = letters.next() {
            let flag = self.all_flags().find(|flag| flag.short == Some(letter));
            let flag = *flag.ok_or_else(|| {
                self.refuse(argument, why_refused(self.name, &letter.to_string()))
            })?;
            let attached = Some(letters.as_str().to_owned()).filter(|text| !text.is_empty());
            let value = match (flag.arity, attached) {
                (ValueArity::None, _) => None,
                (ValueArity::Optional(_), attached)
                | (ValueArity::Required(_) | ValueArity::RevisionOrHead, attached @ Some(_)) => {
                    letters = "".chars();
                    attached
                }
                (ValueArity::RevisionOrHead, None) => Some(next_revision_or_head(rest)),
                (ValueArity::Required(_), None) => {
                    let value =
                        rest.next().ok_or_else(|| self.refuse(argument, "it needs a value"))?;
                    Some(value.clone())
                }
            };
            occurrences.push(FlagOccurrence { flag, value });
        }
        Ok(occurrences)
    }

    /// Checks the form of a value, and rewrites a path as git will see it.
    fn check_value(
        &self,
        mut occurrence: FlagOccurrence,
        argument: &str,
        paths: &PathResolver<'_>,
    ) -> Result<FlagOccurrence, Failure> {
        let Some(value) = &occurrence.value else { return Ok(occurrence) };
        let kind = match occurrence.flag.arity {
            ValueArity::None => return Ok(occurrence),
            ValueArity::RevisionOrHead => ValueKind::Revision,
            ValueArity::Optional(kind) | ValueArity::Required(kind) => kind,
        };
        let wrong = |what: &str| self.refuse(argument, &format!("`{value}` is {what}"));
        match kind {
            ValueKind::Line if operand::has_control(value) => {
                return Err(wrong("more than one plain line"));
            }
            ValueKind::Text | ValueKind::Line => {}
            ValueKind::Number => {
                let digits = value.strip_suffix('%').unwrap_or(value);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(wrong("no number"));
                }
            }
            ValueKind::Revision => operand::check_revision(self.name, value)?,
            ValueKind::Name => operand::check_name(self.name, value)?,
            ValueKind::Path => occurrence.value = Some(operand::check_path(paths, value)?),
            ValueKind::OneOf(known) if known.contains(&value.as_str()) => {}
            ValueKind::OneOf(known) => {
                return Err(wrong(&format!("none of {}", known.join(", "))));
            }
        }
        Ok(occurrence)
    }

    fn refuse(&self, argument: &str, reason: &str) -> Failure {
        let mut allowed: Vec<_> = self.all_flags().map(Flag::usage).collect();
        allowed.sort_unstable();
        allowed.dedup();
        let message = format!(
            "git {}: `{argument}` is not allowed: {reason}. Allowed flags: {}",
            self.name,
            allowed.join(" ")
        );
        Failure::new(Code::GitRefused, message)
            .with("operation", self.name)
            .with("word", argument)
            .with("allowed", allowed)
    }
}

fn next_revision_or_head(rest: &mut slice::Iter<'_, String>) -> String {
    match rest.as_slice().first() {
        Some(argument) if !argument.starts_with('-') => {
            rest.next();
            argument.clone()
        }
        Some(_) | None => "HEAD".to_owned(),
    }
}

fn is_dash_number(argument: &str) -> bool {
    argument.len() > 1
        && argument.starts_with('-')
        && argument[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// Explains the refusal of flags that git knows, by long name or letter. `-c` and `-C` are read as git's
/// own flags before the subcommand, which callers try behind it; the other letters mean different flags
/// in different subcommands.
fn why_refused(subcommand: &str, name: &str) -> &'static str {
    match name {
        "c" | "config" | "config-env" => "configuration can name programs to run",
        "u" if subcommand == "clone" => "it names a program to run",
        "upload-pack" | "receive-pack" | "exec" | "exec-path" => "it names a program to run",
        "S" if subcommand == "pull" => "it runs a program that the repository configures",
        "ext-diff"
        | "textconv"
        | "open-files-in-pager"
        | "trailer"
        | "show-signature"
        | "gpg-sign"
        | "signed" => "it runs a program that the repository configures",
        "output" | "output-directory" => "it writes a file; the output is in the reply",
        "no-index" => "it compares files outside the repository",
        "git-dir" | "work-tree" | "C" | "separate-git-dir" | "namespace" => {
            "use `cwd` to choose the repository"
        }
        "template" | "reference" | "reference-if-able" => "it reads files of other repositories",
        "o" if matches!(subcommand, "fetch" | "pull" | "push") => "it sends options to the server",
        "server-option" | "push-option" => "it sends options to the server",
        "recurse-submodules" | "recursive" | "remote-submodules" => {
            "submodules are repositories of their own; use `cwd` to work in one"
        }
        "e" if subcommand == "pull" => "it is interactive",
        "patch" | "interactive" | "edit" => "it is interactive",
        _ => "it is not in the list of this operation",
    }
}
