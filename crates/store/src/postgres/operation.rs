//! The operations of a lane, each with the channel for its reply.

use carrel_domain::{TaskId, Timestamp};
use tokio::sync::oneshot::Sender;
use uuid::Uuid;

use crate::error::StoreError;
use crate::{
    Appended, Claim, ClaimRequest, Claimed, Finish, Finished, Heartbeat, NewEvent, NewTask,
    Submission,
};

pub(super) type ReplySender<T> = Sender<Result<T, StoreError>>;

pub(super) enum LaneOperation {
    Submit(Box<NewTask>, ReplySender<Submission>),
    Finish(Claim, Box<Finish>, ReplySender<Finished>),
    Claim(PendingClaim, ReplySender<Option<Claimed>>),
    Append(Claim, u64, Vec<NewEvent>, ReplySender<Appended>),
    Heartbeat(Claim, Timestamp, ReplySender<Heartbeat>),
}

#[derive(Clone, Debug)]
pub(super) struct PendingClaim {
    pub(super) request: ClaimRequest,
    pub(super) now: Timestamp,
    /// Stored with the claimed task, by which the claim is found if its reply is lost.
    pub(super) token: Uuid,
}

impl PendingClaim {
    pub(super) fn new(request: ClaimRequest, now: Timestamp) -> Self {
        Self { request, now, token: Uuid::now_v7() }
    }
}

/// A key that two operations of one batch must not share: a statement handles all operations of its kind
/// at once and would see the row as it was before both.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum ConflictKey {
    Task(TaskId),
    Key(String, String),
}

impl LaneOperation {
    pub(super) fn conflict_keys(&self) -> Vec<ConflictKey> {
        match self {
            Self::Submit(new, _) => {
                let key = new.idempotency_key.as_ref();
                let key = key.map(|key| ConflictKey::Key(key.scope.clone(), key.key.clone()));
                key.into_iter().chain([ConflictKey::Task(new.id)]).collect()
            }
            Self::Finish(claim, ..) | Self::Append(claim, ..) | Self::Heartbeat(claim, ..) => {
                vec![ConflictKey::Task(claim.task)]
            }
            Self::Claim(..) => Vec::new(),
        }
    }

    /// Replies with an error. A caller that has gone is ignored.
    pub(super) fn fail(self, error: StoreError) {
        match self {
            Self::Submit(_, reply) => drop(reply.send(Err(error))),
            Self::Finish(_, _, reply) => drop(reply.send(Err(error))),
            Self::Claim(_, reply) => drop(reply.send(Err(error))),
            Self::Append(_, _, _, reply) => drop(reply.send(Err(error))),
            Self::Heartbeat(_, _, reply) => drop(reply.send(Err(error))),
        }
    }
}
