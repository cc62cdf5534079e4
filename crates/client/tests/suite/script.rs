//! A scripted server.

use std::sync::{Arc, Mutex};

use carrel_client::{Credentials, WorkspaceClient};
use carrel_domain::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a connection, for each request on it.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Sends this, and waits for the next request.
    Say(String),
    /// Sends this and closes the connection.
    SayAndClose(String),
    /// Says nothing until the client has gone.
    Hang,
}

/// A server with a part for each request, in the order in which they come.
pub(crate) struct Script {
    pub(crate) address: String,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl Script {
    pub(crate) async fn start(parts: Vec<Part>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (heads, connections) = (Arc::default(), Arc::default());
        let script =
            Self { address, heads: Arc::clone(&heads), connections: Arc::clone(&connections) };
        tokio::spawn(async move {
            let mut parts = parts.into_iter();
            while parts.len() > 0 {
                let (mut stream, _) = listener.accept().await.unwrap();
                *connections.lock().unwrap() += 1;
                while let Some(head) = read_head(&mut stream).await {
                    heads.lock().unwrap().push(head);
                    match parts.next() {
                        Some(Part::Say(text)) => stream.write_all(text.as_bytes()).await.unwrap(),
                        Some(Part::SayAndClose(text)) => {
                            stream.write_all(text.as_bytes()).await.unwrap();
                            break;
                        }
                        Some(Part::Hang) => {
                            // The client's end is the end of this.
                            let _ = stream.read(&mut [0; 1]).await;
                        }
                        None => break,
                    }
                }
            }
        });
        script
    }

    pub(crate) fn client(&self) -> WorkspaceClient {
        let credentials = Credentials::Bearer(Secret::new("s3cret"));
        WorkspaceClient::new(self.address.parse().unwrap(), &credentials)
    }

    /// The heads of the requests that came, in small letters.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}

pub(crate) fn response(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn json(status: &str, body: &str) -> String {
    response(status, "application/json", body)
}
