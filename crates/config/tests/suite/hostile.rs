use std::path::Path;

use carrel_config::{ValidationScope, Workflow};
use proptest::prelude::*;

use crate::environment;

const VALID: &str = "---
tracker: {kind: linear, provider: {api_key: $LINEAR_API_KEY, project_slug: p}}
workspace:
  root: ~/ws
  quota_gb: 1.5
hooks:
  after_create: |
    echo Å х 入
  env: [A, B]
agent: {max_concurrent_agents_by_state: {todo: 1}}
codex: {approval_policy: {reject: {rules: true}}}
---
{% if issue.title %}{{ issue.title | upcase }}{% else %}入{% endif %}
";

/// Pieces that mean something to one of the parsers.
const PIECES: &[&str] = &[
    "---",
    "\n",
    "\r\n",
    "\t",
    "  ",
    ": ",
    "- ",
    "? ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!!x ",
    "|",
    ">",
    "'",
    "\"",
    "#",
    "%",
    "<<: ",
    "\0",
    "\u{feff}",
    "{{",
    "}}",
    "{%",
    "%}",
    "if ",
    "endif",
    "for x in (1..9)",
    "99999999999999999999",
    "$HOME",
    "~",
    "a",
    "入",
    "tracker",
    "hooks:",
    "workspace:",
    "root:",
    "null",
    "\\",
];

fn load(bytes: &[u8]) {
    for scope in [ValidationScope::Everything, ValidationScope::WorkspaceAndHooks] {
        let loaded = Workflow::parse(bytes, Path::new("/w/W.md"), &environment(), scope);
        if let Err(error) = loaded {
            assert!(!error.problems().is_empty());
            assert!(!error.to_string().is_empty());
        }
    }
}

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_the_loader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        load(&bytes);
    }

    #[test]
    fn no_front_matter_makes_the_loader_panic(yaml in pieces(), prompt in pieces()) {
        load(format!("---\n{yaml}\n---\n{prompt}").as_bytes());
    }

    #[test]
    fn no_mutation_of_a_good_file_makes_the_loader_panic(
        at in 0..VALID.len(),
        length in 0_usize..20,
        piece in pieces(),
    ) {
        let mut bytes = VALID.as_bytes().to_vec();
        bytes.splice(at..(at + length).min(VALID.len()), piece.into_bytes());
        load(&bytes);
    }
}

#[test]
fn huge_and_nested_files_are_answered() {
    for text in [
        format!("---\n{}", "[".repeat(900_000)),
        format!("---\n{}", "a:\n ".repeat(200_000)),
        format!("---\nhooks: {{before_run: '{}'}}\n---\n", "x".repeat(1_000_000)),
        format!("---\na: {}\n", "&a [*a, ".repeat(50_000)),
        "{{ ".repeat(5_000),
        " x".repeat(50_000),
        format!("x{}x", " ".repeat(200_000)),
        "{% if x %}".repeat(90_000),
    ] {
        load(text.as_bytes());
    }
}
