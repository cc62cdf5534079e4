//! The files of a workspace.

use bytes::Bytes;
use carrel_domain::{ByteSize, WorkspaceId};
use hyper::Method;
use serde_json::json;

use crate::answers::{Directory, FileContent, Matches, Written};
use crate::body::Body;
use crate::client::{ApiRequest, WorkspaceClient};
use crate::commands::LONGEST_COMMAND;
use crate::error::ClientError;
use crate::workspaces::at;

const BYTES: &str = "application/octet-stream";

/// What is to be searched for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// The regular expression.
    pub pattern: String,
    /// Where, relative to the workspace.
    pub path: Option<String>,
    /// Only files that match this glob.
    pub include: Option<String>,
    /// How many lines to return, at most 200.
    pub max_results: Option<u32>,
}

impl WorkspaceClient {
    /// Lists a directory; `.` is the top.
    pub async fn list_files(
        &self,
        workspace: WorkspaceId,
        path: &str,
    ) -> Result<Directory, ClientError> {
        self.get(&at(workspace, "/files"), &[("path", path.to_owned())]).await
    }

    /// Returns the text of a file.
    pub async fn read_file(
        &self,
        workspace: WorkspaceId,
        path: &str,
    ) -> Result<FileContent, ClientError> {
        self.get(&at(workspace, "/files/content"), &[("path", path.to_owned())]).await
    }

    /// Returns the bytes of a file that is not longer than this.
    pub async fn read_raw(
        &self,
        workspace: WorkspaceId,
        path: &str,
        limit: ByteSize,
    ) -> Result<Bytes, ClientError> {
        let query = [("path", path.to_owned())];
        let route = at(workspace, "/files/raw");
        let request =
            ApiRequest { query: &query, accept: "*/*", ..ApiRequest::new(Method::GET, &route) };
        let answer = self.send(request).await?;
        self.bytes(answer, limit).await
    }

    /// Makes a file, or replaces all of its text.
    pub async fn write_file(
        &self,
        workspace: WorkspaceId,
        path: &str,
        content: &str,
    ) -> Result<Written, ClientError> {
        let body = json!({ "path": path, "content": content });
        self.post(&at(workspace, "/files/write"), &body).await
    }

    /// Makes a file, or replaces all of its bytes, from a body of any length.
    pub async fn write_raw(
        &self,
        workspace: WorkspaceId,
        path: &str,
        body: Body,
    ) -> Result<Written, ClientError> {
        let query = [("path", path.to_owned())];
        let route = at(workspace, "/files/raw");
        let request = ApiRequest {
            query: &query,
            kind: Some(BYTES),
            body,
            within: LONGEST_COMMAND,
            ..ApiRequest::new(Method::PUT, &route)
        };
        self.json(request).await
    }

    /// Searches files with a regular expression.
    pub async fn search_files(
        &self,
        workspace: WorkspaceId,
        search: &SearchQuery,
    ) -> Result<Matches, ClientError> {
        let pairs = [
            ("pattern", Some(search.pattern.clone())),
            ("path", search.path.clone()),
            ("include", search.include.clone()),
            ("max_results", search.max_results.map(|most| most.to_string())),
        ];
        let query: Vec<_> =
            pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        self.get(&at(workspace, "/files/grep"), &query).await
    }
}
