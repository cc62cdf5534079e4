//! Receives notifications of other processes that tasks were queued.
//!
//! A transaction that queues a task ends with `pg_notify`, and the server delivers the notification after
//! the commit. Without it claims of other processes would find the task with their next poll, a second
//! later; losing one costs nothing else.

use std::future::poll_fn;
use std::time::Duration;

use tokio_postgres::AsyncMessage;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::error::PgError;
use super::lane::Lane;
use super::session::Server;
use super::tls::connect;

const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Starts to listen, until the handle is dropped.
pub(super) fn start(server: Server, lane: Lane) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            let ended = listen(&server, &lane).await;
            debug!(?ended, "notifications of new tasks do not arrive, trying again");
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
    }))
}

async fn listen(server: &Server, lane: &Lane) -> Result<(), PgError> {
    let (client, mut connection) = connect(&server.config, &server.tls).await?;
    let receiving = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message? {
                lane.wake(notification.payload());
            }
        }
        Ok(())
    };
    let subscribing = async {
        client.batch_execute("LISTEN carrel_queued").await?;
        std::future::pending().await
    };
    tokio::select! {
        received = receiving => received,
        subscribed = subscribing => subscribed,
    }
}
