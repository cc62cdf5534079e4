//! Where Redis is, and how to get there.

use std::io;
use std::sync::Arc;

use carrel_domain::Secret;
use carrel_store::tls::{Authorities, Rule, verified};
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

/// Where Redis is. Prints without the password.
pub(super) struct Address {
    client: Client,
    encrypted: Option<Encrypted>,
}

/// A server that an authority vouches for, under the name that it is called by.
struct Encrypted {
    config: Arc<ClientConfig>,
    host: String,
    port: u16,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

impl Address {
    /// Reads it. Nothing of it is in the error, since it may hold a password.
    pub(super) fn read(address: &Secret) -> Result<Self, RedisAddressError> {
        let refused = |why: &str| RedisAddressError(why.to_owned());
        let malformed = || refused("the address is not of this form");
        let text = address.expose();
        let encrypted = text.strip_prefix(ENCRYPTED);
        if encrypted.is_some_and(|rest| rest.contains('#')) {
            return Err(refused("what follows # is not known here; take it out"));
        }
        let plain = encrypted.map(|rest| format!("redis://{rest}"));
        let info = plain.as_deref().unwrap_or(text).into_connection_info();
        let info = info.map_err(|_| malformed())?;
        let encrypted = match (encrypted, info.addr()) {
            (None, _) => None,
            (Some(_), ConnectionAddr::Tcp(host, port)) => {
                let config = verified(Rule::AuthorityAndName, &Authorities::System);
                let config = config.map_err(|error| refused(&error.to_string()))?;
                Some(Encrypted { config, host: host.clone(), port: *port })
            }
            (Some(_), _) => return Err(malformed()),
        };
        let client = Client::open(info).map_err(|_| malformed())?;
        Ok(Self { client, encrypted })
    }

    /// Makes a connection for orders.
    pub(super) async fn connect(
        &self,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        let Some(encrypted) = &self.encrypted else {
            return self.client.get_multiplexed_async_connection_with_config(&config).await;
        };
        let stream = encrypted.connect().await?;
        let made = MultiplexedConnection::new_with_config(self.settings(), stream, config).await?;
        let (connection, carrying) = made;
        // It ends with the last copy of the connection.
        tokio::spawn(carrying);
        Ok(connection)
    }

    /// Makes a connection that listens to channels.
    pub(super) async fn listen(&self) -> Result<PubSub, RedisError> {
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
