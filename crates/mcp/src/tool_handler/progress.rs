//! News about a long call, for a client that asked for them.

use std::sync::Arc;

use carrel_tools::Progress;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, service::ServiceError};
use tokio::sync::mpsc;

/// News that wait to be sent. More are left out: the next says more.
const WAITING: usize = 8;

struct Sender {
    token: ProgressToken,
    news: mpsc::Sender<ProgressNotificationParam>,
}

impl Progress for Sender {
    fn report(&self, done: f64, total: Option<f64>, message: &str) {
        let mut news = ProgressNotificationParam::new(self.token.clone(), done);
        news.total = total;
        news.message = Some(message.to_owned());
        // A client that does not keep up misses some.
        let _ = self.news.try_send(news);
    }
}

/// Makes what a tool tells its news to, if the client wants any.
pub(super) fn channel(
    context: &RequestContext<RoleServer>,
) -> (Option<Arc<dyn Progress>>, mpsc::Receiver<ProgressNotificationParam>) {
    let (news, receiver) = mpsc::channel(WAITING);
    let token = context.meta.get_progress_token();
    let sender = token.map(|token| Arc::new(Sender { token, news }) as Arc<dyn Progress>);
    (sender, receiver)
}

/// Waits for a call and passes its news on meanwhile. None is sent after the answer.
pub(super) async fn while_telling<T>(
    call: impl Future<Output = T>,
    mut news: mpsc::Receiver<ProgressNotificationParam>,
    peer: &Peer<RoleServer>,
) -> T {
    tokio::pin!(call);
    loop {
        tokio::select! {
            biased;
            done = &mut call => return done,
            Some(one) = news.recv() => {
                // A client that has gone away is noticed elsewhere.
                let _: Result<(), ServiceError> = peer.notify_progress(one).await;
            }
        }
    }
}
