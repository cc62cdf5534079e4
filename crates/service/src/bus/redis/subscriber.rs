//! Receives the events and cancellations of other processes.
//!
//! One connection serves all subscribers of the process. It is subscribed to the cancellation channel
//! and to the event channels of those tasks that have a local subscriber, and follows the changes of
//! that set. Redis does not store channel messages: what was sent before a subscription, or while the
//! connection was broken, is lost, and the hub makes the subscribers of such tasks reload.

use std::collections::HashSet;
use std::time::Duration;

use carrel_domain::TaskId;
use futures_util::StreamExt as _;
use redis::Msg;
use redis::aio::PubSubSink;
use tracing::debug;

use super::connection::{Connection, answered};
use super::{keys, outbox};
use crate::bus::BusError;
use crate::event_hub::EventHub;

/// The interval of pings on the subscribed connection, and the time that a reply may take.
const PING: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(1));

/// Receives messages, on a new connection whenever one breaks. Never returns.
pub(super) async fn run(connection: &Connection, hub: &EventHub) {
    loop {
        connection.connected().await;
        if let Err(error) = receive(connection, hub).await {
            debug!(%error, "subscribing again");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes all subscribers reload when the connection breaks: later events do not arrive. Never returns.
pub(super) async fn reload_on_disconnect(connection: &Connection, hub: &EventHub) {
    loop {
        connection.disconnected().await;
        hub.reload_all();
        connection.connected().await;
    }
}

async fn receive(connection: &Connection, hub: &EventHub) -> Result<(), BusError> {
    let (mut sink, mut messages) = connection.pubsub().await?.split();
    sink.subscribe(keys::CANCEL).await?;
    let mut subscribed = HashSet::new();
    update_subscriptions(&mut sink, &mut subscribed, hub, hub.subscribed_tasks()).await?;
    let (every, limit) = PING;
    let mut pings = tokio::time::interval(every);
    loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => pass_on(&message, hub),
                None => return Err(BusError { reason: "the connection was closed".to_owned() }),
            },
            changed = hub.subscriptions_changed() => {
                update_subscriptions(&mut sink, &mut subscribed, hub, changed).await?;
            }
            _ = pings.tick() => {
                answered(limit, sink.ping::<redis::Value>()).await?;
            }
        }
    }
}

/// Subscribes to the channels of tasks that have local subscribers, and unsubscribes from the others.
async fn update_subscriptions(
    sink: &mut PubSubSink,
    subscribed: &mut HashSet<TaskId>,
    hub: &EventHub,
    changed: Vec<TaskId>,
) -> Result<(), BusError> {
    let (wanted, unwanted): (Vec<_>, Vec<_>) =
        changed.into_iter().partition(|task| hub.has_subscribers(*task));
    let gone: Vec<_> = unwanted.into_iter().filter(|task| subscribed.remove(task)).collect();
    let new: Vec<_> = wanted.into_iter().filter(|task| subscribed.insert(*task)).collect();
    let channels =
        |tasks: &[TaskId]| tasks.iter().map(|task| keys::events(*task)).collect::<Vec<_>>();
    if !gone.is_empty() {
        sink.unsubscribe(channels(&gone)).await?;
    }
    if !new.is_empty() {
        sink.subscribe(channels(&new)).await?;
        // Messages before the subscription were not received.
        hub.reload(&new);
    }
    Ok(())
}

fn pass_on(message: &Msg, hub: &EventHub) {
    let text = message.get_payload_bytes();
    let channel = message.get_channel_name();
    if channel == keys::CANCEL {
        if let Some(task) = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
            hub.cancel(task);
        }
    } else if let Some(event) = keys::task_of(channel).and_then(|task| outbox::decode(task, text)) {
        hub.publish(&[event]);
    }
}
