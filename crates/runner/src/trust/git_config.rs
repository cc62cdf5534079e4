//! A parser for git configuration files that keeps the position of every entry.
//!
//! The rules are those of git's own parser: section names and old-form subsections fold case, quoted
//! subsections do not; a value ends with its line unless a backslash continues it; a comment starts at
//! `#` or `;` outside quotes; a byte order mark may come first. What git refuses is refused here, and so
//! is a NUL byte: git cuts names at it, so that the text would not mean what it shows. A test compares
//! both parsers on random files.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigEntry {
    /// The full name as git compares it: `core.hookspath`, `filter.LFS.clean`.
    pub(super) key: Vec<u8>,
    /// The value without quotes, escapes and comments; `None` when there is no `=`.
    pub(super) value: Option<Vec<u8>>,
    /// From the first byte of the name to the end of its last line, without the line end.
    pub(super) span: Range<usize>,
    /// The index of its section; `None` before the first one.
    pub(super) section: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedConfig {
    pub(super) entries: Vec<ConfigEntry>,
    /// The byte ranges of the section headers, brackets included.
    pub(super) sections: Vec<Range<usize>>,
}

/// The file is one that git refuses, or reads other than it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The UTF-8 byte order mark, which git skips at the start.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn parse(bytes: &[u8]) -> Result<ParsedConfig, Malformed> {
    if bytes.contains(&0) {
        return Err(Malformed);
    }
    let start = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut reader = Reader { bytes, at: start, ended: false };
    let mut parsed = ParsedConfig::default();
    let mut base = Vec::new();
    loop {
        let at = reader.at;
        match reader.next() {
            b'\n' if reader.ended => return Ok(parsed),
            b'#' | b';' => reader.skip_line(),
            b'[' => {
                base = reader.section()?;
                parsed.sections.push(at..reader.at);
            }
            first if is_space(first) => {}
            first if first.is_ascii_alphabetic() => {
                let section = parsed.sections.len().checked_sub(1);
                let entry = reader.entry(&base, first)?;
                parsed.entries.push(ConfigEntry { section, ..entry });
            }
            _ => return Err(Malformed),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    ended: bool,
}

impl Reader<'_> {
    /// Returns the next byte; a line end is `\n` however it is written, and so is the end.
    fn next(&mut self) -> u8 {
        let rest = &self.bytes[self.at..];
        let (byte, length) = match rest {
            [] => {
                self.ended = true;
                (b'\n', 0)
            }
            [b'\r', b'\n', ..] => (b'\n', 2),
            [byte, ..] => (*byte, 1),
        };
        self.at += length;
        byte
    }

    fn skip_line(&mut self) {
        while self.next() != b'\n' {}
        // The end is seen again by the caller.
        self.ended = false;
    }

    /// Reads what follows `[` and returns the beginning of the names below, dot included.
    fn section(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                _ if self.ended => return Err(Malformed),
                b']' => break,
                b'\n' => return Err(Malformed),
                space if is_space(space) => {
                    self.subsection(&mut name)?;
                    break;
                }
                byte if is_name(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Malformed),
            }
        }
        if name.is_empty() {
            return Err(Malformed);
        }
        name.push(b'.');
        Ok(name)
    }

    /// Reads a quoted subsection and the bracket behind it.
    fn subsection(&mut self, name: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut byte = self.next();
        while is_space(byte) && byte != b'\n' {
            byte = self.next();
        }
        if byte != b'"' {
            return Err(Malformed);
        }
        name.push(b'.');
        loop {
            let byte = match self.next() {
                b'"' => break,
                b'\\' => self.next(),
                byte => byte,
            };
            if byte == b'\n' {
                return Err(Malformed);
            }
            name.push(byte);
        }
        if self.next() == b']' { Ok(()) } else { Err(Malformed) }
    }

    /// Reads an entry whose first letter has been read. Its section is for the caller to say.
    fn entry(&mut self, base: &[u8], first: u8) -> Result<ConfigEntry, Malformed> {
        let start = self.at - 1;
        let mut key = base.to_vec();
        key.push(first.to_ascii_lowercase());
        let mut end = self.at;
        let mut byte = self.next();
        while is_name(byte) {
            key.push(byte.to_ascii_lowercase());
            end = self.at;
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            end = self.at;
            byte = self.next();
        }
        let (value, end) = match byte {
            b'\n' => (None, end),
            b'=' => self.value().map(|(value, end)| (Some(value), end))?,
            _ => return Err(Malformed),
        };
        self.ended = false;
        Ok(ConfigEntry { key, value, span: start..end, section: None })
    }

    fn value(&mut self) -> Result<(Vec<u8>, usize), Malformed> {
        let mut value = Vec::new();
        let mut quoted = false;
        let mut comment = false;
        // The length of the value without the white space at its end.
        let mut trimmed = None;
        loop {
            let end = self.at;
            let byte = self.next();
            match byte {
                b'\n' if quoted => return Err(Malformed),
                b'\n' => {
                    value.truncate(trimmed.unwrap_or(value.len()));
                    return Ok((value, end));
                }
                _ if comment => {}
                space if is_space(space) && !quoted => {
                    if !value.is_empty() {
                        trimmed.get_or_insert(value.len());
                        value.push(space);
                    }
                }
                b'#' | b';' if !quoted => comment = true,
                byte => {
                    trimmed = None;
                    match byte {
                        b'"' => quoted = !quoted,
                        b'\\' => value.extend(self.escape()?),
                        byte => value.push(byte),
                    }
                }
            }
        }
    }

    /// Reads what follows a backslash; a line end continues the value and adds nothing.
    fn escape(&mut self) -> Result<Option<u8>, Malformed> {
        match self.next() {
            b'\n' => Ok(None),
            b't' => Ok(Some(b'\t')),
            b'b' => Ok(Some(8)),
            b'n' => Ok(Some(b'\n')),
            byte @ (b'\\' | b'"') => Ok(Some(byte)),
            _ => Err(Malformed),
        }
    }
}

/// White space as git counts it: vertical tabs and form feeds are none.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests;
