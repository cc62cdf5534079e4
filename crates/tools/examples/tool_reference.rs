//! Prints the guide to the tools: `docs/tools.md`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(carrel_tools::tool_reference_markdown().as_bytes())
}
