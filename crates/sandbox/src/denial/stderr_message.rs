//! Error messages about files, as programs print them on stderr.
//!
//! The formats differ by program and runtime, so this works with phrases: the text of the error number in
//! C libraries and language runtimes, the paths near it, and words that tell reading from writing. The
//! intent decides whether a suggested policy line is `readable` or `writable`; a message without a known
//! word has intent [`Intent::Unknown`].

use super::message_paths;

/// A file error, by its error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileError {
    Access,
    NotPermitted,
    ReadOnly,
    Missing,
    CrossDevice,
    Busy,
}

impl FileError {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Access => "EACCES",
            Self::NotPermitted => "EPERM",
            Self::ReadOnly => "EROFS",
            Self::Missing => "ENOENT",
            Self::CrossDevice => "EXDEV",
            Self::Busy => "EBUSY",
        }
    }
}

/// The operation that the program attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Write,
    Unknown,
}

/// An error message about one or two paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StderrMessage {
    pub(super) error: FileError,
    pub(super) intent: Intent,
    /// The paths as written, which may be relative.
    pub(super) paths: Vec<String>,
}

/// Error phrases of C libraries and language runtimes, in lower case.
const ERROR_PHRASES: [(&str, FileError); 11] = [
    ("permission denied", FileError::Access),
    ("accessdeniedexception", FileError::Access),
    ("operation not permitted", FileError::NotPermitted),
    ("read-only file system", FileError::ReadOnly),
    ("no such file", FileError::Missing),
    ("nosuchfileexception", FileError::Missing),
    ("directory nonexistent", FileError::Missing),
    ("invalid cross-device link", FileError::CrossDevice),
    ("cross-device link not permitted", FileError::CrossDevice),
    ("device or resource busy", FileError::Busy),
    ("resource busy or locked", FileError::Busy),
];

/// Programs, calls and verbs that only read.
const READING: &str = "
    reading read stat statx lstat access readdir opendir scandir readlink chdir cd cat head
    tail grep rg ls find diff wc awk less exec interpreter run
";

/// Programs, calls and verbs that write.
const WRITING: &str = "
    create creating touch mkdir rm rmdir remove removing unlink rename renaming move moving
    mv write writing output lock temporary truncate delete changing chmod chown utime copy
    copyfile link symlink mknod ln tee gzip install save append overwrite update
";

/// Parses a line of stderr. `previous` is the last line with a message: some programs name the file there
/// and print the error on a line of its own.
pub(super) fn read(line: &str, previous: &str) -> Option<StderrMessage> {
    let small = line.to_ascii_lowercase();
    let (start, words, error) = ERROR_PHRASES
        .iter()
        .find_map(|(words, error)| Some((small.find(words)?, words, *error)))?;
    let mut paths = message_paths::paths(line, start..start + words.len());
    let mut context = small.clone();
    if paths.is_empty() && is_alone(&small[..start]) {
        paths = message_paths::at_the_end(previous);
        context.push(' ');
        context.push_str(&previous.to_ascii_lowercase());
    }
    if paths.is_empty() {
        return None;
    }
    let context = context.replace(words, " ");
    let context = paths
        .iter()
        .fold(context, |context, path| context.replace(&path.to_ascii_lowercase(), " "));
    let intent = if error == FileError::ReadOnly { Intent::Write } else { intent(&context) };
    let paths = created_paths(paths, &context);
    Some(StderrMessage { error, intent, paths })
}

/// Returns whether at most the number of a cause in a list precedes the error phrase.
fn is_alone(before: &str) -> bool {
    before.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | ':'))
}

fn intent(context: &str) -> Intent {
    let has = |known: &str| {
        let mut words = context.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| known.split_whitespace().any(|known| known == word))
    };
    match (has(READING), has(WRITING)) {
        (true, _) => Intent::Read,
        (false, true) => Intent::Write,
        (false, false) => Intent::Unknown,
    }
}

/// Removes the path that is only the source of a copy or the target of a symbolic link.
fn created_paths(mut paths: Vec<String>, context: &str) -> Vec<String> {
    if paths.len() == 2 && context.contains("copy") {
        paths.remove(0);
    } else if paths.len() == 2 && context.contains("symbolic link") {
        paths.truncate(1);
    }
    paths
}
