//! The language and media type of a file by its name, for clients that show files.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use carrel_fsroot::Metadata;
use carrel_wire::{DirectoryEntry, EntryType, FileContent};

/// Extensions, language, media type.
const EXTENSIONS: &[(&str, &str, &str)] = &[
    ("py", "python", "text/x-python"),
    ("js jsx", "javascript", "text/javascript"),
    ("ts tsx", "typescript", "text/typescript"),
    ("json", "json", "application/json"),
    ("yaml yml", "yaml", "application/yaml"),
    ("md", "markdown", "text/markdown"),
    ("html htm", "html", "text/html"),
    ("css", "css", "text/css"),
    ("scss", "scss", "text/x-scss"),
    ("sql", "sql", "application/sql"),
    ("sh bash zsh", "shell", "application/x-sh"),
    ("rs", "rust", "text/x-rust"),
    ("go", "go", "text/x-go"),
    ("java", "java", "text/x-java"),
    ("c h", "c", "text/x-c"),
    ("cpp hpp", "cpp", "text/x-c++"),
    ("rb", "ruby", "text/x-ruby"),
    ("php", "php", "application/x-php"),
    ("xml", "xml", "application/xml"),
    ("toml", "toml", "application/toml"),
    ("ini cfg", "ini", "text/plain"),
    ("env", "dotenv", "text/plain"),
    ("dockerfile", "dockerfile", "text/plain"),
    ("r", "r", "text/x-r"),
    ("swift", "swift", "text/x-swift"),
    ("kt", "kotlin", "text/x-kotlin"),
    ("lua", "lua", "text/x-lua"),
];

const NAMES: &[(&str, &str, &str)] = &[
    ("dockerfile", "dockerfile", "text/plain"),
    ("makefile", "makefile", "text/x-makefile"),
    (".env", "dotenv", "text/plain"),
];

/// Returns a file and its content, with the language and media type that its name implies.
pub(super) fn file(path: &Path, shown: &str, content: &str) -> FileContent {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (language, mime_type) = kind(path, &name);
    FileContent {
        path: shown.to_owned(),
        name: name.into_owned(),
        content: content.to_owned(),
        size: content.len() as u64,
        language: language.to_owned(),
        mime_type: mime_type.to_owned(),
    }
}

fn kind(path: &Path, name: &str) -> (&'static str, &'static str) {
    let suffix = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.to_lowercase();
    let by_name = NAMES.iter().find(|(known, ..)| *known == name);
    let found = by_name.or_else(|| {
        EXTENSIONS.iter().find(|(known, ..)| known.split(' ').any(|one| one == suffix))
    });
    found.map_or(("plaintext", "text/plain"), |(_, language, mime)| (language, mime))
}

/// Returns an entry of a directory. Without metadata (the entry vanished meanwhile) its size is 0.
pub(super) fn entry(
    name: &str,
    path: String,
    kind: EntryType,
    metadata: Option<&Metadata>,
) -> DirectoryEntry {
    let size = metadata.filter(|_| kind != EntryType::Directory).map_or(0, |found| found.size);
    DirectoryEntry {
        name: name.to_owned(),
        path,
        r#type: kind,
        size,
        modified_at: metadata.map(|metadata| seconds(metadata.modified)),
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn languages_are_found_by_extension_or_name_in_any_case() {
        let table = [
            ("src/main.py", "python"),
            ("A.TSX", "typescript"),
            ("Dockerfile", "dockerfile"),
            (".env", "dotenv"),
            ("Makefile", "makefile"),
            ("notes", "plaintext"),
            ("x.unknown", "plaintext"),
        ];
        for (path, language) in table {
            assert_eq!(file(Path::new(path), path, "").language, language, "{path}");
        }
    }
}
