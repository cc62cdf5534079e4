//! Tables of allowed flags, one for each subcommand that is checked.
//!
//! A flag that is not in its table is refused. To add one, read its documentation and make sure that it
//! does none of the following, with any value:
//!
//! - name a program, or make git run one that the repository configures (`--upload-pack`, `--textconv`);
//! - write a file other than those of the repository (`--output`);
//! - read a file outside the workspace, or another repository (`--no-index`, `--reference`);
//! - change the configuration that the check has seen (`-c`, `--template`);
//! - wait for input (`--interactive`, `--edit`).
//!
//! A flag is judged for its subcommand: `--patch` of `add` asks about every hunk, that of `diff` only
//! prints.
//!
//! The notation is that of git's synopsis, with both names of a flag joined:
//!
//! - `--name=KIND` has a value in the same or the next argument, `--name[=KIND]` at most one in the same
//!   argument, and `--name=REVISION?` a revision or, if none follows, `HEAD`;
//! - the kinds are those of [`ValueKind`](crate::flag_parser::ValueKind), or the allowed words with `|`
//!   between them. A value has the narrowest kind that serves honest callers.

use crate::flag_parser::FlagTable;

/// The presentation of changes.
const DIFF_FORMATS: &str = "
    -p/--patch -s/--no-patch -U/--unified=NUMBER --raw --stat[=LINE] --numstat --shortstat
    --dirstat[=LINE] --summary --compact-summary --name-only --name-status --minimal --patience
    --histogram --diff-algorithm=default|myers|minimal|patience|histogram
    -M/--find-renames[=NUMBER] -C/--find-copies[=NUMBER] --no-renames -w/--ignore-all-space
    -b/--ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines
    -W/--function-context --inter-hunk-context=NUMBER --word-diff[=plain|porcelain|none]
    --word-diff-regex=LINE --no-color --full-index --binary --abbrev[=NUMBER] -R --relative
    --no-prefix -a/--text --diff-filter=LINE -S=TEXT -G=TEXT --pickaxe-regex --pickaxe-all --check
    --no-ext-diff --no-textconv";

/// The selection and presentation of commits.
const COMMIT_SELECTION: &str = "
    -n/--max-count=NUMBER --skip=NUMBER --oneline --format=TEXT --pretty[=TEXT] --graph
    --decorate[=short|full|auto|no] --no-decorate --all --branches[=LINE] --tags[=LINE]
    --remotes[=LINE] --since=LINE --after=LINE --until=LINE --before=LINE --author=LINE
    --committer=LINE --grep=LINE --invert-grep --all-match -i/--regexp-ignore-case
    -E/--extended-regexp -F/--fixed-strings --merges --no-merges --first-parent --follow --reverse
    --date-order --topo-order --author-date-order --date=LINE --abbrev-commit --no-abbrev-commit
    --left-right --left-only --right-only --cherry-pick --cherry-mark --cherry -L=LINE --source
    --full-history --simplify-merges --simplify-by-decoration --ancestry-path[=REVISION] --not
    -g/--walk-reflogs --boundary --parents --children --no-walk --no-notes --cc -m
    --diff-merges=off|none|on|first-parent|separate|combined|dense-combined";

const VERBOSITY: &str = "-q/--quiet -v/--verbose";

pub(crate) const STATUS: FlagTable = FlagTable {
    name: "status",
    flags: &["-s/--short -b/--branch --porcelain[=LINE] --long -z/--null --show-stash
         -u/--untracked-files[=no|normal|all] --ignored[=traditional|no|matching] --ahead-behind
         --no-ahead-behind --renames --no-renames --find-renames[=NUMBER]"],
};

/// Flags of `status` that choose its format. They are accepted and dropped: the format is fixed.
pub(crate) const STATUS_FORMATS: &str = "short branch porcelain long null show-stash";

pub(crate) const DIFF: FlagTable = FlagTable {
    name: "diff",
    flags: &[
        DIFF_FORMATS,
        "--cached --staged --merge-base --exit-code --quiet -1/--base -2/--ours -3/--theirs",
    ],
};

/// Flags of `diff` with which it prints no patch, so that there are no lines to count.
pub(crate) const DIFF_WITHOUT_PATCH: &str = "
    no-patch raw stat numstat shortstat dirstat summary compact-summary name-only name-status check quiet";

pub(crate) const LOG: FlagTable =
    FlagTable { name: "log", flags: &[DIFF_FORMATS, COMMIT_SELECTION] };

pub(crate) const SHOW: FlagTable =
    FlagTable { name: "show", flags: &[DIFF_FORMATS, COMMIT_SELECTION] };

pub(crate) const BLAME: FlagTable = FlagTable {
    name: "blame",
    flags: &[
        "-L=LINE -w -M[=NUMBER] -C[=NUMBER] -e/--show-email -f/--show-name -n/--show-number -l -s
         -t -b --root -p/--porcelain --line-porcelain --date=LINE --since=LINE --reverse
         --first-parent --ignore-rev=REVISION --ignore-revs-file=PATH --abbrev=NUMBER",
    ],
};

/// The flags of `branch` that list. Flags that create, rename or delete make it a local operation, which is
/// not checked.
pub(crate) const BRANCH_LIST: FlagTable = FlagTable {
    name: "branch",
    flags: &["-l/--list -a/--all -r/--remotes -v/--verbose -i/--ignore-case --show-current
         --merged=REVISION? --no-merged=REVISION? --contains=REVISION? --no-contains=REVISION?
         --points-at=REVISION --sort=LINE --format=TEXT --abbrev[=NUMBER] --no-abbrev --no-column
         --no-color"],
};

/// Flags of `branch` with which operands are patterns; otherwise the first is a new branch.
pub(crate) const BRANCH_PATTERN_FLAGS: &str =
    "list merged no-merged contains no-contains points-at show-current";

pub(crate) const STASH_LIST: FlagTable =
    FlagTable { name: "stash list", flags: &[DIFF_FORMATS, COMMIT_SELECTION] };

pub(crate) const STASH_SHOW: FlagTable = FlagTable {
    name: "stash show",
    flags: &[DIFF_FORMATS, "-u/--include-untracked --only-untracked"],
};

const FETCHING: &str = "
    -t/--tags -p/--prune -f/--force --depth=NUMBER --deepen=NUMBER --shallow-since=LINE
    --unshallow --no-recurse-submodules --no-progress";

pub(crate) const FETCH: FlagTable = FlagTable {
    name: "fetch",
    flags: &[
        FETCHING,
        VERBOSITY,
        "--all -n/--no-tags -P/--prune-tags -a/--append --atomic --dry-run",
    ],
};

pub(crate) const PULL: FlagTable = FlagTable {
    name: "pull",
    flags: &[
        FETCHING,
        VERBOSITY,
        "-r/--rebase[=true|false|merges] --no-rebase --ff --no-ff --ff-only --commit --no-commit
         --squash --no-squash --stat -n/--no-stat --autostash --no-autostash --no-edit --no-verify
         --allow-unrelated-histories -s/--strategy=ort|recursive|resolve|octopus|ours
         -X/--strategy-option=ours|theirs|patience|ignore-space-change|ignore-all-space|\
         ignore-space-at-eol|renormalize|no-renormalize|no-renames
         --no-tags --dry-run",
    ],
};

pub(crate) const PUSH: FlagTable = FlagTable {
    name: "push",
    flags: &[
        VERBOSITY,
        "-u/--set-upstream -n/--dry-run -f/--force --force-with-lease[=LINE] --force-if-includes
         -d/--delete --tags --follow-tags --no-follow-tags --all --branches --atomic --no-atomic
         --porcelain --no-verify --no-progress --no-recurse-submodules",
    ],
};

pub(crate) const CLONE: FlagTable = FlagTable {
    name: "clone",
    flags: &[
        VERBOSITY,
        "-b/--branch=NAME -o/--origin=NAME --depth=NUMBER --shallow-since=LINE --single-branch
         --no-single-branch --no-tags -n/--no-checkout --bare --no-hardlinks
         --no-recurse-submodules --no-progress",
    ],
};
