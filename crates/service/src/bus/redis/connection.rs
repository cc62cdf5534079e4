//! The shared connection for commands, kept open by one task.
//!
//! All commands of a process are multiplexed over one connection. It is checked with a `PING` every
//! second and at once after a failed command; when that fails the bus is `Away`, commands fail without
//! waiting, and the connection is made again with a short back-off.

use std::time::Duration;

use carrel_domain::Secret;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, Pipeline, RedisError};
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use super::RedisAddressError;
use super::address::RedisAddress;
use crate::bus::{BusError, BusHealth};

/// The time after which an unanswered command fails and the bus counts as away.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

const PING_EVERY: Duration = Duration::from_secs(1);

/// The first and the longest wait before a reconnection. Short, so that tasks which wait for hints are
/// offered within a second after Redis returns.
const RECONNECT_DELAY: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(400));

/// The connection for commands and its state; also opens further connections.
#[derive(Debug)]
pub(super) struct Connection {
    address: RedisAddress,
    state: watch::Sender<State>,
    /// Notified when a command failed.
    command_failed: Notify,
}

#[derive(Clone)]
enum State {
    Connected(MultiplexedConnection),
    /// With the last error.
    Away(String),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connected(_) => f.write_str("Connected"),
            Self::Away(reason) => f.debug_tuple("Away").field(reason).finish(),
        }
    }
}

impl Connection {
    pub(super) fn new(address: &Secret) -> Result<Self, RedisAddressError> {
        let address = RedisAddress::parse(address)?;
        let state = watch::Sender::new(State::Away("not connected yet".to_owned()));
        Ok(Self { address, state, command_failed: Notify::new() })
    }

    /// Connects, and reconnects whenever the connection breaks. Never returns.
    pub(super) async fn maintain(&self) {
        let (shortest, longest) = RECONNECT_DELAY;
        let mut wait = shortest;
        loop {
            match self.connect(Some(RESPONSE_TIMEOUT)).await {
                Ok(connection) => {
                    wait = shortest;
                    info!("connected to Redis");
                    self.state.send_replace(State::Connected(connection.clone()));
                    let error = self.until_broken(connection).await;
                    warn!(%error, "lost the connection to Redis; workers poll the store");
                    self.state.send_replace(State::Away(error.reason));
                }
                Err(error) => {
                    self.state.send_replace(State::Away(error.reason));
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(longest);
                }
            }
        }
    }

    async fn until_broken(&self, mut connection: MultiplexedConnection) -> BusError {
        loop {
            let _ = tokio::time::timeout(PING_EVERY, self.command_failed.notified()).await;
            let pong = redis::cmd("PING").query_async::<()>(&mut connection).await;
            if let Err(error) = pong {
                return error.into();
            }
        }
    }

    /// Opens a connection of its own, for a caller that blocks on it. Without `response_timeout` a
    /// command may wait for ever.
    pub(super) async fn connect(
        &self,
        response_timeout: Option<Duration>,
    ) -> Result<MultiplexedConnection, BusError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(RESPONSE_TIMEOUT))
            .set_response_timeout(response_timeout);
        // A server may accept the connection and then stay silent.
        answered(RESPONSE_TIMEOUT * 2, self.address.connect(config)).await
    }

    /// Opens a connection for channels.
    pub(super) async fn pubsub(&self) -> Result<redis::aio::PubSub, BusError> {
        answered(RESPONSE_TIMEOUT * 2, self.address.pubsub()).await
    }

    /// Runs commands and returns their replies. Fails at once while Redis is away.
    pub(super) async fn query<T: FromRedisValue>(
        &self,
        pipeline: &Pipeline,
    ) -> Result<T, BusError> {
        let mut connection = match &*self.state.borrow() {
            State::Connected(connection) => connection.clone(),
            State::Away(reason) => return Err(BusError { reason: reason.clone() }),
        };
        pipeline.query_async(&mut connection).await.map_err(|error| {
            self.command_failed.notify_one();
            error.into()
        })
    }

    /// Runs commands whose replies do not matter.
    pub(super) async fn execute(&self, pipeline: &Pipeline) -> Result<(), BusError> {
        self.query::<()>(pipeline).await
    }

    pub(super) fn health(&self) -> BusHealth {
        match &*self.state.borrow() {
            State::Connected(_) => BusHealth::Available,
            State::Away(reason) => BusHealth::Unavailable { reason: reason.clone() },
        }
    }

    /// Waits until the connection is broken; returns at once if it is.
    pub(super) async fn disconnected(&self) {
        self.until(|state| matches!(state, State::Away(_))).await;
    }

    /// Waits until the connection works; returns at once if it does.
    pub(super) async fn connected(&self) {
        self.until(|state| matches!(state, State::Connected(_))).await;
    }

    /// Waits until the connection breaks and works again.
    pub(super) async fn reconnected(&self) {
        self.disconnected().await;
        self.connected().await;
    }

    async fn until(&self, reached: impl FnMut(&State) -> bool) {
        let mut state = self.state.subscribe();
        // Cannot fail: `self` owns the sender.
        let _ = state.wait_for(reached).await;
    }
}

impl From<RedisError> for BusError {
    fn from(error: RedisError) -> Self {
        Self { reason: error.to_string() }
    }
}

/// Waits for a reply of Redis, at most `limit`.
pub(super) async fn answered<T>(
    limit: Duration,
    reply: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, BusError> {
    let silent = |_| BusError { reason: "Redis does not answer".to_owned() };
    Ok(tokio::time::timeout(limit, reply).await.map_err(silent)??)
}
