//! Fetching of a JWKS document.

use std::time::Duration;

use carrel_client::{HttpClient, SendError, empty_body, read_all};
use carrel_domain::ByteSize;

use super::set::KeySet;

const TIMEOUT: Duration = Duration::from_secs(5);

const MAX_SET: ByteSize = ByteSize::kib(256);

#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no response")]
    Send(#[from] SendError),
    #[error("no complete response within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("it answers {0}; redirects are not followed")]
    Status(u16),
    #[error("it publishes no usable key: RSA of 2048 bits or more, or P-256")]
    NoKeys,
    #[error("the URL cannot be requested")]
    Address,
}

pub(super) async fn keys(connections: &HttpClient, url: &str) -> Result<KeySet, FetchError> {
    let fetching = async {
        let request = axum::http::Request::get(url).header("accept", "application/json");
        let request = request.body(empty_body()).map_err(|_| FetchError::Address)?;
        let response = connections.send(request, TIMEOUT).await?;
        if response.status() != 200 {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let text = read_all(&mut response.into_body(), MAX_SET, TIMEOUT).await?;
        KeySet::parse(&text).ok_or(FetchError::NoKeys)
    };
    tokio::time::timeout(TIMEOUT, fetching).await.unwrap_or(Err(FetchError::Timeout))
}
