//! Compares two git configurations by their sensitive entries, and writes those of one back into the
//! other.
//!
//! A command may change `user.name` and add `core.hooksPath` in one file. Restoring the whole file would
//! undo ordinary work, so only the entries that `git_config_keys` names are compared and rewritten, and
//! every other byte stays. The result is parsed again; if it should not have the trusted entries, the
//! trusted file is restored as a whole.

use std::collections::BTreeMap;
use std::ops::Range;

use super::git_config::{ConfigEntry, Malformed, ParsedConfig, parse};
use super::git_config_keys;
use super::report::ChangeKind;

#[derive(Debug)]
pub(super) struct Config<'a> {
    bytes: &'a [u8],
    parsed: ParsedConfig,
    /// The depth of the file's directory below the workspace. Only `core.worktree` depends on it: a
    /// relative value must not climb out of the workspace.
    depth: usize,
}

/// The sensitive entries, by name. A name may have several values.
type SensitiveEntries<'a> = BTreeMap<&'a [u8], Vec<&'a ConfigEntry>>;

impl<'a> Config<'a> {
    /// Parses a configuration whose directory is `depth` levels below the workspace.
    pub(super) fn read(bytes: &'a [u8], depth: usize) -> Result<Self, Malformed> {
        Ok(Self { bytes, parsed: parse(bytes)?, depth })
    }

    /// Returns all values of the names that `wanted` accepts.
    pub(super) fn values(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<&[u8]> {
        let entries = self.parsed.entries.iter().filter(|entry| wanted(&entry.key));
        entries.filter_map(|entry| entry.value.as_deref()).collect()
    }

    /// Lists the names of sensitive entries that differ from a trusted configuration.
    pub(super) fn changes(&self, trusted: &Config<'_>) -> Vec<(ChangeKind, String)> {
        let old = trusted.sensitive_entries();
        let new = self.sensitive_entries();
        let mut changes = Vec::new();
        for (key, entries) in &old {
            match new.get(key) {
                None => changes.push((ChangeKind::Removed, trusted.shown(entries))),
                Some(now) if !same(entries, now) => {
                    changes.push((ChangeKind::Changed, self.shown(now)));
                }
                Some(_) => {}
            }
        }
        let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
        changes.extend(added.map(|(_, entries)| (ChangeKind::Added, self.shown(entries))));
        changes
    }

    /// Returns this file with the sensitive entries of a trusted one, and all else byte for byte as it is.
    pub(super) fn with_entries_of(&self, trusted: &Config<'_>) -> Vec<u8> {
        // Nothing else changed: the trusted file is the result, with its order.
        if self.without_sensitive_entries() == trusted.without_sensitive_entries() {
            return trusted.bytes.to_vec();
        }
        let text = self.rewritten(trusted);
        match Config::read(&text, self.depth) {
            Ok(result) if result.changes(trusted).is_empty() => text,
            // No known text gets here. The trusted entries matter more than the others.
            _ => trusted.bytes.to_vec(),
        }
    }

    fn rewritten(&self, trusted: &Config<'_>) -> Vec<u8> {
        let old = trusted.sensitive_entries();
        let new = self.sensitive_entries();
        let mut edits: Vec<(Range<usize>, &[u8])> = Vec::new();
        let mut missing: Vec<&ConfigEntry> = Vec::new();
        for (key, entries) in &new {
            let before = old.get(key).map_or(&[][..], Vec::as_slice);
            for (index, entry) in entries.iter().enumerate() {
                match before.get(index) {
                    Some(was) if was.value == entry.value => {}
                    Some(was) => edits.push((entry.span.clone(), trusted.text(was))),
                    None => edits.push((line(self.bytes, &entry.span), b"")),
                }
            }
        }
        for (key, entries) in &old {
            let there = new.get(key).map_or(0, Vec::len);
            missing.extend(entries.iter().skip(there));
        }
        let mut text = replaced(self.bytes, edits);
        for entry in missing {
            append(&mut text, entry, trusted.text(entry));
        }
        text
    }

    /// Returns the text without sensitive entries and without sections that hold nothing else.
    fn without_sensitive_entries(&self) -> Vec<u8> {
        let sensitive = self.parsed.entries.iter().filter(|entry| self.is_sensitive(entry));
        let mut cuts: Vec<_> = sensitive.map(|entry| line(self.bytes, &entry.span)).collect();
        for (index, header) in self.parsed.sections.iter().enumerate() {
            let mut entries = self.parsed.entries.iter();
            if !entries.any(|entry| entry.section == Some(index) && !self.is_sensitive(entry)) {
                cuts.push(line(self.bytes, header));
            }
        }
        replaced(self.bytes, cuts.into_iter().map(|cut| (cut, &b""[..])).collect())
    }

    fn is_sensitive(&self, entry: &ConfigEntry) -> bool {
        git_config_keys::is_sensitive(&entry.key, entry.value.as_deref(), self.depth)
    }

    fn sensitive_entries(&self) -> SensitiveEntries<'_> {
        let mut sensitive_entries = SensitiveEntries::new();
        for entry in self.parsed.entries.iter().filter(|entry| self.is_sensitive(entry)) {
            sensitive_entries.entry(&entry.key).or_default().push(entry);
        }
        sensitive_entries
    }

    fn text(&self, entry: &ConfigEntry) -> &[u8] {
        &self.bytes[entry.span.clone()]
    }

    /// Returns the name with the case of its last part as in the file.
    fn shown(&self, entries: &[&ConfigEntry]) -> String {
        let Some(entry) = entries.first() else { return String::new() };
        let length = last_part(&entry.key).len();
        let written = self.text(entry).get(..length).unwrap_or_default();
        let mut key = entry.key[..entry.key.len() - length].to_vec();
        key.extend_from_slice(written);
        String::from_utf8_lossy(&key).into_owned()
    }
}

fn same(old: &[&ConfigEntry], new: &[&ConfigEntry]) -> bool {
    old.iter().map(|entry| &entry.value).eq(new.iter().map(|entry| &entry.value))
}

fn last_part(key: &[u8]) -> &[u8] {
    key.rsplit(|byte| *byte == b'.').next().unwrap_or_default()
}

/// Widens a range to its whole line, if only white space precedes it.
fn line(bytes: &[u8], span: &Range<usize>) -> Range<usize> {
    let before = &bytes[..span.start];
    let blank = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let start = span.start - blank;
    if start > 0 && bytes[start - 1] != b'\n' {
        return span.clone();
    }
    match &bytes[span.end..] {
        [b'\r', b'\n', ..] => start..span.end + 2,
        [b'\n', ..] => start..span.end + 1,
        [] => start..span.end,
        // A header with an entry behind it on the same line.
        _ => span.clone(),
    }
}

fn replaced(bytes: &[u8], mut edits: Vec<(Range<usize>, &[u8])>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for (range, with) in edits {
        text.extend_from_slice(&bytes[at..range.start]);
        text.extend_from_slice(with);
        at = range.end;
    }
    text.extend_from_slice(&bytes[at..]);
    text
}

/// Appends an entry below a section header of its own.
fn append(text: &mut Vec<u8>, entry: &ConfigEntry, written: &[u8]) {
    let name = last_part(&entry.key);
    let base = &entry.key[..entry.key.len() - name.len()];
    let base = base.strip_suffix(b".").unwrap_or(base);
    let mut parts = base.splitn(2, |byte| *byte == b'.');
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.push(b'[');
    text.extend_from_slice(parts.next().unwrap_or_default());
    if let Some(subsection) = parts.next() {
        text.extend_from_slice(b" \"");
        for byte in subsection {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.push(b'"');
    }
    text.extend_from_slice(b"]\n\t");
    text.extend_from_slice(written);
    text.push(b'\n');
}

#[cfg(test)]
mod tests;
