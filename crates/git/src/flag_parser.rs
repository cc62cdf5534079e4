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
    /// Both names as the table has them: `-n/--max-count`.
    names: &'static str,
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
    /// One of the words between `|`.
    OneOf(&'static str),
}

impl ValueKind {
    fn parse(kind: &'static str) -> Self {
        match kind {
            "TEXT" => Self::Text,
            "LINE" => Self::Line,
            "NUMBER" => Self::Number,
            "REVISION" => Self::Revision,
            "NAME" => Self::Name,
            "PATH" => Self::Path,
            words => Self::OneOf(words),
        }
    }
}

impl Flag {
    fn parse(flag: &'static str) -> Self {
        let (names, value) = flag.split_once('=').unwrap_or((flag, ""));
        let (names, arity) = match (names.strip_suffix('['), value) {
            (Some(names), _) => {
                (names, ValueArity::Optional(ValueKind::parse(value.trim_end_matches(']'))))
            }
            (None, "") => (names, ValueArity::None),
            (None, "REVISION?") => (names, ValueArity::RevisionOrHead),
            (None, _) => (names, ValueArity::Required(ValueKind::parse(value))),
        };
        let long = names.split_once("--").map(|(_, long)| long);
        let short = names.strip_prefix('-').and_then(|rest| rest.chars().next());
        Self { names, short: short.filter(|short| *short != '-'), long, arity }
    }

    /// Returns the flag as the list in a refusal shows it: `-n/--max-count=…`.
    fn usage(self) -> String {
        let value = match (self.arity, self.long) {
            (ValueArity::None, _) => "",
            (_, None) => "…",
            (ValueArity::Optional(_) | ValueArity::RevisionOrHead, Some(_)) => "[=…]",
            (ValueArity::Required(_), Some(_)) => "=…",
        };
        format!("{}{value}", self.names)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedArguments {
    /// In the order in which they were given.
    pub(crate) flags: Vec<FlagOccurrence>,
    /// Arguments before `--` that are no flags.
    pub(crate) operands: Vec<String>,
    /// The number of operands before each `--not`, which negates only what stands behind it.
    operands_before_not: Vec<usize>,
    /// Arguments behind `--`; none if there is no `--`.
    pub(crate) paths: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagOccurrence {
    flag: Flag,
    value: Option<String>,
}

impl FlagOccurrence {
    fn is_one_of(&self, names: &str) -> bool {
        names.split_whitespace().any(|name| self.flag.long == Some(name))
    }

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
    pub(crate) fn has_any(&self, names: &str) -> bool {
        self.flags.iter().any(|occurrence| occurrence.is_one_of(names))
    }

    /// Returns the flags as arguments for git, except those with the given long names.
    pub(crate) fn flag_arguments(&self, except: &str) -> Vec<String> {
        let kept = self.flags.iter().filter(|occurrence| !occurrence.is_one_of(except));
        kept.map(FlagOccurrence::to_argument).collect()
    }

    /// Returns the flags as arguments for git, with the operands before a `--not` in their place, and the
    /// other operands. `operands` are those of the caller as git will see them.
    pub(crate) fn flags_and_operands(&self, operands: Vec<String>) -> (Vec<String>, Vec<String>) {
        let mut arguments = Vec::new();
        let mut operands = operands.into_iter();
        let mut placed = 0;
        let mut positions = self.operands_before_not.iter();
        for occurrence in &self.flags {
            if occurrence.is_one_of("not")
                && let Some(position) = positions.next()
            {
                arguments.extend(operands.by_ref().take(position - placed));
                placed = *position;
            }
            arguments.push(occurrence.to_argument());
        }
        (arguments, operands.collect())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlagTable {
    /// The subcommand in messages: `log`, `stash show`.
    pub(crate) name: &'static str,
    /// Groups of flags in the notation of [`crate::allowed_flags`]; groups are shared between subcommands.
    pub(crate) flags: &'static [&'static str],
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
        let count = self.all_flags().find(|flag| flag.long == Some("max-count"));
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                parsed.paths = Some(rest.as_slice().to_vec());
                break;
            }
            if let (Some(flag), Some(value)) = (count, dash_number(argument)) {
                parsed.flags.push(FlagOccurrence { flag, value: Some(value.to_owned()) });
            } else if let Some(name) = argument.strip_prefix("--") {
                let occurrence = self.parse_long(name, argument, &mut rest)?;
                if occurrence.is_one_of("not") {
                    parsed.operands_before_not.push(parsed.operands.len());
                }
                parsed.flags.push(self.check_value(occurrence, argument, paths)?);
            } else if let Some(letters) = argument.strip_prefix('-') {
                for occurrence in self.parse_bundle(letters, argument, &mut rest)? {
                    parsed.flags.push(self.check_value(occurrence, argument, paths)?);
                }
            } else {
                parsed.operands.push(argument.clone());
            }
        }
        Ok(parsed)
    }

    fn all_flags(&self) -> impl Iterator<Item = Flag> {
        self.flags.iter().flat_map(|group| group.split_whitespace()).map(Flag::parse)
    }

    fn find(
        &self,
        argument: &str,
        name: &str,
        is_named: impl Fn(&Flag) -> bool,
    ) -> Result<Flag, Failure> {
        let flag = self.all_flags().find(is_named);
        flag.ok_or_else(|| self.refuse(argument, why_refused(self.name, name)))
    }

    fn parse_long(
        &self,
        text: &str,
        argument: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<FlagOccurrence, Failure> {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let flag = self.find(argument, name, |flag| flag.long == Some(name))?;
        if flag.arity == ValueArity::None && attached.is_some() {
            return Err(self.refuse(argument, "it takes no value"));
        }
        self.with_value(flag, attached, argument, rest)
    }

    /// Parses letters in one argument: `-sb` is `-s -b`, and `-U5` is `-U` with the value `5`.
    fn parse_bundle(
        &self,
        mut letters: &str,
        argument: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<Vec<FlagOccurrence>, Failure> {
        let mut occurrences = Vec::new();
        if letters.is_empty() {
            return Err(self.refuse(argument, "it stands for no flag"));
        }
        while let Some(letter) = letters.chars().next() {
            let (name, behind) = letters.split_at(letter.len_utf8());
            let flag = self.find(argument, name, |flag| flag.short == Some(letter))?;
            let takes_value = flag.arity != ValueArity::None;
            let attached = Some(behind).filter(|text| takes_value && !text.is_empty());
            occurrences.push(self.with_value(flag, attached, argument, rest)?);
            letters = if takes_value { "" } else { behind };
        }
        Ok(occurrences)
    }

    /// Adds the attached value of a flag, or the next argument if the flag needs one.
    fn with_value(
        &self,
        flag: Flag,
        attached: Option<&str>,
        argument: &str,
        rest: &mut slice::Iter<'_, String>,
    ) -> Result<FlagOccurrence, Failure> {
        let value = match (flag.arity, attached) {
            (_, Some(attached)) => Some(attached.to_owned()),
            (ValueArity::None | ValueArity::Optional(_), None) => None,
            (ValueArity::RevisionOrHead, None) => Some(next_revision_or_head(rest)),
            (ValueArity::Required(_), None) => {
                let next = rest.next().ok_or_else(|| self.refuse(argument, "it needs a value"))?;
                Some(next.clone())
            }
        };
        Ok(FlagOccurrence { flag, value })
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
        // Behind a letter, git would take the next argument instead of the empty value.
        if value.is_empty() && occurrence.flag.long.is_none() {
            return Err(self.refuse(argument, "its value is empty"));
        }
        let wrong = |what: &str| Err(self.refuse(argument, &format!("`{value}` is {what}")));
        match kind {
            ValueKind::Line if operand::has_control(value) => {
                return wrong("more than one plain line");
            }
            ValueKind::Number if !is_number(value) => return wrong("no number"),
            ValueKind::OneOf(words) if !words.split('|').any(|word| word == value) => {
                return wrong(&format!("none of {}", words.replace('|', ", ")));
            }
            ValueKind::Text | ValueKind::Line | ValueKind::Number | ValueKind::OneOf(_) => {}
            ValueKind::Revision => operand::check_revision(self.name, value)?,
            ValueKind::Name => operand::check_name(self.name, value)?,
            ValueKind::Path => occurrence.value = Some(operand::check_path(paths, value)?),
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

fn is_number(value: &str) -> bool {
    has_only_digits(value.strip_suffix('%').unwrap_or(value))
}

/// Returns the number of an argument such as `-5`.
fn dash_number(argument: &str) -> Option<&str> {
    argument.strip_prefix('-').filter(|digits| has_only_digits(digits))
}

fn has_only_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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
