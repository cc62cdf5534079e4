//! What is done in a lane, and who waits for it.

use carrel_domain::{TaskId, Timestamp};
use tokio::sync::oneshot::Sender;
use uuid::Uuid;

use crate::error::StoreError;
use crate::model::{
    Appended, Claim, ClaimRequest, Claimed, Finish, Finished, Heartbeat, NewEvent, NewTask,
    Submission,
};

/// Where an answer goes.
pub(super) type Reply<T> = Sender<Result<T, StoreError>>;

/// What is done in a lane, and who waits for it.
pub(super) enum Operation {
    Submit(Box<NewTask>, Reply<Submission>),
    Finish(Claim, Box<Finish>, Reply<Finished>),
    Claim(Wish, Reply<Option<Claimed>>),
    Append(Claim, u64, Vec<NewEvent>, Reply<Appended>),
    Heartbeat(Claim, Timestamp, Reply<Heartbeat>),
}

/// A worker's wish for work.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) request: ClaimRequest,
    pub(super) now: Timestamp,
    /// By which the claim is found if its answer is lost.
    pub(super) token: Uuid,
}

impl Wish {
    pub(super) fn new(request: ClaimRequest, now: Timestamp) -> Self {
        Self { request, now, token: Uuid::now_v7() }
    }
}

/// What two operations of one transaction must not have in common, since each is done for all at once.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Task(TaskId),
    Key(String, String),
}

impl Operation {
    /// Tells what the operation is about.
    pub(super) fn subjects(&self) -> Vec<Subject> {
        match self {
            Self::Submit(new, _) => {
                let key = new.repeat.as_ref();
                let key = key.map(|repeat| Subject::Key(repeat.scope.clone(), repeat.key.clone()));
                key.into_iter().chain([Subject::Task(new.id)]).collect()
            }
            Self::Finish(claim, ..) | Self::Append(claim, ..) | Self::Heartbeat(claim, ..) => {
                vec![Subject::Task(claim.task)]
            }
            Self::Claim(..) => Vec::new(),
        }
    }

    /// Tells that it could not be done.
    pub(super) fn fail(self, error: StoreError) {
        // Whoever asked may have given up.
        match self {
            Self::Submit(_, reply) => drop(reply.send(Err(error))),
            Self::Finish(_, _, reply) => drop(reply.send(Err(error))),
            Self::Claim(_, reply) => drop(reply.send(Err(error))),
            Self::Append(_, _, _, reply) => drop(reply.send(Err(error))),
            Self::Heartbeat(_, _, reply) => drop(reply.send(Err(error))),
        }
    }
}
