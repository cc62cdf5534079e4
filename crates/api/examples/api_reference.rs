//! Prints the API as a document: `docs/openapi.json`, or with `--markdown` `docs/api.md`.

use std::io::{self, Write as _};

use carrel_api::openapi::{document, markdown};
use carrel_service::repository::DEFAULT_HOSTS;

fn main() -> io::Result<()> {
    let document = document(&DEFAULT_HOSTS.map(str::to_owned));
    let text = match std::env::args().nth(1).as_deref() {
        Some("--markdown") => markdown(&document),
        _ => format!("{document:#}\n"),
    };
    io::stdout().write_all(text.as_bytes())
}
