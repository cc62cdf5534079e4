//! The side of `carrel issue` in a hook: an [`IssueStore`] over the socket of `carrel run`.

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

use super::{KEY, MAX_MESSAGE_BYTES, RelayOperation, Request, SOCKET, directory};

/// The issues of the `carrel run` of a data directory.
#[derive(Debug)]
pub(crate) struct RelayClient {
    directory: PathBuf,
}

impl RelayClient {
    /// Returns a client if the issues of the data directory are in a database.
    pub(crate) fn of(data: &Path) -> Option<Self> {
        let directory = directory(data);
        directory.join(SOCKET).exists().then_some(Self { directory })
    }

    async fn request<T: DeserializeOwned>(
        &self,
        operation: RelayOperation,
        now: Timestamp,
    ) -> Result<T, StoreError> {
        let received =
            self.exchange(operation, now).await.map_err(|error| self.unreachable(&error))?;
        let reply: Result<T, String> = serde_json::from_slice(&received)
            .map_err(|error| StoreError::Unreadable { what: error.to_string() })?;
        reply.map_err(|error| StoreError::Unavailable(error.into()))
    }

    #[expect(clippy::disallowed_methods, reason = "the server's own directory, in no workspace")]
    async fn exchange(&self, operation: RelayOperation, now: Timestamp) -> io::Result<Vec<u8>> {
        let key = std::fs::read_to_string(self.directory.join(KEY))?;
        // A socket address holds 108 bytes, fewer than a directory's path may have.
        let directory = File::open(&self.directory)?;
        let socket = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(&serde_json::to_vec(&Request { key, now, operation })?).await?;
        stream.shutdown().await?;
        let mut received = Vec::new();
        stream.take(MAX_MESSAGE_BYTES).read_to_end(&mut received).await?;
        Ok(received)
    }

    fn unreachable(&self, error: &io::Error) -> StoreError {
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
impl IssueStore for RelayClient {
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError> {
        self.request(RelayOperation::Add(issue), now).await
    }

    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
        self.request(RelayOperation::List(filter), SystemClock.now()).await
    }

    async fn change_issue(
        &self,
        number: u64,
        change: IssueChange,
        now: Timestamp,
    ) -> Result<IssueOutcome, StoreError> {
        self.request(RelayOperation::Change(number, change), now).await
    }

    async fn comment(
        &self,
        number: u64,
        comment: NewComment,
        now: Timestamp,
    ) -> Result<Option<Comment>, StoreError> {
        self.request(RelayOperation::Comment(number, comment), now).await
    }

    async fn comments(&self, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError> {
        self.request(RelayOperation::Comments(number, limit), SystemClock.now()).await
    }

    async fn tracker_name(&self) -> Result<String, StoreError> {
        self.request(RelayOperation::Name, SystemClock.now()).await
    }
}
