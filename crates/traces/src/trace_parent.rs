//! The W3C `traceparent`: the identity of a span across processes.
//!
//! Carrel accepts the header on requests, stores it with a task, and sends it to workers, so that the
//! spans of all processes join one trace. A header that does not parse is ignored, as the specification demands, and
//! the work begins a trace of its own.

use std::fmt;
use std::str::FromStr;

/// Characters of version 00 of the header. Later versions may append fields after a dash.
const LENGTH: usize = 55;

/// The bit of the flags that marks a sampled trace.
const SAMPLED: u8 = 1;

/// A span's identity: trace id, span id and sampling decision. It is written and parsed in the form of
/// the header, `00-<trace>-<span>-<flags>`; neither id is ever zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    pub(crate) sampled: bool,
}

/// The text is not a `traceparent` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a traceparent: one looks like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)]
pub struct InvalidTraceParent;

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, sampled } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(*sampled))
    }
}

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        parse(text).ok_or(InvalidTraceParent)
    }
}

fn parse(text: &str) -> Option<TraceParent> {
    let head = text.get(..LENGTH)?;
    let mut parts = head.split('-');
    let version = hex(parts.next()?, 2)?;
    let trace = hex(parts.next()?, 32)?;
    let span = hex(parts.next()?, 16)?;
    let flags = hex(parts.next()?, 2)?;
    let rest = &text[LENGTH..];
    let is_known = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let span = u64::try_from(span).ok()?;
    let flags = u8::try_from(flags).ok()?;
    let usable = is_known && trace != 0 && span != 0 && parts.next().is_none();
    usable.then_some(TraceParent { trace, span, sampled: flags & SAMPLED != 0 })
}

/// Reads exactly this many hexadecimal digits; the specification allows lower case only.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let right = text.len() == digits && text.bytes().all(plain);
    right.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

pub(crate) fn new_span_id() -> u64 {
    u64::from_le_bytes(random()).max(1)
}

pub(crate) fn new_trace_id() -> u128 {
    u128::from_le_bytes(random()).max(1)
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The kernel always has random bytes after boot. If the call failed, ids would repeat and traces
    // would be mixed up, which is no reason to fail the work.
    let _ = getrandom::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    const KNOWN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn headers_are_parsed_by_the_table() {
        let parent = TraceParent {
            trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span: 0x00f0_67aa_0ba9_02b7,
            sampled: true,
        };
        let later = KNOWN.replacen("00", "cc", 1);
        for text in [KNOWN, &later, &format!("{later}-what-comes-later")] {
            assert_eq!(text.parse(), Ok(parent), "{text}");
        }
        let unsampled = TraceParent { sampled: false, ..parent };
        for flags in ["00", "02", "fe"] {
            assert_eq!(format!("{}{flags}", &KNOWN[..53]).parse(), Ok(unsampled), "{flags}");
        }
        for text in [
            "",
            "00",
            &KNOWN[..54],
            &format!("{KNOWN}-"),
            &format!("{KNOWN}0"),
            &format!("{later}0"),
            &KNOWN.replacen("00", "ff", 1),
            &KNOWN.to_uppercase(),
            &KNOWN.replace('-', "_"),
            &KNOWN.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &KNOWN.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &KNOWN.replace("4bf9", "+bf9"),
            &KNOWN.replace("4bf9", "ä4b"),
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(InvalidTraceParent), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_formatted_header_parses_to_the_same_value(trace in 1u128.., span in 1u64.., sampled: bool) {
            let parent = TraceParent { trace, span, sampled };
            prop_assert_eq!(parent.to_string().parse(), Ok(parent));
        }

        #[test]
        fn no_text_panics_the_parser(text in ".{0,80}") {
            let _ = text.parse::<TraceParent>();
        }
    }
}
