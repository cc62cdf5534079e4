//! A server on a free port.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use carrel_mcp::{Authentication, CallPath, HandlerScope, HttpError, HttpOptions, serve_http};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{Fixture, FixtureState},
    http::{TEST_TIMEOUT, TestClient},
};

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<FixtureState>,
    pub(crate) scopes: Arc<Mutex<Vec<HandlerScope>>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), HttpError>>,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut options =
            HttpOptions::new(address, Authentication::Unauthenticated).expect("loopback");
        // The way that the product's own handler takes; `direct` holds it against the other.
        options.call_path = CallPath::Direct;
        change(&mut options);
        Self::serve(listener, options)
    }

    pub(crate) fn serve(listener: TcpListener, options: HttpOptions) -> Self {
        let address = listener.local_addr().expect("an address");
        let (state, cancel) = (FixtureState::new(), CancellationToken::new());
        let scopes = Arc::<Mutex<Vec<HandlerScope>>>::default();
        let make = {
            let (state, scopes) = (Arc::clone(&state), Arc::clone(&scopes));
            move |scope| {
                scopes.lock().expect("not poisoned").push(scope);
                Fixture::new(&state)
            }
        };
        let task = tokio::spawn(serve_http(listener, options, make, cancel.clone()));
        Self { address, state, scopes, cancel, task }
    }

    pub(crate) async fn connect(&self) -> TestClient {
        TestClient::connect(self.address).await
    }

    /// Opens a session of the revision 2025-11-25.
    pub(crate) async fn session(&self) -> (TestClient, String) {
        let mut client = self.connect().await;
        let session = client.initialize("2025-11-25").await;
        (client, session)
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, poll).await.unwrap_or_else(|_| panic!("never: {what}"));
}
