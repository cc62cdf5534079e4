//! The tool `asana_api`: REST requests about tasks of the configured project.

use hyper::Method;
use serde_json::Value;

use super::Asana;
use crate::api::ApiRequest;
use crate::error::Result;
use crate::issue::Issue;
use crate::issue_records::{is_number, list, text, word};
use crate::rest_tool::{self, ApiCall, RequestShape};
use crate::tool::{Tool, ToolRefusal, is_listed};

const SHAPE: RequestShape<'static> =
    RequestShape { methods: &["GET", "POST", "PUT", "DELETE"], query: "params", slashed: None };

/// Resources of the project and of a task that agents may read.
const PROJECT_PARTS: &str = "custom_field_settings, sections, task_counts, tasks";
const TASK_PARTS: &str = "attachments, dependencies, dependents, projects, stories, subtasks, tags";

/// Actions on a task.
const TASK_ACTIONS: &str =
    "addFollowers, addProject, addTag, removeFollowers, removeTag, stories, subtasks";

/// Ancestors of a subtask that are searched for the project.
const MAX_PARENTS: usize = 5;

pub(super) fn tool(project: &str) -> Tool {
    let description = format!(
        "Sends a request to Asana's REST API, confined to the project {project}. {{task_gid}} and \
         {{project_gid}} are set for the current issue. Available are /tasks, /tasks/GID (read: {TASK_PARTS}; \
         actions: {TASK_ACTIONS}), /sections/GID with tasks and addTask, and /projects/{project} with \
         {PROJECT_PARTS}."
    );
    rest_tool::tool("asana_api", description, &SHAPE)
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
    let (mut tasks, mut sections) = (Vec::new(), Vec::new());
    match check_path(&call, project)? {
        Target::Task(gid) => tasks.push(gid),
        Target::Section(gid) => sections.push(gid),
        Target::Project => {}
    }
    reject_other_projects(&call, project)?;
    tasks.extend(gids(&call, &["task", "insert_before", "insert_after"])?);
    sections.extend(gids(&call, &["section"])?);
    tasks.retain(|gid| *gid != issue.id.0);
    Ok(CheckedRequest { call, tasks, sections })
}

/// The object that a path leads to. Tasks and sections may be in other projects.
enum Target {
    Project,
    Task(String),
    Section(String),
}

fn check_path(call: &ApiCall, project: &str) -> Result<Target, ToolRefusal> {
    let (read, post) = (call.is_read(), call.method == Method::POST);
    match call.segments().as_slice() {
        ["projects", gid, rest @ ..] if *gid == project => match rest {
            [] if read => Ok(Target::Project),
            [part] if read && is_listed(part, PROJECT_PARTS) => Ok(Target::Project),
            ["sections"] if post => Ok(Target::Project),
            _ => ToolRefusal::scope(format!("of the project, there are {PROJECT_PARTS} to read")),
        },
        ["tasks"] if post && call.values_of(&["projects"]).is_empty() => {
            ToolRefusal::scope(format!("`body.data.projects` has to be [\"{project}\"]"))
        }
        ["tasks"] if post => Ok(Target::Project),
        ["tasks", gid, rest @ ..] if is_number(gid) => match rest {
            [] if !post => Ok(Target::Task((*gid).to_owned())),
            [part] if read && is_listed(part, TASK_PARTS) => Ok(Target::Task((*gid).to_owned())),
            [part] if post && is_listed(part, TASK_ACTIONS) => Ok(Target::Task((*gid).to_owned())),
            _ => ToolRefusal::scope(format!("to a task, there are {TASK_ACTIONS}")),
        },
        ["sections", gid, rest @ ..] if is_number(gid) => match rest {
            [] | ["tasks"] if read => Ok(Target::Section((*gid).to_owned())),
            ["addTask"] if post => Ok(Target::Section((*gid).to_owned())),
            _ => ToolRefusal::scope("of a section, there are tasks to read, and addTask"),
        },
        _ => ToolRefusal::scope(format!("only tasks of the project {project} can be reached")),
    }
}

/// Refuses other projects, and members that could link to tasks of other projects.
fn reject_other_projects(call: &ApiCall, project: &str) -> Result<(), ToolRefusal> {
    let names_own = |json: &Value| word(json, "").as_deref() == Some(project);
    let is_own = |json: &Value| match json {
        Value::Array(several) => !several.is_empty() && several.iter().all(names_own),
        one => names_own(one),
    };
    if !call.values_of(&["project", "projects"]).iter().all(is_own) {
        return ToolRefusal::scope(format!("the request names a project other than {project}"));
    }
    let parents = call.values_of(&["parent", "dependencies", "dependents"]);
    if !call.is_read() && !parents.iter().all(Value::is_null) {
        let message = "`parent`, `dependencies` and `dependents` may lead to other projects";
        return ToolRefusal::scope(message);
    }
    Ok(())
}

fn gids(call: &ApiCall, names: &[&str]) -> Result<Vec<String>, ToolRefusal> {
    let gid = |json: &Value| match word(json, "").filter(|gid| is_number(gid)) {
        Some(gid) => Ok(gid),
        None => ToolRefusal::arguments(format!("{} is given by its gid", names.join(" or "))),
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
            let path = format!("/sections/{gid}?opt_fields=project.gid");
            let json = self.api.json(ApiRequest::get(path)).await?;
            if text(&json, "/data/project/gid").as_deref() != Some(self.project.as_str()) {
                let message = format!("section {gid} is not of the configured project");
                return ToolRefusal::scope(message);
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
            let is_own = |project: &Value| project["gid"] == self.project.as_str();
            if list(&json, "/data/projects").iter().any(is_own) {
                return Ok(());
            }
            match word(&json, "/data/parent/gid").filter(|gid| is_number(gid)) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        ToolRefusal::scope(format!("task {gid} is not of the configured project"))
    }
}
