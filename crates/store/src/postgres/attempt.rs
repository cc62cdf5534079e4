//! Doing something on a connection, again and again while the server may come back.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::PATIENCE;
use super::trouble::Trouble;

/// How long one try may take.
pub(super) const TRY: Duration = Duration::from_secs(5);

/// How long one try may take of what removes or moves many rows.
pub(super) const LONG_TRY: Duration = Duration::from_secs(12);

/// How long to wait before trying again.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Tells whether to try again after a try that began then.
pub(super) async fn again(trouble: &Trouble, begun: Instant) -> bool {
    let passing = matches!(trouble, Trouble::Passing(_)) && begun.elapsed() < PATIENCE;
    if passing {
        sleep(PAUSE).await;
    }
    passing
}

/// What is wrong with a try that takes too long.
pub(super) fn late<T>(_: T) -> Trouble {
    Trouble::passing("the database did not answer in time")
}

/// Does something on a connection of its own, and tries again while the server may come back.
macro_rules! on_a_session {
    ($self:ident, |$session:ident| $work:expr) => {
        on_a_session!($self, TRY, |$session| $work)
    };
    ($self:ident, $limit:ident, |$session:ident| $work:expr) => {{
        use $crate::postgres::attempt::{self, again, late};
        use $crate::postgres::trouble::Trouble;
        let begun = tokio::time::Instant::now();
        loop {
            let work = async {
                let mut lent = $self.sessions.lend().await?;
                let $session = &mut lent.session;
                let answer = $work;
                lent.give_back();
                Ok::<_, Trouble>(answer)
            };
            match tokio::time::timeout(attempt::$limit, work).await.map_err(late).flatten() {
                Ok(answer) => break Ok(answer),
                Err(trouble) if again(&trouble, begun).await => {}
                Err(trouble) => break Err(StoreError::from(trouble)),
            }
        }
    }};
}

/// Does something in a transaction that no other of the queue runs beside.
macro_rules! in_a_transaction {
    ($self:ident, |$session:ident| $work:expr) => {
        in_a_transaction!($self, TRY, |$session| $work)
    };
    ($self:ident, $limit:ident, |$session:ident| $work:expr) => {
        $crate::postgres::attempt::on_a_session!($self, $limit, |$session| {
            $session.begin().await?;
            let answer = $work;
            $session.commit().await?;
            answer
        })
    };
}

/// Does something in a transaction that has nothing to do with the queue.
macro_rules! beside_the_queue {
    ($self:ident, |$session:ident| $work:expr) => {
        $crate::postgres::attempt::on_a_session!($self, TRY, |$session| {
            $session.begin_beside_the_queue().await?;
            let answer = $work;
            $session.commit().await?;
            answer
        })
    };
}

pub(super) use {beside_the_queue, in_a_transaction, on_a_session};
