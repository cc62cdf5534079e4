//! Snapshots that Carrel takes by itself, before something that changes much.

use carrel_domain::Failure;
use carrel_snapshot::{CreateRequest, Reason};
use tracing::warn;

use super::{retention, trust};
use crate::blocking::blocking;
use crate::tool_context::ToolContext;

/// Takes a snapshot before a call changes several files. One of a tree that has not changed since the last is not
/// taken again. A failure costs the snapshot and not the call.
pub(crate) async fn before(context: &ToolContext, doing: &'static str) {
    let own = context.clone();
    let taken = blocking(move || {
        let workspace = own.workspace();
        let store = own.toolbox.snapshots.of(workspace)?;
        let mut request = CreateRequest::unnamed(Reason::Automatic(own.tool.to_owned()));
        doing.clone_into(&mut request.description);
        own.session.id().clone_into(&mut request.author);
        request.options.trust = trust(&own);
        let writing = workspace.handle().lock_for_writing()?;
        store.create(&request)?;
        drop(writing);
        retention::enforce_in_background(&store);
        Ok::<_, Failure>(())
    });
    if let Err(failure) = taken.await {
        warn!(tool = context.tool, failure.message, "no snapshot was taken before the call");
    }
}
