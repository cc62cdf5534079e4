//! Subscriptions to resources: `resources/subscribe` of the revisions with sessions, and
//! `subscriptions/listen` of 2026-07-28.
//!
//! A subscribed file is looked at every half a second through the workspace's own root, as a reader would: what
//! counts is the path, whichever way its file was replaced, and nothing outside the workspace is ever watched.
//! A log is looked at for its length. Both kinds of subscription are checked when they begin, with an
//! audit event if they are refused, and bounded for each subscriber and for the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use carrel_domain::sync;
use carrel_tools::{CallOptions, FileStamp, Registry, Session};
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::resource_uri::ResourceUri;
use super::resources::{not_found, refused_at};

/// The interval at which subscribed resources are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The client of `subscriptions/listen` hears that it is subscribed before the server first looks at the
/// resources. One that changed within this time before is reported as changed: too much is no harm.
const ACKNOWLEDGEMENT_MARGIN: Duration = Duration::from_secs(2);

/// Resources that one session, or one request, subscribes to.
const MAX_SUBSCRIPTIONS: usize = 256;

/// Subscriptions of all clients, which bounds the work of each interval.
const MAX_SERVER_SUBSCRIPTIONS: usize = 4096;

/// The number of subscriptions of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct SubscriptionCount(Arc<AtomicUsize>);

/// Room for subscriptions, which is free again when this is dropped.
#[derive(Debug)]
struct Reserved {
    count: SubscriptionCount,
    number: usize,
}

impl SubscriptionCount {
    fn reserve(&self, number: usize) -> Result<Reserved, ErrorData> {
        let add = |count: usize| {
            let sum = count + number;
            (sum <= MAX_SERVER_SUBSCRIPTIONS).then_some(sum)
        };
        let added = self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.map_err(|_| too_many(MAX_SERVER_SUBSCRIPTIONS, "of all clients together"))?;
        Ok(Reserved { count: self.clone(), number })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.count.0.fetch_sub(self.number, Ordering::Relaxed);
    }
}

fn too_many(limit: usize, whose: &str) -> ErrorData {
    let message =
        format!("too many subscriptions: at most {limit} {whose}; end some, or watch fewer files");
    ErrorData::invalid_params(message, None)
}

/// A state of a resource, to be compared with a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stamp {
    File(FileStamp),
    Log(Option<u64>),
    /// It never changes.
    Page,
}

/// Looks at resources for one session.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    pub(super) registry: Arc<Registry>,
    pub(super) session: Arc<Session>,
}

impl Observer {
    async fn stamp(&self, resource: &ResourceUri) -> Stamp {
        match resource {
            ResourceUri::Page { .. } => Stamp::Page,
            ResourceUri::JobLog { id } => {
                let part = self.registry.job_log(&self.session, id, 0, 0).await;
                Stamp::Log(part.ok().map(|part| part.log_bytes))
            }
            ResourceUri::File { workspace, path } => {
                Stamp::File(self.registry.file_stamp(&self.session, workspace, path).await)
            }
        }
    }

    /// Checks that the session may watch a resource, and returns its state.
    async fn begin(
        &self,
        uri: &str,
        options: CallOptions,
    ) -> Result<(ResourceUri, Stamp), ErrorData> {
        let resource = ResourceUri::parse(uri).ok_or_else(|| not_found(uri))?;
        match &resource {
            ResourceUri::Page { .. } => {}
            ResourceUri::JobLog { id } => {
                let part = self.registry.job_log(&self.session, id, 0, 0).await;
                part.map_err(|failure| refused_at(uri, &failure))?;
            }
            ResourceUri::File { workspace, path } => {
                let place = (workspace.as_str(), path.as_str());
                let checked = self.registry.check_watchable(&self.session, place, options).await;
                checked.map_err(|failure| refused_at(uri, &failure))?;
            }
        }
        let stamp = self.stamp(&resource).await;
        Ok((resource, stamp))
    }
}

#[derive(Debug)]
struct Watched {
    resource: ResourceUri,
    stamp: Stamp,
    _reserved: Option<Reserved>,
}

/// The subscriptions of one session, by URI as the client wrote it.
#[derive(Debug, Default)]
pub(super) struct SessionSubscriptions {
    watched: Arc<Mutex<BTreeMap<String, Watched>>>,
    /// The task that looks at them, started with the first.
    polling: std::sync::OnceLock<()>,
}

impl SessionSubscriptions {
    /// Adds a subscription. The first one starts the task that serves all of them until `stop`.
    pub(super) async fn add(
        &self,
        uri: String,
        observer: Observer,
        count: &SubscriptionCount,
        options: CallOptions,
        (peer, stop): (&Peer<RoleServer>, &CancellationToken),
    ) -> Result<(), ErrorData> {
        let is_full = || {
            let watched = sync::lock(&self.watched);
            watched.len() >= MAX_SUBSCRIPTIONS && !watched.contains_key(&uri)
        };
        if is_full() {
            return Err(too_many(MAX_SUBSCRIPTIONS, "of one session"));
        }
        let reserved = Some(count.reserve(1)?);
        let (resource, stamp) = observer.begin(&uri, options).await?;
        // Others may have been added meanwhile.
        if is_full() {
            return Err(too_many(MAX_SUBSCRIPTIONS, "of one session"));
        }
        let watched = Watched { resource, stamp, _reserved: reserved };
        sync::lock(&self.watched).insert(uri, watched);
        self.polling.get_or_init(|| {
            let (watched, peer, stop) = (Arc::clone(&self.watched), peer.clone(), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = poll_session(watched, observer, peer) => {}
                }
            });
        });
        Ok(())
    }

    pub(super) fn remove(&self, uri: &str) {
        sync::lock(&self.watched).remove(uri);
    }
}

/// Notifies a client of changes until it is gone.
async fn poll_session(
    watched: Arc<Mutex<BTreeMap<String, Watched>>>,
    observer: Observer,
    peer: Peer<RoleServer>,
) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !peer.is_transport_closed() {
        ticks.tick().await;
        let resources: Vec<_> = {
            let watched = sync::lock(&watched);
            watched.iter().map(|(uri, one)| (uri.clone(), one.resource.clone())).collect()
        };
        for (uri, resource) in resources {
            let stamp = observer.stamp(&resource).await;
            let is_changed = sync::lock(&watched)
                .get_mut(&uri)
                .is_some_and(|one| std::mem::replace(&mut one.stamp, stamp.clone()) != stamp);
            let update = ResourceUpdatedNotificationParam::new(uri);
            if is_changed && peer.notify_resource_updated(update).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the part of a filter that is served: resources of this server, as many as one request may have.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.as_deref().unwrap_or_default();
    let is_known = |uri: &&String| ResourceUri::parse(uri).is_some();
    let known: Vec<_> = uris.iter().filter(is_known).cloned().collect();
    let fits = known.len() <= MAX_SUBSCRIPTIONS;
    let accepted = if fits { known } else { Vec::new() };
    SubscriptionFilter::builder().resource_subscriptions(accepted).build()
}

/// Serves one request for subscriptions until it is cancelled.
pub(super) async fn listen(
    context: &SubscriptionContext,
    observer: Observer,
    count: &SubscriptionCount,
    options: CallOptions,
) -> Result<(), ErrorData> {
    let acknowledged = SystemTime::now() - ACKNOWLEDGEMENT_MARGIN;
    let requested = context.requested().resource_subscriptions.as_deref().unwrap_or_default();
    if requested.len() > MAX_SUBSCRIPTIONS {
        return Err(too_many(MAX_SUBSCRIPTIONS, "of one request"));
    }
    let uris = context.accepted().resource_subscriptions.as_deref().unwrap_or_default();
    let own = || uris.iter().filter(|uri| ResourceUri::parse(uri).is_some());
    let _reserved = count.reserve(own().count())?;
    let mut watched = Vec::new();
    for uri in own() {
        let (resource, stamp) = observer.begin(uri, options.clone()).await?;
        let may_have_changed = match &stamp {
            Stamp::File(file) => file.is_changed_since(acknowledged),
            Stamp::Log(_) => true,
            Stamp::Page => false,
        };
        watched.push((uri, resource, (!may_have_changed).then_some(stamp)));
    }
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = context.cancelled() => return Ok(()),
            _ = ticks.tick() => {}
        }
        for (uri, resource, last) in &mut watched {
            let stamp = observer.stamp(resource).await;
            let is_changed = last.as_ref() != Some(&stamp);
            *last = Some(stamp);
            if is_changed && context.sink().notify_resource_updated(uri.as_str()).await.is_err() {
                return Ok(());
            }
        }
    }
}
