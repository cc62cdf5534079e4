//! The check of one call: caller's arguments in, git's command line out.
//!
//! [`GitCommandLine::check`] treats operations in three ways.
//!
//! - *Reading* (`status`, `diff`, `log`, `show`, `blame`, and the listing forms of `branch` and `stash`):
//!   flags come from a table, so that none writes a file, runs a configured program or reads outside
//!   the workspace. Flags that keep external diff programs and submodules out are added. The sandbox
//!   mounts the workspace read-only.
//! - *Remote* (`fetch`, `pull`, `push`, `clone`): flags come from a table, because these run with network
//!   and with the operator's credentials. The remote is returned as a [`RemoteSelector`] for the caller
//!   to look up and check.
//! - *Local* (`add`, `commit`, `checkout`, changing forms of `branch` and `stash`): any argument is
//!   passed on. They run in the sandbox without network and credentials, where the caller can run `git`
//!   as a command anyway; a table would forbid nothing.
#[cfg(test)]
mod tests;

use carrel_domain::{Code, Failure, WorkspaceAccess};

use crate::allowed_flags;
use crate::flag_parser::{FlagTable, ParsedArguments};
use crate::operand::{self, PathResolver, check_pathspec, check_revision_or_path};
use crate::operation::GitOperation;

/// A command line for git that passed the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommandLine {
    /// The subcommand.
    pub operation: GitOperation,
    /// Flags behind the subcommand, with revisions before a `--not`; of a local operation all arguments, in
    /// the order of the caller.
    pub flags: Vec<String>,
    /// Arguments behind the flags, with `--` where git takes it; none of a local operation.
    pub operands: Vec<String>,
    /// Read-only if git changes nothing.
    pub access: WorkspaceAccess,
    /// The form of git's output.
    pub output: OutputShape,
    /// The remotes that git reaches.
    pub remote: RemoteSelector,
}

/// The form of git's output, as the added flags make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputShape {
    /// Text for people.
    Plain,
    /// `status --porcelain=v2 -z --branch`.
    Status,
    /// `diff --shortstat --patch`.
    Patch,
    /// The summary of `commit`, which names the new commit.
    Commit,
}

/// The remotes that an operation reaches, as the caller named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteSelector {
    /// No remote.
    None,
    /// The remote that git chooses for the current branch.
    Default,
    /// Every configured remote.
    All,
    /// A remote's name, an address or a directory.
    Named(String),
    /// The source of a clone.
    Clone {
        /// An address or a directory.
        source: String,
        /// The new directory; derived from the source if none.
        directory: Option<String>,
        /// Without a work tree.
        bare: bool,
    },
}

/// Flags for every output with changes: no colour, no program that the repository configures, and one
/// line for a submodule.
const PLAIN_DIFF: [&str; 4] = ["--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short"];

/// Keeps git from looking for changes in the work trees of submodules, where it would obey their
/// configuration.
const IGNORE_SUBMODULES: &str = "--ignore-submodules=dirty";

const END_OF_OPTIONS: &str = "--end-of-options";

impl GitCommandLine {
    /// Checks the arguments of an operation. With read-only access, operations and forms that change
    /// something are refused.
    pub fn check(
        operation: GitOperation,
        arguments: &[String],
        access: WorkspaceAccess,
        paths: &PathResolver<'_>,
    ) -> Result<Self, Failure> {
        let checked = match operation {
            GitOperation::Status => status(arguments, paths),
            GitOperation::Diff => diff(arguments, paths),
            GitOperation::Log => history(operation, &allowed_flags::LOG, arguments, paths),
            GitOperation::Show => history(operation, &allowed_flags::SHOW, arguments, paths),
            GitOperation::Blame => blame(arguments, paths),
            GitOperation::Branch => list_branches(arguments, paths),
            GitOperation::Stash => read_stash(arguments, paths),
            GitOperation::Fetch => exchange(operation, &allowed_flags::FETCH, arguments, paths),
            GitOperation::Pull => exchange(operation, &allowed_flags::PULL, arguments, paths),
            GitOperation::Push => exchange(operation, &allowed_flags::PUSH, arguments, paths),
            GitOperation::Clone => clone(arguments, paths),
            GitOperation::Add | GitOperation::Commit | GitOperation::Checkout => {
                Err(not_read_only(operation))
            }
        };
        let is_local = match operation {
            GitOperation::Stash => !is_stash_reading(arguments),
            _ => matches!(
                operation,
                GitOperation::Add
                    | GitOperation::Commit
                    | GitOperation::Checkout
                    | GitOperation::Branch
            ),
        };
        match (checked, access) {
            (Err(_), WorkspaceAccess::ReadWrite) if is_local => {
                Ok(Self::local(operation, arguments, paths))
            }
            (Ok(line), WorkspaceAccess::ReadOnly) if line.access != WorkspaceAccess::ReadOnly => {
                Err(not_read_only(operation))
            }
            (result, _) => result,
        }
    }

    fn new(operation: GitOperation, flags: Vec<String>, operands: Vec<String>) -> Self {
        Self {
            operation,
            flags,
            operands,
            access: WorkspaceAccess::ReadWrite,
            output: OutputShape::Plain,
            remote: RemoteSelector::None,
        }
    }

    /// Passes the arguments on. Absolute paths are rewritten, because the operator's name of the
    /// workspace may lead through links that do not exist in the sandbox.
    fn local(operation: GitOperation, arguments: &[String], paths: &PathResolver<'_>) -> Self {
        let arguments = arguments.iter().map(|argument| {
            if argument.starts_with('/') {
                operand::check_path(paths, argument).unwrap_or_else(|_| argument.clone())
            } else {
                argument.clone()
            }
        });
        let output = match operation {
            GitOperation::Commit => OutputShape::Commit,
            _ => OutputShape::Plain,
        };
        Self::new(operation, arguments.collect(), Vec::new()).with_output(output)
    }

    fn read_only(self) -> Self {
        Self { access: WorkspaceAccess::ReadOnly, ..self }
    }

    fn with_output(self, output: OutputShape) -> Self {
        Self { output, ..self }
    }
}

fn status(arguments: &[String], paths: &PathResolver<'_>) -> Result<GitCommandLine, Failure> {
    let parsed = allowed_flags::STATUS.parse(arguments, paths)?;
    let mut flags = strings(&["--porcelain=v2", "-z", "--branch", IGNORE_SUBMODULES]);
    flags.extend(parsed.flag_arguments(allowed_flags::STATUS_FORMATS));
    let operands = pathspecs(&parsed, paths)?;
    let line = GitCommandLine::new(GitOperation::Status, flags, operands);
    Ok(line.read_only().with_output(OutputShape::Status))
}

fn diff(arguments: &[String], paths: &PathResolver<'_>) -> Result<GitCommandLine, Failure> {
    let parsed = allowed_flags::DIFF.parse(arguments, paths)?;
    let mut flags = strings(&PLAIN_DIFF);
    flags.push(IGNORE_SUBMODULES.to_owned());
    let has_patch = !parsed.has_any(allowed_flags::DIFF_WITHOUT_PATCH);
    if has_patch {
        flags.extend(strings(&["--shortstat", "--patch"]));
    }
    flags.extend(parsed.flag_arguments(""));
    flags.push(END_OF_OPTIONS.to_owned());
    let operands = revisions_and_paths(&allowed_flags::DIFF, &parsed, paths)?;
    let output = if has_patch { OutputShape::Patch } else { OutputShape::Plain };
    Ok(GitCommandLine::new(GitOperation::Diff, flags, operands).read_only().with_output(output))
}

fn history(
    operation: GitOperation,
    table: &FlagTable,
    arguments: &[String],
    paths: &PathResolver<'_>,
) -> Result<GitCommandLine, Failure> {
    let parsed = table.parse(arguments, paths)?;
    let mut flags = strings(&PLAIN_DIFF);
    let operands = revisions_and_paths(table, &parsed, paths)?;
    let (given, operands) = parsed.flags_and_operands(operands);
    flags.extend(given);
    flags.push(END_OF_OPTIONS.to_owned());
    Ok(GitCommandLine::new(operation, flags, operands).read_only())
}

fn blame(arguments: &[String], paths: &PathResolver<'_>) -> Result<GitCommandLine, Failure> {
    let table = &allowed_flags::BLAME;
    let mut parsed = table.parse(arguments, paths)?;
    let mut flags = strings(&["--no-textconv", "--no-progress"]);
    flags.extend(parsed.flag_arguments(""));
    let file = match &mut parsed.paths {
        Some(behind) => behind.pop(),
        None => parsed.operands.pop(),
    };
    let file =
        file.ok_or_else(|| usage(table, "name a file: `src/lib.rs`, or `HEAD~3 -- src/lib.rs`"))?;
    if parsed.paths.is_some_and(|behind| !behind.is_empty()) {
        return Err(usage(table, "name one file"));
    }
    for revision in &parsed.operands {
        operand::check_revision(table.name, revision)?;
    }
    let mut operands = parsed.operands;
    operands.extend(["--".to_owned(), operand::check_path(paths, &file)?]);
    Ok(GitCommandLine::new(GitOperation::Blame, flags, operands).read_only())
}

/// Accepts the forms of `branch` that list. Without a listing flag an operand would be a new branch.
fn list_branches(
    arguments: &[String],
    paths: &PathResolver<'_>,
) -> Result<GitCommandLine, Failure> {
    let table = &allowed_flags::BRANCH_LIST;
    let parsed = table.parse(arguments, paths)?;
    refuse_paths(table, &parsed)?;
    if !parsed.operands.is_empty() && !parsed.has_any(allowed_flags::BRANCH_PATTERN_FLAGS) {
        return Err(not_read_only(GitOperation::Branch));
    }
    let mut flags = parsed.flag_arguments("");
    if !parsed.has_any("show-current") {
        flags.extend(strings(&["--list", "--no-column", "--no-color"]));
    }
    for pattern in &parsed.operands {
        operand::check_revision(table.name, pattern)?;
    }
    Ok(GitCommandLine::new(GitOperation::Branch, flags, parsed.operands).read_only())
}

fn is_stash_reading(arguments: &[String]) -> bool {
    matches!(arguments.first().map(String::as_str), Some("list" | "show"))
}

fn read_stash(arguments: &[String], paths: &PathResolver<'_>) -> Result<GitCommandLine, Failure> {
    let (name, table, max_operands) = match arguments.first().map(String::as_str) {
        Some("list") => ("list", &allowed_flags::STASH_LIST, 0),
        Some("show") => ("show", &allowed_flags::STASH_SHOW, 1),
        Some(_) | None => return Err(not_read_only(GitOperation::Stash)),
    };
    let parsed = table.parse(&arguments[1..], paths)?;
    refuse_paths(table, &parsed)?;
    if parsed.operands.len() > max_operands {
        let what = if max_operands == 0 { "it takes only flags" } else { "name one stash" };
        return Err(usage(table, what));
    }
    for revision in &parsed.operands {
        operand::check_revision(table.name, revision)?;
    }
    let mut flags = vec![name.to_owned()];
    flags.extend(strings(&PLAIN_DIFF));
    flags.extend(parsed.flag_arguments(""));
    Ok(GitCommandLine::new(GitOperation::Stash, flags, parsed.operands).read_only())
}

fn exchange(
    operation: GitOperation,
    table: &FlagTable,
    arguments: &[String],
    paths: &PathResolver<'_>,
) -> Result<GitCommandLine, Failure> {
    let parsed = table.parse(arguments, paths)?;
    refuse_paths(table, &parsed)?;
    let mut flags = parsed.flag_arguments("no-recurse-submodules");
    flags.push("--no-recurse-submodules".to_owned());
    let remote = match parsed.operands.split_first() {
        Some((remote, refspecs)) => {
            refspecs.iter().try_for_each(|refspec| operand::check_refspec(table.name, refspec))?;
            RemoteSelector::Named(remote.clone())
        }
        None if operation == GitOperation::Fetch && parsed.has_any("all") => RemoteSelector::All,
        None => RemoteSelector::Default,
    };
    let mut operands = parsed.operands;
    if !operands.is_empty() {
        operands.insert(0, "--".to_owned());
    }
    Ok(GitCommandLine { remote, ..GitCommandLine::new(operation, flags, operands) })
}

fn clone(arguments: &[String], paths: &PathResolver<'_>) -> Result<GitCommandLine, Failure> {
    let table = &allowed_flags::CLONE;
    let parsed = table.parse(arguments, paths)?;
    let bare = parsed.has_any("bare");
    let mut flags = parsed.flag_arguments("no-recurse-submodules");
    // An empty template keeps sample hooks, and any that the host configures, out of the clone.
    flags.extend(strings(&["--no-recurse-submodules", "--template="]));
    let mut operands = parsed.operands.into_iter().chain(parsed.paths.into_iter().flatten());
    let source = operands
        .next()
        .ok_or_else(|| usage(table, "name what to clone: `https://…` or a directory"))?;
    let directory = operands.next();
    if operands.next().is_some() {
        return Err(usage(table, "it takes an address and a directory"));
    }
    let remote = RemoteSelector::Clone { source, directory, bare };
    Ok(GitCommandLine { remote, ..GitCommandLine::new(GitOperation::Clone, flags, Vec::new()) })
}

/// Reads every operand as a pathspec, and puts them behind `--`.
fn pathspecs(parsed: &ParsedArguments, paths: &PathResolver<'_>) -> Result<Vec<String>, Failure> {
    let all = parsed.operands.iter().chain(parsed.paths.iter().flatten());
    let mut operands =
        all.map(|word| check_pathspec(paths, word)).collect::<Result<Vec<_>, _>>()?;
    if !operands.is_empty() {
        operands.insert(0, "--".to_owned());
    }
    Ok(operands)
}

/// Reads operands before `--` as revisions. Without `--` each may be a revision or a path, and git
/// decides.
fn revisions_and_paths(
    table: &FlagTable,
    parsed: &ParsedArguments,
    paths: &PathResolver<'_>,
) -> Result<Vec<String>, Failure> {
    let Some(behind) = &parsed.paths else {
        let operands = parsed.operands.iter();
        return operands.map(|word| check_revision_or_path(table.name, paths, word)).collect();
    };
    let mut operands = Vec::new();
    for revision in &parsed.operands {
        operand::check_revision(table.name, revision)?;
        operands.push(revision.clone());
    }
    operands.push("--".to_owned());
    for path in behind {
        operands.push(check_pathspec(paths, path)?);
    }
    Ok(operands)
}

fn refuse_paths(table: &FlagTable, parsed: &ParsedArguments) -> Result<(), Failure> {
    match &parsed.paths {
        Some(paths) if !paths.is_empty() => Err(usage(table, "it takes no paths behind `--`")),
        Some(_) | None => Ok(()),
    }
}

fn usage(table: &FlagTable, what: &str) -> Failure {
    let message = format!("git {}: {what}", table.name);
    Failure::argument("args", message).with("operation", table.name)
}

/// Returns the error for an operation, or a form of one, that is not read-only.
fn not_read_only(operation: GitOperation) -> Failure {
    let operation = operation.as_str();
    let message = format!(
        "this form of git {operation} is not read-only; use `branch` to list, `stash list` or \
         `stash show`, or the tool `git`"
    );
    Failure::new(Code::GitRefused, message).with("operation", operation)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
