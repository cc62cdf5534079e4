//! Keys of requests that are being answered somewhere.

use std::time::Duration;

use super::rows::text;
use super::session::Session;
use super::trouble::Trouble;
use crate::model::IdempotencyKey;

/// Takes a key, unless somebody else has it. The clock is that of the server, which is the same for all.
pub(super) async fn hold(
    session: &mut Session,
    repeat: &IdempotencyKey,
    holder: &str,
    lease: Duration,
) -> Result<bool, Trouble> {
    const HOLD: &str = "INSERT INTO replies_under_way (scope, key, holder, held_until)
        VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 second')
        ON CONFLICT (scope, key) DO UPDATE
        SET holder = excluded.holder, held_until = excluded.held_until
        WHERE replies_under_way.holder = excluded.holder
           OR replies_under_way.held_until < clock_timestamp()";
    let (scope, key) = (text(&repeat.scope), text(&repeat.key));
    let held = session.execute(HOLD, &[&scope, &key, &text(holder), &lease.as_secs_f64()]).await?;
    Ok(held == 1)
}

/// Gives a key back.
pub(super) async fn release(
    session: &mut Session,
    repeat: &IdempotencyKey,
    holder: &str,
) -> Result<(), Trouble> {
    const RELEASE: &str =
        "DELETE FROM replies_under_way WHERE scope = $1 AND key = $2 AND holder = $3";
    let (scope, key) = (text(&repeat.scope), text(&repeat.key));
    session.execute(RELEASE, &[&scope, &key, &text(holder)]).await?;
    Ok(())
}

/// Forgets keys whose holders did not come back.
pub(super) async fn forget(session: &mut Session) -> Result<(), Trouble> {
    const FORGET: &str = "DELETE FROM replies_under_way
        WHERE held_until < clock_timestamp() - interval '1 hour'";
    session.execute(FORGET, &[]).await?;
    Ok(())
}
