//! What a program says when the kernel refuses it a file.

use super::message_paths;

/// An error that has to do with files.
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

/// What the program was about to do with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Write,
    Unknown,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorMessage {
    pub(super) error: FileError,
    pub(super) intent: Intent,
    /// The paths, as they are written.
    pub(super) paths: Vec<String>,
}

/// The words for an error, in small letters, in C libraries and the runtimes of languages.
const WORDS: [(&str, FileError); 11] = [
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

/// Programs, calls and verbs that only look.
const READING: &[&str] = &[
    "reading",
    "read",
    "stat",
    "statx",
    "lstat",
    "access",
    "readdir",
    "opendir",
    "scandir",
    "readlink",
    "chdir",
    "cd",
    "cat",
    "head",
    "tail",
    "grep",
    "rg",
    "ls",
    "find",
    "diff",
    "wc",
    "awk",
    "less",
    "exec",
    "interpreter",
    "run",
];

/// Programs, calls and verbs that change something.
const WRITING: &[&str] = &[
    "create",
    "creating",
    "touch",
    "mkdir",
    "rm",
    "rmdir",
    "remove",
    "removing",
    "unlink",
    "rename",
    "renaming",
    "move",
    "moving",
    "mv",
    "write",
    "writing",
    "output",
    "lock",
    "temporary",
    "truncate",
    "delete",
    "changing",
    "chmod",
    "chown",
    "utime",
    "copy",
    "copyfile",
    "link",
    "symlink",
    "mknod",
    "ln",
    "tee",
    "gzip",
    "install",
    "save",
    "append",
    "overwrite",
    "update",
];

/// Reads a line of stderr. `previous` is the line before it that said something; some programs
/// name the file there and the error by itself.
pub(super) fn read(line: &str, previous: &str) -> Option<ErrorMessage> {
    let small = line.to_ascii_lowercase();
    let (start, words, error) =
        WORDS.iter().find_map(|(words, error)| Some((small.find(words)?, words, *error)))?;
    let mut paths = message_paths::paths(line, start..start + words.len());
    let mut told = small.clone();
    if paths.is_empty() && is_alone(&small[..start]) {
        paths = message_paths::at_the_end(previous);
        told.push(' ');
        told.push_str(&previous.to_ascii_lowercase());
    }
    if paths.is_empty() {
        return None;
    }
    let told = told.replace(words, " ");
    let told = paths.iter().fold(told, |told, path| told.replace(&path.to_ascii_lowercase(), " "));
    let intent = if error == FileError::ReadOnly { Intent::Write } else { intent(&told) };
    let paths = only_the_new(paths, &told);
    Some(ErrorMessage { error, intent, paths })
}

/// Returns whether nothing but a number in a list of causes stands before the words.
fn is_alone(before: &str) -> bool {
    before.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | ':'))
}

fn intent(told: &str) -> Intent {
    let has = |known: &[&str]| {
        told.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| known.contains(&word))
    };
    match (has(READING), has(WRITING)) {
        (true, _) => Intent::Read,
        (false, true) => Intent::Write,
        (false, false) => Intent::Unknown,
    }
}

/// Leaves out what is only copied from or pointed to.
fn only_the_new(mut paths: Vec<String>, told: &str) -> Vec<String> {
    if paths.len() == 2 && told.contains("copy") {
        paths.remove(0);
    } else if paths.len() == 2 && told.contains("symbolic link") {
        paths.truncate(1);
    }
    paths
}
