//! Idempotency keys and the replies that are stored for them.
//!
//! A client that repeats a request because it missed the reply sends the same key with the same body, and
//! gets the first reply again. The digest of the body tells a repetition from a mistake: the same key with
//! another body is refused. Keys of different callers and routes never meet, because each has its scope.
//!
//! A submission stores its key in the same transaction as its task, so that the key and the task exist
//! together or not at all. Other requests act first and store their reply afterwards; between the two a
//! lease of the key (`Store::acquire_key`) keeps a concurrent repetition from acting as well. If the
//! process dies in between, the lease expires and a repetition acts again: such requests happen at least
//! once, and their reply is stored once.

use crate::value::from_row;

/// An idempotency key and the request that it was sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The namespace of the key: the workspace or caller, and the route. Scopes of a workspace begin with
    /// its id and a space, and are deleted with it.
    pub scope: String,
    /// The client's key.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: [u8; 32],
}

/// The first reply to a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// SHA-256 of the request.
    pub digest: [u8; 32],
    /// The HTTP status.
    pub status: u16,
    /// The body as it was sent.
    pub body: String,
}

from_row! { StoredReply: digest, status, body }
