//! Prints the guide to policy files: `docs/policy.md`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(carrel_config::policy_reference_markdown().as_bytes())
}
