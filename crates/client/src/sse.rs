//! ServerUrl-sent events, as they come over the wire.

use carrel_domain::ByteSize;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// An event that is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Puts events together from pieces that end anywhere.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    /// The line that is being read.
    line: Vec<u8>,
    /// The last byte was a CR; an LF behind it belongs to it.
    after_return: bool,
    frame: SseEvent,
    /// Bytes of the frame so far.
    length: usize,
}

impl SseDecoder {
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self {
            limit: usize::try_from(limit.as_u64()).unwrap_or(usize::MAX),
            line: Vec::new(),
            after_return: false,
            frame: SseEvent::default(),
            length: 0,
        }
    }

    /// Takes a piece, and returns the events that it completes.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut complete = Vec::new();
        for byte in piece {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                byte => {
                    self.line.push(*byte);
                    self.length += 1;
                    if self.length > self.limit {
                        return Err(TooLong);
                    }
                }
            }
        }
        Ok(complete)
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.length = 0;
            let frame = std::mem::take(&mut self.frame);
            return (!frame.data.is_empty()).then_some(frame);
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.frame.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.frame.event),
            "data" => {
                if !self.frame.data.is_empty() {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            // A comment, or something that is not used here.
            _ => self.length -= line.len().min(self.length),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    const STREAM: &str = ": connected\n\nid: 1\nevent: log_line\ndata: {\"a\":\ndata: 1}\n\n: still here\r\n\r\nid:2\r\nevent:error\r\ndata:x\r\nretry: 5\r\n\r\nevent: unfinished\n";

    fn expected() -> Vec<SseEvent> {
        let frame = |id: &str, event: &str, data: &str| SseEvent {
            id: Some(id.to_owned()),
            event: event.to_owned(),
            data: data.to_owned(),
        };
        vec![frame("1", "log_line", "{\"a\":\n1}"), frame("2", "error", "x")]
    }

    proptest! {
        #[test]
        fn events_are_the_same_wherever_the_pieces_end(cuts in prop::collection::vec(0..STREAM.len(), 0..9)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(STREAM.len());
            let mut frames = SseDecoder::new(ByteSize::mib(1));
            let (mut begin, mut found) = (0, Vec::new());
            for end in cuts {
                found.extend(frames.take(&STREAM.as_bytes()[begin..end]).unwrap());
                begin = end;
            }
            prop_assert_eq!(found, expected());
        }
    }

    #[test]
    fn what_never_ends_is_given_up() {
        let mut frames = SseDecoder::new(ByteSize::bytes(100));
        for _ in 0..50 {
            assert_eq!(frames.take(b": still here\n\n"), Ok(vec![]));
        }
        assert_eq!(frames.take(&[b'x'; 101]), Err(TooLong));
        let mut frames = SseDecoder::new(ByteSize::bytes(100));
        let taken: Result<Vec<_>, _> = (0..50).map(|_| frames.take(b"data: abc\n")).collect();
        assert_eq!(taken, Err(TooLong));
    }
}
