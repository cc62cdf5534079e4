//! Asana, as it answers.

use carrel_config::TrackerKind;
use serde_json::{Value, json};

use crate::fake::{Asked, Reply};
use crate::records::{Provider, TrackerRecords};

pub(crate) struct Asana;

impl Provider for Asana {
    const KIND: TrackerKind = TrackerKind::Asana;
    const STATES: (&'static str, &'static str) = ("To do", "Done");

    fn settings(address: &str) -> Vec<(&'static str, String)> {
        vec![("endpoint", format!("{address}/api/1.0")), ("project_gid", "1200".to_owned())]
    }

    fn secret_name() -> &'static str {
        "api_key"
    }

    fn record(number: usize) -> Value {
        json!({
            "gid": Self::id(number),
            "name": format!("Issue {number}"),
            "notes": "What to do.",
            "completed": false,
            "resource_subtype": "default_task",
            "assignee": { "gid": "77" },
            "memberships": [
                { "project": { "gid": "1999" }, "section": { "gid": "9", "name": "Elsewhere" } },
                { "project": { "gid": "1200" }, "section": { "gid": "31", "name": "To do" } },
            ],
            "tags": [{ "name": "Bug" }],
            "permalink_url": format!("https://app.asana.com/0/1200/{number}"),
            "created_at": "2024-01-15T10:30:00.000Z",
            "modified_at": "2024-01-16T10:30:00.000Z",
        })
    }

    fn id(number: usize) -> String {
        (50_000 + number).to_string()
    }

    fn identifier(number: usize) -> String {
        format!("ASANA-{}", Self::id(number))
    }

    fn set_state(record: &mut Value, state: &str) {
        record["memberships"][1]["section"]["name"] = json!(state);
    }

    fn take_title(record: &mut Value) {
        record["name"] = json!("");
    }

    fn spoil(record: &mut Value) {
        for field in ["notes", "assignee", "tags", "permalink_url", "created_at", "modified_at"] {
            record[field] = json!(["?"]);
        }
    }

    fn move_away(record: &mut Value) {
        record["memberships"].as_array_mut().unwrap().pop();
    }

    fn answer(records_served: &TrackerRecords, asked: &Asked) -> Reply {
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/api/1.0/projects/1200/tasks") => list(records_served, asked),
            ("POST", "/api/1.0/batch") => batch(records_served, &asked.body),
            _ => Reply::status(404, &json!({ "errors": [{ "message": "no such place" }] })),
        }
    }
}

fn list(records_served: &TrackerRecords, asked: &Asked) -> Reply {
    let open_only = asked.parameter("completed_since") == Some("now");
    let passes = |record: &&Value| !(open_only && record["completed"] == true);
    let found: Vec<&Value> = records_served.records.iter().filter(passes).collect();
    let from = asked.number("offset").unwrap_or(0);
    let (part, next) = records_served.part(&found, from, asked.number("limit").unwrap().min(100));
    let offset = |next: usize| (!records_served.hide_cursor).then(|| next.to_string());
    let next = next.map(|next| json!({ "offset": offset(next), "path": "/somewhere" }));
    Reply::json(&json!({ "data": part, "next_page": next }))
}

fn batch(records_served: &TrackerRecords, body: &Value) -> Reply {
    let actions = body["data"]["actions"].as_array().unwrap();
    assert!((1..=10).contains(&actions.len()), "Asana takes at most ten actions at once");
    let answer = |action: &Value| {
        let gid = action["relative_path"].as_str().unwrap().strip_prefix("/tasks/").unwrap();
        match records_served.records.iter().find(|record| record["gid"] == gid) {
            Some(task) => json!({ "status_code": 200, "headers": {}, "body": { "data": task } }),
            None => {
                json!({ "status_code": 404, "headers": {}, "body": { "errors": [{ "message": "no such task" }] } })
            }
        }
    };
    Reply::json(&json!({ "data": actions.iter().map(answer).collect::<Vec<_>>() }))
}
