//! Text for a terminal: stripping of control characters, widths, links, numbers and durations.

use std::time::Duration;

use carrel_domain::Timestamp;

/// Removes everything that a terminal interprets instead of showing: control characters, escape
/// sequences, and characters that change the direction of text.
pub(super) fn strip_control(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => skip_sequence(&mut rest),
            '\t' | '\n' | '\r' => kept.push(' '),
            c if c.is_control() || is_bidi_control(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next() {
        // CSI: parameters up to a final byte.
        Some('[') => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
        // OSC, DCS and the like: a string up to BEL or ST.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(c) = rest.next() {
                if c == '\x07' || (c == '\x1b' && rest.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        _ => {}
    }
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns the width of a character in columns: 2 for East Asian wide characters and emoji, 0 for
/// combining marks.
pub(super) fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x200B..=0x200D | 0x20D0..=0x20F0 | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Returns a URL if it is `http` or `https` with a host and plain ASCII; other schemes could run code.
pub(super) fn web_link(url: &str) -> Option<&str> {
    let plain = url.chars().all(|c| c.is_ascii_graphic());
    let (scheme, rest) = url.split_once("://")?;
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    (plain && web && !host.is_empty()).then_some(url)
}

/// Formats a count with the suffix `k` or `M`.
pub(super) fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{:02}M", number / 1_000_000, number % 1_000_000 / 10_000),
    }
}

pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats the time of day in UTC.
pub(super) fn time_of_day(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('T').map_or(String::new(), |(_, time)| time.chars().take(8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_134_only_pages_of_the_web_are_links() {
        for good in ["https://example.org/CAR-1", "http://localhost:8080/x?y#z", "HTTPS://a.b"] {
            assert_eq!(web_link(good), Some(good));
        }
        let bad = [
            "javascript:alert(1)",
            "JavaScript://example.org/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "https://",
            "https:///path",
            "//example.org",
            "https://example.org/\x1b]8;;",
            "https://example.org/a b",
            "",
        ];
        for bad in bad {
            assert_eq!(web_link(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(strip_control("a\x1b[31mred\x1b[0m b"), "ared b");
        assert_eq!(strip_control("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\y"), "xy");
        assert_eq!(strip_control("one\ntwo\r\tthree\0\u{9b}31m\u{202e}"), "one two  three31m");
        assert_eq!(strip_control("cut off \x1b["), "cut off ");
        assert_eq!(strip_control("a, b, été 入"), "a, b, été 入");
    }

    #[test]
    fn figures_are_short() {
        let counts = [0, 999, 1000, 12_345, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1.0k", "12.3k", "1.23M"]);
        let lengths = [5, 65, 3700].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(lengths, ["5s", "1m 05s", "1h 01m"]);
        assert_eq!(time_of_day(Timestamp::from_millis(1_700_000_000_123)), "22:13:20");
    }
}
