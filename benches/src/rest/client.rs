//! Requests to the service.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::Service;
use crate::Fault;
use crate::crowd::Caller;
use crate::measure::timed;
use crate::server::Server;
use crate::wire::Connection;

/// A client that may do everything.
pub(crate) struct Client {
    connection: Connection,
    address: SocketAddr,
    token: String,
}

impl Client {
    pub(crate) fn connect(service: &Service, server: &Server) -> Result<Self, Fault> {
        let (address, token) = (server.address, service.token()?);
        Ok(Self { connection: Connection::open(address)?, address, token })
    }

    /// Makes a client with a connection of its own.
    pub(crate) fn another(&self) -> Result<Self, Fault> {
        let (address, token) = (self.address, self.token.clone());
        Ok(Self { connection: Connection::open(address)?, address, token })
    }

    /// Returns what goes over the wire.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        let (host, token) = (self.address, &self.token);
        let body = body.map(Value::to_string).unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// Sends a request, which must succeed, and returns the answer.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Fault> {
        self.time(&self.request(method, path, body))?;
        Ok(serde_json::from_slice(self.connection.body())?)
    }

    /// Takes the time from the first byte of a request to the last byte of its answer.
    pub(crate) fn time(&mut self, request: &[u8]) -> Result<Duration, Fault> {
        timed(|| self.connection.exchange(request))
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.connection.body()
    }

    pub(crate) fn message(&self) -> &[u8] {
        self.connection.message()
    }

    /// Makes a workspace and returns its id.
    pub(crate) fn new_workspace(&mut self) -> Result<String, Fault> {
        let made = self.send("POST", "/api/workspaces", Some(&json!({ "name": "bench" })))?;
        Ok(made["id"].as_str().ok_or("no id of a workspace")?.to_owned())
    }

    /// Makes so many clients that all send the same.
    pub(crate) fn crowd(&self, clients: usize, request: &[u8]) -> Result<Vec<Caller>, Fault> {
        crowd_at(self.address, clients, request)
    }

    /// Opens a stream of events, and leaves it to the caller to read it.
    pub(crate) fn stream_request(&self, task: &str) -> Vec<u8> {
        let (host, token) = (self.address, &self.token);
        format!(
            "GET /api/tasks/{task}/events HTTP/1.1\r\nhost: {host}\r\n\
             authorization: Bearer {token}\r\naccept: text/event-stream\r\n\r\n"
        )
        .into_bytes()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Makes so many clients of some server that all send the same.
pub(crate) fn crowd_at(
    address: SocketAddr,
    clients: usize,
    request: &[u8],
) -> Result<Vec<Caller>, Fault> {
    (0..clients).map(|_| Ok((Connection::open(address)?, request.to_owned()))).collect()
}
