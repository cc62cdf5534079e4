//! The tool for agents.

use serde_json::{Map, Value, json};

use super::issue_fields::is_id;
use super::scope::{self, ReferencedIds};
use super::{Linear, queries};
use crate::api::ApiRequest;
use crate::graphql::{self, document::GraphqlDocument};
use crate::issue::Issue;
use crate::issue_records::{list, text};
use crate::rest_tool;
use crate::tool::{Tool, ToolRefusal, ToolReply};

pub(super) const NAME: &str = "linear_graphql";

/// How many issues and comments a question may name.
const MAX_NAMED: usize = 50;

pub(super) fn tool() -> Tool {
    let description = "Asks Linear a question in GraphQL, or makes a change, for the configured project alone. \
        Begin with issue(id:), project(id:) or viewer; issues are listed below project. Variables named \
        $issueId and $projectId are filled in for the issue at hand. One operation; no texts in three quotes.";
    Tool {
        name: NAME.to_owned(),
        description: description.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "One query or mutation." },
                "variables": { "type": "object", "additionalProperties": true },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
    }
}

impl Linear {
    pub(super) async fn use_tool(
        &self,
        issue: &Issue,
        arguments: Value,
    ) -> Result<ToolReply, ToolRefusal> {
        let (query, mut variables) = read(arguments)?;
        let document = graphql::parse(&query).map_err(|why| {
            ToolRefusal::arguments(format!("`query` is no question in GraphQL: {why}"))
        })?;
        self.fill(&document, &mut variables, issue).await?;
        let named = scope::judge(&document, &with_defaults(&document, &variables))?;
        self.look_up(named, issue).await?;
        let body = json!({ "query": document.to_string(), "variables": variables });
        if rest_tool::is_too_long(&body) {
            return Err(rest_tool::too_long());
        }
        let answer = self.api.send(ApiRequest::post("", body)).await?;
        let mut reply = rest_tool::reply(&self.api, &answer);
        let told = answer.json().unwrap_or_default();
        reply.success = reply.success && told.is_object() && list(&told, "/errors").is_empty();
        Ok(reply)
    }

    /// Fills in the variables that stand for the issue at hand, where the question takes them.
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

    /// Refuses what is not of the project.
    async fn look_up(&self, named: ReferencedIds, issue: &Issue) -> Result<(), ToolRefusal> {
        let ReferencedIds { issues, comments, projects } = named;
        if issues.len() + comments.len() > MAX_NAMED {
            return Err(ToolRefusal::arguments(format!(
                "it names more than {MAX_NAMED} issues and comments"
            )));
        }
        for project in projects {
            if project != self.project && project != self.project_id().await? {
                return Err(ToolRefusal::scope(format!(
                    "{project:?} is not the configured project"
                )));
            }
        }
        let other = |id: &String| *id != issue.id.0 && *id != issue.identifier;
        let others: Vec<String> = issues.into_iter().filter(other).collect();
        if let Some(name) = others.iter().find(|id| !is_id(id)) {
            let message = format!(
                "{name:?} is not the issue at hand; name others by their id, not by their key"
            );
            return Err(ToolRefusal::scope(message));
        }
        self.all_here("issues", "IssueFilter", "project", &others).await?;
        let comments: Vec<String> = comments.into_iter().collect();
        self.all_here("comments", "CommentFilter", "issue", &comments).await
    }

    /// Asks whether all of these are of the project.
    async fn all_here(
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
        let asked = queries::here(what, kind);
        let told = self.ask(&asked, json!({ "filter": filter, "first": ids.len() })).await?;
        let found: Vec<String> = list(&told, &format!("/{what}/nodes"))
            .iter()
            .filter_map(|node| text(node, "/id"))
            .collect();
        match ids.iter().find(|id| !found.contains(id)) {
            Some(id) => Err(ToolRefusal::scope(format!(
                "{id:?} of the {what} is not of the configured project"
            ))),
            None => Ok(()),
        }
    }

    async fn project_id(&self) -> Result<&str, ToolRefusal> {
        let id = self.project_id.get_or_try_init(|| async {
            let told = self.ask(queries::PROJECT, json!({ "slug": self.project })).await?;
            let found = text(&told, "/projects/nodes/0/id");
            found.ok_or_else(|| ToolRefusal::scope("Linear does not show the configured project"))
        });
        Ok(id.await?.as_str())
    }
}

/// Reads the arguments: an object, or no more than the question.
fn read(arguments: Value) -> Result<(String, Map<String, Value>), ToolRefusal> {
    let mut told = match arguments {
        Value::String(query) => return Ok((query, Map::new())),
        Value::Object(told) => told,
        _ => {
            return Err(ToolRefusal::arguments(
                "the arguments are neither a question nor an object",
            ));
        }
    };
    let Some(Value::String(query)) = told.remove("query") else {
        return Err(ToolRefusal::arguments("`query` is missing; it is a question in GraphQL"));
    };
    let variables = match told.remove("variables") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(variables)) => variables,
        Some(_) => return Err(ToolRefusal::arguments("`variables` is no object")),
    };
    match told.keys().next() {
        Some(name) => Err(ToolRefusal::arguments(format!(
            "{name:?} is not known; there are query and variables"
        ))),
        None => Ok((query, variables)),
    }
}

/// Returns the variables as Linear will see them.
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
