//! A server that publishes keys, or something else.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server with one answer, which may change.
pub(super) struct Published {
    pub(super) url: String,
    answer: Arc<Mutex<Option<String>>>,
    asked: Arc<Mutex<usize>>,
}

impl Published {
    pub(super) async fn start(keys: String) -> Self {
        Self::saying(Some(answer("200 OK", &keys))).await
    }

    /// One that says nothing at all if there is no answer.
    pub(super) async fn saying(answer: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/.well-known/jwks.json", listener.local_addr().unwrap());
        let server = Self { url, answer: Arc::new(Mutex::new(answer)), asked: Arc::default() };
        let (answer, asked) = (Arc::clone(&server.answer), Arc::clone(&server.asked));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                if stream.read(&mut head).await.unwrap_or(0) == 0 {
                    continue;
                }
                *asked.lock().unwrap() += 1;
                let text = answer.lock().unwrap().clone();
                match text {
                    // The client may have heard enough.
                    Some(text) => drop(stream.write_all(text.as_bytes()).await),
                    None => drop(stream.read(&mut head).await),
                }
            }
        });
        server
    }

    pub(super) fn publish(&self, keys: &str) {
        self.say(Some(answer("200 OK", keys)));
    }

    pub(super) fn say(&self, answer: Option<String>) {
        *self.answer.lock().unwrap() = answer;
    }

    pub(super) fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}

pub(super) fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Waits until something is so.
pub(super) async fn until(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < deadline, "it never came true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Lets time pass.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
