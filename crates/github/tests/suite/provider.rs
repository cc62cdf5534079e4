//! GitHub and Composio, as far as they are needed.

use std::sync::{Arc, Mutex};

use carrel_config::Environment;
use carrel_domain::WorkspaceId;
use carrel_github::{GitHub, GitHubSettings, GitHubSettingsError, PageRequest, TokenRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const PAGE: PageRequest = PageRequest { number: 2, size: 5 };

pub(crate) const WORKSPACE: &str = "0198c0de-7a11-7000-8000-000000000001";
pub(crate) const OTHER: &str = "0198c0de-7a11-7000-8000-000000000002";

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Method and path.
    pub(crate) line: String,
    /// Names in small letters, values as they came.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

type Answers = Vec<(&'static str, String)>;

/// A provider with an answer for each beginning of a request.
pub(crate) struct Provider {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    answers: Arc<Mutex<Answers>>,
}

impl Provider {
    pub(crate) async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { url, heard: Arc::default(), answers: Arc::new(Mutex::new(answers)) };
        let (heard, answers) = (Arc::clone(&provider.heard), Arc::clone(&provider.answers));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = read(&mut stream).await else { continue };
                let known = answers.lock().unwrap().clone();
                let answer = known.iter().find(|(line, _)| request.line.starts_with(line));
                let missing = json("404 Not Found", r#"{"message":"Not Found"}"#);
                let answer = answer.map_or(missing, |(_, answer)| answer.clone());
                heard.lock().unwrap().push(request);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        provider
    }

    pub(crate) fn answer(&self, answers: Answers) {
        *self.answers.lock().unwrap() = answers;
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.heard().into_iter().map(|heard| heard.line).collect()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Heard> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let line = head.lines().next().unwrap().replace(" HTTP/1.1", "");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(Heard { line, head, body: String::from_utf8(body).unwrap() })
}

/// An answer of JSON; more headers may stand behind the status.
pub(crate) fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn settings(
    pairs: &[(&'static str, &str)],
) -> Result<GitHubSettings, GitHubSettingsError> {
    GitHubSettings::read(&Environment::from_pairs(pairs.iter().copied()))
}

pub(crate) fn github(pairs: &[(&'static str, &str)]) -> GitHub {
    GitHub::new(settings(pairs).unwrap())
}

pub(crate) fn request(
    workspace: &str,
    owner: Option<&str>,
    repository: Option<&str>,
) -> TokenRequest {
    let workspace: WorkspaceId = workspace.parse().unwrap();
    let own = |text: Option<&str>| text.map(str::to_owned);
    TokenRequest { workspace, owner: own(owner), repository: own(repository) }
}

pub(crate) const REPOSITORY: &str = r#"{"name":"app","full_name":"acme/app","clone_url":"https://github.com/acme/app.git","html_url":"https://github.com/acme/app","description":null,"default_branch":"main","private":true,"language":"Rust","updated_at":"2026-11-15T12:00:00Z","owner":{"login":"acme"}}"#;
