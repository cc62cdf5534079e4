//! Asking the `carrel run` of a data directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use carrel_domain::{Clock as _, SystemClock, Timestamp};
use carrel_store::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue, StoreError,
    StoredIssue,
};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::{KEY, MAX_MESSAGE_BYTES, Request, SOCKET, Wish, directory};

/// The issues that the `carrel run` of a data directory works off.
#[derive(Debug)]
pub(crate) struct Relay {
    directory: PathBuf,
}

impl Relay {
    /// Returns the way to them, if they are in a database.
    pub(crate) fn of(data: &Path) -> Option<Self> {
        let directory = directory(data);
        directory.join(SOCKET).exists().then_some(Self { directory })
    }

    async fn ask<T: DeserializeOwned>(&self, wish: Wish, now: Timestamp) -> Result<T, StoreError> {
        let said = self.exchange(wish, now).await.map_err(|error| self.nobody(&error))?;
        let answer: Result<T, String> = serde_json::from_slice(&said)
            .map_err(|error| StoreError::Unreadable { what: error.to_string() })?;
        answer.map_err(|error| StoreError::Unavailable(error.into()))
    }

    #[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
    async fn exchange(&self, wish: Wish, now: Timestamp) -> io::Result<Vec<u8>> {
        let key = std::fs::read_to_string(self.directory.join(KEY))?;
        // The name of a socket may be shorter than that of a directory.
        let directory = File::open(&self.directory)?;
        let socket = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(&serde_json::to_vec(&Request { key, now, wish })?).await?;
        stream.shutdown().await?;
        let mut said = Vec::new();
        stream.take(MAX_MESSAGE_BYTES).read_to_end(&mut said).await?;
        Ok(said)
    }

    fn nobody(&self, error: &io::Error) -> StoreError {
        let directory = self.directory.parent().unwrap_or(&self.directory).display();
        StoreError::Unavailable(
            format!(
                "the issues of {directory} are in a database, and no carrel run answers there ({error}); \
                 set DATABASE_URL to the address that carrel run had"
            )
            .into(),
        )
    }
}

#[async_trait]
impl IssueStore for Relay {
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError> {
        self.ask(Wish::Add(issue), now).await
    }

    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
        self.ask(Wish::List(filter), SystemClock.now()).await
    }

    async fn change_issue(
        &self,
        number: u64,
        change: IssueChange,
        now: Timestamp,
    ) -> Result<IssueOutcome, StoreError> {
        self.ask(Wish::Change(number, change), now).await
    }

    async fn comment(
        &self,
        number: u64,
        comment: NewComment,
        now: Timestamp,
    ) -> Result<Option<Comment>, StoreError> {
        self.ask(Wish::Comment(number, comment), now).await
    }

    async fn comments(&self, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError> {
        self.ask(Wish::Comments(number, limit), SystemClock.now()).await
    }

    async fn tracker_name(&self) -> Result<String, StoreError> {
        self.ask(Wish::Name, SystemClock.now()).await
    }
}
