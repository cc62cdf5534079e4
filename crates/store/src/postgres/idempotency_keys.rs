//! Leases of idempotency keys: the process that executes a request holds its key.
//!
//! Without them two processes that get the same request at the same time would both execute it before
//! either has stored a reply. Expiry is measured by the clock of the server, which is the same for all.

use std::time::Duration;

use super::error::PgError;
use super::rows::text;
use super::session::PgSession;
use crate::IdempotencyKey;

/// Acquires or renews the lease of a key. Returns false if another holder has it.
pub(super) async fn acquire(
    session: &mut PgSession,
    key: &IdempotencyKey,
    holder: &str,
    lease: Duration,
) -> Result<bool, PgError> {
    const ACQUIRE: &str = "INSERT INTO replies_under_way (scope, key, holder, held_until)
        VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 second')
        ON CONFLICT (scope, key) DO UPDATE
        SET holder = excluded.holder, held_until = excluded.held_until
        WHERE replies_under_way.holder = excluded.holder
           OR replies_under_way.held_until < clock_timestamp()";
    let (scope, key) = (text(&key.scope), text(&key.key));
    let acquired =
        session.execute(ACQUIRE, &[&scope, &key, &text(holder), &lease.as_secs_f64()]).await?;
    Ok(acquired == 1)
}

pub(super) async fn release(
    session: &mut PgSession,
    key: &IdempotencyKey,
    holder: &str,
) -> Result<(), PgError> {
    const RELEASE: &str =
        "DELETE FROM replies_under_way WHERE scope = $1 AND key = $2 AND holder = $3";
    let (scope, key) = (text(&key.scope), text(&key.key));
    session.execute(RELEASE, &[&scope, &key, &text(holder)]).await?;
    Ok(())
}

/// Deletes leases that expired an hour ago: their holders died.
pub(super) async fn delete_expired(session: &mut PgSession) -> Result<(), PgError> {
    const DELETE: &str = "DELETE FROM replies_under_way
        WHERE held_until < clock_timestamp() - interval '1 hour'";
    session.execute(DELETE, &[]).await?;
    Ok(())
}
