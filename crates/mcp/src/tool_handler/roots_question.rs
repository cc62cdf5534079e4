//! The question for a client's roots.
//!
//! A client that declares the capability `roots` is asked for them once it is initialized, and again when
//! it says that they have changed. From the moment at which they count until the answer its session has
//! nothing: a call waits a while for the answer and is then refused. An answer that comes later still
//! counts. If several questions are under way, only the answer to the last one does.
//!
//! The revision 2026-07-28 has no questions from the server to the client, so its clients are not asked
//! and keep the operator's workspaces.

use std::sync::Arc;
use std::time::Duration;

use carrel_tools::{ClientRoots, Session, Workspaces};
use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::Peer;
use tokio::sync::watch;
use tracing::{debug, warn};

/// The longest that calls wait for one answer. A client that never answers is not waited for again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The operator's choice for the roots of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootsMode {
    /// A session is held to the roots of its client.
    #[default]
    Narrow,
    /// Clients are not asked for their roots, and have the operator's workspaces.
    Ignore,
}

/// The question for the roots of one session.
#[derive(Debug)]
pub(super) struct RootsQuestion {
    session: Arc<Session>,
    last: watch::Sender<LastQuestion>,
}

/// The last question that was asked; 0 if there was none.
#[derive(Debug, Default)]
struct LastQuestion {
    number: u64,
    /// The answer was taken in, or calls have waited long enough for it.
    is_settled: bool,
}

impl RootsQuestion {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self { session, last: watch::Sender::default() }
    }

    /// Asks the client, and holds the session to the answer.
    #[expect(deprecated, reason = "clients of the revisions with sessions still have roots")]
    pub(super) async fn ask(&self, peer: &Peer<RoleServer>, workspaces: &Workspaces) {
        let mut number = 0;
        self.last.send_modify(|last| {
            number = last.number + 1;
            *last = LastQuestion { number, is_settled: false };
            self.session.narrow(workspaces, &ClientRoots::Awaited);
        });
        let answer = match peer.list_roots().await {
            Ok(listed) => {
                let uris = listed.roots.into_iter().map(|root| root.uri).collect();
                ClientRoots::Listed(uris)
            }
            Err(error) => {
                warn!(%error, "could not list the client's roots");
                ClientRoots::Failed(error.to_string())
            }
        };
        debug!(?answer, "the client has answered for its roots");
        self.last.send_if_modified(|last| {
            let is_last = last.number == number;
            if is_last {
                self.session.narrow(workspaces, &answer);
                last.is_settled = true;
            }
            is_last
        });
    }

    /// Waits for the answer to the last question. Without one the session has nothing.
    pub(super) async fn wait(&self, workspaces: &Workspaces) {
        self.last.send_if_modified(|last| {
            // A client may call before it says that it is initialized, which is when it is asked.
            if last.number == 0 {
                self.session.narrow(workspaces, &ClientRoots::Awaited);
            }
            false
        });
        let mut last = self.last.subscribe();
        let answered = last.wait_for(|last| last.is_settled);
        if tokio::time::timeout(ANSWER_TIMEOUT, answered).await.is_err() {
            self.last.send_modify(|last| last.is_settled = true);
        }
    }
}

/// Returns whether a client can be asked for roots.
pub(super) fn can_be_asked(peer: &Peer<RoleServer>) -> bool {
    peer.peer_info().is_some_and(|info| {
        let has_questions = info.protocol_version < ProtocolVersion::V_2026_07_28;
        has_questions && info.capabilities.roots.is_some()
    })
}
