//! Words of a call, made into words for git.

use carrel_domain::{Code, WorkspaceAccess};

use super::flags::{Parsed, Table};
use super::operand::{self, Ground, either, pathspec};
use super::operation::Operation;
use super::tables;
use crate::failure::Failure;

/// A call that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) operation: Operation,
    /// Flags, after the operation.
    pub(super) flags: Vec<String>,
    /// What follows the flags, with `--` where git takes it.
    pub(super) operands: Vec<String>,
    pub(super) access: WorkspaceAccess,
    pub(super) shape: Shape,
    pub(super) peer: Peer,
}

/// What git prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Whatever it is.
    Plain,
    /// The entries of `status`, for programs.
    Status,
    /// A patch behind one line of counts.
    Patch,
    /// The new commit.
    Commit,
}

/// Whom git deals with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Nobody.
    None,
    /// The remote that git would choose.
    Default,
    /// Every remote there is.
    All,
    /// A remote by its name, an address or a directory.
    Named(String),
    /// Where a copy comes from and goes to.
    Clone {
        /// An address or a directory.
        source: String,
        /// A directory that is to be made.
        directory: Option<String>,
        /// Without a work tree.
        bare: bool,
    },
}

impl Checked {
    fn new(operation: Operation, flags: Vec<String>, operands: Vec<String>) -> Self {
        let access = WorkspaceAccess::ReadWrite;
        Self { operation, flags, operands, access, shape: Shape::Plain, peer: Peer::None }
    }

    fn reading(self) -> Self {
        Self { access: WorkspaceAccess::ReadOnly, ..self }
    }

    fn showing(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }
}

/// Keeps programs that the repository configures out of what is shown, and submodules alone.
const QUIET_CHANGES: [&str; 4] =
    ["--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short"];

/// Looks for no changes in the work trees of submodules: that would obey their configuration.
const SUBMODULES: &str = "--ignore-submodules=dirty";

/// Nothing behind it is a flag.
const END_OF_FLAGS: &str = "--end-of-options";

/// Checks every word of a call.
pub(super) fn check(
    operation: Operation,
    words: &[String],
    ground: &Ground<'_>,
) -> Result<Checked, Failure> {
    match operation {
        Operation::Status => status(words, ground),
        Operation::Diff => diff(words, ground),
        Operation::Log => history(operation, &tables::LOG, words, ground),
        Operation::Show => history(operation, &tables::SHOW, words, ground),
        Operation::Blame => blame(words, ground),
        Operation::Add => add(words, ground),
        Operation::Commit => commit(words, ground),
        Operation::Branch => branch(words, ground),
        Operation::Checkout => checkout(words, ground),
        Operation::Stash => stash(words, ground),
        Operation::Fetch => exchange(operation, &tables::FETCH, words, ground),
        Operation::Pull => exchange(operation, &tables::PULL, words, ground),
        Operation::Push => exchange(operation, &tables::PUSH, words, ground),
        Operation::Clone => clone(words, ground),
    }
}

fn status(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let parsed = tables::STATUS.parse(words, ground)?;
    let mut flags = strings(&["--porcelain=v2", "-z", "--branch", SUBMODULES]);
    flags.extend(parsed.words(tables::STATUS_LOOKS));
    let operands = files(&parsed, ground)?;
    Ok(Checked::new(Operation::Status, flags, operands).reading().showing(Shape::Status))
}

fn diff(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let parsed = tables::DIFF.parse(words, ground)?;
    let mut flags = strings(&QUIET_CHANGES);
    flags.push(SUBMODULES.to_owned());
    let counted = !parsed.has_any(tables::NO_PATCH);
    if counted {
        flags.extend(strings(&["--shortstat", "--patch"]));
    }
    flags.extend(parsed.words(&[]));
    flags.push(END_OF_FLAGS.to_owned());
    let operands = revisions_and_files(&tables::DIFF, &parsed, ground)?;
    let shape = if counted { Shape::Patch } else { Shape::Plain };
    Ok(Checked::new(Operation::Diff, flags, operands).reading().showing(shape))
}

fn history(
    operation: Operation,
    table: &Table,
    words: &[String],
    ground: &Ground<'_>,
) -> Result<Checked, Failure> {
    let parsed = table.parse(words, ground)?;
    let mut flags = strings(&QUIET_CHANGES);
    flags.extend(parsed.words(&[]));
    flags.push(END_OF_FLAGS.to_owned());
    let operands = revisions_and_files(table, &parsed, ground)?;
    Ok(Checked::new(operation, flags, operands).reading())
}

fn blame(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let table = &tables::BLAME;
    let mut parsed = table.parse(words, ground)?;
    let mut flags = strings(&["--no-textconv", "--no-progress"]);
    flags.extend(parsed.words(&[]));
    let file = match &mut parsed.paths {
        Some(paths) => paths.pop(),
        None => parsed.operands.pop(),
    };
    let file =
        file.ok_or_else(|| usage(table, "name a file: `src/lib.rs`, or `HEAD~3 -- src/lib.rs`"))?;
    if parsed.paths.is_some_and(|paths| !paths.is_empty()) {
        return Err(usage(table, "name one file"));
    }
    for revision in &parsed.operands {
        operand::revision(table.name, revision)?;
    }
    let mut operands = parsed.operands;
    operands.extend(["--".to_owned(), operand::path(ground, &file)?]);
    Ok(Checked::new(Operation::Blame, flags, operands).reading())
}

fn add(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let parsed = tables::ADD.parse(words, ground)?;
    let operands = files(&parsed, ground)?;
    if operands.is_empty() && !parsed.has_any(&["all", "update", "refresh", "renormalize"]) {
        return Err(usage(&tables::ADD, "name files, or use -A for all changes"));
    }
    Ok(Checked::new(Operation::Add, parsed.words(&[]), operands))
}

fn commit(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let parsed = tables::COMMIT.parse(words, ground)?;
    // Git tells the new commit only when it is not quiet.
    let flags = parsed.words(&["quiet"]);
    let operands = files(&parsed, ground)?;
    Ok(Checked::new(Operation::Commit, flags, operands).showing(Shape::Commit))
}

fn branch(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let table = &tables::BRANCH;
    let parsed = table.parse(words, ground)?;
    no_files(table, &parsed)?;
    let changes = parsed.has_any(tables::BRANCH_CHANGES);
    let lists = parsed.has_any(tables::BRANCH_LISTS) || (!changes && parsed.operands.is_empty());
    let mut flags = parsed.words(&[]);
    if lists {
        if changes {
            return Err(usage(table, "list branches, or change one, but not both"));
        }
        if !parsed.has("show-current") {
            flags.extend(strings(&["--list", "--no-column", "--no-color"]));
        }
        for pattern in &parsed.operands {
            operand::revision(table.name, pattern)?;
        }
        return Ok(Checked::new(Operation::Branch, flags, parsed.operands).reading());
    }
    let mut operands = parsed.operands.iter();
    if !changes {
        operands.next().map_or(Ok(()), |name| operand::name(table.name, name))?;
        operands.next().map_or(Ok(()), |start| operand::revision(table.name, start))?;
        if operands.next().is_some() {
            return Err(usage(table, "a new branch is `NAME` or `NAME START`"));
        }
    }
    operands.try_for_each(|name| operand::name(table.name, name))?;
    Ok(Checked::new(Operation::Branch, flags, parsed.operands))
}

fn checkout(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let table = &tables::CHECKOUT;
    // The branch before this one.
    let dash = words.iter().take_while(|word| *word != "--").position(|word| word == "-");
    let mut words = words.to_vec();
    if let Some(index) = dash {
        "@{-1}".clone_into(&mut words[index]);
    }
    let parsed = table.parse(&words, ground)?;
    let operands = revisions_and_files(table, &parsed, ground)?;
    Ok(Checked::new(Operation::Checkout, parsed.words(&[]), operands))
}

fn stash(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let (name, rest) = match words.split_first() {
        Some((first, rest)) if !first.starts_with('-') => (first.as_str(), rest),
        Some(_) | None => ("push", words),
    };
    let table = match name {
        "push" => &tables::STASH_PUSH,
        "pop" => &tables::STASH_POP,
        "apply" => &tables::STASH_APPLY,
        "drop" => &tables::STASH_DROP,
        "list" => &tables::STASH_LIST,
        "show" => &tables::STASH_SHOW,
        other => {
            let message = format!(
                "git stash: `{other}` is not allowed; use push, pop, apply, drop, list or show"
            );
            let failure = Failure::new(Code::GitRefused, message);
            return Err(failure.with("operation", "stash").with("word", other));
        }
    };
    let parsed = table.parse(rest, ground)?;
    let mut flags = vec![name.to_owned()];
    if matches!(name, "list" | "show") {
        flags.extend(strings(&QUIET_CHANGES));
    }
    flags.extend(parsed.words(&[]));
    if name == "push" {
        let operands = files(&parsed, ground)?;
        return Ok(Checked::new(Operation::Stash, flags, operands));
    }
    no_files(table, &parsed)?;
    let most = usize::from(name != "list");
    if parsed.operands.len() > most {
        return Err(usage(
            table,
            if most == 0 { "it takes flags alone" } else { "name one stash" },
        ));
    }
    for revision in &parsed.operands {
        operand::revision(table.name, revision)?;
    }
    let checked = Checked::new(Operation::Stash, flags, parsed.operands);
    Ok(if matches!(name, "list" | "show") { checked.reading() } else { checked })
}

fn exchange(
    operation: Operation,
    table: &Table,
    words: &[String],
    ground: &Ground<'_>,
) -> Result<Checked, Failure> {
    let parsed = table.parse(words, ground)?;
    no_files(table, &parsed)?;
    let mut flags = parsed.words(&["no-recurse-submodules"]);
    flags.push("--no-recurse-submodules".to_owned());
    let peer = match parsed.operands.split_first() {
        Some((remote, refspecs)) => {
            refspecs.iter().try_for_each(|refspec| operand::refspec(table.name, refspec))?;
            Peer::Named(remote.clone())
        }
        None if operation == Operation::Fetch && parsed.has("all") => Peer::All,
        None => Peer::Default,
    };
    let mut operands = parsed.operands;
    if !operands.is_empty() {
        operands.insert(0, "--".to_owned());
    }
    Ok(Checked { peer, ..Checked::new(operation, flags, operands) })
}

fn clone(words: &[String], ground: &Ground<'_>) -> Result<Checked, Failure> {
    let table = &tables::CLONE;
    let parsed = table.parse(words, ground)?;
    let bare = parsed.has("bare");
    let mut flags = parsed.words(&["no-recurse-submodules"]);
    // No file of a template, and so no hook, gets into the copy.
    flags.extend(strings(&["--no-recurse-submodules", "--template="]));
    let mut operands = parsed.operands.into_iter().chain(parsed.paths.into_iter().flatten());
    let source = operands
        .next()
        .ok_or_else(|| usage(table, "name what to clone: `https://…` or a directory"))?;
    let directory = operands.next();
    if operands.next().is_some() {
        return Err(usage(table, "it takes an address and a directory"));
    }
    let peer = Peer::Clone { source, directory, bare };
    Ok(Checked { peer, ..Checked::new(Operation::Clone, flags, Vec::new()) })
}

/// Takes every operand for files, behind `--`.
fn files(parsed: &Parsed, ground: &Ground<'_>) -> Result<Vec<String>, Failure> {
    let all = parsed.operands.iter().chain(parsed.paths.iter().flatten());
    let mut files = all.map(|word| pathspec(ground, word)).collect::<Result<Vec<_>, _>>()?;
    if !files.is_empty() {
        files.insert(0, "--".to_owned());
    }
    Ok(files)
}

/// Takes operands for revisions where `--` says so, and otherwise leaves the choice to git.
fn revisions_and_files(
    table: &Table,
    parsed: &Parsed,
    ground: &Ground<'_>,
) -> Result<Vec<String>, Failure> {
    let Some(paths) = &parsed.paths else {
        return parsed.operands.iter().map(|word| either(table.name, ground, word)).collect();
    };
    let mut words = Vec::new();
    for revision in &parsed.operands {
        operand::revision(table.name, revision)?;
        words.push(revision.clone());
    }
    words.push("--".to_owned());
    for path in paths {
        words.push(pathspec(ground, path)?);
    }
    Ok(words)
}

fn no_files(table: &Table, parsed: &Parsed) -> Result<(), Failure> {
    match &parsed.paths {
        Some(paths) if !paths.is_empty() => Err(usage(table, "it takes no files behind `--`")),
        Some(_) | None => Ok(()),
    }
}

fn usage(table: &Table, what: &str) -> Failure {
    let message = format!("git {}: {what}", table.name);
    Failure::argument("args", message).with("operation", table.name)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
