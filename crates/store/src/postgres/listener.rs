//! Hears from other processes that there is something to do.

use std::future::poll_fn;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;
use tracing::debug;

use super::lane::Lane;
use super::session::Server;
use super::tls::connect;
use super::trouble::Trouble;

/// How long to wait before the server is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens until it is dropped. Missing something costs a second and nothing else.
#[derive(Debug)]
pub(super) struct Listener(AbortHandle);

impl Listener {
    pub(super) fn start(server: Server, lane: Lane) -> Self {
        let listening = async move {
            loop {
                let heard = listen(&server, &lane).await;
                debug!(?heard, "does not hear of new tasks, trying again");
                tokio::time::sleep(PAUSE).await;
            }
        };
        Self(tokio::spawn(listening).abort_handle())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn listen(server: &Server, lane: &Lane) -> Result<(), Trouble> {
    let (client, mut connection) = connect(&server.config, &server.tls).await?;
    let hearing = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(news) = message? {
                lane.wake(news.payload());
            }
        }
        Ok(())
    };
    let asking = async {
        client.batch_execute("LISTEN carrel_queued").await?;
        std::future::pending().await
    };
    tokio::select! {
        heard = hearing => heard,
        asked = asking => asked,
    }
}
