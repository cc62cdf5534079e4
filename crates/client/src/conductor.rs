//! A conductor: what it does, and orders for it.

use carrel_wire::IssueQuery;
use hyper::Method;
use hyper::body::Bytes;
use serde_json::Value;

use crate::client::{ApiRequest, WorkspaceClient};
use crate::error::ClientError;
use crate::limits::MAX_RESPONSE;

/// The address of an issue that the query names, whatever it is called.
const ISSUE: &str = "/api/v1/issue";

fn named(issue: &str) -> IssueQuery {
    IssueQuery { id: None, identifier: Some(issue.to_owned()) }
}

impl WorkspaceClient {
    /// Returns what a conductor does.
    pub async fn conductor(&self) -> Result<Value, ClientError> {
        self.get("/api/v1/state", &()).await
    }

    /// Returns where an issue stands.
    pub async fn conductor_issue(&self, issue: &str) -> Result<Value, ClientError> {
        self.get(ISSUE, &named(issue)).await
    }

    /// Returns the last runs of an issue, the latest first.
    pub async fn conductor_runs(&self, issue: &str) -> Result<Value, ClientError> {
        self.get(&format!("{ISSUE}/runs"), &named(issue)).await
    }

    /// Returns what was written down about a run, a JSON object a line.
    pub async fn transcript(&self, issue: &str, run: u64) -> Result<Bytes, ClientError> {
        let path = format!("{ISSUE}/runs/{run}");
        let request = ApiRequest::new(Method::GET, &path).query(&named(issue));
        let answer = self.send(request).await?;
        self.bytes(answer, MAX_RESPONSE).await
    }

    /// Gives an order for everything: `pause`, `drain`, `resume` or `refresh`.
    pub async fn send_order(&self, order: &str) -> Result<Value, ClientError> {
        self.json(ApiRequest::new(Method::POST, &format!("/api/v1/{order}"))).await
    }

    /// Gives an order for an issue: `cancel`, `retry`, `unblock`, or `answer` with a body.
    pub async fn send_issue_order(
        &self,
        issue: &str,
        order: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let path = format!("{ISSUE}/{order}");
        let request = ApiRequest::new(Method::POST, &path).query(&named(issue));
        self.json(match body {
            Some(body) => request.with(body),
            None => request,
        })
        .await
    }
}
