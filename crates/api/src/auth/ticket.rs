//! Tickets for event streams.
//!
//! A browser's `EventSource` cannot send headers, so that its credentials are in the URL, where logs and
//! histories keep them. A ticket opens the event stream of one task, for a minute, and nothing else. It is a
//! workspace id, an expiry time and an HMAC over both and the task id; the server keeps no state for it.

use std::time::Duration;

use carrel_domain::{Secret, TaskId, Timestamp, WorkspaceId};

use super::error::{AuthError, RejectReason};
use super::jwt::{decode, encode};
use super::signing_key::{SIGNATURE_BYTES, SigningKey};

/// Lifetime of a ticket. An open stream may outlast it.
pub const TICKET_LIFETIME: Duration = Duration::from_mins(1);

/// The label that the key of tickets is derived with.
const PURPOSE: &str = "carrel: tickets for the event stream of a task, version 1";

const ID_BYTES: usize = 16;

/// Bytes of the workspace id and the expiry time.
const BODY_BYTES: usize = ID_BYTES + 8;

/// Characters of a ticket, which bound the work for garbage.
const MAX_CHARS: usize = (BODY_BYTES + SIGNATURE_BYTES) * 4 / 3 + 1;

/// Issues and verifies tickets.
#[derive(Clone, Debug)]
pub struct Tickets {
    key: SigningKey,
}

impl Tickets {
    pub(super) fn new(key: &SigningKey) -> Self {
        Self { key: key.derive(PURPOSE) }
    }

    /// Issues a ticket. The caller of this function has checked that the stream may be read.
    pub fn issue(&self, task: TaskId, workspace: WorkspaceId, now: Timestamp) -> Secret {
        let expires_at = now.after(TICKET_LIFETIME).as_millis().to_be_bytes();
        let body = [&workspace.to_bytes()[..], &expires_at].concat();
        let signature = self.key.sign(&signed(task, &body));
        Secret::new(encode(&[&body[..], &signature].concat()))
    }

    /// Returns the workspace of the task that a valid ticket opens.
    pub fn verify(
        &self,
        ticket: &str,
        task: TaskId,
        now: Timestamp,
    ) -> Result<WorkspaceId, AuthError> {
        self.open(ticket, task, now).map_err(AuthError::unauthenticated)
    }

    fn open(&self, text: &str, task: TaskId, now: Timestamp) -> Result<WorkspaceId, RejectReason> {
        let bytes = Some(text).filter(|text| text.len() <= MAX_CHARS).and_then(decode);
        let ticket: [u8; BODY_BYTES + SIGNATURE_BYTES] =
            bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(RejectReason::Malformed)?;
        let (body, signature) = ticket.split_at(BODY_BYTES);
        if !self.key.has_signed(&signed(task, body), signature) {
            return Err(RejectReason::Signature);
        }
        let (workspace, expires_at) = body.split_at(ID_BYTES);
        let expires_at = i64::from_be_bytes(expires_at.try_into().expect("the rest of the body"));
        if now >= Timestamp::from_millis(expires_at) {
            return Err(RejectReason::Expired);
        }
        Ok(WorkspaceId::from_bytes(workspace.try_into().expect("split at its length")))
    }
}

/// Returns the signed bytes: fields of fixed length, so that none can be mistaken for another. The task is not
/// in the ticket: the URL names it, and the signature covers it.
fn signed(task: TaskId, body: &[u8]) -> Vec<u8> {
    [&task.to_bytes()[..], body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn tickets() -> Tickets {
        Tickets::new(&SigningKey::new(b"0123456789abcdef0123456789abcdef"))
    }

    fn reason(answer: Result<WorkspaceId, AuthError>) -> Option<RejectReason> {
        answer.err().and_then(|error| error.reason())
    }

    #[test]
    fn a_ticket_opens_one_stream_for_a_minute() {
        let (task, workspace) = (TaskId::generate(), WorkspaceId::generate());
        let now = Timestamp::from_millis(1_700_000_000_000);
        let ticket = tickets().issue(task, workspace, now);
        let at = |millis| {
            tickets().verify(ticket.expose(), task, now.after(Duration::from_millis(millis)))
        };
        assert_eq!(at(0), Ok(workspace));
        assert_eq!(at(59_999), Ok(workspace));
        assert_eq!(reason(at(60_000)), Some(RejectReason::Expired));
    }

    #[test]
    fn a_ticket_for_another_task_or_of_another_key_is_refused() {
        let (task, workspace) = (TaskId::generate(), WorkspaceId::generate());
        let now = Timestamp::from_millis(0);
        let ticket = tickets().issue(task, workspace, now);
        let other = tickets().verify(ticket.expose(), TaskId::generate(), now);
        assert_eq!(reason(other), Some(RejectReason::Signature));
        let stranger = Tickets::new(&SigningKey::new(b"another"));
        assert_eq!(
            reason(stranger.verify(ticket.expose(), task, now)),
            Some(RejectReason::Signature)
        );
        // The undivided key signs tokens, not tickets.
        let undivided = Tickets { key: SigningKey::new(b"0123456789abcdef0123456789abcdef") };
        assert_eq!(
            reason(undivided.verify(ticket.expose(), task, now)),
            Some(RejectReason::Signature)
        );
    }

    #[test]
    fn no_changed_ticket_is_accepted() {
        let task = TaskId::generate();
        let now = Timestamp::from_millis(0);
        let ticket = tickets().issue(task, WorkspaceId::generate(), now).expose().to_owned();
        for at in 0..ticket.len() {
            let other = if &ticket[at..=at] == "A" { "B" } else { "A" };
            let changed = format!("{}{other}{}", &ticket[..at], &ticket[at + 1..]);
            assert!(tickets().verify(&changed, task, now).is_err(), "{changed}");
            assert!(tickets().verify(&ticket[..at], task, now).is_err());
        }
        for text in ["", "a", "ä", &format!("{ticket}A"), &format!("{ticket}="), &"A".repeat(9000)]
        {
            assert_eq!(
                reason(tickets().verify(text, task, now)),
                Some(RejectReason::Malformed),
                "{text}"
            );
        }
    }
}
