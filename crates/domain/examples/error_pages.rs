//! Writes `docs/errors/`, one page for each error code and an index.
#![expect(clippy::disallowed_methods, reason = "documentation is no workspace file")]

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    fs::create_dir_all(&directory)?;
    let pages = carrel_domain::error_pages();
    for entry in fs::read_dir(&directory)? {
        let name = entry?.file_name();
        // A page whose code is gone.
        if !pages.iter().any(|(page, _)| name == page.as_str()) {
            fs::remove_file(directory.join(name))?;
        }
    }
    pages.iter().try_for_each(|(name, text)| fs::write(directory.join(name), text))
}
