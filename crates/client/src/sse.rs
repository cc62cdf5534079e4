//! Decoder of server-sent events.
//!
//! Chunks of a body end anywhere, also inside a character or between CR and LF. The decoder keeps the
//! unfinished line and event between chunks. `retry` and comments are ignored.

use carrel_domain::ByteSize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge;

#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was CR; an LF after it is part of the same line end.
    after_return: bool,
    frame: SseEvent,
    /// Bytes of the unfinished event. Comments do not count, so that heartbeats cannot fill it.
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

    /// Decodes a chunk, and returns the events that it completes.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, EventTooLarge> {
        let mut complete = Vec::new();
        for byte in chunk {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                byte => {
                    self.line.push(*byte);
                    self.length += 1;
                    if self.length > self.limit {
                        return Err(EventTooLarge);
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
            // A comment, or a field that is not used here.
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
        fn events_do_not_depend_on_the_chunks(cuts in prop::collection::vec(0..STREAM.len(), 0..9)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(STREAM.len());
            let mut frames = SseDecoder::new(ByteSize::mib(1));
            let mut begin = 0;
            let mut decoded = Vec::new();
            for end in cuts {
                decoded.extend(frames.take(&STREAM.as_bytes()[begin..end]).unwrap());
                begin = end;
            }
            prop_assert_eq!(decoded, expected());
        }
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let mut frames = SseDecoder::new(ByteSize::bytes(100));
        for _ in 0..50 {
            assert_eq!(frames.take(b": still here\n\n"), Ok(vec![]));
        }
        assert_eq!(frames.take(&[b'x'; 101]), Err(EventTooLarge));
        let mut frames = SseDecoder::new(ByteSize::bytes(100));
        let taken: Result<Vec<_>, _> = (0..50).map(|_| frames.take(b"data: abc\n")).collect();
        assert_eq!(taken, Err(EventTooLarge));
    }
}
