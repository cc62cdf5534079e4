//! Issues in Asana's format.

use serde_json::{Value, json};

use crate::issue::{Issue, IssueId};
use crate::issue_records::{labels, link, list, text, time, word};

/// Returns the membership of a task in a project.
fn membership<'a>(task: &'a Value, project: &str) -> Option<&'a Value> {
    let of_project =
        |json: &&Value| json.pointer("/project/gid").and_then(Value::as_str) == Some(project);
    list(task, "/memberships").iter().find(of_project)
}

/// Returns true if a task lists its memberships and the project is not among them.
pub(super) fn is_elsewhere(task: &Value, project: &str) -> bool {
    task["memberships"].is_array() && membership(task, project).is_none()
}

pub(super) fn state(task: &Value, project: &str) -> Option<String> {
    text(membership(task, project)?, "/section/name")
}

/// Reads a task; `None` if a required member is missing.
pub(super) fn read(task: &Value, project: &str) -> Option<Issue> {
    let gid = word(task, "/gid")?;
    let section = membership(task, project)?;
    let names = list(task, "/tags").iter().filter_map(|tag| tag["name"].as_str());
    let is_section = task["resource_subtype"] == "section";
    Some(Issue {
        native_ref: Some(json!({
            "task_gid": gid,
            "project_gid": project,
            "section_gid": word(section, "/section/gid"),
        })),
        identifier: format!("ASANA-{gid}"),
        id: IssueId(gid),
        title: text(task, "/name")?,
        description: text(task, "/notes"),
        priority: None,
        state: text(section, "/section/name")?,
        branch_name: None,
        url: link(task, "/permalink_url"),
        assignee_id: word(task, "/assignee/gid"),
        labels: labels(names),
        blocked_by: Vec::new(),
        dispatchable: task["completed"] == Value::Bool(false) && !is_section,
        created_at: time(task, "/created_at"),
        updated_at: time(task, "/modified_at"),
    })
}
