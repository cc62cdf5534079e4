//! What other processes tell, on its way to those who listen here. One connection serves all of them.

use std::collections::HashSet;
use std::time::Duration;

use carrel_domain::TaskId;
use futures_util::StreamExt as _;
use redis::Msg;
use redis::aio::PubSubSink;
use tracing::debug;

use super::link::{Link, failed};
use super::{names, news};
use crate::bus::BusError;
use crate::event_hub::EventHub;

/// How often the connection is asked whether it is there, and how long it may take to answer.
const ASK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(1));

/// Listens for ever, on a new connection whenever one breaks.
pub(super) async fn run(link: &Link, hub: &EventHub) {
    loop {
        link.there().await;
        if let Err(error) = listen(link, hub).await {
            debug!(%error, "listening again");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes everybody look into the store when Redis goes away: what is told from then on is not heard.
pub(super) async fn warn(link: &Link, hub: &EventHub) {
    loop {
        link.away().await;
        hub.reload_all();
        link.there().await;
    }
}

async fn listen(link: &Link, hub: &EventHub) -> Result<(), BusError> {
    let (mut sink, mut messages) = link.listen().await?.split();
    sink.subscribe(names::CANCEL).await.map_err(|error| failed(&error))?;
    let mut heard = HashSet::new();
    follow(&mut sink, &mut heard, hub, hub.subscribed_tasks()).await?;
    let mut ask = tokio::time::interval(ASK.0);
    loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => pass_on(&message, hub),
                None => return Err(BusError { reason: "the connection was closed".to_owned() }),
            },
            changed = hub.subscriptions_changed() => follow(&mut sink, &mut heard, hub, changed).await?,
            _ = ask.tick() => match tokio::time::timeout(ASK.1, sink.ping::<redis::Value>()).await {
                Ok(answer) => { answer.map_err(|error| failed(&error))?; }
                Err(_) => return Err(BusError { reason: "Redis does not answer".to_owned() }),
            },
        }
    }
}

/// Subscribes to those of these tasks that somebody listens to, and leaves the others.
async fn follow(
    sink: &mut PubSubSink,
    heard: &mut HashSet<TaskId>,
    hub: &EventHub,
    changed: Vec<TaskId>,
) -> Result<(), BusError> {
    let (wanted, rest): (Vec<_>, Vec<_>) =
        changed.into_iter().partition(|task| hub.has_subscribers(*task));
    let gone: Vec<_> = rest.into_iter().filter(|task| heard.remove(task)).collect();
    let new: Vec<_> = wanted.into_iter().filter(|task| heard.insert(*task)).collect();
    let channels =
        |tasks: &[TaskId]| tasks.iter().map(|task| names::events(*task)).collect::<Vec<_>>();
    if !gone.is_empty() {
        sink.unsubscribe(channels(&gone)).await.map_err(|error| failed(&error))?;
    }
    if !new.is_empty() {
        sink.subscribe(channels(&new)).await.map_err(|error| failed(&error))?;
        // What was told before this was not heard.
        hub.reload(&new);
    }
    Ok(())
}

fn pass_on(message: &Msg, hub: &EventHub) {
    let text = message.get_payload_bytes();
    let channel = message.get_channel_name();
    if channel == names::CANCEL {
        if let Some(task) = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
            hub.cancel(task);
        }
    } else if let Some(event) = names::task_of(channel).and_then(|task| news::read(task, text)) {
        hub.publish(&[event]);
    }
}
