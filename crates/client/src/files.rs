//! `/files` of a workspace. Paths are relative to the workspace.
//!
//! Text and bytes have separate routes: text is checked to be UTF-8 and comes with its language, bytes are
//! passed as they are and can be streamed.

use bytes::Bytes;
use carrel_domain::{ByteSize, WorkspaceId};
use carrel_wire::{
    DirectoryListing, DirectoryQuery, FileQuery, ReadFileReply, SearchMatches, SearchQuery,
    WriteFileRequest, WrittenFile,
};
use hyper::Method;

use crate::body::Body;
use crate::client::{ApiRequest, WorkspaceClient};
use crate::commands::LONGEST_COMMAND;
use crate::error::Result;
use crate::workspaces::at;

const BYTES: &str = "application/octet-stream";

fn file(path: &str) -> FileQuery {
    FileQuery { path: Some(path.to_owned()) }
}

impl WorkspaceClient {
    /// Lists a directory; `.` is the workspace itself.
    pub async fn list_files(&self, workspace: WorkspaceId, path: &str) -> Result<DirectoryListing> {
        self.get(&at(workspace, "/files"), &DirectoryQuery { path: Some(path.to_owned()) }).await
    }

    /// Returns a text file of at most 2 MiB.
    pub async fn read_file(&self, workspace: WorkspaceId, path: &str) -> Result<ReadFileReply> {
        self.get(&at(workspace, "/files/content"), &file(path)).await
    }

    /// Returns the bytes of a file. Fails if they are more than `limit`.
    pub async fn read_raw(
        &self,
        workspace: WorkspaceId,
        path: &str,
        limit: ByteSize,
    ) -> Result<Bytes> {
        let route = at(workspace, "/files/raw");
        let request =
            ApiRequest { accept: "*/*", ..ApiRequest::new(Method::GET, &route).query(&file(path)) };
        let response = self.send(request).await?;
        self.bytes(response, limit).await
    }

    /// Creates a text file, or replaces its content.
    pub async fn write_file(
        &self,
        workspace: WorkspaceId,
        path: &str,
        content: &str,
    ) -> Result<WrittenFile> {
        let body = WriteFileRequest { path: path.to_owned(), content: content.to_owned() };
        self.post(&at(workspace, "/files/write"), &body).await
    }

    /// Creates a file, or replaces its content, from a stream of any length. The file changes when all of it
    /// has arrived.
    pub async fn write_raw(
        &self,
        workspace: WorkspaceId,
        path: &str,
        body: Body,
    ) -> Result<WrittenFile> {
        let route = at(workspace, "/files/raw");
        let request = ApiRequest {
            kind: Some(BYTES),
            body,
            within: LONGEST_COMMAND,
            ..ApiRequest::new(Method::PUT, &route).query(&file(path))
        };
        self.json(request).await
    }

    /// Searches files with a regular expression.
    pub async fn search_files(
        &self,
        workspace: WorkspaceId,
        search: &SearchQuery,
    ) -> Result<SearchMatches> {
        self.get(&at(workspace, "/files/grep"), search).await
    }
}
