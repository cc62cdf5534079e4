//! The flags that each operation takes.
//!
//! What is not here is refused: names of programs, of files to write and of other repositories,
//! configuration, questions that nobody would answer.

use super::flags::{Flag, Kind, Table, both, long, short};

/// How changes are shown.
const CHANGES: &[Flag] = &[
    both('p', "patch"),
    both('s', "no-patch"),
    both('U', "unified").with(Kind::Number),
    long("raw"),
    long("stat").maybe(Kind::Line),
    long("numstat"),
    long("shortstat"),
    long("dirstat").maybe(Kind::Line),
    long("summary"),
    long("compact-summary"),
    long("name-only"),
    long("name-status"),
    long("minimal"),
    long("patience"),
    long("histogram"),
    long("diff-algorithm").with(Kind::One(&[
        "default",
        "myers",
        "minimal",
        "patience",
        "histogram",
    ])),
    both('M', "find-renames").maybe(Kind::Number),
    both('C', "find-copies").maybe(Kind::Number),
    long("no-renames"),
    both('w', "ignore-all-space"),
    both('b', "ignore-space-change"),
    long("ignore-space-at-eol"),
    long("ignore-cr-at-eol"),
    long("ignore-blank-lines"),
    both('W', "function-context"),
    long("inter-hunk-context").with(Kind::Number),
    long("word-diff").maybe(Kind::One(&["plain", "porcelain", "none"])),
    long("word-diff-regex").with(Kind::Line),
    long("no-color"),
    long("full-index"),
    long("binary"),
    long("abbrev").maybe(Kind::Number),
    short('R'),
    long("relative"),
    long("no-prefix"),
    both('a', "text"),
    long("diff-filter").with(Kind::Line),
    short('S').with(Kind::Text),
    short('G').with(Kind::Text),
    long("pickaxe-regex"),
    long("pickaxe-all"),
    long("check"),
    long("no-ext-diff"),
    long("no-textconv"),
];

/// Which commits, and how they are shown.
const COMMITS: &[Flag] = &[
    both('n', "max-count").with(Kind::Number),
    long("skip").with(Kind::Number),
    long("oneline"),
    long("format").with(Kind::Text),
    long("pretty").maybe(Kind::Text),
    long("graph"),
    long("decorate").maybe(Kind::One(&["short", "full", "auto", "no"])),
    long("no-decorate"),
    long("all"),
    long("branches").maybe(Kind::Line),
    long("tags").maybe(Kind::Line),
    long("remotes").maybe(Kind::Line),
    long("since").with(Kind::Line),
    long("after").with(Kind::Line),
    long("until").with(Kind::Line),
    long("before").with(Kind::Line),
    long("author").with(Kind::Line),
    long("committer").with(Kind::Line),
    long("grep").with(Kind::Line),
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
    long("date").with(Kind::Line),
    long("abbrev-commit"),
    long("no-abbrev-commit"),
    long("left-right"),
    long("left-only"),
    long("right-only"),
    long("cherry-pick"),
    long("cherry-mark"),
    long("cherry"),
    short('L').with(Kind::Line),
    long("source"),
    long("full-history"),
    long("simplify-merges"),
    long("simplify-by-decoration"),
    long("ancestry-path").maybe(Kind::Revision),
    long("not"),
    both('g', "walk-reflogs"),
    long("boundary"),
    long("parents"),
    long("children"),
    long("no-walk"),
    long("no-notes"),
    long("cc"),
    short('m'),
    long("diff-merges").with(Kind::One(&[
        "off",
        "none",
        "on",
        "first-parent",
        "separate",
        "combined",
        "dense-combined",
    ])),
];

const NO_QUIET: &[Flag] = &[both('q', "quiet"), both('v', "verbose")];

pub(super) const STATUS: Table = Table {
    name: "status",
    flags: &[&[
        both('s', "short"),
        both('b', "branch"),
        long("porcelain").maybe(Kind::Line),
        long("long"),
        both('z', "null"),
        long("show-stash"),
        both('u', "untracked-files").maybe(Kind::One(&["no", "normal", "all"])),
        long("ignored").maybe(Kind::One(&["traditional", "no", "matching"])),
        long("ahead-behind"),
        long("no-ahead-behind"),
        long("renames"),
        long("no-renames"),
        long("find-renames").maybe(Kind::Number),
    ]],
    counts: false,
};

/// Flags that only say how the answer of `status` is to look, which we decide.
pub(super) const STATUS_LOOKS: &[&str] =
    &["short", "branch", "porcelain", "long", "null", "show-stash"];

pub(super) const DIFF: Table = Table {
    name: "diff",
    flags: &[
        CHANGES,
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
    counts: false,
};

/// Flags of `diff` after which there is no patch to count.
pub(super) const NO_PATCH: &[&str] = &[
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

pub(super) const LOG: Table = Table { name: "log", flags: &[CHANGES, COMMITS], counts: true };

pub(super) const SHOW: Table = Table { name: "show", flags: &[CHANGES, COMMITS], counts: true };

pub(super) const BLAME: Table = Table {
    name: "blame",
    flags: &[&[
        short('L').with(Kind::Line),
        short('w'),
        short('M').maybe(Kind::Number),
        short('C').maybe(Kind::Number),
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
        long("date").with(Kind::Line),
        long("since").with(Kind::Line),
        long("reverse"),
        long("first-parent"),
        long("ignore-rev").with(Kind::Revision),
        long("ignore-revs-file").with(Kind::Path),
        long("abbrev").with(Kind::Number),
    ]],
    counts: false,
};

pub(super) const ADD: Table = Table {
    name: "add",
    flags: &[&[
        both('A', "all"),
        long("no-all"),
        both('u', "update"),
        both('n', "dry-run"),
        both('v', "verbose"),
        both('f', "force"),
        both('N', "intent-to-add"),
        long("refresh"),
        long("ignore-errors"),
        long("ignore-missing"),
        long("chmod").with(Kind::One(&["+x", "-x"])),
        long("renormalize"),
        long("sparse"),
    ]],
    counts: false,
};

pub(super) const COMMIT: Table = Table {
    name: "commit",
    flags: &[&[
        both('m', "message").with(Kind::Text),
        both('F', "file").with(Kind::Path),
        both('C', "reuse-message").with(Kind::Revision),
        long("fixup").with(Kind::Revision),
        long("squash").with(Kind::Revision),
        both('a', "all"),
        both('o', "only"),
        both('i', "include"),
        long("amend"),
        long("no-edit"),
        long("reset-author"),
        long("allow-empty"),
        long("allow-empty-message"),
        both('s', "signoff"),
        long("no-signoff"),
        both('n', "no-verify"),
        long("no-gpg-sign"),
        long("author").with(Kind::Line),
        long("date").with(Kind::Line),
        long("cleanup").with(Kind::One(&[
            "strip",
            "whitespace",
            "verbatim",
            "scissors",
            "default",
        ])),
        both('q', "quiet"),
        long("dry-run"),
        both('u', "untracked-files").maybe(Kind::One(&["no", "normal", "all"])),
    ]],
    counts: false,
};

pub(super) const BRANCH: Table = Table {
    name: "branch",
    flags: &[&[
        both('l', "list"),
        both('a', "all"),
        both('r', "remotes"),
        both('v', "verbose"),
        both('q', "quiet"),
        both('i', "ignore-case"),
        long("show-current"),
        long("merged").or_head(),
        long("no-merged").or_head(),
        long("contains").or_head(),
        long("no-contains").or_head(),
        long("points-at").with(Kind::Revision),
        long("sort").with(Kind::Line),
        long("format").with(Kind::Text),
        long("abbrev").maybe(Kind::Number),
        long("no-abbrev"),
        long("no-column"),
        long("no-color"),
        both('d', "delete"),
        short('D'),
        both('m', "move"),
        short('M'),
        long("copy"),
        both('f', "force"),
        both('t', "track").maybe(Kind::One(&["direct", "inherit"])),
        long("no-track"),
        both('u', "set-upstream-to").with(Kind::Revision),
        long("unset-upstream"),
    ]],
    counts: false,
};

/// Flags of `branch` that make it list, whatever else there is.
pub(super) const BRANCH_LISTS: &[&str] =
    &["list", "merged", "no-merged", "contains", "no-contains", "points-at", "show-current"];

/// Flags of `branch` that change something.
pub(super) const BRANCH_CHANGES: &[&str] =
    &["delete", "D", "move", "M", "copy", "set-upstream-to", "unset-upstream"];

pub(super) const CHECKOUT: Table = Table {
    name: "checkout",
    flags: &[&[
        short('b').with(Kind::Name),
        short('B').with(Kind::Name),
        long("orphan").with(Kind::Name),
        both('d', "detach"),
        both('t', "track").maybe(Kind::One(&["direct", "inherit"])),
        long("no-track"),
        long("guess"),
        long("no-guess"),
        both('f', "force"),
        both('m', "merge"),
        long("conflict").with(Kind::One(&["merge", "diff3", "zdiff3"])),
        long("ours"),
        long("theirs"),
        both('q', "quiet"),
        long("no-overlay"),
        long("overlay"),
    ]],
    counts: false,
};

pub(super) const STASH_PUSH: Table = Table {
    name: "stash push",
    flags: &[&[
        both('m', "message").with(Kind::Line),
        both('u', "include-untracked"),
        both('a', "all"),
        both('k', "keep-index"),
        long("no-keep-index"),
        both('S', "staged"),
        both('q', "quiet"),
    ]],
    counts: false,
};

pub(super) const STASH_POP: Table =
    Table { name: "stash pop", flags: &[&[long("index"), both('q', "quiet")]], counts: false };

pub(super) const STASH_APPLY: Table = Table { name: "stash apply", ..STASH_POP };

pub(super) const STASH_DROP: Table =
    Table { name: "stash drop", flags: &[&[both('q', "quiet")]], counts: false };

pub(super) const STASH_LIST: Table =
    Table { name: "stash list", flags: &[CHANGES, COMMITS], counts: true };

pub(super) const STASH_SHOW: Table = Table {
    name: "stash show",
    flags: &[CHANGES, &[both('u', "include-untracked"), long("only-untracked")]],
    counts: false,
};

/// What fetching is about.
const FETCHING: &[Flag] = &[
    both('t', "tags"),
    both('p', "prune"),
    both('f', "force"),
    long("depth").with(Kind::Number),
    long("deepen").with(Kind::Number),
    long("shallow-since").with(Kind::Line),
    long("unshallow"),
    long("no-recurse-submodules"),
    long("no-progress"),
];

pub(super) const FETCH: Table = Table {
    name: "fetch",
    flags: &[
        FETCHING,
        NO_QUIET,
        &[
            long("all"),
            both('n', "no-tags"),
            both('P', "prune-tags"),
            both('a', "append"),
            long("atomic"),
            long("dry-run"),
        ],
    ],
    counts: false,
};

pub(super) const PULL: Table = Table {
    name: "pull",
    flags: &[
        FETCHING,
        NO_QUIET,
        &[
            both('r', "rebase").maybe(Kind::One(&["true", "false", "merges"])),
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
            both('s', "strategy").with(Kind::One(&[
                "ort",
                "recursive",
                "resolve",
                "octopus",
                "ours",
            ])),
            both('X', "strategy-option").with(Kind::One(&[
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
    counts: false,
};

pub(super) const PUSH: Table = Table {
    name: "push",
    flags: &[
        NO_QUIET,
        &[
            both('u', "set-upstream"),
            both('n', "dry-run"),
            both('f', "force"),
            long("force-with-lease").maybe(Kind::Line),
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
    counts: false,
};

pub(super) const CLONE: Table = Table {
    name: "clone",
    flags: &[
        NO_QUIET,
        &[
            both('b', "branch").with(Kind::Name),
            both('o', "origin").with(Kind::Name),
            long("depth").with(Kind::Number),
            long("shallow-since").with(Kind::Line),
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
    counts: false,
};
