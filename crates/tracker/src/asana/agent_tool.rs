//! The tool `asana_api`: REST requests about tasks of the configured project.

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

/// Resources of the project, of a section and of a task that agents may read.
const PROJECT_PARTS: &[&str] = &["custom_field_settings", "sections", "task_counts", "tasks"];
const SECTION_PARTS: &[&str] = &["tasks"];
const TASK_PARTS: &[&str] =
    &["attachments", "dependencies", "dependents", "projects", "stories", "subtasks", "tags"];

/// Actions on a task.
const TASK_ACTIONS: &[&str] = &[
    "addFollowers",
    "addProject",
    "addTag",
    "removeFollowers",
    "removeTag",
    "stories",
    "subtasks",
];

/// Ancestors of a subtask that are searched for the project.
const MAX_PARENTS: usize = 5;

pub(super) fn tool(project: &str) -> Tool {
    let description = format!(
        "Sends a request to Asana's REST API, confined to the project {project}. {{task_gid}} and \
         {{project_gid}} are set for the current issue. Available are /tasks, /tasks/GID (read: {}; actions: \
         {}), /sections/GID with tasks and addTask, and /projects/{project} with {}.",
        TASK_PARTS.join(", "),
        TASK_ACTIONS.join(", "),
        PROJECT_PARTS.join(", ")
    );
    rest_tool::tool(NAME, description, &SHAPE)
}

/// A request whose path is confined to the project, and further tasks and sections that it names.
#[derive(Debug)]
pub(super) struct CheckedRequest {
    pub(super) call: ApiCall,
    tasks: Vec<String>,
    sections: Vec<String>,
}

/// Parses a request and checks it as far as that is possible without Asana.
pub(super) fn check(
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
    match call.segments().as_slice() {
        ["projects", gid, rest @ ..] if *gid == project => match rest {
            [] if read => {}
            [part] if read && PROJECT_PARTS.contains(part) => {}
            ["sections"] if post => {}
            _ => {
                return Err(ToolRefusal::scope(format!(
                    "of the project, there are {} to read",
                    PROJECT_PARTS.join(", ")
                )));
            }
        },
        ["tasks"] if post => {
            let given = call.values_of(&["projects"]);
            if given.is_empty() {
                return Err(ToolRefusal::scope(format!(
                    "`body.data.projects` has to be [\"{project}\"]"
                )));
            }
        }
        ["tasks", gid, rest @ ..] if is_number(gid) => {
            match rest {
                [] if !post => {}
                [part] if read && TASK_PARTS.contains(part) => {}
                [part] if post && TASK_ACTIONS.contains(part) => {}
                _ => {
                    return Err(ToolRefusal::scope(format!(
                        "to a task, there are {}",
                        TASK_ACTIONS.join(", ")
                    )));
                }
            }
            tasks.push((*gid).to_owned());
        }
        ["sections", gid, rest @ ..] if is_number(gid) => {
            match rest {
                [] if read => {}
                [part] if read && SECTION_PARTS.contains(part) => {}
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
    reject_other_projects(&call, project)?;
    tasks.extend(gids(&call, &["task", "insert_before", "insert_after"])?);
    sections.extend(gids(&call, &["section"])?);
    tasks.retain(|gid| *gid != issue.id.0);
    Ok(CheckedRequest { call, tasks, sections })
}

/// Refuses other projects, and members that could link to tasks of other projects.
fn reject_other_projects(call: &ApiCall, project: &str) -> Result<(), ToolRefusal> {
    let is_own = |json: &Value| match json {
        Value::Array(several) => {
            !several.is_empty()
                && several.iter().all(|one| word(one, "").as_deref() == Some(project))
        }
        one => word(one, "").as_deref() == Some(project),
    };
    if !call.values_of(&["project", "projects"]).iter().all(is_own) {
        return Err(ToolRefusal::scope(format!(
            "the request names a project other than {project}"
        )));
    }
    let parents = call.values_of(&["parent", "dependencies", "dependents"]);
    let reads = call.is_read();
    if !reads && !parents.iter().all(Value::is_null) {
        return Err(ToolRefusal::scope(
            "`parent`, `dependencies` and `dependents` may lead to other projects",
        ));
    }
    Ok(())
}

fn gids(call: &ApiCall, names: &[&str]) -> Result<Vec<String>, ToolRefusal> {
    let gid = |json: &Value| {
        let gid = word(json, "").filter(|gid| is_number(gid));
        gid.ok_or_else(|| {
            ToolRefusal::arguments(format!("{} is given by its gid", names.join(" or ")))
        })
    };
    call.values_of(names).iter().filter(|json| !json.is_null()).map(gid).collect()
}

impl Asana {
    /// Refuses tasks and sections that are not in the project, by asking Asana for their projects.
    pub(super) async fn verify_scope(&self, checked: &CheckedRequest) -> Result<(), ToolRefusal> {
        for gid in &checked.tasks {
            self.verify_task(gid).await?;
        }
        for gid in &checked.sections {
            let json = self
                .api
                .json(ApiRequest::get(format!("/sections/{gid}?opt_fields=project.gid")))
                .await?;
            if text(&json, "/data/project/gid").as_deref() != Some(self.project.as_str()) {
                return Err(ToolRefusal::scope(format!(
                    "section {gid} is not of the configured project"
                )));
            }
        }
        Ok(())
    }

    /// Refuses a task that is neither in the project nor a subtask of one that is.
    async fn verify_task(&self, gid: &str) -> Result<(), ToolRefusal> {
        let mut at = gid.to_owned();
        for _ in 0..MAX_PARENTS {
            let path = format!("/tasks/{at}?opt_fields=projects.gid,parent.gid");
            let json = self.api.json(ApiRequest::get(path)).await?;
            let own =
                |project: &Value| text(project, "/gid").as_deref() == Some(self.project.as_str());
            if list(&json, "/data/projects").iter().any(own) {
                return Ok(());
            }
            match word(&json, "/data/parent/gid").filter(|gid| is_number(gid)) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Err(ToolRefusal::scope(format!("task {gid} is not of the configured project")))
    }
}
