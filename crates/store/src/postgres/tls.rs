//! How the bytes travel.

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

use super::trouble::Trouble;

/// Whether the connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is not.
    Plain,
}

/// Connects, and returns what carries the bytes.
pub(super) async fn connect(
    config: &Config,
    mode: &Mode,
) -> Result<(Client, JoinHandle<()>), Trouble> {
    match mode {
        Mode::Plain => {
            let (client, connection) = config.connect(NoTls).await?;
            let driver = tokio::spawn(async move {
                // Whoever waits for an answer is told when the connection breaks.
                let _ = connection.await;
            });
            Ok((client, driver))
        }
    }
}
