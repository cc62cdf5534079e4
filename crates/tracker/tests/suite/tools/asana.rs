//! Requests to Asana.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Bench, all_refused, bench_with, get, post};
use crate::asana::Asana;
use crate::fake::Reply;
use crate::records::SECRET;

/// Asana, where tasks 8 and 9 are of another project, and 10 is a part of 7.
async fn asana() -> Bench {
    bench_with::<Asana>(|asked| {
        let fields = asked.parameter("opt_fields")?;
        let told = match (asked.path.strip_prefix("/api/1.0/")?, fields) {
            ("tasks/50010", "projects.gid,parent.gid") => {
                json!({ "projects": [], "parent": { "gid": "50011" } })
            }
            ("tasks/50011", "projects.gid,parent.gid") => {
                json!({ "projects": [{ "gid": "1200" }], "parent": null })
            }
            (_, "projects.gid,parent.gid") => {
                json!({ "projects": [{ "gid": "1999" }], "parent": null })
            }
            ("sections/31", "project.gid") => json!({ "project": { "gid": "1200" } }),
            (_, "project.gid") => json!({ "project": { "gid": "1999" } }),
            _ => return None,
        };
        Some(Reply::json(&json!({ "data": told })))
    })
    .await
}

#[tokio::test]
async fn item_072_and_073_asana_requests_go_out_in_our_name_for_the_issue_at_hand() {
    let bench = asana().await;
    let sent =
        bench.sent(post("/tasks/{task_gid}/stories", json!({ "data": { "text": "Done." } }))).await;
    assert_eq!(sent.path, "/api/1.0/tasks/50007/stories");
    assert_eq!(sent.headers["authorization"], format!("Bearer {SECRET}"));
    assert_eq!(bench.fake.count(), 1, "the task at hand is not looked up");
    bench.sent(json!({ "method": "PUT", "path": "/tasks/50010", "body": { "data": { "completed": true } } })).await;
    bench.sent(post("/tasks", json!({ "data": { "name": "a", "projects": ["1200"] } }))).await;
    bench
        .sent(post(
            "/tasks/{task_gid}/addProject",
            json!({ "data": { "project": "1200", "section": "31" } }),
        ))
        .await;
    bench.sent(post("/sections/31/addTask", json!({ "data": { "task": "50007" } }))).await;
    bench.sent(get("/projects/{project_gid}/sections")).await;
}

#[tokio::test]
async fn asana_requests_stay_in_the_project() {
    let bench = asana().await;
    all_refused(
        &bench,
        vec![
            get("/users/me"),
            get("/projects/1999/tasks"),
            get("/projects/1200/../1999"),
            get("/workspaces/1/tasks/search"),
            get("/tasks"),
            get("/stories/5"),
            post("/batch", json!({ "data": { "actions": [] } })),
            post("/tasks", json!({ "data": { "name": "a" } })),
            post("/tasks", json!({ "data": { "name": "a", "projects": [] } })),
            post("/tasks", json!({ "data": { "name": "a", "projects": ["1200", "1999"] } })),
            post(
                "/tasks",
                json!({ "data": { "name": "a", "projects": ["1200"], "parent": "50008" } }),
            ),
            post("/tasks/50007/addProject", json!({ "data": { "project": "1999" } })),
            post("/tasks/50007/setParent", json!({ "data": { "parent": "50008" } })),
            post("/tasks/50007/duplicate", json!({})),
            post("/tasks/50007/addDependencies", json!({ "data": { "dependencies": ["50008"] } })),
            json!({ "method": "DELETE", "path": "/projects/1200" }),
            json!({ "method": "PUT", "path": "/sections/31", "body": {} }),
        ],
    )
    .await;
    for arguments in [
        get("/tasks/50008"),
        get("/sections/32/tasks"),
        post("/sections/31/addTask", json!({ "data": { "task": "50009" } })),
        post("/tasks/50007/addProject", json!({ "data": { "project": "1200", "section": "32" } })),
    ] {
        bench.fake.reset();
        assert_eq!(bench.refused(arguments).await, "out_of_scope");
        assert!(bench.fake.heard().iter().all(|asked| asked.parameter("opt_fields").is_some()));
    }
}
