//! Idempotency keys and the replies that are stored for them.
//!
//! A client that repeats a request because it missed the reply sends the same key with the same body, and
//! gets the first reply again. The digest of the body tells a repetition from a mistake: the same key with
//! another body is refused. Keys of different callers and routes never meet, because each has its scope.

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
