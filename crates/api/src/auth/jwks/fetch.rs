//! Fetching the keys.

use std::time::Duration;

use carrel_client::{HttpClient, SendError, empty_body, read_all};
use carrel_domain::ByteSize;

use super::set::KeySet;

/// How long the provider may take for all of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a set of keys may be.
const MAX_SET: ByteSize = ByteSize::kib(256);

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no answer")]
    Send(#[from] SendError),
    #[error("no complete answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("it answers {0}; redirects are not followed")]
    Status(u16),
    #[error("it answers with no set of keys that can be used: RSA of 2048 bits or more, or P-256")]
    NoKeys,
    #[error("the address cannot be asked")]
    Address,
}

/// Asks for the keys once.
pub(super) async fn keys(connections: &HttpClient, url: &str) -> Result<KeySet, FetchError> {
    let fetching = async {
        let request = axum::http::Request::get(url).header("accept", "application/json");
        let request = request.body(empty_body()).map_err(|_| FetchError::Address)?;
        let answer = connections.send(request, PATIENCE).await?;
        if answer.status() != 200 {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        let text = read_all(&mut answer.into_body(), MAX_SET, PATIENCE).await?;
        KeySet::parse(&text).ok_or(FetchError::NoKeys)
    };
    tokio::time::timeout(PATIENCE, fetching).await.unwrap_or(Err(FetchError::Late))
}
