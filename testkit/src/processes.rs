//! The processes of this machine, for tests that nothing is left running. A test gives its commands a unique
//! argument and counts the processes that still have it.
#![expect(clippy::disallowed_methods, reason = "what is in /proc is in no workspace")]

/// Counts the processes whose command line contains a text.
#[must_use]
pub fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}
