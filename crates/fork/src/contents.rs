//! Comparing the contents of two files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The bytes of each file that are in memory.
const BUFFER: usize = 128 * 1024;

/// Returns whether two files have the same content.
pub fn are_equal(one: &File, other: &File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; BUFFER], vec![0; BUFFER]);
    let mut offset = 0;
    loop {
        let read = fill(one, &mut left, offset)?;
        if fill(other, &mut right, offset)? != read || left[..read] != right[..read] {
            return Ok(false);
        }
        if read < BUFFER {
            return Ok(true);
        }
        offset += read as u64;
    }
}

/// Fills a buffer; it is not full only at the end of the file.
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
