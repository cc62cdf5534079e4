//! The API of a conductor (`carrel run --port`).
//!
//! Replies are JSON values: their types belong to the conductor, and the command line prints them as they
//! are.

use carrel_wire::IssueQuery;
use hyper::Method;
use hyper::body::Bytes;
use serde_json::Value;

use crate::client::{ApiRequest, WorkspaceClient};
use crate::error::Result;
use crate::limits::MAX_RESPONSE;

/// The path of an issue that the query names. A path with the identifier in it would be ambiguous for an
/// issue that is called like a route.
const ISSUE: &str = "/api/v1/issue";

fn named(issue: &str) -> IssueQuery {
    IssueQuery { id: None, identifier: Some(issue.to_owned()) }
}

impl WorkspaceClient {
    /// Returns the snapshot of a conductor: running, waiting and blocked issues, and totals.
    pub async fn conductor(&self) -> Result<Value> {
        self.get("/api/v1/state", &()).await
    }

    /// Returns the state of an issue.
    pub async fn conductor_issue(&self, issue: &str) -> Result<Value> {
        self.get(ISSUE, &named(issue)).await
    }

    /// Returns the last runs of an issue, the latest first.
    pub async fn conductor_runs(&self, issue: &str) -> Result<Value> {
        self.get(&format!("{ISSUE}/runs"), &named(issue)).await
    }

    /// Returns the transcript of a run so far, one JSON object per line.
    pub async fn transcript(&self, issue: &str, run: u64) -> Result<Bytes> {
        let path = format!("{ISSUE}/runs/{run}");
        let request = ApiRequest::new(Method::GET, &path).query(&named(issue));
        let response = self.send(request).await?;
        self.bytes(response, MAX_RESPONSE).await
    }

    /// Sends a command to the conductor: `pause`, `drain`, `resume` or `refresh`.
    pub async fn send_order(&self, order: &str) -> Result<Value> {
        self.json(ApiRequest::new(Method::POST, &format!("/api/v1/{order}"))).await
    }

    /// Sends a command about an issue: `cancel`, `retry`, `unblock`, or `answer` with a body.
    pub async fn send_issue_order(
        &self,
        issue: &str,
        order: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let path = format!("{ISSUE}/{order}");
        let request = ApiRequest::new(Method::POST, &path).query(&named(issue));
        self.json(match body {
            Some(body) => request.with(body),
            None => request,
        })
        .await
    }
}
