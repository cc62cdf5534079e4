//! The tool `linear_graphql`.

use serde_json::{Map, Value, json};

use super::issue_fields::is_id;
use super::scope::{self, ReferencedIds};
use super::{Linear, queries};
use crate::api::ApiRequest;
use crate::error::Result;
use crate::graphql::{
    self,
    document::{GraphqlDocument, Kind},
};
use crate::issue::Issue;
use crate::issue_records::{list, text};
use crate::rest_tool;
use crate::tool::{Tool, ToolRefusal, ToolReply};

/// Issues and comments that one request may name.
const MAX_NAMED: usize = 50;

pub(super) fn tool() -> Tool {
    let description = "Sends a GraphQL query or mutation to Linear, confined to the configured project. \
        Root fields are issue(id:), project(id:) and viewer; issues are listed below project. The variables \
        $issueId and $projectId are set for the current issue. One operation; no block strings.";
    let properties = json!({
        "query": { "type": "string", "description": "One query or mutation." },
        "variables": { "type": "object", "additionalProperties": true },
    });
    Tool::new("linear_graphql", description, &properties, &["query"])
}

impl Linear {
    pub(super) async fn use_tool(
        &self,
        issue: &Issue,
        arguments: Value,
    ) -> Result<ToolReply, ToolRefusal> {
        let (query, mut variables) = read(arguments)?;
        let invalid = |why| ToolRefusal::Arguments(format!("`query` is not valid GraphQL: {why}"));
        let document = graphql::parse(&query).map_err(invalid)?;
        self.fill(&document, &mut variables, issue).await?;
        let named = scope::check(&document, &with_defaults(&document, &variables))?;
        self.verify_scope(named, issue).await?;
        let body = json!({ "query": document.to_string(), "variables": variables });
        rest_tool::check_length(&body)?;
        let response = self.api.send(ApiRequest::post("", body)).await?;
        let mut reply = rest_tool::reply(&self.api, &response);
        let json = response.json().unwrap_or_default();
        reply.success = reply.success && json.is_object() && list(&json, "/errors").is_empty();
        reply.changed = reply.success && document.operation.kind == Kind::Mutation;
        Ok(reply)
    }

    /// Sets the variables `$issueId` and `$projectId` if the request declares them without a value.
    async fn fill(
        &self,
        document: &GraphqlDocument,
        variables: &mut Map<String, Value>,
        issue: &Issue,
    ) -> Result<(), ToolRefusal> {
        for variable in &document.operation.variables {
            let name = variable.name.as_str();
            if variables.contains_key(name) || variable.default.is_some() {
                continue;
            }
            match name {
                "issueId" => variables.insert(name.to_owned(), json!(issue.id)),
                "projectId" => variables.insert(name.to_owned(), json!(self.project_id().await?)),
                _ => None,
            };
        }
        Ok(())
    }

    /// Refuses ids that are not in the project. The agent's own issue needs no request.
    async fn verify_scope(&self, named: ReferencedIds, issue: &Issue) -> Result<(), ToolRefusal> {
        let ReferencedIds { issues, comments, projects } = named;
        if issues.len() + comments.len() > MAX_NAMED {
            let message = format!("it names more than {MAX_NAMED} issues and comments");
            return ToolRefusal::arguments(message);
        }
        for project in projects {
            if project != self.project && project != self.project_id().await? {
                return ToolRefusal::scope(format!("{project:?} is not the configured project"));
            }
        }
        let other = |id: &String| *id != issue.id.0 && *id != issue.identifier;
        let others: Vec<String> = issues.into_iter().filter(other).collect();
        if let Some(name) = others.iter().find(|id| !is_id(id)) {
            let message =
                format!("{name:?} is not the current issue; name others by id, not by key");
            return ToolRefusal::scope(message);
        }
        self.verify_in_project("issues", "IssueFilter", "project", &others).await?;
        let comments: Vec<String> = comments.into_iter().collect();
        self.verify_in_project("comments", "CommentFilter", "issue", &comments).await
    }

    /// Verifies with one query that all ids are in the project.
    async fn verify_in_project(
        &self,
        what: &str,
        kind: &str,
        through: &str,
        ids: &[String],
    ) -> Result<(), ToolRefusal> {
        if ids.is_empty() {
            return Ok(());
        }
        let slug = json!({ "slugId": { "eq": self.project } });
        let path = if through == "project" { slug } else { json!({ "project": slug }) };
        let filter = json!({ "id": { "in": ids }, through: path });
        let asked = queries::matching_ids(what, kind);
        let json = self.query(&asked, json!({ "filter": filter, "first": ids.len() })).await?;
        let found = list(&json[what], "/nodes").iter().filter_map(|node| text(node, "/id"));
        let found: Vec<String> = found.collect();
        match ids.iter().find(|id| !found.contains(id)) {
            Some(id) => {
                let message = format!("{id:?} of the {what} is not in the configured project");
                ToolRefusal::scope(message)
            }
            None => Ok(()),
        }
    }

    async fn project_id(&self) -> Result<&str, ToolRefusal> {
        let id = self.project_id.get_or_try_init(|| async {
            let json = self.query(queries::PROJECT, json!({ "slug": self.project })).await?;
            let found = text(&json, "/projects/nodes/0/id");
            let message = "Linear does not show the configured project";
            found.ok_or_else(|| ToolRefusal::Scope(message.to_owned()))
        });
        Ok(id.await?.as_str())
    }
}

/// Reads the arguments: an object, or the query alone.
fn read(arguments: Value) -> Result<(String, Map<String, Value>), ToolRefusal> {
    let mut json = match arguments {
        Value::String(query) => return Ok((query, Map::new())),
        Value::Object(json) => json,
        _ => return ToolRefusal::arguments("the arguments are neither a query nor an object"),
    };
    let Some(Value::String(query)) = json.remove("query") else {
        return ToolRefusal::arguments("`query` is missing; it is a GraphQL request");
    };
    let variables = match json.remove("variables") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(variables)) => variables,
        Some(_) => return ToolRefusal::arguments("`variables` is not an object"),
    };
    match json.keys().next() {
        Some(name) => ToolRefusal::arguments(format!(
            "unknown argument {name:?}; known are query and variables"
        )),
        None => Ok((query, variables)),
    }
}

/// Returns the variables with the defaults that Linear will apply.
fn with_defaults(document: &GraphqlDocument, variables: &Map<String, Value>) -> Map<String, Value> {
    let mut seen = variables.clone();
    for variable in &document.operation.variables {
        if let (Some(default), false) = (&variable.default, variables.contains_key(&variable.name))
        {
            seen.insert(variable.name.clone(), default.resolve(&Map::new()));
        }
    }
    seen
}
