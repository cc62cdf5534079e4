//! What GitHub says of an issue, in a list and as an answer to a question.

use serde_json::{Value, json};

use super::Repository;
use crate::issue::{Issue, IssueId};
use crate::issue_records::{labels, link, list, text, time, word};

/// What a question asks of each issue.
const FIELDS: &str = "\
fragment Fields on Issue {
  id number title body state url createdAt updatedAt
  assignees(first: 1) { nodes { login } }
  labels(first: 100) { nodes { name } }
}";

/// Returns the question for issues with these numbers. They are digits, and nothing else.
pub(super) fn question(numbers: &[&str]) -> String {
    let mut question = String::from("query CarrelIssues($owner: String!, $name: String!) {\n");
    question.push_str("  repository(owner: $owner, name: $name) {\n");
    for number in numbers {
        question.extend(["    i", number, ": issue(number: ", number, ") { ...Fields }\n"]);
    }
    question + "  }\n}\n" + FIELDS
}

/// Tells whether an entry of the list of issues is a pull request.
pub(super) fn is_pull_request(entry: &Value) -> bool {
    entry.get("pull_request").is_some_and(|told| !told.is_null())
}

/// Reads an entry of the list of issues.
pub(super) fn from_list(entry: &Value, repository: &Repository) -> Option<Issue> {
    // A label is an object, or no more than its name.
    let name = |label: &'_ Value| label["name"].as_str().or(label.as_str()).map(str::to_owned);
    let names: Vec<String> = list(entry, "/labels").iter().filter_map(name).collect();
    read(
        entry,
        repository,
        &Places {
            node: "/node_id",
            url: "/html_url",
            assignee: "/assignee/login",
            created: "/created_at",
            updated: "/updated_at",
        },
        &names,
    )
}

/// Reads what was answered to a question.
pub(super) fn from_question(node: &Value, repository: &Repository) -> Option<Issue> {
    let names = list(node, "/labels/nodes").iter().filter_map(|label| text(label, "/name"));
    let names: Vec<String> = names.collect();
    read(
        node,
        repository,
        &Places {
            node: "/id",
            url: "/url",
            assignee: "/assignees/nodes/0/login",
            created: "/createdAt",
            updated: "/updatedAt",
        },
        &names,
    )
}

/// Where each of the two says what.
struct Places {
    node: &'static str,
    url: &'static str,
    assignee: &'static str,
    created: &'static str,
    updated: &'static str,
}

fn read(told: &Value, repository: &Repository, places: &Places, names: &[String]) -> Option<Issue> {
    let number = told["number"].as_u64().filter(|number| *number > 0)?;
    Some(Issue {
        id: IssueId(number.to_string()),
        native_ref: Some(json!({
            "node_id": word(told, places.node),
            "number": number,
            "repo": repository.full_name(),
        })),
        identifier: format!("GH-{number}"),
        title: text(told, "/title")?,
        description: text(told, "/body"),
        priority: None,
        state: text(told, "/state")?.to_lowercase(),
        branch_name: None,
        url: link(told, places.url),
        assignee_id: text(told, places.assignee),
        labels: labels(names.iter().map(String::as_str)),
        blocked_by: Vec::new(),
        dispatchable: true,
        created_at: time(told, places.created),
        updated_at: time(told, places.updated),
    })
}
