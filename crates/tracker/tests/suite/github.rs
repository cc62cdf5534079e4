//! GitHub, as it answers.

use carrel_config::TrackerKind;
use serde_json::{Map, Value, json};

use crate::fake::{Asked, Reply};
use crate::records::{Provider, TrackerRecords, versioned};

pub(crate) struct Github;

impl Provider for Github {
    const KIND: TrackerKind = TrackerKind::Github;
    const STATES: (&'static str, &'static str) = ("open", "closed");
    const VERSIONED: bool = true;

    fn settings(address: &str) -> Vec<(&'static str, String)> {
        vec![("api_url", address.to_owned()), ("repo", "acme/web".to_owned())]
    }

    fn secret_name() -> &'static str {
        "token"
    }

    fn record(number: usize) -> Value {
        json!({
            "id": 5_000_000_000_u64 + number as u64,
            "node_id": format!("I_{number}"),
            "number": number,
            "title": format!("Issue {number}"),
            "body": "What to do.",
            "state": "open",
            "html_url": format!("https://github.com/acme/web/issues/{number}"),
            "assignee": { "login": "ana", "id": 7 },
            "labels": [{ "id": 1, "name": "Bug", "color": "f00" }],
            "created_at": "2024-01-15T10:30:00Z",
            "updated_at": "2024-01-16T10:30:00Z",
        })
    }

    fn id(number: usize) -> String {
        number.to_string()
    }

    fn identifier(number: usize) -> String {
        format!("GH-{number}")
    }

    fn set_state(record: &mut Value, state: &str) {
        record["state"] = json!(state);
    }

    fn take_title(record: &mut Value) {
        record["title"] = json!(null);
    }

    fn spoil(record: &mut Value) {
        for field in
            ["node_id", "body", "html_url", "created_at", "updated_at", "assignee", "labels"]
        {
            record[field] = json!({ "strange": true });
        }
    }

    /// The list of a repository never shows those of another.
    fn move_away(record: &mut Value) {
        record["gone"] = json!(true);
    }

    fn answer(records_served: &TrackerRecords, asked: &Asked) -> Reply {
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", "/repos/acme/web/issues") => list(records_served, asked),
            ("POST", "/graphql") => by_number(records_served, asked),
            _ => Reply::status(404, &json!({ "message": "Not Found" })),
        }
    }
}

fn list(records_served: &TrackerRecords, asked: &Asked) -> Reply {
    let state = asked.parameter("state").unwrap();
    let in_state = |record: &&Value| {
        (state == "all" || record["state"] == state) && record.get("gone").is_none()
    };
    let found: Vec<&Value> = records_served.records.iter().filter(in_state).collect();
    let size = asked.number("per_page").unwrap().min(100);
    let page = asked.number("page").unwrap_or(1);
    let (part, next) = records_served.part(&found, (page - 1) * size, size);
    let reply = versioned(asked, &json!(part));
    let Some(next) = next else { return reply };
    let next = next / size + 1;
    let link = format!(
        "<https://api.github.com/repositories/1/issues?state={state}&per_page={size}&page={next}>; rel=\"next\", \
         <https://api.github.com/repositories/1/issues?page=99>; rel=\"last\""
    );
    reply.with("link", link)
}

fn by_number(records_served: &TrackerRecords, asked: &Asked) -> Reply {
    let question = asked.body["query"].as_str().unwrap();
    if asked.body["variables"] != json!({ "owner": "acme", "name": "web" }) {
        let error =
            json!({ "type": "NOT_FOUND", "path": ["repository"], "message": "no such repository" });
        return Reply::json(&json!({ "data": { "repository": null }, "errors": [error] }));
    }
    let mut found = Map::new();
    let mut errors = Vec::new();
    for line in question.lines().filter(|line| line.contains(": issue(number: ")) {
        let alias = line.trim().split(':').next().unwrap();
        let number: u64 = alias[1..].parse().unwrap();
        let visible = |record: &&Value| {
            record["number"] == number
                && record.get("pull_request").is_none()
                && record.get("gone").is_none()
        };
        let record = records_served.records.iter().find(visible);
        found.insert(alias.to_owned(), record.map(node).unwrap_or_default());
        if record.is_none() {
            let path = ["repository", alias];
            errors.push(json!({ "type": "NOT_FOUND", "path": path, "message": "no such issue" }));
        }
    }
    assert!(found.len() <= 100);
    let mut body = json!({ "data": { "repository": found } });
    if !errors.is_empty() {
        body["errors"] = json!(errors);
    }
    Reply::json(&body)
}

fn node(record: &Value) -> Value {
    json!({
        "id": record["node_id"],
        "number": record["number"],
        "title": record["title"],
        "body": record["body"],
        "state": record["state"].as_str().map(str::to_uppercase),
        "url": record["html_url"],
        "createdAt": record["created_at"],
        "updatedAt": record["updated_at"],
        "assignees": { "nodes": [record["assignee"]] },
        "labels": { "nodes": record["labels"] },
    })
}
