//! Reading a workflow file: its bytes, its stamp for change detection, and decoding to text.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::diagnostic::{Diagnostic, Position};
use crate::workflow_error::WorkflowError;

/// The largest workflow file, which bounds the memory and time of reading one.
pub const MAX_FILE_BYTES: usize = 1 << 20;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The metadata by which a changed file is detected without reading it.
///
/// It has the inode change time, which no program can set back, unlike the modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    changed_seconds: i64,
    changed_nanoseconds: i64,
    length: u64,
    inode: u64,
}

impl FileStamp {
    /// Returns the time since the last change; `None` if the clock was set back behind it.
    pub(crate) fn age(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.changed_seconds).ok()?;
        let nanoseconds = u32::try_from(self.changed_nanoseconds).ok()?;
        let changed = UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))?;
        SystemTime::now().duration_since(changed).ok()
    }
}

/// Reads the stamp without opening the file, so that a FIFO cannot block.
#[expect(clippy::disallowed_methods, reason = "the workflow file lies outside every workspace")]
pub(crate) fn stamp(path: &Path) -> Result<FileStamp, WorkflowError> {
    let metadata = std::fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if !metadata.is_file() {
        return Err(WorkflowError::NotAFile { file: path.to_owned() });
    }
    Ok(FileStamp {
        changed_seconds: metadata.ctime(),
        changed_nanoseconds: metadata.ctime_nsec(),
        length: metadata.len(),
        inode: metadata.ino(),
    })
}

/// Reads a workflow file, at most one byte more than [`MAX_FILE_BYTES`]; the decoder reports that byte.
#[expect(clippy::disallowed_methods, reason = "the workflow file lies outside every workspace")]
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, WorkflowError> {
    stamp(path)?;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|source| unreadable(path, source))?;
    Ok(bytes)
}

fn unreadable(path: &Path, source: io::Error) -> WorkflowError {
    WorkflowError::Unreadable { file: path.to_owned(), source }
}

/// The text of a file, without a byte order mark.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DecodedText<'a> {
    pub(crate) content: &'a str,
    pub(crate) has_byte_order_mark: bool,
}

/// Decodes bytes that are text: within the limit, valid UTF-8, no NUL.
pub(crate) fn decode(bytes: &[u8]) -> Result<DecodedText<'_>, Diagnostic> {
    if bytes.len() > MAX_FILE_BYTES {
        let message = format!("the file is larger than {MAX_FILE_BYTES} bytes");
        return Err(Diagnostic { position: None, key: None, message });
    }
    let text = str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    // The YAML scanner takes NUL for the end of its input and would ignore what follows.
    if let Some(index) = text.find('\0') {
        return Err(Diagnostic::at(
            Position::after(&text[..index]),
            "the file contains a NUL byte",
        ));
    }
    let content = text.strip_prefix(BYTE_ORDER_MARK);
    Ok(DecodedText { content: content.unwrap_or(text), has_byte_order_mark: content.is_some() })
}

fn not_utf8(bytes: &[u8], valid: usize) -> Diagnostic {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let message = format!(
        "byte {} of the file (0x{:02x}) is not valid UTF-8; save the file as UTF-8",
        valid + 1,
        bytes[valid]
    );
    Diagnostic::at(Position::after(&before), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> (Option<(usize, usize)>, String) {
        let diagnostic = decode(bytes).unwrap_err();
        (diagnostic.position.map(|p| (p.line, p.column)), diagnostic.message)
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_with_their_position() {
        let (position, message) = refusal(b"one\n\xc3\xa9 \xff two");
        assert_eq!(position, Some((2, 3)));
        assert!(message.starts_with("byte 8 of the file (0xff)"), "{message}");
    }

    #[test]
    fn a_nul_and_a_huge_file_are_refused() {
        assert_eq!(refusal(b"a\nb\0c"), (Some((2, 2)), "the file contains a NUL byte".into()));
        assert_eq!(refusal(&vec![b'x'; MAX_FILE_BYTES + 1]).0, None);
        assert!(decode(&vec![b'x'; MAX_FILE_BYTES]).is_ok());
    }

    #[test]
    fn a_byte_order_mark_is_taken_off_and_remembered() {
        let text = decode("\u{feff}---\n".as_bytes()).unwrap();
        assert_eq!(text, DecodedText { content: "---\n", has_byte_order_mark: true });
    }
}
