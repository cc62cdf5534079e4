//! The tool for agents.

use hyper::Method;
use serde_json::Value;

use super::Asana;
use crate::api::ApiRequest;
use crate::issue::Issue;
use crate::issue_records::{is_number, list, text, word};
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal};

pub(super) const NAME: &str = "asana_api";

const SHAPE: RequestShape<'static> =
    RequestShape { methods: &["GET", "POST", "PUT", "DELETE"], query: "params", slashed: None };

/// What of the project, of a section and of a task an agent may read.
const OF_THE_PROJECT: &[&str] = &["custom_field_settings", "sections", "task_counts", "tasks"];
const OF_A_SECTION: &[&str] = &["tasks"];
const OF_A_TASK: &[&str] =
    &["attachments", "dependencies", "dependents", "projects", "stories", "subtasks", "tags"];

/// What can be done to a task.
const TO_A_TASK: &[&str] = &[
    "addFollowers",
    "addProject",
    "addTag",
    "removeFollowers",
    "removeTag",
    "stories",
    "subtasks",
];

/// How far up the tasks are looked for that a task is a part of.
const MAX_PARENTS: usize = 5;

pub(super) fn tool(project: &str) -> Tool {
    let description = format!(
        "Sends a request to the REST interface of Asana, for the project {project} alone. {{task_gid}} and \
         {{project_gid}} are filled in for the issue at hand. There are /tasks, /tasks/GID (to read: {}; to do: \
         {}), /sections/GID with tasks and addTask, and /projects/{project} with {}.",
        OF_A_TASK.join(", "),
        TO_A_TASK.join(", "),
        OF_THE_PROJECT.join(", ")
    );
    rest_tool::tool(NAME, description, &SHAPE)
}

/// What an agent wants to send, and what it names that has to be of the project.
#[derive(Debug)]
pub(super) struct CheckedRequest {
    pub(super) call: ApiCall,
    tasks: Vec<String>,
    sections: Vec<String>,
}

/// Reads what an agent wants to send, if it stays within the project as far as that can be told.
pub(super) fn judge(
    arguments: Value,
    project: &str,
    issue: &Issue,
) -> Result<CheckedRequest, ToolRefusal> {
    let call = ApiCall::parse(arguments, &SHAPE, |part| match part {
        "{task_gid}" => Some(issue.id.0.clone()),
        "{project_gid}" => Some(project.to_owned()),
        _ => None,
    })?;
    let (read, post) = (call.is_read(), call.method == Method::POST);
    let (mut tasks, mut sections) = (Vec::new(), Vec::new());
    match call.pieces().as_slice() {
        ["projects", gid, rest @ ..] if *gid == project => match rest {
            [] if read => {}
            [part] if read && OF_THE_PROJECT.contains(part) => {}
            ["sections"] if post => {}
            _ => {
                return Err(ToolRefusal::scope(format!(
                    "of the project, there are {} to read",
                    OF_THE_PROJECT.join(", ")
                )));
            }
        },
        ["tasks"] if post => {
            let given = call.given(&["projects"]);
            if given.is_empty() {
                return Err(ToolRefusal::scope(format!(
                    "`body.data.projects` has to be [\"{project}\"]"
                )));
            }
        }
        ["tasks", gid, rest @ ..] if is_number(gid) => {
            match rest {
                [] if !post => {}
                [part] if read && OF_A_TASK.contains(part) => {}
                [part] if post && TO_A_TASK.contains(part) => {}
                _ => {
                    return Err(ToolRefusal::scope(format!(
                        "to a task, there are {}",
                        TO_A_TASK.join(", ")
                    )));
                }
            }
            tasks.push((*gid).to_owned());
        }
        ["sections", gid, rest @ ..] if is_number(gid) => {
            match rest {
                [] if read => {}
                [part] if read && OF_A_SECTION.contains(part) => {}
                ["addTask"] if post => {}
                _ => {
                    return Err(ToolRefusal::scope(
                        "of a section, there are tasks to read, and addTask",
                    ));
                }
            }
            sections.push((*gid).to_owned());
        }
        _ => {
            return Err(ToolRefusal::scope(format!(
                "only tasks of the project {project} can be reached"
            )));
        }
    }
    names_others(&call, project)?;
    tasks.extend(gids(&call, &["task", "insert_before", "insert_after"])?);
    sections.extend(gids(&call, &["section"])?);
    tasks.retain(|gid| *gid != issue.id.0);
    Ok(CheckedRequest { call, tasks, sections })
}

/// Refuses other projects, and tasks that something would become a part of.
fn names_others(call: &ApiCall, project: &str) -> Result<(), ToolRefusal> {
    let is_own = |told: &Value| match told {
        Value::Array(several) => {
            !several.is_empty()
                && several.iter().all(|one| word(one, "").as_deref() == Some(project))
        }
        one => word(one, "").as_deref() == Some(project),
    };
    if !call.given(&["project", "projects"]).iter().all(is_own) {
        return Err(ToolRefusal::scope(format!(
            "what is sent names a project other than {project}"
        )));
    }
    let parents = call.given(&["parent", "dependencies", "dependents"]);
    let reads = call.is_read();
    if !reads && !parents.iter().all(Value::is_null) {
        return Err(ToolRefusal::scope(
            "`parent`, `dependencies` and `dependents` may lead to other projects",
        ));
    }
    Ok(())
}

fn gids(call: &ApiCall, names: &[&str]) -> Result<Vec<String>, ToolRefusal> {
    let gid = |told: &Value| {
        let gid = word(told, "").filter(|gid| is_number(gid));
        gid.ok_or_else(|| {
            ToolRefusal::arguments(format!("{} is given by its gid", names.join(" or ")))
        })
    };
    call.given(names).iter().filter(|told| !told.is_null()).map(gid).collect()
}

impl Asana {
    /// Refuses tasks and sections that are not of the project.
    pub(super) async fn look_up(&self, judged: &CheckedRequest) -> Result<(), ToolRefusal> {
        for gid in &judged.tasks {
            self.task_is_here(gid).await?;
        }
        for gid in &judged.sections {
            let told = self
                .api
                .json(ApiRequest::get(format!("/sections/{gid}?opt_fields=project.gid")))
                .await?;
            if text(&told, "/data/project/gid").as_deref() != Some(self.project.as_str()) {
                return Err(ToolRefusal::scope(format!(
                    "section {gid} is not of the configured project"
                )));
            }
        }
        Ok(())
    }

    /// A task is of the project, or a part of one that is.
    async fn task_is_here(&self, gid: &str) -> Result<(), ToolRefusal> {
        let mut at = gid.to_owned();
        for _ in 0..MAX_PARENTS {
            let path = format!("/tasks/{at}?opt_fields=projects.gid,parent.gid");
            let told = self.api.json(ApiRequest::get(path)).await?;
            let own =
                |project: &Value| text(project, "/gid").as_deref() == Some(self.project.as_str());
            if list(&told, "/data/projects").iter().any(own) {
                return Ok(());
            }
            match word(&told, "/data/parent/gid").filter(|gid| is_number(gid)) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Err(ToolRefusal::scope(format!("task {gid} is not of the configured project")))
    }
}
