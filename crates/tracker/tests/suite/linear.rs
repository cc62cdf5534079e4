//! Linear, as it answers.

use carrel_config::TrackerKind;
use serde_json::{Value, json};

use crate::fake::{Asked, Reply};
use crate::records::{Provider, TrackerRecords};

pub(crate) struct Linear;

impl Provider for Linear {
    const KIND: TrackerKind = TrackerKind::Linear;
    const STATES: (&'static str, &'static str) = ("Todo", "Done");

    fn settings(address: &str) -> Vec<(&'static str, String)> {
        vec![("endpoint", format!("{address}/graphql")), ("project_slug", "web-1a2b3c".to_owned())]
    }

    fn secret_name() -> &'static str {
        "api_key"
    }

    fn record(number: usize) -> Value {
        json!({
            "id": Self::id(number),
            "identifier": Self::identifier(number),
            "title": format!("Issue {number}"),
            "description": "What to do.",
            "priority": 2,
            "branchName": format!("web-{number}-issue"),
            "url": format!("https://linear.app/acme/issue/WEB-{number}"),
            "createdAt": "2024-01-15T10:30:00.000Z",
            "updatedAt": "2024-01-16T10:30:00.000Z",
            "state": { "name": "Todo" },
            "assignee": { "id": "user-1" },
            "labels": { "nodes": [{ "name": "Bug" }], "pageInfo": { "hasNextPage": false } },
            "inverseRelations": { "nodes": [], "pageInfo": { "hasNextPage": false } },
            "project": { "slugId": "web-1a2b3c" },
        })
    }

    fn id(number: usize) -> String {
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    fn identifier(number: usize) -> String {
        format!("WEB-{number}")
    }

    fn set_state(record: &mut Value, state: &str) {
        record["state"]["name"] = json!(state);
    }

    fn take_title(record: &mut Value) {
        record["title"] = json!("  ");
    }

    fn spoil(record: &mut Value) {
        for field in ["description", "branchName", "url", "createdAt", "updatedAt"] {
            record[field] = json!(17);
        }
        record["priority"] = json!("high");
        record["assignee"] = json!([]);
        record["labels"] = json!("bug");
        record["inverseRelations"] = json!(null);
    }

    fn move_away(record: &mut Value) {
        record["project"]["slugId"] = json!("other");
    }

    fn answer(records_served: &TrackerRecords, asked: &Asked) -> Reply {
        if asked.method != "POST" || asked.path != "/graphql" {
            return Reply::text(404, "");
        }
        let question = asked.body["query"].as_str().unwrap();
        let variables = &asked.body["variables"];
        if question.contains("CarrelViewer") {
            return Reply::json(&json!({ "data": { "viewer": { "id": "user-1" } } }));
        }
        if question.contains("CarrelRest") {
            let issue = records_served
                .records
                .iter()
                .find(|record| record["id"] == variables["id"])
                .unwrap();
            return Reply::json(&json!({ "data": { "issue": issue["rest"] } }));
        }
        list(records_served, variables)
    }
}

fn list(records_served: &TrackerRecords, variables: &Value) -> Reply {
    let filter = &variables["filter"];
    let first = usize::try_from(variables["first"].as_u64().unwrap()).unwrap();
    assert!((1..=250).contains(&first), "Linear gives at most 250 at once");
    let found: Vec<&Value> =
        records_served.records.iter().filter(|record| passes(record, filter)).collect();
    let from = variables["after"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    let (nodes, next) = records_served.part(&found, from, first);
    let cursor = next.filter(|_| !records_served.hide_cursor).map(|next| next.to_string());
    Reply::json(&json!({ "data": { "issues": {
        "nodes": nodes,
        "pageInfo": { "hasNextPage": next.is_some(), "endCursor": cursor },
    } } }))
}

fn passes(record: &Value, filter: &Value) -> bool {
    let named = |wanted: &Value| {
        let wanted = wanted["name"]["eqIgnoreCase"].as_str().unwrap();
        record["state"]["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
    };
    let state = filter["state"]["or"].as_array().is_none_or(|states| states.iter().any(named));
    let ids = filter["id"]["in"].as_array();
    let id = ids.is_none_or(|ids| ids.len() <= 50 && ids.contains(&record["id"]));
    state && id && record["project"]["slugId"] == filter["project"]["slugId"]["eq"]
}
