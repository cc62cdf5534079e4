//! GitLab, as it answers.

use carrel_config::TrackerKind;
use serde_json::{Value, json};

use crate::fake::{Asked, Reply};
use crate::records::{Provider, TrackerRecords, versioned};

pub(crate) struct Gitlab;

impl Provider for Gitlab {
    const KIND: TrackerKind = TrackerKind::Gitlab;
    const STATES: (&'static str, &'static str) = ("opened", "closed");
    const VERSIONED: bool = true;

    fn settings(address: &str) -> Vec<(&'static str, String)> {
        vec![("api_url", format!("{address}/api/v4")), ("project_path", "acme/web".to_owned())]
    }

    fn secret_name() -> &'static str {
        "api_key"
    }

    fn record(number: usize) -> Value {
        json!({
            "id": 90_000 + number,
            "iid": number,
            "project_id": 77,
            "title": format!("Issue {number}"),
            "description": "  What to do.\n",
            "state": "opened",
            "web_url": format!("https://gitlab.com/acme/web/-/issues/{number}"),
            "assignees": [{ "id": 7, "username": "ana" }],
            "labels": ["Bug"],
            "references": { "short": format!("#{number}"), "full": format!("acme/web#{number}") },
            "created_at": "2024-01-15T10:30:00.000Z",
            "updated_at": "2024-01-16T10:30:00.000Z",
        })
    }

    fn id(number: usize) -> String {
        number.to_string()
    }

    fn identifier(number: usize) -> String {
        format!("GL-{number}")
    }

    fn set_state(record: &mut Value, state: &str) {
        record["state"] = json!(state);
    }

    fn take_title(record: &mut Value) {
        record.as_object_mut().unwrap().remove("title");
    }

    fn spoil(record: &mut Value) {
        for field in ["description", "web_url", "created_at", "updated_at", "assignees", "labels"] {
            record[field] = json!(false);
        }
    }

    /// The list of a project never shows those of another.
    fn move_away(record: &mut Value) {
        record["gone"] = json!(true);
    }

    fn answer(records_served: &TrackerRecords, asked: &Asked) -> Reply {
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/api/v4/projects/acme%2Fweb/issues") => list(records_served, asked),
            _ => Reply::status(404, &json!({ "message": "404 Not Found" })),
        }
    }
}

fn list(records_served: &TrackerRecords, asked: &Asked) -> Reply {
    let state = asked.parameter("state").unwrap_or("all");
    let iids: Vec<&str> = asked
        .query
        .iter()
        .filter(|(name, _)| name == "iids[]")
        .map(|(_, iid)| iid.as_str())
        .collect();
    let passes = |record: &&Value| {
        let wanted = iids.is_empty() || iids.contains(&record["iid"].to_string().as_str());
        wanted && (state == "all" || record["state"] == state) && record.get("gone").is_none()
    };
    let found: Vec<&Value> = records_served.records.iter().filter(passes).collect();
    let size = asked.number("per_page").unwrap_or(20).min(100);
    let page = asked.number("page").unwrap_or(1);
    let (part, next) = records_served.part(&found, (page - 1) * size, size);
    let next = next.map(|next| (next / size + 1).to_string());
    versioned(asked, &json!(part)).with("x-next-page", next.unwrap_or_default())
}
