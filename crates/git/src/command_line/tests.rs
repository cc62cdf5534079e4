//! Tables of arguments that pass, and of arguments that are refused.

use std::path::Path;

use carrel_domain::{Code, Failure, WorkspaceAccess};
use pretty_assertions::assert_eq;

use super::{GitCommandLine, RemoteSelector};
use crate::argument_list::ArgumentList;
use crate::operand::PathResolver;
use crate::operation::GitOperation;

fn checked(operation: GitOperation, args: &str) -> Result<GitCommandLine, Failure> {
    checked_with(operation, args, WorkspaceAccess::ReadWrite)
}

fn checked_with(
    operation: GitOperation,
    args: &str,
    access: WorkspaceAccess,
) -> Result<GitCommandLine, Failure> {
    let paths = PathResolver {
        workspace: Path::new("/w"),
        directory: Path::new(""),
        alias: Path::new("/w"),
    };
    let arguments = ArgumentList::Line(args.to_owned()).into_words()?;
    GitCommandLine::check(operation, &arguments, access, &paths)
}

/// Returns the arguments that git gets, without arguments that are always added.
fn words(operation: GitOperation, args: &str) -> String {
    let checked =
        checked(operation, args).unwrap_or_else(|failure| panic!("{args}: {}", failure.message));
    let always = [
        "--porcelain=v2",
        "-z",
        "--branch",
        "--ignore-submodules=dirty",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--submodule=short",
        "--shortstat",
        "--patch",
        "--no-progress",
        "--list",
        "--no-column",
        "--no-recurse-submodules",
        "--template=",
        "--end-of-options",
    ];
    let own = checked.flags.iter().filter(|word| !always.contains(&word.as_str()));
    own.chain(&checked.operands).cloned().collect::<Vec<_>>().join(" ")
}

#[test]
fn honest_uses_pass() {
    use GitOperation::{Blame, Branch, Diff, Fetch, Log, Pull, Push, Show, Stash, Status};
    for (operation, args, expected) in [
        (Status, "", ""),
        (Status, "-sb -uno", "--untracked-files=no"),
        (Status, "src", "-- src"),
        (Diff, "HEAD~1 -- src", "HEAD~1 -- src"),
        (Diff, "--cached --stat", "--cached --stat"),
        (Diff, "-U5 main...feature", "--unified=5 main...feature"),
        (Diff, "src/lib.rs", "src/lib.rs"),
        (Log, "--format='%H|%s' -5", "--format=%H|%s --max-count=5"),
        (
            Log,
            "--oneline -n 3 --since='2 weeks ago' main..HEAD -- src",
            "--oneline --max-count=3 --since=2 weeks ago main..HEAD -- src",
        ),
        (Log, "-S'fn main' -p", "-Sfn main"),
        (Log, "-L 1,5:src/lib.rs", "-L1,5:src/lib.rs"),
        (Log, "main --not dev --oneline", "main --not --oneline dev"),
        (Log, "--not dev -- src", "--not dev -- src"),
        (Log, "a b --not c --all --not d -- src", "a b --not --all c --not d -- src"),
        (Show, "HEAD:src/lib.rs", "HEAD:src/lib.rs"),
        (Show, "--stat HEAD^{commit}", "--stat HEAD^{commit}"),
        (Branch, "", ""),
        (Branch, "-vv -a", "--verbose --verbose --all"),
        (Branch, "--merged", "--merged=HEAD"),
        (Branch, "--contains v1 'feat*'", "--contains=v1 feat*"),
        (Stash, "list", "list"),
        (Stash, "show -p stash@{0}", "show stash@{0}"),
        (Blame, "-L 10,20 src/lib.rs", "-L10,20 -- src/lib.rs"),
        (Blame, "-w HEAD~3 -- src/lib.rs", "-w HEAD~3 -- src/lib.rs"),
        (Fetch, "--prune origin main:main", "--prune -- origin main:main"),
        (Pull, "--ff-only", "--ff-only"),
        (Pull, "--rebase origin main", "--rebase -- origin main"),
        (Push, "-u origin main", "--set-upstream -- origin main"),
        (Push, "--force-with-lease origin HEAD", "--force-with-lease -- origin HEAD"),
        (Push, "origin :old", "-- origin :old"),
    ] {
        assert_eq!(words(operation, args), expected, "{operation:?} {args}");
    }
}

#[test]
fn a_letter_is_refused_for_its_meaning_in_the_subcommand() {
    for (operation, args, reason) in [
        (GitOperation::Clone, "-u evil https://a/b", "it names a program to run"),
        (GitOperation::Fetch, "-u", "it is not in the list of this operation"),
        (GitOperation::Fetch, "-o x", "it sends options to the server"),
        (GitOperation::Pull, "-S", "it runs a program that the repository configures"),
        (GitOperation::Blame, "-S revisions x", "it is not in the list of this operation"),
        (GitOperation::Status, "-C x", "use `cwd` to choose the repository"),
    ] {
        let message = checked(operation, args).unwrap_err().message;
        assert!(message.contains(reason), "{args}: {message}");
    }
}

#[test]
fn flags_that_run_write_or_read_elsewhere_are_refused_by_name() {
    use GitOperation::{Blame, Clone, Diff, Fetch, Log, Pull, Push, Show, Stash, Status};
    for (operation, args, word) in [
        (Fetch, "-c core.sshCommand=id", "-c"),
        (Fetch, "--upload-pack=/w/e.sh origin", "--upload-pack=/w/e.sh"),
        (Fetch, "--upload-pack /w/e.sh origin", "--upload-pack"),
        (Fetch, "--upload-p=/w/e.sh origin", "--upload-p=/w/e.sh"),
        (Fetch, "-u origin", "-u"),
        (Fetch, "-o x", "-o"),
        (Fetch, "--recurse-submodules", "--recurse-submodules"),
        (Pull, "--upload-pack=x", "--upload-pack=x"),
        (Pull, "--rebase=interactive", "--rebase=interactive"),
        (Pull, "-S", "-S"),
        (Pull, "-s evil", "-s"),
        (Push, "--receive-pack=x origin", "--receive-pack=x"),
        (Push, "--exec=x origin", "--exec=x"),
        (Push, "--repo=x", "--repo=x"),
        (Push, "origin main;rm -rf x", "-rf"),
        (Push, "--signed", "--signed"),
        (Clone, "-u /w/e.sh x", "-u"),
        (Clone, "--config core.hooksPath=x https://h/r", "--config"),
        (Clone, "-c core.hooksPath=x https://h/r", "-c"),
        (Clone, "--template=x https://h/r", "--template=x"),
        (Clone, "--separate-git-dir=x https://h/r", "--separate-git-dir=x"),
        (Clone, "--reference /x https://h/r", "--reference"),
        (Clone, "--recurse-submodules https://h/r", "--recurse-submodules"),
        (Clone, "--upload-pack=x https://h/r", "--upload-pack=x"),
        (Clone, "--bundle-uri=x https://h/r", "--bundle-uri=x"),
        (Diff, "--no-index /dev/null /etc/hostname", "--no-index"),
        (Diff, "--output=/w/x", "--output=/w/x"),
        (Diff, "--outpu=x", "--outpu=x"),
        (Diff, "--ext-diff", "--ext-diff"),
        (Diff, "--textconv", "--textconv"),
        (Diff, "-O/etc/passwd", "-O/etc/passwd"),
        (Show, "--output=x", "--output=x"),
        (Show, "--textconv HEAD", "--textconv"),
        (Log, "--show-signature", "--show-signature"),
        (Log, "--git-dir=/x", "--git-dir=/x"),
        (Log, "--stdin", "--stdin"),
        (Log, "--exec-path=/x", "--exec-path=/x"),
        (Status, "--work-tree=/", "--work-tree=/"),
        (Status, "-v", "-v"),
        (Blame, "--contents=/etc/passwd x", "--contents=/etc/passwd"),
        (Stash, "list --output=x", "--output=x"),
        (Log, "-", "-"),
    ] {
        let failure = checked(operation, args).expect_err(args);
        assert_eq!(failure.code, Code::GitRefused, "{args}: {}", failure.message);
        assert_eq!(failure.detail["word"], word, "{args}");
        assert!(failure.message.contains(operation.as_str()), "{}", failure.message);
        assert!(failure.message.contains("Allowed flags: "), "{}", failure.message);
    }
}

#[test]
fn an_empty_value_behind_a_letter_is_refused() {
    use GitOperation::{Blame, Diff, Log, Stash};
    for (operation, args) in [
        (Log, "-S '' main"),
        (Log, "-pG ''"),
        (Log, "-L '' main"),
        (Diff, "-S ''"),
        (Stash, "show -G '' stash@{0}"),
        (Blame, "-L '' src/lib.rs"),
    ] {
        let failure = checked(operation, args).expect_err(args);
        assert_eq!(failure.code, Code::GitRefused, "{args}: {}", failure.message);
        assert!(failure.message.contains("its value is empty"), "{}", failure.message);
    }
    assert_eq!(words(Log, "--grep '' main"), "--grep= main");
}

#[test]
fn operands_are_checked_too() {
    use GitOperation::{Diff, Log, Push, Stash, Status};
    for (operation, args, code) in [
        (Status, "../x", Code::SandboxViolation),
        (Status, "/etc", Code::SandboxViolation),
        (Diff, "/dev/null /etc/hostname", Code::SandboxViolation),
        (Diff, "HEAD -- ../../x", Code::SandboxViolation),
        (Log, "-- /etc/passwd", Code::SandboxViolation),
        (Log, "\"a\nb\"", Code::GitRefused),
        (Push, "origin a:b:c", Code::GitRefused),
        (Push, "origin -- x", Code::InvalidArguments),
        (Stash, "list a", Code::InvalidArguments),
        (Stash, "show a b", Code::InvalidArguments),
        (GitOperation::Blame, "", Code::InvalidArguments),
        (GitOperation::Clone, "", Code::InvalidArguments),
        (GitOperation::Clone, "a b c", Code::InvalidArguments),
    ] {
        let failure = checked(operation, args).expect_err(args);
        assert_eq!(failure.code, code, "{args}: {}", failure.message);
    }
}

#[test]
fn local_operations_take_any_argument_and_reach_no_remote() {
    use GitOperation::{Add, Branch, Checkout, Commit, Stash};
    for (operation, args, expected) in [
        (Add, "-A", "-A"),
        (Add, "-p src '*.md'", "-p src *.md"),
        (Commit, "-am 'all of it' --trailer=a:b", "-am all of it --trailer=a:b"),
        (Commit, "-F /w/message", "-F /w/message"),
        (Branch, "feature/x main", "feature/x main"),
        (Branch, "-D old", "-D old"),
        (Branch, "--edit-description", "--edit-description"),
        (Checkout, "-", "-"),
        (Checkout, "-b feature/x", "-b feature/x"),
        (Stash, "", ""),
        (Stash, "push -m 'half done' -- src", "push -m half done -- src"),
        (Stash, "branch x", "branch x"),
        (Add, "/etc/passwd", "/etc/passwd"),
    ] {
        let line = checked(operation, args).unwrap();
        assert_eq!(line.flags.join(" "), expected, "{operation:?} {args}");
        assert_eq!((line.remote, line.access), (RemoteSelector::None, WorkspaceAccess::ReadWrite));
        let refused = checked_with(operation, args, WorkspaceAccess::ReadOnly).expect_err(args);
        assert_eq!(refused.code, Code::GitRefused, "{operation:?} {args}");
    }
}

#[test]
fn no_operation_with_a_remote_is_read_only() {
    use GitOperation::{Clone, Fetch, Pull, Push};
    for (operation, args) in [(Fetch, ""), (Pull, ""), (Push, ""), (Clone, "https://h/r")] {
        let refused = checked_with(operation, args, WorkspaceAccess::ReadOnly).expect_err(args);
        assert_eq!(refused.code, Code::GitRefused, "{operation:?}");
    }
}

#[test]
fn shell_syntax_is_not_interpreted() {
    // `; curl evil` are names of files that are not there.
    assert_eq!(words(GitOperation::Status, "; curl evil"), "-- ; curl evil");
}

#[test]
fn only_reading_forms_are_read_only() {
    use GitOperation::{Add, Branch, Checkout, Diff, Fetch, Log, Stash, Status};
    for (operation, args, reads) in [
        (Status, "", true),
        (Diff, "", true),
        (Log, "", true),
        (Branch, "", true),
        (Branch, "-a", true),
        (Branch, "--list x", true),
        (Branch, "--show-current", true),
        (Branch, "x", false),
        (Branch, "-d x", false),
        (Branch, "-u origin/x", false),
        (Stash, "list", true),
        (Stash, "show", true),
        (Stash, "", false),
        (Stash, "drop", false),
        (Add, "-A", false),
        (Checkout, "x", false),
        (Fetch, "", false),
    ] {
        let access = checked(operation, args).unwrap().access;
        assert_eq!(access == WorkspaceAccess::ReadOnly, reads, "{operation:?} {args}");
    }
}

#[test]
fn the_remote_of_a_call_is_known() {
    let remote = |operation, args| checked(operation, args).unwrap().remote;
    assert_eq!(remote(GitOperation::Fetch, "--all"), RemoteSelector::All);
    assert_eq!(remote(GitOperation::Fetch, ""), RemoteSelector::Default);
    assert_eq!(
        remote(GitOperation::Push, "-u origin main"),
        RemoteSelector::Named("origin".into())
    );
    assert_eq!(
        remote(GitOperation::Clone, "--depth 1 -b main https://h/r here"),
        RemoteSelector::Clone {
            source: "https://h/r".into(),
            directory: Some("here".into()),
            bare: false
        }
    );
}
