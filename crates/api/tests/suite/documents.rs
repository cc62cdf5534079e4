use std::collections::HashSet;

use carrel_api::openapi::{document, markdown};
use carrel_domain::WorkspaceId;
use carrel_service::TaskSubmission;
use carrel_service::repository::DEFAULT_HOSTS;
use carrel_wire::TaskRequest;
use pretty_assertions::assert_eq;
use serde_json::Value;

fn made() -> Value {
    document(&DEFAULT_HOSTS.map(str::to_owned))
}

fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

#[test]
fn the_documents_that_are_checked_in_are_those_of_the_code() {
    let document = made();
    let openapi = format!("{document:#}\n");
    let checked_in = include_str!("../../../../docs/openapi.json");
    assert!(openapi == checked_in, "docs/openapi.json is out of date; run `make docs`");
    let checked_in = include_str!("../../../../docs/api.md");
    assert!(markdown(&document) == checked_in, "docs/api.md is out of date; run `make docs`");
}

#[test]
fn every_operation_says_what_it_is_and_who_may_ask() {
    let document = made();
    let mut names = HashSet::new();
    for (place, operation) in operations(&document) {
        assert!(names.insert(operation["operationId"].to_string()), "{place}");
        for field in ["operationId", "summary", "description"] {
            assert!(
                operation[field].as_str().is_some_and(|text| text.len() > 5),
                "{place} {field}"
            );
        }
        let tag = &operation["tags"][0];
        let tags = document["tags"].as_array().unwrap();
        assert!(tags.iter().any(|known| known["name"] == *tag), "{place}: {tag}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{place}");
        let needs_token = operation["security"] != serde_json::json!([]);
        assert!(!needs_token || responses.contains_key("401"), "{place}");
    }
    assert!(names.len() >= 25, "{}", names.len());
}

#[test]
fn every_reference_leads_somewhere_and_every_schema_is_used() {
    let document = made();
    let text = document.to_string();
    let prefix = "\"$ref\":\"#/components/schemas/";
    let used: HashSet<_> =
        text.split(prefix).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert_eq!(used, schemas.keys().map(String::as_str).collect());
    assert_eq!(text.matches("\"$ref\"").count(), text.matches(prefix).count());
}

#[test]
fn the_examples_of_a_submission_are_taken() {
    let document = made();
    let body = &document["paths"]["/api/tasks/submit"]["post"]["requestBody"]["content"];
    let examples = body["application/json"]["examples"].as_object().unwrap();
    assert_eq!(examples.len(), 2);
    for (name, example) in examples {
        let request: TaskRequest = serde_json::from_value(example["value"].clone()).unwrap();
        let hosts = DEFAULT_HOSTS.map(str::to_owned);
        TaskSubmission::check(request, WorkspaceId::generate(), &hosts).expect(name);
    }
}

#[test]
fn the_machines_of_repositories_are_those_of_the_server() {
    let document = document(&["git.example.org".to_owned()]);
    let clone = &document["components"]["schemas"]["CloneRequest"]["properties"]["repo_url"];
    let pattern = clone["pattern"].as_str().unwrap();
    assert!(pattern.starts_with(r"^https://(git\.example\.org)("), "{pattern}");
    assert!(!document.to_string().contains("{hosts}"));
}

#[test]
fn every_link_leads_to_an_operation_that_takes_a_task() {
    let document = made();
    let mut links = 0;
    for (place, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap().values();
        for (name, link) in responses.filter_map(|one| one["links"].as_object()).flatten() {
            assert_eq!(link["operationId"], **name, "{place}");
            let found = operations(&document).find(|(_, other)| other["operationId"] == **name);
            assert!(found.unwrap().0.contains("{task_id}"), "{place}: {name}");
            links += 1;
        }
    }
    assert_eq!(links, 6);
}
