//! The command names of the allowlist, with advice for names that are not on it.

/// Programs, by groups: shells, version control, Python, Node, general, other languages, containers.
const PROGRAMS: &str = "
    sh bash
    git
    python python3 python3.12 pip pip3 uv pytest ruff black mypy isort flake8 coverage tox
    node npm npx pnpm yarn vitest jest tsc eslint prettier
    ls cat grep find tree wc sort diff jq sed awk curl wget make cmake tar gzip zip touch mkdir cp mv rm
    chmod echo env which egrep fgrep rg uniq cut tr head tail patch xargs tee less more gunzip unzip
    bzip2 ln printf whoami id date basename dirname realpath readlink stat file du df ps kill sleep
    timeout clear reset
    cargo go ruby java javac mvn gradle rustc gcc g++
    docker-compose
";

/// Shell builtins, without builtins that rename commands (`alias`, `enable`, `hash`) and builtins for
/// interactive use.
const SHELL: &str = "
    : . [ [[ break builtin cd command continue declare dirs disown eval exec exit export false getopts
    jobs let local mapfile popd pushd pwd read readarray readonly return set shift shopt source test
    time times trap true type typeset ulimit umask unset wait
";

/// Wrappers that only run another command, which is judged itself.
const WRAPPERS: &str = "nice nohup stdbuf";

const ADVICE: &[(&str, &str)] = &[
    ("perl php lua", "`python3`, `node` and `ruby` pass, and so do `sed` and `awk`"),
    ("base64 xxd od hexdump", "`python3 -c` can encode and decode"),
    ("nc ncat telnet socat ssh scp rsync", "`curl` and `git` pass"),
    ("docker podman", "`docker-compose` passes"),
    ("vi vim nano emacs ed", "`sed -i` and `patch` change files"),
    ("yes seq", "`printf` passes, and so does a `for` loop"),
    ("zsh dash ksh fish", "`bash` and `sh` pass"),
];

pub(super) fn is_allowed(name: &str) -> bool {
    [PROGRAMS, SHELL, WRAPPERS].iter().any(|list| lists(list, name))
}

/// Returns whether a name is a word of a list.
fn lists(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

pub(super) fn advice(name: &str) -> &'static str {
    let listed = ADVICE.iter().find(|(names, _)| lists(names, name));
    listed.map_or(
        "a script of the project, run with `bash`, `make` or `npm run`, passes",
        |(_, advice)| advice,
    )
}
