//! The HTTP client below the typed one: a connection pool for each server.
//!
//! HTTP/1.1 over TCP or TLS (rustls with the certificates of the system), built on hyper directly; the
//! tracker, the GitHub sources, token providers and the worker proxy use it as well. Two rules hold for all
//! of them. Redirects are not followed, so that a token that is meant for one server never reaches another.
//! And an error says whether the server can have seen the request ([`SendError::is_unsent`]), which decides
//! whether a mutation may be retried.
//!
//! An idle connection is closed after 10 seconds, before the 15 seconds after which our own servers close
//! theirs: a request must not meet a connection that is being closed.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use carrel_domain::ByteSize;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::http::uri::Scheme;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use crate::body::{Body, BoxError};
use crate::limits::{CONNECT_TIMEOUT, MAX_IDLE_CONNECTIONS, POOL_IDLE_TIMEOUT};

/// The reason that a request has no complete response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection could be made; the server has not seen the request.
    #[error("no connection")]
    Connect(#[source] BoxError),
    /// The response head, or the next chunk of the body, did not arrive in time.
    #[error("no response within {} s", within.as_secs_f64())]
    Timeout {
        /// The timeout.
        within: Duration,
    },
    /// The connection broke. The server may have acted on the request.
    #[error("the connection broke")]
    Interrupted(#[source] BoxError),
    /// The body is larger than the caller accepts.
    #[error("the response is longer than {limit}")]
    TooLarge {
        /// The limit.
        limit: ByteSize,
    },
    /// The system has no root certificates.
    #[error(
        "no certificates of authorities on this machine; install ca-certificates, or set SSL_CERT_FILE"
    )]
    NoRootCertificates,
    /// The URL is neither `http` nor `https`.
    #[error("an address begins with http:// or https://")]
    UnsupportedScheme,
}

impl SendError {
    /// Returns `true` if the server cannot have seen the request, so that sending it elsewhere is safe.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Connect(_) | Self::NoRootCertificates | Self::UnsupportedScheme => true,
            Self::Timeout { .. } | Self::Interrupted(_) | Self::TooLarge { .. } => false,
        }
    }
}

/// A pool of connections to any number of servers. Clones share it.
///
/// Redirects are not followed: a response with one is returned like any other.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    plain: Client<HttpConnector, Body>,
    /// Created at the first `https` request: reading the certificates of the system takes milliseconds that
    /// most processes never need.
    secure: OnceLock<Option<Client<HttpsConnector<HttpConnector>, Body>>>,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Creates an empty pool.
    pub fn new() -> Self {
        let inner = Inner { plain: pool(connector()), secure: OnceLock::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a request, and returns the response when its head has arrived; the body is read from it.
    pub fn send(
        &self,
        request: Request<Body>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Incoming>, SendError>> {
        Box::pin(self.send_over_pool(request, within))
    }

    async fn send_over_pool(
        &self,
        request: Request<Body>,
        within: Duration,
    ) -> Result<Response<Incoming>, SendError> {
        let scheme = request.uri().scheme();
        let response = if scheme == Some(&Scheme::HTTPS) {
            let secure = self.inner.secure.get_or_init(|| Some(pool(secured()?)));
            secure.as_ref().ok_or(SendError::NoRootCertificates)?.request(request)
        } else if scheme == Some(&Scheme::HTTP) {
            self.inner.plain.request(request)
        } else {
            return Err(SendError::UnsupportedScheme);
        };
        match tokio::time::timeout(within, response).await {
            Err(_) => Err(SendError::Timeout { within }),
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => Err(SendError::Connect(Box::new(error))),
            Ok(Err(error)) => Err(SendError::Interrupted(Box::new(error))),
        }
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.enforce_http(false);
    connector
}

/// Returns `None` if the system has no root certificates.
fn secured() -> Option<HttpsConnector<HttpConnector>> {
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if authorities.is_empty() {
        return None;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the usual versions")
        .with_root_certificates(authorities)
        .with_no_client_auth();
    let builder = HttpsConnectorBuilder::new().with_tls_config(config);
    Some(builder.https_only().enable_http1().wrap_connector(connector()))
}

fn pool<C>(connector: C) -> Client<C, Body>
where
    C: hyper_util::client::legacy::connect::Connect + Clone,
{
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .build(connector)
}
