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
//! A value has the narrowest [`ValueKind`] that serves honest callers.

use crate::flag_parser::{Flag, FlagTable, ValueKind, both, long, short};

/// The presentation of changes.
const DIFF_FORMATS: &[Flag] = &[
    both('p', "patch"),
    both('s', "no-patch"),
    both('U', "unified").value(ValueKind::Number),
    long("raw"),
    long("stat").optional_value(ValueKind::Line),
    long("numstat"),
    long("shortstat"),
    long("dirstat").optional_value(ValueKind::Line),
    long("summary"),
    long("compact-summary"),
    long("name-only"),
    long("name-status"),
    long("minimal"),
    long("patience"),
    long("histogram"),
    long("diff-algorithm").value(ValueKind::OneOf(&[
        "default",
        "myers",
        "minimal",
        "patience",
        "histogram",
    ])),
    both('M', "find-renames").optional_value(ValueKind::Number),
    both('C', "find-copies").optional_value(ValueKind::Number),
    long("no-renames"),
    both('w', "ignore-all-space"),
    both('b', "ignore-space-change"),
    long("ignore-space-at-eol"),
    long("ignore-cr-at-eol"),
    long("ignore-blank-lines"),
    both('W', "function-context"),
    long("inter-hunk-context").value(ValueKind::Number),
    long("word-diff").optional_value(ValueKind::OneOf(&["plain", "porcelain", "none"])),
    long("word-diff-regex").value(ValueKind::Line),
    long("no-color"),
    long("full-index"),
    long("binary"),
    long("abbrev").optional_value(ValueKind::Number),
    short('R'),
    long("relative"),
    long("no-prefix"),
    both('a', "text"),
    long("diff-filter").value(ValueKind::Line),
    short('S').value(ValueKind::Text),
    short('G').value(ValueKind::Text),
    long("pickaxe-regex"),
    long("pickaxe-all"),
    long("check"),
    long("no-ext-diff"),
    long("no-textconv"),
];

/// The selection and presentation of commits.
const COMMIT_SELECTION: &[Flag] = &[
    both('n', "max-count").value(ValueKind::Number),
    long("skip").value(ValueKind::Number),
    long("oneline"),
    long("format").value(ValueKind::Text),
    long("pretty").optional_value(ValueKind::Text),
    long("graph"),
    long("decorate").optional_value(ValueKind::OneOf(&["short", "full", "auto", "no"])),
    long("no-decorate"),
    long("all"),
    long("branches").optional_value(ValueKind::Line),
    long("tags").optional_value(ValueKind::Line),
    long("remotes").optional_value(ValueKind::Line),
    long("since").value(ValueKind::Line),
    long("after").value(ValueKind::Line),
    long("until").value(ValueKind::Line),
    long("before").value(ValueKind::Line),
    long("author").value(ValueKind::Line),
    long("committer").value(ValueKind::Line),
    long("grep").value(ValueKind::Line),
    long("invert-grep"),
    long("all-match"),
    both('i', "regexp-ignore-case"),
    both('E', "extended-regexp"),
    both('F', "fixed-strings"),
    long("merges"),
    long("no-merges"),
    long("first-parent"),
    long("follow"),
    long("reverse"),
    long("date-order"),
    long("topo-order"),
    long("author-date-order"),
    long("date").value(ValueKind::Line),
    long("abbrev-commit"),
    long("no-abbrev-commit"),
    long("left-right"),
    long("left-only"),
    long("right-only"),
    long("cherry-pick"),
    long("cherry-mark"),
    long("cherry"),
    short('L').value(ValueKind::Line),
    long("source"),
    long("full-history"),
    long("simplify-merges"),
    long("simplify-by-decoration"),
    long("ancestry-path").optional_value(ValueKind::Revision),
    long("not"),
    both('g', "walk-reflogs"),
    long("boundary"),
    long("parents"),
    long("children"),
    long("no-walk"),
    long("no-notes"),
    long("cc"),
    short('m'),
    long("diff-merges").value(ValueKind::OneOf(&[
        "off",
        "none",
        "on",
        "first-parent",
        "separate",
        "combined",
        "dense-combined",
    ])),
];

const VERBOSITY: &[Flag] = &[both('q', "quiet"), both('v', "verbose")];

pub(crate) const STATUS: FlagTable = FlagTable {
    name: "status",
    flags: &[&[
        both('s', "short"),
        both('b', "branch"),
        long("porcelain").optional_value(ValueKind::Line),
        long("long"),
        both('z', "null"),
        long("show-stash"),
        both('u', "untracked-files").optional_value(ValueKind::OneOf(&["no", "normal", "all"])),
        long("ignored").optional_value(ValueKind::OneOf(&["traditional", "no", "matching"])),
        long("ahead-behind"),
        long("no-ahead-behind"),
        long("renames"),
        long("no-renames"),
        long("find-renames").optional_value(ValueKind::Number),
    ]],
    dash_number_is_count: false,
};

/// Flags of `status` that choose its format. They are accepted and dropped: the format is fixed.
pub(crate) const STATUS_FORMATS: &[&str] =
    &["short", "branch", "porcelain", "long", "null", "show-stash"];

pub(crate) const DIFF: FlagTable = FlagTable {
    name: "diff",
    flags: &[
        DIFF_FORMATS,
        &[
            long("cached"),
            long("staged"),
            long("merge-base"),
            long("exit-code"),
            long("quiet"),
            both('1', "base"),
            both('2', "ours"),
            both('3', "theirs"),
        ],
    ],
    dash_number_is_count: false,
};

/// Flags of `diff` with which it prints no patch, so that there are no lines to count.
pub(crate) const DIFF_WITHOUT_PATCH: &[&str] = &[
    "no-patch",
    "raw",
    "stat",
    "numstat",
    "shortstat",
    "dirstat",
    "summary",
    "compact-summary",
    "name-only",
    "name-status",
    "check",
    "quiet",
];

pub(crate) const LOG: FlagTable =
    FlagTable { name: "log", flags: &[DIFF_FORMATS, COMMIT_SELECTION], dash_number_is_count: true };

pub(crate) const SHOW: FlagTable = FlagTable {
    name: "show",
    flags: &[DIFF_FORMATS, COMMIT_SELECTION],
    dash_number_is_count: true,
};

pub(crate) const BLAME: FlagTable = FlagTable {
    name: "blame",
    flags: &[&[
        short('L').value(ValueKind::Line),
        short('w'),
        short('M').optional_value(ValueKind::Number),
        short('C').optional_value(ValueKind::Number),
        both('e', "show-email"),
        both('f', "show-name"),
        both('n', "show-number"),
        short('l'),
        short('s'),
        short('t'),
        short('b'),
        long("root"),
        both('p', "porcelain"),
        long("line-porcelain"),
        long("date").value(ValueKind::Line),
        long("since").value(ValueKind::Line),
        long("reverse"),
        long("first-parent"),
        long("ignore-rev").value(ValueKind::Revision),
        long("ignore-revs-file").value(ValueKind::Path),
        long("abbrev").value(ValueKind::Number),
    ]],
    dash_number_is_count: false,
};

/// The flags of `branch` that list. Flags that create, rename or delete make it a local operation, which is
/// not checked.
pub(crate) const BRANCH_LIST: FlagTable = FlagTable {
    name: "branch",
    flags: &[&[
        both('l', "list"),
        both('a', "all"),
        both('r', "remotes"),
        both('v', "verbose"),
        both('i', "ignore-case"),
        long("show-current"),
        long("merged").revision_or_head(),
        long("no-merged").revision_or_head(),
        long("contains").revision_or_head(),
        long("no-contains").revision_or_head(),
        long("points-at").value(ValueKind::Revision),
        long("sort").value(ValueKind::Line),
        long("format").value(ValueKind::Text),
        long("abbrev").optional_value(ValueKind::Number),
        long("no-abbrev"),
        long("no-column"),
        long("no-color"),
    ]],
    dash_number_is_count: false,
};

/// Flags of `branch` with which operands are patterns; otherwise the first is a new branch.
pub(crate) const BRANCH_PATTERN_FLAGS: &[&str] =
    &["list", "merged", "no-merged", "contains", "no-contains", "points-at", "show-current"];

pub(crate) const STASH_LIST: FlagTable = FlagTable {
    name: "stash list",
    flags: &[DIFF_FORMATS, COMMIT_SELECTION],
    dash_number_is_count: true,
};

pub(crate) const STASH_SHOW: FlagTable = FlagTable {
    name: "stash show",
    flags: &[DIFF_FORMATS, &[both('u', "include-untracked"), long("only-untracked")]],
    dash_number_is_count: false,
};

const FETCHING: &[Flag] = &[
    both('t', "tags"),
    both('p', "prune"),
    both('f', "force"),
    long("depth").value(ValueKind::Number),
    long("deepen").value(ValueKind::Number),
    long("shallow-since").value(ValueKind::Line),
    long("unshallow"),
    long("no-recurse-submodules"),
    long("no-progress"),
];

pub(crate) const FETCH: FlagTable = FlagTable {
    name: "fetch",
    flags: &[
        FETCHING,
        VERBOSITY,
        &[
            long("all"),
            both('n', "no-tags"),
            both('P', "prune-tags"),
            both('a', "append"),
            long("atomic"),
            long("dry-run"),
        ],
    ],
    dash_number_is_count: false,
};

pub(crate) const PULL: FlagTable = FlagTable {
    name: "pull",
    flags: &[
        FETCHING,
        VERBOSITY,
        &[
            both('r', "rebase").optional_value(ValueKind::OneOf(&["true", "false", "merges"])),
            long("no-rebase"),
            long("ff"),
            long("no-ff"),
            long("ff-only"),
            long("commit"),
            long("no-commit"),
            long("squash"),
            long("no-squash"),
            long("stat"),
            both('n', "no-stat"),
            long("autostash"),
            long("no-autostash"),
            long("no-edit"),
            long("no-verify"),
            long("allow-unrelated-histories"),
            both('s', "strategy").value(ValueKind::OneOf(&[
                "ort",
                "recursive",
                "resolve",
                "octopus",
                "ours",
            ])),
            both('X', "strategy-option").value(ValueKind::OneOf(&[
                "ours",
                "theirs",
                "patience",
                "ignore-space-change",
                "ignore-all-space",
                "ignore-space-at-eol",
                "renormalize",
                "no-renormalize",
                "no-renames",
            ])),
            long("no-tags"),
            long("dry-run"),
        ],
    ],
    dash_number_is_count: false,
};

pub(crate) const PUSH: FlagTable = FlagTable {
    name: "push",
    flags: &[
        VERBOSITY,
        &[
            both('u', "set-upstream"),
            both('n', "dry-run"),
            both('f', "force"),
            long("force-with-lease").optional_value(ValueKind::Line),
            long("force-if-includes"),
            both('d', "delete"),
            long("tags"),
            long("follow-tags"),
            long("no-follow-tags"),
            long("all"),
            long("branches"),
            long("atomic"),
            long("no-atomic"),
            long("porcelain"),
            long("no-verify"),
            long("no-progress"),
            long("no-recurse-submodules"),
        ],
    ],
    dash_number_is_count: false,
};

pub(crate) const CLONE: FlagTable = FlagTable {
    name: "clone",
    flags: &[
        VERBOSITY,
        &[
            both('b', "branch").value(ValueKind::Name),
            both('o', "origin").value(ValueKind::Name),
            long("depth").value(ValueKind::Number),
            long("shallow-since").value(ValueKind::Line),
            long("single-branch"),
            long("no-single-branch"),
            long("no-tags"),
            both('n', "no-checkout"),
            long("bare"),
            long("no-hardlinks"),
            long("no-recurse-submodules"),
            long("no-progress"),
        ],
    ],
    dash_number_is_count: false,
};
