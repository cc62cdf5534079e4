//! HttpClient to servers.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use carrel_domain::ByteSize;
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

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no connection; the server has seen nothing of the request.
    #[error("no connection")]
    Connect(#[source] BoxError),
    /// The answer, or the next piece of it, did not come in time.
    #[error("no answer within {} s", within.as_secs_f64())]
    Timeout {
        /// How long was waited.
        within: Duration,
    },
    /// The connection ended in the middle. What the server did is not known.
    #[error("the connection broke")]
    Interrupted(#[source] BoxError),
    /// The answer is longer than what is read.
    #[error("the answer is longer than {limit}")]
    TooLarge {
        /// What would have been read.
        limit: ByteSize,
    },
    /// This machine trusts nobody.
    #[error(
        "no certificates of authorities on this machine; install ca-certificates, or set SSL_CERT_FILE"
    )]
    NoRootCertificates,
    /// The address is neither `http` nor `https`.
    #[error("an address begins with http:// or https://")]
    UnsupportedScheme,
}

impl SendError {
    /// Tells whether the server has certainly not seen the request.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Connect(_) | Self::NoRootCertificates | Self::UnsupportedScheme => true,
            Self::Timeout { .. } | Self::Interrupted(_) | Self::TooLarge { .. } => false,
        }
    }
}

/// HttpClient to any number of servers. Cheap to clone.
///
/// No redirect is followed: an answer with one is an answer like any other.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    plain: Client<HttpConnector, Body>,
    /// Made when it is first needed: reading the certificates of the system takes time.
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
    /// Makes a pool without connections.
    pub fn new() -> Self {
        let inner = Inner { plain: pool(connector()), secure: OnceLock::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a request, and returns the head of the answer if it comes in time. Its body follows.
    pub async fn send(
        &self,
        request: Request<Body>,
        within: Duration,
    ) -> Result<Response<Incoming>, SendError> {
        let scheme = request.uri().scheme();
        let answer = if scheme == Some(&Scheme::HTTPS) {
            let secure = self.inner.secure.get_or_init(|| Some(pool(secured()?)));
            secure.as_ref().ok_or(SendError::NoRootCertificates)?.request(request)
        } else if scheme == Some(&Scheme::HTTP) {
            self.inner.plain.request(request)
        } else {
            return Err(SendError::UnsupportedScheme);
        };
        match tokio::time::timeout(within, answer).await {
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

/// Returns nothing if the system has no certificates.
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
