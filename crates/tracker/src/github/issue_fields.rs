//! Issues in GitHub's REST and GraphQL formats.

use serde_json::{Value, json};

use super::Repository;
use crate::issue::{Issue, IssueId};
use crate::issue_records::{labels, link, list, text, time, word};

/// The requested fields of an issue.
const FIELDS: &str = "\
fragment Fields on Issue {
  id number title body state url createdAt updatedAt
  assignees(first: 1) { nodes { login } }
  labels(first: 100) { nodes { name } }
}";

/// Returns the query for issues with these numbers, which must be digits: they become part of the query.
pub(super) fn query(numbers: &[&str]) -> String {
    let mut query = String::from("query CarrelIssues($owner: String!, $name: String!) {\n");
    query.push_str("  repository(owner: $owner, name: $name) {\n");
    for number in numbers {
        query.extend(["    i", number, ": issue(number: ", number, ") { ...Fields }\n"]);
    }
    query + "  }\n}\n" + FIELDS
}

/// Returns true for a pull request, which the REST list of issues includes.
pub(super) fn is_pull_request(entry: &Value) -> bool {
    entry.get("pull_request").is_some_and(|json| !json.is_null())
}

pub(super) fn from_list(entry: &Value, repository: &Repository) -> Option<Issue> {
    // A label is an object or a string.
    let names = list(entry, "/labels").iter();
    let names = names.filter_map(|label| label["name"].as_str().or(label.as_str()));
    let paths = ["/node_id", "/html_url", "/assignee/login", "/created_at", "/updated_at"];
    read(entry, repository, paths, labels(names))
}

pub(super) fn from_graphql(node: &Value, repository: &Repository) -> Option<Issue> {
    let names = list(node, "/labels/nodes").iter().filter_map(|label| text(label, "/name"));
    let paths = ["/id", "/url", "/assignees/nodes/0/login", "/createdAt", "/updatedAt"];
    read(node, repository, paths, labels(names))
}

/// Reads an issue. The paths are the locations of members that differ between the formats: node id, page,
/// assignee, creation and last change.
fn read(
    json: &Value,
    repository: &Repository,
    [node, url, assignee, created, updated]: [&str; 5],
    labels: Vec<String>,
) -> Option<Issue> {
    let number = json["number"].as_u64().filter(|number| *number > 0)?;
    Some(Issue {
        id: IssueId(number.to_string()),
        native_ref: Some(json!({
            "node_id": word(json, node),
            "number": number,
            "repo": repository.full_name(),
        })),
        identifier: format!("GH-{number}"),
        title: text(json, "/title")?,
        description: text(json, "/body"),
        state: text(json, "/state")?.to_lowercase(),
        url: link(json, url),
        assignee_id: text(json, assignee),
        labels,
        dispatchable: true,
        created_at: time(json, created),
        updated_at: time(json, updated),
        ..Issue::default()
    })
}
