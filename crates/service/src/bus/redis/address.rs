//! The URL of Redis, and connections to it.
//!
//! `rediss://` connections verify the server's certificate and name against the system's authorities;
//! there is no way to turn that off.

use std::io;
use std::sync::Arc;

use carrel_domain::Secret;
use carrel_store::tls::{Authorities, Verification, verified};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo,
    RedisError,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::RedisAddressError;

const ENCRYPTED: &str = "rediss://";

/// A parsed `REDIS_URL`. Its `Debug` form shows no password.
pub(super) struct RedisAddress {
    client: Client,
    encrypted: Option<Encrypted>,
}

struct Encrypted {
    config: Arc<ClientConfig>,
    host: String,
    port: u16,
}

impl std::fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisAddress").finish_non_exhaustive()
    }
}

impl RedisAddress {
    /// Parses the URL. The error contains nothing of it, since it may hold a password.
    pub(super) fn parse(address: &Secret) -> Result<Self, RedisAddressError> {
        let refused = |why: &str| RedisAddressError(why.to_owned());
        let malformed = || refused("the URL does not have this form");
        let text = address.expose();
        let encrypted = text.strip_prefix(ENCRYPTED);
        if encrypted.is_some_and(|rest| rest.contains('#')) {
            return Err(refused("a fragment after # is not supported; remove it"));
        }
        let plain = encrypted.map(|rest| format!("redis://{rest}"));
        let info = plain.as_deref().unwrap_or(text).into_connection_info();
        let info = info.map_err(|_| malformed())?;
        let encrypted = match (encrypted, info.addr()) {
            (None, _) => None,
            (Some(_), ConnectionAddr::Tcp(host, port)) => {
                let config = verified(Verification::AuthorityAndName, &Authorities::System);
                let config = config.map_err(|error| refused(&error.to_string()))?;
                Some(Encrypted { config, host: host.clone(), port: *port })
            }
            (Some(_), _) => return Err(malformed()),
        };
        let client = Client::open(info).map_err(|_| malformed())?;
        Ok(Self { client, encrypted })
    }

    /// Opens a connection for commands.
    pub(super) async fn connect(
        &self,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        let Some(encrypted) = &self.encrypted else {
            return self.client.get_multiplexed_async_connection_with_config(&config).await;
        };
        let stream = encrypted.connect().await?;
        let made = MultiplexedConnection::new_with_config(self.settings(), stream, config).await?;
        let (connection, driver) = made;
        // The driver ends with the last clone of the connection.
        carrel_exec::spawn_task(driver);
        Ok(connection)
    }

    /// Opens a connection for channels.
    pub(super) async fn pubsub(&self) -> Result<PubSub, RedisError> {
        match &self.encrypted {
            None => self.client.get_async_pubsub().await,
            Some(encrypted) => PubSub::new(self.settings(), encrypted.connect().await?).await,
        }
    }

    fn settings(&self) -> &RedisConnectionInfo {
        self.client.get_connection_info().redis_settings()
    }
}

impl Encrypted {
    async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let Self { config, host, port } = self;
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(Arc::clone(config)).connect(name, stream).await
    }
}
