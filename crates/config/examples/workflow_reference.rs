//! Prints the guide to workflow files: `docs/workflow.md`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(carrel_config::reference_markdown().as_bytes())
}
