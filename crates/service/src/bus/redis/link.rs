//! The connection for orders, made again whenever it breaks.

use std::time::Duration;

use carrel_domain::Secret;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, Pipeline, RedisError};
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use super::RedisAddressError;
use super::address::Address;
use crate::bus::{BusError, BusHealth};

/// How long Redis may take to answer before it counts as away.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is asked whether it is there.
const ASK: Duration = Duration::from_secs(1);

/// The shortest and the longest wait before the next try. What waits for hints is to be delivered
/// within a second of the return.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(400));

/// The connection for orders, and the way to make others.
#[derive(Debug)]
pub(super) struct Link {
    address: Address,
    state: watch::Sender<State>,
    /// An order failed.
    broken: Notify,
}

#[derive(Clone)]
enum State {
    There(MultiplexedConnection),
    Away(String),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::There(_) => f.write_str("There"),
            Self::Away(reason) => f.debug_tuple("Away").field(reason).finish(),
        }
    }
}

impl Link {
    pub(super) fn new(address: &Secret) -> Result<Self, RedisAddressError> {
        let address = Address::read(address)?;
        let state = watch::Sender::new(State::Away("not connected yet".to_owned()));
        Ok(Self { address, state, broken: Notify::new() })
    }

    /// Keeps the connection, for ever.
    pub(super) async fn keep(&self) {
        let (shortest, longest) = TRY_AGAIN;
        let mut wait = shortest;
        loop {
            match self.connect(Some(PATIENCE)).await {
                Ok(connection) => {
                    wait = shortest;
                    info!("connected to Redis");
                    self.state.send_replace(State::There(connection.clone()));
                    let error = self.until_broken(connection).await;
                    warn!(%error, "Redis is away; tasks are found in the store");
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
            let _ = tokio::time::timeout(ASK, self.broken.notified()).await;
            let asked = redis::cmd("PING").query_async::<()>(&mut connection).await;
            if let Err(error) = asked {
                return failed(&error);
            }
        }
    }

    /// Makes a connection of its own.
    pub(super) async fn connect(
        &self,
        patience: Option<Duration>,
    ) -> Result<MultiplexedConnection, BusError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(patience);
        let connecting = self.address.connect(config);
        // A server that accepts and says nothing is away, too.
        match tokio::time::timeout(PATIENCE * 2, connecting).await {
            Ok(connected) => connected.map_err(|error| failed(&error)),
            Err(_) => Err(BusError { reason: "Redis does not answer".to_owned() }),
        }
    }

    /// Makes a connection that listens to channels.
    pub(super) async fn listen(&self) -> Result<redis::aio::PubSub, BusError> {
        match tokio::time::timeout(PATIENCE * 2, self.address.listen()).await {
            Ok(connected) => connected.map_err(|error| failed(&error)),
            Err(_) => Err(BusError { reason: "Redis does not answer".to_owned() }),
        }
    }

    /// Gives orders that return something.
    pub(super) async fn ask<T: FromRedisValue>(&self, orders: &Pipeline) -> Result<T, BusError> {
        let mut connection = match &*self.state.borrow() {
            State::There(connection) => connection.clone(),
            State::Away(reason) => return Err(BusError { reason: reason.clone() }),
        };
        orders.query_async(&mut connection).await.map_err(|error| {
            self.broken.notify_one();
            failed(&error)
        })
    }

    /// Gives orders.
    pub(super) async fn order(&self, orders: &Pipeline) -> Result<(), BusError> {
        self.ask::<()>(orders).await
    }

    pub(super) fn health(&self) -> BusHealth {
        match &*self.state.borrow() {
            State::There(_) => BusHealth::Available,
            State::Away(reason) => BusHealth::Unavailable { reason: reason.clone() },
        }
    }

    /// Waits until Redis is away.
    pub(super) async fn away(&self) {
        self.until(|state| matches!(state, State::Away(_))).await;
    }

    /// Waits until Redis is there.
    pub(super) async fn there(&self) {
        self.until(|state| matches!(state, State::There(_))).await;
    }

    /// Waits until Redis is there, having been away.
    pub(super) async fn returned(&self) {
        self.away().await;
        self.there().await;
    }

    async fn until(&self, is_it: impl FnMut(&State) -> bool) {
        let mut state = self.state.subscribe();
        // The sender is ours, so that it is never gone.
        let _ = state.wait_for(is_it).await;
    }
}

pub(super) fn failed(error: &RedisError) -> BusError {
    BusError { reason: error.to_string() }
}
