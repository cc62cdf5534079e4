//! Jira Cloud, as it answers.

use carrel_config::TrackerKind;
use serde_json::{Value, json};

use crate::fake::{Asked, Reply};
use crate::records::{Provider, TrackerRecords};

pub(crate) struct Jira;

impl Provider for Jira {
    const KIND: TrackerKind = TrackerKind::Jira;
    const STATES: (&'static str, &'static str) = ("To Do", "Done");

    fn settings(address: &str) -> Vec<(&'static str, String)> {
        vec![
            ("base_url", address.to_owned()),
            ("email", "bot@acme.example".to_owned()),
            ("project_key", "WEB".to_owned()),
        ]
    }

    fn secret_name() -> &'static str {
        "api_token"
    }

    fn record(number: usize) -> Value {
        let words = json!({ "type": "text", "text": "What to do." });
        json!({
            "id": Self::id(number),
            "key": Self::identifier(number),
            "fields": {
                "summary": format!("Issue {number}"),
                "description": {
                    "type": "doc", "version": 1,
                    "content": [{ "type": "paragraph", "content": [words] }],
                },
                "status": { "name": "To Do", "statusCategory": { "key": "new" } },
                "labels": ["Bug"],
                "issuelinks": [],
                "assignee": { "accountId": "5b10" },
                "project": { "key": "WEB", "id": "10000" },
                "created": "2024-01-15T10:30:00.000+0000",
                "updated": "2024-01-16T10:30:00.000+0000",
            },
        })
    }

    fn id(number: usize) -> String {
        (10_000 + number).to_string()
    }

    fn identifier(number: usize) -> String {
        format!("WEB-{number}")
    }

    fn set_state(record: &mut Value, state: &str) {
        record["fields"]["status"]["name"] = json!(state);
    }

    fn take_title(record: &mut Value) {
        record["fields"]["summary"] = json!("");
    }

    fn spoil(record: &mut Value) {
        for field in ["description", "labels", "issuelinks", "assignee", "created", "updated"] {
            record["fields"][field] = json!(3.5);
        }
        record["fields"]["status"]["statusCategory"] = json!("new");
    }

    fn move_away(record: &mut Value) {
        record["fields"]["project"] = json!({ "key": "OPS", "id": "10001" });
    }

    fn answer(records_served: &TrackerRecords, asked: &Asked) -> Reply {
        match (asked.method.as_str(), asked.path.as_str()) {
            ("POST", "/rest/api/3/search/jql") => search(records_served, &asked.body),
            ("POST", "/rest/api/3/issue/bulkfetch") => bulk(records_served, &asked.body),
            _ => Reply::status(404, &json!({ "errorMessages": ["no such place"], "errors": {} })),
        }
    }
}

fn search(records_served: &TrackerRecords, body: &Value) -> Reply {
    let jql = body["jql"].as_str().unwrap();
    let project = jql.strip_prefix("project = \"").unwrap().split('"').next().unwrap();
    let states: Vec<String> = jql
        .split_once("status in (")
        .unwrap()
        .1
        .split(')')
        .next()
        .unwrap()
        .split(", ")
        .map(|name| name.trim_matches('"').to_lowercase())
        .collect();
    let passes = |record: &&Value| {
        let name = record["fields"]["status"]["name"].as_str().unwrap_or_default().to_lowercase();
        record["fields"]["project"]["key"] == project && states.contains(&name)
    };
    let found: Vec<&Value> = records_served.records.iter().filter(passes).collect();
    let size = usize::try_from(body["maxResults"].as_u64().unwrap()).unwrap().min(5000);
    let from = body["nextPageToken"].as_str().map_or(0, |token| token.parse().unwrap());
    let (part, next) = records_served.part(&found, from, size);
    let mut told = json!({ "issues": part, "isLast": next.is_none() });
    if let Some(next) = next.filter(|_| !records_served.hide_cursor) {
        told["nextPageToken"] = json!(next.to_string());
    }
    Reply::json(&told)
}

fn bulk(records_served: &TrackerRecords, body: &Value) -> Reply {
    let ids = body["issueIdsOrKeys"].as_array().unwrap();
    assert!(ids.len() <= 100, "Jira gives at most a hundred at once");
    let found: Vec<&Value> =
        records_served.records.iter().filter(|record| ids.contains(&record["id"])).collect();
    Reply::json(&json!({ "issues": found, "issueErrors": [] }))
}
