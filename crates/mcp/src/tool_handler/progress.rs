//! Progress notifications of a running call, for clients that sent a progress token.

use std::sync::Arc;

use carrel_tools::Progress;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, service::ServiceError};
use tokio::sync::mpsc;

/// Notifications that wait for a slow client. Further ones are dropped: a later one supersedes them.
const CAPACITY: usize = 8;

struct ProgressSender {
    token: ProgressToken,
    notifications: mpsc::Sender<ProgressNotificationParam>,
}

impl Progress for ProgressSender {
    fn report(&self, done: f64, total: Option<f64>, message: &str) {
        let mut notification = ProgressNotificationParam::new(self.token.clone(), done);
        notification.total = total;
        notification.message = Some(message.to_owned());
        // A full queue drops the notification rather than slowing the tool down.
        let _ = self.notifications.try_send(notification);
    }
}

/// Creates the sender that a tool reports to and the queue behind it. There is no sender if the
/// client sent no progress token.
pub(super) fn channel(
    context: &RequestContext<RoleServer>,
) -> (Option<Arc<dyn Progress>>, mpsc::Receiver<ProgressNotificationParam>) {
    let (notifications, receiver) = mpsc::channel(CAPACITY);
    let token = context.meta.get_progress_token();
    let sender =
        token.map(|token| Arc::new(ProgressSender { token, notifications }) as Arc<dyn Progress>);
    (sender, receiver)
}

/// Waits for a call and forwards its progress meanwhile. No notification follows the reply, as the
/// protocol demands.
pub(super) async fn forward_during<T>(
    call: impl Future<Output = T>,
    mut notifications: mpsc::Receiver<ProgressNotificationParam>,
    peer: &Peer<RoleServer>,
) -> T {
    tokio::pin!(call);
    loop {
        tokio::select! {
            biased;
            reply = &mut call => return reply,
            Some(notification) = notifications.recv() => {
                // A lost client cancels the call by its own path.
                let _: Result<(), ServiceError> = peer.notify_progress(notification).await;
            }
        }
    }
}
